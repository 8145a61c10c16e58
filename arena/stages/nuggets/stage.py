"""Nugget stage: nuggets come from relevant documents or a file, and are assigned to answers and documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from arena.config.judging import NuggetsSection
from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.stages.base import Release, TournamentStage
from arena.stages.labels import RelevanceLabels
from arena.stages.nuggets.banks import (
    importances_of,
    listed,
    listed_nuggets,
    nugget_prompts,
    nugget_settings,
    read_bank,
    retrieved_documents,
    settled_nuggets,
    spans,
)
from arena.stages.schedule import answering
from arena.store import Result, Wanted
from arena.store.subjects import AssignmentSubject, parts, read_span, write_span
from judges.errors import ConfigError
from judges.prompts import load_prompt
from judges.prompts.tasks import assignment_prompt, creation_prompt, importance_prompt
from judges.types import Answer, Judgment, Prompt, Task
from retrieval_eval.nuggets.types import BATCH, Importance, NuggetBank, Support, windows

_TWELVE_WORDS = "a fact of the greatest length that the prompt allows a nugget"
"""A nugget of twelve words for plans, which put a number before it so that all nuggets differ."""


class _Growing(Struct):
    """The state of one query's nuggets during a run."""

    windows: Sequence[Sequence[str]]
    texts: tuple[str, ...] = ()
    turns: int = 0
    importances: dict[range, tuple[Importance | None, ...]] = field(default_factory=dict)
    nuggets: tuple[str, ...] = ()


