"""When to stop asking: a few calls that fail alike before any succeeds tell of wrong settings, and not of the texts."""

from __future__ import annotations

from collections import Counter
from typing import Final

FEW: Final = 5
"""Calls, or judgments, that may fail for one cause before any has succeeded."""
_SAY_NOTHING: Final = frozenset({"stopped", "budget", "cancelled", "not_recorded"})
"""Causes that tell nothing of the settings: recordings need not hold every prompt."""


class Misses:
    """Counts failures by their cause until something succeeds; from then on nothing counts any more."""

    def __init__(self) -> None:
        self._counts: Counter[str] | None = Counter()

    def hit(self) -> None:
        """Something succeeded."""
        self._counts = None

    def miss(self, cause: str) -> bool:
        """Count a failure; returns whether it is time to stop."""
        if self._counts is None or cause in _SAY_NOTHING:
            return False
        self._counts[cause] += 1
        return self._counts[cause] >= FEW


def alike(message: str) -> str:
    """Why somebody is not asked any more: the last of the failures, and how many there were."""
    return f"{message} ({FEW} failed alike and none succeeded)"
