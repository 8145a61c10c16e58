"""Criteria: a judge grades every answer by itself."""

from __future__ import annotations

from arena.config.judging import CriteriaSection
from arena.config.whole import Config
from arena.data.dataset import Dataset
from arena.stages.base import Release, TournamentStage
from arena.stages.labels import Labels
from arena.stages.schedule import answering
from arena.store import Wanted
from arena.store.subjects import AnswerSubject
from judges.prompts import load_prompt
from judges.prompts.tasks import criteria_prompt
from judges.types import Prompt, Task


class CriteriaStage(TournamentStage):
    """One grade per criterion of every answer, with the query's relevant documents at hand."""

    key = "criteria"

    def __init__(self, section: CriteriaSection, config: Config, data: Dataset, labels: Labels) -> None:
        super().__init__(config, data, labels)
        self._section = section
        self.templates = {Task.CRITERIA: load_prompt(section.prompt, Task.CRITERIA)}
        self.waits_for_labels = labels.are_shown(section.documents)
        self._answering = answering(data)

    def first(self, query_id: str) -> Release:
        """All answers at once."""
        answers = (AnswerSubject(query_id, agent) for agent in self._answering[query_id])
        return Release.all(answer.want(Task.CRITERIA, self._section.judge) for answer in answers)

    def prompt(self, want: Wanted) -> Prompt | None:
        """One answer, and the documents that any agent retrieved."""
        documents = self.labels.shown(want.query_id, None, self._section.documents)
        if documents is None:
            return None
        return criteria_prompt(
            self.templates[Task.CRITERIA],
            self.data.queries[want.query_id],
            self.data.answers[AnswerSubject.of(want)],
            documents,
            criteria=self._section.listed(),
            scale=self._section.scale,
            options=self._section.documents.options(),
        )

    def check(self) -> None:
        """Besides the prompt: can documents reach the threshold."""
        self.labels.check_threshold("criteria", self._section.documents)
        super().check()
