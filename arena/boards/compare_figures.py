"""The figures of Compare: the agents' scores by every way of scoring, and the orders of the agents they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from arena.boards.games import Wins
from arena.boards.quantities import quantity
from arena.calibration.methods import Departure, MethodComparison, PairOrders, PairTally
from arena.present.numbers import Number, deserved
from arena.present.picture import Look
from arena.ratings.results import UNITS, OtherJudges
from arena.results.scores import RATING
from retrieval_eval.stats.bootstrap import Clusters
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.scores import MissingShare, Scores

PHRASES: Final[Mapping[str, str]] = {"v_strict": "nuggets", "criteria": "mean grades", "people": "people's votes"} | {
    "criteria, people": "people's grades"
}


class Way(Struct, frozen=True):
    """All agents' scores by one way of scoring, such as games or nuggets.

    Attributes:
        scores: score by agent; ``n`` is the number of queries behind it.
        queries: number of queries on which any agent has a score.
        missing: by agent, the number of missing judgments (failed or never made), and of all planned judgments.
        orders: whether the score by itself says which agent is better; only such scores are held against each other.
        ranks, by_games: ranks of the agents that the games rate too, by this way and by the games.
    """

    name: str
    scores: Mapping[str, Estimate]
    queries: int
    missing: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    orders: bool = True
    ranks: Mapping[str, Estimate] = field(default_factory=dict)
    by_games: Mapping[str, Estimate] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return quantity(self.name).title

    @property
    def phrase(self) -> str:
        return PHRASES.get(self.name, self.title)

    @property
    def form(self) -> Number:
        return form_of(quantity(self.name).form, self.scores.values())


class Placement(NamedTuple):
    """An agent that takes another place by a score than by the games.

    Attributes:
        others: agents whose order with this agent differs between the score and the games.
        above: ``True`` if the score places the agent above all of them, ``False`` if below all, ``None`` if mixed.
    """

    agent: str
    others: tuple[str, ...]
    above: bool | None


class ComparedScores(Struct, frozen=True, eq=False):
    """The scores of the same agents by every way of scoring.

    Attributes:
        order: agents, best rated first, then the agents without a rating.
        queries: number of queries, or of conversations, behind the scores.
        ways: the scores; the rating comes first if there is one.
        orders: orders of pairs of agents by the other scores, beside the rating's; pairs that missing judgments could
            turn are not certain. ``None`` without a rating.
        uneven: agents that lack more judgments of a score than other agents do, by more than chance.
        few: number of queries by score, for scores of people that are left out as there are too few.
    """

    order: tuple[str, ...]
    queries: int
    ways: tuple[Way, ...]
    orders: tuple[PairOrders, ...] | None
    methods: MethodComparison
    wins: Wins | None
    by_query: tuple[Scores, ...]
    clusters: Clusters = field(default_factory=dict)
    uneven: tuple[MissingShare, ...] = ()
    other_judges: tuple[OtherJudges, ...] = ()
    tournament: str = ""
    few: Mapping[str, int] = field(default_factory=dict)

    @property
    def noun(self) -> tuple[str, str]:
        return UNITS["conversation" if self.clusters else "query"]

    def findings(self, way: str) -> list[Placement]:
        """Agents about which the score ``way`` disagrees with the games, most disagreements first (greedy cover)."""
        orders = self.orders_of(way)
        left: Sequence[Departure] = orders.departures if orders is not None else ()
        placements: list[Placement] = []
        while left:
            counts = Counter(agent for departure in left for agent in (departure.raised, departure.lowered))
            agent = max(self.order, key=lambda name: counts[name])  # the best rated if several are equally frequent
            involved = [departure for departure in left if agent in (departure.raised, departure.lowered)]
            raised = {departure.raised == agent for departure in involved}
            others = {departure.lowered if departure.raised == agent else departure.raised for departure in involved}
            above = raised.pop() if len(raised) == 1 else None
            placements.append(Placement(agent, tuple(name for name in self.order if name in others), above))
            left = [departure for departure in left if departure not in involved]
        return placements

    def orders_of(self, way: str) -> PairOrders | None:
        return next((orders for orders in self.orders or () if orders.way == way), None)

    def tau_of(self, way: str) -> Estimate | None:
        """Rank correlation of a score with the rating."""
        if self.orders is None:
            return None
        pairs = (pair.kendall for pair in self.methods.pairs if (pair.first, pair.second) == (RATING, way))
        return next((tau for tau in pairs if tau.value is not None), None)


def state_of(tally: PairTally) -> Look:
    """How to draw an agent or a score: blue if more than half of its pairs are proven."""
    return "blue" if 2 * tally.proven > tally.pairs else "open"


def form_of(form: Number, scores: Iterable[Estimate]) -> Number:
    precise = deserved(form, [(score.low, score.high) for score in scores])
    assert isinstance(precise, Number)
    return precise
