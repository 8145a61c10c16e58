"""Results of the audit: points that judges gave to answers that cheat, and the rank that these points would earn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from arena.calibration.cheats import COPIES, rating_for
from arena.ratings.rate import rate
from arena.ratings.results import Ratings
from arena.results.cache import cached_games
from arena.results.outcomes import StageResults, outcomes
from arena.results.ratings import rating_settings
from arena.stages.audit import AUDIT
from arena.store import Store
from judges.types import GAME_OUTCOMES, Judgment
from retrieval_eval.stats.bootstrap import Clusters, share_estimate, units_of
from retrieval_eval.stats.estimate import Estimate


class AuditResults(StageResults, frozen=True, eq=False, kw_only=True):
    """The points that each judge gave to each kind of cheating answer.

    Attributes:
        rows: one row per judge and cheat, with ``judge``, ``canary``, ``queries`` (number of games with verdicts in
            both orders), ``missing`` (number of other games), ``points`` (share of the points that the cheat won, a tie
            counts half), ``fair`` (the share that it deserves), ``given`` (points minus fair) and ``rank`` (the rank
            among the agents that these points would give it).
    """

    rows: Sequence[Mapping[str, Any]]


def results(store: Store, tournament: str) -> AuditResults:
    settings, games = store.settings(tournament), cached_games(store, tournament)
    options = replace(rating_settings(settings), intervals="sandwich", bootstrap=0, tournaments=0, fragility="none")
    rated = rate(games.verdicts(), options) if games.played.any() else None
    points: defaultdict[tuple[str, str], dict[tuple[str, str], dict[str, float]]] = defaultdict(dict)
    for want, result in outcomes(store, tournament, AUDIT):
        orders = points[want.judge, want.item].setdefault((want.query_id, want.other), {})
        if isinstance(result, Judgment):
            won = GAME_OUTCOMES[str(result.outcome)].points
            orders[want.order] = won if want.order == "ab" else 1 - won
    return AuditResults(rows=[_row(key, orders, rated, games.clusters) for key, orders in points.items()])


def _row(
    key: tuple[str, str],
    games: Mapping[tuple[str, str], Mapping[str, float]],
    rated: Ratings | None,
    clusters: Clusters,
) -> dict[str, Any]:
    judge, canary = key
    ratings = {} if rated is None else {row.agent: row.bt for row in rated.agents}
    scored_games = {game: sum(orders.values()) / 2 for game, orders in games.items() if len(orders) == 2}
    unit = units_of([clusters.get(game[0], repr(game)) for game in scored_games])
    share = share_estimate(np.bincount(unit, [*scored_games.values()]), np.bincount(unit))
    fair = 0.5 if canary in COPIES else 0.0
    met = [ratings[agent] for _, agent in scored_games if agent in ratings]
    model: dict[str, Any] = {}
    if rated is not None:
        model = {"ties": rated.settings.tie_model, "tie_parameter": rated.tie_parameter, "scale": rated.settings.scale}
    places = [_place(rating_for(end, met, **model), ratings) for end in (share.value, share.high, share.low)]
    rank = None
    if places[0] is not None:
        rank = f"{places[0]} of {len(ratings) + 1}"
        rank += f" ({places[1]} to {places[2]})" if None not in places and places[1] != places[2] else ""
    value, low, high = (None if end is None else end - fair for end in (share.value, share.low, share.high))
    return {
        "judge": judge,
        "canary": canary,
        "queries": len(scored_games),
        "missing": len(games) - len(scored_games),
        "points": share,
        "fair": fair,
        "given": Estimate(value, low, high),
        "rank": rank,
    }


def _place(rating: float | None, ratings: Mapping[str, float]) -> int | None:
    return (
        None if rating is None or not ratings else 1 + sum(agent_rating > rating for agent_rating in ratings.values())
    )
