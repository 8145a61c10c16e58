"""Consistency and biases of judges, and the agreement between judges.

The health of a judge is its consistency between orders, its bias for the answer shown first and for the longer one, its
ties and its circular triples.

Which agent of a pair comes first is arbitrary, so coefficients must not depend on it: each table of counts is averaged
with its mirror image (winner and loser exchanged) first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.bradley_terry import BradleyTerry, BradleyTerrySettings, bradley_terry, position_identified, sandwich
from arena.ratings.games import (
    NO_SPREAD,
    Games,
    GameVerdict,
    VerdictTable,
    as_games,
    distinct,
    fold_pairs,
    number_distinct,
    reconcile,
    tabulate,
    used,
)
from arena.ratings.likelihood import TieModel, pair_counts
from arena.ratings.results import MOST_JUDGES, JudgeAgreement, JudgeHealth, JudgePair
from judges.types import GameOutcome, repeat_of
from retrieval_eval.stats import Floats, Int32s
from retrieval_eval.stats.bootstrap import jackknife_estimate, jackknife_estimates, share_estimate, student
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from retrieval_eval.stats.agreement import MeasurementLevel, Weights


Lengths = Mapping[tuple[str, str], float]
"""Length of each answer, in any unit, by (query_id, agent)."""


def judge_health(
    verdicts: Iterable[GameVerdict] | VerdictTable,
    lengths: Lengths | None = None,
    *,
    ties: TieModel = "davidson",
    scale: float = 400.0,
) -> JudgeHealth:
    """Consistency and biases of the judges of these verdicts, taken together as one judge.

    The two orders of a game must not be merged yet. ``ties`` and ``scale`` are settings of the Bradley-Terry models
    that estimate ``first_effect`` and ``longer_effect``.
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
    """Advantage, in points, of the answer shown first; ``games`` are single verdicts in the order shown.

    The estimate has no value if order and strength are confounded, for example if one agent is always shown first.
    """
    if not position_identified(pair_counts(games, ordered=True)):
        return Estimate(None)
    return fitted_position(games, bradley_terry(games, BradleyTerrySettings(ties=ties, position=True, scale=scale)))


def fitted_position(games: Games, fitted: BradleyTerry, *, by_query: bool = True, level: float = 0.95) -> Estimate:
    """Advantage, in points, of the answer shown first, with its interval, from ``fitted``, a fit to ``games``."""
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
    """For each game judged in both orders: whether the two outcomes are the same, and the game's query."""
    first_order, second_order, query = outcomes_by_order(table)
    return first_order == second_order, query


def outcomes_by_order(table: VerdictTable) -> tuple[NDArray[np.int8], NDArray[np.int8], Int32s]:
    """For each game judged in both orders: both outcomes for the lower-numbered agent (1, 0 or -1), and the query."""
    if table.query is None:
        return np.zeros(0, np.int8), np.zeros(0, np.int8), np.zeros(0, np.int32)
    outcome, present = table.by_order
    both = present.all(axis=1)
    return outcome[both, 0], outcome[both, 1], table.query[table.pairs.first[both]]


def _longer(table: VerdictTable, lengths: Lengths) -> NDArray[np.int8]:
    """1 if the answer shown first is longer, -1 if the second is, 0 if equal or if a length is unknown, shape (n,)."""
    if table.query is None or table.queries is None or not lengths:
        return np.zeros(len(table), np.int8)
    repeat = np.zeros(len(table), np.int64) if table.repeat is None else table.repeat - 1
    length_table = np.full((int(repeat.max(initial=0)) + 1, len(table.queries), len(table.agents)), math.nan)
    query, agent = ({name: index for index, name in enumerate(names)} for names in (table.queries, table.agents))
    for (query_id, name), length in lengths.items():
        base, number = repeat_of(name)
        if query_id in query and base in agent and number <= len(length_table):
            length_table[number - 1, query[query_id], agent[base]] = length
    longer = np.sign(length_table[repeat, table.query, table.a] - length_table[repeat, table.query, table.b])
    signs: NDArray[np.int8] = np.nan_to_num(longer).astype(np.int8)
    return signs


