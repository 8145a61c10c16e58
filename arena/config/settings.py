"""The settings that affect results: the part of a configuration that a run stores with its tournament.

Paths, addresses and names of environment variables are never stored; the contents of some files are stored instead.
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
"""The fields of a judge card that ``ragleague gate`` reads; the checksum of the card, its ``seal``, covers them."""


class CardSection(Section):
    """When a [judge card](judge-card.md) says that a judge may replace human annotators."""

    epsilon: Annotated[float, Field(ge=0, lt=1)] = EPSILON
    """By how much a judge may be worse than a human: 0.2 for experts, 0.15 for trained people, 0.1 for a crowd."""
    required: RelativePath | None = None
    """A JSON file written by `calibrate --card`. A CI gate then uses only judges with a valid, positive card."""

    def stored(self) -> dict[str, Any]:
        """The section as JSON for the store, with the judge cards in place of the path of their file."""
        settings: dict[str, Any] = {"epsilon": self.epsilon}
        if self.required is not None:
            settings["cards"] = read_cards(self.required) if self.required.is_file() else []
        return settings


def read_cards(path: Path) -> list[dict[str, str]]:
    """Read the judge cards in a file, and check the checksum of each.

    A card has the fields judge, level, verdict, bound_to, epsilon and expires.
    """
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
    """Checksum of a judge card's fields; it reveals manual edits, but is neither a secret nor a signature."""
    return hashlib.sha256(json.dumps([str(card[name]) for name in _SEALED_FIELDS]).encode()).hexdigest()[:16]


class TournamentSettings(Section):
    """The settings that affect the results of a tournament."""

    judges: Mapping[str, JudgeSettings] = Field(default_factory=dict)
    """The judges. Each has a name of your choice, by which other sections refer to it."""
    retrieval: RetrievalSection | None = None
    """The stage in which judges label retrieved documents by relevance."""
    pairwise: PairwiseSection | None = None
    """The stage in which judges compare two answers to a query; one comparison is a game."""
    criteria: CriteriaSection | None = None
    """The stage in which a judge grades single answers by criteria."""
    exam: ExamSection | None = None
    """The stage in which a judge grades answers or documents by a test bank of questions or nuggets."""
    nuggets: NuggetsSection | None = None
    """The stages in which a judge creates nuggets and checks which of them the answers state."""
    ratings: RatingsSection = RatingsSection.model_construct()
    """How ratings are computed from games."""
    card: CardSection | None = None
    """When judges may replace human annotators."""
    further: dict[str, Any] = Field(default_factory=dict, exclude=True)
    """Sections of further stages, by key; in the YAML file, they are at the top level."""

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
                words, place = describe(problem), problem.errors()[0]["loc"]
                within = "." if place and words.startswith(str(place[0])) else ": "
                raise mistake(f"{key}{within}{words}", key) from problem
        return {key: value for key, value in content.items() if key not in further} | {"further": further}

    def section(self, key: str) -> Section | None:
        """The section of the stage with this key; ``None`` if the configuration does not have it."""
        section: Section | None = getattr(self, key) if key in type(self).model_fields else self.further.get(key)
        return section

    def judges_of(self, key: str) -> list[str]:
        """Names of the judges in a stage's section; empty if the configuration has no such section."""
        section: Any = self.section(key)
        if section is None:
            return []
        names = section.judges if hasattr(section, "judges") else section.judge
        names = names() if callable(names) else names
        return [names] if isinstance(names, str) else names


def stage_of(key: str) -> ListedStage | None:
    """Find the stage whose section has this key; ``None`` if there is none. Used while a configuration is checked."""
    try:
        return find_stage(str(key))
    except InputError as error:
        raise mistake(str(error), str(key)) from error


class StoredAgent(Section):
    """An agent that runs ask for answers, as stored with the tournament."""

    name: str
    identity: str = ""
    """Hash of everything that affects the agent's replies, except the query."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The agent's settings, see ``AgentSettings``; settings with their default value are left out."""
    notes: tuple[str, ...] = ()
    """Remarks on the agent that are shown with the results."""
    told_id: bool = False
    """Whether the agent receives the query's id, so that queries with the same text need separate replies."""


class StoredRetrieval(RetrievalSection):
    """The section ``retrieval`` as stored with a tournament."""

    measures: list[str] | None = None
    """Names of the retrieval measures; the default measures if the section names none."""
    scale: dict[str, int] = Field(default_factory=dict)
    """The number of each relevance label, by the word for it in the judges' replies."""


