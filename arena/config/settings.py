"""The stored settings of a tournament: everything that affects the results, without paths, addresses or keys.

``arena.run.judging.stored_settings`` writes them as JSON; this module reads them, each section on first use. Settings
that an older version did not write get the value that this version used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from arena.config.ratings import RatingsSection
from arena.config.stages import find_stage
from judges.spec import VENDORS

if TYPE_CHECKING:
    from arena.config.judging import CriteriaSection, ExamSection, GenerateSection, NuggetsSection, PairwiseSection
    from arena.ratings.games import WinAndTie

Combine: TypeAlias = Literal["majority", "median", "mean"]

_PROBABILITY_PROVIDER: Final = "transformers"
"""The provider whose judges give probabilities; replies of other providers are not read for them."""


class StoredJudge(Struct, frozen=True):
    """The fields of a judge's declaration that affect its replies.

    Attributes:
        combine: how several samples become one outcome.
        replies_as: the judge's name in replies, if it is declared.
    """

    provider: str = ""
    model: str = ""
    replies_as: str = ""
    temperature: float | None = None
    seed: int | None = None
    combine: Combine = "majority"

    @property
    def gives_probabilities(self) -> bool:
        """Whether its replies may have a probability for each label."""
        return self.provider == _PROBABILITY_PROVIDER


class StoredAgent(Struct, frozen=True):
    """An agent that the tournament asks; the attributes are those of ``Declared``."""

    name: str
    identity: str = ""
    notes: tuple[str, ...] = ()
    told_id: bool = False


class StoredRetrieval(Struct, frozen=True):
    """How retrieval is judged and scored.

    Attributes:
        depth: the rank down to which documents count, ``None`` for all.
        combine: how labels of several judges become one.
        measures: measures by ir_measures' names; ``None`` in stores of versions that did not store them.
        scale: label by the judges' word for it; empty in stores of versions that did not store scales.
    """

    depth: int | None = None
    combine: Combine = "majority"
    measures: Sequence[str] | None = None
    scale: Mapping[str, int] = field(default_factory=dict)


class StoredExam(Struct, frozen=True):
    """The stored settings of an exam.

    Attributes:
        section: the section of the configuration, without its bank and prompts.
        generate: how the bank was written, ``None`` if it came from a file.
        bank: the bank from the file, without secret texts.
        prompts: each prompt as NAME@VERSION, by its purpose.
    """

    section: ExamSection
    generate: GenerateSection | None
    bank: Mapping[str, Any] | None
    prompts: Mapping[str, str]


class StoredSettings(Struct, frozen=True, dict=True):
    """A tournament's settings.

    Attributes:
        raw: the settings as stored JSON.
    """

    raw: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Look up the stages of other distributions, so that their tasks and words are known."""
        for key in self.raw.get("stages", ()):
            find_stage(key)

    @cached_property
    def ratings(self) -> RatingsSection:
        return RatingsSection.model_validate(self.raw.get("ratings") or {})

    @cached_property
    def judges(self) -> Mapping[str, StoredJudge]:
        return {name: _fields_of(StoredJudge, judge) for name, judge in (self.raw.get("judges") or {}).items()}

    @cached_property
    def combinations(self) -> Mapping[str, Combine]:
        """How each judge's samples are combined."""
        return {name: judge.combine for name, judge in self.judges.items()}

    @cached_property
    def hosted(self) -> frozenset[str]:
        """The judges that servers run; their replies name the model."""
        return frozenset(name for name, judge in self.judges.items() if judge.provider in VENDORS)

    def gives_probabilities(self, judge: str) -> bool:
        """Whether the judge's replies may have a probability for each label."""
        return judge in self.judges and self.judges[judge].gives_probabilities

    def of_words(self, judge: str) -> bool:
        """Whether the judge compares words and calls no language model."""
        return judge in self.judges and self.judges[judge].provider == "lexical"

    @property
    def judges_of_words(self) -> tuple[str, ...]:
        """The judges of the games if none of them is a language model, else empty."""
        names = self.game_judges or tuple(self.judges)
        return names if all(map(self.of_words, names)) else ()

    @cached_property
    def agents(self) -> tuple[StoredAgent, ...]:
        """The agents that the tournament asks."""
        declarations = self.raw.get("agents", ())
        return tuple(
            _fields_of(StoredAgent, {**agent, "notes": tuple(agent.get("notes", ()))}) for agent in declarations
        )

    @cached_property
    def retrieval(self) -> StoredRetrieval | None:
        """How retrieval is judged and scored; ``None`` if no judge labels documents."""
        section = self.raw.get("retrieval")
        return None if section is None else _fields_of(StoredRetrieval, section)

    @property
    def depth(self) -> int | None:
        """The rank down to which documents count, ``None`` for all."""
        return None if self.retrieval is None else self.retrieval.depth

    @property
    def across_judges(self) -> Combine:
        """How labels of several relevance judges are combined."""
        return "majority" if self.retrieval is None else self.retrieval.combine

    @cached_property
    def pairwise(self) -> PairwiseSection | None:
        from arena.config.judging import PairwiseSection

        section = self.raw.get("pairwise")
        return None if section is None else PairwiseSection.model_validate(section)

    @property
    def game_judges(self) -> tuple[str, ...]:
        return tuple((self.raw.get("pairwise") or {}).get("judges", ()))

    @property
    def win_and_tie(self) -> WinAndTie:
        """Result of a game with a win in one order and a tie in the other; does not import ``PairwiseSection``."""
        rule: WinAndTie = (self.raw.get("pairwise") or {}).get("win_and_tie", "tie")
        return rule

    @property
    def both_orders(self) -> bool:
        return bool((self.raw.get("pairwise") or {}).get("both_orders"))

    @property
    def adaptive(self) -> bool:
        """Whether games are chosen while they are played."""
        schedule: Mapping[str, Any] = (self.raw.get("pairwise") or {}).get("schedule", {})
        return schedule.get("kind") == "adaptive"

    @cached_property
    def criteria(self) -> CriteriaSection | None:
        from arena.config.judging import CriteriaSection

        section = self.raw.get("criteria")
        if not section:
            return None
        names = section["names"]  # today's description of a name may differ from the one that the judge read
        plain = {"names": dict.fromkeys(names, "")} if isinstance(names, list) else {}
        return CriteriaSection.model_validate({"judge": "", **section, **plain})

    @cached_property
    def nuggets(self) -> NuggetsSection | None:
        """The stored section ``nuggets``, if any; its bank is named by a digest."""
        from arena.config.judging import NuggetsSection

        section = self.raw.get("nuggets")
        return NuggetsSection.model_validate(section) if section else None

    @cached_property
    def exam(self) -> StoredExam | None:
        from arena.config.judging import ExamSection, GenerateSection

        if not (section := self.raw.get("exam")):
            return None
        fields = {name: section[name] for name in ExamSection.model_fields if name in section}
        generate = section["generate"] and GenerateSection.model_construct(**section["generate"])
        return StoredExam(ExamSection.model_construct(**fields), generate, section["bank"], section["prompts"])

    @property
    def families(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The declared model families of judges, and those that wrote agents' answers."""
        families = self.raw.get("families") or {"judges": {}, "agents": {}}
        return families["judges"], families["agents"]

    @property
    def left_out(self) -> int:
        """Number of queries in the files that ``data.limit`` leaves out."""
        return int(self.raw.get("left_out", 0))

    @property
    def imported(self) -> bool:
        """Whether the verdicts were imported and not judged by a run."""
        return "source" in self.raw

    @property
    def of_queries(self) -> bool:
        """Whether the tournament only has synthetic queries, so that there is nothing to rate."""
        return "synth" in self.raw

    def shown(self) -> dict[str, Any]:
        """The settings without the test bank, which has its own file and may hold secret items."""
        exam = self.raw.get("exam")
        without = {name: value for name, value in exam.items() if name != "bank"} if exam else exam
        return {**self.raw, "exam": without} if exam else dict(self.raw)


def _fields_of(kind: Any, section: Mapping[str, Any]) -> Any:
    """Create a struct from those keys of a section that are its fields; ignores other keys."""
    return kind(**{name: section[name] for name in kind.__struct_fields__ if name in section})
