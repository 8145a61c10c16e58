"""The settings of a tournament as its store has them: what decides the results, without paths, addresses or keys.

Settings are written as JSON (``arena.run.judging.stored_settings``) and read here alone, a section when it is first
asked for. What older versions did not write has the value that it had then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from arena.config.ratings import RatingsSection
from judges.spec import VENDORS

if TYPE_CHECKING:
    from arena.config.judging import CriteriaSection, ExamSection, GenerateSection, NuggetsSection, PairwiseSection
    from arena.ratings.games import WinAndTie

Combine: TypeAlias = Literal["majority", "median", "mean"]

_SCORING: Final = "transformers"
"""The provider whose judges give probabilities; nobody else's explanation is taken for them."""


class StoredJudge(Struct, frozen=True):
    """What of a judge's declaration decides its replies.

    Attributes:
        combine: how several samples become one outcome.
        replies_as: its name in replies, where that is declared.
    """

    provider: str = ""
    model: str = ""
    replies_as: str = ""
    temperature: float | None = None
    seed: int | None = None
    combine: Combine = "majority"

    @property
    def gives_probabilities(self) -> bool:
        """Whether its replies may hold the probability of each label."""
        return self.provider == _SCORING


class StoredAgent(Struct, frozen=True):
    """An agent that the tournament asks itself; the attributes are those of ``Declared``."""

    name: str
    identity: str = ""
    notes: tuple[str, ...] = ()
    told_id: bool = False


class StoredRetrieval(Struct, frozen=True):
    """How retrieval is judged and scored.

    Attributes:
        depth: the rank down to which documents count; all when ``None``.
        combine: what several judges' labels of one document come to.
        measures: by ir_measures' names; ``None`` in a tournament begun before they were stored.
        scale: labels by the judges' words; empty in a tournament begun before scales were stored.
    """

    depth: int | None = None
    combine: Combine = "majority"
    measures: Sequence[str] | None = None
    scale: Mapping[str, int] = field(default_factory=dict)


class StoredExam(Struct, frozen=True):
    """An exam.

    Attributes:
        section: the section of the configuration, without its bank and prompts.
        generate: how the bank was written, ``None`` where it came from a file.
        bank: the bank of a file, without secret texts.
        prompts: by what they are for, as NAME@VERSION.
    """

    section: ExamSection
    generate: GenerateSection | None
    bank: Mapping[str, Any] | None
    prompts: Mapping[str, str]


