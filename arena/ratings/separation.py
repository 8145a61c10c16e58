"""Figures of each query: how well it separates the agents, and how each agent performed on it.

An agent's share on a query is its points (win 1, tie 0.5) divided by its games there. The contribution of a query to
the order of agents is measured like an item in test theory: by the correlation of the scores on it with the scores on
all other queries (the corrected item-total correlation, Lord and Novick 1968, chapter 15), and by the spread of the
scores.

Even if all queries are equal, chance puts some far above the others and some below 0. So the same games are simulated
from the fitted Bradley-Terry model, in which all queries are equal. A query differs only if it is more extreme than the
most extreme query in 96 % of these tournaments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
import scipy
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.ratings.bradley_terry import BradleyTerry, bradley_terry, sandwich
from arena.ratings.games import Games, VerdictTable, WinAndTie, reconcile, used
from arena.ratings.health import both_orders
from arena.ratings.likelihood import NO_TIES, probabilities
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import Interval, share_interval
from retrieval_eval.stats.estimate import Estimate

_FEWEST_AGENTS = 3
"""Minimum number of agents for a correlation: with two it is always 1 or -1."""

_REPLICATES: Final = (49, 399)
"""Minimum and maximum number of simulated tournaments: 49 allow a test at 2 % on each side."""
_SIMULATED: Final = 30_000_000
"""Maximum number of simulated games over all tournaments; they take about a second."""
_AT_ONCE: Final = 500_000
"""Number of games that are simulated at once, so that they take little memory."""
_EACH_SIDE: Final = 0.02
"""Share of tournaments with equal queries in which a query is marked, for each of the two marks."""
_FLAT: Final = 1e-9
"""A standard deviation below this is a rounding error and counts as 0."""
_QUARTILES: Final = 1.349
"""Distance between the quartiles of a normal distribution, in standard deviations."""

_Places: TypeAlias = NDArray[np.intp]
Unlike: TypeAlias = Literal["more", "reversed"]
"""How a query differs from the others by more than chance: it separates the agents more, or it reverses their order."""


class QueryFigures(Struct, frozen=True):
    """Figures of one query; a figure without data is ``None``.

    Attributes:
        games: number of rated games on the query, over all judges.
        decided: share of these games with a winner.
        spread: standard deviation of the agents' shares on this query, 0 if all are equal.
        agreement: correlation of the agents' shares on this query with their shares on all other queries, -1 to 1.
        both_orders: number of games judged in both orders.
        orders_differ: share of these games with different outcomes in the two orders.
        by_several: number of pairs of agents judged by several judges.
        judges_differ: share of these pairs on which the judges disagree.
        beyond_chance: how the query differs from the others; ``None`` if chance explains it, see ``unlike``.
    """

    query_id: str
    games: int
    decided: float | None
    spread: float | None
    agreement: float | None
    both_orders: int
    orders_differ: float | None
    by_several: int
    judges_differ: float | None
    beyond_chance: Unlike | None = None

    @property
    def separation(self) -> float | None:
        """Spread times agreement; negative if the query's games reverse the order of the agents on the other queries.

        It is the slope of the shares here per standard deviation of the shares on the other queries.
        """
        if self.spread is None or self.agreement is None:
            return 0.0 if self.spread == 0 else None
        return self.spread * self.agreement


class GamesOfAgent(Struct, frozen=True):
    """Number of games of one agent by outcome, on one or more queries.

    ``low`` and ``high`` are the interval of the share of points over several queries, clustered by query or
    conversation.
    """

    won: int
    tied: int
    lost: int
    low: float | None = None
    high: float | None = None

    @property
    def games(self) -> int:
        return self.won + self.tied + self.lost

    @property
    def share(self) -> float | None:
        return (self.won + self.tied / 2) / self.games if self.games else None

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.share, self.low, self.high)

    def counts(self) -> dict[str, int | float | None]:
        return {name: getattr(self, name) for name in ("won", "tied", "lost", "games", "share")}


class Standings(Struct, frozen=True, eq=False):
    """Results of each agent on each query.

    Attributes:
        queries, agents: names of the rows and columns of the arrays.
        won, tied, lost: number of games by outcome, shape (queries, agents).
        unit: number of each query's cluster, shape (queries,).
        games: all games, with the query's row as the cluster; ``None`` without games.
    """

    queries: tuple[str, ...]
    agents: tuple[str, ...]
    won: Floats
    tied: Floats
    lost: Floats
    figures: tuple[QueryFigures, ...]
    unit: NDArray[np.int64]
    games: Games | None = None

    def of(self, rows: Sequence[int]) -> Standings:
        """The results on the chosen queries only; figures compare each query with the other chosen queries."""
        chosen = np.asarray(rows, np.intp)
        won, tied, lost = (cells[chosen] for cells in (self.won, self.tied, self.lost))
        games = None if self.games is None else _on(self.games, chosen, len(self.queries))
        figures = tuple(
            replace(self.figures[row], spread=_known(spread), agreement=_known(agreement), beyond_chance=differs)
            for row, spread, agreement, differs in zip(
                rows, *separations(won + tied / 2, won + tied + lost), unlike(games, len(rows)), strict=True
            )
        )
        queries = tuple(self.queries[row] for row in rows)
        return Standings(queries, self.agents, won, tied, lost, figures, self.unit[chosen], games)

    def each(self, agent: str) -> list[GamesOfAgent]:
        column = self.agents.index(agent)
        counts = np.stack([cells[:, column] for cells in (self.won, self.tied, self.lost)], axis=1)
        return [GamesOfAgent(*outcomes) for outcomes in counts.astype(int).tolist()]

    def on(self, row: int, agent: str) -> GamesOfAgent:
        column = self.agents.index(agent)
        return GamesOfAgent(*(int(cells[row, column]) for cells in (self.won, self.tied, self.lost)))

    def together(self, agent: str, rows: Sequence[int]) -> GamesOfAgent:
        """The agent's results over the chosen queries, with an interval of its share of points."""
        column = self.agents.index(agent)
        won, tied, lost = (cells[np.asarray(rows, np.intp), column] for cells in (self.won, self.tied, self.lost))
        low, high = self.interval(won + tied / 2, won + tied + lost, rows) or (None, None)
        return GamesOfAgent(int(won.sum()), int(tied.sum()), int(lost.sum()), low, high)

    def interval(
        self, points: Floats, played: Floats, rows: Sequence[int] | slice = slice(None), *, means: bool = False
    ) -> Interval | None:
        """Interval of the share of points over the chosen queries, clustered by conversation or query.

        With ``means``, the points of each query are a mean over its games instead of a sum.
        """
        unit = self.unit[rows]
        parts, wholes = (np.bincount(unit, values).astype(np.float64) for values in (points, played))
        return share_interval(parts, wholes, means=means)


