"""Ratings of millions of games in seconds: grouped in the database, read as numbers, without a text."""

from __future__ import annotations

from dataclasses import replace

from arena.config import RatingsSection
from arena.coverage import shortfall
from arena.games.grouped import read_grouped
from arena.leaderboard import Leaderboard, rating_settings
from arena.ratings.rate import rate_games
from arena.store import Store
from judges.errors import InputError
from judges.types import Task


def quick_leaderboard(store: Store, tournament: str, *, below_coverage: bool = False) -> Leaderboard:
    """Bradley-Terry ratings of a tournament's games with intervals from the sandwich covariance, and nothing else.

    The ratings are those of ``leaderboard``. There is no bootstrap, no Elo rating, no health of judges, and no other
    stage.

    Args:
        store: where the judgments are.
        tournament: its name.
        below_coverage: rate also where less is judged than ``ratings.min_coverage`` asks for.

    Raises:
        InputError: no such tournament, or one whose judges are asked several times.
    """
    settings = store.settings(tournament)
    several = [name for name, judge in (settings.get("judges") or {}).items() if judge.get("samples", 1) > 1]
    if several:
        raise InputError(f"{tournament!r}: judge {several[0]!r} is asked several times; leave --quick out")
    games = read_grouped(store, tournament)
    lacking = shortfall(games.coverage_by_name(), RatingsSection.model_validate(settings["ratings"]).min_coverage)
    ratings = None
    if games.played.any() and (lacking is None or below_coverage):
        how = rating_settings(settings)
        chosen = replace(how, intervals="sandwich", bootstrap=0, tournaments=0, fragility="none")
        ratings = rate_games(games.games(how.win_and_tie), chosen)
    coverage = {Task.PAIRWISE: games.coverage()} if len(games) else {}
    return Leaderboard(tournament, ratings, {}, {}, coverage, {}, settings, shortfall=lacking)