class StoredSettings(Struct, frozen=True, dict=True):
    """A tournament's settings.

    Attributes:
        raw: as they are written.
    """

    raw: Mapping[str, Any]

    @cached_property
    def ratings(self) -> RatingsSection:
        """How games become ratings."""
        return RatingsSection.model_validate(self.raw.get("ratings") or {})

    @cached_property
    def judges(self) -> Mapping[str, StoredJudge]:
        """The judges by name."""
        return {name: _of(StoredJudge, judge) for name, judge in (self.raw.get("judges") or {}).items()}

    @cached_property
    def combinations(self) -> Mapping[str, Combine]:
        """By judge, how its samples become one outcome."""
        return {name: judge.combine for name, judge in self.judges.items()}

    @cached_property
    def hosted(self) -> frozenset[str]:
        """The judges that servers run, which say what model replied."""
        return frozenset(name for name, judge in self.judges.items() if judge.provider in VENDORS)

    def gives_probabilities(self, judge: str) -> bool:
        """Whether a judge's replies may hold the probability of each label."""
        return judge in self.judges and self.judges[judge].gives_probabilities

    def of_words(self, judge: str) -> bool:
        """Whether a judge compares words and asks no language model."""
        return judge in self.judges and self.judges[judge].provider == "lexical"

    @property
    def judges_of_words(self) -> tuple[str, ...]:
        """The judges of the games, where none of them is a language model."""
        names = self.game_judges or tuple(self.judges)
        return names if all(map(self.of_words, names)) else ()

    @cached_property
    def agents(self) -> tuple[StoredAgent, ...]:
        """The agents that the tournament asks itself."""
        given = self.raw.get("agents", ())
        return tuple(_of(StoredAgent, {**agent, "notes": tuple(agent.get("notes", ()))}) for agent in given)

    @cached_property
    def retrieval(self) -> StoredRetrieval | None:
        """How retrieval is judged and scored; ``None`` without labels of judges."""
        section = self.raw.get("retrieval")
        return None if section is None else _of(StoredRetrieval, section)

    @property
    def depth(self) -> int | None:
        """The rank down to which the tournament looks at documents; all when ``None``."""
        return None if self.retrieval is None else self.retrieval.depth

    @property
    def across_judges(self) -> Combine:
        """What several relevance judges' labels of one document come to."""
        return "majority" if self.retrieval is None else self.retrieval.combine

    @cached_property
    def pairwise(self) -> PairwiseSection | None:
        """The answer judges and their games."""
        from arena.config.judging import PairwiseSection

        section = self.raw.get("pairwise")
        return None if section is None else PairwiseSection.model_validate(section)

    @property
    def game_judges(self) -> tuple[str, ...]:
        """The answer judges."""
        return tuple((self.raw.get("pairwise") or {}).get("judges", ()))

    @property
    def win_and_tie(self) -> WinAndTie:
        """What a win in one order and a tie in the other make; read alone, since every leaderboard needs it."""
        how: WinAndTie = (self.raw.get("pairwise") or {}).get("win_and_tie", "tie")
        return how

    @property
    def both_orders(self) -> bool:
        """Whether every game is to be judged in both orders."""
        return bool((self.raw.get("pairwise") or {}).get("both_orders"))

    @property
    def adaptive(self) -> bool:
        """Whether games are chosen while they are played."""
        schedule: Mapping[str, Any] = (self.raw.get("pairwise") or {}).get("schedule", {})
        return schedule.get("kind") == "adaptive"

    @cached_property
    def criteria(self) -> CriteriaSection | None:
        """What answers are graded by."""
        from arena.config.judging import CriteriaSection

        section = self.raw.get("criteria")
        if not section:
            return None
        names = section["names"]  # what a name stands for today is not what the judge read then
        plain = {"names": dict.fromkeys(names, "")} if isinstance(names, list) else {}
        return CriteriaSection.model_validate({"judge": "", **section, **plain})

    @cached_property
    def nuggets(self) -> NuggetsSection | None:
        """How nuggets are made and assigned; a bank is named by its digest."""
        from arena.config.judging import NuggetsSection

        section = self.raw.get("nuggets")
        return NuggetsSection.model_validate(section) if section else None

    @cached_property
    def exam(self) -> StoredExam | None:
        """The exam."""
        from arena.config.judging import ExamSection, GenerateSection

        if not (written := self.raw.get("exam")):
            return None
        known = {name: written[name] for name in ExamSection.model_fields if name in written}
        generate = written["generate"] and GenerateSection.model_construct(**written["generate"])
        return StoredExam(ExamSection.model_construct(**known), generate, written["bank"], written["prompts"])

    @property
    def families(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Whose model judges are, and whose model wrote agents' answers, as far as that is declared."""
        families = self.raw.get("families") or {"judges": {}, "agents": {}}
        return families["judges"], families["agents"]

    @property
    def left_out(self) -> int:
        """Queries of the files that ``data.limit`` leaves out."""
        return int(self.raw.get("left_out", 0))

    @property
    def imported(self) -> bool:
        """Whether its verdicts were imported, and no run made them."""
        return "source" in self.raw

    @property
    def of_queries(self) -> bool:
        """Whether synthetic queries are kept here, and there is nothing to rate."""
        return "synth" in self.raw

    def shown(self) -> dict[str, Any]:
        """As they may be shown: the test bank has a file of its own, and secret items."""
        exam = self.raw.get("exam")
        without = {name: value for name, value in exam.items() if name != "bank"} if exam else exam
        return {**self.raw, "exam": without} if exam else dict(self.raw)


def _of(kind: Any, section: Mapping[str, Any]) -> Any:
    """The fields that a type has of a section, whatever else is written there."""
    return kind(**{name: section[name] for name in kind.__struct_fields__ if name in section})
