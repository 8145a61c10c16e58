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
    """Elo ratings, averaged over random orders of all games."""

    k: Positive = 32.0
    """Step size after one game."""
    initial: float = 1000.0
    """First rating, and the mean of the Bradley-Terry ratings."""
    tournaments: Draws = 500
    """Number of random orders to average over."""


def _known(names: list[str]) -> list[str]:
    if not names:
        return names
    from arena.ratings.covariates import QUALITIES

    for name in names:
        if name not in QUALITIES:
            raise ValueError(f"{name!r} is nothing that is measured of an answer{nearest(name, QUALITIES)}")
    return names


class BradleyTerrySection(Section):
    """Bradley-Terry by maximum likelihood."""

    ties: Ties = "davidson"
    """[How ties count](rate.md#ties): ``davidson``, ``rao-kupper`` or ``half``."""
    position: bool = False
    """Estimate the advantage of being shown first. Every verdict is then a game."""
    covariates: Annotated[list[str], AfterValidator(_known), AfterValidator(each_once)] = Field(default_factory=list)
    """[Qualities](#covariates) of answers to control for in additional ratings."""
    anchor: str | None = None
    """The agent whose rating is fixed at ``elo.initial``; by default the mean rating is."""


class BootstrapSection(Section):
    """Intervals by resampling whole queries, or single games."""

    by: Literal["query", "game"] = "query"
    """What is resampled: ``query`` or ``game``."""
    samples: Draws = 1000
    """Number of samples, also for calibration."""


class RatingsSection(Section):
    """How ratings are computed from games."""

    elo: EloSection = EloSection()
    """Mean Elo over random orders of the games."""
    bradley_terry: BradleyTerrySection = BradleyTerrySection()
    """One strength for each agent, by maximum likelihood."""
    bootstrap: BootstrapSection = BootstrapSection()
    """How queries or games are resampled for ranks and groups."""
    intervals: Intervals = "bootstrap"
    """Ranks and groups from the ``bootstrap`` (resampled queries) or the ``sandwich`` (a formula, quicker)."""
    preferences: Preferences = "hard"
    """``hard``: score a game by its verdict. ``soft``: [by how sure the judge is](rate.md#preferences)."""
    min_coverage: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Share of wanted verdicts that every judge and agent needs before ratings are shown."""
    seed: Seed = 0
    """Seed of Elo's orders, the bootstrap and calibration."""


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
        """The options as settings for computing ratings."""
        from arena.ratings.results import RatingSettings

        return RatingSettings(**self.model_dump(), centre=self.initial)
