"""Estimates as cells of tables."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from retrieval_eval.stats.estimate import Coefficient, Estimate

NONE: Final = Estimate(None)
"""Where there is nothing to compute a figure from."""

Row: TypeAlias = dict[str, Any]


def with_interval(name: str, own: Estimate | Coefficient, digits: int, factor: int = 1) -> Row:
    """The figure under its name and its interval in words beside it."""
    value = None if own.value is None else factor * own.value
    return {name: value, f"{name}, 95 %": span(own, digits, factor)}


def span(own: Estimate | Coefficient, digits: int, factor: int = 1) -> str:
    """The interval in words."""
    if own.low is None or own.high is None:
        return "none"
    return f"{factor * own.low:.{digits}f} to {factor * own.high:.{digits}f}"


def between(low: float | None, high: float | None) -> str:
    """Ranks or points from low to high, in whole numbers."""
    if low is None or high is None:
        return "none"
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"


def percent(own: Estimate) -> float | None:
    """The figure in percent."""
    return None if own.value is None else 100 * own.value
