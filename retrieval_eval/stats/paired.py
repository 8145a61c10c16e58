"""Paired comparisons on the same queries: of a new system with an old one, with a non-inferiority margin, and of runs.

The unit is a query. All judgments of a query, by several judges and in both orders, give one difference d_1, ..., d_n,
new minus old, between -reach and reach. The figures x_i = (1 + d_i / reach) / 2 are then in [0, 1]. A gambler who bets
against the hypothesis that their mean is at most m stakes a share s of the capital on each query:

    log capital(m, s) = sum_i log(1 + s (x_i / m - 1)),   0 <= s < 1.

All intervals are built from this capital, each end separately. Ties and equal differences need no special case.

- *One look* after all queries are judged: the empirical likelihood, as for every mean (``mean_interval``). It is the
  capital of the best stake in hindsight, for the queries and a fraction of one more query with the worst figure.
- *Several looks* at a number of queries that is known in advance: the same interval at the level that alpha spending
  assigns to this look (``level_of_look``).
- *Any number of looks*, with queries judged one by one in a random order fixed in advance: the mean capital over a
  fixed set of stakes. The probability that it ever reaches 2 / (1 - level) is at most (1 - level) / 2, for any
  distribution of the figures (Ville's inequality; Waudby-Smith and Ramdas 2024, JRSS B 86).
  ``arena.ratings.adaptive`` is the case m = 1/2.

Alpha spending: repeated looks at fixed 95 % intervals are wrong far more often than a single look, so the error
probability is divided among the looks (Lan and DeMets 1983, Biometrika 70; Jennison and Turnbull 2000, *Group
Sequential Methods*, chapters 7 and 19). Let t be the share of all queries that are judged so far. By then the
looks have spent

    a(t) = 2 - 2 Phi(z / sqrt(t))   on each side, where z is the quantile of a single look,

as O'Brien and Fleming propose. Early looks spend hardly any of it, so the last look is nearly as powerful as a single
one. Only the total number of queries must be known in advance, not the number or times of looks. Each look uses the
single-look interval at its own level.

``benchmarks/gate.py`` measures the coverage of the intervals and the cost of repeated looks.

Comparisons of runs over queries are corrected for the number of pairs (Holm). Smucker, Allan and Carterette (2007,
CIKM, "A comparison of statistical significance tests for information retrieval evaluation") find that the t test and
the randomisation test agree on such data. If the two disagree here, the reason is that there are few queries or a few
large differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Final, Literal, TypeAlias

import numpy as np
import scipy
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike, NDArray

from judges.errors import InputError
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import LIKELIHOOD, mean_interval, student, sums_by_unit
from retrieval_eval.stats.estimate import Estimate

GateVerdict: TypeAlias = Literal["better", "not worse", "worse", "undecided"]

STAKES: Final[Floats] = np.geomspace(0.05, 1.8, 8) / 2
"""Stakes over which the gambler's capital is averaged, as shares of the largest stake. The best stake on a win share p
against one half is about 2p - 1.
"""
MOST: Final = 1_000_000
"""Largest number of additional queries that ``Paired.more`` considers."""
_POWER: Final = 0.8
_SMALLEST: Final = 1e-9
_POINTS: Final = 401
"""Number of grid points at which the density of the test statistic among undecided comparisons is computed."""
_FARTHEST: Final = 8.0
"""Largest distance of a grid point from 0, in standard errors."""
_LEAST: Final = 1e-15


class Paired(Struct, frozen=True):
    """Result of a paired comparison.

    Attributes:
        difference: mean of new minus old over ``n`` queries; no value without queries, no interval below two.
        verdict: derived from the interval: ``better`` if it is above 0, else ``not worse`` if it is above -margin, else
            ``worse`` if it is below 0, else ``undecided``. Each of the first three is wrong with a probability of at
            most (1 - level) / 2. The verdict must also hold if all missing queries were lost, and if all were won;
            otherwise it is ``undecided``.
        margin: how much worse the new system may be and still pass, in units of the differences.
        wins, ties, losses: number of queries where the new system is better than, equal to, worse than the old one.
        missing: number of queries without a difference.
        unsure: whether the verdict is undecided only because of missing queries.
        more: number of additional queries for a decision with 80 % probability, if they are like the present ones;
            ``None`` if the interval already decides, no number would suffice, or there are fewer than two queries.
        ends: lowest and highest possible mean over all queries, given the missing ones; ``None`` without queries.
    """

    difference: Estimate
    verdict: GateVerdict
    margin: float
    wins: int
    ties: int
    losses: int
    missing: int
    unsure: bool
    more: int | None
    ends: tuple[float, float] | None = None


def paired(
    differences: ArrayLike,
    margin: float,
    *,
    missing: int = 0,
    known: ArrayLike = 1.0,
    bounds: ArrayLike | None = None,
    reach: float = 1.0,
    level: float = 0.95,
    looks: Sequence[float] = (),
    any_look: bool = False,
    symmetric: bool = False,
) -> Paired:
    """Compare two systems by their differences, new minus old.

    Args:
        differences: new minus old on each query, shape (queries,), in any order.
        margin: how much worse the new system may be and still pass, in [0, reach).
        missing: number of additional queries without a difference.
        known: the share of each query that its difference covers, below 1 for conversations with missing turns.
        reach: largest possible difference: 1/2 for win shares minus one half, 1 for scores from 0 to 1.
        level: confidence level of the interval; with ``looks``, of all looks together.
        bounds: lowest and highest possible difference of each query, including queries without a difference, shape (2,
            queries). Replaces ``known``, which counts missing turns as completely lost or won.
        looks: the share of all queries that was judged at each look, the present one last; see ``level_of_look``.
        any_look: whether the interval must be valid for any number of looks while queries are added.
        symmetric: whether equal systems make a difference as likely as its opposite, as in games; see
            ``symmetric_interval``. It has no effect together with ``any_look``.

    Raises:
        InputError: the margin or level is outside its range.
        ValueError: a difference is larger than ``reach``.
    """
    if not 0 <= margin < reach:
        raise InputError(f"the margin must be at least 0 and below {reach:g}, not {margin:g}")
    if not 0 < level < 1:
        raise InputError(f"the confidence level must lie between 0 and 1, not {level:g}")
    d = np.asarray(differences, np.float64)
    if not (np.abs(d) <= reach * (1 + _SMALLEST)).all():
        raise ValueError(f"differences must lie between {-reach:g} and {reach:g}")
    x, null = np.clip((1 + d / reach) / 2, 0, 1), (1 - margin / reach) / 2
    signs = (int((d > _SMALLEST).sum()), int((np.abs(d) <= _SMALLEST).sum()), int((d < -_SMALLEST).sum()))
    share = np.broadcast_to(np.asarray(known, np.float64), x.shape)
    unknown = missing + float((1 - share).sum())
    if bounds is not None and d.size + missing:
        lowest, highest = np.clip((1 + np.asarray(bounds, np.float64).mean(axis=1) / reach) / 2, 0, 1).tolist()
    elif d.size + missing:
        lowest, highest = (float((share * x).sum() + figure * unknown) / (x.size + missing) for figure in (0, 1))
    ends = (reach * (2 * lowest - 1), reach * (2 * highest - 1)) if d.size + missing else None
    if not d.size:
        return Paired(Estimate(None, n=0), "undecided", margin, *signs, missing, False, None, ends)
    look_level = level_of_look(looks, level) if looks else level
    symmetric = symmetric and not any_look
    low, high = symmetric_interval(x, look_level) if symmetric else interval(x, look_level, any_look=any_look)
    interval_verdict = _verdict(low, high, null)
    verdict = _verdict(min(low, lowest), max(high, highest), null)
    more = _more(x, null, level, any_look=any_look) if interval_verdict == "undecided" and d.size > 1 else None
    method = "confidence sequence" if any_look else "alpha spending" if looks else "t" if symmetric else LIKELIHOOD
    estimate = Estimate(float(d.mean()), reach * (2 * low - 1), reach * (2 * high - 1), d.size, method)
    if d.size < 2:
        estimate = replace(estimate, low=None, high=None)
    return Paired(estimate, verdict, margin, *signs, missing, interval_verdict != verdict == "undecided", more, ends)


def interval(x: Floats, level: float, *, any_look: bool, times: float = 1.0) -> tuple[float, float]:
    """Interval of the mean of figures in [0, 1], shape (n,), as if each figure occurred ``times`` times.

    With ``any_look`` the interval is valid for any number of looks.
    """
    if not any_look:
        return mean_interval(x, level, times=times)
    return _low_of_any_look(x, level, times), 1 - _low_of_any_look(1 - x, level, times)


def symmetric_interval(x: Floats, level: float) -> tuple[float, float]:
    """Student's interval of the mean of figures in [0, 1], shape (n,), for tests on small groups of queries.

    If two agents are equal, a win and a loss are equally likely, so their differences are symmetric and rare large
    losses cannot hide. The interval is then narrower than that of ``interval``, above all at high levels. If all
    figures are equal, it is that of ``interval``.
    """
    spread = float(x.std(ddof=1)) if x.size > 1 else 0.0
    if spread < _SMALLEST:
        return interval(x, level, any_look=False)
    mean, half = float(x.mean()), student(level, x.size) * spread / math.sqrt(x.size)
    return max(0.0, mean - half), min(1.0, mean + half)


def _verdict(low: float, high: float, null: float) -> GateVerdict:
    if low > 0.5:
        return "better"
    if low > null:
        return "not worse"
    return "worse" if high < 0.5 else "undecided"


def _low_of_any_look(x: Floats, level: float, times: float) -> float:
    """Lower end of an interval for any number of looks: the mean at which the gambler's capital reaches its limit."""
    mean, allowed = float(x.mean()), math.log(2 / (1 - level))

    def excess(m: float) -> float:
        capital = times * np.log1p(np.outer(STAKES, x / m - 1)).sum(axis=1)
        return float(scipy.special.logsumexp(capital)) - math.log(STAKES.size) - allowed

    if mean <= _SMALLEST or excess(_SMALLEST) <= 0:
        return 0.0
    return float(scipy.optimize.brentq(excess, _SMALLEST, mean))


