"""How far each query tells agents apart, and how each agent did on it. Pure: verdicts in, figures out.

An agent's share on a query is its points, a win 1 and a tie half, divided by its games there. What a query contributes
to the order of agents is measured as test theory measures an item: by the correlation of the scores on it with the
scores on all the others (the corrected item-total correlation, Lord and Novick 1968, chapter 15), and by their spread.

Where all queries are alike, some come out above the others and some below 0 all the same. So the same games are
simulated from the Bradley-Terry model fitted to them, in which every query is like any other, and a query is said to
differ only if it lies farther out than the farthest query of these tournaments does in 96 % of them.
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
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import Interval, share_interval

_FEWEST_AGENTS = 3
"""With two agents every correlation is 1 or -1."""

_REPLICATES: Final = (49, 399)
"""Simulated tournaments, at least and at most: the farthest query of 49 is passed by chance in 2 % on each side."""
_SIMULATED: Final = 30_000_000
"""Games in all of them: about a second."""
_EACH_SIDE: Final = 0.02
_FLAT: Final = 1e-9
"""No spread, but for rounding."""
_QUARTILES: Final = 1.349
"""Standard deviations of a normal between its quartiles."""

_Places: TypeAlias = NDArray[np.intp]
Unlike: TypeAlias = Literal["more", "reversed"]
"""How a query differs from the others by more than chance: it separates the agents more, or turns their order round."""


class QueryFigures(Struct, frozen=True):
    """What one query's games show; a figure is ``None`` where there is nothing to compute it from.

    Attributes:
        games: rated, over all judges.
        decided: share of these with a winner.
        spread: standard deviation of the agents' shares on this query, 0 where all are alike.
        agreement: correlation of the agents' shares here with those on all other queries, -1 to 1.
        both_orders: games that were judged in both orders.
        orders_differ: share of these whose two orders do not say the same.
        by_several: games of one pair that several judges judged.
        judges_differ: share of these on which the judges do not say the same.
        beyond_chance: how the query differs from the others, ``None`` where chance explains it: see ``unlike``.
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
        """Spread times agreement, negative where the games turn the order of the other queries round.

        So much more of the points here goes to an agent that is one standard deviation better on the other queries.
        """
        if self.spread is None or self.agreement is None:
            return 0.0 if self.spread == 0 else None
        return self.spread * self.agreement


class GamesOfAgent(Struct, frozen=True):
    """Games of one agent, on one query or on several.

    Attributes:
        low, high: interval of the share on several queries, by query or conversation; ``None`` for a single one.
    """

    won: int
    tied: int
    lost: int
    low: float | None = None
    high: float | None = None

    @property
    def games(self) -> int:
        """All of them."""
        return self.won + self.tied + self.lost

    @property
    def share(self) -> float | None:
        """Points divided by games, ``None`` without a game."""
        return (self.won + self.tied / 2) / self.games if self.games else None

    def counts(self) -> dict[str, int | float | None]:
        """Its games by outcome, all of them, and the share."""
        return {name: getattr(self, name) for name in ("won", "tied", "lost", "games", "share")}


class Standings(Struct, frozen=True, eq=False):
    """Games of each agent on each query.

    Attributes:
        queries, agents: names of rows and columns.
        won, tied, lost: games, shape (queries, agents).
        figures: of each query, in the order of ``queries``.
        unit: the number of each query's cluster.
        games: all of them, with the row of each one's query as cluster; ``None`` without any.
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
        """The same of some of the queries: each is held against the others of these alone."""
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
        """An agent's games on each query, in the order of ``queries``."""
        column = self.agents.index(agent)
        counts = np.stack([cells[:, column] for cells in (self.won, self.tied, self.lost)], axis=1)
        return [GamesOfAgent(*own) for own in counts.astype(int).tolist()]

    def on(self, row: int, agent: str) -> GamesOfAgent:
        """An agent's games on one query."""
        column = self.agents.index(agent)
        return GamesOfAgent(*(int(cells[row, column]) for cells in (self.won, self.tied, self.lost)))

    def together(self, agent: str, rows: Sequence[int]) -> GamesOfAgent:
        """An agent's games on the queries of some rows."""
        column = self.agents.index(agent)
        won, tied, lost = (cells[np.asarray(rows, np.intp), column] for cells in (self.won, self.tied, self.lost))
        low, high = self.interval(won + tied / 2, won + tied + lost, rows) or (None, None)
        return GamesOfAgent(int(won.sum()), int(tied.sum()), int(lost.sum()), low, high)

    def interval(
        self, points: Floats, played: Floats, rows: Sequence[int] | slice = slice(None), *, means: bool = False
    ) -> Interval | None:
        """Of the share of points on the queries of some rows, where all of one cluster are one.

        With ``means`` points are no counts, but what is itself a mean on each query.
        """
        unit = self.unit[rows]
        parts, wholes = (np.bincount(unit, own).astype(np.float64) for own in (points, played))
        return share_interval(parts, wholes, means=means)


