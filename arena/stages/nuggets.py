"""Nugget stage: makes nuggets from relevant documents or reads them, and assigns them to answers and documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from arena.config.judging import NuggetAssignmentSection, NuggetsSection
from arena.data.dataset import Dataset
from arena.stages.base import RelevanceLabels, TournamentStage, answering, file_digest
from arena.store import Result, Wanted
from arena.store.rows import AssignmentSubject, parts, read_span, write_span
from judges.errors import ConfigError, DataError
from judges.prompts import load_prompt
from judges.prompts.tasks import assignment_prompt, creation_prompt, importance_prompt
from judges.refusals import SAYS_SO
from judges.types import Answer, Judgment, Prompt, Task
from retrieval_eval.nuggets.types import (
    BATCH,
    Importance,
    NuggetBank,
    Support,
    kept_nuggets,
    make_nuggets,
    updated_list,
    windows,
)

if TYPE_CHECKING:
    from arena.config.schema import Config

_TWELVE_WORDS = "a fact of the greatest length that the prompt allows a nugget"
"""Placeholder nugget of twelve words for plans, which put a number before it so that all nuggets differ."""


class QueryNuggets(Struct, dict=True):
    """One query's nuggets and their assignments, as far as judges have made them.

    During a run, ``take`` gets every result when it arrives; when a store is read, it gets the stored results in order.

    Attributes:
        importances: the importance of nuggets, by the range of their positions in ``texts``.
        labels: assignment labels by task and name of an answer or document, then by position in ``settled``.
        repetitions: the judge's reasons for leaving out nuggets that repeat another.
    """

    section: NuggetsSection
    texts: tuple[str, ...] = ()
    turns: int = 0
    importances: dict[range, tuple[Importance | None, ...]] = field(default_factory=dict)
    labels: dict[tuple[Task, str], dict[int, Support]] = field(default_factory=dict)
    repetitions: list[str] = field(default_factory=list)
    failed: set[Task] = field(default_factory=set)
    waiting: set[Task] = field(default_factory=set)

    def take(self, want: Wanted, result: Result | None) -> None:
        if not isinstance(result, Judgment):
            (self.waiting if result is None else self.failed).add(want.task)
            return
        assert isinstance(result.outcome, tuple)
        if want.task is Task.NUGGETS:
            create = self.section.create
            self.turns += 1
            self.texts = result.outcome if create is None else updated_list(result.outcome, most=create.most)
            self.repetitions += [result.reason] if create is not None and result.reason else []
        elif want.task is Task.IMPORTANCE:  # a nugget from a file may have none
            labels = tuple(Importance(label) if label else None for label in result.outcome)
            self.importances[read_span(want.item)] = labels
        else:
            subject = AssignmentSubject.of(want)
            labelled = zip(subject.places, map(Support, result.outcome), strict=False)
            self.labels.setdefault((want.task, subject.target), {}).update(labelled)

    @property
    def rated(self) -> bool:
        return sum(map(len, self.importances.values())) == len(self.texts)

    @cached_property
    def settled(self) -> list[tuple[str, Importance | None]]:
        """The final nuggets with their importance: all nuggets of a file, or the first ones of a judge's list."""
        spans_in_order = sorted(self.importances, key=lambda span: span.start)
        labels = [label for span in spans_in_order for label in self.importances[span]]
        known = [label for label in labels if label is not None]
        if self.section.create is None or len(known) < len(labels):
            return list(zip(self.texts, labels, strict=True))
        return [(text, label) for text, label in kept_nuggets(self.texts, known, keep=self.section.keep)]

    def lacking(self, *, rated: bool = True) -> str | None:
        """Reason why the nuggets are not final; ``None`` if they are. Without ``rated``, they need no importance."""
        if Task.NUGGETS in self.failed:
            return "a turn of making its nuggets failed"
        if Task.NUGGETS in self.waiting:
            return "its nuggets are not made yet"
        if rated and Task.IMPORTANCE in self.failed:
            return "the importance of its nuggets failed"
        return "the importance of its nuggets is not judged yet" if rated and not self.rated else None


