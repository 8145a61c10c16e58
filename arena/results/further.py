"""Results of the stages that define their own section, read by the module that each names."""

from __future__ import annotations

from importlib import import_module

from msgspec import Struct

from arena.config.settings import StoredSettings
from arena.config.stages import further_stages, require_stages
from arena.store import Store
from retrieval_eval.stats.scores import Scores


class StageResults(Struct, frozen=True, eq=False):
    """Results of a stage; subclasses add what only their board shows.

    Attributes:
        scores: its scores of the agents; the first stands for the stage.
    """

    scores: tuple[Scores, ...] = ()


def further_results(
    store: Store, tournament: str, settings: StoredSettings, *, scored: bool = False
) -> dict[str, StageResults]:
    """Results of these stages by section; ``scored`` skips stages without scores.

    Raises:
        InputError: a stage that judged here is not installed.
    """
    require_stages(settings.stages)
    return {
        key: import_module(stage.results).results(store, tournament)
        for key, stage in further_stages().items()
        if key in settings.further and (stage.scores or not scored)
    }