class NuggetStage(TournamentStage):
    """Creates nuggets in several turns, then rates their importance and assigns them to texts, ten in a call.

    A failure ends the work on its query, since nuggets from only some documents, or without importance, are not what
    the configuration requests. Nuggets from a file are stored as judgments without a call, and no turns are needed.
    """

    key = "nuggets"
    leading = (Task.NUGGETS, Task.IMPORTANCE)

    def __init__(self, section: NuggetsSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        super().__init__(config, data, labels)
        self._section = section
        self._banks = read_bank(section, data)
        self.waits_for_labels = self._banks is None
        self.templates = {task: load_prompt(name, task) for task, name in nugget_prompts(section).items()}
        self._assigned_texts = self._texts_to_assign()
        self._check_grades()
        self._queries: dict[str, _Growing] = {}

    def _texts_to_assign(self) -> dict[Task, Mapping[str, Sequence[str]]]:
        """The texts to assign nuggets to, by task and query: answers (named by agent) and documents (by id)."""
        assign, texts = self._section.assign, dict[Task, Mapping[str, Sequence[str]]]()
        if "answers" in assign.texts:
            texts[Task.ASSIGNMENT] = answering(self.data)
        if "documents" in assign.texts:
            texts[Task.PASSAGE_ASSIGNMENT] = retrieved_documents(self.data, assign)
        return texts

    def _check_grades(self) -> None:
        for task in self._assigned_texts:
            template = self.templates[task]
            (words,) = template.reply.choices.values()
            if len(set(words.values())) != self._section.assign.grades:
                raise ConfigError(
                    f"nuggets.assign.grades: {self._section.assign.grades}, but the prompt {template.name!r} has "
                    f"{len(set(words.values()))}"
                )

    @property
    def tasks(self) -> list[Task]:
        """The stage's judging tasks, in order."""
        return [Task.NUGGETS, Task.IMPORTANCE, *self._assigned_texts]

    def first(self, query_id: str) -> Release:
        """The first turn, once all documents of the query have labels; empty while this run may still add a label."""
        if query_id not in self._queries:
            if (read := self._windows(query_id)) is None:
                return Release()
            self._queries[query_id] = _Growing(read)
        numbers = range(1, len(self._queries[query_id].windows) + 1)
        turns = [Wanted(Task.NUGGETS, self._judge, query_id, str(number)) for number in numbers]
        return Release(turns, turns[:1])

    def _windows(self, query_id: str) -> Sequence[Sequence[str]] | None:
        """The documents of each turn; nuggets from a file have one turn without documents."""
        if self._banks is not None:
            return [()] if query_id in self._banks else []
        create, ranked, labels = self._section.create, self.labels.ranked(query_id), self.labels.of(query_id)
        assert create is not None
        if labels is None and self.labels.assume:
            labels = dict.fromkeys(ranked, create.from_label)
        return None if labels is None else windows(ranked, labels, from_label=create.from_label, size=create.window)

    def after(self, want: Wanted, result: Result) -> Release:
        """The next turn, the ratings of importance, or the assignments; nothing after a failure."""
        if not isinstance(result, Judgment):
            return Release()
        growing, outcome = self._queries[want.query_id], listed(result)
        if want.task is Task.NUGGETS:
            return self._after_turn(want.query_id, growing, outcome)
        growing.importances[read_span(want.item)] = importances_of(outcome)
        if sum(map(len, growing.importances.values())) < len(growing.texts):
            return Release()
        labels = [label for span in spans(len(growing.texts), self._at_once) for label in growing.importances[span]]
        growing.nuggets = tuple(text for text, _ in settled_nuggets(growing.texts, labels, self._section))
        return Release.all(
            AssignmentSubject(want.query_id, name, span).want(task, self._judge)
            for task, texts in self._assigned_texts.items()
            for name in texts.get(want.query_id, ())
            for span in spans(len(growing.nuggets), self._section.assign.batch)
        )

    def _after_turn(self, query_id: str, growing: _Growing, texts: Sequence[str]) -> Release:
        growing.turns += 1
        growing.texts = listed_nuggets(texts, self._section)
        if growing.turns < len(growing.windows):
            return Release(ready=[Wanted(Task.NUGGETS, self._judge, query_id, str(growing.turns + 1))])
        return Release.all(
            Wanted(Task.IMPORTANCE, self._judge, query_id, write_span(span))
            for span in spans(len(growing.texts), self._at_once)
        )

    @property
    def _judge(self) -> str:
        return self._section.judge

    @property
    def _at_once(self) -> int:
        """Number of nuggets in one rating of importance; a file's nuggets are all rated at once."""
        return BATCH if self._banks is None else max(1, *(len(bank.nuggets) for bank in self._banks.values()))

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt; ``None`` as long as nuggets that it shows are missing."""
        growing, query = self._queries.get(want.query_id), self.data.queries[want.query_id]
        template = self.templates[want.task]
        if growing is None:
            return None
        if want.task is Task.NUGGETS:
            if int(want.item) != growing.turns + 1:
                return None
            assert self._section.create is not None
            window = [self.data.documents[doc_id] for doc_id in growing.windows[growing.turns]]
            return creation_prompt(template, query, window, growing.texts, self._section.create.most)
        if want.task is Task.IMPORTANCE:
            return importance_prompt(template, query, parts(growing.texts, read_span(want.item)))
        subject = AssignmentSubject.of(want)
        nuggets = parts(growing.nuggets, subject.places)
        if want.task is Task.PASSAGE_ASSIGNMENT:
            return assignment_prompt(template, query, self.data.documents[subject.target], nuggets)
        return assignment_prompt(template, query, self.data.answers[want.query_id, subject.target], nuggets)

    def free(self, want: Wanted) -> str | None:
        """Id of a judgment without a call: nuggets from a file, or the assignment of an empty answer."""
        if want.task is Task.PASSAGE_ASSIGNMENT:
            return None
        if want.task is Task.ASSIGNMENT:
            subject = AssignmentSubject.of(want)
            empty = not self.data.answers[want.query_id, subject.target].text.strip()
            return _empty_answer_id(len(subject.places)) if empty else None
        return (
            None if self._banks is None else _given_id(want.task, _bank_outcome(self._banks[want.query_id], want.task))
        )

    def stand_in(self, want: Wanted, prompt: Prompt) -> Judgment:
        """A placeholder result: the maximum number of nuggets, all of maximum length and vital."""
        if want.task is Task.NUGGETS:
            assert self._section.create is not None
            outcome = tuple(f"{number} {_TWELVE_WORDS}" for number in range(self._section.create.most))
        else:
            outcome = (Importance.VITAL.value,) * (prompt.contract.length or 0)
        return Judgment("", outcome, "", "", "")

    def assumptions(self) -> Iterator[str]:
        if self._banks is None:
            yield "nuggets that are not made yet are assumed to be of maximum number and length: an upper bound"

    def settings(self) -> dict[str, Any]:
        return nugget_settings(self._section, self.prompt_names())

    def check(self) -> None:
        """Render a prompt of each task if the user wrote a template."""
        if all(template.is_packaged for template in self.templates.values()):
            return
        query = next(iter(self.data.queries.values()))
        answer = next(iter(self.data.answers.values()), Answer(query.query_id, "", ""))
        documents = list(self.data.documents.values())[:1]
        if (create := self._section.create) is not None:
            for so_far in ((), ("a fact",)):
                creation_prompt(self.templates[Task.NUGGETS], query, documents, so_far, create.most)
            importance_prompt(self.templates[Task.IMPORTANCE], query, ["a fact"])
        if (template := self.templates.get(Task.ASSIGNMENT)) is not None:
            assignment_prompt(template, query, answer, ["a fact"])
        if (template := self.templates.get(Task.PASSAGE_ASSIGNMENT)) is not None:
            assignment_prompt(template, query, next(iter(self.data.documents.values())), ["a fact"])

    def free_judgments(self) -> Iterator[tuple[Task, str, Judgment]]:
        """The judgments without a call: nuggets and importances from a file, and assignments of empty answers."""
        reason = "The answer is empty."
        for length in range(1, self._section.assign.batch + 1):
            labels = (Support.NONE.value,) * length
            yield Task.ASSIGNMENT, "none", _free(_empty_answer_id(length), labels, reason)
        for bank in (self._banks or {}).values():
            for task in (Task.NUGGETS, Task.IMPORTANCE):
                outcome = _bank_outcome(bank, task)
                yield task, "bank", _free(_given_id(task, outcome), outcome, "Given in a file of nuggets.")


def _bank_outcome(bank: NuggetBank, task: Task) -> tuple[str, ...]:
    if task is Task.NUGGETS:
        return tuple(nugget.text for nugget in bank.nuggets)
    return tuple(nugget.importance or "" for nugget in bank.nuggets)


def _given_id(task: Task, outcome: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(["given", task.value, *outcome]).encode()).hexdigest()[:32]


def _empty_answer_id(length: int) -> str:
    return f"empty-answer-{length}"


def _free(ident: str, outcome: tuple[str, ...], reason: str) -> Judgment:
    return Judgment(ident, outcome, reason, "", "none", calls=0, cost_usd=0.0)
