"""Ways of scoring the same agents held against each other: do ratings, grades, exams and nuggets tell one story?

Rank correlations are over agents, with intervals by resampling queries: all methods are scored anew on the same drawn
queries, so that what they share in a query stays shared. p-values are those of so many agents taken as independent.

Judge and people rank agents too, where both judged the same things. A judge that errs on single things may still rank
agents well, and it is the ranking that decides (Zheng et al. 2023, section 4.2, compare both). The two leaderboards
rest on the same things, so that they differ by judgment alone: Bradley-Terry ratings of verdicts with ties as half a
win, means over queries of grades and of nuggets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.calibration.votes import ItemKey, Level, Opinion, Values, paired
from arena.ratings.bootstrap import bootstrap, refitted
from arena.ratings.bradley_terry import BradleyTerrySettings, bradley_terry
from arena.ratings.elo import EloSettings, elo, resampled_elo
from arena.ratings.games import Games
from arena.ratings.ranks import competition_ranks
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import ALONE, Clusters, unit_weights, units_of, weighted_means
from retrieval_eval.stats.estimate import Coefficient, Drawn
from retrieval_eval.stats.missing import Gaps, MissingShare, shares
from retrieval_eval.stats.rank import rank_correlations

_DECIMALS = 9
_DECIMALS_OF_SAMPLE = 4
"""Of ratings in points: fits of samples end within 2e-6 points, and equal agents must not look different."""
_FEWEST_AGENTS = 3
_ORDERS_OF_SAMPLE = 10
"""Random orders that Elo is averaged over in a bootstrap sample."""
_CELLS_IN_MEMORY = 4_000_000
"""Weights of games, over samples, that are held at once."""


class Means(Struct, frozen=True, eq=False):
    """A method that averages over queries.

    Attributes:
        agents, queries: of the rows and columns.
        values: shape (agents, queries), NaN where there is none.
        gaps: the judgments that they rest on, and what is missing of these; ``None`` where nobody counts.
        ends: the least and the most that each value can be, whatever the missing would say, shape (2, agents, queries);
            NaN where there would be none anyway. ``None`` where nothing is missing.
        scale: its ends; ``None`` for 0 to 1, or as far as the values reach.
    """

    name: str
    agents: tuple[str, ...]
    queries: tuple[str, ...]
    values: Floats
    gaps: Gaps | None = None
    ends: Floats | None = None
    scale: tuple[float, float] | None = None

    @property
    def bounds(self) -> Floats:
        """The ``ends``; the values themselves where nothing is missing."""
        return np.array([self.values, self.values]) if self.ends is None else self.ends

    def lowest(self, agent: str) -> float:
        """The least that an agent's mean can be, whatever the missing judgments would say."""
        return self._end(0, agent)

    def highest(self, agent: str) -> float:
        """The most that it can be."""
        return self._end(1, agent)

    def _end(self, end: int, agent: str) -> float:
        row = self.bounds[end, self.agents.index(agent)]
        return float(weighted_means(row[np.newaxis], np.ones((1, row.size)))[0, 0])

    def missing(self, agent: str) -> tuple[int, int]:
        """How many of an agent's judgments are missing, and of how many."""
        return (0, 0) if self.gaps is None else self.gaps.of(agent)

    def points(self) -> Floats:
        """Means, shape (agents,)."""
        means: Floats = self.drawn(np.ones((1, len(self.queries))))[0]
        return means

    def drawn(self, weights: Floats) -> Floats:
        """Means with each row of weights on the queries, shape (samples, queries) to (samples, agents)."""
        return weighted_means(self.values, weights)

    def seen(self) -> NDArray[np.bool_]:
        """Whether there is a value, shape (agents, queries)."""
        return ~np.isnan(self.values)

    def among(self, queries: Collection[str]) -> Means:
        """The same on these queries alone."""
        chosen = [place for place, name in enumerate(self.queries) if name in queries]
        names, gaps = tuple(self.queries[place] for place in chosen), self.gaps
        if gaps is not None:
            gaps = replace(gaps, queries=names, wanted=gaps.wanted[:, chosen], missing=gaps.missing[:, chosen])
        ends = None if self.ends is None else self.ends[:, :, chosen]
        return replace(self, queries=names, values=self.values[:, chosen], gaps=gaps, ends=ends)


