"""What people are asked, whatever its form: to compare two answers, label a document, grade an answer, find nuggets.

Each person goes through a queue of their own. They see texts, and neither whose these are nor what a judge or another
person said. What they say holds for the texts that they saw: where one has changed since, they are asked anew.

A ``Pool`` holds what can be asked, with a random number for each thing, and is made once for all people. A person's
``Queue`` is the order in which they go through it, numbers of rows and no text; ``Progress`` is how far they are.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property, partial
from typing import Any, Final, TypeAlias, overload

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.config.settings import StoredSettings
from arena.data.dataset import Dataset
from arena.results.annotations import texts_now
from arena.stages.support import SupportSubject
from arena.store.annotations import Annotation, Kind, texts_digest
from judges.prompts import load_prompt
from judges.prompts.tasks import Criterion
from judges.types import Answer, Query, Task
from retrieval_eval.nuggets.types import Nugget, NuggetBank

Banks: TypeAlias = Mapping[str, NuggetBank]
GameNames: TypeAlias = tuple[str, str, str]
"""A query and two agents, in the order of their names."""
_Key: TypeAlias = tuple[Kind, str, str, str]
_Numbers: TypeAlias = NDArray[np.uint64]
_Rows: TypeAlias = NDArray[np.int32]


class TaskState(Enum):
    """How far somebody is with a task; one that was skipped can be taken up again."""

    OPEN = "open"
    DONE = "done"
    SKIPPED = "skipped"


class AnnotationTask(Struct, frozen=True, dict=True):
    """One thing that a person is asked about.

    Attributes:
        kind: of what they say.
        names: whose texts these are, not for the annotator's eyes: the document, or all agents who gave the answer; of
            a game the agent whose answer is shown first.
        texts: that are read besides the query: a document, an answer, or both answers in the order shown.
        parts: what gets a value each, as ``Annotation.other`` holds it: the query's nuggets, by id; the other agent of
            a game; else the empty string alone.
        part_texts: the texts of the parts, where they have any.
        values: what the annotator said, one per part; ``None`` where they did not.
        seen: whether they said or skipped any part of it.
    """

    kind: Kind
    query_id: str
    query: Query
    names: tuple[str, ...]
    texts: tuple[str, ...]
    parts: tuple[str, ...] = ("",)
    part_texts: tuple[str, ...] = ()
    values: tuple[Any, ...] = (None,)
    seen: bool = False

    @property
    def state(self) -> TaskState:
        """How far the annotator is; with some of its values a task is open."""
        if None not in self.values:
            return TaskState.DONE
        return TaskState.SKIPPED if self.seen and all(value is None for value in self.values) else TaskState.OPEN

    @property
    def value(self) -> Any:
        """What was said where the task has one part."""
        (only,) = self.values
        return only

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """``texts_digest`` of what is read for each part."""
        if self.kind is not Kind.NUGGET:
            return (texts_digest(self.query.thread, *self.texts),)
        return tuple(texts_digest(self.query.thread, *self.texts, text) for text in self.part_texts)

    @cached_property
    def task_id(self) -> str:
        """Twelve hexadecimal digits for what is read; other texts are another task."""
        return texts_digest(self.query_id, *self.names, *self.digests)[:12]

    def annotations(
        self, annotator: str, values: Sequence[Any] | None = None, seconds: float | None = None
    ) -> list[Annotation]:
        """What a person said, the same for everybody who gave this text.

        Args:
            annotator: who they are.
            values: one per part; ``None`` where they skip the task.
            seconds: how long they took; kept in equal parts.
        """
        share = None if seconds is None or values is None else round(seconds / len(self.parts), 2)
        chosen = [None] * len(self.parts) if values is None else values
        return [
            Annotation(self.kind, annotator, self.query_id, name, part, texts, value, share)
            for part, texts, value in zip(self.parts, self.digests, chosen, strict=True)
            for name in self.names
        ]


class TaskPool(Struct, frozen=True, eq=False, dict=True):
    """All tasks of one kind that people can be given.

    Rows are put in order by random numbers. A row's number depends only on the person's name and on the names in the
    row, so new rows do not change the order of the others.

    Attributes:
        queries: the query of each row.
        numbers: random ones of each row, by which rows are ordered, shape (levels, rows); the first level decides.
        shared: whether a row has the same number for all people, shape (rows,).
        one_a_query: whether each person is asked about one row of each query, the first in their order.
        make: a task, of a row and the annotator.
        with_said: tasks of one person with what they say of them: ``with_values`` or ``with_votes``.
    """

    queries: Sequence[str]
    numbers: _Numbers
    shared: NDArray[np.bool_]
    one_a_query: bool
    make: Callable[[int, str], AnnotationTask]
    with_said: Callable[[Iterable[AnnotationTask], Iterable[Annotation]], list[AnnotationTask]]

    def queue(self, annotator: str) -> TaskQueue:
        """The tasks of one person, in their order."""
        whose = np.where(self.shared, _EVERYBODY, np.uint64(_number(annotator)))
        drawn = _mixed(self.numbers ^ whose)
        order = np.lexsort(drawn[::-1])
        if self.one_a_query:
            _, first = np.unique(self._query[order], return_index=True)
            order = order[np.sort(first)]
        return TaskQueue(self, annotator, order.astype(np.int32))

    @cached_property
    def _query(self) -> NDArray[np.int32]:
        """The number of each row's query."""
        return np.array([self.query_numbers[query_id] for query_id in self.queries], np.int32)

    @cached_property
    def query_numbers(self) -> dict[str, int]:
        """A number for each query."""
        return {query_id: number for number, query_id in enumerate(dict.fromkeys(self.queries))}

    def of_queries(self, rows: _Rows, query_ids: Collection[str]) -> list[int]:
        """Places in ``rows``, ascending, of what is on these queries."""
        known = [self.query_numbers[query_id] for query_id in query_ids if query_id in self.query_numbers]
        return [int(place) for place in np.flatnonzero(np.isin(self._query[rows], known))]


