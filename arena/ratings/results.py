"""What goes into ratings and what comes out: all choices, the leaderboard line by line, the judges' health."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal, get_args

from msgspec import Struct

from arena.present.numbers import counted
from arena.ratings.games import Tally, Unit, WinAndTie
from arena.ratings.likelihood import TieModel
from arena.ratings.pairs import DirectGames, contradicted
from judges.errors import InputError
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from arena.ratings.bradley_terry import BradleyTerrySettings
    from arena.ratings.elo import EloSettings

UNITS: Final[Mapping[Unit, tuple[str, str]]] = {
    "query": ("query", "queries"),
    "conversation": ("conversation", "conversations"),
    "game": ("game", "games"),
}
"""In words: one, and many."""


FEWEST_QUERIES: Final = 10
"""With fewer queries, no agent is told from another, however few agents there are; see ``fewest_queries``."""


def fewest_queries(agents: int) -> int:
    """From how many queries (or games) on intervals of all differences hold their level, by simulation.

    Ten for up to three agents, and ten more each time their number doubles: ``benchmarks/few_queries.py``.
    """
    return math.ceil(FEWEST_QUERIES * (1 + math.log2(max(agents, 3) / 3)))


_MOST_DRAWS: Final = 100_000
"""Random draws, each of which stays in memory."""


def _one_of(given: str, *known: str) -> tuple[str, bool]:
    return f"{', '.join(known[:-1])} or {known[-1]}", given in known


class RatingSettings(Struct, frozen=True):
    """All choices behind a leaderboard.

    Attributes:
        k, initial, tournaments: Elo's factor, starting rating and number of random orders; none for no Elo ratings.
        scale: points per factor of ten in odds, of both ratings.
        ties: how Bradley-Terry treats ties; as half a win each where games are scored by preferences.
        preferences: ``hard`` scores a game by its verdict, ``soft`` by how sure the judge is of it, where it says so.
        position: whether Bradley-Terry estimates the advantage of being shown first; needs single verdicts.
        centre: mean of the Bradley-Terry ratings, or the rating of ``anchor``.
        anchor: agent held at ``centre``, ``None`` for the mean.
        reconcile: fold the two orders of a game into one; ``None`` does where any game has both orders, unless
            ``position`` is set.
        win_and_tie: what a win in one order and a tie in the other make.
        cluster: resample whole queries, or conversations, not single games.
        bootstrap: samples of resampled queries, which joint ranks and groups rest on; 0 for no intervals.
        intervals: with samples of the ``bootstrap``, or without from the ``sandwich`` covariance alone. Intervals of
            ratings are the sandwich's with Student's t in both, which hold at few queries where percentiles do not.
        level: of intervals, and with which all rank intervals, groups and separable pairs hold at once.
        seed: of Elo's orders and the bootstrap.
        fragility: of the ``leader`` alone, of it and all ``neighbours`` (dozens of fits each), or ``none``; ``auto``
            adds the neighbours up to 12 agents and 20,000 games.
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

    def __post_init__(self) -> None:
        allowed = {
            "k": ("more than 0", 0 < self.k < math.inf),
            "initial": ("a finite number", math.isfinite(self.initial)),
            "scale": ("more than 0", 0 < self.scale < math.inf),
            "tournaments": ("from 0 to 100,000", 0 <= self.tournaments <= _MOST_DRAWS),
            "centre": ("a finite number", math.isfinite(self.centre)),
            "bootstrap": ("from 0 to 100,000", 0 <= self.bootstrap <= _MOST_DRAWS),
            "seed": ("at least 0", self.seed >= 0),
            "level": ("between 0 and 1", 0 < self.level < 1),
            "ties": _one_of(self.ties, *get_args(TieModel)),
            "intervals": _one_of(self.intervals, "bootstrap", "sandwich"),
            "win_and_tie": _one_of(self.win_and_tie, "tie", "win"),
            "preferences": _one_of(self.preferences, "hard", "soft"),
            "fragility": _one_of(self.fragility, "none", "leader", "neighbours", "auto"),
        }
        for name, (asked, holds) in allowed.items():
            if not holds:
                raise InputError(f"ratings: {name} must be {asked}, not {getattr(self, name)!r}")
        if self.reconcile and self.position:
            raise InputError(
                "ratings: reconciled games have no order, so 'position' does not go with them; leave one of the two out"
            )

    @property
    def tie_model(self) -> TieModel:
        """How ties are treated in the end."""
        return "half" if self.preferences == "soft" else self.ties

    @property
    def bradley_terry(self) -> BradleyTerrySettings:
        """The part of the settings that Bradley-Terry needs."""
        from arena.ratings.bradley_terry import BradleyTerrySettings  # late: whoever reads kept ratings fits none

        return BradleyTerrySettings(self.tie_model, self.position, self.centre, self.anchor, self.scale)

    @property
    def elo(self) -> EloSettings:
        """The part of the settings that Elo needs."""
        from arena.ratings.elo import EloSettings

        return EloSettings(self.k, self.initial, self.scale, self.tournaments, self.seed)