class Played(Struct, frozen=True, eq=False):
    """A method that rates games, Elo or Bradley-Terry as its settings say; the games' clusters are ``queries``."""

    name: str
    games: Games
    queries: tuple[str, ...]
    settings: EloSettings | BradleyTerrySettings

    @property
    def agents(self) -> tuple[str, ...]:
        """Names, in the order of scores."""
        return self.games.agents

    def points(self) -> Floats:
        """Ratings, shape (agents,)."""
        if isinstance(self.settings, EloSettings):
            return elo(self.games, self.settings).ratings
        return bradley_terry(self.games, self.settings).ratings

    def drawn(self, weights: Floats) -> Floats:
        """Ratings with each row of weights on the queries, shape (samples, queries) to (samples, agents).

        Drawn queries without a game of some agent order the agents in no way: NaN.
        """
        games, cluster = self.games, self.games.cluster
        whole = (weights @ self.seen().T.astype(np.float64) > 0).all(axis=1)
        rated = np.full((len(weights), len(games.agents)), np.nan)
        if isinstance(self.settings, EloSettings):
            how = replace(self.settings, tournaments=_ORDERS_OF_SAMPLE)
            drawn, at_once = np.flatnonzero(whole), max(1, _CELLS_IN_MEMORY // len(games))
            for start in range(0, drawn.size, at_once):
                part = drawn[start : start + at_once]
                rated[part] = resampled_elo(games, weights[part][:, cluster], how)
        else:
            rated[whole] = refitted(games, bradley_terry(games, self.settings), weights[whole])
        return np.round(rated, _DECIMALS_OF_SAMPLE)

    def seen(self) -> NDArray[np.bool_]:
        """Whether an agent has a game, shape (agents, queries)."""
        return ~np.isnan(self.won().values)

    def won(self) -> Means:
        """Each agent's share of points on each query, a tie counting half."""
        games, shape = self.games, (len(self.agents), len(self.queries))
        assert games.cluster is not None
        points, played = np.zeros(shape), np.zeros(shape)
        for side, score in ((games.a, games.score), (games.b, 1 - games.score)):
            np.add.at(points, (side, games.cluster), score * games.weights)
            np.add.at(played, (side, games.cluster), games.weights)
        values = np.divide(points, played, out=np.full(shape, np.nan), where=played > 0)
        return Means(self.name, self.agents, self.queries, values)


Method: TypeAlias = Means | Played
"""A way of scoring agents."""


class MethodScores(Struct, frozen=True):
    """One method's scores and places (1 is best, equals share a place), by agent."""

    method: str
    scores: Mapping[str, float]
    ranks: Mapping[str, int]


class MethodPair(Struct, frozen=True):
    """How alike two methods order the agents that both score."""

    first: str
    second: str
    agents: int
    kendall: Coefficient
    spearman: Coefficient


class PlaceGap(Struct, frozen=True):
    """An agent's best and worst place over methods."""

    agent: str
    best: int
    best_by: tuple[str, ...]
    worst: int
    worst_by: tuple[str, ...]


class MethodComparison(Struct, frozen=True):
    """All methods.

    Attributes:
        methods: in the order given.
        pairs: every two methods that score three agents or more in common.
        places: by how far places lie apart, the farthest first, among agents that every method scores.
        queries: resampled, or their conversations.
        uneven: agents that lack more judgments of a method than others do by more than chance. They are in no pair with
            this method, and in none of the ``places``.
    """

    methods: tuple[MethodScores, ...]
    pairs: tuple[MethodPair, ...]
    places: tuple[PlaceGap, ...]
    queries: int
    uneven: tuple[MissingShare, ...] = ()


def draw(method: Method, queries: Sequence[str], samples: int, seed: int, clusters: Clusters = ALONE) -> Drawn:
    """A method's scores, and those on draws of these queries, the same for every method; not of a single cluster."""
    number, unit = {name: at for at, name in enumerate(queries)}, units_of(queries, clusters)
    weights = unit_weights(unit, samples if unit.any() else 0, seed)
    own = weights[:, [number[name] for name in method.queries]]
    return Drawn(method.name, method.agents, method.points(), method.drawn(own))


def compare_methods(
    methods: Sequence[Method],
    samples: int = 200,
    seed: int = 0,
    clusters: Clusters = ALONE,
    *,
    drawn: Callable[[Method, Sequence[str], int, int, Clusters], Drawn] = draw,
) -> MethodComparison:
    """Compare methods.

    ``drawn`` gives a method's scores, as ``draw`` does.
    """
    names = sorted({query for method in methods for query in method.queries})
    found = [drawn(method, names, samples, seed, clusters) for method in methods]
    return compare_drawn(found, len({*units_of(names, clusters).tolist()}), uneven_shares(methods, clusters))


def uneven_shares(methods: Sequence[Method], clusters: Clusters = ALONE) -> tuple[MissingShare, ...]:
    """Agents that lack more judgments of a method than others do by more than chance."""
    gaps = {own.name: own.gaps for own in methods if isinstance(own, Means) and own.gaps is not None}
    return tuple(own for own in shares(gaps, clusters) if own.uneven)


def compare_drawn(drawn: Sequence[Drawn], queries: int, uneven: Sequence[MissingShare] = ()) -> MethodComparison:
    """Compare methods by their scores on the same draws of so many queries; ``uneven`` as in the result."""
    scored = tuple(map(_scored, drawn))
    lacking = {(own.score, own.agent) for own in uneven}
    pairs = []
    for (one, by_one), (other, by_other) in combinations(zip(drawn, scored, strict=True), 2):
        common = [
            agent
            for agent in by_one.scores
            if agent in by_other.scores and not {(one.name, agent), (other.name, agent)} & lacking
        ]
        if len(common) >= _FEWEST_AGENTS:
            a, b = ([own.agents.index(agent) for agent in common] for own in (one, other))
            points, samples = (one.points[a], other.points[b]), (one.samples[:, a], other.samples[:, b])
            pairs.append(method_pair((one.name, other.name), points, samples, queries))
    places = _places(scored, {agent for _, agent in lacking})
    return MethodComparison(scored, tuple(pairs), places, queries, tuple(uneven))


def _scored(method: Drawn) -> MethodScores:
    scores = {
        agent: float(score) for agent, score in zip(method.agents, method.points, strict=True) if not np.isnan(score)
    }
    ranks = competition_ranks(np.round(np.array(list(scores.values())), _DECIMALS))
    return MethodScores(method.name, scores, dict(zip(scores, ranks.tolist(), strict=True)))


def method_pair(
    names: tuple[str, str], points: tuple[Floats, Floats], drawn: tuple[Floats, Floats], queries: int
) -> MethodPair:
    """Two methods by their scores of the same agents, shape (agents,), and of samples of queries, (samples, agents)."""
    a, b = (np.round(part, _DECIMALS) for part in points)
    return MethodPair(*names, a.size, *rank_correlations(a, b, *drawn, queries))


def _places(scored: Sequence[MethodScores], without: Collection[str]) -> tuple[PlaceGap, ...]:
    if not scored:
        return ()
    found = []
    for agent in scored[0].scores:
        if agent not in without and all(agent in own.ranks for own in scored):
            places = {own.method: own.ranks[agent] for own in scored}
            best, worst = min(places.values()), max(places.values())
            found.append(
                PlaceGap(
                    agent,
                    best,
                    tuple(name for name, place in places.items() if place == best),
                    worst,
                    tuple(name for name, place in places.items() if place == worst),
                )
            )
    return tuple(sorted(found, key=lambda gap: (gap.best - gap.worst, gap.agent)))


def leaderboard_agreement(
    level: Level, judge: Values, people: Values, draws: tuple[int, int] = (1000, 0), clusters: Clusters = ALONE
) -> MethodPair | None:
    """Correlate the places of agents by people and by a judge, with intervals by resampling queries.

    The same queries are drawn for both; ``draws`` says how often, and the seed.

    Returns:
        ``None`` for documents and for fewer than three agents.
    """
    both = paired(people, judge)
    names = (-2, -1) if level == "verdicts" else (-2,)
    agents = sorted({item[place] for _, item, *_ in both for place in names}) if level != "labels" else []
    if len(agents) < _FEWEST_AGENTS:
        return None
    sides = [[(query_id, item, own[side]) for query_id, item, *own in both] for side in (0, 1)]
    if level == "verdicts":
        scored = [
            _rated(
                tuple(Opinion(clusters.get(query_id, query_id), item, "", won) for query_id, item, won in side), draws
            )
            for side in sides
        ]
    else:
        scored = [_averaged(side, agents, draws, clusters) for side in sides]
    points, drawn = zip(*scored, strict=True)
    queries = len({clusters.get(query_id, query_id) for query_id, *_ in both})
    return method_pair(("people", "judge"), (points[0], points[1]), (drawn[0], drawn[1]), queries)


@lru_cache(maxsize=2)
def _rated(said: tuple[Opinion, ...], draws: tuple[int, int]) -> tuple[Floats, Floats]:
    """Ratings, and those of each sample, shapes (agents,) and (samples, agents).

    People's are kept from one judge to the next, which mostly judged the same games: they take longer than all else.
    """
    from arena.calibration.consensus import games_of  # late: whoever reads kept draws needs no fits

    games, _ = games_of(said)
    fitted = bradley_terry(games, BradleyTerrySettings(ties="half"))
    drawn = bootstrap(games, fitted, *draws)
    return fitted.ratings, np.empty((0, len(games.agents))) if drawn is None else drawn.samples


def _averaged(
    values: Sequence[tuple[str, ItemKey, float]], agents: Sequence[str], draws: tuple[int, int], clusters: Clusters
) -> tuple[Floats, Floats]:
    """Means over queries, shapes as above."""
    row = {agent: at for at, agent in enumerate(agents)}
    column = {query_id: at for at, query_id in enumerate(dict.fromkeys(query_id for query_id, *_ in values))}
    total, count = np.zeros((2, len(row), len(column)))
    for query_id, item, value in values:
        total[row[item[-2]], column[query_id]] += value
        count[row[item[-2]], column[query_id]] += 1
    table = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    found = draw(Means("", tuple(agents), tuple(column), table), list(column), *draws, clusters)
    return found.points, found.samples
