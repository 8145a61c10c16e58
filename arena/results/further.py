"""Reads the results of stages with a separate configuration section, using the module that each stage names."""

from __future__ import annotations

from importlib import import_module

from msgspec import Struct

from arena.config.settings import StoredSettings
from arena.config.stages import further_stages, require_stages
from arena.store import Store
from retrieval_eval.stats.scores import Scores


class StageResults(Struct, frozen=True, eq=False):
    """Results of a stage; subclasses add the figures that only this stage's board shows.

    Attributes:
        scores: the stage's scores of the agents, its main score first.
    """

    scores: tuple[Scores, ...] = ()


def further_results(
    store: Store, tournament: str, settings: StoredSettings, *, scored: bool = False
) -> dict[str, StageResults]:
    """Results of the stages with a separate section, by section; ``scored`` skips stages without scores.

    Raises:
        InputError: a stage that made judgments in this tournament is not installed.
    """
    require_stages(settings.stages)
    return {
        key: import_module(stage.results).results(store, tournament)
        for key, stage in further_stages().items()
        if key in settings.further and (stage.scores or not scored)
    }
