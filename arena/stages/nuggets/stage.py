"""What each query's nuggets have come to, and what they want judged next. Knows no store and asks nobody."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from arena.config.nuggets import NuggetsSection
from arena.data.dataset import Dataset
from arena.stages.base import Release
from arena.stages.nuggets.documents import retrieved_documents
from arena.stages.nuggets.lists import importances_of, listed, listed_nuggets, part, places, settled_nuggets, spans
from arena.stages.schedule import answering
from arena.store import Result, Wanted
from judges.errors import ConfigError
from judges.prompts import PromptTemplate
from judges.prompts.tasks import assignment_prompt, creation_prompt, importance_prompt
from judges.types import Answer, Judgment, Prompt, Task
from retrieval_eval.nuggets.types import BATCH, Importance, NuggetBank, Support, windows


@dataclass(slots=True)
class _Growing:
    """One query's nuggets as they come about."""

    windows: Sequence[Sequence[str]]
    texts: tuple[str, ...] = ()
    turns: int = 0
    importances: dict[str, tuple[Importance | None, ...]] = field(default_factory=dict)
    nuggets: tuple[str, ...] = ()


class NuggetStages:
    """Turn by turn a list of nuggets, then their importance in tens, then answers and documents against them in tens.

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
        self._held = self._held_against_nuggets()
        self._check_grades()
        self._queries: dict[str, _Growing] = {}

    def _held_against_nuggets(self) -> dict[Task, Mapping[str, Sequence[str]]]:
        """By task and query the agents whose answers, and the documents that, are held against the query's nuggets."""
        assign, held = self._section.assign, dict[Task, Mapping[str, Sequence[str]]]()
        if "answers" in assign.texts:
            held[Task.ASSIGNMENT] = answering(self._data)
        if "documents" in assign.texts:
            held[Task.PASSAGE_ASSIGNMENT] = retrieved_documents(self._data, assign)
        return held

    def _check_grades(self) -> None:
        for task in self._held:
            template = self._templates[task]
            (words,) = template.reply.choices.values()
            if len(set(words.values())) != self._section.assign.grades:
                raise ConfigError(
                    f"nuggets.assign.grades: {self._section.assign.grades}, but the prompt {template.name!r} has "
                    f"{len(set(words.values()))}"
                )

    def tasks(self) -> list[Task]:
        """In the order they are done."""
        return [Task.NUGGETS, Task.IMPORTANCE, *self._held]

    @property
    def reads_documents(self) -> bool:
        """Whether nuggets are made of documents, and not given."""
        return self._banks is None

    @property
    def lowest_label(self) -> int:
        """The lowest relevance label of the documents that are read."""
        return 0 if self._section.create is None else self._section.create.from_label

    @property
    def most(self) -> int:
        """Nuggets that a list has at most."""
        return 0 if self._section.create is None else self._section.create.most

    def begin(self, query_id: str, ranked: Sequence[str], labels: Mapping[str, int]) -> Release:
        """Begin with a query, unless it has begun.

        Args:
            query_id: the query.
            ranked: its documents, best first; where banks are given, none is read.
            labels: relevance of documents; those that failed have none and are not read.
        """
        if query_id in self._queries:
            return Release()
        if self._banks is not None:
            read: Sequence[Sequence[str]] = [()] if query_id in self._banks else []
        else:
            create = self._section.create
            assert create is not None
            read = windows(ranked, labels, from_label=create.from_label, size=create.window)
        self._queries[query_id] = _Growing(read)
        turns = [self._want(Task.NUGGETS, query_id, str(number)) for number in range(1, len(read) + 1)]
        return Release(turns, turns[:1])

    def releases(self, task: Task) -> bool:
        """Whether a settled want of the task may release others."""
        return task in {Task.NUGGETS, Task.IMPORTANCE}

    def released(self, want: Wanted, result: Result) -> Release:
        """What can be asked for now that a want is settled; a failure leads to nothing more."""
        if not isinstance(result, Judgment) or not self.releases(want.task):
            return Release()
        growing, said = self._queries[want.query_id], listed(result)
        if want.task is Task.NUGGETS:
            return self._after_turn(want.query_id, growing, said)
        growing.importances[want.item] = importances_of(said)
        if sum(map(len, growing.importances.values())) < len(growing.texts):
            return Release()
        labels = [label for span in spans(len(growing.texts), self._at_once) for label in growing.importances[span]]
        growing.nuggets = tuple(text for text, _ in settled_nuggets(growing.texts, labels, self._section))
        wants = [
            self._want(task, want.query_id, name, span)
            for task, held in self._held.items()
            for name in held.get(want.query_id, ())
            for span in spans(len(growing.nuggets), self._section.assign.batch)
        ]
        return Release(wants, wants)

    def _after_turn(self, query_id: str, growing: _Growing, said: Sequence[str]) -> Release:
        growing.turns += 1
        growing.texts = listed_nuggets(said, self._section)
        if growing.turns < len(growing.windows):
            return Release(ready=[self._want(Task.NUGGETS, query_id, str(growing.turns + 1))])
        wants = [self._want(Task.IMPORTANCE, query_id, span) for span in spans(len(growing.texts), self._at_once)]
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
            return importance_prompt(template, query, part(growing.texts, want.item))
        nuggets = part(growing.nuggets, want.other)
        if want.task is Task.PASSAGE_ASSIGNMENT:
            return assignment_prompt(template, query, self._data.documents[want.item], nuggets)
        return assignment_prompt(template, query, self._data.answers[want.query_id, want.item], nuggets)

    def without_call(self, want: Wanted) -> str | None:
        """The id of the judgment of what a given bank says, and of an empty answer, which states nothing."""
        if want.task is Task.PASSAGE_ASSIGNMENT:
            return None
        if want.task is Task.ASSIGNMENT:
            empty = not self._data.answers[want.query_id, want.item].text.strip()
            return _empty_answer_id(len(places(want.other))) if empty else None
        return None if self._banks is None else _given_id(want.task, _said(self._banks[want.query_id], want.task))

    def check(self) -> None:
        """Render a prompt of each task, so that a template that fails does so before anything is sent.

        Raises:
            PromptError: a prompt file cannot be used.
        """
        query = next(iter(self._data.queries.values()))
        answer = next(iter(self._data.answers.values()), Answer(query.query_id, "", ""))
        documents = list(self._data.documents.values())[:1]
        if (create := self._section.create) is not None:
            for so_far in ((), ("a fact",)):
                creation_prompt(self._templates[Task.NUGGETS], query, documents, so_far, create.most)
            importance_prompt(self._templates[Task.IMPORTANCE], query, ["a fact"])
        if (template := self._templates.get(Task.ASSIGNMENT)) is not None:
            assignment_prompt(template, query, answer, ["a fact"])
        if (template := self._templates.get(Task.PASSAGE_ASSIGNMENT)) is not None:
            assignment_prompt(template, query, next(iter(self._data.documents.values())), ["a fact"])

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
