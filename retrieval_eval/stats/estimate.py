"""A figure, how sure it is, and what that rests on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Own = TypeVar("Own", bound="Estimate")

PROVENANCE: Final = ("n", "method")
"""Fields that no file has: what a board says once of all its figures would stand beside each of them."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval; ``None`` where it is not defined, or nothing shows how it varies.

    Attributes:
        value: the figure.
        low, high: ends of its interval, at 95 % unless its maker says otherwise.
        n: independent units behind it, as a rule queries.
        method: where the interval comes from, such as ``bootstrap``. Figures are equal by value and ends alone.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = field(default=None, compare=False)
    method: str = field(default="", compare=False)

    def negated(self: Own) -> Own:
        """The estimate of the figure with the other sign."""
        value, low, high = (None if bound is None else -bound for bound in (self.value, self.high, self.low))
        return replace(self, value=value, low=low, high=high)

    def within(self: Own, least: float, most: float) -> Own:
        """The estimate of a figure that cannot lie beyond these ends."""
        points = (self.value, self.low, self.high)
        value, low, high = (None if point is None else min(most, max(least, point)) for point in points)
        return replace(self, value=value, low=low, high=high)


@dataclass(frozen=True, slots=True)
class Coefficient(Estimate):
    """A correlation with a test.

    Attributes:
        p_value: two-sided, of no correlation; ``None`` where no test is valid.
    """

    p_value: float | None = None


NO_COEFFICIENT: Final = Coefficient(None)
"""Where a correlation is not defined."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A method's scores.

    Attributes:
        agents: names, in the order of scores.
        points: shape (agents,).
        samples: on resampled queries, shape (samples, agents).
    """

    name: str
    agents: tuple[str, ...]
    points: NDArray[np.float64]
    samples: NDArray[np.float64]
