"""Rank correlations between agents' scores by two methods (ratings, grades, exams, nuggets), or by judge and people.

Correlations are over agents, with intervals by resampling queries. All methods are scored again on the same resampled
queries, which preserves the correlation of the methods on a query. p-values treat the agents as independent.

The leaderboards of judge and people are compared too. A judge that errs on single items may still rank agents well, and
users decide by the ranking (Zheng et al. 2023, section 4.2, compare both). Both leaderboards use the same items, so
only the judgments differ: Bradley-Terry ratings of verdicts with ties as half a win, and means over queries of grades
and nuggets.

Two methods tell a pair of agents apart if the intervals of its difference by both exclude 0: they prove its order if
the intervals lie on the same side of 0, and reverse it otherwise. The intervals of all differences by a method hold
simultaneously (``arena.ratings.ranks.joint_differences``, as for the rank intervals of the leaderboard), and the 5 %
error probability is divided among the methods. With a probability of 95 % all reported proofs and reversals are
therefore true: one can be false only if one of these intervals misses its true value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.calibration import ItemMeans, Opinion
from arena.calibration.votes import ONE_MEAN, Level, Values, paired
from arena.ratings.bootstrap import bootstrap, refitted
from arena.ratings.bradley_terry import BradleyTerrySettings, bradley_terry
from arena.ratings.elo import elo, resampled_elo
from arena.ratings.games import Games
from arena.ratings.ranks import JointDifferences, competition_ranks, joint_differences, rank_intervals
from arena.ratings.results import RatingSettings, fewest_queries
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import (
    ALONE,
    FEW_QUERIES,
    Clusters,
    estimates,
    unit_weights,
    units_of,
    without_nan,
)
from retrieval_eval.stats.estimate import Coefficient, Drawn, Estimate
from retrieval_eval.stats.paired import holm
from retrieval_eval.stats.rank import HeadWeighted, head_weighted, rank_correlations
from retrieval_eval.stats.scores import MissingShare, Scores, shares

_DECIMALS = 9
_DECIMALS_OF_SAMPLE = 4
"""Decimal places to which resampled ratings are rounded, so that equal agents do not differ by rounding error. Fits are
accurate to 2e-6 points."""
_FEWEST_AGENTS = 3
_ORDERS_OF_SAMPLE = 10
"""Number of random orders of the games over which Elo ratings are averaged in each bootstrap sample."""
_CELLS_IN_MEMORY = 4_000_000
"""Largest number of weights (games x samples) in memory at a time."""


class Played(Struct, frozen=True, eq=False):
    """Scoring of agents by games: their Elo or Bradley-Terry ratings, according to ``settings``.

    ``queries`` has the query or conversation of each cluster of games.
    """

    name: str
    games: Games
    queries: tuple[str, ...]
    settings: RatingSettings | BradleyTerrySettings

    @property
    def agents(self) -> tuple[str, ...]:
        return self.games.agents

    def points(self) -> Floats:
        """Rate the agents by all games, shape (agents,)."""
        if isinstance(self.settings, RatingSettings):
            return np.asarray(elo(self.games, self.settings).mean(axis=0))
        return bradley_terry(self.games, self.settings).ratings

    def drawn(self, weights: Floats) -> Floats:
        """Rate the agents in each bootstrap sample of queries.

        ``weights`` has how often each sample contains each query, shape (samples, queries); the ratings have shape
        (samples, agents). A sample in which some agent has no game cannot rank the agents: its row is NaN.
        """
        games, cluster = self.games, self.games.cluster
        complete = (weights @ self.seen().T.astype(np.float64) > 0).all(axis=1)
        ratings = np.full((len(weights), len(games.agents)), np.nan)
        if isinstance(self.settings, RatingSettings):
            settings = replace(self.settings, tournaments=_ORDERS_OF_SAMPLE)
            samples, chunk_size = np.flatnonzero(complete), max(1, _CELLS_IN_MEMORY // len(games))
            for start in range(0, samples.size, chunk_size):
                chunk = samples[start : start + chunk_size]
                ratings[chunk] = resampled_elo(games, weights[chunk][:, cluster], settings)
        else:
            ratings[complete] = refitted(games, bradley_terry(games, self.settings), weights[complete])
        return np.round(ratings, _DECIMALS_OF_SAMPLE)

    def seen(self) -> NDArray[np.bool_]:
        """Whether the agent has a game on the query, shape (agents, queries)."""
        seen = np.zeros((len(self.agents), len(self.queries)), np.bool_)
        real = self.games.weights > 0
        assert self.games.cluster is not None
        for side in (self.games.a, self.games.b):
            seen[side[real], self.games.cluster[real]] = True
        return seen

    def won(self) -> Scores:
        """Each agent's share of points on each query, a tie counting half."""
        games, shape = self.games, (len(self.agents), len(self.queries))
        assert games.cluster is not None
        points, played = np.zeros(shape), np.zeros(shape)
        for side, score in ((games.a, games.score), (games.b, 1 - games.score)):
            np.add.at(points, (side, games.cluster), score * games.weights)
            np.add.at(played, (side, games.cluster), games.weights)
        values = np.divide(points, played, out=np.full(shape, np.nan), where=played > 0)
        return Scores(self.name, self.agents, self.queries, values)


