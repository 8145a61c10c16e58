"""What each query's nuggets have come to, and what they want judged next. Knows no store and asks nobody."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from arena.config import NuggetsSection
from arena.dataset import Dataset
from arena.schedule import answering
from arena.store import Result, Wanted
from judges.nuggets import assignment_prompt, creation_prompt, importance_prompt
from judges.prompts import PromptTemplate
from judges.types import Judgment, Prompt, Task
from retrieval_eval.nuggets.creation import BATCH, batches, kept_nuggets, updated_list
from retrieval_eval.nuggets.types import Importance, NuggetBank, Support, make_nuggets

NUGGET_TASKS = (Task.NUGGETS, Task.IMPORTANCE, Task.ASSIGNMENT)
"""The stages that nuggets go through, in this order for each query."""


@dataclass(frozen=True, slots=True)
class Release:
    """What one settled want leads to.

    Attributes:
        wanted: wants that are known to be needed now.
        ready: those, of all that are needed, whose prompts can be rendered now.
    """

    wanted: Sequence[Wanted] = ()
    ready: Sequence[Wanted] = ()


@dataclass(slots=True)
class _Growing:
    """One query's nuggets as they come about."""

    windows: Sequence[Sequence[str]]
    texts: tuple[str, ...] = ()
    turns: int = 0
    importances: dict[str, tuple[Importance | None, ...]] = field(default_factory=dict)
    nuggets: tuple[str, ...] = ()


class NuggetStages:
    """Turn by turn a list of nuggets, then their importance in tens, then every answer against them in tens.

    A want that fails ends its query: nuggets of half the documents, or without their importance, are not what was asked
    for. A bank that is given takes the place of the turns: its nuggets are judgments that need no call.

    Args:
        section: the configuration.
        data: queries, documents and answers.
        templates: the prompt of each task.
        banks: the banks given, by query; ``None`` where the judge makes them.
    """

    def __init__(
        self,
        section: NuggetsSection,
        data: Dataset,
        templates: Mapping[Task, PromptTemplate],
        banks: Mapping[str, NuggetBank] | None = None,
    ) -> None:
        self._section, self._data, self._templates, self._banks = section, data, templates, banks
        self._agents = answering(data)
        self._queries: dict[str, _Growing] = {}

    def begin(self, query_id: str, documents: Sequence[str] = ()) -> Release:
        """Begin with a query.

        Args:
            query_id: the query.
            documents: its relevant documents in the order they are read; none count where banks are given.
        """
        if self._banks is not None:
            windows: Sequence[Sequence[str]] = [()] if query_id in self._banks else []
        else:
            assert self._section.create is not None
            windows = batches(documents, self._section.create.window)
        self._queries[query_id] = _Growing(windows)
        turns = [self._want(Task.NUGGETS, query_id, str(number)) for number in range(1, len(windows) + 1)]
        return Release(turns, turns[:1])

    def take(self, want: Wanted, result: Result) -> Release:
        """Take what became of a want; a failure leads to nothing more."""
        if not isinstance(result, Judgment) or want.task is Task.ASSIGNMENT:
            return Release()
        growing, said = self._queries[want.query_id], listed(result)
        if want.task is Task.NUGGETS:
            return self._after_turn(want.query_id, growing, said)
        growing.importances[want.item] = importances_of(said)
        if sum(map(len, growing.importances.values())) < len(growing.texts):
            return Release()
        labels = [label for span in _spans(len(growing.texts), self._at_once) for label in growing.importances[span]]
        growing.nuggets = tuple(text for text, _ in settled_nuggets(growing.texts, labels, self._section))
        wants = [
            self._want(Task.ASSIGNMENT, want.query_id, agent, span)
            for agent in self._agents.get(want.query_id, ())
            for span in _spans(len(growing.nuggets), self._section.assign.batch)
        ]
        return Release(wants, wants)

    def _after_turn(self, query_id: str, growing: _Growing, said: Sequence[str]) -> Release:
        growing.turns += 1
        growing.texts = listed_nuggets(said, self._section)
        if growing.turns < len(growing.windows):
            return Release(ready=[self._want(Task.NUGGETS, query_id, str(growing.turns + 1))])
        wants = [self._want(Task.IMPORTANCE, query_id, span) for span in _spans(len(growing.texts), self._at_once)]
        return Release(wants, wants)

    @property
    def _at_once(self) -> int:
        """Nuggets whose importance is asked together; a bank's are all given at once."""
        return BATCH if self._banks is None else max(1, *(len(bank.nuggets) for bank in self._banks.values()))

    def _want(self, task: Task, query_id: str, item: str, other: str = "") -> Wanted:
        return Wanted(task, self._section.judge, query_id, item, other)

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt of a want; ``None`` while what it shows has not come about."""
        growing, query = self._queries.get(want.query_id), self._data.queries[want.query_id]
        template = self._templates[want.task]
        if growing is None:
            return None
        if want.task is Task.NUGGETS:
            if int(want.item) != growing.turns + 1:
                return None
            assert self._section.create is not None
            window = [self._data.documents[doc_id] for doc_id in growing.windows[growing.turns]]
            return creation_prompt(template, query, window, growing.texts, self._section.create.most)
        if want.task is Task.IMPORTANCE:
            return importance_prompt(template, query, _part(growing.texts, want.item))
        answer = self._data.answers[want.query_id, want.item]
        return assignment_prompt(template, query, answer, _part(growing.nuggets, want.other))

    def without_call(self, want: Wanted) -> str | None:
        """The id of the judgment of what a given bank says, and of an empty answer, which states nothing."""
        if want.task is Task.ASSIGNMENT:
            empty = not self._data.answers[want.query_id, want.item].text.strip()
            return _empty_answer_id(_length(want.other)) if empty else None
        return None if self._banks is None else _given_id(want.task, _said(self._banks[want.query_id], want.task))

    def free_judgments(self) -> Iterator[tuple[Task, str, Judgment]]:
        """The judgments that need no call, as the store keeps them."""
        nothing = "The answer is empty."
        for length in range(1, self._section.assign.batch + 1):
            labels = (Support.NONE.value,) * length
            yield Task.ASSIGNMENT, "none", _free(_empty_answer_id(length), labels, nothing)
        for bank in (self._banks or {}).values():
            for task in (Task.NUGGETS, Task.IMPORTANCE):
                said = _said(bank, task)
                yield task, "bank", _free(_given_id(task, said), said, "Given in a file of nuggets.")


def listed(judgment: Judgment) -> tuple[str, ...]:
    """The texts or labels of a judgment whose outcome is a list.

    Raises:
        TypeError: the outcome is of another task.
    """
    if not isinstance(judgment.outcome, tuple):
        raise TypeError(f"{judgment.outcome!r} is no list")
    return judgment.outcome


def listed_nuggets(said: Iterable[str], section: NuggetsSection) -> tuple[str, ...]:
    """The list after a turn, from what the judge said; a bank that was given stays as it is."""
    return tuple(said) if section.create is None else updated_list(said, most=section.create.most)


def importances_of(said: Iterable[str]) -> tuple[Importance | None, ...]:
    """Importances from what was said of them; the empty text where a bank's file says nothing."""
    return tuple(Importance(label) if label else None for label in said)


