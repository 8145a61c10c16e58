"""Stage that writes synthetic queries about passages, then checks as many as the quotas need."""

from __future__ import annotations

from typing import Any

from arena.data.corpus import CorpusReading, read_passages
from arena.stages.base import Release, Stage
from arena.stages.queries.candidates import (
    Candidate,
    candidate,
    drawn,
    filtered,
    read_examples,
    sampled_passages,
    to_be_checked,
)
from arena.stages.queries.config import SynthConfig
from arena.store import Result, Wanted
from judges.prompts import load_prompt
from judges.prompts.tasks import answerable_prompt, queries_prompt
from judges.types import Judgment, Prompt, Query, Task

_TO_COME = "a query of as many words as people need to ask for what they want to know"
"""Placeholder query for plans; a model's name and a number are put before it so that all queries differ."""


class QueriesStage(Stage):
    """Writes queries about passages, and checks whether the passages answer them.

    ``after`` only records results. Which queries to check depends on all results together, so the caller calls
    ``next_checks`` once no judgment is open.

    Args:
        reading: receives counts of the documents read.

    Attributes:
        passages: the sampled passages, by id.
        candidates: the written queries in random order; complete only after all are written.

    Raises:
        InputError: documents, examples or prompts cannot be used, or no document has text.
    """

    leading = (Task.QUERIES, Task.ANSWERABLE)

    def __init__(self, config: SynthConfig, reading: CorpusReading) -> None:
        section = config.synth
        self.config = config
        self.examples = read_examples(section.examples)
        read = read_passages(section.documents, section.passages, section.limits, reading)
        sampled = sampled_passages(read, section.sample.passages, section.sample.seed)
        self.passages = {passage.doc_id: passage for passage in sampled}
        self.templates = {
            Task.QUERIES: load_prompt(section.prompt, Task.QUERIES),
            Task.ANSWERABLE: load_prompt(section.filters.prompt, Task.ANSWERABLE),
        }
        self.candidates: list[Candidate] = []
        self._by_id: dict[str, Candidate] = {}
        self._written: dict[Wanted, Result] = {}
        self._checked: dict[str, Result | None] = {}

    def wants(self) -> list[Wanted]:
        models = self.config.synth.models
        return [Wanted(Task.QUERIES, model, passage, "") for passage in self.passages for model in models]

    def prompt(self, want: Wanted) -> Prompt:
        if want.task is Task.ANSWERABLE:
            asked = self._by_id[want.query_id]
            return answerable_prompt(self.templates[want.task], Query(asked.query_id, asked.text), asked.passage)
        section, passage = self.config.synth, self.passages[want.query_id]
        shown = drawn(self.examples, section.sample.seed, lambda text: f"{passage.doc_id}\0{text}")[: section.shots]
        return queries_prompt(self.templates[want.task], passage, section.per_passage, shown)

    def after(self, want: Wanted, result: Result) -> Release:
        """Record the result; leads to nothing, see ``next_checks``."""
        if want.task is Task.QUERIES:
            self._written[want] = result
        else:
            self._checked[want.query_id] = result
        return Release()

    def next_checks(self) -> list[Wanted]:
        """The next checks to make, to be called when no judgment is open; empty if no check is left."""
        section = self.config.synth
        if not self.candidates:
            self.candidates = self._drawn()
            self._by_id = {each.query_id: each for each in self.candidates}
        if section.filters.answerable is None:
            return []
        answered = {query_id: _answers(result) for query_id, result in self._checked.items()}
        asked = list(to_be_checked(self.candidates, section.quotas, answered))
        self._checked |= {each.query_id: None for each in asked}
        return [
            Wanted(Task.ANSWERABLE, section.filters.answerable, each.query_id, each.passage.doc_id) for each in asked
        ]

    def _drawn(self) -> list[Candidate]:
        section, template = self.config.synth, self.templates[Task.QUERIES]
        written: list[Candidate] = []
        to_come: list[Candidate] = []
        for want, result in self._written.items():
            if isinstance(result, Judgment) and isinstance(result.outcome, tuple):
                passage = self.passages[want.query_id]
                prompt = f"{template.name}@{template.version}"
                batch = [candidate(text, passage, want.judge, result.model, prompt) for text in result.outcome]
                (written if result.judgment_id else to_come).extend(batch)
        marked = filtered(written, self.examples, section.sample.seed, section.filters)
        return drawn([*marked, *to_come], section.sample.seed, lambda each: each.query_id)

    def checked(self) -> list[Candidate]:
        return [self._judged(each) if each.query_id in self._checked else each for each in self.candidates]

    def _judged(self, each: Candidate) -> Candidate:
        result = self._checked[each.query_id]
        if (answers := _answers(result)) is None:
            return each.without("unchecked", _detail(result))
        return each if answers else each.without("unanswerable", _detail(result))

    def stand_in(self, want: Wanted, _prompt: Prompt) -> Result:
        outcome: Any = 1
        if want.task is Task.QUERIES:
            outcome = tuple(f"{want.judge} {number}: {_TO_COME}" for number in range(self.config.synth.per_passage))
        return Judgment("", outcome, "", "", "", calls=0)

    def settings(self) -> dict[str, Any]:
        """The settings that determine replies, as stored; without paths or secrets."""
        include = {"models", "per_passage", "shots", "sample", "passages"}
        kept = self.config.synth.model_dump(mode="json", include=include)
        return {"synth": {**kept, "prompts": {each.name: each.digest for each in self.templates.values()}}}


def _answers(result: Result | None) -> bool | None:
    return result.outcome == 1 if isinstance(result, Judgment) else None


def _detail(result: Result | None) -> str:
    if isinstance(result, Judgment):
        return result.reason
    return "not asked" if result is None else f"{result.cause}: {result.message}"
