"""All choices behind a leaderboard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from arena.ratings.bradley_terry import BradleyTerrySettings, Ties
from arena.ratings.elo import EloSettings
from arena.ratings.games import WinAndTie
from judges.errors import InputError


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
    ties: Ties = "davidson"
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
        if self.ties not in get_args(Ties):
            raise InputError(f"ratings: ties must be one of {', '.join(get_args(Ties))}, not {self.ties!r}")
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
    def tie_model(self) -> Ties:
        """How ties are treated in the end."""
        return "half" if self.preferences == "soft" else self.ties


def bradley_terry_settings(settings: RatingSettings) -> BradleyTerrySettings:
    """The part of the settings that Bradley-Terry needs."""
    return BradleyTerrySettings(
        ties=settings.tie_model,
        position=settings.position,
        centre=settings.centre,
        anchor=settings.anchor,
        scale=settings.scale,
    )


def elo_settings(settings: RatingSettings) -> EloSettings:
    """The part of the settings that Elo needs."""
    return EloSettings(settings.k, settings.initial, settings.scale, settings.tournaments, settings.seed)