Method: TypeAlias = Scores | Played
"""A way of scoring agents: means over queries, or ratings from games."""


class MethodScores(Struct, frozen=True):
    """The agents' scores and ranks by one scoring method; rank 1 is best, and equal scores share a rank."""

    method: str
    scores: Mapping[str, float]
    ranks: Mapping[str, int]


class MethodPair(Struct, frozen=True):
    """Rank correlations of two scoring methods over the ``agents`` agents that both score.

    ``head`` takes the first one's scores as the true ones.
    """

    first: str
    second: str
    agents: int
    kendall: Coefficient
    spearman: Coefficient
    head: HeadWeighted


class PlaceGap(Struct, frozen=True):
    """An agent's best and worst rank by any scoring method, with the methods that give it this rank."""

    agent: str
    best: int
    best_by: tuple[str, ...]
    worst: int
    worst_by: tuple[str, ...]


class MethodComparison(Struct, frozen=True):
    """Scores, ranks and rank correlations of several scoring methods.

    Attributes:
        pairs: rank correlations of every two methods that score at least three agents in common.
        places: best and worst rank of each agent that every method scores, the largest difference first.
        queries: number of resampled queries or conversations.
        uneven: agents that lack significantly more of a method's judgments than the other agents do. They are excluded
            from the pairs with this method and from ``places``.
    """

    methods: tuple[MethodScores, ...]
    pairs: tuple[MethodPair, ...]
    places: tuple[PlaceGap, ...]
    queries: int
    uneven: tuple[MissingShare, ...] = ()


def draw(method: Method, queries: Sequence[str], samples: int, seed: int, clusters: Clusters = ALONE) -> Drawn:
    """Score the agents by one method, on all queries and on bootstrap samples of the queries.

    The same ``queries``, ``samples`` and ``seed`` give the same samples for every method. There are no samples if all
    queries belong to one cluster.
    """
    column, unit = {name: index for index, name in enumerate(queries)}, units_of(queries, clusters)
    weights = unit_weights(unit, samples if unit.any() else 0, seed)
    method_weights = weights[:, [column[name] for name in method.queries]]
    return Drawn(method.name, method.agents, method.points(), method.drawn(method_weights))


def compare_methods(
    methods: Sequence[Method],
    samples: int = 200,
    seed: int = 0,
    clusters: Clusters = ALONE,
    *,
    drawn: Callable[[Method, Sequence[str], int, int, Clusters], Drawn] = draw,
) -> MethodComparison:
    """Score the agents by each method on the same bootstrap samples of queries, and compare the methods' rankings.

    ``drawn`` is the function that scores the agents by one method; a caller with a cache may replace ``draw``.
    """
    methods = ranking(methods)
    queries = sorted({query for method in methods for query in method.queries})
    scores = [drawn(method, queries, samples, seed, clusters) for method in methods]
    return compare_drawn(scores, len({*units_of(queries, clusters).tolist()}), uneven_shares(methods, clusters))


def ranking(methods: Sequence[Method]) -> list[Method]:
    """The methods that by themselves say which agent is better."""
    return [method for method in methods if not isinstance(method, Scores) or method.ranks]


def uneven_shares(methods: Sequence[Method], clusters: Clusters = ALONE) -> tuple[MissingShare, ...]:
    scores = {method.name: method for method in methods if isinstance(method, Scores)}
    return tuple(share for share in shares(scores, clusters) if share.uneven)


