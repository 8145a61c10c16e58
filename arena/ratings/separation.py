"""How far each query tells agents apart, and how each agent did on it. Pure: verdicts in, figures out.

An agent's share on a query is its points, a win 1 and a tie half, divided by its games there. What a query contributes
to the order of agents is measured as test theory measures an item: by the correlation of the scores on it with the
scores on all the others (the corrected item-total correlation, Lord and Novick 1968, chapter 15), and by their spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.ratings.games import Floats, Games, VerdictTable, WinAndTie, reconcile
from arena.ratings.health import both_orders
from retrieval_eval.stats.bootstrap import Interval, share_interval

_FEWEST_AGENTS = 3
"""With two agents every correlation is 1 or -1."""

_Places: TypeAlias = NDArray[np.intp]


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

    @property
    def separation(self) -> float | None:
        """Spread times agreement, negative where the query turns the order of the others round.

        So much more of the points here goes to an agent that is one standard deviation better on the other queries.
        """
        if self.spread is None or self.agreement is None:
            return 0.0 if self.spread == 0 else None
        return self.spread * self.agreement


class Record(Struct, frozen=True):
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
    """

    queries: tuple[str, ...]
    agents: tuple[str, ...]
    won: Floats
    tied: Floats
    lost: Floats
    figures: tuple[QueryFigures, ...]
    unit: NDArray[np.int64]

    def of(self, rows: Sequence[int]) -> Standings:
        """The same of some of the queries: each is held against the others of these alone."""
        won, tied, lost = (cells[np.asarray(rows, np.intp)] for cells in (self.won, self.tied, self.lost))
        figures = tuple(
            replace(self.figures[row], spread=_known(spread), agreement=_known(agreement))
            for row, spread, agreement in zip(rows, *separations(won + tied / 2, won + tied + lost), strict=True)
        )
        queries, unit = tuple(self.queries[row] for row in rows), self.unit[np.asarray(rows, np.intp)]
        return Standings(queries, self.agents, won, tied, lost, figures, unit)

    def each(self, agent: str) -> list[Record]:
        """An agent's games on each query, in the order of ``queries``."""
        column = self.agents.index(agent)
        counts = np.stack([cells[:, column] for cells in (self.won, self.tied, self.lost)], axis=1)
        return [Record(*own) for own in counts.astype(int).tolist()]

    def on(self, row: int, agent: str) -> Record:
        """An agent's games on one query."""
        column = self.agents.index(agent)
        return Record(*(int(cells[row, column]) for cells in (self.won, self.tied, self.lost)))

    def together(self, agent: str, rows: Sequence[int]) -> Record:
        """An agent's games on the queries of some rows."""
        column = self.agents.index(agent)
        won, tied, lost = (cells[np.asarray(rows, np.intp), column] for cells in (self.won, self.tied, self.lost))
        low, high = self.interval(won + tied / 2, won + tied + lost, rows) or (None, None)
        return Record(int(won.sum()), int(tied.sum()), int(lost.sum()), low, high)

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
        )
        for at, name in enumerate(queries)
    ]
    return Standings(tuple(queries), tuple(agents), won, tied, lost, tuple(figures), unit)


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
