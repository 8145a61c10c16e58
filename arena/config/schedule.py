"""Which games are played."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from judges.sections import Count, Section


class ScheduleSection(Section):
    """Which pairs of agents meet on a query."""

    kind: Literal["all", "random", "baseline", "adaptive"] = "all"
    """``all`` pairs, ``random`` pairs, everybody against one ``baseline``, or ``adaptive``."""
    games_per_query: Count | None = None
    """``random``: pairs to draw on each query."""
    baseline: str | None = None
    """``baseline``: the agent that everybody meets."""
    seed: int = 0
    """Of the draws; a new query changes no other query's games."""
    decide: Literal["order", "top"] | None = None
    """``adaptive``: stop once the whole ``order`` (default) or the ``top`` is decided."""
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = None
    """``adaptive``: that no decided place is wrong; 0.95 when left out."""
    batch: Count | None = None
    """``adaptive``: games to choose at a time; 60 when left out."""
    max_games: Count | None = None
    """``adaptive``: most games, decided or not; a game is one pair on one query."""

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