class AgentRating(Struct, frozen=True):
    """One line of the leaderboard.

    Attributes:
        rank: 1 + the number of agents with a higher ``bt``.
        rank_low, rank_high: best and worst rank; all agents' intervals hold their true ranks at once at the level of
            the settings, see ``ranks.rank_intervals``. An agent that can rank first is tied for first: none is surely
            better. ``None`` where there is no bootstrap.
        group: letters; agents that share one cannot be told apart, see ``ranks.groups``.
        elo: mean Elo rating over random orders of the games, ``None`` for fractions of games, which have no order.
        elo_order_sd: its standard deviation over orders: order noise, no confidence interval.
        bt: Bradley-Terry rating.
        bt_low, bt_high: its interval, ``None`` where none was asked for or a single query shows no variation.
        games, wins, ties, losses: of the games rated.
        flags: why the rating is to be read with care: ``undefeated``, ``winless``, ``separated``, ``disconnected``,
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
    """How the fits ended.

    Attributes:
        converged, iterations, gradient_norm: Newton's method on the point estimate; the norm is in games.
        prior_games: virtual draws behind each rating flagged for having no maximum; 0 is plain maximum likelihood.
        resampled: ``query``, ``conversation`` or ``game``, ``None`` where there was no bootstrap.
        units: queries or games drawn from.
        samples: bootstrap samples.
        samples_without_maximum: those that used the prior.
        samples_not_converged: those in which Newton's method did not converge.
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
    """Two agents compared.

    Attributes:
        difference: in Bradley-Terry points.
        p_holm: p-value corrected for all pairs by the intervals that ``low`` and ``high`` are from, so that it is below
            1 - level just where the two are separable; ``None`` where the queries are too few for any.
        p: p-value of this pair alone.
        se: standard error of the difference, clustered as the ratings are.
        low, high: interval of the difference; those of all pairs hold at once at the level of the settings.
        separable: whether that interval leaves out 0, so that the order of the two can be believed.
        queries_needed: more queries (games, where there are none) that would make them separable with probability 0.8
            if the difference is what it seems; 0 if they are, ``None`` if they are as good as equal or if the rating of
            either is arbitrary, which leaves nothing to tell its variation from.
        queries_needed_low, queries_needed_high: the same for a difference at the ends of its interval at 80 %; the
            second is ``None`` where that interval holds 0.
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


class Fragility(Struct, frozen=True):
    """How few games, or queries, carry the order of two agents; found and confirmed as ``fragility`` says.

    Attributes:
        change: ``leader``, that anyone else leads, or ``neighbours``, that these two change places.
        ahead, behind: the order as it is; for a change of leader, ``behind`` is who would lead.
        unit: ``game`` (its two orders reconciled, where they were), or ``query`` or ``conversation`` with all of its
            games.
        units: how many there are.
        count: how many suffice, 0 where the two are equal already, ``None`` for more than ``tried``.
        share: count divided by units.
        tried: the most that were left out together.
        queries: names of the queries, or conversations, to leave out, those that weigh most first; empty for games.
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
        """What is left out: one, and many."""
        return UNITS[self.unit]

    @property
    def sentence(self) -> str:
        """Of a change of leader: how many suffice, and who would lead."""
        return f"Without {self.count} of {counted(self.units, *self.noun)} {self.behind} would be rated highest."


