"""Estimates and what was read of label files, as text for people."""

from __future__ import annotations

from rich.console import Console

from arena.cli.console import output, printable
from retrieval_eval.stats.estimate import Estimate

FEW_QUERIES = 10
"""With fewer queries a bootstrap over them has too little to draw from."""


def value(estimate: Estimate) -> str:
    """The figure; ``-`` where it is not defined."""
    return "-" if estimate.value is None else f"{estimate.value:.2f}"


def interval(estimate: Estimate, decimals: int = 2) -> str:
    """Its interval; ``-`` where there is none."""
    if estimate.low is None or estimate.high is None:
        return "-"
    return f"{estimate.low:.{decimals}f} .. {estimate.high:.{decimals}f}"


def percent(share: float | None) -> str:
    """A share without decimals."""
    return "unknown" if share is None else f"{share:.0%}"


def counted(number: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many}"


def say(text: str, console: Console = output) -> None:
    """Print a line that holds names; a line break in front of it stays one."""
    console.print(("\n" if text.startswith("\n") else "") + printable(text.lstrip("\n")))