def standings(
    verdicts: VerdictTable | None, queries: Sequence[str], agents: Sequence[str], win_and_tie: WinAndTie = "tie"
) -> Standings:
    """Count the games and compute the figures of every query; ``verdicts`` must name only these agents and queries."""
    shape = len(queries), len(agents)
    won, tied, lost = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    if verdicts is None or verdicts.queries is None:
        unit = np.arange(len(queries))
        figures = [QueryFigures(name, 0, None, None, None, 0, None, 0, None) for name in queries]
        return Standings(tuple(queries), tuple(agents), won, tied, lost, tuple(figures), unit)
    row, column = _places(verdicts.queries, queries), _places(verdicts.agents, agents)
    unit = np.arange(len(queries)) + len(verdicts.units[0])  # a query without games is its own cluster
    unit[row] = verdicts.units[1]
    games = reconcile(replace(verdicts, clusters=None), win_and_tie=win_and_tie)
    assert games.cluster is not None
    query, a, b = row[games.cluster], column[games.a], column[games.b]
    for cells, score in ((won, 1.0), (tied, 0.5), (lost, 0.0)):
        np.add.at(cells, (query, a), games.score == score)
        np.add.at(cells, (query, b), games.score == 1 - score)
    orders_agree, order_query = both_orders(verdicts)
    judges_agree, judged_query = _same_by_judges(games)
    points, played = won + tied / 2, won + tied + lost
    spread, agreement = separations(points, played)
    games_by_row = replace(games, cluster=query.astype(np.int32))
    differs = unlike(games_by_row, len(queries))
    orders, judges = (
        (np.bincount(row[places], minlength=shape[0]), np.bincount(row[places], ~equal, shape[0]))
        for equal, places in ((orders_agree, order_query), (judges_agree, judged_query))
    )
    figures = [
        QueryFigures(
            name,
            int(played[index].sum()) // 2,
            _share(2 * won[index].sum(), played[index].sum()),
            _known(spread[index]),
            _known(agreement[index]),
            int(orders[0][index]),
            _share(orders[1][index], orders[0][index]),
            int(judges[0][index]),
            _share(judges[1][index], judges[0][index]),
            differs[index],
        )
        for index, name in enumerate(queries)
    ]
    return Standings(tuple(queries), tuple(agents), won, tied, lost, tuple(figures), unit, games_by_row)


