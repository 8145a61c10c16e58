"""Annotation tasks for people: comparing two answers, labelling documents, grading answers, finding nuggets.

Each annotator works through a separate queue of tasks. A task shows texts, but not which agent wrote them or how judges
and other annotators judged them. An annotation is valid for the texts that the annotator saw: if one of these texts
changes, the annotator has to do the task again.

A ``TaskPool`` holds all tasks of a kind with a random number for each; all annotators use it. A ``TaskQueue`` is the
order in which one annotator gets the tasks, as row numbers without texts. ``TaskProgress`` tracks which tasks the
annotator has done.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property, partial
from math import ceil
from statistics import median
from typing import Any, Final, TypeAlias, overload

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.config.settings import StoredSettings
from arena.data.dataset import Dataset
from arena.data.kinds import CRITERIA, NUGGETS, VERDICT, Annotation, JudgedKind, TaskForm, texts_digest, texts_now
from arena.present.numbers import counted
from arena.results.documents import documents_shown
from arena.store.outcomes import LabelResults
from judges.prompts import load_prompt
from judges.types import Answer, Document, Query
from retrieval_eval.nuggets.types import Nugget, NuggetBank

Banks: TypeAlias = Mapping[str, NuggetBank]
GameNames: TypeAlias = tuple[str, str, str]
"""A game: (query id, agent, agent), with the agents in alphabetical order."""
_Key: TypeAlias = tuple[str, str, str, str]
_Numbers: TypeAlias = NDArray[np.uint64]
_Rows: TypeAlias = NDArray[np.int32]


class TaskState(Enum):
    """Whether one annotator has done a task; a skipped task can still be done later."""

    OPEN = "open"
    DONE = "done"
    SKIPPED = "skipped"


class AnnotationTask(Struct, frozen=True, dict=True):
    """A task for an annotator: a query and texts to read, and the parts that need a value.

    Attributes:
        kind: the kind of item that the annotator judges.
        query_id, query: id and text of the query.
        names: the sources of the texts, which the annotator does not see: the document, or all agents that gave the
            answer; in a game, the agent whose answer is shown first.
        texts: the texts that the annotator reads besides the query: a document, an answer, or both answers in the order
            shown.
        parts: names of the parts, each of which needs a value, as in ``Annotation.other``: the ids of the query's
            nuggets, or the second agent of a game; for other kinds, a single empty string.
        part_texts: the texts of the parts, such as nuggets; empty if they have none.
        values: the annotator's values, one per part; ``None`` for a part without a value.
        seen: whether the annotator gave a value for some part, or skipped a part.
    """

    kind: JudgedKind
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
        """``DONE`` if all parts have a value, ``SKIPPED`` if the annotator skipped the whole task, else ``OPEN``."""
        if None not in self.values:
            return TaskState.DONE
        return TaskState.SKIPPED if self.seen and all(value is None for value in self.values) else TaskState.OPEN

    @property
    def value(self) -> Any:
        """The annotator's value of the only part; raises ``ValueError`` if the task has several parts."""
        (value,) = self.values
        return value

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """For each part, the ``texts_digest`` of the texts that the annotator reads."""
        if len(self.part_texts) != len(self.parts):
            return (texts_digest(self.query.thread, *self.texts),)
        return tuple(texts_digest(self.query.thread, *self.texts, text) for text in self.part_texts)

    @cached_property
    def task_id(self) -> str:
        """Identifier of twelve hexadecimal digits; it changes if any text changes."""
        return texts_digest(self.query_id, *self.names, *self.digests)[:12]

    def annotations(
        self, annotator: str, values: Sequence[Any] | None = None, seconds: float | None = None
    ) -> list[Annotation]:
        """Build the annotations for these values: one for each part and each name in ``names``.

        Args:
            annotator: the annotator's name.
            values: one value for each part; ``None`` if the annotator skips the task.
            seconds: the time that the annotator spent on the task; it is divided equally among the parts.
        """
        share = None if seconds is None or values is None else round(seconds / len(self.parts), 2)
        part_values = [None] * len(self.parts) if values is None else values
        return [
            Annotation(self.kind.name, annotator, self.query_id, name, part, digest, value, share)
            for part, digest, value in zip(self.parts, self.digests, part_values, strict=True)
            for name in self.names
        ]


