"""Fragility of an order: how many games or queries must be removed until two agents swap places.

The influence function ranks games (Broderick, Giordano and Meager 2020, "An automatic finite-sample robustness metric",
arXiv 2011.14999): removing a game with score u moves the parameters by -H^-1 u, where H is the curvature at the fit.
Games or queries are removed in this order, and every reported count is confirmed by a fit to the remaining games. The
count is an upper bound of the minimum: a smaller set that is chosen in another way may also suffice.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy as np
import scipy
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.ratings.bradley_terry import BradleyTerry, bradley_terry, single_game_slopes
from arena.ratings.games import Games, Unit
from arena.ratings.likelihood import game_cells
from arena.ratings.ranks import RESOLUTION
from arena.ratings.results import Fragility, RatingSettings
from retrieval_eval.stats import Floats

_FEW_AGENTS, _FEW_GAMES = 12, 20_000
"""With ``fragility="auto"``, neighbours are tested up to these sizes, which takes at most about two seconds."""

_LARGEST_SHARE = 0.25
"""An order that survives the removal of this share of all units is not fragile."""

_CHALLENGERS = 3
"""Number of agents tried as new leader: those that need the fewest removals by the influence function."""


def fragilities(
    games: Games,
    fitted: BradleyTerry,
    order: Sequence[str],
    settings: RatingSettings,
    queries: tuple[str, ...] | None,
    *,
    by: Unit = "query",
) -> tuple[Fragility, ...]:
    """Fragility of the lead and, by the settings, of each pair of neighbours on the leaderboard, by game and by query.

    ``fitted`` is a fit to ``games``. ``order`` has the agents of the leaderboard, best first. ``queries`` has the names
    of the games' clusters, and ``by`` is the kind of these clusters. Empty if games are fractional.
    """
    if settings.fragility == "none" or not games.are_whole:
        return ()
    singly = GroupedGames(games, fitted)
    groupings = [singly]
    if settings.cluster and games.cluster is not None:
        groupings.append(GroupedGames(games, fitted, games.cluster, queries, by))
    challengers = singly.challengers()
    flips = [flip for grouped in groupings if (flip := grouped.leader_flip(challengers))]
    is_small = len(order) <= _FEW_AGENTS and len(games) <= _FEW_GAMES
    if settings.fragility == "neighbours" or (settings.fragility == "auto" and is_small):
        pairs = itertools.pairwise(map(games.agents.index, order))
        flips += [grouped.pair_flip(*pair) for pair in pairs for grouped in groupings]
    return tuple(flips)


def _fewest(holds: Callable[[int], bool], guess: int, limit: int) -> int | None:
    """The smallest count for which ``holds`` is true; ``None`` if it is above ``limit``.

    If ``holds`` is true for a count, it must be true for larger ones. The search starts at ``guess``.
    """
    if limit < 1:
        return None
    low, high = 0, min(max(guess, 1), limit)
    while not holds(high):
        if high == limit:
            return None
        low, high = high, min(limit, high + max(1, high // 4))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


class GroupedGames:
    """Games counted by kind: the pair of agents and the outcome. They are removed singly, or by ``cluster``.

    Kind k belongs to pair number k mod the number of pairs. First come the wins of each pair's first agent, then the
    wins of its second agent, then ties. ``queries`` has the names of the clusters, and ``unit`` is their kind.
    """

    def __init__(
        self,
        games: Games,
        fitted: BradleyTerry,
        cluster: NDArray[np.int32] | None = None,
        queries: Sequence[str] | None = None,
        unit: Unit = "game",
    ) -> None:
        pairs = fitted.counts
        self.fitted, self.cluster, self._queries, self._unit = fitted, cluster, queries, unit
        kind = game_cells(games, pairs, ordered=fitted.form.position)
        self._removal_orders: dict[tuple[int, int], _RemovalOrder] = {}
        kinds = 3 * pairs.a.size
        self.counts = np.bincount(kind, games.weights, kinds).astype(np.float64)
        self.units = int(self.counts.sum())
        self._gap_slope, self._tie_slope = (np.concatenate(part) for part in single_game_slopes(fitted))
        self._inverse = np.asarray(np.linalg.inv(fitted.curvature()), np.float64)
        self.by_cluster = scipy.sparse.csr_array((0, kinds))
        if cluster is not None:
            self.by_cluster = scipy.sparse.csr_array(
                (games.weights, (cluster, kind)), shape=(int(cluster.max(initial=-1)) + 1, kinds)
            )
            self.units = int((self.by_cluster.sum(axis=1) > 0).sum())

    def challengers(self, largest_share: float = _LARGEST_SHARE) -> list[int]:
        """The agents that can become leader by the fewest removals, by the influence function."""
        ratings = self.fitted.ratings
        leader = int(ratings.argmax())
        others = [agent for agent in range(ratings.size) if agent != leader]
        others.sort(key=lambda agent: (self.removal_order(leader, agent).guess(largest_share), -ratings[agent]))
        return others[:_CHALLENGERS]

    def leader_flip(self, challengers: Iterable[int], largest_share: float = _LARGEST_SHARE) -> Fragility | None:
        """The smallest removal after which another agent leads, up to ``largest_share`` of all units.

        ``None`` if there are no challengers, so that there is only one agent.
        """
        leader = int(self.fitted.ratings.argmax())

        def new_leader(ratings: Floats) -> int | None:
            best = int(np.where(np.isnan(ratings), -np.inf, ratings).argmax())
            return best if ratings[best] > ratings[leader] + RESOLUTION else None

        best = None
        for challenger in challengers:
            flip = self._flip("leader", leader, challenger, new_leader, largest_share)
            if best is None or (flip.count is not None and (best.count is None or flip.count < best.count)):
                best = flip
            if best.count is not None:
                largest_share = (best.count - 1) / self.units
        return best

    def pair_flip(self, one: int, other: int, largest_share: float = _LARGEST_SHARE) -> Fragility:
        """The smallest removal after which two agents swap places."""
        ratings = self.fitted.ratings
        ahead, behind = (one, other) if ratings[one] >= ratings[other] else (other, one)

        def overtaker(ratings: Floats) -> int | None:
            return behind if ratings[behind] > ratings[ahead] + RESOLUTION else None

        return self._flip("neighbours", ahead, behind, overtaker, largest_share)

    def _flip(
        self,
        change: Literal["leader", "neighbours"],
        ahead: int,
        behind: int,
        overtaker: Callable[[Floats], int | None],
        largest_share: float,
    ) -> Fragility:
        """Search for the smallest removal that swaps two agents.

        ``overtaker`` takes the ratings without the removed units and returns the agent that is ahead now, or ``None``.
        """
        ratings, tried = self.fitted.ratings, 0
        count: int | None = 0
        queries: tuple[str, ...] = ()
        if ratings[ahead] - ratings[behind] > RESOLUTION:
            removals = self.removal_order(ahead, behind)
            tried = min(int(removals.number.sum()), int(largest_share * self.units + 1e-9))
            count = _fewest(
                lambda count: overtaker(removals.ratings_without(count)) is not None,
                removals.guess(largest_share),
                tried,
            )
            if count is not None:
                winner = overtaker(removals.ratings_without(count))
                behind = behind if winner is None else winner
                if self._queries and self.cluster is not None:
                    queries = tuple(self._queries[number] for number in removals.order[:count])
        agents, share = self.fitted.agents, None if count is None else count / self.units
        return Fragility(change, agents[ahead], agents[behind], self._unit, self.units, count, share, tried, queries)

    def removal_order(self, ahead: int, behind: int) -> _RemovalOrder:
        """Units (games or queries) that favour ``ahead`` over ``behind``, by decreasing influence."""
        if (ahead, behind) not in self._removal_orders:
            self._removal_orders[ahead, behind] = self._sorted_units(ahead, behind)
        return self._removal_orders[ahead, behind]

    def _sorted_units(self, ahead: int, behind: int) -> _RemovalOrder:
        grouped = weakref.proxy(self)  # a strong reference would be a cycle and keep the games in memory
        kind_influence = self._influence(ahead, behind)
        gap = float(self.fitted.x[ahead] - self.fitted.x[behind])
        if self.cluster is None:
            in_favour = np.flatnonzero((kind_influence < 0) & (self.counts > 0))
            order = in_favour[np.argsort(kind_influence[in_favour], kind="stable")]
            return _RemovalOrder(grouped, order, kind_influence[order], self.counts[order].astype(np.int64), gap)
        cluster_influence = np.asarray(self.by_cluster @ kind_influence, np.float64)
        order = np.argsort(cluster_influence, kind="stable")
        order = order[cluster_influence[order] < 0]
        return _RemovalOrder(grouped, order, cluster_influence[order], np.ones(order.size, np.int64), gap)

    def ratings_without(self, left_out: Floats) -> Floats:
        """Ratings without ``left_out``, the number of removed games of each kind.

        Agents without a remaining game get NaN. All ratings are NaN if the remaining games no longer link all agents.

        Agents without a link to the others would be rated by the prior alone, which says nothing about their order.
        Several sets of agents that never lost (or never won) against the rest all get infinity (or minus infinity).
        """
        counts, pairs = self.counts - left_out, self.fitted.counts
        present = counts > 0.5
        players = np.stack([np.tile(pairs.a, 3)[present], np.tile(pairs.b, 3)[present]])
        played, codes = np.unique(players, return_inverse=True)
        ratings = np.full(len(self.fitted.agents), np.nan)
        if played.size < 2:
            return ratings
        first, second = codes.reshape(players.shape).astype(np.int32)
        games = Games(
            agents=tuple(self.fitted.agents[agent] for agent in played),
            a=first,
            b=second,
            score=np.repeat([1.0, 0.0, 0.5], pairs.a.size)[present],
            a_shown_first=self.fitted.form.position,
            weight=counts[present],
        )
        start = self.fitted.x if played.size == ratings.size else None
        refit = bradley_terry(games, replace(self.fitted.settings, anchor=None), start=start)
        original_causes = {problem.cause for problem in self.fitted.problems}
        is_disconnected = "disconnected" in {problem.cause for problem in refit.problems} - original_causes
        if refit.converged and not is_disconnected:
            ratings[played] = refit.ratings
            for cause, end in (("undefeated", np.inf), ("winless", -np.inf)):
                sets = [problem.agents for problem in refit.problems if problem.cause == cause]
                for agent in itertools.chain(*sets) if len(sets) > 1 else ():
                    ratings[self.fitted.agents.index(agent)] = end
        return ratings

    def _influence(self, ahead: int, behind: int) -> Floats:
        """Change of the gap between two agents if one game of a kind is removed, in log-odds, shape (kinds,).

        It is minus the derivative of the game's log-probability along v = H^-1 c, with c = 1 for the agent ahead, -1
        for the agent behind and 0 otherwise.
        """
        form, pairs = self.fitted.form, self.fitted.counts
        direction = self._inverse[:, ahead] - self._inverse[:, behind]
        gap = direction[pairs.a] - direction[pairs.b] + (direction[form.agents] if form.position else 0.0)
        slope: Floats = self._gap_slope * np.tile(gap, 3)
        if form.has_tie_parameter:
            slope += self._tie_slope * direction[-1]
        return np.negative(slope)


class _RemovalOrder(Struct, frozen=True, eq=False):
    """Games or queries in the order in which they are removed.

    Attributes:
        order: kinds of games, or queries.
        influence: influence of one unit of each entry of ``order``, in log-odds, all negative.
        number: number of units of each entry of ``order``.
        gap: gap between the two agents, in log-odds.
        rated: ratings by number of removed units, cached because the searches for a new leader and for a swap of the
            first two agents need the same ones.
    """

    grouped: GroupedGames
    order: NDArray[np.intp]
    influence: Floats
    number: NDArray[np.int64]
    gap: float
    rated: dict[int, Floats] = field(default_factory=dict)

    def ratings_without(self, count: int) -> Floats:
        if count not in self.rated:
            self.rated[count] = self.grouped.ratings_without(self.left_out(count))
        return self.rated[count]

    def guess(self, largest_share: float) -> int:
        """Number of removals that should close the gap by the influence function, at most one above the given share."""
        if self.gap <= 0:  # already equal
            return 0
        before = np.concatenate([[0.0], np.cumsum(self.influence * self.number)])
        full = int(np.searchsorted(-before, self.gap)) - 1
        limit = int(largest_share * self.grouped.units) + 1
        if full >= self.order.size:
            return limit
        rest = (self.gap + before[full]) / -self.influence[full]
        return min(limit, int(self.number[:full].sum()) + int(rest) + 1)

    def left_out(self, count: int) -> Floats:
        """Number of games of each kind among the first ``count`` units."""
        if self.grouped.cluster is not None:
            return np.asarray(self.grouped.by_cluster[self.order[:count]].sum(axis=0), np.float64)
        result = np.zeros(self.grouped.counts.size)
        before = np.cumsum(self.number) - self.number
        result[self.order] = np.clip(count - before, 0, self.number)
        return result
