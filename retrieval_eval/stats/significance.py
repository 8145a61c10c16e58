"""Paired significance tests of runs over queries, corrected for the number of pairs.

Smucker, Allan and Carterette (2007, CIKM, "A comparison of statistical significance tests for information retrieval
evaluation") find that the t test and the randomisation test agree on such data. If the two disagree here, the reason is
that there are few queries or a few large differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import scipy
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import student, sums_by_unit
from retrieval_eval.stats.estimate import Estimate

_MOST_EXACT = 14
"""Largest number of queries for which all sign flips are enumerated; for more, flips are random."""

_FLIPS = 10_000
_FLIPS_PER_PAIR = 100
"""Number of random sign flips per pair of runs, enough for p-values below 0.01 after Holm's correction."""

_ROUNDING = 1e-9
"""Relative differences of sums up to this size are rounding errors."""

_LEVEL = 0.95
_METHOD = "Student's t"

_CELLS_IN_MEMORY = 4_000_000


class RunComparison(Struct, frozen=True):
    """Two runs compared on the queries of a topic set, by one measure.

    Attributes:
        difference: mean of ``first`` minus mean of ``second``, with the Student interval that matches ``p_t``.
        wins, ties, losses: number of queries where ``first`` scores higher than, equal to, lower than ``second``.
        p_t: two-sided p-value of the paired t test; ``None`` if the differences do not vary and are not 0, or there is
            only one query.
        p_permutation: two-sided p-value of the sign-flip test of the mean difference.
        p_t_holm, p_permutation_holm: p-values corrected for all pairs compared by this measure.
    """

    first: str
    second: str
    difference: Estimate
    wins: int
    ties: int
    losses: int
    p_t: float | None
    p_permutation: float
    p_t_holm: float | None
    p_permutation_holm: float

    def turned(self) -> RunComparison:
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=self.difference.negated(),
            wins=self.losses,
            losses=self.wins,
        )


def compare(
    values: Floats,
    names: Sequence[str],
    *,
    baseline: str | None = None,
    seed: int = 0,
    unit: NDArray[np.int64] | None = None,
) -> tuple[RunComparison, ...]:
    """Compare all pairs of runs, or all runs with a baseline.

    Args:
        values: each run's value of one measure on each query, shape (runs, queries).
        names: names of the runs.
        baseline: the run to compare all others with; it is ``second`` in each comparison.
        seed: seed of the sign flips.
        unit: the cluster of each query, see ``units_of``; by default each query is its own cluster. The tests use the
            sums of clusters.
    """
    if baseline is None:
        pairs = list(combinations(range(len(names)), 2))
    else:
        pairs = [(run, names.index(baseline)) for run, name in enumerate(names) if name != baseline]
    if not pairs or values.shape[1] == 0:
        return ()
    ones, others = (list(side) for side in zip(*pairs, strict=True))
    differences = values[ones] - values[others]
    unit = np.arange(values.shape[1]) if unit is None else unit
    sums = sums_by_unit(differences, unit)
    p_t, p_flip = paired_t(sums), sign_flip(sums, seed)
    columns = zip(
        pairs,
        differences,
        _differences(differences, unit, max(1.0, float(values.max()) - min(0.0, float(values.min())))),
        _numbers(p_t),
        _numbers(_holm_defined(p_t)),
        p_flip.tolist(),
        holm(p_flip).tolist(),
        strict=True,
    )
    return tuple(
        RunComparison(
            first=names[one],
            second=names[other],
            difference=estimate,
            wins=int((pair_differences > 0).sum()),
            ties=int((pair_differences == 0).sum()),
            losses=int((pair_differences < 0).sum()),
            p_t=t,
            p_permutation=flip,
            p_t_holm=t_holm,
            p_permutation_holm=flip_holm,
        )
        for (one, other), pair_differences, estimate, t, t_holm, flip, flip_holm in columns
    )