class TaskPool(Struct, frozen=True, eq=False, dict=True):
    """All tasks of one kind, from which each annotator gets a queue.

    A row is a task; each annotator gets the rows in the order of random numbers. A row's number depends only on the
    annotator's name and the names in the row, so that new rows do not change the order of existing rows.

    Attributes:
        queries: the query id of each row.
        numbers: random sort keys, shape (levels, rows); the first level is the primary key.
        shared: whether a row has the same random number for all annotators, shape (rows,).
        one_a_query: whether an annotator gets only one row per query, the first in that annotator's order.
        make: function that returns the task of a row for an annotator.
        with_annotations: function that fills in one annotator's values: ``with_values`` or ``with_votes``.
    """

    queries: Sequence[str]
    numbers: _Numbers
    shared: NDArray[np.bool_]
    one_a_query: bool
    make: Callable[[int, str], AnnotationTask]
    with_annotations: Callable[[Iterable[AnnotationTask], Iterable[Annotation]], list[AnnotationTask]]

    def queue(self, annotator: str) -> TaskQueue:
        person_number = np.where(self.shared, _EVERYBODY, np.uint64(_number(annotator)))
        sort_keys = _mixed(self.numbers ^ person_number)
        order = np.lexsort(sort_keys[::-1])
        if self.one_a_query:
            _, first = np.unique(self._query[order], return_index=True)
            order = order[np.sort(first)]
        return TaskQueue(self, annotator, order.astype(np.int32))

    @cached_property
    def _query(self) -> NDArray[np.int32]:
        """Number of each row's query, see ``query_numbers``; shape (rows,)."""
        return np.array([self.query_numbers[query_id] for query_id in self.queries], np.int32)

    @cached_property
    def query_numbers(self) -> dict[str, int]:
        return {query_id: number for number, query_id in enumerate(dict.fromkeys(self.queries))}

    def of_queries(self, rows: _Rows, query_ids: Collection[str]) -> list[int]:
        """Positions in ``rows`` of the rows that belong to these queries, in ascending order."""
        numbers = [self.query_numbers[query_id] for query_id in query_ids if query_id in self.query_numbers]
        return [int(index) for index in np.flatnonzero(np.isin(self._query[rows], numbers))]


class TaskQueue(Sequence[AnnotationTask]):
    """One annotator's tasks in order. A task is created when it is accessed, without the annotator's values."""

    def __init__(self, pool: TaskPool, annotator: str, rows: _Rows) -> None:
        self.pool, self._annotator, self._rows = pool, annotator, rows

    def __len__(self) -> int:
        return self._rows.size

    @overload
    def __getitem__(self, index: int) -> AnnotationTask: ...
    @overload
    def __getitem__(self, index: slice) -> list[AnnotationTask]: ...
    def __getitem__(self, index: int | slice) -> AnnotationTask | list[AnnotationTask]:
        if isinstance(index, slice):
            return [self.pool.make(int(row), self._annotator) for row in self._rows[index]]
        return self.pool.make(int(self._rows[index]), self._annotator)

    def of_queries(self, query_ids: Collection[str]) -> dict[int, AnnotationTask]:
        """The tasks that belong to these queries, by position in the queue, in ascending order."""
        return {index: self[index] for index in self.pool.of_queries(self._rows, query_ids)}


class TaskProgress:
    """Which tasks of a queue its annotator has done or skipped, according to the annotations passed to ``add``."""

    def __init__(self, queue: TaskQueue) -> None:
        self.queue = queue
        self._annotations: dict[tuple[str, ...], Annotation] = {}
        self._begun: dict[int, AnnotationTask] = {}

    def add(self, annotations: Sequence[Annotation]) -> None:
        """Add annotations by this annotator that are newer than those added before, the oldest first."""
        for annotation in annotations:
            key = annotation.query_id, annotation.item, annotation.other, annotation.texts
            self._annotations.pop(key, None)
            self._annotations[key] = annotation
        queries = {annotation.query_id for annotation in annotations}
        if begun := self.queue.of_queries(queries):
            on_queries = [annotation for annotation in self._annotations.values() if annotation.query_id in queries]
            updated = self.queue.pool.with_annotations(begun.values(), on_queries)
            tasks = self._begun | dict(zip(begun, updated, strict=True))
            self._begun = {index: tasks[index] for index in sorted(tasks)}

    @property
    def annotations(self) -> list[Annotation]:
        """The annotator's latest annotation of each item and of each version of its texts, the oldest first."""
        return [*self._annotations.values()]

    def of(self, state: TaskState) -> list[AnnotationTask]:
        """The tasks in this state among those on queries with an annotation, in the order of the queue."""
        return [task for task in self._begun.values() if task.state is state]

    def words(self, form: TaskForm) -> str:
        """How many tasks are done and skipped and, from three on, about how long the others take at this pace."""
        done, skipped = len(self.of(TaskState.DONE)), len(self.of(TaskState.SKIPPED))
        words = f"{done:,} of {len(self.queue):,} {form.things} {form.done}" + f", {skipped:,} skipped" * bool(skipped)
        seconds = {
            (label.other, label.texts): label.seconds
            for label in self._annotations.values()
            if label.seconds is not None
        }
        left = len(self.queue) - done - skipped
        if done < 3 or not seconds or not left:
            return words
        minutes = ceil(median(seconds.values()) * len(seconds) / done * left / 60)
        return f"{words}, about {counted(minutes, 'minute')} left"

    def find(self, task_id: str) -> AnnotationTask | None:
        """The task with this id; ``None`` if the annotator has no annotation on the task's query."""
        return next((task for task in self._begun.values() if task.task_id == task_id), None)

    def next(self) -> AnnotationTask | None:
        """The first open task in the queue; ``None`` if there is none."""
        indices = range(len(self.queue))
        return next((task for index in indices if (task := self._task(index)).state is TaskState.OPEN), None)

    def before(self, excluded: Collection[str]) -> AnnotationTask | None:
        """The task that was annotated last, without regard to tasks whose ids are ``excluded``."""
        for annotation in reversed(self._annotations.values()):
            for task in self._begun.values():
                if (
                    task.query_id == annotation.query_id
                    and annotation.texts in task.digests
                    and task.task_id not in excluded
                ):
                    return task
        return None

    def _task(self, index: int) -> AnnotationTask:
        return self._begun.get(index) or self.queue[index]


