"""Ratings of a tournament controlled for qualities of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from arena.data.dataset import Dataset
from arena.ratings.games import VerdictTable, as_games
from arena.stages.ratable import answer_differences

if TYPE_CHECKING:
    from arena.ratings.covariates import Controlled
    from arena.ratings.results import RatingSettings


def controlled_for(names: Sequence[str], verdicts: VerdictTable, data: Dataset, settings: RatingSettings) -> Controlled:
    """Ratings controlled for some of the ``QUALITIES`` of answers; every verdict is a game.

    Raises:
        ValueError: these verdicts cannot tell the effects, as ``controlled_ratings`` says.
    """
    from arena.ratings.covariates import controlled_ratings

    games = as_games(verdicts, soft=settings.preferences == "soft")
    by_query = games if verdicts.clusters is None else replace(games, cluster=verdicts.query)
    differences = answer_differences(names, by_query, verdicts.queries or (), data)
    return controlled_ratings(games, differences, settings.bradley_terry, by_query=settings.cluster)
