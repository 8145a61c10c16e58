"""Figures as a report shows them: rounded once, and never a number where nothing is known."""

from __future__ import annotations

import math

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
