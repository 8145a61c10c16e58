"""Audit stage: known cheats play games against the agents' answers, to test whether a judge falls for them.

These games are a separate task and affect no agent's rating: each cheat is compared with the agents' own ratings.
On each query all cheats play against the same agent, in both orders; the agents take turns over the queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field

from arena.calibration.cheats import CANARIES
from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.stages.base import RelevanceLabels, TournamentStage
from arena.store import IDENTICAL, Wanted
from judges.errors import ConfigError
from judges.prompts import load_prompt
from judges.prompts.tasks import PairwiseOptions, pairwise_prompt, references
from judges.sections import Section as ConfigSection
from judges.sections import as_list, each_once, nearest
from judges.types import Answer, Prompt, Task

AUDIT: Final = Task("audit")


def _known(names: list[str]) -> list[str]:
    if unknown := [name for name in names if name not in CANARIES]:
        raise ValueError(f"unknown cheat {unknown[0]!r}{nearest(unknown[0], CANARIES)}")
    return each_once(names)


class AuditSection(ConfigSection):
    """[Known cheats play](judge-card.md#cheats) against answers by the rules of ``pairwise``; they get no rating."""

    judge: Annotated[list[str], BeforeValidator(as_list), Field(min_length=1)]
    """The judge to test with cheats, or a list of judges."""
    canaries: Annotated[list[str], BeforeValidator(as_list), AfterValidator(_known), Field(min_length=1)] = [*CANARIES]
    """Names of the cheats that play, all by default."""


SECTION: Final = AuditSection


class AuditStage(TournamentStage):
    """Makes judges compare the answers of cheats with the answers of agents.

    In a ``Wanted``, ``item`` is the cheat and ``other`` the agent; order "ba" shows the agent's answer first.
    """

    key = "audit"

    def __init__(self, section: AuditSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        super().__init__(config, data, labels)
        if config.pairwise is None:
            raise ConfigError("audit: the cheats play by the rules of the section 'pairwise', which is missing; add it")
        self._section, self._rules = section, config.pairwise
        self.templates = {AUDIT: load_prompt(self._rules.prompt, Task.PAIRWISE)}
        self.waits_for_labels = labels.are_shown(self._rules.documents)
        self._options = PairwiseOptions(self._rules.documents.options(), self._rules.citations, self._rules.factors)
        self._opponents = _opponents(data)

    def first(self, query_id: str) -> Sequence[Wanted]:
        agent = self._opponents.get(query_id)
        return [
            Wanted(AUDIT, judge, query_id, canary, agent, order)
            for judge in self._section.judge
            for canary in self._section.canaries
            for order in ("ab", "ba")
            if agent is not None
        ]

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt for comparing a cheat with an agent's answer, as in a game, with the same documents."""
        documents = self.labels.shown_in_game(want.query_id, {want.other}, self._rules.documents)
        if documents is None:
            return None
        query, answers = self.data.queries[want.query_id], self._shown(want)
        if self._options.checks_citations:  # a cheat can only cite what its opponent cites
            shown = [entry.document.doc_id for entry in references(documents, self._options.references)]
            first, second = (self.data.renumbered(answer, shown, want.other) for answer in answers)
            answers = first, second
        return pairwise_prompt(self.templates[AUDIT], query, answers, documents, self._options)

    def _shown(self, want: Wanted) -> tuple[Answer, Answer]:
        other = self.data.answers[want.query_id, want.other]
        text = CANARIES[want.item](self.data.queries[want.query_id].text, other.text)
        canary = Answer(want.query_id, want.item, text)
        return (canary, other) if want.order == "ab" else (other, canary)

    def free(self, want: Wanted) -> str | None:
        first, second = self._shown(want)
        return IDENTICAL if first.text == second.text else None


def _opponents(data: Dataset) -> dict[str, str]:
    opponents: dict[str, str] = {}
    for number, query_id in enumerate(data.queries):
        if present := [agent for agent in data.agents if (query_id, agent) in data.answers]:
            opponents[query_id] = present[number % len(present)]
    return opponents
