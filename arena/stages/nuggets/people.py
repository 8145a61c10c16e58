"""People assign nuggets: the answers that an assessor reads, in which order, and what they said as assignments.

An assessor sees an answer's text and the query's nuggets; neither who wrote the answer, nor what a judge or another
assessor said. Answers of one text are read once. What was said holds for these texts: a changed answer is read anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from arena.store.annotations import Annotation, Kind, texts_digest
from arena.voting.things import State, drawn
from judges.types import Answer
from retrieval_eval.nuggets.types import Assignment, Nugget, NuggetBank, Support, count_words, of_empty_answer

Banks: TypeAlias = Mapping[str, NuggetBank]
Said: TypeAlias = Mapping[tuple[str, str, str], Mapping[str, Support | None]]
"""What one annotator says now, by query, nugget and texts, of each agent; ``None`` where they skipped it."""

UNKNOWN_ANSWERS: Final = "answers that the tournament does not have"
CHANGED_ANSWERS: Final = "answers with another text than the tournament's"
UNKNOWN_NUGGETS: Final = "labels of nuggets that the tournament does not have"
FAILED_LABELS: Final = "labels that failed"


@dataclass(frozen=True)
class Sheet:
    """One answer to be held against its query's nuggets.

    Attributes:
        answer: its text.
        agents: who gave this answer; not for the assessor's eyes.
    """

    query_id: str
    query: str
    answer: str
    agents: tuple[str, ...]
    nuggets: tuple[Nugget, ...]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The digest of what is read for each nugget."""
        return tuple(texts_digest(self.query, self.answer, nugget.text) for nugget in self.nuggets)

    @cached_property
    def thing_id(self) -> str:
        """Twelve hexadecimal digits for what is read; another answer or other nuggets are another sheet."""
        return texts_digest(self.query_id, *self.texts)[:12]


def sheets(banks: Banks, answers: Iterable[Answer], annotator: str) -> list[Sheet]:
    """What an assessor is to read, query by query, in an order of their own that stays when answers are added.

    An empty answer states nothing, and nobody need read it.
    """
    agents: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for answer in answers:
        if answer.query_id in banks and answer.text.strip() and banks[answer.query_id].nuggets:
            agents[answer.query_id, answer.text].append(answer.agent)
    found = [
        Sheet(query_id, banks[query_id].query, text, tuple(sorted(own)), banks[query_id].nuggets)
        for (query_id, text), own in agents.items()
    ]
    return sorted(found, key=lambda sheet: (drawn(annotator, sheet.query_id), drawn(annotator, sheet.answer)))


def said_by(annotations: Iterable[Annotation], annotator: str) -> Said:
    """What one annotator says of nuggets."""
    found: defaultdict[tuple[str, str, str], dict[str, Support | None]] = defaultdict(dict)
    for own in annotations:
        if own.kind is Kind.NUGGET and own.annotator == annotator:
            label = None if own.value is None else Support(own.value)
            found[own.query_id, own.other, own.texts][own.item] = label
    return found


def labels_on(sheet: Sheet, said: Said) -> list[Support | None]:
    """The label of each nugget of a sheet, ``None`` without one; another agent's label holds for the same text."""
    found = []
    for nugget, texts in zip(sheet.nuggets, sheet.texts, strict=True):
        labels = said.get((sheet.query_id, nugget.nugget_id, texts), {})
        own = [labels[agent] for agent in sheet.agents if agent in labels] or labels.values()
        found.append(next((label for label in own if label is not None), None))
    return found


def state_of(sheet: Sheet, said: Said) -> State:
    """How far an assessor has come with a sheet; with a part of its labels it is open."""
    labels = labels_on(sheet, said)
    if None not in labels:
        return State.DONE
    things = zip(sheet.nuggets, sheet.texts, strict=True)
    seen = any((sheet.query_id, nugget.nugget_id, texts) in said for nugget, texts in things)
    return State.SKIPPED if seen and not any(labels) else State.OPEN


def annotations_of(
    sheet: Sheet, labels: Sequence[Support | None], annotator: str, seconds: float | None = None
) -> list[Annotation]:
    """What an assessor said on a sheet.

    Args:
        sheet: what they read.
        labels: one per nugget; ``None`` everywhere where they skip it.
        annotator: who they are.
        seconds: how long they took; kept in equal parts.
    """
    share = None if seconds is None else round(seconds / len(sheet.nuggets), 2)
    return [
        Annotation(Kind.NUGGET, annotator, sheet.query_id, agent, nugget.nugget_id, texts, label, share)
        for nugget, texts, label in zip(sheet.nuggets, sheet.texts, labels, strict=True)
        for agent in sheet.agents
    ]


def assignments_by(banks: Banks, answers: Iterable[Answer], said: Said) -> list[Assignment]:
    """One annotator's assignments of the nuggets as they are now; answers of which they said nothing are left out.

    A nugget without a label of theirs is ``None``. Empty answers come along once anything is labelled.
    """
    found: list[Assignment] = []
    if not any(label for labels in said.values() for label in labels.values()):
        return found
    for answer in answers:
        bank = banks.get(answer.query_id)
        if bank is None:
            continue
        if not answer.text.strip():
            found.append(of_empty_answer(bank, answer.agent))
            continue
        sheet = Sheet(answer.query_id, bank.query, answer.text, (answer.agent,), bank.nuggets)
        labels = tuple(labels_on(sheet, said))
        if any(labels):
            words = count_words(answer.text)
            found.append(
                Assignment(answer.query_id, answer.agent, bank.nuggets, labels, words, answer.text, bank.query)
            )
    return found


@dataclass(frozen=True, slots=True)
class Taken:
    """What of a file of assignments is about a tournament's answers and nuggets.

    Attributes:
        annotations: to be kept.
        answers: answers they are about.
        left_out: how many of the others, by what they are.
    """

    annotations: Sequence[Annotation]
    answers: int
    left_out: Mapping[str, int]


def taken(
    assignments: Iterable[Assignment], banks: Banks, answers: Mapping[tuple[str, str], Answer], annotator: str
) -> Taken:
    """Somebody's assignments as annotations of a tournament's answers, by run, query and the text of nuggets."""
    kept: list[Annotation] = []
    about = 0
    left_out = dict.fromkeys((UNKNOWN_ANSWERS, CHANGED_ANSWERS, UNKNOWN_NUGGETS, FAILED_LABELS), 0)
    for own in assignments:
        answer, bank = answers.get((own.query_id, own.run)), banks.get(own.query_id)
        if answer is None or bank is None:
            left_out[UNKNOWN_ANSWERS] += 1
        elif own.answer is not None and own.answer.strip() != answer.text.strip():
            left_out[CHANGED_ANSWERS] += 1
        else:
            labels = {nugget.nugget_id: label for nugget, label in zip(own.nuggets, own.labels, strict=True)}
            left_out[UNKNOWN_NUGGETS] += len(labels.keys() - {nugget.nugget_id for nugget in bank.nuggets})
            left_out[FAILED_LABELS] += sum(label is None for label in labels.values())
            nuggets = tuple(nugget for nugget in bank.nuggets if labels.get(nugget.nugget_id) is not None)
            sheet = Sheet(own.query_id, bank.query, answer.text, (own.run,), nuggets)
            kept += annotations_of(sheet, [labels[nugget.nugget_id] for nugget in nuggets], annotator)
            about += bool(nuggets)
    return Taken(kept, about, {what: number for what, number in left_out.items() if number})
