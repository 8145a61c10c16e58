"""Scores stage: scores that the answers bring along, such as ragas'; nothing is asked of a judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import Field

from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.data.scored import scores_in
from arena.stages.base import RelevanceLabels, TournamentStage
from arena.store import Wanted
from judges import sections
from judges.errors import ConfigError


class AnswerScoresSection(sections.Section):
    """Shows [scores that exist already](scores.md#in-a-tournament): columns of the answers. No judge is asked."""

    columns: list[str] = Field(min_length=1)
    """The columns of the answers with the scores, as numbers; the first is the main one."""
    lower: list[str] = Field(default_factory=list)
    """Those of them of which lower is better."""

    @property
    def judges(self) -> list[str]:
        """No judge."""
        return []


SECTION: Final = AnswerScoresSection


class AnswerScoresStage(TournamentStage):
    """Plans no judgment."""

    key = "answer_scores"
    templates = {}

    def __init__(self, section: AnswerScoresSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        super().__init__(config, data, labels)
        self._section = section

    def first(self, query_id: str) -> Sequence[Wanted]:  # noqa: ARG002 - there is nothing to ask of any query
        return ()

    def check(self) -> None:
        if unknown := [name for name in self._section.lower if name not in self._section.columns]:
            raise ConfigError(f"answer_scores.lower: {unknown[0]!r} is not one of 'columns'; add it there")
        for name in self._section.columns:
            if not scores_in(self.data, name):
                raise ConfigError(
                    f"answer_scores.columns: no answer has a number as {name!r}; name columns of the answers"
                )
