"""Audit stage: tests whether a judge falls for known cheats, and whether its judgments hang on the prompt's wording.

These judgments are tasks of their own and affect no agent's rating. On each query all cheats play against the same
agent, in both orders; the agents take turns over the queries. A random sample of what is judged is judged again by
other wordings of its prompt.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Annotated, Final

from msgspec.structs import replace
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from arena.calibration.cheats import CANARIES
from arena.config.schema import Config
from arena.config.stages import WORDINGS
from arena.data.dataset import Dataset
from arena.present.numbers import counted
from arena.stages.base import RelevanceLabels, TournamentStage
from arena.store import IDENTICAL, Wanted
from judges.errors import ConfigError
from judges.prompts import PromptTemplate, load_prompt
from judges.prompts.tasks import PairwiseOptions, pairwise_prompt, references
from judges.sections import Count, Seed, as_list, each_once, nearest
from judges.sections import Section as ConfigSection
from judges.types import Answer, Prompt, Task

AUDIT: Final = Task("audit")


def _known(names: list[str]) -> list[str]:
    if unknown := [name for name in names if name not in CANARIES]:
        raise ValueError(f"unknown cheat {unknown[0]!r}{nearest(unknown[0], CANARIES)}")
    return each_once(names)


class AuditSection(ConfigSection):
    """[Known cheats](judge-card.md#cheats) play; prompts are tried in [other words](judge-card.md#other-wordings)."""

    judge: Annotated[list[str], BeforeValidator(as_list)] = []
    """The judge to test with cheats, or a list of judges; without one, no cheat plays."""
    canaries: Annotated[list[str], BeforeValidator(as_list), AfterValidator(_known), Field(min_length=1)] = [*CANARIES]
    """Names of the cheats that play, all by default."""
    wordings: Annotated[int, Field(ge=1, le=3)] = 1
    """Number of wordings of each deciding prompt by which a sample is judged, the usual one included."""
    sample: Count = 100
    """How many judgments of each task and judge are made again by each further wording, drawn over the queries."""
    seed: Seed = 0
    """Random seed for drawing this sample."""

    @model_validator(mode="after")
    def _asks_something(self) -> AuditSection:
        if not self.judge and self.wordings == 1:
            raise ValueError("name a 'judge' to test with cheats, or 2 or 3 'wordings' to test prompts with")
        return self


SECTION: Final = AuditSection


class AuditStage(TournamentStage):
    """Makes judges compare answers of cheats with answers of agents, and judge again by other wordings.

    In a ``Wanted`` of the task ``audit``, ``item`` is the cheat and ``other`` the agent; order "ba" shows the agent's
    answer first. One of a task in ``WORDINGS`` is otherwise equal to the judgment that is made again.
    """

    key = "audit"

    def __init__(self, section: AuditSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        super().__init__(config, data, labels)
        self._section = section
        self.templates: dict[str, PromptTemplate] = {}
        self._worded: dict[Task, TournamentStage] = {}
        self._drawn: defaultdict[tuple[Task, str, str, str], dict[Wanted, None]] = defaultdict(dict)
        self._opponents: dict[str, str] = {}
        if section.judge:
            if config.pairwise is None:
                raise ConfigError(
                    "audit: the cheats play by the rules of the section 'pairwise', which is missing; add it"
                )
            self._rules = config.pairwise
            self.templates[AUDIT] = load_prompt(self._rules.prompt, Task.PAIRWISE)
            self.waits_for_labels = labels.are_shown(self._rules.documents)
            self._options = PairwiseOptions(self._rules.documents.options(), self._rules.citations, self._rules.factors)
            self._opponents = _opponents(data)

    @property
    def tasks(self) -> list[Task]:
        return [*([AUDIT] if self._section.judge else []), *self._worded]

    def join(self, stages: Sequence[TournamentStage]) -> None:
        """Find the prompts of the other stages that have enough wordings."""
        for again, (task, number) in WORDINGS.items():
            for stage in stages if number <= self._section.wordings else ():
                worded = {
                    name: template.worded(number)
                    for name, template in stage.templates.items()
                    if template.task is task and number <= 1 + len(template.wordings)
                }
                if worded and task in stage.tasks:
                    self._worded[again] = copy(stage)  # it shares what the stage knows, such as its nuggets
                    self._worded[again].templates = {**stage.templates, **worded}
                    self.templates |= {f"{name} wording {number}": template for name, template in worded.items()}
        if self._section.wordings > 1 and not self._worded:
            raise ConfigError(
                "audit.wordings: no stage has a prompt with further wordings; use packaged prompts, or add 'wordings' "
                "to your prompt's file"
            )

    def also(self, wants: Sequence[Wanted], cause: Wanted | None) -> list[Wanted]:
        """The judgments of the sample among ``wants``, by each further wording."""
        groups: defaultdict[tuple[Task, str, str, str], list[Wanted]] = defaultdict(list)
        audited = {WORDINGS[again][0] for again in self._worded}
        facet = cause.item if cause is not None and cause.task is Task.QUESTIONS else ""
        for want in wants if audited else ():
            if want.task in audited:
                groups[want.task, want.judge, want.query_id, facet].append(want)
        chosen = [want for group, members in groups.items() for want in self._draw(group, members)]
        return [
            replace(want, task=again) for again in self._worded for want in chosen if want.task is WORDINGS[again][0]
        ]

    def _draw(self, group: tuple[Task, str, str, str], wants: Sequence[Wanted]) -> list[Wanted]:
        """The sample of a query's judgments, both orders of a game side by side; the same each time for the same ones.

        Judgments that need no call are not drawn: another wording cannot change them.
        """
        drawn, size = self._drawn[group], self._sizes[group[2]]
        for want in sorted(wants, key=self._place) if size else ():
            if len(drawn) == size:
                break
            if self._stage_of(want).free(want) is None:
                drawn[want] = None
        return [want for want in wants if want in drawn]

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """Number of judgments to draw on each query, for each task and judge."""
        queries = sorted(self.data.queries, key=self._rank)
        whole, rest = divmod(self._section.sample, max(1, len(queries)))
        return {query_id: whole + (place < rest) for place, query_id in enumerate(queries)}

    def _place(self, want: Wanted) -> tuple[str, str]:
        return self._rank(want.query_id, want.item, want.other), want.order

    def _rank(self, *names: str) -> str:
        return hashlib.sha256("\0".join([str(self._section.seed), *names]).encode("utf-8", "replace")).hexdigest()

    def _stage_of(self, want: Wanted) -> TournamentStage:
        return next(stage for again, stage in self._worded.items() if WORDINGS[again][0] is want.task)

    def first(self, query_id: str) -> Sequence[Wanted]:
        agent = self._opponents.get(query_id)
        return [
            Wanted(AUDIT, judge, query_id, canary, agent, order)
            for judge in self._section.judge
            for canary in self._section.canaries
            for order in ("ab", "ba")
            if agent is not None
        ]

    def typical_tokens(self, want: Wanted) -> int:
        if want.task is AUDIT:
            return super().typical_tokens(want)
        return self._worded[want.task].typical_tokens(replace(want, task=WORDINGS[want.task][0]))

    def assumptions(self) -> Iterator[str]:
        if self._worded:
            yield (
                f"audit: {self._section.sample} judgments of each task and judge, or all if there are fewer, are made "
                f"again by {counted(self._section.wordings - 1, 'further wording')}"
            )

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt in other words; or the one that compares a cheat with an agent's answer, as in a game."""
        if want.task is not AUDIT:
            return self._worded[want.task].prompt(replace(want, task=WORDINGS[want.task][0]))
        documents = self.labels.shown_in_game(want.query_id, {want.other}, self._rules.documents)
        if documents is None:
            return None
        query, answers = self.data.queries[want.query_id], self._shown(want)
        if self._options.checks_citations:  # a cheat can only cite what its opponent cites
            shown = [entry.document.doc_id for entry in references(documents, self._options.references)]
            first, second = (self.data.renumbered(answer, shown, want.other) for answer in answers)
            answers = first, second
        return pairwise_prompt(self.templates[AUDIT], query, answers, documents, self._options)

    def shares(self, want: Wanted) -> bool:
        """Of judgments in other words only a sample is made, which rarely has two that begin alike."""
        return want.task is AUDIT

    def _shown(self, want: Wanted) -> tuple[Answer, Answer]:
        other = self.data.answers[want.query_id, want.other]
        text = CANARIES[want.item](self.data.queries[want.query_id].text, other.text)
        canary = Answer(want.query_id, want.item, text)
        return (canary, other) if want.order == "ab" else (other, canary)

    def free(self, want: Wanted) -> str | None:
        if want.task is not AUDIT:
            return None
        first, second = self._shown(want)
        return IDENTICAL if first.text == second.text else None


def _opponents(data: Dataset) -> dict[str, str]:
    opponents: dict[str, str] = {}
    for number, query_id in enumerate(data.queries):
        if present := [agent for agent in data.agents if (query_id, agent) in data.answers]:
            opponents[query_id] = present[number % len(present)]
    return opponents
