"""Criteria stage: a judge grades each answer by itself, by one or several criteria."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arena.config.judging import CriteriaSection
from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.stages.base import RelevanceLabels, TournamentStage, answering
from arena.store import Wanted
from arena.store.rows import GradedSubject
from judges.errors import ConfigError
from judges.prompts import load_prompt
from judges.prompts.tasks import CITATION_QUALITY, Criterion, Need, ReferenceOptions, criteria_prompt
from judges.types import AnnotatedDocument, Prompt, Task

_RANKED_ONLY = ReferenceOptions(annotations=False, ranked=True)
_LACKING: dict[Need, str] = {
    "documents": "the documents that the answer's agent retrieved, and there are none; name them under 'data'",
    "reference": "a reference answer, and no query has one; put it in a column 'reference' beside the queries",
}


class CriteriaStage(TournamentStage):
    """Asks a judge to grade each answer by each criterion; prompts also show the query's relevant documents.

    For criteria that need documents, prompts show the documents that the answer's agent retrieved, in that order: the
    judge sees what the agent could use, and numbered citations refer to the right documents. If an answer lacks
    something that a criterion needs, such as a reference, it is graded by the other criteria only.
    """

    key = "criteria"

    def __init__(self, section: CriteriaSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        super().__init__(config, data, labels)
        self._section = section
        self._criteria = {each.name: each for each in section.listed()}
        self.templates = {Task.CRITERIA: load_prompt(section.prompt, Task.CRITERIA)}
        self.waits_for_labels = not section.own_documents and labels.are_shown(section.documents)
        self._answering = answering(data)

    def first(self, query_id: str) -> Sequence[Wanted]:
        answers = (self._graded(query_id, agent) for agent in self._answering[query_id])
        return [graded.want(Task.CRITERIA, self._section.judge) for graded in answers if graded is not None]

    def _graded(self, query_id: str, agent: str) -> GradedSubject | None:
        available = self._available(query_id, agent)
        names = tuple(name for name, criterion in self._criteria.items() if all(map(available.get, criterion.needs)))
        if len(names) == len(self._criteria):
            return GradedSubject(query_id, agent)
        return GradedSubject(query_id, agent, names) if names else None

    def _available(self, query_id: str, agent: str) -> dict[Need, bool]:
        documents = self._section.own_documents and bool(self.labels.ranked(query_id, agent))
        return {"documents": documents, "reference": self.data.queries[query_id].reference is not None}

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt with the answer and the documents of all agents or, if a criterion needs them, of its agent."""
        graded = GradedSubject.of(want)
        documents, options = self._shown(want.query_id, want.item)
        if documents is None:
            return None
        names, answer = graded.by or tuple(self._criteria), self.data.answers[want.query_id, graded.item]
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

    def shares(self, want: Wanted) -> bool:  # noqa: ARG002
        return not self._section.own_documents

    def _shown(self, query_id: str, agent: str) -> tuple[list[AnnotatedDocument] | None, ReferenceOptions]:
        if not self._section.own_documents:
            return self.labels.shown(query_id, None, self._section.documents), self._section.documents.options()
        ranked = self.labels.ranked(query_id, agent)
        return [AnnotatedDocument(self.data.documents[doc_id]) for doc_id in ranked], _RANKED_ONLY

    def check(self) -> None:
        if not self._section.own_documents:
            self.labels.check_threshold("criteria", self._section.documents)
        for criterion in self._criteria.values():
            for need in criterion.needs:
                self._check_need(criterion, need)
        super().check()

    def _check_need(self, criterion: Criterion, need: Need) -> None:
        """Check that data and prompt have what a criterion needs; agents that will be asked may still supply it."""
        first = next((key for key in self.data.answers if self._available(*key)[need]), None)
        if first is None:
            referred = any(query.reference is not None for query in self.data.queries.values())
            to_come = bool(self.config.agents) or not self.data.answers
            if not (referred if need == "reference" else to_come):
                raise ConfigError(f"criteria.names: {criterion.name!r} is graded against {_LACKING[need]}")
            return
        graded, reference = self._graded(*first), self.data.queries[first[0]].reference
        if need == "documents" or graded is None or reference is None:
            return
        prompt = self.prompt(graded.want(Task.CRITERIA, self._section.judge))
        if prompt is not None and reference not in prompt.system + prompt.user:
            name = self.templates[Task.CRITERIA].name
            raise ConfigError(
                f"criteria.prompt: {name!r} lacks {{{{ query.reference }}}}, which {criterion.name!r} needs; add it"
            )

    def assumptions(self) -> Iterator[str]:
        for criterion in self._criteria.values():
            graded = sum(all(map(self._available(*key).get, criterion.needs)) for key in self.data.answers)
            if note := criterion.left_out(graded, len(self.data.answers)):
                yield note
