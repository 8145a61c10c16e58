"""The stages of a tournament: what each wants judged, what a result leads to, and how both are read."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from arena.stages.base import TournamentStage

STAGES: Final = {
    "retrieval": "relevance.RelevanceStage",
    "pairwise": "pairwise.pairwise_stage",
    "criteria": "criteria.CriteriaStage",
    "exam": "exam.stage.ExamStage",
    "nuggets": "nuggets.stage.NuggetStage",
}
"""By section of the configuration, in the order in which they are done."""


def stage_of(key: str) -> Callable[..., TournamentStage]:
    """What makes a stage of its section, the configuration, the data and the labels."""
    module, _, name = STAGES[key].rpartition(".")
    made: Callable[..., TournamentStage] = getattr(import_module(f"arena.stages.{module}"), name)
    return made