def compare_drawn(drawn: Sequence[Drawn], queries: int, uneven: Sequence[MissingShare] = ()) -> MethodComparison:
    """Compare scoring methods by the agents' scores on the same bootstrap samples of queries.

    ``queries`` is the number of queries, or of conversations if these are resampled; ``uneven`` is as in
    ``MethodComparison``.
    """
    methods = tuple(map(_method_scores, drawn))
    excluded = {(share.score, share.agent) for share in uneven}
    pairs = []
    for (first, first_scores), (second, second_scores) in combinations(zip(drawn, methods, strict=True), 2):
        common = [
            agent
            for agent in first_scores.scores
            if agent in second_scores.scores and not {(first.name, agent), (second.name, agent)} & excluded
        ]
        if len(common) >= _FEWEST_AGENTS:
            a, b = ([method.agents.index(agent) for agent in common] for method in (first, second))
            points, samples = (first.points[a], second.points[b]), (first.samples[:, a], second.samples[:, b])
            pairs.append(method_pair((first.name, second.name), points, samples, queries))
    places = _rank_gaps(methods, {agent for _, agent in excluded})
    return MethodComparison(methods, tuple(pairs), places, queries, tuple(uneven))


def _method_scores(method: Drawn) -> MethodScores:
    scores = {
        agent: float(score) for agent, score in zip(method.agents, method.points, strict=True) if not np.isnan(score)
    }
    ranks = competition_ranks(np.round(np.array(list(scores.values())), _DECIMALS))
    return MethodScores(method.name, scores, dict(zip(scores, ranks.tolist(), strict=True)))


def method_pair(
    names: tuple[str, str], points: tuple[Floats, Floats], drawn: tuple[Floats, Floats], queries: int
) -> MethodPair:
    """Correlate the rankings by two scoring methods.

    Args:
        names: names of the two methods.
        points: the agents' scores by each method, shape (agents,).
        drawn: the agents' scores by each method on bootstrap samples of the queries, shape (samples, agents).
        queries: number of queries, or of conversations if these are resampled.

    """
    a, b = (np.round(scores, _DECIMALS) for scores in points)
    return MethodPair(*names, a.size, *rank_correlations(a, b, *drawn, queries), head_weighted(a, b))


def _rank_gaps(methods: Sequence[MethodScores], excluded: Collection[str]) -> tuple[PlaceGap, ...]:
    if not methods:
        return ()
    gaps = []
    for agent in methods[0].scores:
        if agent not in excluded and all(agent in method.ranks for method in methods):
            ranks = {method.method: method.ranks[agent] for method in methods}
            best, worst = min(ranks.values()), max(ranks.values())
            gaps.append(
                PlaceGap(
                    agent,
                    best,
                    tuple(name for name, rank in ranks.items() if rank == best),
                    worst,
                    tuple(name for name, rank in ranks.items() if rank == worst),
                )
            )
    return tuple(sorted(gaps, key=lambda gap: (gap.best - gap.worst, gap.agent)))


def leaderboard_agreement(
    level: Level,
    judge: Values,
    people: Values,
    draws: tuple[int, int] = (1000, 0),
    clusters: Clusters = ALONE,
    *,
    means: ItemMeans = ONE_MEAN,
) -> MethodPair | None:
    """Correlate the rankings of agents by people and by a judge, with intervals by resampling queries.

    ``judge`` and ``people`` have a value of each item. ``draws`` has the number of bootstrap samples and the seed.
    ``means`` says which agent's mean an item's value belongs to. ``None`` if items do not belong to agents, or if there
    are fewer than three agents.
    """
    pairs = paired(people, judge)
    places = (-2, -1) if level == "verdicts" else means.names[:1]
    agents = sorted({item[place] for _, item, *_ in pairs for place in places})
    if len(agents) < _FEWEST_AGENTS:
        return None
    sides = [[(query_id, item, values[side]) for query_id, item, *values in pairs] for side in (0, 1)]
    if level == "verdicts":
        scores = [
            _ratings(
                tuple(Opinion(clusters.get(query_id, query_id), item, "", won) for query_id, item, won in side), draws
            )
            for side in sides
        ]
    else:
        by_agent = [[(query_id, item[places[0]], value) for query_id, item, value in side] for side in sides]
        scores = [_query_means(side, agents, draws, clusters) for side in by_agent]
    points, drawn = zip(*scores, strict=True)
    queries = len({clusters.get(query_id, query_id) for query_id, *_ in pairs})
    return method_pair(("people", "judge"), (points[0], points[1]), (drawn[0], drawn[1]), queries)


@lru_cache(maxsize=2)
def _ratings(verdicts: tuple[Opinion, ...], draws: tuple[int, int]) -> tuple[Floats, Floats]:
    """Rate the agents by all verdicts and by each bootstrap sample, shapes (agents,) and (samples, agents).

    Results are cached: people's ratings are slow to compute and the same for all judges of the same games.
    """
    from arena.calibration.consensus import games_of  # late: callers that read cached draws need no fit

    games, _ = games_of(verdicts)
    fitted = bradley_terry(games, BradleyTerrySettings(ties="half"))
    drawn = bootstrap(games, fitted, *draws)
    return fitted.ratings, np.empty((0, len(games.agents))) if drawn is None else drawn.samples