class NuggetStage(TournamentStage):
    """Makes nuggets in several turns, rates their importance, and assigns them to texts, several nuggets in a call.

    A failure ends the work on its query, since nuggets from only some documents, or without importance, are not what
    the configuration requests. Nuggets from a file are stored as judgments without a call, and no turns are needed.
    """

    key = "nuggets"
    leading = (Task.NUGGETS, Task.IMPORTANCE)
    in_turn = (Task.NUGGETS,)

    def __init__(self, section: NuggetsSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        super().__init__(config, data, labels)
        self._section = section
        self._banks = read_bank(section, data)
        self._given = told_banks(section, data) | (self._banks or {})
        self.waits_for_labels = self._banks is None
        named = section.assign.prompts()
        if section.create is not None:
            named |= {Task.NUGGETS: section.create.prompt, Task.IMPORTANCE: section.create.importance_prompt}
        self.templates = {task: load_prompt(name, task) for task, name in named.items()}
        self._assigned_texts = self._texts_to_assign()
        self._check_grades()
        self._turns: dict[str, Sequence[Sequence[str]]] = {}
        self._made: dict[str, QueryNuggets] = {}

    def _texts_to_assign(self) -> dict[Task, Mapping[str, Sequence[str]]]:
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
            if (number := len(set(words.values()))) != (grades := self._section.assign.grades):
                raise ConfigError(
                    f"nuggets.assign.grades: {grades}, but the prompt {template.name!r} has {number} grades; change one"
                )

    @property
    def tasks(self) -> list[Task]:
        return [Task.NUGGETS, Task.IMPORTANCE, *self._assigned_texts]

    def first(self, query_id: str) -> Sequence[Wanted]:
        """The turns of making nuggets, once all the query's documents have labels; empty while labels may come."""
        if query_id not in self._turns:
            if (read := self._windows(query_id)) is None:
                return ()
            self._turns[query_id], self._made[query_id] = read, QueryNuggets(self._section)
        return [self._turn(query_id, number) for number in range(1, len(self._turns[query_id]) + 1)]

    def _turn(self, query_id: str, number: int) -> Wanted:
        return Wanted(Task.NUGGETS, self._section.judge, query_id, str(number))

    def _windows(self, query_id: str) -> Sequence[Sequence[str]] | None:
        """The documents that each turn of making nuggets shows; nuggets from a file need one turn without documents."""
        if query_id in self._given:
            return [()]
        if self._banks is not None:
            return []
        create, ranked, labels = self._section.create, self.labels.ranked(query_id), self.labels.of(query_id)
        assert create is not None
        if labels is None and self.labels.assume:
            labels = dict.fromkeys(ranked, create.from_label)
        return None if labels is None else windows(ranked, labels, from_label=create.from_label, size=create.window)

    def after(self, want: Wanted, result: Result) -> Sequence[Wanted]:
        """The next turn of making nuggets, the ratings of importance, or the assignments; nothing after a failure."""
        made, query_id, judge = self._made[want.query_id], want.query_id, self._section.judge
        made.take(want, result)
        if made.failed:
            return ()
        if want.task is Task.NUGGETS:
            if made.turns < len(self._turns[query_id]):
                return [self._turn(query_id, made.turns + 1)]
            places = spans(len(made.texts), BATCH if self._banks is None else max(1, len(made.texts)))
            return [Wanted(Task.IMPORTANCE, judge, query_id, write_span(span)) for span in places]
        if not made.rated:
            return ()
        return [
            AssignmentSubject(query_id, name, span).want(task, judge)
            for task, texts in self._assigned_texts.items()
            if task is Task.ASSIGNMENT or not is_told_of(made.texts)
            for name in texts.get(query_id, ())
            for span in spans(len(made.settled), self._section.assign.batch)
        ]

    def prompt(self, want: Wanted) -> Prompt | None:
        made, query = self._made.get(want.query_id), self.data.queries[want.query_id]
        template = self.templates[want.task]
        if made is None:
            return None
        if want.task is Task.NUGGETS:
            if int(want.item) != made.turns + 1:
                return None
            assert self._section.create is not None
            window = [self.data.documents[doc_id] for doc_id in self._turns[want.query_id][made.turns]]
            return creation_prompt(template, query, window, made.texts, self._section.create.most)
        if want.task is Task.IMPORTANCE:
            return importance_prompt(template, query, parts(made.texts, read_span(want.item)))
        subject = AssignmentSubject.of(want)
        nuggets = parts([text for text, _ in made.settled], subject.places)
        if want.task is Task.PASSAGE_ASSIGNMENT:
            return assignment_prompt(template, query, self.data.documents[subject.target], nuggets)
        return assignment_prompt(template, query, self.data.answers[want.query_id, subject.target], nuggets)

    def shares(self, want: Wanted) -> bool:
        if want.task is Task.PASSAGE_ASSIGNMENT:  # otherwise, each passage is shown once
            return len(self._made[want.query_id].settled) > self._section.assign.batch
        return want.task is not Task.NUGGETS

    def free(self, want: Wanted) -> str | None:
        """Id of a judgment that needs no call: nuggets from a file, or the assignment of nuggets to an empty answer."""
        if want.task is Task.PASSAGE_ASSIGNMENT:
            return None
        if want.task is Task.ASSIGNMENT:
            subject = AssignmentSubject.of(want)
            empty = not self.data.answers[want.query_id, subject.target].text.strip()
            return _empty_answer_id(len(subject.places)) if empty else None
        bank = self._given.get(want.query_id)
        return None if bank is None else _given_id(want.task, _bank_outcome(bank, want.task))

    def stand_in(self, want: Wanted, prompt: Prompt) -> Judgment:
        """A placeholder result for plans: the maximum number of nuggets, all of maximum length and vital."""
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
        section, prompts = self._section, self.prompt_names()
        settings = section.model_dump(mode="json", exclude={"bank"} if section.bank is None else {"bank", "keep"})
        settings["assign"]["prompt"] = prompts.get(Task.ASSIGNMENT)
        settings["assign"]["passage_prompt"] = prompts.get(Task.PASSAGE_ASSIGNMENT)
        if section.create is not None:
            settings["create"] |= {"prompt": prompts[Task.NUGGETS], "importance_prompt": prompts[Task.IMPORTANCE]}
        if section.bank is not None:
            settings["bank"] = file_digest(section.bank)
        return settings

    def check(self) -> None:
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
        """The judgments that need no call: nuggets and importances from a file, and assignments to empty answers."""
        reason = "The answer is empty."
        for length in range(1, self._section.assign.batch + 1):
            labels = (Support.NONE.value,) * length
            yield Task.ASSIGNMENT, "none", _free(_empty_answer_id(length), labels, reason)
        for bank in self._given.values():
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


def read_bank(section: NuggetsSection, data: Dataset) -> dict[str, NuggetBank] | None:
    """The nuggets in the configured file, by id of the queries in the dataset; ``None`` if no file is configured.

    Raises:
        DataError: the file cannot be read, or has nuggets for none of the queries.
    """
    from retrieval_eval.nuggets.files import read_banks  # late: results of stored judgments read no files

    if section.bank is None:
        return None
    banks = {bank.query_id: bank for bank in read_banks(section.bank) if bank.query_id in data.queries}
    if not banks:
        raise DataError(
            section.bank, "has nuggets for none of the queries; check that it uses the query ids of the data"
        )
    return banks


def told_banks(section: NuggetsSection, data: Dataset) -> dict[str, NuggetBank]:
    """The nugget of each query that nothing in the documents answers: that the answer says so."""
    if "answers" not in section.assign.texts:
        return {}
    return {
        name: NuggetBank(name, query.text, make_nuggets(name, [SAYS_SO], [Importance.VITAL]))
        for name, query in data.queries.items()
        if query.answerability == "unanswerable"
    }


def is_told_of(texts: Sequence[str]) -> bool:
    """Whether these are the nuggets of ``told_banks``; no document can state them."""
    return tuple(texts) == (SAYS_SO,)


def spans(number: int, size: int) -> list[range]:
    """Divide the numbers 1 to ``number`` into consecutive ranges of at most ``size``."""
    return [range(start, min(start + size, number + 1)) for start in range(1, number + 1, size)]


DEPTH = 20


def depth_of(section: NuggetAssignmentSection) -> int:
    return section.depth or DEPTH


def retrieved_documents(data: Dataset, section: NuggetAssignmentSection) -> dict[str, list[str]]:
    """Ids of the documents that agents retrieved down to the configured depth, by query; each document once."""
    documents = {query_id: list[str]() for query_id in data.queries}
    for (query_id, _), ranking in data.rankings.items():
        first = ranking[: depth_of(section)]
        documents[query_id] += [doc_id for doc_id in first if doc_id not in documents[query_id]]
    if not any(documents.values()):
        raise ConfigError(
            "nuggets.assign.texts: nuggets are to be assigned to 'documents', and 'data' names none; "
            "add files of documents, or write 'answers' here"
        )
    return documents