class TaskQueue(Sequence[AnnotationTask]):
    """The tasks of one person, each made when it is looked at, without what the person says of it."""

    def __init__(self, pool: TaskPool, annotator: str, rows: _Rows) -> None:
        self.pool, self._annotator, self._rows = pool, annotator, rows

    def __len__(self) -> int:
        return self._rows.size

    @overload
    def __getitem__(self, place: int) -> AnnotationTask: ...
    @overload
    def __getitem__(self, place: slice) -> list[AnnotationTask]: ...
    def __getitem__(self, place: int | slice) -> AnnotationTask | list[AnnotationTask]:
        if isinstance(place, slice):
            return [self.pool.make(int(row), self._annotator) for row in self._rows[place]]
        return self.pool.make(int(self._rows[place]), self._annotator)

    def of_queries(self, query_ids: Collection[str]) -> dict[int, AnnotationTask]:
        """The tasks on some queries by their places, ascending."""
        return {place: self[place] for place in self.pool.of_queries(self._rows, query_ids)}


class TaskProgress:
    """How far one person is with their queue, as far as it was told what they said."""

    def __init__(self, queue: TaskQueue) -> None:
        self.queue = queue
        self._said: dict[tuple[str, ...], Annotation] = {}
        self._begun: dict[int, AnnotationTask] = {}

    def add(self, news: Sequence[Annotation]) -> None:
        """Take note of what the person said after what is known, oldest first."""
        for one in news:
            thing = one.query_id, one.item, one.other, one.texts
            self._said.pop(thing, None)
            self._said[thing] = one
        queries = {one.query_id for one in news}
        if begun := self.queue.of_queries(queries):
            mine = [one for one in self._said.values() if one.query_id in queries]
            now = self.queue.pool.with_said(begun.values(), mine)
            known = self._begun | dict(zip(begun, now, strict=True))
            self._begun = {place: known[place] for place in sorted(known)}

    @property
    def said(self) -> list[Annotation]:
        """What the person says now, oldest first."""
        return [*self._said.values()]

    def of(self, state: TaskState) -> list[AnnotationTask]:
        """What is done, or skipped, in the order of the queue."""
        return [task for task in self._begun.values() if task.state is state]

    def find(self, task_id: str) -> AnnotationTask | None:
        """A task on a query of which something was said."""
        return next((task for task in self._begun.values() if task.task_id == task_id), None)

    def next(self) -> AnnotationTask | None:
        """The first open task."""
        places = range(len(self.queue))
        return next((one for at in places if (one := self._at(at)).state is TaskState.OPEN), None)

    def before(self, aside: Collection[str]) -> AnnotationTask | None:
        """The task that the person did last, those with these ids aside."""
        for one in reversed(self._said.values()):
            for task in self._begun.values():
                if task.query_id == one.query_id and one.texts in task.digests and task.task_id not in aside:
                    return task
        return None

    def _at(self, place: int) -> AnnotationTask:
        return self._begun.get(place) or self.queue[place]


def games(played: Iterable[GameNames], data: Dataset) -> TaskPool:
    """Pairs of answers to vote on: of every query the first game that is drawn for a person.

    One game of each query, so that no earlier pair tells them what there is to say. Games come in random order,
    whatever the judges made of them: estimates that correct a judge by people's labels take a random sample. Games of
    answers whose texts are not known are left out.
    """
    known = {key for key, answer in data.answers.items() if answer.has_text}
    rows = [game for game in played if {(game[0], game[1]), (game[0], game[2])} <= known]

    def make(row: int, annotator: str) -> AnnotationTask:  # either answer is shown first, with the same chance
        query_id, a, b = rows[row]
        is_first = _number(annotator, "side", query_id, a, b) % 2
        return _game_task(data, query_id, *((a, b) if is_first else (b, a)))

    return TaskPool([game[0] for game in rows], *_drawn(rows, shared_by=1), True, make, partial(with_votes, data=data))


