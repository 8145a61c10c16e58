"""Which games are played."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from judges.sections import Count, Section


class ScheduleSection(Section):
    """Which pairs of agents meet on a query."""

    kind: Literal["all", "random", "baseline", "adaptive"] = "all"
    games_per_query: Count | None = None
    baseline: str | None = None
    seed: int = 0
    decide: Literal["order", "top"] | None = None
    """Of an adaptive schedule: whether all places are to be decided, or the first one."""
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = None
    batch: Count | None = None
    max_games: Count | None = None

    @model_validator(mode="after")
    def _fits_kind(self) -> ScheduleSection:
        if (self.kind == "random") != (self.games_per_query is not None):
            raise ValueError("'games_per_query' goes with kind 'random', and only with it")
        if (self.kind == "baseline") != (self.baseline is not None):
            raise ValueError("'baseline' goes with kind 'baseline', and only with it")
        adaptive = ("decide", "confidence", "batch", "max_games")
        if self.kind != "adaptive" and (given := [name for name in adaptive if getattr(self, name) is not None]):
            raise ValueError(f"'{given[0]}' goes with kind 'adaptive' only")
        return self
