"""Criteria: a judge grades every answer by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from arena.config.judging import CriteriaSection
from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.stages.base import Release, TournamentStage
from arena.stages.labels import RelevanceLabels
from arena.stages.schedule import answering
from arena.store import Wanted
from arena.store.subjects import AnswerSubject, GradedSubject
from judges.errors import ConfigError
from judges.prompts import load_prompt
from judges.prompts.tasks import CITATION_QUALITY, Criterion, Need, ReferenceOptions, criteria_prompt
from judges.types import AnnotatedDocument, Prompt, Task

_OWN = ReferenceOptions(annotations=False, ranked=True)
_LACKING: dict[Need, str] = {
    "documents": "the documents that the answer's agent retrieved, and there are none; name them under 'data'",
    "reference": "a reference answer, and no query has one; put it in a column 'reference' beside the queries",
}


class CriteriaStage(TournamentStage):
    """One grade per criterion of every answer, with the query's relevant documents at hand.

    A criterion that needs documents shows those that the answer's own agent retrieved, in their order: so an answer is
    held against what its agent had to go by, and citations by number are about the right documents. An answer that
    lacks what a criterion needs is graded by the others alone.
    """

    key = "criteria"

    def __init__(self, section: CriteriaSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        super().__init__(config, data, labels)
        self._section = section
        self._criteria = {each.name: each for each in section.listed()}
        self.templates = {Task.CRITERIA: load_prompt(section.prompt, Task.CRITERIA)}
        self.waits_for_labels = not section.own_documents and labels.are_shown(section.documents)
        self._answering = answering(data)

    def first(self, query_id: str) -> Release:
        """All answers at once."""
        answers = (self._graded(query_id, agent) for agent in self._answering[query_id])
        return Release.all(graded.want(self._section.judge) for graded in answers if graded is not None)

    def _graded(self, query_id: str, agent: str) -> GradedSubject | None:
        there = tuple(
            name for name, own in self._criteria.items() if all(map(self._have(query_id, agent).get, own.needs))
        )
        if len(there) == len(self._criteria):
            return GradedSubject(query_id, agent)
        return GradedSubject(query_id, agent, there) if there else None

    def _have(self, query_id: str, agent: str) -> dict[Need, bool]:
        documents = self._section.own_documents and bool(self.labels.ranked(query_id, agent))
        return {"documents": documents, "reference": self.data.queries[query_id].reference is not None}

    def prompt(self, want: Wanted) -> Prompt | None:
        """One answer, and the documents that any agent retrieved, or those of its own agent."""
        graded = GradedSubject.of(want)
        documents, options = self._shown(*AnswerSubject.of(want))
        if documents is None:
            return None
        names, answer = graded.criteria or tuple(self._criteria), self.data.answers[want.query_id, graded.agent]
        if CITATION_QUALITY in names:
            answer = self.data.renumbered(answer, [entry.document.doc_id for entry in documents])
        return criteria_prompt(
            self.templates[Task.CRITERIA],
            self.data.queries[want.query_id],
            answer,
            documents,
            criteria=[self._criteria[name] for name in names],
            scale=self._section.scale,
            options=options,
        )

    def _shown(self, query_id: str, agent: str) -> tuple[list[AnnotatedDocument] | None, ReferenceOptions]:
        if not self._section.own_documents:
            return self.labels.shown(query_id, None, self._section.documents), self._section.documents.options()
        ranked = self.labels.ranked(query_id, agent)
        return [AnnotatedDocument(self.data.documents[doc_id]) for doc_id in ranked], _OWN

    def check(self) -> None:
        """Besides the prompt: can documents reach the threshold, and is what criteria need there and shown."""
        if not self._section.own_documents:
            self.labels.check_threshold("criteria", self._section.documents)
        for criterion in self._criteria.values():
            for need in criterion.needs:
                self._check_need(criterion, need)
        super().check()

    def _check_need(self, criterion: Criterion, need: Need) -> None:
        """Agents that are yet to be asked may bring documents along, and answers to other queries."""
        first = next((key for key in self.data.answers if self._have(*key)[need]), None)
        if first is None:
            referred = any(query.reference is not None for query in self.data.queries.values())
            to_come = bool(self.config.agents) or not self.data.answers
            if not (referred if need == "reference" else to_come):
                raise ConfigError(f"criteria.names: {criterion.name!r} is graded against {_LACKING[need]}")
            return
        graded, reference = self._graded(*first), self.data.queries[first[0]].reference
        if need == "documents" or graded is None or reference is None:
            return
        prompt = self.prompt(graded.want(self._section.judge))
        if prompt is not None and reference not in prompt.system + prompt.user:
            name = self.templates[Task.CRITERIA].name
            raise ConfigError(
                f"criteria.prompt: {name!r} lacks {{{{ query.reference }}}}, which {criterion.name!r} needs"
            )

    def settings(self) -> dict[str, Any]:
        """Without the needs that there are not: earlier stores know none."""
        settings = super().settings()
        if isinstance(settings["names"], dict):
            for said in settings["names"].values():
                if isinstance(said, dict) and not said["needs"]:
                    del said["needs"]
        return settings

    def assumptions(self) -> Iterator[str]:
        """What is not graded by a criterion."""
        for criterion in self._criteria.values():
            graded = sum(all(map(self._have(*key).get, criterion.needs)) for key in self.data.answers)
            if said := criterion.left_out(graded, len(self.data.answers)):
                yield said