def _game_task(data: Dataset, query_id: str, first: str, second: str) -> AnnotationTask:
    texts = data.answers[query_id, first].text, data.answers[query_id, second].text
    return AnnotationTask(Kind.VERDICT, query_id, data.queries[query_id], (first,), texts, (second,))


def documents(labelled: Iterable[tuple[str, str]], data: Dataset) -> TaskPool:
    """Documents to label; ``labelled`` are query and document of judges' labels."""
    rows = list(labelled)

    def make(row: int, _annotator: str) -> AnnotationTask:
        query_id, doc_id = rows[row]
        texts = (data.documents[doc_id].text,)
        return AnnotationTask(Kind.RELEVANCE, query_id, data.queries[query_id], (doc_id,), texts)

    return TaskPool([query_id for query_id, _ in rows], *_drawn(rows), False, make, with_values)


def answers(graded: Iterable[tuple[str, str]], data: Dataset) -> TaskPool:
    """Answers to grade; ``graded`` are query and agent of judges' grades."""
    by_text = _by_text(data.answers[key] for key in graded)
    rows = list(by_text)

    def make(row: int, _annotator: str) -> AnnotationTask:
        query_id, text = rows[row]
        return AnnotationTask(Kind.CRITERIA, query_id, data.queries[query_id], by_text[query_id, text], (text,))

    return TaskPool([query_id for query_id, _ in rows], *_drawn(rows), False, make, with_values)


def nuggets(banks: Banks, answers: Iterable[Answer]) -> TaskPool:
    """Answers to hold against the nuggets of their queries, query by query.

    An empty answer states nothing, and nobody need read it.
    """
    by_text = _by_text(
        answer
        for answer in answers
        if answer.query_id in banks and answer.text.strip() and banks[answer.query_id].nuggets
    )
    rows = list(by_text)

    def make(row: int, _annotator: str) -> AnnotationTask:
        query_id, text = rows[row]
        return nugget_task(banks[query_id], text, by_text[query_id, text])

    queries = [query_id for query_id, _ in rows]
    numbers = np.stack([_numbers([(query_id,) for query_id in queries]), _numbers(rows)])
    return TaskPool(queries, numbers, np.zeros(len(rows), np.bool_), False, make, with_values)


def nugget_task(
    bank: NuggetBank, answer: str, agents: tuple[str, ...], chosen: Collection[Nugget] | None = None
) -> AnnotationTask:
    """One answer against nuggets of its query; all of them where none are chosen."""
    chosen = bank.nuggets if chosen is None else chosen
    ids, texts = tuple(nugget.nugget_id for nugget in chosen), tuple(nugget.text for nugget in chosen)
    unknown, query = (None,) * len(ids), Query(bank.query_id, bank.query)
    return AnnotationTask(Kind.NUGGET, bank.query_id, query, agents, (answer,), ids, texts, unknown)


def citations(checked: Iterable[SupportSubject], data: Dataset) -> TaskPool:
    """Sentences to hold against what they cite; judges ``checked`` them."""
    sentences = data.sentences
    rows = [one for one in checked if one.place < len(sentences.get((one.query_id, one.agent)) or ())]

    def make(row: int, _annotator: str) -> AnnotationTask:
        query_id, agent, place, doc_id = subject = rows[row]
        said = sentences[query_id, agent]
        assert said is not None
        texts = said[place].text, data.documents[doc_id].text
        return AnnotationTask(Kind.SUPPORT, query_id, data.queries[query_id], (agent,), texts, (subject.other,))

    return TaskPool(
        [one.query_id for one in rows], *_drawn([tuple(map(str, one)) for one in rows]), False, make, with_values
    )


def with_votes(tasks: Iterable[AnnotationTask], said: Iterable[Annotation], data: Dataset) -> list[AnnotationTask]:
    """Games with what one person said of them; a query on which they voted keeps the pair that they saw.

    Where one of its answers has changed since, the query is asked anew.
    """
    voted = {one.query_id: one for one in said if one.kind is Kind.VERDICT and texts_now(one, data, {}) == one.texts}
    asked = (
        _game_task(data, task.query_id, own.item, own.other) if (own := voted.get(task.query_id)) else task
        for task in tasks
    )
    return with_values(asked, voted.values())


