"""Health of a judge: consistency between orders, bias for the first place and for length, ties, circular triples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from arena.ratings.bradley_terry import BradleyTerry, BradleyTerrySettings, bradley_terry, sandwich
from arena.ratings.counts import pair_counts
from arena.ratings.existence import position_identified
from arena.ratings.games import (
    NO_SPREAD,
    Games,
    GameVerdict,
    VerdictTable,
    as_games,
    number_distinct,
    reconcile,
    tabulate,
)
from arena.ratings.likelihood import TieModel
from arena.ratings.pairs import win_matrix
from arena.ratings.results import JudgeHealth
from retrieval_eval.stats.arrays import Int32s
from retrieval_eval.stats.bootstrap import share_estimate, student
from retrieval_eval.stats.estimate import Estimate

Lengths = Mapping[tuple[str, str], float]
"""Length of each answer, in any unit, by (query_id, agent)."""


def judge_health(
    verdicts: Iterable[GameVerdict] | VerdictTable,
    lengths: Lengths | None = None,
    *,
    ties: TieModel = "davidson",
    scale: float = 400.0,
) -> JudgeHealth:
    """Health of the judges of these verdicts together; pass the verdicts of one judge for its health alone.

    The orders of a game in ``verdicts`` must not be merged yet; ``ties`` and ``scale`` are settings of the model for
    ``first_effect`` and ``longer_effect``.
    """
    table = tabulate(verdicts)
    ordered_games = as_games(table)
    units = np.arange(len(table), dtype=np.int32) if table.cluster is None else table.cluster
    decided = table.outcome != 0
    longer = _longer(table, lengths or {})
    compared = decided & (longer != 0)
    first_order, second_order, order_query = outcomes_by_order(table)
    order_unit = table.units[1][order_query]
    triples, circles = _triples(ordered_games if table.query is None else reconcile(table))
    return JudgeHealth(
        n=len(table),
        tie_rate=_clustered_share(~decided, np.ones(len(table), np.bool_), units),
        both_orders=first_order.size,
        order_agreement=_clustered_share(first_order == second_order, np.ones(first_order.size, np.bool_), order_unit),
        contradictions=int((first_order * second_order == -1).sum()),
        decided=int(decided.sum()),
        first_share=_clustered_share(table.outcome == 1, decided, units),
        first_effect=position_effect(ordered_games, ties=ties, scale=scale),
        lengths_compared=int(compared.sum()),
        longer_share=_clustered_share(longer == table.outcome, compared, units),
        longer_effect=_longer_effect(ordered_games, longer, ties=ties, scale=scale),
        triples=triples,
        intransitive_triples=circles,
        queries=None if table.query is None else number_distinct(table.query, len(table.queries or ())),
        coverage=_coverage(table),
    )


def position_effect(games: Games, *, ties: TieModel = "davidson", scale: float = 400.0) -> Estimate:
    """Advantage of being shown first in points, estimated together with the agents' strengths.

    ``games`` are single verdicts in the order shown.

    Returns:
        An empty estimate if order and strength are confounded, for example if one agent is always shown first.
    """
    if not position_identified(pair_counts(games, ordered=True)):
        return Estimate(None)
    return fitted_position(games, bradley_terry(games, BradleyTerrySettings(ties=ties, position=True, scale=scale)))


def fitted_position(games: Games, fitted: BradleyTerry, *, by_query: bool = True, level: float = 0.95) -> Estimate:
    """Advantage of being shown first in ``fitted``, with its interval; an empty estimate without a position term.

    ``fitted`` must come from ``games``.
    """
    if fitted.position_effect is None:
        return Estimate(None)
    spread = sandwich(games, fitted, by_query=by_query)
    if spread is None or spread.position_sd is None:
        return Estimate(fitted.position_effect)
    # Verdicts that never vary would give an interval of zero width. The minimum is the standard error of the model if
    # the fit uses the prior, and otherwise the effect of one more query on which the first answer always wins.
    least = fitted.position_model_sd if fitted.problems else 0.0
    if spread.position_sd < NO_SPREAD:
        least = max(least, 2 * fitted.settings.points / spread.clusters)
    half = student(level, spread.clusters) * max(spread.position_sd, least)
    return Estimate(fitted.position_effect, fitted.position_effect - half, fitted.position_effect + half)


def _clustered_share(part: NDArray[np.bool_], whole: NDArray[np.bool_], cluster: Int32s) -> Estimate:
    """Share of the rows marked in ``whole`` that are also marked in ``part``, with a clustered interval."""
    return share_estimate(np.bincount(cluster, whole & part), np.bincount(cluster, whole))


def both_orders(table: VerdictTable) -> tuple[NDArray[np.bool_], Int32s]:
    """Whether the two orders of each game agree, and the game's query, for games judged in both orders."""
    first_order, second_order, query = outcomes_by_order(table)
    return first_order == second_order, query


