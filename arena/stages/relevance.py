"""Relevance stage: judges label retrieved documents; prompts of other stages show documents with high labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from arena.config.judging import RetrievalSection
from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.stages.base import RelevanceLabels, TournamentStage
from arena.store import Result, Wanted
from judges.prompts.tasks import relevance_prompt
from judges.types import Prompt, Task
from retrieval_eval.scores.metrics import default_measures


class RelevanceStage(TournamentStage):
    """Makes each configured judge label each document that an agent retrieved for the query."""

    key = "retrieval"
    leading = (Task.RELEVANCE,)

    def __init__(self, section: RetrievalSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        super().__init__(config, data, labels)
        self._section = section
        assert labels.template is not None
        self.templates = {Task.RELEVANCE: labels.template}

    def first(self, query_id: str) -> Sequence[Wanted]:
        return [
            Wanted(Task.RELEVANCE, judge, query_id, doc_id)
            for doc_id in self.labels.pool(query_id)
            for judge in self._section.judge
        ]

    def after(self, want: Wanted, result: Result) -> Sequence[Wanted]:
        """Record the label; leads to no further judgment, since other stages wait for all labels of a query."""
        self.labels.take(want, result)
        return ()

    def prompt(self, want: Wanted) -> Prompt:
        query, document = self.data.queries[want.query_id], self.data.documents[want.item]
        return relevance_prompt(self.templates[Task.RELEVANCE], query, document)

    def settings(self) -> dict[str, Any]:
        template = self.templates[Task.RELEVANCE]
        settings = super().settings()
        settings["scale"] = {str(word): label for label, word in template.reply.label_words().items()}
        if self._section.measures is None:
            settings["measures"] = default_measures(template.reply.highest_label())
        return settings

    def assumptions(self) -> Iterator[str]:
        sections = [section for section in (self.config.pairwise, self.config.criteria) if section is not None]
        if any(section.documents.include for section in sections) and any(
            self.labels.results.get((query_id, doc_id)) is None
            for query_id in self.data.queries
            for doc_id in self.labels.pool(query_id)
        ):
            yield "answer judges' prompts count every document not labelled yet as relevant: an upper bound"
