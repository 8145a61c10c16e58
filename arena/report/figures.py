"""Figures as a report shows them: rounded once, and never a number where nothing is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

from retrieval_eval.stats.estimate import Estimate

NONE = "-"
"""In place of a figure that does not exist."""


def number(value: float | None, decimals: int) -> str:
    """With so many decimals."""
    return NONE if value is None else f"{value:,.{decimals}f}"


def percent(share: float | None, decimals: int = 0) -> str:
    """A share as a percentage; less than all is never shown as all."""
    if share is None:
        return NONE
    shown = f"{share:.{decimals}%}"
    return f"{math.floor(share * 10 ** (decimals + 2)) / 10**decimals:g}%" if shown == "100%" and share < 1 else shown


def between(low: float | None, high: float | None, decimals: int) -> str:
    """Both ends of an interval."""
    return NONE if low is None or high is None else f"{low:,.{decimals}f} to {high:,.{decimals}f}"


def shares_between(low: float | None, high: float | None) -> str:
    """Both ends of an interval of a share."""
    return NONE if low is None or high is None else f"{100 * low:.0f} to {high:.0%}"


def with_interval(estimate: Estimate, decimals: int) -> str:
    """The figure, its interval in brackets."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return number(estimate.value, decimals)
    return f"{number(estimate.value, decimals)} ({between(estimate.low, estimate.high, decimals)})"


def in_brackets(low: float | None, high: float | None, decimals: int | None = None) -> str:
    """An interval behind its figure; a share's without ``decimals``."""
    if low is None or high is None:
        return ""
    return f" ({shares_between(low, high) if decimals is None else between(low, high, decimals)})"


class Axis:
    """Values to places in percent of a length, with round ticks, and room at both ends or from 0 on."""

    def __init__(self, values: Sequence[float], *, from_zero: bool = False) -> None:
        low, high = 0.0 if from_zero else min(values), max(values)
        room = 0.05 * (high - low) or 1.0
        self._low = low if from_zero else low - room
        self._span = high + room - self._low

    def place(self, value: float) -> float:
        """Percent of the length."""
        return round(100 * (value - self._low) / self._span, 2)

    def ticks(self, most: int = 7) -> list[tuple[float, str]]:
        """Places and labels of round values, so many at most."""
        step = next(step for step in _steps(self._span) if self._span / step <= most)
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        first = math.ceil(self._low / step)
        last = math.floor((self._low + self._span) / step)
        return [(self.place(step * at), f"{step * at:,.{decimals}f}") for at in range(first, last + 1)]


def _steps(span: float) -> list[float]:
    power = 10.0 ** (math.floor(math.log10(span)) - 1)
    return [power * step for step in (1, 2, 5, 10, 20, 50, 100)]
