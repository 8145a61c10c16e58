"""How games become ratings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from judges.mistakes import nearest
from judges.sections import Count, Section, Seed, each_once


class EloSection(Section):
    """Elo over seeded random orders of all games."""

    k: Annotated[float, Field(gt=0)] = 32.0
    """The step after one game."""
    initial: float = 1000.0
    """First rating; also the mean of the Bradley-Terry ratings."""
    tournaments: Count = 500
    """Random orders of all games to average over."""


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

    ties: Literal["davidson", "rao-kupper", "half"] = "davidson"
    """``davidson`` and ``rao-kupper`` model ties with a parameter; ``half`` counts a tie as half a win each."""
    position: bool = False
    """Estimate the advantage of being shown first; every verdict is then a game of its own."""
    covariates: Annotated[list[str], AfterValidator(_known), AfterValidator(each_once)] = Field(default_factory=list)
    """Qualities of answers for which further ratings are controlled."""
    anchor: str | None = None
    """The agent whose rating is ``elo.initial``, in place of the mean."""


class BootstrapSection(Section):
    """Intervals by resampling whole queries, or single games."""

    by: Literal["query", "game"] = "query"
    """Resample whole queries (``query``) or single games (``game``)."""
    samples: Count = 1000
    """Number of samples; calibration draws as many."""


class RatingsSection(Section):
    """How games become ratings."""

    elo: EloSection = EloSection()
    """Elo."""
    bradley_terry: BradleyTerrySection = BradleyTerrySection()
    """Bradley-Terry."""
    bootstrap: BootstrapSection = BootstrapSection()
    """Intervals."""
    intervals: Literal["bootstrap", "sandwich"] = "bootstrap"
    """``bootstrap`` (resampled queries), or ``sandwich`` (a formula with queries as clusters: quicker on many
    games)."""
    preferences: Literal["hard", "soft"] = "hard"
    """``hard``: score a game by its verdict; ``soft``: by the probability that a judge with ``labels: likeliest`` gives
    each verdict."""
    min_coverage: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Share of the wanted verdicts of every judge and agent below which no ratings are shown; 0 to 1."""
    seed: Seed = 0
    """Of Elo's orders, of the bootstrap and of calibration."""