def standings(
    verdicts: VerdictTable | None, queries: Sequence[str], agents: Sequence[str], win_and_tie: WinAndTie = "tie"
) -> Standings:
    """Count games, and compute every query's figures.

    ``verdicts`` are single ones, of these agents on these queries; there may be none.
    """
    shape = len(queries), len(agents)
    won, tied, lost = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    if verdicts is None or verdicts.queries is None:
        unit = np.arange(len(queries))
        figures = [QueryFigures(name, 0, None, None, None, 0, None, 0, None) for name in queries]
        return Standings(tuple(queries), tuple(agents), won, tied, lost, tuple(figures), unit)
    row, column = _places(verdicts.queries, queries), _places(verdicts.agents, agents)
    unit = np.arange(len(queries)) + len(verdicts.units[0])  # without a game, each by itself
    unit[row] = verdicts.units[1]
    games = reconcile(replace(verdicts, clusters=None), win_and_tie=win_and_tie)
    assert games.cluster is not None
    query, a, b = row[games.cluster], column[games.a], column[games.b]
    for cells, score in ((won, 1.0), (tied, 0.5), (lost, 0.0)):
        np.add.at(cells, (query, a), games.score == score)
        np.add.at(cells, (query, b), games.score == 1 - score)
    agree, of_query = both_orders(verdicts)
    same, of_pair = _same_by_judges(games)
    points, played = won + tied / 2, won + tied + lost
    spread, agreement = separations(points, played)
    placed = replace(games, cluster=query.astype(np.int32))
    differs = unlike(placed, len(queries))
    orders, judges = (
        (np.bincount(row[places], minlength=shape[0]), np.bincount(row[places], ~equal, shape[0]))
        for equal, places in ((agree, of_query), (same, of_pair))
    )
    figures = [
        QueryFigures(
            name,
            int(played[at].sum()) // 2,
            _share(2 * won[at].sum(), played[at].sum()),
            _known(spread[at]),
            _known(agreement[at]),
            int(orders[0][at]),
            _share(orders[1][at], orders[0][at]),
            int(judges[0][at]),
            _share(judges[1][at], judges[0][at]),
            differs[at],
        )
        for at, name in enumerate(queries)
    ]
    return Standings(tuple(queries), tuple(agents), won, tied, lost, tuple(figures), unit, placed)


def _on(games: Games, rows: _Places, queries: int) -> Games | None:
    """Games on some of the queries, which are numbered anew; ``None`` where there are none."""
    assert games.cluster is not None
    number = np.full(queries, -1, np.int32)
    number[rows] = np.arange(rows.size)
    cluster = number[games.cluster]
    kept = cluster >= 0
    if not kept.any():
        return None
    return Games(games.agents, games.a[kept], games.b[kept], games.score[kept], cluster[kept])


def unlike(games: Games | None, queries: int) -> list[Unlike | None]:
    """Which queries separate the agents otherwise than chance explains, one for each of ``queries``.

    The separation of every query is compared with that in tournaments of the same games, drawn from the fitted
    model of Bradley and Terry with Davidson's ties, whose strengths are shrunk by their errors. Each is taken less
    its mean there and in units of its standard deviation there, and held against the farthest query of each
    tournament, so that a query is marked on either side in 2 % of the tournaments whose queries are alike. Judges
    of one pair on one query are taken to say the same. Answers vary from query to query too, and all games of one
    answer with it: where most queries lie farther apart than single games explain (by their quartiles), the unit is
    as much larger. Queries that are reversed are left out of what the others are held against.

    Args:
        games: whose cluster is the query's number; ``None`` for none.
        queries: how many there are.
    """
    found: list[Unlike | None] = [None] * queries
    if games is None or len(games.agents) < _FEWEST_AGENTS:
        return found
    separation = np.array(list(_separated(games, queries)))
    spread = separation.std(axis=0)
    varies = spread > _FLAT
    far = (separation - separation.mean(axis=0))[:, varies] / spread[varies]
    if not far.size:
        return found
    low, high = np.quantile(far, (0.25, 0.75), axis=1)
    far /= np.maximum(1, (high - low) / _QUARTILES)[:, np.newaxis]
    allowed = math.floor(_EACH_SIDE * len(far)) - 1
    above, below = (np.sort(side.max(axis=1))[::-1][allowed] for side in (far[1:], -far[1:]))
    for at, own in zip(np.flatnonzero(varies).tolist(), far[0].tolist(), strict=True):
        if own > above and separation[0, at] > 0:
            found[at] = "more"
        elif -own > below and separation[0, at] < 0:
            found[at] = "reversed"
    if "reversed" in found:
        others = np.array([at for at, own in enumerate(found) if own != "reversed"], np.intp)
        for at, differs in zip(others.tolist(), unlike(_on(games, others, queries), others.size), strict=True):
            found[at] = differs
    return found