def with_values(tasks: Iterable[AnnotationTask], said: Iterable[Annotation]) -> list[AnnotationTask]:
    """The tasks with what one person said of them.

    A label of an answer holds for the same text of another agent too, also one that joined later.
    """
    known: defaultdict[_Key, dict[str, Any]] = defaultdict(dict)
    for one in said:
        known[one.kind, one.query_id, one.other, one.texts][one.item] = one.value
    queries = {query_id for _, query_id, *_ in known}
    return [_with_values(task, known) if task.query_id in queries else task for task in tasks]


def _with_values(task: AnnotationTask, known: Mapping[_Key, Mapping[str, Any]]) -> AnnotationTask:
    values, seen = [], False
    for part, texts in zip(task.parts, task.digests, strict=True):
        by_name = known.get((task.kind, task.query_id, part, texts), {})
        of_task = [by_name[name] for name in task.names if name in by_name]
        if task.kind is Kind.NUGGET:
            of_task = of_task or list(by_name.values())
        seen = seen or bool(of_task)
        values.append(next((value for value in of_task if value is not None), None))
    return replace(task, values=tuple(values), seen=seen)


def _by_text(answers: Iterable[Answer]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Agents by query and text of their answer: answers of one text are read once."""
    agents: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for answer in answers:
        agents[answer.query_id, answer.text].append(answer.agent)
    return {key: tuple(sorted(names)) for key, names in agents.items()}


def _drawn(rows: Sequence[tuple[str, ...]], shared_by: int | None = None) -> tuple[_Numbers, NDArray[np.bool_]]:
    """A random number for each row, by its names, and whether it is the same for all people.

    That holds for about half of the rows, or, by so many of the names, for all or none that have these in common. What
    several people are asked shows how far they agree among themselves; what each is asked alone gives more things a
    label.
    """
    numbers = _numbers(rows)
    common = numbers if shared_by is None else _numbers([names[:shared_by] for names in rows])
    shared = _mixed(common ^ np.uint64(_number("shared"))) % np.uint64(2) == 1
    return numbers[None], shared


def _numbers(rows: Sequence[tuple[str, ...]]) -> _Numbers:
    """A random number for the names of each row; each name is hashed once."""
    found = np.zeros(len(rows), np.uint64)
    for column in zip(*rows, strict=True):
        known = {name: _number(name) for name in set(column)}
        found = _mixed(found ^ np.array([known[name] for name in column], np.uint64))
    return found


def _mixed(numbers: _Numbers) -> _Numbers:
    """Numbers that are random for whoever does not know these: a step of splitmix64 (Steele, Lea and Flood 2014)."""
    found = numbers + np.uint64(0x9E3779B97F4A7C15)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return found ^ (found >> np.uint64(31))


def _number(*names: str) -> int:
    """A random number of 64 bits for some names."""
    return int.from_bytes(hashlib.sha256(json.dumps(names).encode()).digest()[:8], "big")


_EVERYBODY: Final = np.uint64(_number(""))
"""In place of a person's number, where all people have the same order."""


def judge_saw_reference(kind: Kind, settings: StoredSettings) -> bool:
    """Whether the judges of such tasks saw a query's reference answer, so that people may see it too.

    The packaged prompts of games and criteria show it. What a prompt of a user's own shows is not known.
    """
    if kind not in {Kind.VERDICT, Kind.CRITERIA}:
        return False
    task = Task.PAIRWISE if kind is Kind.VERDICT else Task.CRITERIA
    packaged = load_prompt(task.value, task)
    section = settings.pairwise if kind is Kind.VERDICT else settings.criteria
    named = section is not None and section.prompt
    return named == f"{packaged.name}@{packaged.version}" and "query.reference" in packaged.user


class Rubric(Struct, frozen=True):
    """What answers are graded by: criteria with a description each, or none, and the whole numbers from low to high."""

    criteria: Mapping[str, str]
    low: int
    high: int


def rubric_of(settings: StoredSettings) -> Rubric | None:
    """A tournament's rubric, ``None`` where its answers are not graded."""
    if (section := settings.criteria) is None:
        return None
    return Rubric({each.name: _described(each) for each in section.listed()}, *section.scale)


def _described(criterion: Criterion) -> str:
    """What a person reads of a criterion: the same as the judge."""
    levels = "; ".join(f"{grade}: {meaning}" for grade, meaning in criterion.levels)
    whole = f"{criterion.description} ({levels})"
    return whole if levels and criterion.description else levels or criterion.description


def scale_of(settings: StoredSettings, given: Iterable[int]) -> list[tuple[int, str]]:
    """Labels with their words, the lowest first: those of a tournament's relevance judges.

    Args:
        settings: the tournament's.
        given: labels that judges gave; of a store from before scales were kept, the scale goes from 0 to the highest.
    """
    scale = settings.retrieval.scale if settings.retrieval is not None else {}
    words = scale or {str(label): label for label in range(max(given, default=0) + 1)}
    return sorted((label, word) for word, label in words.items())
