"""Ratings of a tournament, controlled for qualities of the answers such as their length."""

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
    """Ratings controlled for the named ``QUALITIES`` of answers; every verdict counts as a game.

    Raises:
        ValueError: the effects cannot be estimated from these verdicts, see ``controlled_ratings``.
    """
    from arena.ratings.covariates import controlled_ratings

    games = as_games(verdicts, soft=settings.preferences == "soft")
    by_query = games if verdicts.clusters is None else replace(games, cluster=verdicts.query)
    differences = answer_differences(names, by_query, verdicts.queries or (), data)
    return controlled_ratings(games, differences, settings.bradley_terry, by_query=settings.cluster)