def _query_means(
    values: Sequence[tuple[str, str, float]], agents: Sequence[str], draws: tuple[int, int], clusters: Clusters
) -> tuple[Floats, Floats]:
    """The agents' means over all queries and over each bootstrap sample, shapes (agents,) and (samples, agents)."""
    row = {agent: index for index, agent in enumerate(agents)}
    column = {query_id: index for index, query_id in enumerate(dict.fromkeys(query_id for query_id, *_ in values))}
    total, count = np.zeros((2, len(row), len(column)))
    for query_id, agent, value in values:
        total[row[agent], column[query_id]] += value
        count[row[agent], column[query_id]] += 1
    table = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    means = draw(Scores("", tuple(agents), tuple(column), table), list(column), *draws, clusters)
    return means.points, means.samples


LEVEL = 0.95
"""Probability that no reported order of two agents is false, and that all rank intervals of a method hold."""
_SCALE = 1e4
"""Factor on all scores: the code for intervals expects rating points, and treats a spread below 0.001 as 0."""
_LEAST_DRAWN = 0.5
"""Share of the bootstrap samples in which all agents must have a score; otherwise none of the samples is used."""


class Departure(Struct, frozen=True):
    """Two agents that the scoring method ``way`` ranks in the opposite order of the reference method.

    ``way`` ranks ``raised`` above ``lowered``; the reference method ranks ``lowered`` above ``raised``.
    """

    way: str
    raised: str
    lowered: str


class PairTally(NamedTuple):
    """Number of pairs of agents that a method orders as the reference method does.

    Attributes:
        alike: pairs in the same order by both methods.
        proven, reversed: pairs that both methods tell apart, in the same and in opposite orders.
        tied: pairs that one of the methods, or both, score equal.
    """

    pairs: int
    alike: int
    proven: int
    reversed: int
    tied: int