def games(played: Iterable[GameNames], data: Dataset) -> TaskPool:
    """Pool of games, which are pairs of answers to vote on; each annotator gets one game per query.

    With one game per query, an annotator sees no answer twice. The order of games is random and does
    not depend on the judges' verdicts, since estimates that correct a judge need a random sample of labels. Games
    whose answers have no text are skipped.
    """
    known = {key for key, answer in data.answers.items() if answer.has_text}
    rows = [game for game in played if {(game[0], game[1]), (game[0], game[2])} <= known]

    def make(row: int, annotator: str) -> AnnotationTask:  # each answer is shown first with probability 1/2
        query_id, a, b = rows[row]
        a_first = _number(annotator, "side", query_id, a, b) % 2
        return _game_task(data, query_id, *((a, b) if a_first else (b, a)))

    keys, shared = _sort_keys(rows, shared_by=1)
    return TaskPool([game[0] for game in rows], keys, shared, True, make, partial(with_votes, data=data))


def _game_task(data: Dataset, query_id: str, first: str, second: str) -> AnnotationTask:
    texts = data.answers[query_id, first].text, data.answers[query_id, second].text
    return AnnotationTask(VERDICT, query_id, data.queries[query_id], (first,), texts, (second,))


def judged(kind: JudgedKind, judgments: Iterable[Annotation], data: Dataset) -> TaskPool:
    """Pool of the items of a kind that judges have judged; items whose texts no longer exist are skipped."""
    by_thing = {(judgment.query_id, judgment.item, judgment.other): judgment for judgment in judgments}
    rows = [judgment for judgment in by_thing.values() if None not in kind.texts(judgment, data)]

    def make(row: int, _annotator: str) -> AnnotationTask:
        judgment = rows[row]
        _, *texts = (text or "" for text in kind.texts(judgment, data))
        return AnnotationTask(
            kind, judgment.query_id, data.queries[judgment.query_id], (judgment.item,), tuple(texts), (judgment.other,)
        )

    keys = [(judgment.query_id, *kind.item(judgment.item, judgment.other)) for judgment in rows]
    return TaskPool([judgment.query_id for judgment in rows], *_sort_keys(keys), False, make, with_values)


def answers(graded: Iterable[tuple[str, str]], data: Dataset) -> TaskPool:
    """Pool of answers for people to grade; ``graded`` has (query id, agent) of each answer that a judge graded."""
    by_text = _by_text(data.answers[key] for key in graded)
    rows = list(by_text)

    def make(row: int, _annotator: str) -> AnnotationTask:
        query_id, text = rows[row]
        return AnnotationTask(CRITERIA, query_id, data.queries[query_id], by_text[query_id, text], (text,))

    return TaskPool([query_id for query_id, _ in rows], *_sort_keys(rows), False, make, with_values)


def nuggets(banks: Banks, answers: Iterable[Answer]) -> TaskPool:
    """Pool of answers in which people check the query's nuggets, grouped by query; empty answers are skipped."""
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
    """The task of checking which of the ``chosen`` nuggets of a query (by default all) an answer states."""
    chosen = bank.nuggets if chosen is None else chosen
    ids, texts = tuple(nugget.nugget_id for nugget in chosen), tuple(nugget.text for nugget in chosen)
    no_values, query = (None,) * len(ids), Query(bank.query_id, bank.query)
    return AnnotationTask(NUGGETS, bank.query_id, query, agents, (answer,), ids, texts, no_values)


