"""Axes of pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from arena.present.numbers import Number

_MOST_STEPS: Final = 5.0
"""Largest number of steps of an axis between the smallest and the largest value."""


class Scale:
    """An axis from one round value to another that covers all values."""

    def __init__(self, values: Sequence[float], form: Number, most: float = _MOST_STEPS) -> None:
        self._form = form
        ends = [form.factor * value for value in values]
        low, high = min(ends), max(ends)
        step = next(step for step in _steps(high - low) if high / step - low / step <= most)
        first = math.floor(low / step)
        last = max(math.ceil(high / step), first + 1)
        self._low, self._span = first * step, (last - first) * step
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        self.ticks = [f"{step * at:,.{decimals}f}{form.unit}" for at in range(first, last + 1)]

    def place(self, value: float) -> float:
        """Position of the value in percent of the width."""
        return 100 * (self._form.factor * value - self._low) / self._span


def _steps(span: float) -> Iterator[float]:
    power = 10.0 ** (math.floor(math.log10(span)) - 1) if span > 0 else 1.0
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10
