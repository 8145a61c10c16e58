"""Whether a difference depends on the group of queries: a permutation test, and means shrunk towards the overall mean.

Both take one value per independent unit (a query or a conversation) and the number of the unit's group.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval_eval.stats import Floats

_PERMUTATIONS: Final = 99_999
_ENOUGH: Final = 500
"""The permutations end when this many reach the observed statistic (Besag and Clifford 1991, Biometrika 78)."""
_CELLS: Final = 1_000_000
"""Number of permuted values that are in memory at the same time."""


def interaction(values: Floats, group: NDArray[np.int64], seed: int = 0) -> float | None:
    """P-value of the hypothesis that the values do not depend on the group.

    The statistic is the sum of squares between the groups; its distribution is that over random assignments of the
    groups to the units (Good 2005, "Permutation, Parametric and Bootstrap Tests of Hypotheses", section 3).

    Args:
        values: one value per unit, shape (units,).
        group: number of each unit's group, from 0, shape (units,).

    Returns:
        ``None`` if fewer than two groups have a unit, or all values are equal.
    """
    sizes = np.bincount(group)
    groups = np.flatnonzero(sizes)
    if groups.size < 2 or np.ptp(values) == 0:
        return None
    member = (group[:, None] == groups).astype(np.float64) / np.sqrt(sizes[groups])
    centred, rng = values - values.mean(), np.random.default_rng(seed)

    def between(rows: Floats) -> Floats:
        return np.asarray(((rows @ member) ** 2).sum(axis=1), np.float64)

    observed, reached, made = between(centred[None])[0] * (1 - 1e-9), 0, 0
    chunk = max(1, _CELLS // values.size)
    while made < _PERMUTATIONS and reached < _ENOUGH:
        rows = np.tile(centred, (min(chunk, _PERMUTATIONS - made), 1))
        reached += int((between(rng.permuted(rows, axis=1)) >= observed).sum())
        made += len(rows)
    return (reached + 1) / (made + 1)


def shrunk(values: Floats, group: NDArray[np.int64]) -> Floats:
    """Mean of each group shrunk towards the common mean, shape (groups,); NaN for a group without a unit.

    The variance between groups is the method-of-moments estimate (DerSimonian and Laird 1986, Controlled Clinical
    Trials 7). The units' variance is pooled over the groups, as single groups are too small to estimate theirs.
    """
    sizes = np.bincount(group).astype(np.float64)
    with np.errstate(invalid="ignore"):
        means = np.bincount(group, values) / sizes
    seen = sizes > 0
    k, n = int(seen.sum()), float(sizes.sum())
    if k < 2 or n <= k:
        return np.asarray(means, np.float64)
    within = float(((values - means[group]) ** 2).sum()) / (n - k)
    overall = float(values.mean())
    spread = float((sizes[seen] * (means[seen] - overall) ** 2).sum()) - (k - 1) * within
    between = max(0.0, spread / (n - float((sizes**2).sum()) / n))
    with np.errstate(invalid="ignore", divide="ignore"):
        weight = between / (between + within / sizes) if between else np.zeros(sizes.size)
    return np.where(seen, overall + np.where(seen, weight, 0) * (means - overall), np.nan)
