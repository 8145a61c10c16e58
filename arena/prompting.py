"""From a tournament's configuration and data to what it wants judged, and to each want's prompt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

from arena.config.judging import ReferencesSection
from arena.config.whole import Config
from arena.data.controlled import check_ratings
from arena.data.dataset import SHARED, Dataset
from arena.stages.adaptive import AdaptiveGames
from arena.stages.base import Release, Releasing
from arena.stages.exam.stage import ExamWants
from arena.stages.nuggets.lists import nugget_prompts, read_bank
from arena.stages.nuggets.stage import NuggetStages
from arena.stages.schedule import Game, Schedule, answering, games
from arena.store import IDENTICAL, Result, Wanted
from judges.errors import RETRIED_NEXT_RUN, ConfigError
from judges.prompts import PromptTemplate, load_prompt
from judges.prompts.tasks import PairwiseOptions, criteria_prompt, pairwise_prompt, relevance_prompt
from judges.types import (
    EXAM_TASKS,
    NUGGET_TASKS,
    AnnotatedDocument,
    Answer,
    Judgment,
    Prompt,
    Retrieved,
    Task,
    label_of,
)

_WRITING = frozenset({Task.QUESTIONS, Task.EXTRACTION})

Labels = dict[tuple[str, str], Result | None]
"""By (query_id, doc_id): the relevance judgment, a failure, or ``None`` where nothing is known yet."""


@dataclass
class Prompting:
    """Knows all wants of a tournament and renders their prompts.

    Attributes:
        labels: the relevance results so far; answer judges are shown documents by them.
        assume_relevant: treat documents without a result as relevant and exam items that are not written as there,
            to estimate cost beforehand.
    """

    config: Config
    data: Dataset
    labels: Labels = field(default_factory=dict)
    assume_relevant: bool = False

    @cached_property
    def exam(self) -> ExamWants | None:
        """The exam stage, where the configuration has one.

        Raises:
            InputError: its bank cannot be used.
        """
        section = self.config.exam
        return ExamWants(section, self.data, self.assume_relevant) if section is not None else None

    def wants(self) -> Iterator[Wanted]:
        """All judgments the tournament needs, stage by stage; of an adaptive schedule as many as it may need.

        Of the exam those that wait for no other one; what nuggets need is known only as they come about (``nuggets``).
        """
        for task in self.tasks():
            yield from self._wants_of(task)

    def _wants_of(self, task: Task) -> Iterator[Wanted]:
        stages = {Task.RELEVANCE: self._relevance, Task.PAIRWISE: self._pairwise, Task.CRITERIA: self._criteria}
        if task in stages:
            return self._repeated(stages[task]())
        if task in NUGGET_TASKS:
            return iter(())
        assert self.exam is not None
        return self._repeated(self.exam.wants(task))

    def _repeated(self, wants: Iterable[Wanted]) -> Iterator[Wanted]:
        """Each want as often as its judge is asked; a text that it writes, once."""
        for want in wants:
            yield want
            if want.task in _WRITING:
                continue
            for sample in range(1, self.config.judges[want.judge].samples):
                yield replace(want, sample=sample)

    def tasks(self) -> list[Task]:
        """The stages that the configuration asks for, in the order they are done."""
        config = self.config
        sections = {Task.RELEVANCE: config.retrieval, Task.PAIRWISE: config.pairwise, Task.CRITERIA: config.criteria}
        tasks = [task for task, section in sections.items() if section is not None]
        exam = () if self.exam is None else self.exam.tasks()
        return [*tasks, *exam, *(() if self.nuggets is None else self.nuggets.tasks())]

    def expected(self, task: Task) -> int:
        """How many wants a stage comes to, those that others release among them; at most, where that depends."""
        return sum(1 for _ in replace(self, assume_relevant=True)._wants_of(task))

    def releases(self, task: Task) -> bool:
        """Whether a settled want of the task may release others."""
        stage = self._growing(task)
        return stage is not None and stage.releases(task)

    def released(self, want: Wanted, result: Result) -> Release:
        """What can be asked for now that a want is settled."""
        stage = self._growing(want.task)
        if stage is None:
            return Release()
        release = stage.released(want, result)
        return Release(list(self._repeated(release.wanted)), list(self._repeated(release.ready)))

    def _growing(self, task: Task) -> Releasing | None:
        """The stage of a task, if it is one whose wants come about step by step."""
        if task in EXAM_TASKS:
            return self.exam
        return self.nuggets if task in NUGGET_TASKS else None

    def begin_nuggets(self, query_id: str) -> Release:
        """What a query's nuggets want first, once its documents have labels, but for those of a later run."""
        if self.nuggets is None:
            return Release()
        labels = self.labels_of(query_id) if self.nuggets.reads_documents else {}
        return Release() if labels is None else self.nuggets.begin(query_id, self.ranked(query_id), labels)

    def _relevance(self) -> Iterator[Wanted]:
        section = self.config.retrieval
        assert section is not None
        for query_id in self.data.queries:
            for doc_id in self._pool(query_id, None):
                for judge in section.judge:
                    yield Wanted(Task.RELEVANCE, judge, query_id, doc_id)

    def _pairwise(self) -> Iterator[Wanted]:
        section = self.config.pairwise
        assert section is not None
        plan = section.schedule
        if plan.kind == "adaptive":
            yield from self._once(AdaptiveGames(section, self.data).at_most())
            return
        schedule = Schedule(plan.kind, plan.games_per_query, plan.baseline, section.both_orders, plan.seed)
        yield from self._once(games(schedule, self._answering))

    def adaptive_games(self) -> AdaptiveGames | None:
        """The schedule that chooses games as verdicts come in, where the configuration asks for one."""
        section = self.config.pairwise
        adaptive = section is not None and section.schedule.kind == "adaptive"
        return AdaptiveGames(section, self.data) if section is not None and adaptive else None

    def game_wants(self, chosen: Iterable[Game]) -> Iterator[Wanted]:
        """Each game for every answer judge, as often as that one is asked."""
        return self._repeated(self._once(chosen))

    def _once(self, chosen: Iterable[Game]) -> Iterator[Wanted]:
        section = self.config.pairwise
        assert section is not None
        for game in chosen:
            order = "ba" if game.swapped else "ab"
            for judge in section.judges:
                yield Wanted(Task.PAIRWISE, judge, game.query_id, game.agent_a, game.agent_b, order)

    def _criteria(self) -> Iterator[Wanted]:
        section = self.config.criteria
        assert section is not None
        for query_id, agents in self._answering.items():
            for agent in agents:
                yield Wanted(Task.CRITERIA, section.judge, query_id, agent)

    @cached_property
    def _answering(self) -> dict[str, list[str]]:
        return answering(self.data)

    def check(self) -> None:
        """Render one prompt of each stage, so that a template that fails does so before anything is sent.

        Raises:
            PromptError: a prompt file cannot be used.
            ConfigError: no label of the relevance prompt reaches the threshold of an answer judge's documents, or the
                games cannot be rated as ``ratings`` asks for.
        """
        self._check_thresholds()
        check_ratings(self.config, self.data, () if self.config.pairwise is None else self._pairwise())
        trial = copy(self)  # with what is loaded already
        trial.assume_relevant = True
        for task in self.tasks():
            for want in islice(trial._wants_of(task), 1):
                trial.prompt(want)
        if self.nuggets is not None:
            self.nuggets.check()

    def _check_thresholds(self) -> None:
        """An answer judge whose threshold no label can reach would be shown no document, and nobody would notice."""
        if self.config.retrieval is None:
            return
        template = self.templates[Task.RELEVANCE]
        highest = template.reply.highest_label()
        for name, section in (("pairwise", self.config.pairwise), ("criteria", self.config.criteria)):
            if section is not None and section.documents.include and section.documents.threshold > highest:
                raise ConfigError(
                    f"{name}.documents.threshold: {section.documents.threshold} is above {highest}, the highest label "
                    f"of the relevance prompt {template.name!r}"
                )

    @cached_property
    def templates(self) -> dict[Task, PromptTemplate]:
        """The prompt file of each stage but the exam's.

        Raises:
            PromptError: a file cannot be used.
        """
        config = self.config
        sections = {Task.RELEVANCE: config.retrieval, Task.PAIRWISE: config.pairwise, Task.CRITERIA: config.criteria}
        named = {task: section.prompt for task, section in sections.items() if section is not None}
        if config.nuggets is not None:
            named |= nugget_prompts(config.nuggets)
        return {task: load_prompt(name, task) for task, name in named.items()}

    @cached_property
    def nuggets(self) -> NuggetStages | None:
        """What nuggets want, where the configuration asks for them.

        Raises:
            InputError: a prompt file or the bank cannot be used.
        """
        section = self.config.nuggets
        if section is None:
            return None
        return NuggetStages(section, self.data, self.templates, read_bank(section, self.data))

    def typical_tokens(self, want: Wanted) -> int:
        """Length of a usual reply to a want."""
        if want.task in EXAM_TASKS:
            assert self.exam is not None
            return self.exam.typical_tokens(want)
        return self.templates[want.task].reply.typical_tokens

    def needs_labels(self, task: Task) -> bool:
        """Whether a stage's prompts show documents with their relevance labels."""
        sections = {Task.PAIRWISE: self.config.pairwise, Task.CRITERIA: self.config.criteria}
        section = sections.get(task)
        return self.config.retrieval is not None and section is not None and section.documents.include

    def shown(self, want: Wanted) -> tuple[Answer, Answer]:
        """The two answers of a game in the order shown."""
        first, second = (want.item, want.other) if want.order == "ab" else (want.other, want.item)
        return self.data.answers[want.query_id, first], self.data.answers[want.query_id, second]

    def equal_answers(self, want: Wanted) -> bool:
        """Whether a game is between two answers of the same text, which is a tie without a call."""
        first, second = self.shown(want)
        return first.text == second.text

    def without_call(self, want: Wanted) -> str | None:
        """The judgment of every game between equal answers, and those that nuggets have without a call."""
        if want.task in NUGGET_TASKS and self.nuggets is not None:
            return self.nuggets.without_call(want)
        return IDENTICAL if want.task is Task.PAIRWISE and self.equal_answers(want) else None

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt of one want; ``None`` while documents it needs have no relevance result yet."""
        prompt = self._rendered(want)
        return replace(prompt, sample=want.sample) if prompt is not None and want.sample else prompt

    def _rendered(self, want: Wanted) -> Prompt | None:
        if want.task in EXAM_TASKS:
            assert self.exam is not None
            return self.exam.prompt(want)
        if want.task in NUGGET_TASKS and self.nuggets is not None:
            return self.nuggets.prompt(want)
        query, template = self.data.queries[want.query_id], self.templates[want.task]
        if want.task is Task.RELEVANCE:
            return relevance_prompt(template, query, self.data.documents[want.item])
        if want.task is Task.PAIRWISE:
            return self._pairwise_prompt(want, template)
        return self._criteria_prompt(want, template)

    def _pairwise_prompt(self, want: Wanted, template: PromptTemplate) -> Prompt | None:
        section = self.config.pairwise
        assert section is not None
        documents = self._documents(want.query_id, {want.item, want.other}, section.documents)
        if documents is None:
            return None
        options = PairwiseOptions(section.documents.options(), section.citations, section.factors)
        return pairwise_prompt(template, self.data.queries[want.query_id], self.shown(want), documents, options)

    def _criteria_prompt(self, want: Wanted, template: PromptTemplate) -> Prompt | None:
        section = self.config.criteria
        assert section is not None
        documents = self._documents(want.query_id, None, section.documents)
        if documents is None:
            return None
        return criteria_prompt(
            template,
            self.data.queries[want.query_id],
            self.data.answers[want.query_id, want.item],
            documents,
            criteria=section.listed(),
            scale=section.scale,
            options=section.documents.options(),
        )

    def _documents(
        self, query_id: str, agents: Collection[str] | None, section: ReferencesSection
    ) -> list[AnnotatedDocument] | None:
        """The pool with labels; a failed document is left out. ``None`` while one is not judged yet."""
        if not section.include:
            return []
        pool = [self.data.documents[doc_id] for doc_id in self._pool(query_id, agents)]
        if self.config.retrieval is None:
            return [AnnotatedDocument(document) for document in pool]
        annotated = []
        for document in pool:
            result = self.labels.get((query_id, document.doc_id))
            if isinstance(result, Judgment):
                annotated.append(AnnotatedDocument(document, label_of(result.outcome), result.reason))
            elif result is None or result.cause in RETRIED_NEXT_RUN:
                if not self.assume_relevant:
                    return None
                annotated.append(AnnotatedDocument(document, section.threshold))
        return annotated

    def labels_of(self, query_id: str) -> dict[str, int] | None:
        """Labels by document, without those that failed; ``None`` while one may still come."""
        if self.config.retrieval is None:
            return {}
        labels = {}
        for doc_id in self._pool(query_id, None):
            result = self.labels.get((query_id, doc_id))
            if isinstance(result, Judgment):
                labels[doc_id] = label_of(result.outcome)
            elif result is None or result.cause in RETRIED_NEXT_RUN:
                return None
        return labels

    def ranked(self, query_id: str) -> list[str]:
        """The query's documents down to the depth, by the best rank that an agent retrieved them at."""
        best: dict[str, int] = {}
        for entry in self._retrieved(query_id):
            best[entry.doc_id] = min(entry.rank, best.get(entry.doc_id, entry.rank))
        return sorted(best, key=lambda doc_id: (best[doc_id], doc_id))

    def _pool(self, query_id: str, agents: Collection[str] | None) -> list[str]:
        """Ids of the documents that these agents (all when ``None``) retrieved down to the depth, each once."""
        return sorted(
            {
                entry.doc_id
                for entry in self._retrieved(query_id)
                if agents is None or entry.agent == SHARED or entry.agent in agents
            }
        )

    def _retrieved(self, query_id: str) -> list[Retrieved]:
        """What agents retrieved down to the depth of ``retrieval``; other stages may look further."""
        depth = self.config.retrieval.depth if self.config.retrieval else None
        entries = self.data.retrieved.get(query_id, ())
        return [entry for entry in entries if depth is None or entry.rank <= depth]
