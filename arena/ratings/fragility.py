"""How few games, or queries, carry an order of two agents: would it stand without them?

Which ones weigh most is read off the influence function (Broderick, Giordano and Meager 2020, "An automatic
finite-sample robustness metric", arXiv 2011.14999): leaving out a game with score u moves the parameters by -H^-1 u, H
the curvature at the fit. Games or queries are left out in the order of that influence, and every count reported has
been confirmed by fitting what remains. It is an upper bound on the fewest: fewer, otherwise chosen, may do as well.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence

import numpy as np
import scipy
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.ratings.bradley_terry import BradleyTerry, bradley_terry, single_game_slopes
from arena.ratings.counts import game_cells
from arena.ratings.games import Games, Unit
from arena.ratings.results import AgentRating, Fragility, RatingSettings
from retrieval_eval.stats.arrays import Floats

_RESOLUTION = 1e-6
"""Ratings closer than this many points are equal."""

_FEW_AGENTS, _FEW_GAMES = 12, 20_000
"""Up to here the fragility of all neighbours takes no more than a second or two."""

_LARGEST_SHARE = 0.25
"""Of all units, beyond which an order is not fragile."""

_CHALLENGERS = 3
"""Agents tried for the lead: those that the influence function says are nearest to it."""


class Flip(Struct, frozen=True):
    """What it takes to turn the order of two agents.

    Attributes:
        ahead: the agent with the higher rating, or the leader.
        behind: the agent that then is ahead; for the leader, the new one, or the nearest where none was found.
        unit: what is left out.
        units: how many there are.
        count: how many suffice, confirmed by fitting the rest; 0 where the two are equal already, ``None`` where
            ``tried`` do not suffice.
        tried: the most that were left out together.
        removed: which: row numbers of the games, or numbers of the queries, those that weigh most first.
    """

    ahead: str
    behind: str
    unit: Unit
    units: int
    count: int | None
    tried: int
    removed: tuple[int, ...]


def fragilities(
    games: Games,
    fitted: BradleyTerry,
    rows: Sequence[AgentRating],
    settings: RatingSettings,
    queries: tuple[str, ...] | None,
    *,
    by: Unit = "query",
) -> tuple[Fragility, ...]:
    """How fragile the lead and the order of neighbours are, as far as the settings ask: by game and by query.

    ``fitted`` comes from ``games``, ``rows`` are the agents, best first, and ``queries`` name the games' clusters,
    which are ``by``.
    """
    if settings.fragility == "none":
        return ()
    few = len(rows) <= _FEW_AGENTS and len(games) <= _FEW_GAMES
    all_pairs = settings.fragility == "neighbours" or (settings.fragility == "auto" and few)
    units: tuple[Unit, ...] = ("game", "query") if settings.cluster else ("game",)
    decks = [deck for unit in units if (deck := deck_of(games, fitted, unit))]
    found: list[tuple[str, Flip | None]] = [("leader", leader_flip(deck, decks[0])) for deck in decks]
    for two in itertools.pairwise(row.agent for row in rows) if all_pairs else ():
        found += [("neighbours", pair_flip(deck, *two)) for deck in decks]
    return tuple(
        Fragility(
            change="leader" if change == "leader" else "neighbours",
            ahead=flip.ahead,
            behind=flip.behind,
            unit=by if flip.unit == "query" else "game",
            units=flip.units,
            count=flip.count,
            share=None if flip.count is None else flip.count / flip.units,
            tried=flip.tried,
            queries=tuple(queries[number] for number in flip.removed) if queries and flip.unit == "query" else (),
        )
        for change, flip in found
        if flip is not None
    )


def leader_flip(deck: Deck, single: Deck, largest_share: float = _LARGEST_SHARE) -> Flip | None:
    """The fewest units without which another agent leads; ``None`` where nobody else is there.

    ``single`` is the deck of single games, which says who is nearest; beyond ``largest_share`` of all units an order is
    not fragile and the search ends.
    """
    ratings = deck.fitted.ratings
    leader = int(ratings.argmax())
    others = [agent for agent in range(ratings.size) if agent != leader]
    nearest = sorted(others, key=lambda agent: (single.queue(leader, agent).guess(largest_share), -ratings[agent]))

    def overtaken(left: Floats) -> int | None:
        best = int(np.where(np.isnan(left), -np.inf, left).argmax())
        return best if left[best] > left[leader] + _RESOLUTION else None

    best = None
    share = largest_share
    for challenger in nearest[:_CHALLENGERS]:
        found = _flip(deck, leader, challenger, overtaken, share)
        if best is None or (found.count is not None and (best.count is None or found.count < best.count)):
            best = found
        if best.count is not None:
            share = (best.count - 1) / deck.units
    return best


def pair_flip(deck: Deck, one: str, other: str, largest_share: float = _LARGEST_SHARE) -> Flip:
    """The fewest units without which two agents change places."""
    ratings = deck.fitted.ratings
    first, second = (deck.fitted.agents.index(name) for name in (one, other))
    ahead, behind = (first, second) if ratings[first] >= ratings[second] else (second, first)

    def turned(left: Floats) -> int | None:
        return behind if left[behind] > left[ahead] + _RESOLUTION else None

    return _flip(deck, ahead, behind, turned, largest_share)


def deck_of(games: Games, fitted: BradleyTerry, unit: Unit) -> Deck | None:
    """The games by this unit; ``None`` where there is none: games without queries, or fractions of games."""
    if not games.are_whole or (unit == "query" and games.cluster is None):
        return None
    return Deck(games, fitted, games.cluster if unit == "query" else None)


def _flip(deck: Deck, ahead: int, behind: int, overtaker: Callable[[Floats], int | None], largest_share: float) -> Flip:
    """``overtaker`` names the agent that went ahead, ``None`` if none did, from the ratings of what is left."""
    names, unit = deck.fitted.agents, deck.unit
    if deck.fitted.ratings[ahead] - deck.fitted.ratings[behind] <= _RESOLUTION:
        return Flip(names[ahead], names[behind], unit, deck.units, 0, 0, ())
    queue = deck.queue(ahead, behind)
    limit = min(int(queue.number.sum()), int(largest_share * deck.units + 1e-9))

    def flipped(count: int) -> bool:
        return overtaker(queue.ratings_without(count)) is not None

    count = _fewest(flipped, queue.guess(largest_share), limit)
    if count is None:
        return Flip(names[ahead], names[behind], unit, deck.units, None, limit, ())
    winner = overtaker(queue.ratings_without(count))
    return Flip(
        names[ahead], names[behind if winner is None else winner], unit, deck.units, count, limit, queue.members(count)
    )


def _fewest(holds: Callable[[int], bool], guess: int, limit: int) -> int | None:
    """The smallest count at which a condition holds that, once it holds, goes on to; ``None`` if beyond the limit."""
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


class Deck:
    """Games as counts of kinds: kind k is a win of the first agent, of the second, or a tie, of pair k mod pairs."""

    def __init__(self, games: Games, fitted: BradleyTerry, cluster: NDArray[np.int32] | None) -> None:
        pairs = fitted.counts
        self.fitted, self.cluster = fitted, cluster
        self.unit: Unit = "game" if cluster is None else "query"
        self.kind = game_cells(games, pairs, ordered=fitted.form.position)
        self.weights = games.weights
        self._queues: dict[tuple[int, int], _Queue] = {}
        kinds = 3 * pairs.a.size
        self.counts = np.bincount(self.kind, self.weights, kinds).astype(np.float64)
        self.units = int(self.counts.sum())
        self._of_gap, self._of_tie = (np.concatenate(part) for part in single_game_slopes(fitted))
        self._inverse = np.asarray(np.linalg.inv(fitted.curvature()), np.float64)
        self.by_cluster = scipy.sparse.csr_array((0, kinds))
        if cluster is not None:
            self.by_cluster = scipy.sparse.csr_array(
                (self.weights, (cluster, self.kind)), shape=(int(cluster.max(initial=-1)) + 1, kinds)
            )
            self.units = int((self.by_cluster.sum(axis=1) > 0).sum())

    def queue(self, ahead: int, behind: int) -> _Queue:
        """All units that hold ``ahead`` above ``behind``, those that weigh most first."""
        if (ahead, behind) not in self._queues:
            self._queues[ahead, behind] = self._ordered(ahead, behind)
        return self._queues[ahead, behind]

    def _ordered(self, ahead: int, behind: int) -> _Queue:
        mine = weakref.proxy(self)  # else games of both would stay until the garbage collector comes by
        of_kinds = self._influence(ahead, behind)
        gap = float(self.fitted.x[ahead] - self.fitted.x[behind])
        if self.cluster is None:
            able = np.flatnonzero((of_kinds < 0) & (self.counts > 0))
            order = able[np.argsort(of_kinds[able], kind="stable")]
            return _Queue(mine, order, of_kinds[order], self.counts[order].astype(np.int64), gap)
        of_clusters = np.asarray(self.by_cluster @ of_kinds, np.float64)
        order = np.argsort(of_clusters, kind="stable")
        order = order[of_clusters[order] < 0]
        return _Queue(mine, order, of_clusters[order], np.ones(order.size, np.int64), gap)

    def ratings_without(self, left_out: Floats) -> Floats:
        """Ratings of what is left, NaN for agents without games; all NaN where agents no longer compare.

        Agents that nothing links any more are rated by the prior alone, which says nothing about their order. Nor does
        it order several that never lost, or never won, against all others: these are all infinitely high, or low.
        """
        counts, pairs = self.counts - left_out, self.fitted.counts
        kept = counts > 0.5
        players = np.stack([np.tile(pairs.a, 3)[kept], np.tile(pairs.b, 3)[kept]])
        played, codes = np.unique(players, return_inverse=True)
        ratings = np.full(len(self.fitted.agents), np.nan)
        if played.size < 2:
            return ratings
        first, second = codes.reshape(players.shape).astype(np.int32)
        games = Games(
            agents=tuple(self.fitted.agents[agent] for agent in played),
            a=first,
            b=second,
            score=np.repeat([1.0, 0.0, 0.5], pairs.a.size)[kept],
            a_shown_first=self.fitted.form.position,
            weight=counts[kept],
        )
        start = self.fitted.x if played.size == ratings.size else None
        again = bradley_terry(games, replace(self.fitted.settings, anchor=None), start=start)
        known = {problem.cause for problem in self.fitted.problems}
        torn = "disconnected" in {problem.cause for problem in again.problems} - known
        if again.converged and not torn:
            ratings[played] = again.ratings
            for cause, end in (("undefeated", np.inf), ("winless", -np.inf)):
                alike = [problem.agents for problem in again.problems if problem.cause == cause]
                for agent in itertools.chain(*alike) if len(alike) > 1 else ():
                    ratings[self.fitted.agents.index(agent)] = end
        return ratings

    def _influence(self, ahead: int, behind: int) -> Floats:
        """What leaving out one game of each kind adds to the gap of two agents, in log-odds, shape (kinds,).

        With v = H^-1 c, c the contrast of the two, it is minus the derivative of the game's log-probability along v.
        """
        form, pairs = self.fitted.form, self.fitted.counts
        direction = self._inverse[:, ahead] - self._inverse[:, behind]
        gap = direction[pairs.a] - direction[pairs.b] + (direction[form.agents] if form.position else 0.0)
        along: Floats = self._of_gap * np.tile(gap, 3)
        if form.has_tie_parameter:
            along += self._of_tie * direction[-1]
        return np.negative(along)


class _Queue(Struct, frozen=True, eq=False):
    """Units in the order in which they are left out.

    Attributes:
        order: kinds of games, or queries.
        influence: of one unit of each, in log-odds, all negative.
        number: units of each.
        gap: between the two agents, in log-odds.
        rated: ratings without the first so many units, as far as they were asked for: the lead and the order of the
            first two turn on the same.
    """

    deck: Deck
    order: NDArray[np.intp]
    influence: Floats
    number: NDArray[np.int64]
    gap: float
    rated: dict[int, Floats] = field(default_factory=dict)

    def ratings_without(self, count: int) -> Floats:
        """Of what is left without the first ``count`` units."""
        if count not in self.rated:
            self.rated[count] = self.deck.ratings_without(self.left_out(count))
        return self.rated[count]

    def guess(self, largest_share: float) -> int:
        """How many units the influence function says close the gap, at most the given share of all and one more."""
        if self.gap <= 0:  # equal already
            return 0
        before = np.concatenate([[0.0], np.cumsum(self.influence * self.number)])
        at = int(np.searchsorted(-before, self.gap)) - 1
        most = int(largest_share * self.deck.units) + 1
        if at >= self.order.size:
            return most
        rest = (self.gap + before[at]) / -self.influence[at]
        return min(most, int(self.number[:at].sum()) + int(rest) + 1)

    def left_out(self, count: int) -> Floats:
        """Games of each kind among the first ``count`` units."""
        if self.deck.cluster is not None:
            return np.asarray(self.deck.by_cluster[self.order[:count]].sum(axis=0), np.float64)
        result = np.zeros(self.deck.counts.size)
        before = np.cumsum(self.number) - self.number
        result[self.order] = np.clip(count - before, 0, self.number)
        return result

    def members(self, count: int) -> tuple[int, ...]:
        """Numbers of the first ``count`` queries, or rows of as many games, a row of weight 2 twice."""
        if self.deck.cluster is not None:
            return tuple(self.order[:count].tolist())
        wanted, kind = self.left_out(count).astype(np.int64), self.deck.kind
        rows = np.flatnonzero(wanted[kind] > 0)
        rows = np.repeat(rows, self.deck.weights[rows].astype(np.int64))
        place = np.zeros(wanted.size, np.int64)
        place[self.order] = np.arange(self.order.size)
        rows = rows[np.argsort(place[kind[rows]], kind="stable")]
        _, start, length = np.unique(place[kind[rows]], return_index=True, return_counts=True)
        nth = np.arange(rows.size) - np.repeat(start, length)
        return tuple(rows[nth < wanted[kind[rows]]].tolist())