def _on(games: Games, rows: _Places, queries: int) -> Games | None:
    """Games on the queries ``rows``, with these queries renumbered in this order; ``None`` without such games."""
    assert games.cluster is not None
    number = np.full(queries, -1, np.int32)
    number[rows] = np.arange(rows.size)
    cluster = number[games.cluster]
    chosen = cluster >= 0
    if not chosen.any():
        return None
    return Games(games.agents, games.a[chosen], games.b[chosen], games.score[chosen], cluster[chosen])


def unlike(games: Games | None, queries: int) -> list[Unlike | None]:
    """Mark queries that separate the agents more than chance explains or reverse their order; one mark per query.

    The separation of every query is compared with simulated tournaments of the same games, drawn from the fitted
    Bradley-Terry model with Davidson's ties and strengths shrunk by their errors. Each separation is standardised by
    its mean and standard deviation over the simulations and compared with the most extreme query of each tournament. So
    if all queries are equal, a query is marked in 2 % of tournaments on each side. The judges of one pair on one query
    are assumed to agree. Answers also vary from query to query, and an answer affects all of its games: if the
    quartiles of the queries are farther apart than single games explain, the standard deviation is increased to match.
    Once a query is reversed, the others are compared without it. The clusters of ``games`` are the numbers of queries.
    """
    marks: list[Unlike | None] = [None] * queries
    if games is None or len(games.agents) < _FEWEST_AGENTS:
        return marks
    separation = np.concatenate([*_separated(games, queries)])
    spread = separation.std(axis=0)
    varies = spread > _FLAT
    deviation = (separation - separation.mean(axis=0))[:, varies] / spread[varies]
    if not deviation.size:
        return marks
    low, high = np.quantile(deviation, (0.25, 0.75), axis=1)
    deviation /= np.maximum(1, (high - low) / _QUARTILES)[:, np.newaxis]
    allowed = math.floor(_EACH_SIDE * len(deviation)) - 1
    above, below = (np.sort(side.max(axis=1))[::-1][allowed] for side in (deviation[1:], -deviation[1:]))
    for row, observed in zip(np.flatnonzero(varies).tolist(), deviation[0].tolist(), strict=True):
        if observed > above and separation[0, row] > 0:
            marks[row] = "more"
        elif -observed > below and separation[0, row] < 0:
            marks[row] = "reversed"
    if "reversed" in marks:
        others = np.array([row for row, mark in enumerate(marks) if mark != "reversed"], np.intp)
        for row, differs in zip(others.tolist(), unlike(_on(games, others, queries), others.size), strict=True):
            marks[row] = differs
    return marks