def _differences(differences: Floats, unit: NDArray[np.int64], most: float) -> list[Estimate]:
    """Mean differences over queries with Student's 95 % intervals over units.

    Intervals are clipped to [-most, most], where ``most`` is the largest possible difference. There is no interval for
    a single unit or if all units are equal, because the data then do not show how the difference varies.
    """
    mean = differences.mean(axis=1)
    sizes = np.bincount(unit)
    units = sizes.size
    spread = (sums_by_unit(differences, unit) - mean[:, np.newaxis] * sizes) / sizes.mean()
    error = spread.std(axis=1, ddof=1) / np.sqrt(units) if units > 1 else np.zeros(mean.size)
    reach = student(_LEVEL, units) * error
    return [
        Estimate(value, max(-most, value - half), min(most, value + half), units, _METHOD)
        if half > _ROUNDING
        else Estimate(value, n=units)
        for value, half in zip(mean.tolist(), reach.tolist(), strict=True)
    ]


def paired_t(differences: Floats) -> Floats:
    """Two-sided p-values of Student's paired t test, shape (pairs, queries) to (pairs,).

    The p-value is 1 if all differences are 0, and NaN if they all have another equal value or there is only one query.
    """
    queries = differences.shape[1]
    mean = differences.mean(axis=1)
    if queries < 2:
        return np.where(mean == 0, 1.0, np.nan)
    error = differences.std(axis=1, ddof=1) / np.sqrt(queries)
    constant = error <= _ROUNDING * np.abs(mean)
    t = np.abs(mean) / np.where(constant, 1.0, error)
    return np.where(constant, np.where(mean == 0, 1.0, np.nan), 2 * scipy.special.stdtr(queries - 1, -t))


def sign_flip(differences: Floats, seed: int = 0) -> Floats:
    """Two-sided p-values of Fisher's randomisation test of the mean, shape (pairs, queries) to (pairs,).

    If two runs are equally good, each query's difference has either sign with equal probability. The p-value is the
    share of sign assignments with a mean at least as far from 0. For few queries it is exact over all assignments. For
    more it uses random assignments and counts the observed one too, so that it is never 0 (Phipson and Smyth 2010,
    Statistical Applications in Genetics and Molecular Biology 9).
    """
    pairs, queries = differences.shape
    observed = np.abs(differences.sum(axis=1)) - _ROUNDING * np.abs(differences).sum(axis=1)
    reached = np.zeros(pairs)
    if queries <= _MOST_EXACT:
        assignments = np.arange(2**queries)[:, np.newaxis] >> np.arange(queries) & 1
        reached += (np.abs((2.0 * assignments - 1) @ differences.T) >= observed).sum(axis=0)
        return reached / len(assignments)
    rng = np.random.default_rng(seed)
    flips = max(_FLIPS, _FLIPS_PER_PAIR * pairs)
    chunk = max(1, _CELLS_IN_MEMORY // max(pairs, queries))
    for start in range(0, flips, chunk):
        size = min(chunk, flips - start)
        signs = 2.0 * rng.integers(0, 2, (size, queries), dtype=np.int8) - 1
        reached += (np.abs(signs @ differences.T) >= observed).sum(axis=0)
    p_values: Floats = (reached + 1) / (flips + 1)
    return p_values


def holm(p: NDArray[np.float64]) -> Floats:
    """Holm's correction of p-values, shape (tests,), in the same order (Holm 1979, Scandinavian J. Stat. 6)."""
    order = np.argsort(p, kind="stable")
    factor = np.arange(p.size, 0, -1)
    corrected = np.empty(p.size)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(factor * p[order]))
    return corrected


def _holm_defined(p: Floats) -> Floats:
    """Holm's correction; an undefined p-value counts as 1 in the correction of the others, and stays NaN."""
    undefined = np.isnan(p)
    return np.where(undefined, np.nan, holm(np.where(undefined, 1.0, p)))


def _numbers(p: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in p]
