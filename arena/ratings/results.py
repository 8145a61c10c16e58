"""What goes into ratings and what comes out: all choices, a line per agent, the pairs compared, how the fits ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from arena.present.numbers import counted
from arena.ratings.bradley_terry import BradleyTerrySettings
from arena.ratings.elo import EloSettings
from arena.ratings.games import WinAndTie
from arena.ratings.likelihood import TieModel
from judges.errors import InputError

Unit: TypeAlias = Literal["query", "game"]
"""What is independent of the others, drawn, or left out."""
UNITS: Final[Mapping[Unit, tuple[str, str]]] = {"query": ("query", "queries"), "game": ("game", "games")}
"""In words: one, and many."""


@dataclass(frozen=True, slots=True)
class RatingSettings:
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
        cluster: resample whole queries, not single games.
        bootstrap: samples; 0 for no intervals.
        intervals: from the ``bootstrap``, or without samples from the ``sandwich`` covariance.
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
        if not (self.k > 0 and self.scale > 0 and self.tournaments >= 0):
            raise InputError("ratings: k and scale must be positive and tournaments not negative")
        if self.bootstrap < 0 or self.seed < 0 or not 0 < self.level < 1:
            raise InputError("ratings: bootstrap and seed must not be negative, and level must lie between 0 and 1")
        if self.ties not in get_args(TieModel):
            raise InputError(f"ratings: ties must be one of {', '.join(get_args(TieModel))}, not {self.ties!r}")
        if self.intervals not in ("bootstrap", "sandwich"):
            raise InputError(f"ratings: intervals must be 'bootstrap' or 'sandwich', not {self.intervals!r}")
        if self.win_and_tie not in ("tie", "win"):
            raise InputError(f"ratings: win_and_tie must be 'tie' or 'win', not {self.win_and_tie!r}")
        if self.preferences not in ("hard", "soft"):
            raise InputError(f"ratings: preferences must be 'hard' or 'soft', not {self.preferences!r}")
        if self.fragility not in ("none", "leader", "neighbours", "auto"):
            raise InputError(f"ratings: fragility must be none, leader, neighbours or auto, not {self.fragility!r}")
        if self.reconcile and self.position:
            raise InputError("ratings: reconciled games have no order, so position needs every verdict to be a game")

    @property
    def tie_model(self) -> TieModel:
        """How ties are treated in the end."""
        return "half" if self.preferences == "soft" else self.ties

    @property
    def bradley_terry(self) -> BradleyTerrySettings:
        """The part of the settings that Bradley-Terry needs."""
        return BradleyTerrySettings(self.tie_model, self.position, self.centre, self.anchor, self.scale)

    @property
    def elo(self) -> EloSettings:
        """The part of the settings that Elo needs."""
        return EloSettings(self.k, self.initial, self.scale, self.tournaments, self.seed)


@dataclass(frozen=True, slots=True)
class AgentRating:
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
        bt_low, bt_high: its interval, ``None`` where there is no bootstrap.
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


@dataclass(frozen=True, slots=True)
class Convergence:
    """How the fits ended.

    Attributes:
        converged, iterations, gradient_norm: Newton's method on the point estimate; the norm is in games.
        prior_games: virtual draws behind each rating flagged for having no maximum; 0 is plain maximum likelihood.
        resampled: ``query`` or ``game``, ``None`` where there was no bootstrap.
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


@dataclass(frozen=True, slots=True)
class PairDifference:
    """Two agents compared.

    Attributes:
        difference: in Bradley-Terry points.
        p_holm: p-value corrected by Holm for all pairs.
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
    p_holm: float
    p: float
    se: float
    low: float
    high: float
    separable: bool
    queries_needed: int | None
    queries_needed_low: int | None
    queries_needed_high: int | None


@dataclass(frozen=True, slots=True)
class DirectGames:
    """What two agents did against each other alone.

    Attributes:
        one, other: the agents.
        games, wins, ties, losses: their games, as they are rated; wins and losses are those of ``one``.
        low, high: interval of the share of points that ``one`` takes, a tie half; those of all pairs hold at once at
            the level of the settings; ``None`` where a single query (game) shows no variation.
    """

    one: str
    other: str
    games: float
    wins: float
    ties: float
    losses: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Fragility:
    """How few games, or queries, carry the order of two agents; found and confirmed as ``fragility`` says.

    Attributes:
        change: ``leader``, that anyone else leads, or ``neighbours``, that these two change places.
        ahead, behind: the order as it is; for a change of leader, ``behind`` is who would lead.
        unit: ``game`` (its two orders reconciled, where they were) or ``query`` with all of its games.
        units: how many there are.
        count: how many suffice, 0 where the two are equal already, ``None`` for more than ``tried``.
        share: count divided by units.
        tried: the most that were left out together.
        queries: names of the queries to leave out, those that weigh most first; empty for games.
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