def _separated(games: Games, queries: int) -> Iterator[Floats]:
    """The observed separation of each query, shape (1, queries), then batches of simulated tournaments, a row each."""
    assert games.cluster is not None
    agents, both = used(games.agents, np.concatenate([games.a, games.b]))
    size = len(agents)
    a, b = np.sort(both.reshape(2, -1), axis=0).astype(np.int64)
    renumbered = replace(games, agents=agents, a=both[: len(games)], b=both[len(games) :])
    fitted = bradley_terry(renumbered)
    strength = fitted.x[:size] * _shrinkage(renumbered, fitted)
    meetings, count = np.unique((games.cluster.astype(np.int64) * size + a) * size + b, return_counts=True)
    query, a, b, weight = meetings // size**2, meetings // size % size, meetings % size, count.astype(np.float64)
    tie = math.log(fitted.tie_parameter) if fitted.tie_parameter else NO_TIES["davidson"]
    win, _, tied = probabilities("davidson", strength[a] - strength[b], np.full(a.size, tie))
    cell_a, cell_b, cells = query * size + a, query * size + b, queries * size
    points_b: Floats = np.bincount(cell_b, weight, cells).astype(np.float64)
    played = (np.bincount(cell_a, weight, cells) + points_b).reshape(queries, size)

    def separation(points: Floats) -> Floats:
        spread, agreement = separations(points.reshape(-1, queries, size), played)
        return np.nan_to_num(spread * agreement)

    first, second = (games.cluster * size + side for side in both.reshape(2, -1))
    lost = np.bincount(second, 1 - games.score, cells).astype(np.float64)
    yield separation(np.bincount(first, games.score, cells) + lost)
    half, game = (weight / 2).astype(np.float32), np.arange(a.size)
    points = scipy.sparse.csr_array(
        (np.concatenate([half, -half]), (np.concatenate([cell_a, cell_b]), np.tile(game, 2))), shape=(cells, a.size)
    )
    wins, not_lost = win.astype(np.float32), (win + tied).astype(np.float32)
    draws, (fewest, most) = np.random.default_rng(0), _REPLICATES
    number, batch = min(most, max(fewest, _SIMULATED // a.size)), max(1, _AT_ONCE // a.size)
    for start in range(0, number, batch):
        uniform = draws.random((min(batch, number - start), a.size), np.float32)
        scores = (uniform < wins).astype(np.float32) + (uniform < not_lost)
        yield separation(points_b + (points @ scores.T).T)


def _shrinkage(games: Games, fitted: BradleyTerry) -> float:
    """Factor by which to shrink the fitted strengths, so that their variance no longer includes their errors.

    Without it, equal agents would seem to have an order, and too many queries would seem to reverse it.
    """
    robust = sandwich(games, fitted)
    variance = float(fitted.ratings.var())
    if robust is None or not variance:
        return 1.0
    size = len(games.agents)
    error = float(np.trace(robust.covariance)) / size  # of ratings around their mean
    return math.sqrt(max(0.0, 1 - error / variance))


def _places(names: Sequence[str], among: Sequence[str]) -> _Places:
    place = {name: index for index, name in enumerate(among)}
    return np.array([place[name] for name in names], dtype=np.intp)


def _same_by_judges(games: Games) -> tuple[NDArray[np.bool_], _Places]:
    """For each pair on a query and repeat with several judges: whether all gave the same score, and the query."""
    assert games.cluster is not None
    size = len(games.agents)
    key = (games.cluster.astype(np.int64) * size + games.a) * size + games.b
    if games.repeat is not None:
        key += (games.repeat - 1) * (int(key.max(initial=0)) + 1)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    judged = np.bincount(group)
    same = np.bincount(group, games.score == games.score[first][group]) == judged
    several = judged > 1
    return same[several], games.cluster[first][several].astype(np.intp)


def separations(points: Floats, played: Floats) -> tuple[Floats, Floats]:
    """Standard deviation of the agents' shares on each query, and correlation with their shares on all other queries.

    ``points`` and ``played`` (number of games) are those of each agent on each query, shape (queries, agents), in one
    tournament or in each of several. Undefined figures are NaN.
    """
    shares = divided(points, played)
    others = divided(points.sum(axis=-2, keepdims=True) - points, played.sum(axis=-2, keepdims=True) - played)
    spread = _sd(shares)
    both = np.isfinite(shares) & np.isfinite(others)
    x, y = (np.where(both, values, np.nan) for values in (shares, others))
    x, y = (values - _mean(values)[..., np.newaxis] for values in (x, y))
    sizes = _sd(x) * _sd(y)
    usable = (both.sum(axis=-1) >= _FEWEST_AGENTS) & (sizes > 1e-12)
    return spread, np.where(usable, divided(_mean(x * y), sizes), np.nan)


def _mean(values: Floats) -> Floats:
    """Mean of each row without its NaN values."""
    return divided(np.nansum(values, axis=-1), np.isfinite(values).sum(axis=-1).astype(np.float64))


def _sd(values: Floats) -> Floats:
    deviations = values - _mean(values)[..., np.newaxis]
    deviation: Floats = np.sqrt(_mean(deviations**2))
    return deviation


def divided(parts: Floats, wholes: Floats) -> Floats:
    """Quotient of the arrays, NaN if the divisor is 0."""
    quotient: Floats = np.divide(parts, wholes, out=np.full(parts.shape, np.nan), where=wholes > 0)
    return quotient


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None
