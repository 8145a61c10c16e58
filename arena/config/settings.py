"""The settings that affect results. A run stores them as the configuration declares them, and readers get the same.

Paths, addresses and names of variables are never stored: the store has the content that a run found there instead.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field, ValidationError, ValidationInfo, model_validator

from arena.calibration import EPSILON
from arena.config.judging import CriteriaSection, ExamSection, NuggetsSection, PairwiseSection, RetrievalSection
from arena.config.ratings import RatingsSection
from arena.config.stages import find_stage
from judges.errors import InputError
from judges.sections import RelativePath, Section, describe, mistake
from judges.spec import Combine, JudgeSettings
from retrieval_eval.data.files import read_json

if TYPE_CHECKING:
    from arena.config.stages import ListedStage
    from arena.ratings.games import WinAndTie


_SEALED_FIELDS: Final = ("judge", "level", "verdict", "bound_to", "expires", "epsilon")
"""The fields of a card that a gate reads; its seal covers them."""


class CardSection(Section):
    """[Whether judges may stand in for people](judge-card.md)."""

    epsilon: Annotated[float, Field(ge=0, lt=1)] = EPSILON
    """By how much a judge may be worse than a person: 0.2 for experts, 0.15 for trained people, 0.1 for a crowd."""
    required: RelativePath | None = None
    """The JSON file of `calibrate --card`. A gate decides only by judges with a valid card that says yes."""

    def stored(self) -> dict[str, Any]:
        """The section as JSON, with the content of the cards."""
        settings: dict[str, Any] = {"epsilon": self.epsilon}
        if self.required is not None:
            settings["cards"] = read_cards(self.required) if self.required.is_file() else []
        return settings


def read_cards(path: Path) -> list[dict[str, str]]:
    """Read the cards in a file, each with its judge, level, verdict, binding, epsilon and expiry date."""
    try:
        cards = [{name: str(card[name]) for name in (*_SEALED_FIELDS, "seal")} for card in read_json(path)["cards"]]
        for card in cards:
            date.fromisoformat(card["expires"])
            float(card["epsilon"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: not a file of judge cards; write one with 'ragleague calibrate CONFIG --card FILE.json'"
        ) from error
    for card in cards:
        if card.pop("seal") != seal(card):
            problem = f"the card of {card['judge']} for {card['level']} was edited after it was written"
            raise InputError(f"{path}: {problem}; write it again with 'ragleague calibrate CONFIG --card FILE.json'")
    return cards


def seal(card: Mapping[str, Any]) -> str:
    """A checksum of the fields that a gate reads; it reveals manual edits, but is neither a secret nor a signature."""
    return hashlib.sha256(json.dumps([str(card[name]) for name in _SEALED_FIELDS]).encode()).hexdigest()[:16]


class TournamentSettings(Section):
    """The settings that decide results."""

    judges: Mapping[str, JudgeSettings] = Field(default_factory=dict)
    """The judges, by names of your choice."""
    retrieval: RetrievalSection | None = None
    """The stage that labels documents."""
    pairwise: PairwiseSection | None = None
    """The stage that plays games."""
    criteria: CriteriaSection | None = None
    """The stage that grades single answers."""
    exam: ExamSection | None = None
    """The stage that grades answers or documents by a test bank."""
    nuggets: NuggetsSection | None = None
    """The stages that make nuggets and check which ones answers state."""
    ratings: RatingsSection = RatingsSection()
    """How ratings are computed from games."""
    card: CardSection | None = None
    """Requirements for judges that stand in for people."""
    further: dict[str, Any] = Field(default_factory=dict, exclude=True)
    """The sections that stages define themselves, by key; in the file, they are at the top level."""

    @model_validator(mode="before")
    @classmethod
    def _further_sections(cls, content: Any, info: ValidationInfo) -> Any:
        if not isinstance(content, dict):
            return content
        further = {}
        for key in content.keys() - cls.model_fields.keys():
            if (stage := stage_of(key)) is None:
                continue
            try:
                further[key] = stage.load("SECTION").model_validate(content[key], context=info.context)
            except ValidationError as problem:
                raise mistake(f"{key}.{describe(problem)}", key) from problem
        return {key: value for key, value in content.items() if key not in further} | {"further": further}

    def section(self, key: str) -> Section | None:
        """The section of a stage; ``None`` if the configuration has none."""
        section: Section | None = getattr(self, key) if key in type(self).model_fields else self.further.get(key)
        return section

    def judges_of(self, key: str) -> list[str]:
        """Names of the judges that a stage asks; empty without its section."""
        section: Any = self.section(key)
        if section is None:
            return []
        names = section.judges if hasattr(section, "judges") else section.judge
        names = names() if callable(names) else names
        return [names] if isinstance(names, str) else names


def stage_of(key: str) -> ListedStage | None:
    """The stage whose section has this key; only for sections that are not fields of ``TournamentSettings``."""
    try:
        return find_stage(str(key))
    except InputError as error:
        raise mistake(str(error), str(key)) from error


class StoredAgent(Section):
    """An agent that the tournament asks."""

    name: str
    identity: str = ""
    """Hash of everything that affects its replies, except the query."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """``AgentSettings`` without defaults."""
    notes: tuple[str, ...] = ()
    """Remarks for readers of its results."""
    told_id: bool = False
    """See ``AgentSpec.told_id``."""


class StoredRetrieval(RetrievalSection):
    """The section as stored."""

    measures: list[str] | None = None
    """The measures in the section, already checked; if it has none, the default measures."""
    scale: dict[str, int] = Field(default_factory=dict)
    """Label by the judges' word for it."""


