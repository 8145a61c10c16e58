"""Alpha spending: the confidence level of each look when a growing sample is tested several times.

Repeated looks at fixed 95 % intervals are wrong far more often than a single look. Alpha spending (Lan and DeMets 1983,
Biometrika 70; Jennison and Turnbull 2000, *Group Sequential Methods*, chapters 7 and 19) divides the error probability
among the looks. Let t be the share of all queries that are judged so far. By then the looks have spent

    a(t) = 2 - 2 Phi(z / sqrt(t))   on each side, where z is the quantile of a single look,

as O'Brien and Fleming propose. Early looks spend hardly any of it, so the last look is nearly as powerful as a single
one. Only the total number of queries must be known in advance, not the number or times of looks. Each look uses the
single-look interval at its own level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import scipy

from retrieval_eval.stats.arrays import Floats

_POINTS: Final = 401
"""Number of grid points for the density of the test statistic among undecided comparisons."""
_FARTHEST: Final = 8.0
"""Largest distance from 0 of the grid, in standard errors."""
_LEAST: Final = 1e-15


def level_of_look(times: Sequence[float], level: float) -> float:
    """Confidence level of the last of several looks, so that all looks together have the coverage ``level``.

    Args:
        times: the share of all queries that was judged at each look so far, ascending, in (0, 1].
        level: confidence level of a single look.

    Raises:
        ValueError: times are not ascending or outside their range.
    """
    if (
        not times
        or any(later <= earlier for earlier, later in zip([0.0, *times], times, strict=False))
        or times[-1] > 1 + 1e-9
    ):
        raise ValueError("times of looks must be ascending, above 0 and at most 1")
    alpha = (1 - level) / 2
    grid = density = np.zeros(0)
    previous = spent = boundary = 0.0
    for time in times:
        spent_now = float(2 * scipy.special.ndtr(scipy.special.ndtri(alpha / 2) / math.sqrt(min(time, 1.0))))
        increment, spent = spent_now - spent, spent_now
        boundary = _boundary(grid, density, time - previous, math.sqrt(time), increment)
        grid, density = _undecided(grid, density, time - previous, math.sqrt(time), boundary)
        previous = time
    return 1 - 2 * float(scipy.special.ndtr(-boundary / math.sqrt(previous)))


def _boundary(grid: Floats, density: Floats, step: float, sd: float, spent: float) -> float:
    """The boundary that the test statistic (a random walk) crosses at this look with probability ``spent``."""
    if spent < _LEAST:
        return _FARTHEST * sd
    if not grid.size:
        return float(-scipy.special.ndtri(spent)) * sd

    def excess(at: float) -> float:
        beyond = scipy.special.ndtr((grid - at) / math.sqrt(step))
        return float(np.trapezoid(density * beyond, grid)) - spent

    return float(scipy.optimize.brentq(excess, -_FARTHEST * sd, _FARTHEST * sd))


def _undecided(grid: Floats, density: Floats, step: float, sd: float, boundary: float) -> tuple[Floats, Floats]:
    """Density of the test statistic below the boundary after this look: grid points and values."""
    places = np.linspace(-_FARTHEST * sd, boundary, _POINTS)
    spread = math.sqrt(2 * math.pi * step)
    if not grid.size:
        return places, np.exp(-(places**2) / (2 * step)) / spread
    kernel = np.exp(-((places[:, np.newaxis] - grid) ** 2) / (2 * step)) / spread
    return places, np.asarray(np.trapezoid(kernel * density, grid, axis=1), np.float64)
