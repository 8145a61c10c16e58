"""Ratings of millions of games in seconds: grouped in the database, read as numbers, without a text."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from arena.config.ratings import RatingsSection
from arena.coverage import shortfall
from arena.games.grouped import read_grouped
from arena.leaderboard import Leaderboard, rating_settings
from arena.ratings.games import as_games
from arena.ratings.rate import anchored, rate_games
from arena.samples import combinations
from arena.store import Store
from judges.errors import InputError
from judges.types import Task

LEFT_OUT: Final = (
    "Quick: Bradley-Terry of the pairwise games alone, intervals from the sandwich covariance. Not computed: Elo, "
    "bootstrap, fragility, controlled ratings, the judges' health, agreement and own ratings, costs, other stages; "
    "leave --quick out for them."
)


def quick_leaderboard(store: Store, tournament: str, *, below_coverage: bool = False) -> Leaderboard:
    """Bradley-Terry ratings of a tournament's games with intervals from the sandwich covariance, and nothing else.

    Ratings, coverage and causes of failures are those of ``leaderboard``. There is no bootstrap, no Elo rating, no
    health of judges, and no other stage, as a note says.

    Args:
        store: where the judgments are.
        tournament: its name.
        below_coverage: rate also where less is judged than ``ratings.min_coverage`` asks for.

    Raises:
        InputError: no such tournament, or one whose games are scored by preferences.
    """
    settings = store.settings(tournament)
    how = rating_settings(settings)
    if how.preferences == "soft":
        raise InputError("--quick: it counts verdicts, and ratings.preferences is soft; leave --quick out")
    wanted = read_grouped(store, tournament, combinations(settings))
    games = wanted.table
    lacking = shortfall(games.coverage_by_name(), RatingsSection.model_validate(settings["ratings"]).min_coverage)
    ratings = None
    if games.played.any() and (lacking is None or below_coverage):
        rows = as_games(games.verdicts()) if how.position else games.games(how.win_and_tie)
        chosen, said = anchored(how, rows.agents)
        chosen = replace(chosen, intervals="sandwich", bootstrap=0, tournaments=0, fragility="none")
        rated = rate_games(rows, chosen)
        ratings = replace(rated, notes=(*rated.notes, *said, LEFT_OUT))
    coverage = {Task.PAIRWISE: games.coverage()} if len(games) else {}
    causes = dict(sorted(wanted.causes.items()))
    return Leaderboard(tournament, ratings, {}, {}, coverage, causes, settings, shortfall=lacking)