def _longer_effect(ordered_games: Games, longer: NDArray[np.int8], *, ties: TieModel, scale: float) -> Estimate:
    """Advantage of the longer answer: the position effect if games are turned so that the longer answer comes first."""
    rows = longer != 0
    if not rows.any():
        return Estimate(None)
    swap = longer[rows] < 0
    a, b, score = ordered_games.a[rows], ordered_games.b[rows], ordered_games.score[rows]
    agents, (first, second) = used(ordered_games.agents, np.stack([np.where(swap, b, a), np.where(swap, a, b)]))
    games = Games(
        agents=agents,
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
    """Number of triples of agents with a winner in every pair, and of circular ones (a beats b beats c beats a)."""
    pairs = pair_counts(games, ordered=False)
    beats = np.zeros((pairs.agents, pairs.agents))
    beats[pairs.a, pairs.b], beats[pairs.b, pairs.a] = (
        pairs.wins_a[0] > pairs.wins_b[0],
        pairs.wins_b[0] > pairs.wins_a[0],
    )
    decided = beats + beats.T
    every = np.trace(decided @ decided @ decided) / 6
    circles = np.trace(beats @ beats @ beats) / 3
    return round(float(every)), round(float(circles))


_OUTCOMES = np.array(list(GameOutcome), np.float64)
"""Values of a loss, tie and win of the lower-numbered agent: the rows and columns of the tables of counts."""
_ENDS: Final = (-1.0, 1.0)
"""Smallest and largest value of an agreement coefficient."""
_WEIGHTS: Final[Sequence[Weights]] = ("none", "linear")


class JudgedGames(Struct, frozen=True, eq=False):
    """Games of each judge, with both orders merged, sorted by query, judge and pair.

    Attributes:
        query, judge, a, b: numbers as in the verdict table; ``a`` < ``b``.
        outcome: 1 if ``a`` won, 0 for a tie, -1 if ``b`` won.
        game: number that stands for the query, the pair and the repeat, the same for all judges.
    """

    query: Int32s
    judge: Int32s
    a: Int32s
    b: Int32s
    outcome: NDArray[np.int8]
    game: NDArray[np.int64]


def of_judge(table: VerdictTable, judge: str) -> VerdictTable:
    """The verdicts of one judge, without the agents that it never judged; queries keep their numbers."""
    if judge not in table.judges:
        raise ValueError(f"there is no judge {judge!r}, only {', '.join(table.judges)}")
    return table.of(table.judge == table.judges.index(judge))


def judged_games(table: VerdictTable) -> JudgedGames:
    """Merge the two orders of each game, for each judge; an ``InputError`` if verdicts do not name their query."""
    pairs = table.pairs
    outcome, _ = fold_pairs(table, "tie")
    assert table.query is not None
    query, judge, size = table.query[pairs.first], table.judge[pairs.first], len(table.agents)
    pair = pairs.low.astype(np.int64) * size + pairs.high
    game = query.astype(np.int64) * size**2 + pair
    if table.repeat is not None:
        game = game * int(table.repeat.max(initial=1)) + table.repeat[pairs.first] - 1
    return JudgedGames(query, judge, pairs.low, pairs.high, outcome, game)


def judge_agreement(verdicts: Iterable[GameVerdict] | VerdictTable) -> JudgeAgreement | None:
    """Agreement between the judges on games with the same query and agents.

    ``None`` for a single judge, or if the verdicts do not name their query, so that games cannot be matched.
    """
    table = tabulate(verdicts)
    if table.query is None or len(table.judges) < 2:
        return None
    from retrieval_eval.stats.agreement import coincidences

    games = judged_games(table)
    distinct, first, unit = np.unique(games.game, return_index=True, return_inverse=True)
    ratings = np.full((len(table.judges), distinct.size), math.nan)
    ratings[games.judge, unit] = games.outcome
    query = table.units[1][games.query[first]]
    pairs = coincidences(ratings, _OUTCOMES)
    totals = _mirrored(_per_query(pairs, query))
    return JudgeAgreement(
        judges=table.judges,
        games=int(pairs.any(axis=(1, 2)).sum()),
        alpha=_alpha(totals, "nominal"),
        alpha_ordinal=_alpha(totals, "ordinal"),
        pairs=tuple(_judge_pairs(table.judges, ratings, query)),
        votes=_panel_votes(ratings.T, query) if 3 <= len(table.judges) <= MOST_JUDGES else Estimate(None),
    )


def _panel_votes(scores: Floats, query: Int32s) -> Estimate:
    """Effective votes of judges; ``scores``, shape (games, judges), are 1, 0, -1, or NaN where a judge did not judge.

    A judge's error is its distance from the majority of the others, on games that at least three judges judged.
    """
    from retrieval_eval.stats.components import effective_votes

    seen = ~np.isnan(scores)
    own = np.where(seen, scores, 0.0)
    majority = np.sign(own.sum(axis=1, keepdims=True) - own)
    judged = seen & (seen.sum(axis=1, keepdims=True) > 2)
    return effective_votes(np.where(judged, np.abs(own - majority) / 2, np.nan), query.astype(np.int64))


def _judge_pairs(judges: Sequence[str], ratings: Floats, query: Int32s) -> Iterator[JudgePair]:
    """Agreement of each pair of judges that judged a common game; among hundreds of people, most pairs did not."""
    from retrieval_eval.stats.agreement import cohen_kappas

    judged, outcomes = ~np.isnan(ratings), np.nan_to_num(ratings + 1).astype(np.int64)
    queries = int(query.max(initial=-1)) + 1
    for number, first in enumerate(judges):
        games_of_first = np.flatnonzero(judged[number])
        second, column = np.nonzero(judged[number + 1 :, games_of_first])
        others, other = np.unique(second + number + 1, return_inverse=True)
        game = games_of_first[column]
        cells, cell = distinct(other * queries + query[game], others.size * queries)
        joint_outcome = 3 * outcomes[number, game] + outcomes[others[other], game]
        totals = np.bincount(9 * cell + joint_outcome, minlength=9 * cells.size).reshape(-1, 3, 3).astype(np.float64)
        counts = np.bincount(9 * other + joint_outcome, minlength=9 * others.size).reshape(-1, 3, 3)
        tables = _mirrored(totals), cells // queries, others.size, _ENDS
        plain, linear = (jackknife_estimates(partial(cohen_kappas, weights=weights), *tables) for weights in _WEIGHTS)
        for judge, table, *kappas in zip(others.tolist(), counts.tolist(), plain, linear, strict=True):
            yield _judge_pair(first, judges[judge], table, *kappas)


def _judge_pair(first: str, second: str, counts: list[list[int]], kappa: Estimate, linear: Estimate) -> JudgePair:
    (lost, first_lost_tie, opposite), (first_tie, both_tie, tie_won), (opposed, won_tie, won) = counts
    games = sum(map(sum, counts))
    return JudgePair(
        first=first,
        second=second,
        games=games,
        same_winner=lost + won,
        both_tie=both_tie,
        opposite=opposite + opposed,
        first_tie=first_tie + tie_won,
        second_tie=first_lost_tie + won_tie,
        agreement=(lost + both_tie + won) / games,
        kappa=kappa,
        kappa_linear=linear,
    )


def _alpha(totals: Floats, level: MeasurementLevel) -> Estimate:
    from retrieval_eval.stats.agreement import krippendorff_alphas

    return jackknife_estimate(lambda stack: krippendorff_alphas(stack, _OUTCOMES, level), totals, _ENDS)


def _mirrored(tables: Floats) -> Floats:
    """Mean of each table of counts and its mirror image, in which winner and loser are exchanged."""
    mean: Floats = (tables + tables[..., ::-1, ::-1]) / 2
    return mean


def _per_query(tables: Floats, query: Int32s) -> Floats:
    totals = np.zeros((int(query.max(initial=-1)) + 1, *tables.shape[1:]))
    np.add.at(totals, query, tables)
    return totals
