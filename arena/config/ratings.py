"""How games become ratings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from judges.sections import Section
from judges.spec import Count


class EloSection(Section):
    """Elo over seeded random orders of all games."""

    k: Annotated[float, Field(gt=0)] = 32.0
    initial: float = 1000.0
    tournaments: Count = 500


class BradleyTerrySection(Section):
    """Bradley-Terry by maximum likelihood."""

    ties: Literal["davidson", "rao-kupper", "half"] = "davidson"


class BootstrapSection(Section):
    """Intervals by resampling whole queries, or single games."""

    by: Literal["query", "game"] = "query"
    samples: Count = 1000


class RatingsSection(Section):
    """How games become ratings."""

    elo: EloSection = EloSection()
    bradley_terry: BradleyTerrySection = BradleyTerrySection()
    bootstrap: BootstrapSection = BootstrapSection()
    min_coverage: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Share of the wanted verdicts of every judge and of every agent that ratings need."""
    seed: int = 0
