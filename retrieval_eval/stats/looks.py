"""Several looks at a growing sample that may each decide: the level that each look is worth.

A sequence of looks at fixed 95 % intervals is wrong far more often than one. Alpha spending (Lan and DeMets 1983,
Biometrika 70; Jennison and Turnbull 2000, *Group Sequential Methods*, chapters 7 and 19) gives each look a part of what
one look may err: by the time t, the share of all queries that is judged, it has spent

    a(t) = 2 - 2 Phi(z / sqrt(t)),   z the quantile of one look, on each side,

after O'Brien and Fleming: hardly anything early, so that the last look is nearly as strong as a single one. The number
and the times of looks need not be planned, only how many queries there are in all. At each look the one-look interval
is taken at that look's own level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import scipy

from retrieval_eval.stats.arrays import Floats

_POINTS: Final = 401
"""Of the grid on which the density of what has not been decided is kept."""
_FARTHEST: Final = 8.0
"""Standard errors beyond which nothing ever lies."""
_LEAST: Final = 1e-15


def level_of_look(times: Sequence[float], level: float) -> float:
    """The level of the interval at the last of several looks, so that all of them together err as one at ``level``.

    Args:
        times: of all looks so far, rising: the share of the queries in all that was judged at each, above 0 and at
            most 1.
        level: of one look.

    Raises:
        ValueError: times do not rise, or lie outside their range.
    """
    if (
        not times
        or any(late <= early for early, late in zip([0.0, *times], times, strict=False))
        or times[-1] > 1 + 1e-9
    ):
        raise ValueError("times of looks must rise from above 0 to at most 1")
    alpha = (1 - level) / 2
    grid = density = np.zeros(0)
    before = spent = reached = 0.0
    for time in times:
        by_now = float(2 * scipy.special.ndtr(scipy.special.ndtri(alpha / 2) / math.sqrt(min(time, 1.0))))
        own, spent = by_now - spent, by_now
        reached = _boundary(grid, density, time - before, math.sqrt(time), own)
        grid, density = _undecided(grid, density, time - before, math.sqrt(time), reached)
        before = time
    return 1 - 2 * float(scipy.special.ndtr(-reached / math.sqrt(before)))


def _boundary(grid: Floats, density: Floats, step: float, sd: float, spent: float) -> float:
    """Where the walk must be at this look to decide, so that it is there with the probability ``spent``."""
    if spent < _LEAST:
        return _FARTHEST * sd
    if not grid.size:
        return float(-scipy.special.ndtri(spent)) * sd

    def excess(at: float) -> float:
        beyond = scipy.special.ndtr((grid - at) / math.sqrt(step))
        return float(np.trapezoid(density * beyond, grid)) - spent

    return float(scipy.optimize.brentq(excess, -_FARTHEST * sd, _FARTHEST * sd))


def _undecided(grid: Floats, density: Floats, step: float, sd: float, reached: float) -> tuple[Floats, Floats]:
    """Density of the walk below the boundary after this step: a grid, and its values."""
    places = np.linspace(-_FARTHEST * sd, reached, _POINTS)
    spread = math.sqrt(2 * math.pi * step)
    if not grid.size:
        return places, np.exp(-(places**2) / (2 * step)) / spread
    kernel = np.exp(-((places[:, np.newaxis] - grid) ** 2) / (2 * step)) / spread
    return places, np.asarray(np.trapezoid(kernel * density, grid, axis=1), np.float64)