class JudgeHealth(Struct, frozen=True):
    """What verdicts say about their judge. What is unknown has no value: nothing there to compute it from.

    Intervals are at 95 % and clustered by query or conversation where these are known.

    Attributes:
        tie_rate: share of verdicts that are ties.
        both_orders: games judged in both orders.
        order_agreement: share of those with the same outcome in both.
        contradictions: how many of them have another winner in each order.
        decided: verdicts that are no tie.
        first_share: share of those won by the agent shown first.
        first_effect: advantage of being shown first, in Elo points; 0 for an unbiased judge.
        lengths_compared: decided verdicts on two answers of known and different length.
        longer_share: share of those won by the longer answer.
        longer_effect: advantage of the longer answer over a shorter one of an equally strong agent, in Elo points.
            Length is not assigned by chance, so it says how verdicts go along with length, not what causes them.
        triples: sets of three agents in which each pair has a majority winner.
        intransitive_triples: those in which the three beat each other in a circle.
        queries: queries with a verdict, ``None`` where verdicts name none.
        coverage: share of all combinations of a query and a pair of agents that have a verdict.
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
    """Two judges on the games that both judged.

    Attributes:
        games: how many those are, each with its two orders reconciled.
        same_winner, both_tie, opposite: games on which they agree on the winner, both see a tie, or name opposite
            winners.
        first_tie, second_tie: games on which only one of them sees a tie.
        agreement: share of games with the same outcome.
        kappa: Cohen's, all disagreements alike.
        kappa_linear: a tie against a win costs half of opposite winners.
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
    """How far several judges agree.

    Attributes:
        games: games with the verdicts of at least two judges.
        alpha: Krippendorff's, nominal: win, tie and loss are three names.
        alpha_ordinal: win, tie and loss are an order.
        pairs: every two judges that share a game.
    """

    judges: tuple[str, ...]
    games: int
    alpha: Estimate
    alpha_ordinal: Estimate
    pairs: tuple[JudgePair, ...]


class Ratings(Struct, frozen=True):
    """A leaderboard with all that is needed to judge it.

    Attributes:
        agents: best first.
        pairs: every pair of agents tested; empty where there is nothing to estimate variation from.
        judge_health: of all verdicts; ``None`` where games came without verdicts.
        position_effect: advantage of being shown first in points, ``None`` unless the settings ask for it.
        position_low, position_high: its interval at the level of the settings.
        tie_parameter: Davidson's nu, ``None`` with half-win ties.
        tally: how verdicts became games, ``None`` where games came without verdicts.
        notes: in words, what a reader must know before believing the numbers.
        judges: how far several judges agree; ``None`` for one judge, or where verdicts name no query.
        fragility: by game and, where they are known, by query; empty where the settings ask for none, and for
            fractions of games.
        direct: the games of every two agents that met.
        unit, units: what is independent, queries, conversations or games, and how many of them there are.
        beyond_place: whether the agent rated highest is still surely better than all others when the advantage of being
            shown first is estimated along; ``None`` where place cannot matter (every game was judged in both orders),
            is part of the ratings, or is not known.
        absent: agents with games on clearly fewer queries than others, each with its number; what these others met may
            have been harder.
        unjudged: further queries of the same data on which no game is judged, though it could be.
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
    direct: tuple[DirectGames, ...] = ()
    unit: Unit = "query"
    units: int = 0
    beyond_place: bool | None = None
    absent: Mapping[str, int] = {}
    unjudged: int = 0

    @property
    def noun(self) -> tuple[str, str]:
        """What is independent, in words: one, and many."""
        return UNITS[self.unit]

    @property
    def by_rank(self) -> tuple[AgentRating, ...]:
        """The agents from the highest Bradley-Terry rating down, whatever orders ``agents``."""
        return tuple(sorted(self.agents, key=attrgetter("rank", "agent")))

    @property
    def asked(self) -> str:
        """What more of would tell more, in words."""
        return UNITS["query" if self.unit == "game" else self.unit][1]

    @property
    def flips(self) -> tuple[Fragility, ...]:
        """What ``fragility`` says of agents whose order rests on games, not on the prior of those that are flagged.

        On few queries that prior moves all others too.
        """
        few = self.convergence.prior_games > 0 and self.units < fewest_queries(len(self.agents))
        held = {row.agent for row in self.agents if few or set(row.flags) - {"single_game"}}
        return tuple(one for one in self.fragility if one.count is None or held.isdisjoint((one.ahead, one.behind)))

    @property
    def contradicted(self) -> tuple[str, ...]:
        """Agents that one rating each cannot describe, from the highest rated down, see ``pairs.contradicted``."""
        above = ((pair.better, pair.worse) for pair in self.pairs if pair.separable)
        return contradicted([row.agent for row in self.by_rank], self.direct, above)

    @property
    def neighbours(self) -> tuple[PairDifference, ...]:
        """The pairs of agents that follow each other on the leaderboard, from the top."""
        of_two = {frozenset((pair.better, pair.worse)): pair for pair in self.pairs}
        names = [row.agent for row in self.agents]
        return tuple(of_two[frozenset(two)] for two in itertools.pairwise(names) if frozenset(two) in of_two)
