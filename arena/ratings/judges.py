"""Agreement between judges of the same games, and the verdicts of each judge.

Which agent of a pair comes first is arbitrary, so coefficients must not depend on it: each table of counts is averaged
with its mirror image (winner and loser exchanged) first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.games import GameVerdict, VerdictTable, distinct, fold_pairs, tabulate
from arena.ratings.results import JudgeAgreement, JudgePair
from judges.types import GameOutcome
from retrieval_eval.stats.arrays import Floats, Int32s
from retrieval_eval.stats.bootstrap import jackknife_estimate, jackknife_estimates
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from retrieval_eval.stats.agreement import MeasurementLevel, Weights

_OUTCOMES = np.array(list(GameOutcome), np.float64)
"""Loss, tie and win of the lower-numbered agent; the mirror image of a table reverses them."""
_ENDS: Final = (-1.0, 1.0)
"""Range of every coefficient."""
_WEIGHTS: Final[Sequence[Weights]] = ("none", "linear")


class JudgedGames(Struct, frozen=True, eq=False):
    """Reconciled games of each judge, sorted by query, judge and pair.

    Attributes:
        query, judge, a, b: numbers as in the verdict table; ``a`` < ``b``.
        outcome: 1 if ``a`` won, 0 for a tie, -1 if ``b`` won.
        game: number of the query and pair, the same for all judges.
    """

    query: Int32s
    judge: Int32s
    a: Int32s
    b: Int32s
    outcome: NDArray[np.int8]
    game: NDArray[np.int64]


def of_judge(table: VerdictTable, judge: str) -> VerdictTable:
    """The verdicts of one judge, with only the agents that the judge judged; queries keep their numbers.

    Raises:
        ValueError: the table has no such judge.
    """
    if judge not in table.judges:
        raise ValueError(f"there is no judge {judge!r}, only {', '.join(table.judges)}")
    return table.of(table.judge == table.judges.index(judge))


def judged_games(table: VerdictTable) -> JudgedGames:
    """Reconcile each judge's verdicts.

    Raises:
        InputError: the verdicts do not name their query.
    """
    pairs = table.pairs
    outcome, _ = fold_pairs(table, "tie")
    assert table.query is not None
    query, judge, size = table.query[pairs.first], table.judge[pairs.first], len(table.agents)
    pair = pairs.low.astype(np.int64) * size + pairs.high
    return JudgedGames(query, judge, pairs.low, pairs.high, outcome, query.astype(np.int64) * size**2 + pair)


def judge_agreement(verdicts: Iterable[GameVerdict] | VerdictTable) -> JudgeAgreement | None:
    """Agreement between the judges on games with the same query and agents.

    Returns:
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
    )


def _judge_pairs(judges: Sequence[str], ratings: Floats, query: Int32s) -> Iterator[JudgePair]:
    """Agreement of each pair of judges with a common game; most pairs among hundreds of people have none."""
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
    """Mean of each table and its mirror image (winner and loser exchanged)."""
    mean: Floats = (tables + tables[..., ::-1, ::-1]) / 2
    return mean


def _per_query(tables: Floats, query: Int32s) -> Floats:
    """Sum of the games' tables by query, shape (queries, 3, 3)."""
    totals = np.zeros((int(query.max(initial=-1)) + 1, *tables.shape[1:]))
    np.add.at(totals, query, tables)
    return totals