def with_votes(
    tasks: Iterable[AnnotationTask], annotations: Iterable[Annotation], data: Dataset
) -> list[AnnotationTask]:
    """Return tasks on games with one annotator's votes filled in.

    On a query with a vote, the task becomes the game that the annotator voted on, unless its texts have changed since:
    then the annotator has to vote again.
    """
    votes = {
        annotation.query_id: annotation
        for annotation in annotations
        if annotation.kind == VERDICT.name and texts_now(annotation, data, {}) == annotation.texts
    }
    as_seen = (
        _game_task(data, task.query_id, vote.item, vote.other) if (vote := votes.get(task.query_id)) else task
        for task in tasks
    )
    return with_values(as_seen, votes.values())


def with_values(tasks: Iterable[AnnotationTask], annotations: Iterable[Annotation]) -> list[AnnotationTask]:
    """Return tasks with one annotator's values filled in.

    The value of an answer also counts for other agents that gave an answer with the same text, even if added later.
    """
    known: defaultdict[_Key, dict[str, Any]] = defaultdict(dict)
    for annotation in annotations:
        key = annotation.kind, annotation.query_id, annotation.other, annotation.texts
        known[key][annotation.item] = annotation.value
    queries = {query_id for _, query_id, *_ in known}
    return [_with_values(task, known) if task.query_id in queries else task for task in tasks]


def _with_values(task: AnnotationTask, known: Mapping[_Key, Mapping[str, Any]]) -> AnnotationTask:
    values, seen = [], False
    for part, digest in zip(task.parts, task.digests, strict=True):
        by_name = known.get((task.kind.name, task.query_id, part, digest), {})
        candidates = [by_name[name] for name in task.names if name in by_name]
        if task.part_texts:
            candidates = candidates or list(by_name.values())
        seen = seen or bool(candidates)
        values.append(next((value for value in candidates if value is not None), None))
    return replace(task, values=tuple(values), seen=seen)


def _by_text(answers: Iterable[Answer]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Group answers by (query id, text), so that identical answers are one task; returns the agents' names."""
    agents: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for answer in answers:
        agents[answer.query_id, answer.text].append(answer.agent)
    return {key: tuple(sorted(names)) for key, names in agents.items()}


def _sort_keys(rows: Sequence[tuple[str, ...]], shared_by: int | None = None) -> tuple[_Numbers, NDArray[np.bool_]]:
    """Random sort keys of rows, shape (1, rows), and whether all annotators share each row's key, shape (rows,).

    About half of the rows are shared. With ``shared_by``, rows with the same first ``shared_by`` names are either all
    shared or all not shared. Shared tasks come in the same order for everyone, so that several annotators do them and
    their agreement can be measured; the other tasks cover more items.
    """
    numbers = _numbers(rows)
    common = numbers if shared_by is None else _numbers([names[:shared_by] for names in rows])
    shared = _mixed(common ^ np.uint64(_number("shared"))) % np.uint64(2) == 1
    return numbers[None], shared


def _numbers(rows: Sequence[tuple[str, ...]]) -> _Numbers:
    """A random number for each row, determined by the names in the row; a name that recurs is hashed once."""
    numbers = np.zeros(len(rows), np.uint64)
    for column in zip(*rows, strict=True):
        known = {name: _number(name) for name in set(column)}
        numbers = _mixed(numbers ^ np.array([known[name] for name in column], np.uint64))
    return numbers


def _mixed(numbers: _Numbers) -> _Numbers:
    """Pseudorandom numbers computed from ``numbers``: one step of splitmix64 (Steele, Lea and Flood 2014)."""
    state = numbers + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def _number(*names: str) -> int:
    """A pseudorandom 64-bit number that is determined by these names."""
    return int.from_bytes(hashlib.sha256(json.dumps(names).encode()).digest()[:8], "big")


_EVERYBODY: Final = np.uint64(_number(""))
"""Used in place of an annotator's random number for shared rows, whose order is the same for all annotators."""


READ_WITH_DOCUMENTS: Final = (VERDICT, CRITERIA)
"""Kinds of items whose judges may also read retrieved documents."""


def documents_seen(
    task: AnnotationTask, data: Dataset, labels: LabelResults, settings: StoredSettings
) -> list[Document]:
    """The documents that judges read with the answers of a task, in the order shown; for ``READ_WITH_DOCUMENTS``."""
    agents, alone = {*task.names, *task.parts}, task.kind is CRITERIA
    shown = documents_shown(task.query_id, agents, data, labels, settings, alone=alone)
    return [data.documents[doc_id] for doc_id in shown]


def judge_saw_reference(kind: JudgedKind, settings: StoredSettings) -> bool:
    """Whether the judges of this kind saw the query's reference answer, so that annotators may see it too.

    True for the packaged prompts that contain it; false for a user's prompt, whose content is unknown.
    """
    if kind not in READ_WITH_DOCUMENTS:
        return False
    packaged = load_prompt(kind.task.value, kind.task)
    prompt = getattr(settings.section(kind.section), "prompt", None)
    return prompt == f"{packaged.name}@{packaged.version}" and "query.reference" in packaged.user
