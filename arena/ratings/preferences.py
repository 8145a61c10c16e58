"""Games scored by preferences: the probability that an answer is the better one, in place of a verdict.

A preference p says more than its verdict: 0.51 and 0.99 are no longer alike. Elo takes it as the score of a game, as
its formula has it. In the likelihood of Bradley and Terry a game counts as p of a win and 1 - p of a loss, so that a
tie, 0.5, is half a win for each (a fractional response: Papke and Wooldridge 1996, Journal of Applied Econometrics 11).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.ratings.games import Games, Tally, VerdictTable, pairs_of


def average(table: VerdictTable) -> Games:
    """Fold the verdicts on one query, judge and unordered pair into one game by their mean preference.

    The mean is over the two orders, and within an order over its verdicts. Games come as ``reconcile`` has them.

    Raises:
        InputError: the verdicts do not name their query.
    """
    pairs = pairs_of(table)
    lower_second = table.a > table.b
    score = np.where(lower_second, 1 - table.preferences(), table.preferences())
    slot, slots = 2 * pairs.game + lower_second, 2 * pairs.first.size
    counts, sums = (np.bincount(slot, weights, slots).reshape(-1, 2) for weights in (None, score))
    present = counts > 0
    means = (sums / np.maximum(counts, 1)).sum(axis=1) / present.sum(axis=1)
    both = int(present.all(axis=1).sum())
    tally = Tally(
        verdicts=len(table),
        games=means.size,
        repeated=len(table) - int(present.sum()),
        both_orders=both,
        single_order=means.size - both,
    )
    query = None if table.query is None else table.query[pairs.first]
    return Games(table.agents, pairs.low, pairs.high, np.clip(means, 0, 1), query, tally=tally, soft=True)


class Counted(NamedTuple):
    """Games as a likelihood counts them.

    Attributes:
        games: wins, losses and ties, some of fractional weight.
        rows: which of the games before each is, or is a part of; ``None`` for each itself.
        by_query: whether to cluster by ``games.cluster``, which keeps the parts of a game together.
    """

    games: Games
    rows: NDArray[np.intp] | None
    by_query: bool


def counted(games: Games, *, by_query: bool) -> Counted:
    """Games by preference as wins and losses: one of preference p weighs p as a win and 1 - p as a loss.

    A preference of a half stays one row, a tie; the losses stand behind all other rows. Other games stay as they are.

    Args:
        games: of any kind.
        by_query: whether verdicts on one query depend on each other.
    """
    if not games.soft:
        return Counted(games, None, by_query)
    clustered = by_query and games.cluster is not None
    cluster = games.cluster if clustered and games.cluster is not None else np.arange(len(games), dtype=np.int32)
    parted = np.flatnonzero(~np.isin(games.score, (0.0, 0.5, 1.0)))
    rows = np.concatenate([np.arange(len(games)), parted])
    score, weight = games.score[rows], games.weights[rows]
    weight[parted] *= games.score[parted]
    weight[len(games) :] *= 1 - games.score[parted]
    score[parted], score[len(games) :] = 1.0, 0.0
    sides = games.a[rows], games.b[rows]
    parts = Games(games.agents, *sides, score, cluster[rows], games.a_shown_first, weight, games.tally)
    return Counted(parts, rows, True)


def notes_on(table: VerdictTable) -> str:
    """What a reader of such ratings must know."""
    said = "Games are scored by preferences: 0.7 is 0.7 of a win and 0.3 of a loss, a tie is half of each"
    without = len(table) if table.preference is None else int(np.isnan(table.preference).sum())
    if not without:
        return f"{said}."
    return f"{said}; {without:,} of {len(table):,} verdicts have no probability and count as 1, 0.5 or 0."