class StoredExam(ExamSection):
    """The section ``exam`` as stored with a tournament; ``bank`` is a digest of the file instead of its path."""

    prompts: dict[str, str] = Field(default_factory=dict)
    """Name and version of each prompt (``NAME@VERSION``), by what the prompt is for, such as grading."""
    content: dict[str, Any] | None = None
    """The test bank read from the file, without the texts of secret items."""


class StoredCard(CardSection):
    """The section ``card`` as stored with a tournament."""

    cards: list[dict[str, str]] | None = None
    """The judge cards in the file ``required``; empty if it does not exist, ``None`` if no card is required."""


class StoredSettings(TournamentSettings):
    """A tournament's settings as a run stores them, with facts that it adds, such as digests of prompts."""

    retrieval: StoredRetrieval | None = None
    exam: StoredExam | None = None
    card: StoredCard | None = None
    prompts: dict[str, str] = Field(default_factory=dict)
    """Digest of each prompt's content, by the prompt's name."""
    families: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Under ``judges``, each judge's model family; under ``agents``, the family that wrote each agent's answers."""
    agents: tuple[StoredAgent, ...] = ()
    """The agents that runs ask for answers."""
    left_out: int = 0
    """Number of queries in the files that are not used because of ``data.limit``."""
    source: str = ""
    """Where imported verdicts come from; empty if runs made the verdicts."""
    synth: dict[str, Any] | None = None
    """How queries were generated; only in a tournament that generates queries and judges nothing."""
    stages: dict[str, str] = Field(default_factory=dict)
    """For each stage that is not part of ragleague, by section: name and version of its package."""

    @model_validator(mode="before")
    @classmethod
    def _without_lost_sections(cls, content: Any) -> Any:
        """Remove the sections of stages that are not installed; code that needs a stage calls ``require_stages``."""
        if not isinstance(content, dict):
            return content
        lost = {key for key in content.get("stages") or () if find_stage(key) is None}
        return {key: value for key, value in content.items() if key not in lost}

    @property
    def raw(self) -> dict[str, Any]:
        """The settings as JSON, the way they are stored; values that were not set are left out."""
        further = {key: section.model_dump(mode="json", exclude_unset=True) for key, section in self.further.items()}
        return self.model_dump(mode="json", exclude_unset=True) | further

    def shown(self) -> dict[str, Any]:
        """The settings as JSON for display, without the test bank, which may contain secret items."""
        exam = None if self.exam is None else self.exam.model_dump(mode="json", exclude_unset=True)
        without = {key: value for key, value in (exam or {}).items() if key not in {"bank", "content"}}
        return self.raw | ({"exam": without} if exam else {})

    @property
    def imported(self) -> bool:
        return bool(self.source)

    @property
    def combinations(self) -> Mapping[str, Combine]:
        """How a judge's samples (several replies to the same prompt) are combined, by judge."""
        return {name: judge.combine for name, judge in self.judges.items()}

    @property
    def hosted(self) -> frozenset[str]:
        """Names of the judges whose models run on a provider's server; their replies contain the model's name."""
        return frozenset(name for name, judge in self.judges.items() if judge.hosted)

    def gives_probabilities(self, judge: str) -> bool:
        """Whether the judge's replies may contain a probability for each label."""
        return judge in self.judges and self.judges[judge].gives_probabilities

    def of_words(self, judge: str) -> bool:
        """Whether the judge only compares words, without a language model."""
        return judge in self.judges and self.judges[judge].provider == "lexical"

    @property
    def judges_of_words(self) -> tuple[str, ...]:
        """Names of the pairwise judges if all of them only compare words, without a language model; else empty."""
        names = self.game_judges or tuple(self.judges)
        return names if all(map(self.of_words, names)) else ()

    @property
    def depth(self) -> int | None:
        """Rank down to which retrieved documents are labelled; ``None`` for all ranks."""
        return None if self.retrieval is None else self.retrieval.depth

    @property
    def across_judges(self) -> Combine:
        """How the labels that several relevance judges give a document are combined."""
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
        """Whether the games to judge are chosen by the results of earlier games."""
        return self.pairwise is not None and self.pairwise.schedule.kind == "adaptive"
