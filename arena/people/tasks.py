"""What people are asked, whatever its form: to compare two answers, label a document, grade an answer, find nuggets.

Each person goes through a queue of their own. They see texts, and neither whose these are nor what a judge or another
person said. What they say holds for the texts that they saw: where one has changed since, they are asked anew.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache, cached_property, partial
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from arena.config.stored import StoredSettings
from arena.data.dataset import Dataset
from arena.stages.support import SupportSubject, cited_texts
from arena.store.annotations import Annotation, Kind, texts_digest
from judges.prompts import load_prompt
from judges.prompts.tasks import Criterion
from judges.types import Answer, Query, Task
from retrieval_eval.nuggets.types import Nugget, NuggetBank

Banks: TypeAlias = Mapping[str, NuggetBank]
Game: TypeAlias = tuple[str, str, str]
"""A query and two agents, in the order of their names."""
_Key: TypeAlias = tuple[Kind, str, str, str]


class State(Enum):
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
    def state(self) -> State:
        """How far the annotator is; with some of its values a task is open."""
        if None not in self.values:
            return State.DONE
        return State.SKIPPED if self.seen and all(value is None for value in self.values) else State.OPEN

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


def games(played: Iterable[Game], data: Dataset, annotator: str) -> list[AnnotationTask]:
    """Pairs of answers to vote on: of every query the first game that is drawn for this person.

    One game of each query, so that no earlier pair tells them what there is to say. Games come in random order,
    whatever the judges made of them: estimates that correct a judge by people's labels take a random sample. Games of
    answers whose texts are not known are left out.
    """
    played = (game for game in played if all(data.answers[game[0], agent].has_text for agent in game[1:]))
    whose = cache(partial(_whose, annotator))
    chosen: dict[str, Game] = {}
    for game in sorted(played, key=lambda game: _drawn(whose(game[0]), *game)):
        chosen.setdefault(game[0], game)
    tasks = []
    for query_id, a, b in chosen.values():  # either answer is shown first, with the same chance
        is_first = int(_drawn(annotator, "side", query_id, a, b), 16) % 2
        tasks.append(_game_task(data, query_id, *((a, b) if is_first else (b, a))))
    return tasks


def _game_task(data: Dataset, query_id: str, first: str, second: str) -> AnnotationTask:
    texts = data.answers[query_id, first].text, data.answers[query_id, second].text
    return AnnotationTask(Kind.VERDICT, query_id, data.queries[query_id], (first,), texts, (second,))


def documents(labelled: Iterable[tuple[str, str]], data: Dataset, annotator: str) -> list[AnnotationTask]:
    """Documents to label, in the person's own random order; ``labelled`` are query and document of judges' labels."""
    order = sorted(labelled, key=lambda names: _drawn(_whose(annotator, *names), *names))
    return [
        AnnotationTask(Kind.RELEVANCE, query_id, data.queries[query_id], (doc_id,), (data.documents[doc_id].text,))
        for query_id, doc_id in order
    ]


def answers(graded: Iterable[tuple[str, str]], data: Dataset, annotator: str) -> list[AnnotationTask]:
    """Answers to grade, in the person's own random order; ``graded`` are query and agent of judges' grades."""
    by_text = _by_text(data.answers[key] for key in graded)
    order = sorted(by_text, key=lambda names: _drawn(_whose(annotator, *names), *names))
    return [
        AnnotationTask(Kind.CRITERIA, query_id, data.queries[query_id], by_text[query_id, text], (text,))
        for query_id, text in order
    ]


def nuggets(banks: Banks, answers: Iterable[Answer], annotator: str) -> list[AnnotationTask]:
    """Answers to hold against the nuggets of their queries, query by query, in the person's own order.

    An empty answer states nothing, and nobody need read it.
    """
    by_text = _by_text(
        answer
        for answer in answers
        if answer.query_id in banks and answer.text.strip() and banks[answer.query_id].nuggets
    )
    order = sorted(by_text, key=lambda names: tuple(_drawn(annotator, name) for name in names))
    return [nugget_task(banks[key[0]], key[1], by_text[key]) for key in order]


def nugget_task(
    bank: NuggetBank, answer: str, agents: tuple[str, ...], chosen: Collection[Nugget] | None = None
) -> AnnotationTask:
    """One answer against nuggets of its query; all of them where none are chosen."""
    chosen = bank.nuggets if chosen is None else chosen
    ids, texts = tuple(nugget.nugget_id for nugget in chosen), tuple(nugget.text for nugget in chosen)
    unknown, query = (None,) * len(ids), Query(bank.query_id, bank.query)
    return AnnotationTask(Kind.NUGGET, bank.query_id, query, agents, (answer,), ids, texts, unknown)


def citations(checked: Iterable[SupportSubject], data: Dataset, annotator: str) -> list[AnnotationTask]:
    """Sentences to hold against what they cite, in the person's own order; judges ``checked`` them."""
    tasks = []
    for subject in sorted(checked, key=lambda one: _drawn(_whose(annotator, *map(str, one)), *map(str, one))):
        query_id, agent, place, doc_id = subject
        if (said := data.sentences.get((query_id, agent))) and place < len(said):
            texts = said[place].text, data.documents[doc_id].text
            query = data.queries[query_id]
            tasks.append(AnnotationTask(Kind.SUPPORT, query_id, query, (agent,), texts, (subject.other,)))
    return tasks


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