class StoredExam(ExamSection):
    """The section as stored; its ``bank`` is named by a digest."""

    prompts: dict[str, str] = Field(default_factory=dict)
    """Each prompt as NAME@VERSION, by its purpose."""
    content: dict[str, Any] | None = None
    """The bank from the file, without secret texts."""


class StoredCard(CardSection):
    """The section as stored."""

    cards: list[dict[str, str]] | None = None
    """The required cards; none while their file does not exist, ``None`` if no card is required."""


class StoredSettings(TournamentSettings):
    """A tournament's settings, with facts that a run found, such as digests of prompts."""

    retrieval: StoredRetrieval | None = None
    exam: StoredExam | None = None
    card: StoredCard | None = None
    prompts: dict[str, str] = Field(default_factory=dict)
    """The digest of each prompt."""
    families: dict[str, dict[str, str]] = Field(default_factory=dict)
    """The declared model families of ``judges``, and those that wrote the answers of ``agents``."""
    agents: tuple[StoredAgent, ...] = ()
    """The agents that the tournament asks."""
    left_out: int = 0
    """Number of queries in the files that ``data.limit`` leaves out."""
    source: str = ""
    """Origin of the verdicts, if they were imported and not judged by a run."""
    synth: dict[str, Any] | None = None
    """How queries were made, in a tournament that only makes queries."""
    stages: dict[str, str] = Field(default_factory=dict)
    """By section, name and version of the distribution of each stage that is not part of ragleague."""

    @model_validator(mode="before")
    @classmethod
    def _without_lost_sections(cls, content: Any) -> Any:
        """Leave out sections of stages that are not installed; code that needs them calls ``require_stages``."""
        if not isinstance(content, dict):
            return content
        lost = {key for key in content.get("stages") or () if find_stage(key) is None}
        return {key: value for key, value in content.items() if key not in lost}

    @property
    def raw(self) -> dict[str, Any]:
        """The settings as stored JSON."""
        further = {key: section.model_dump(mode="json", exclude_unset=True) for key, section in self.further.items()}
        return self.model_dump(mode="json", exclude_unset=True) | further

    def shown(self) -> dict[str, Any]:
        """The settings without the test bank, which is a separate file and may contain secret items."""
        exam = None if self.exam is None else self.exam.model_dump(mode="json", exclude_unset=True)
        without = {key: value for key, value in (exam or {}).items() if key not in {"bank", "content"}}
        return self.raw | ({"exam": without} if exam else {})

    @property
    def imported(self) -> bool:
        return bool(self.source)

    @property
    def combinations(self) -> Mapping[str, Combine]:
        """How each judge's samples are combined."""
        return {name: judge.combine for name, judge in self.judges.items()}

    @property
    def hosted(self) -> frozenset[str]:
        """The judges whose models run on servers; their replies name the model."""
        return frozenset(name for name, judge in self.judges.items() if judge.hosted)

    def gives_probabilities(self, judge: str) -> bool:
        """Whether the judge's replies may contain a probability for each label."""
        return judge in self.judges and self.judges[judge].gives_probabilities

    def of_words(self, judge: str) -> bool:
        """Whether the judge compares words and calls no language model."""
        return judge in self.judges and self.judges[judge].provider == "lexical"

    @property
    def judges_of_words(self) -> tuple[str, ...]:
        """The judges of the games if none of them is a language model, else empty."""
        names = self.game_judges or tuple(self.judges)
        return names if all(map(self.of_words, names)) else ()

    @property
    def depth(self) -> int | None:
        """The rank up to which retrieved documents count; ``None`` if all count."""
        return None if self.retrieval is None else self.retrieval.depth

    @property
    def across_judges(self) -> Combine:
        """How labels of several relevance judges are combined."""
        return "majority" if self.retrieval is None else self.retrieval.combine

    @property
    def game_judges(self) -> tuple[str, ...]:
        return tuple(self.judges_of("pairwise"))

    @property
    def win_and_tie(self) -> WinAndTie:
        """Result of a game with a win in one order and a tie in the other."""
        return "tie" if self.pairwise is None else self.pairwise.win_and_tie

    @property
    def adaptive(self) -> bool:
        """Whether the schedule is adaptive: it chooses games by the results of earlier games."""
        return self.pairwise is not None and self.pairwise.schedule.kind == "adaptive"
