"""Estimates: a figure with its interval, number of observations and method."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace
from numpy.typing import NDArray

EstimateT = TypeVar("EstimateT", bound="Estimate")

PROVENANCE: Final = ("n", "method")
"""Fields of an estimate that are not written to files for each figure: a board states them once for all its figures."""


class Estimate(Struct, frozen=True, eq=False):
    """A figure with its interval. Equality compares only the value and the ends of the interval.

    Attributes:
        value: the figure; ``None`` if undefined.
        low, high: ends of the interval, 95 % by default; ``None`` if the data do not show how the figure varies.
        n: number of independent units, usually queries.
        method: method of the interval, such as ``bootstrap``.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    method: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Estimate) and type(other) is type(self) and other._shown() == self._shown()

    def __hash__(self) -> int:
        return hash(self._shown())

    def _shown(self) -> tuple[Any, ...]:
        return tuple(part for name, part in asdict(self).items() if name not in PROVENANCE)

    def negated(self: EstimateT) -> EstimateT:
        value, low, high = (None if bound is None else -bound for bound in (self.value, self.high, self.low))
        return replace(self, value=value, low=low, high=high)

    def within(self: EstimateT, least: float, most: float) -> EstimateT:
        points = (self.value, self.low, self.high)
        value, low, high = (None if point is None else min(most, max(least, point)) for point in points)
        return replace(self, value=value, low=low, high=high)


class Coefficient(Estimate, frozen=True):
    """A correlation coefficient with the two-sided p-value of no correlation; ``None`` if no test is valid."""

    p_value: float | None = None


NO_COEFFICIENT: Final = Coefficient(None)


class Drawn(Struct, frozen=True, eq=False):
    """Scores of all agents by one method, with bootstrap samples.

    Attributes:
        agents: names, in the order of the scores.
        points: the agents' scores, shape (agents,).
        samples: the agents' scores on resampled queries, shape (samples, agents).
    """

    name: str
    agents: tuple[str, ...]
    points: NDArray[np.float64]
    samples: NDArray[np.float64]
