"""Settings and results of ratings: the settings, the leaderboard, comparisons of agents, and the judges' health."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from arena.present.numbers import counted
from arena.ratings.games import Tally, Unit, WinAndTie
from arena.ratings.likelihood import TieModel
from arena.ratings.pairs import DirectResults
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from arena.ratings.bradley_terry import BradleyTerrySettings

UNITS: Final[Mapping[Unit, tuple[str, str]]] = {
    "query": ("query", "queries"),
    "conversation": ("conversation", "conversations"),
    "game": ("game", "games"),
}
"""Singular and plural noun of each unit."""


FEWEST_QUERIES: Final = 10
"""With fewer queries no difference is significant, for any number of agents; see ``fewest_queries``."""


MOST_JUDGES: Final = 20
"""More judges are people who vote: none of them decides alone, and each judged a small part."""


def fewest_queries(agents: int) -> int:
    """Least number of queries (or games) at which simultaneous intervals of all differences reach their level.

    Ten for up to three agents, and ten more each time their number doubles; by simulation, see
    ``benchmarks/few_queries.py``.
    """
    return math.ceil(FEWEST_QUERIES * (1 + math.log2(max(agents, 3) / 3)))


class RatingSettings(Struct, frozen=True):
    """Settings of a leaderboard; ``arena.config.ratings`` checks them.

    Attributes:
        k, initial, tournaments: Elo's K-factor, its starting rating and its number of random orders (0: no Elo
            ratings).
        scale: points per factor of ten in odds, for Elo and Bradley-Terry.
        ties: the tie model of Bradley-Terry; ``preferences="soft"`` always uses ``half``.
        preferences: ``hard`` scores a game by its verdict, ``soft`` by the judge's probability if there is one.
        position: estimate the advantage of being shown first; each verdict must then be a game, not merged over orders.
        centre: mean of the Bradley-Terry ratings, or the rating of ``anchor``.
        anchor: agent with a rating fixed at ``centre``; ``None`` fixes the mean.
        reconcile: merge the two orders of a game into one; ``None`` merges if any game has both orders and ``position``
            is off.
        win_and_tie: result of a game with a win in one order and a tie in the other.
        cluster: resample whole queries (or conversations) instead of single games.
        bootstrap: number of bootstrap samples, for joint ranks and groups; 0 for no intervals.
        intervals: ``bootstrap`` uses the samples, ``sandwich`` only the covariance. Intervals of ratings use the
            sandwich with Student's t in both cases, because percentiles fail with few queries.
        level: level of the intervals; simultaneous for rank intervals, groups and separable pairs.
        seed: seed of Elo's orders and of the bootstrap.
        fragility: compute fragility for the ``leader``, for the leader and all ``neighbours`` (dozens of fits each),
            or ``none``; ``auto`` includes the neighbours up to 12 agents and 20,000 games.
    """

    k: float = 32.0
    initial: float = 1000.0
    scale: float = 400.0
    tournaments: int = 500
    ties: TieModel = "davidson"
    preferences: Literal["hard", "soft"] = "hard"
    position: bool = False
    centre: float = 1000.0
    anchor: str | None = None
    reconcile: bool | None = None
    win_and_tie: WinAndTie = "tie"
    cluster: bool = True
    bootstrap: int = 1000
    intervals: Literal["bootstrap", "sandwich"] = "bootstrap"
    level: float = 0.95
    seed: int = 0
    fragility: Literal["none", "leader", "neighbours", "auto"] = "auto"

    @property
    def tie_model(self) -> TieModel:
        """The tie model in use: ``half`` for soft preferences, otherwise ``ties``."""
        return "half" if self.preferences == "soft" else self.ties

    @property
    def bradley_terry(self) -> BradleyTerrySettings:
        from arena.ratings.bradley_terry import BradleyTerrySettings  # late import: reading saved ratings fits no model

        return BradleyTerrySettings(self.tie_model, self.position, self.centre, self.anchor, self.scale)


class AgentRating(Struct, frozen=True):
    """One row of the leaderboard.

    Attributes:
        rank: 1 + the number of agents with a higher ``bt``.
        rank_low, rank_high: best and worst rank, simultaneous for all agents at the level of the settings, see
            ``ranks.rank_intervals``. An agent with best rank 1 is tied for first: no agent is surely better. ``None``
            without intervals.
        group: letters of the agent's groups; agents that share a letter have no significant difference, see
            ``ranks.groups``.
        elo: mean Elo rating over random orders of the games; ``None`` for fractional games, which have no order.
        elo_order_sd: standard deviation of ``elo`` over orders: noise of the order, not a standard error.
        bt, bt_low, bt_high: Bradley-Terry rating, and its interval at the level of the settings; ``None`` without
            intervals.
        flags: reasons to read the rating with care: ``undefeated``, ``winless``, ``separated``, ``disconnected``,
            ``ties``, ``position``, ``single_game``.
    """

    agent: str
    rank: int
    rank_low: int | None
    rank_high: int | None
    group: str
    elo: float | None
    elo_order_sd: float | None
    bt: float
    bt_low: float | None
    bt_high: float | None
    games: int | float
    wins: int | float
    ties: int | float
    losses: int | float
    flags: tuple[str, ...]


class Convergence(Struct, frozen=True):
    """How the fits of the point estimate and of the bootstrap samples ended.

    Attributes:
        converged, iterations, gradient_norm: how Newton's method ended for the point estimate; the norm is in games.
        prior_games: number of virtual ties that the prior adds for each rating without a finite maximum; 0 for plain
            maximum likelihood.
        resampled, units: resampled unit, ``None`` without a bootstrap, and the number of units in the data.
        samples_without_maximum: number of bootstrap samples that use the prior.
    """

    converged: bool
    iterations: int
    gradient_norm: float
    prior_games: float
    resampled: Unit | None
    units: int
    samples: int
    samples_without_maximum: int
    samples_not_converged: int


class PairDifference(Struct, frozen=True):
    """Comparison of two agents.

    Attributes:
        difference, se: difference of the Bradley-Terry ratings in points, and its standard error with the clusters of
            the ratings.
        p, p_holm: p-value, uncorrected and corrected for all pairs; ``None`` for too few queries. The corrected one is
            below 1 - level only if the two are separable.
        low, high: interval of the difference, simultaneous for all pairs at the level of the settings.
        separable: whether the interval excludes 0, so that the order of the two is certain at this level.
        queries_needed: additional queries (or games, without queries) that separate them with probability 0.8 if the
            true difference is the estimate; 0 if they are separable; ``None`` if they are practically equal, or if one
            of the ratings is arbitrary, so that its variation is unknown.
        queries_needed_low, queries_needed_high: additional queries needed if the true difference is the upper, or the
            lower end of its 80 % interval; the second is ``None`` if this interval includes 0.
    """

    better: str
    worse: str
    difference: float
    p_holm: float | None
    p: float | None
    se: float
    low: float
    high: float
    separable: bool
    queries_needed: int | None
    queries_needed_low: int | None
    queries_needed_high: int | None


class OtherJudges(Struct, frozen=True):
    """Difference of two neighbours, with the judges as a random sample of such judges.

    Attributes:
        judges: number of judges with a game that bears on the difference.
        interval: the difference in points, with an interval for other queries and other judges that contains the
            simultaneous one of ``PairDifference``; without ends below three judges.
        parts: shares of the variance by source: ``queries``, ``judges``, ``rest``, and ``answers`` if answers are
            repeated. Empty below three judges, or of ``queries`` and ``answers`` alone.
    """

    better: str
    worse: str
    judges: int
    interval: Estimate
    parts: Mapping[str, Estimate] = {}


class Fragility(Struct, frozen=True):
    """Number of games or queries whose removal swaps two agents, see module ``fragility``.

    Attributes:
        change: ``leader`` (another agent leads) or ``neighbours`` (these two swap places).
        ahead, behind: the present order; for ``leader``, ``behind`` is the new leader.
        unit, units: the removed unit, with all its games, and the number of units in the data.
        count, share: number of removals that suffice, and its share of all units; 0 if the two are already equal,
            ``None`` if ``tried`` removals do not suffice.
        tried: the largest number of removals tried.
        queries: names of the removed queries (or conversations), by decreasing influence; empty for games.
    """

    change: Literal["leader", "neighbours"]
    ahead: str
    behind: str
    unit: Unit
    units: int
    count: int | None
    share: float | None
    tried: int
    queries: tuple[str, ...]

    @property
    def noun(self) -> tuple[str, str]:
        return UNITS[self.unit]

    @property
    def sentence(self) -> str:
        """Sentence about a change of leader; only for ``leader`` with a ``count``."""
        return f"Without {self.count} of {counted(self.units, *self.noun)} {self.behind} would be rated highest."


class JudgeHealth(Struct, frozen=True):
    """Consistency and biases of a judge, measured on its ``n`` verdicts.

    Without data, an estimate has no value. Intervals are at 95 % and clustered by query or conversation, if known.

    Attributes:
        both_orders: number of games judged in both orders.
        order_agreement: share of these games with the same outcome in both orders.
        contradictions: number of these games with a different winner in each order.
        first_share: share of the ``decided`` verdicts, those with a winner, won by the agent shown first.
        first_effect: advantage of being shown first, in Elo points; 0 for an unbiased judge.
        lengths_compared: number of decided verdicts on two answers of known and different length.
        longer_share: share of these verdicts won by the longer answer.
        longer_effect: advantage of the longer answer, in Elo points, if two agents are equally strong. Length is not
            randomised, so this is an association and not a cause.
        triples: number of triples of agents with a majority winner in each pair.
        intransitive_triples: number of these triples that are circles.
        queries: number of queries with a verdict; ``None`` if verdicts name no query.
        coverage: share of the combinations of a query and a pair of agents that have a verdict.
    """

    n: int
    tie_rate: Estimate
    both_orders: int
    order_agreement: Estimate
    contradictions: int
    decided: int
    first_share: Estimate
    first_effect: Estimate
    lengths_compared: int
    longer_share: Estimate
    longer_effect: Estimate
    triples: int
    intransitive_triples: int
    queries: int | None
    coverage: float | None


class JudgePair(Struct, frozen=True):
    """Agreement of two judges on the ``games`` that both judged, after reconciliation of the two orders.

    Attributes:
        same_winner, both_tie, opposite: games with the same winner, with two ties, and with opposite winners.
        first_tie, second_tie: games that only the first, or only the second judge calls a tie.
        agreement: share of games with the same outcome.
        kappa: Cohen's kappa, with equal weight for all disagreements.
        kappa_linear: Cohen's kappa, in which the disagreement of a tie and a win counts half as much as opposite
            winners.
    """

    first: str
    second: str
    games: int
    same_winner: int
    both_tie: int
    opposite: int
    first_tie: int
    second_tie: int
    agreement: float
    kappa: Estimate
    kappa_linear: Estimate


class JudgeAgreement(Struct, frozen=True):
    """Agreement between several judges.

    Attributes:
        games: number of games judged by at least two judges.
        alpha: Krippendorff's alpha, nominal: all disagreements count alike.
        alpha_ordinal: Krippendorff's alpha with loss, tie and win as an ordinal scale.
        pairs: agreement of each pair of judges that judged a common game.
        votes: number of independent judges that they are worth, with the majority of the others in place of the truth.
    """

    judges: tuple[str, ...]
    games: int
    alpha: Estimate
    alpha_ordinal: Estimate
    pairs: tuple[JudgePair, ...]
    votes: Estimate = Estimate(None)


class Ratings(Struct, frozen=True):
    """A leaderboard with its uncertainty, diagnostics and notes.

    Attributes:
        agents: one row per agent, best first.
        pairs: comparisons of all pairs of agents; empty for a single query (or game), which shows no variation.
        judge_health: the judge's consistency and biases, from all verdicts; ``None`` for games without verdicts.
        position_effect: advantage of being shown first in points; ``None`` unless ``settings.position`` is on.
        position_low, position_high: interval of ``position_effect`` at the level of the settings.
        tie_parameter: Davidson's nu, or Rao and Kupper's theta; ``None`` with half-win ties.
        tally: counts of the conversion of verdicts to games; ``None`` for games without verdicts.
        notes: sentences with warnings about the numbers.
        judges: agreement between judges; ``None`` for one judge, or if verdicts name no query.
        fragility: fragility by game and, if queries are known, by query; empty if off, and for fractional games.
        direct: what the games within pairs show.
        unit, units: the independent unit (query, conversation or game) and the number of units.
        beyond_place: whether the agent rated highest is still surely better than all others in a fit with a position
            effect; ``None`` if every game was judged in both orders, or if ``settings.position`` is on.
        absent: for each agent with games on clearly fewer queries than other agents, the number of its queries; the
            queries of the other agents may be harder.
        unjudged: number of queries in the data without a judged game.
        other_judges: differences of neighbours with intervals for other judges; empty for one judge.
        without_judge: ratings without the games of each judge, by its name; empty for one judge.
    """

    agents: tuple[AgentRating, ...]
    pairs: tuple[PairDifference, ...]
    judge_health: JudgeHealth | None
    position_effect: float | None
    tie_parameter: float | None
    tally: Tally | None
    settings: RatingSettings
    convergence: Convergence
    notes: tuple[str, ...]
    judges: JudgeAgreement | None = None
    fragility: tuple[Fragility, ...] = ()
    position_low: float | None = None
    position_high: float | None = None
    direct: DirectResults = DirectResults()
    unit: Unit = "query"
    units: int = 0
    beyond_place: bool | None = None
    absent: Mapping[str, int] = {}
    unjudged: int = 0
    other_judges: tuple[OtherJudges, ...] = ()
    without_judge: Mapping[str, Ratings] = {}

    @property
    def noun(self) -> tuple[str, str]:
        return UNITS[self.unit]

    @property
    def by_rank(self) -> tuple[AgentRating, ...]:
        """The agents sorted by decreasing Bradley-Terry rating; ``agents`` may have another order."""
        return tuple(sorted(self.agents, key=attrgetter("rank", "agent")))

    @property
    def first_pair(self) -> PairDifference | None:
        """The comparison of the two agents rated highest; ``None`` without intervals."""
        first = {row.agent for row in self.by_rank[:2]}
        return next((pair for pair in self.pairs if {pair.better, pair.worse} == first), None)

    @property
    def asked(self) -> str:
        """Plural noun for the data to collect: conversations if these are the unit, otherwise queries."""
        return UNITS["query" if self.unit == "game" else self.unit][1]

    @property
    def flips(self) -> tuple[Fragility, ...]:
        """The entries of ``fragility`` without those for agents whose order depends on the prior and not on games.

        The prior acts on flagged agents and, if there are few queries, on all.
        """
        all_affected = self.convergence.prior_games > 0 and self.units < fewest_queries(len(self.agents))
        by_prior = {row.agent for row in self.agents if all_affected or set(row.flags) - {"single_game"}}
        return tuple(
            flip for flip in self.fragility if flip.count is None or by_prior.isdisjoint((flip.ahead, flip.behind))
        )

    @property
    def neighbours(self) -> tuple[PairDifference, ...]:
        """Comparisons of adjacent agents on the leaderboard, from the top."""
        by_agents = {frozenset((pair.better, pair.worse)): pair for pair in self.pairs}
        adjacent = map(frozenset, itertools.pairwise(row.agent for row in self.agents))
        return tuple(by_agents[pair] for pair in adjacent if pair in by_agents)