class PairOrders(Struct, frozen=True, eq=False):
    """How a scoring method orders every two agents, beside a reference method.

    Attributes:
        agents: agents with enough queries by both methods.
        by_reference, by_way: 1 where the method scores the row's agent higher than the column's, -1 where lower, 0
            where equal, shape (agents, agents).
        certain: whether both methods tell the two agents apart, shape (agents, agents).
    """

    way: str
    agents: tuple[str, ...]
    by_reference: NDArray[np.int8]
    by_way: NDArray[np.int8]
    certain: NDArray[np.bool_]

    def tally(self, agent: str | None = None) -> PairTally:
        """Count the pairs of ``agent``, or all pairs."""
        same = self.by_reference * self.by_way
        pairs = ~np.eye(len(self.agents), dtype=bool)
        counts = np.stack([pairs, same > 0, self.certain & (same > 0), self.reversed, pairs & (same == 0)])
        if agent is None:
            return PairTally(*(counts.sum(axis=(1, 2)) // 2).tolist())
        return PairTally(*counts[:, self.agents.index(agent)].sum(axis=1).tolist())

    @property
    def reversed(self) -> NDArray[np.bool_]:
        return np.asarray(self.certain & (self.by_reference * self.by_way < 0), np.bool_)

    @property
    def departures(self) -> tuple[Departure, ...]:
        """The pairs that the two methods surely order differently, in the order of the agents."""
        pairs = zip(*np.nonzero(self.reversed & (self.by_way > 0)), strict=True)
        return tuple(Departure(self.way, self.agents[raised], self.agents[lowered]) for raised, lowered in pairs)


def pair_orders(drawn: Sequence[Drawn], seen: Mapping[str, Mapping[str, int]]) -> tuple[PairOrders, ...]:
    """Compare the orders of all pairs of agents by each other method with those by the first method.

    ``drawn`` has the scores by each method on the same bootstrap samples of queries. ``seen`` has the number of queries
    behind each score, by method and agent; agents with too few (``fewest_queries``) are excluded, and methods that
    leave fewer than two agents.
    """
    first, *others = drawn
    level = 1 - (1 - LEVEL) / len(drawn)
    orders: list[PairOrders] = []
    known: dict[tuple[str, ...], JointDifferences] = {}

    def joint(method: Drawn, agents: tuple[str, ...]) -> JointDifferences:
        key = (method.name, *agents)
        if key not in known:
            known[key] = _joint(method, agents, min(seen[method.name][name] for name in agents), level)
        return known[key]

    for other in others:
        agents = tuple(_comparable((first, other), seen))
        if len(agents) < 2:
            continue
        ranks = [competition_ranks(np.round(_points_of(method, agents), _DECIMALS)) for method in (first, other)]
        by_first, by_other = (np.sign(np.subtract.outer(places, places)).T.astype(np.int8) for places in ranks)
        certain = joint(first, agents).different & joint(other, agents).different
        orders.append(PairOrders(other.name, agents, by_first, by_other, certain))
    return tuple(orders)


def ranked(method: Drawn, agents: Sequence[str], seen: Mapping[str, int]) -> dict[str, Estimate]:
    """Rank of each of the agents among them, with simultaneous 95 % intervals; without, if the queries are too few."""
    ranks = competition_ranks(np.round(_points_of(method, agents), _DECIMALS)).tolist()
    if len(_complete(_samples_of(method, agents))) < 2:
        return dict(zip(agents, map(Estimate, ranks), strict=True))
    lows, highs = rank_intervals(_joint(method, agents, np.array([seen[name] for name in agents]), LEVEL))
    return dict(zip(agents, map(Estimate, ranks, lows.tolist(), highs.tolist()), strict=True))


def _comparable(methods: Sequence[Drawn], seen: Mapping[str, Mapping[str, int]]) -> list[str]:
    agents = [name for name in methods[0].agents if all(seen[method.name].get(name, 0) > 1 for method in methods)]
    enough = fewest_queries(len(agents))
    agents = [name for name in agents if all(seen[method.name][name] >= enough for method in methods)]
    return agents if all(len(_complete(_samples_of(method, agents))) > 1 for method in methods) else []


def _joint(method: Drawn, agents: Sequence[str], units: int | NDArray[np.int64], level: float) -> JointDifferences:
    samples = _complete(_samples_of(method, agents))
    return joint_differences(_SCALE * _points_of(method, agents), (_SCALE * samples,), units, level)


def _points_of(method: Drawn, agents: Sequence[str]) -> Floats:
    return method.points[[method.agents.index(name) for name in agents]]


def _samples_of(method: Drawn, agents: Sequence[str]) -> Floats:
    return method.samples[:, [method.agents.index(name) for name in agents]]


def _complete(samples: Floats) -> Floats:
    """Select the bootstrap samples in which every agent has a score; none if fewer than half are such."""
    complete = samples[without_nan(samples)]
    return complete if len(complete) >= _LEAST_DRAWN * len(samples) else complete[:0]


class PeopleScores(Struct, frozen=True, eq=False):
    """Scores of the agents by people's labels on one level.

    Attributes:
        drawn: the scores, with bootstrap samples; ratings in points for verdicts, otherwise means of the labels.
        seen: number of queries, or of conversations, behind each agent's score.
    """

    level: Level
    drawn: Drawn
    seen: Mapping[str, int]

    def above(self, first: str, second: str) -> tuple[Estimate, float]:
        """How far ``first`` is above ``second``, and the one-sided p-value of its being no better.

        The p-value is 1 if one of the two has too few labels (``FEW_QUERIES``).
        """
        units = min(self.seen.get(agent, 0) for agent in (first, second))
        if units < FEW_QUERIES:
            return Estimate(None), 1.0
        one, other = (self.drawn.agents.index(agent) for agent in (first, second))
        difference = float(self.drawn.points[one] - self.drawn.points[other])
        samples = self.drawn.samples[:, one] - self.drawn.samples[:, other]
        (estimate,) = estimates([difference], samples[:, np.newaxis], units)
        spread = float(np.nanstd(samples)) * math.sqrt(units / (units - 1)) if estimate.low is not None else 0.0
        return estimate, float(scipy.special.stdtr(units - 1, -difference / spread)) if spread > 0 else 1.0


class Contradiction(Struct, frozen=True):
    """Two agents that people rank in the opposite order of the leaderboard; ``difference`` is by people's labels."""

    level: Level
    raised: str
    lowered: str
    difference: Estimate


def contradictions(scores: Sequence[PeopleScores], stated: Sequence[tuple[str, str]]) -> list[Contradiction]:
    """The stated orders, each (better, worse), that people's labels reverse by more than chance.

    The probability that any of them is reported by chance is at most 5 % (Holm's correction over all tests).
    """
    tests = [(own, pair, *own.above(*reversed(pair))) for own in scores for pair in stated]
    corrected = holm(np.array([p for *_, p in tests])).tolist() if tests else []
    return [
        Contradiction(own.level, worse, better, difference)
        for (own, (better, worse), difference, _), p in zip(tests, corrected, strict=True)
        if p <= 1 - LEVEL
    ]
