"""Where calls are made: in this process, or on a Ray cluster."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from judges.sections import Section
from judges.spec import Count


class ExecutorSection(Section):
    """``local`` needs nothing; ``ray`` spreads each judge over worker processes, on one machine or many."""

    kind: Literal["local", "ray"] = "local"
    address: str | None = None
    """``auto`` or ``HOST:PORT`` of a running cluster; without it a Ray of its own is started on this machine."""
    workers: Count = 2
    """Processes of each judge. Each makes up to the judge's ``concurrency`` calls at once; limits by the minute and
    ``max_cost_usd`` hold for all of them together."""
    gpus: Annotated[float, Field(ge=0)] = 0
    """For each worker of a local model; may be a fraction."""

    @model_validator(mode="after")
    def _belongs_to_ray(self) -> ExecutorSection:
        if self.kind == "local" and (given := self.model_fields_set - {"kind"}):
            raise ValueError(f"{', '.join(sorted(given))}: only for 'kind: ray'")
        return self