def _separated(games: Games, queries: int) -> Iterator[Floats]:
    """Separation of each query: first as it is, then in each of the simulated tournaments, shape (queries,) each."""
    assert games.cluster is not None
    agents, both = used(games.agents, np.concatenate([games.a, games.b]))
    size = len(agents)
    a, b = np.sort(both.reshape(2, -1), axis=0).astype(np.int64)
    played_by = replace(games, agents=agents, a=both[: len(games)], b=both[len(games) :])
    fitted = bradley_terry(played_by)
    strength = fitted.x[:size] * _shrinkage(played_by, fitted)
    meetings, count = np.unique((games.cluster.astype(np.int64) * size + a) * size + b, return_counts=True)
    query, a, b, weight = meetings // size**2, meetings // size % size, meetings % size, count.astype(np.float64)
    tie = math.log(fitted.tie_parameter) if fitted.tie_parameter else NO_TIES["davidson"]
    win, _, tied = probabilities("davidson", strength[a] - strength[b], np.full(a.size, tie))
    of_a, of_b, cells = query * size + a, query * size + b, queries * size
    of_second: Floats = np.bincount(of_b, weight, cells).astype(np.float64)
    played = (np.bincount(of_a, weight, cells) + of_second).reshape(queries, size)

    def separation(points: Floats) -> Floats:
        of_spread, agreement = separations(points.reshape(queries, size), played)
        return np.nan_to_num(of_spread * agreement)

    first, second = (games.cluster * size + side for side in both.reshape(2, -1))
    lost = np.bincount(second, 1 - games.score, cells).astype(np.float64)
    yield separation(np.bincount(first, games.score, cells) + lost)
    half, each = (weight / 2).astype(np.float32), np.arange(a.size)
    points = scipy.sparse.csr_array(
        (np.concatenate([half, -half]), (np.concatenate([of_a, of_b]), np.tile(each, 2))), shape=(cells, a.size)
    )
    wins, not_lost = win.astype(np.float32), (win + tied).astype(np.float32)
    draws, (fewest, most) = np.random.default_rng(0), _REPLICATES
    for _ in range(min(most, max(fewest, _SIMULATED // a.size))):
        drawn = draws.random(a.size, np.float32)
        yield separation(of_second + points @ ((drawn < wins).astype(np.float32) + (drawn < not_lost)))


def _shrinkage(games: Games, fitted: BradleyTerry) -> float:
    """What to multiply strengths by, so that they vary as the true ones do.

    Fitted ones vary by their errors as well: taken as they are, equal agents would seem to have an order, which any
    query would turn round too easily.
    """
    found = sandwich(games, fitted)
    variance = float(fitted.ratings.var())
    if found is None or not variance:
        return 1.0
    size = len(games.agents)
    error = float(np.trace(found.covariance)) / size  # of ratings around their mean
    return math.sqrt(max(0.0, 1 - error / variance))


def _places(names: Sequence[str], among: Sequence[str]) -> _Places:
    place = {name: at for at, name in enumerate(among)}
    return np.array([place[name] for name in names], dtype=np.intp)


def _same_by_judges(games: Games) -> tuple[NDArray[np.bool_], _Places]:
    """For every pair on a query that several judges judged, whether all scores are equal, and the query."""
    assert games.cluster is not None
    size = len(games.agents)
    key = (games.cluster.astype(np.int64) * size + games.a) * size + games.b
    keys, first, group = np.unique(key, return_index=True, return_inverse=True)
    judged = np.bincount(group)
    same = np.bincount(group, games.score == games.score[first][group]) == judged
    several = judged > 1
    return same[several], (keys[several] // size**2).astype(np.intp)


def separations(points: Floats, played: Floats) -> tuple[Floats, Floats]:
    """Spread of the agents' shares on each query, and their correlation with those on all others; NaN for neither.

    Args:
        points: shape (queries, agents).
        played: what they are divided by, 0 where nothing is known of an agent on a query.
    """
    here = divided(points, played)
    others = divided(points.sum(axis=0) - points, played.sum(axis=0) - played)
    spread = _sd(here)
    both = np.isfinite(here) & np.isfinite(others)
    x, y = (np.where(both, values, np.nan) for values in (here, others))
    x, y = (values - _mean(values)[:, np.newaxis] for values in (x, y))
    sizes = _sd(x) * _sd(y)
    usable = (both.sum(axis=1) >= _FEWEST_AGENTS) & (sizes > 1e-12)
    return spread, np.where(usable, divided(_mean(x * y), sizes), np.nan)


def _mean(values: Floats) -> Floats:
    """Of each row's known values."""
    return divided(np.nansum(values, axis=1), np.isfinite(values).sum(axis=1).astype(np.float64))


def _sd(values: Floats) -> Floats:
    deviations = values - _mean(values)[:, np.newaxis]
    found: Floats = np.sqrt(_mean(deviations**2))
    return found


def divided(parts: Floats, wholes: Floats) -> Floats:
    """Parts by wholes, NaN where there is no whole."""
    found: Floats = np.divide(parts, wholes, out=np.full(parts.shape, np.nan), where=wholes > 0)
    return found


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None