def _more(x: Floats, null: float, level: float, *, any_look: bool) -> int | None:
    """Number of additional queries that lead to a decision with probability ``_POWER``, found by bisection."""
    apart, mean = float(scipy.special.ndtri(_POWER)) * float(x.std(ddof=1)), float(x.mean())

    def decides(queries: int) -> bool:
        times, unlucky = queries / x.size, apart / math.sqrt(queries)
        lower = x * (1 - min(1, unlucky / max(mean, _SMALLEST)))
        higher = 1 - (1 - x) * (1 - min(1, unlucky / max(1 - mean, _SMALLEST)))
        return any(
            _verdict(*interval(figures, level, any_look=any_look, times=times), null) in wanted
            for figures, wanted in ((lower, ("better", "not worse")), (higher, ("worse",)))
        )

    few, enough = x.size, 2 * x.size
    while not decides(enough):
        if enough >= MOST:
            return None
        few, enough = enough, min(2 * enough, MOST)
    while enough - few > max(1, enough // 200):
        middle = (few + enough) // 2
        few, enough = (few, middle) if decides(middle) else (middle, enough)
    return enough - x.size


def level_of_look(times: Sequence[float], level: float) -> float:
    """Confidence level of the last of several looks, so that all looks together have the coverage ``level``.

    ``times`` has the share of all queries that was judged at each look so far, ascending, in (0, 1].
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
    """Grid points below the boundary, and the density of the test statistic there after this look."""
    places = np.linspace(-_FARTHEST * sd, boundary, _POINTS)
    spread = math.sqrt(2 * math.pi * step)
    if not grid.size:
        return places, np.exp(-(places**2) / (2 * step)) / spread
    kernel = np.exp(-((places[:, np.newaxis] - grid) ** 2) / (2 * step)) / spread
    return places, np.asarray(np.trapezoid(kernel * density, grid, axis=1), np.float64)


_MOST_EXACT = 14
"""Largest number of queries for which ``sign_flip`` enumerates all sign flips; for more it draws random ones."""

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
    """Mean difference of each pair of runs over queries, with Student's 95 % interval over clusters (``unit``).

    Intervals are clipped to [-most, most], where ``most`` is the largest possible difference. There is no interval for
    a single cluster or if all clusters are equal, because the data then do not show how the difference varies.
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


def holm_levels(tests: int, rejected: Callable[[int, float], bool], level: float = 0.95) -> list[float]:
    """The confidence level at which Holm's procedure tests each of several hypotheses by its interval.

    ``rejected(test, level)`` says whether the interval at this level excludes the hypothesis. The intervals at the
    returned levels decide as Holm's procedure does: one that excludes its hypothesis is a rejection.
    """
    levels, left = [level] * tests, list(range(tests))
    while left:
        tested = 1 - (1 - level) / len(left)
        for test in left:
            levels[test] = tested
        still = [test for test in left if not rejected(test, tested)]
        if len(still) == len(left):
            break
        left = still
    return levels


def _holm_defined(p: Floats) -> Floats:
    """Holm's correction; an undefined p-value counts as 1 in the correction of the others, and stays NaN."""
    undefined = np.isnan(p)
    return np.where(undefined, np.nan, holm(np.where(undefined, 1.0, p)))


def _numbers(p: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in p]