def settled_nuggets(
    texts: Sequence[str], labels: Sequence[Importance | None], section: NuggetsSection
) -> list[tuple[str, Importance | None]]:
    """The nuggets that answers are held against: all of a bank that was given, the first ones of the judge's list."""
    known = [label for label in labels if label is not None]
    if section.create is None or len(known) < len(labels):
        return list(zip(texts, labels, strict=True))
    return [(text, label) for text, label in kept_nuggets(texts, known, keep=section.keep)]


def settled_bank(
    query_id: str,
    query: str,
    texts: Sequence[str],
    labels: Sequence[Importance | None],
    section: NuggetsSection,
) -> NuggetBank:
    """The same as a bank."""
    settled = settled_nuggets(texts, labels, section)
    nuggets = make_nuggets(query_id, [text for text, _ in settled], [label for _, label in settled])
    return NuggetBank(query_id, query, nuggets)


def first_of(span: str) -> int:
    """The first place in a span such as ``11-20``."""
    return int(span.partition("-")[0])


def _spans(number: int, size: int) -> list[str]:
    """Places from 1 to ``number``, so many at a time, such as ``1-10`` and ``11-14``."""
    return [f"{part[0]}-{part[-1]}" for part in batches(range(1, number + 1), size)]


def _length(span: str) -> int:
    first, _, last = span.partition("-")
    return int(last) - int(first) + 1


def _part(texts: Sequence[str], span: str) -> Sequence[str]:
    start = first_of(span) - 1
    return texts[start : start + _length(span)]


def _said(bank: NuggetBank, task: Task) -> tuple[str, ...]:
    if task is Task.NUGGETS:
        return tuple(nugget.text for nugget in bank.nuggets)
    return tuple(nugget.importance or "" for nugget in bank.nuggets)


def _given_id(task: Task, said: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(["given", task.value, *said]).encode()).hexdigest()[:32]


def _empty_answer_id(length: int) -> str:
    return f"empty-answer-{length}"


def _free(ident: str, said: tuple[str, ...], reason: str) -> Judgment:
    return Judgment(ident, said, reason, "", "none", calls=0, cost_usd=0.0)