def outcomes_by_order(table: VerdictTable) -> tuple[NDArray[np.int8], NDArray[np.int8], Int32s]:
    """Both outcomes for the lower-numbered agent (1, 0 or -1), and the query, of each game judged in both orders."""
    if table.query is None:
        return np.zeros(0, np.int8), np.zeros(0, np.int8), np.zeros(0, np.int32)
    outcome, present = table.by_order
    both = present.all(axis=1)
    return outcome[both, 0], outcome[both, 1], table.query[table.pairs.first[both]]


def _longer(table: VerdictTable, lengths: Lengths) -> NDArray[np.int8]:
    """1 if the first answer is longer, -1 if the second is, 0 if they are equal or a length is unknown, shape (n,)."""
    if table.query is None or table.queries is None or not lengths:
        return np.zeros(len(table), np.int8)
    length_table = np.full((len(table.queries), len(table.agents)), math.nan)
    query, agent = ({name: index for index, name in enumerate(names)} for names in (table.queries, table.agents))
    for (query_id, name), length in lengths.items():
        if query_id in query and name in agent:
            length_table[query[query_id], agent[name]] = length
    longer = np.sign(length_table[table.query, table.a] - length_table[table.query, table.b])
    signs: NDArray[np.int8] = np.nan_to_num(longer).astype(np.int8)
    return signs


def _longer_effect(ordered_games: Games, longer: NDArray[np.int8], *, ties: TieModel, scale: float) -> Estimate:
    """Advantage of the longer answer: the position effect after moving the longer answer first in every game."""
    rows = longer != 0
    if not rows.any():
        return Estimate(None)
    swap = longer[rows] < 0
    a, b, score = ordered_games.a[rows], ordered_games.b[rows], ordered_games.score[rows]
    agents = np.stack([np.where(swap, b, a), np.where(swap, a, b)])
    played, codes = np.unique(agents, return_inverse=True)
    first, second = codes.reshape(agents.shape).astype(np.int32)
    games = Games(
        agents=tuple(ordered_games.agents[agent] for agent in played),
        a=first,
        b=second,
        score=np.where(swap, 1 - score, score),
        cluster=None if ordered_games.cluster is None else ordered_games.cluster[rows],
        a_shown_first=True,
    )
    return position_effect(games, ties=ties, scale=scale)


def _coverage(table: VerdictTable) -> float | None:
    if table.query is None:
        return None
    queries, size, pairs = len(table.queries or ()), len(table.agents), table.pairs
    cells = (table.query[pairs.first].astype(np.int64) * size + pairs.low) * size + pairs.high
    return number_distinct(cells, queries * size**2) / (queries * size * (size - 1) / 2)


def _triples(games: Games) -> tuple[int, int]:
    """Number of triples with a winner in every pair, and of circular triples; traces count each one 6 or 3 times."""
    wins = win_matrix(games).wins
    beats = (wins > wins.T).astype(np.float64)
    decided = beats + beats.T
    every = np.trace(decided @ decided @ decided) / 6
    circles = np.trace(beats @ beats @ beats) / 3
    return round(float(every)), round(float(circles))
