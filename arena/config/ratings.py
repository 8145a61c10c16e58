"""How ratings are computed from games: the section ``ratings``, and the options of ``rate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from judges.sections import Draws, Positive, Section, Seed, each_once, nearest

if TYPE_CHECKING:
    from arena.ratings.results import RatingSettings

Ties: TypeAlias = Literal["davidson", "rao-kupper", "half"]
Intervals: TypeAlias = Literal["bootstrap", "sandwich"]
Preferences: TypeAlias = Literal["hard", "soft"]
_DrawsOrNone: TypeAlias = Annotated[int, Field(ge=0, le=100_000)]


class EloSection(Section):
    """Elo ratings: each agent's mean rating over many random orders of the games."""

    k: Positive = 32.0
    """Elo's K: maximum change of a rating after one game."""
    initial: float = 1000.0
    """Elo rating of an agent before its first game; also the mean of the Bradley-Terry ratings."""
    tournaments: Draws = 500
    """Number of random orders of the games."""


def _known(names: list[str]) -> list[str]:
    if not names:
        return names
    from arena.ratings.covariates import QUALITIES

    for name in names:
        if name not in QUALITIES:
            raise ValueError(f"{name!r} is nothing that is measured of an answer{nearest(name, QUALITIES)}")
    return names


class BradleyTerrySection(Section):
    """Bradley-Terry ratings, estimated by maximum likelihood."""

    ties: Ties = "davidson"
    """[Model of ties](rate.md#ties): ``davidson``, ``rao-kupper`` or ``half``."""
    position: bool = False
    """Estimate the advantage of the answer that is shown first. Each order of two answers is then a separate game."""
    covariates: Annotated[list[str], AfterValidator(_known), AfterValidator(each_once)] = Field(default_factory=list)
    """[Qualities of answers](#covariates), such as length; the leaderboard adds ratings that control for them."""
    anchor: str | None = None
    """The agent whose rating is fixed at ``elo.initial``; by default, the mean of all ratings is fixed there."""


class BootstrapSection(Section):
    """The bootstrap: ratings are computed again on resampled queries or games."""

    by: Literal["query", "game"] = "query"
    """What is resampled: ``query`` (a query with all its games) or ``game``."""
    samples: Draws = 1000
    """Number of bootstrap samples, also in calibration."""


class RatingsSection(Section):
    """How ratings are computed from games."""

    elo: EloSection = EloSection.model_construct()
    """Elo ratings, averaged over random orders of the games."""
    bradley_terry: BradleyTerrySection = BradleyTerrySection.model_construct()
    """Bradley-Terry ratings, estimated by maximum likelihood."""
    bootstrap: BootstrapSection = BootstrapSection.model_construct()
    """How queries or games are resampled to compute ranks and groups of agents."""
    intervals: Intervals = "bootstrap"
    """Method for ranks and groups of agents: ``bootstrap`` (resampled queries) or ``sandwich`` (a formula, faster)."""
    preferences: Preferences = "hard"
    """A game's score: ``hard``: by its verdict; ``soft``: [by the judge's probabilities](rate.md#preferences)."""
    min_coverage: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Ratings are shown once this share of the planned verdicts exists for every judge and for every agent."""
    seed: Seed = 0
    """Random seed of Elo's orders, the bootstrap and calibration."""


class RatingOptions(Section):
    """The options of ``rate``, on the command line and in Python; see ``RatingSettings``."""

    ties: Ties = "davidson"
    preferences: Preferences = "hard"
    position: bool = False
    intervals: Intervals = "bootstrap"
    anchor: str | None = None
    initial: float = 1000.0
    scale: Positive = 400.0
    k: Positive = 32.0
    tournaments: _DrawsOrNone = 500
    reconcile: bool | None = None
    win_and_tie: Literal["tie", "win"] = "tie"
    cluster: bool = True
    bootstrap: _DrawsOrNone = 1000
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    fragility: Literal["none", "leader", "neighbours", "auto"] = "auto"
    seed: Seed = 0

    @model_validator(mode="after")
    def _has_orders(self) -> RatingOptions:
        if self.reconcile and self.position:
            raise ValueError("reconciled games have no order, so 'position' cannot be estimated; leave one of them out")
        return self

    def settings(self) -> RatingSettings:
        """Convert the options to the settings with which ratings are computed."""
        from arena.ratings.results import RatingSettings

        return RatingSettings(**self.model_dump(), centre=self.initial)
