"""A figure, how sure it is, and what that rests on."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace
from numpy.typing import NDArray

Own = TypeVar("Own", bound="Estimate")

PROVENANCE: Final = ("n", "method")
"""Fields that no file has: what a board says once of all its figures would stand beside each of them."""


class Estimate(Struct, frozen=True, eq=False):
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
    n: int | None = None
    method: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Estimate) and type(other) is type(self) and other._shown() == self._shown()

    def __hash__(self) -> int:
        return hash(self._shown())

    def _shown(self) -> tuple[Any, ...]:
        return tuple(own for name, own in asdict(self).items() if name not in PROVENANCE)

    def negated(self: Own) -> Own:
        """The estimate of the figure with the other sign."""
        value, low, high = (None if bound is None else -bound for bound in (self.value, self.high, self.low))
        return replace(self, value=value, low=low, high=high)

    def within(self: Own, least: float, most: float) -> Own:
        """The estimate of a figure that cannot lie beyond these ends."""
        points = (self.value, self.low, self.high)
        value, low, high = (None if point is None else min(most, max(least, point)) for point in points)
        return replace(self, value=value, low=low, high=high)


class Coefficient(Estimate, frozen=True):
    """A correlation with a test.

    Attributes:
        p_value: two-sided, of no correlation; ``None`` where no test is valid.
    """

    p_value: float | None = None


NO_COEFFICIENT: Final = Coefficient(None)
"""Where a correlation is not defined."""


class Drawn(Struct, frozen=True, eq=False):
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