def texts_now(said: Annotation, data: Dataset, nugget_texts: Mapping[str, str]) -> str | None:
    """The digest of an annotation's texts as they are now, ``None`` where one is gone.

    The texts are, in this order: the query's thread (of nuggets its own text), then the document, the answer, the two
    answers of a game, the answer and the nugget, or the sentence and the document; see ``texts_digest``. Of a flag the
    judge's name belongs to them.

    Args:
        said: the annotation.
        data: queries, documents and answers.
        nugget_texts: texts by nugget id, for annotations of nuggets.
    """
    query = data.queries.get(said.query_id)
    texts = [None if query is None else query.text if said.kind is Kind.NUGGET else query.thread]
    if said.kind is Kind.RELEVANCE:
        texts.append(data.documents[said.item].text if said.item in data.documents else None)
    elif said.kind is Kind.SUPPORT:
        texts += cited_texts(SupportSubject.named(said.query_id, said.item, said.other), data)
    else:
        agents = [said.item, *([said.other] if said.kind in {Kind.VERDICT, Kind.FLAG} else [])]
        given = [data.answers.get((said.query_id, agent)) for agent in agents]
        texts += [None if answer is None else answer.text for answer in given]
    if said.kind is Kind.NUGGET:
        texts.append(nugget_texts.get(said.other))
    elif said.kind is Kind.FLAG:
        texts.append(said.value["judge"])
    known = [text for text in texts if text is not None]
    return texts_digest(*known) if len(known) == len(texts) else None


def _by_text(answers: Iterable[Answer]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Agents by query and text of their answer: answers of one text are read once."""
    agents: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for answer in answers:
        agents[answer.query_id, answer.text].append(answer.agent)
    return {key: tuple(sorted(names)) for key, names in agents.items()}


def _drawn(annotator: str, *names: str) -> str:
    """A random place in a person's order; it depends on nothing else, so what is added moves nothing."""
    return hashlib.sha256(json.dumps([annotator, *names]).encode()).hexdigest()


def _whose(annotator: str, *names: str) -> str:
    """Whose order a task is drawn for: on about half of them, the one order that all people share.

    What several people are asked shows how far they agree among themselves; what each is asked alone gives more things
    a label.
    """
    return "" if int(_drawn("shared", *names), 16) % 2 else annotator


def judge_saw_reference(kind: Kind, settings: StoredSettings) -> bool:
    """Whether the judges of such tasks saw a query's reference answer, so that people may see it too.

    The packaged prompts of games and criteria show it. What a prompt of a user's own shows is not known.
    """
    if kind not in {Kind.VERDICT, Kind.CRITERIA}:
        return False
    task = Task.PAIRWISE if kind is Kind.VERDICT else Task.CRITERIA
    packaged = load_prompt(task.value, task)
    named = (settings.raw.get(task.value) or {}).get("prompt")
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
