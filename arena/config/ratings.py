"""How games become ratings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from judges.sections import Count, Section, each_once, nearest


class EloSection(Section):
    """Elo over seeded random orders of all games."""

    k: Annotated[float, Field(gt=0)] = 32.0
    initial: float = 1000.0
    tournaments: Count = 500


def _known(names: list[str]) -> list[str]:
    if not names:
        return names
    from arena.ratings.qualities import QUALITIES

    for name in names:
        if name not in QUALITIES:
            raise ValueError(f"{name!r} is nothing that is measured of an answer{nearest(name, QUALITIES)}")
    return names


class BradleyTerrySection(Section):
    """Bradley-Terry by maximum likelihood."""

    ties: Literal["davidson", "rao-kupper", "half"] = "davidson"
    position: bool = False
    """Whether the advantage of being shown first is taken off; every verdict is then a game."""
    covariates: Annotated[list[str], AfterValidator(_known), AfterValidator(each_once)] = Field(default_factory=list)
    """Qualities of answers that further ratings, beside these, are controlled for."""
    anchor: str | None = None
    """The agent whose rating is ``elo.initial``, in place of the mean."""


class BootstrapSection(Section):
    """Intervals by resampling whole queries, or single games."""

    by: Literal["query", "game"] = "query"
    samples: Count = 1000


class RatingsSection(Section):
    """How games become ratings."""

    elo: EloSection = EloSection()
    bradley_terry: BradleyTerrySection = BradleyTerrySection()
    bootstrap: BootstrapSection = BootstrapSection()
    intervals: Literal["bootstrap", "sandwich"] = "bootstrap"
    """Where intervals come from: resampled queries, or the sandwich covariance clustered by query."""
    preferences: Literal["hard", "soft"] = "hard"
    """Whether a game is scored by its verdict, or by the label probabilities of judges that give them."""
    min_coverage: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Share of the wanted verdicts of every judge and of every agent that ratings need."""
    seed: int = 0
