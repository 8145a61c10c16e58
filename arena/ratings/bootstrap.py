"""How far ratings would move had other queries been asked: the bootstrap over queries.

Verdicts on one query depend on each other, so whole queries are drawn with replacement (Efron and Tibshirani 1993,
*An Introduction to the Bootstrap*, chapter 8): a sample is a set of multinomial weights on queries, which make weighted
counts, and every sample's maximum is found from the point estimate.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.bradley_terry import BradleyTerry
from arena.ratings.counts import PairCounts, cluster_counts, weighted
from arena.ratings.existence import unsettled
from arena.ratings.games import Games, Unit
from arena.ratings.likelihood import Sums, gradient_on, maximise, sums
from retrieval_eval.stats.arrays import Floats

_CELLS_IN_MEMORY = 2_000_000
"""Numbers in the largest array of a chunk of samples (weighted counts, or weights of queries)."""
_CELLS_IN_CACHE = 100_000
"""Numbers in each array of a chunk of samples that is iterated together; small enough to stay near the processor."""
_DRAWS_KEPT = 100_000_000
"""Up to so many draws are kept for the next ratings of as many queries, a byte each."""
_CHORD_STEPS = 30
_SLOWEST_CONTRACTION = 0.5
"""Samples whose steps shrink by less than this are far from the point estimate: Newton's own method is better."""


class Bootstrap(Struct, frozen=True, eq=False):
    """Ratings of resampled games.

    Attributes:
        samples: ratings in points, shape (samples, agents).
        by: what was resampled: ``query``, or ``game`` where queries are not known or clustering is off.
        units: number of queries or games drawn from.
        without_maximum: samples whose likelihood has no maximum; they use the settings' weak prior.
        not_converged: samples in which Newton's method did not reach its tolerance.
        model_samples: as many draws from the normal approximation to the fitted model, shape as ``samples``, where
            resampling cannot show the uncertainty: the point estimate itself needs the prior (no resampling shows
            the first loss of an undefeated agent) or no sample differs. ``None`` elsewhere.
    """

    samples: Floats
    by: Unit
    units: int
    without_maximum: int
    not_converged: int
    model_samples: Floats | None

    @property
    def sample_sets(self) -> tuple[Floats, ...]:
        """The sets of samples; what is read off them is the widest over the sets."""
        return (self.samples,) if self.model_samples is None else (self.samples, self.model_samples)


def bootstrap(
    games: Games,
    fitted: BradleyTerry,
    samples: int = 1000,
    seed: int = 0,
    *,
    by_query: bool = True,
) -> Bootstrap | None:
    """Resample the queries of ``games`` and fit each sample as ``fitted`` was.

    Args:
        games: the games that ``fitted`` comes from.
        fitted: the point estimate.
        samples: how many.
        seed: of the draws; they do not depend on how samples are spread over memory.
        by_query: draw whole queries; games whose query is not known are drawn one by one.

    Returns:
        ``None`` where there are fewer than two queries (games): one unit says nothing about variation.
    """
    clusters = None
    if by_query and games.cluster is not None:
        clusters = cluster_counts(games, fitted.counts, ordered=fitted.form.position)
    units = clusters.shape[1] if clusters is not None else round(float(fitted.counts.games.sum()))
    if units < 2 or samples < 1:
        return None
    kept, rng = None, np.random.default_rng(seed)
    if clusters is not None and units * samples <= _DRAWS_KEPT:
        kept, rng = _queries_drawn(units, samples, seed)
    drawn = np.empty((samples, fitted.form.size))
    without = failed = 0
    inverse = np.asarray(np.linalg.inv(fitted.curvature()), np.float64)
    chunk = max(1, _CELLS_IN_MEMORY // max(3 * fitted.counts.a.size, units if clusters is not None else 1))
    for start in range(0, samples, chunk):
        size = min(chunk, samples - start)
        if clusters is not None:
            weights = _multinomial(rng, units, size) if kept is None else kept[start : start + size]
            counts = fitted.counts.replaced(*weighted(clusters, weights.astype(np.float64)))
        else:
            counts = _by_game(fitted, units, size, rng)
        prior = _prior(fitted, counts)
        drawn[start : start + size], converged = _refit(fitted, counts, prior, inverse)
        without, failed = without + int(prior.any(axis=1).sum()), failed + int((~converged).sum())
    ratings = fitted.to_points(drawn)
    blind = bool(fitted.problems) or bool((ratings.std(axis=0) < 1e-6).all())
    by: Unit = "query" if clusters is not None else "game"
    of_model = _model_draws(fitted, samples, seed) if blind else None
    return Bootstrap(ratings, by, units, without, failed, of_model)


@lru_cache(maxsize=1)
def _queries_drawn(units: int, samples: int, seed: int) -> tuple[NDArray[np.uint8], np.random.Generator]:
    """How often each query is in each sample, and the generator behind these draws.

    Each judge's own ratings, and people's beside a judge's, draw the same again. More than 255 times is never.
    """
    rng, draws = np.random.default_rng(seed), np.empty((samples, units), np.uint8)
    chunk = max(1, _CELLS_IN_MEMORY // units)
    for start in range(0, samples, chunk):
        draws[start : start + chunk] = _multinomial(rng, units, min(chunk, samples - start))
    return draws, rng


def _multinomial(rng: np.random.Generator, units: int, size: int) -> NDArray[np.int64]:
    return rng.multinomial(units, np.full(units, 1 / units), size=size)


def refitted(games: Games, fitted: BradleyTerry, weights: Floats) -> Floats:
    """Ratings where every game counts as often as its query in each sample.

    ``fitted`` comes from these games; ``weights`` are of queries as ``games.cluster`` numbers them, shape (samples,
    queries).

    Returns:
        In points, shape (samples, agents).
    """
    clusters = cluster_counts(games, fitted.counts, ordered=fitted.form.position)
    own = weights[:, np.unique(np.asarray(games.cluster))]
    inverse = np.asarray(np.linalg.inv(fitted.curvature()), np.float64)
    drawn = np.empty((len(own), fitted.form.size))
    chunk = max(1, _CELLS_IN_MEMORY // max(3 * fitted.counts.a.size, clusters.shape[1]))
    for start in range(0, len(own), chunk):
        counts = fitted.counts.replaced(*weighted(clusters, own[start : start + chunk]))
        drawn[start : start + chunk], _ = _refit(fitted, counts, _prior(fitted, counts), inverse)
    return fitted.to_points(drawn)


def _by_game(fitted: BradleyTerry, units: int, size: int, rng: np.random.Generator) -> PairCounts:
    """Games drawn with replacement are multinomial on the counts; fractional counts keep their total."""
    observed = np.concatenate([fitted.counts.wins_a[0], fitted.counts.wins_b[0], fitted.counts.ties[0]])
    total = observed.sum()
    drawn = rng.multinomial(units, observed / total, size=size) * (total / units)
    return fitted.counts.replaced(*np.split(drawn, 3, axis=1))


def _prior(fitted: BradleyTerry, counts: PairCounts) -> Floats:
    """Virtual games of each sample, shape (samples, parameters): the point estimate's and what the sample itself needs.

    A sample that shows every outcome the point estimate shows needs no more than that; only others are checked.
    """
    prior = np.tile(fitted.prior, (len(counts.ties), 1))
    point = fitted.counts
    lost = np.zeros(len(prior), np.bool_)
    for drawn, seen in ((counts.wins_a, point.wins_a), (counts.wins_b, point.wins_b), (counts.ties, point.ties)):
        lost |= ((drawn > 0) != (seen > 0)).any(axis=1)
    own = fitted.settings.prior_games * unsettled(fitted.form, counts.sample(slice(None) if lost.all() else lost))
    prior[lost] = np.maximum(prior[lost], own)
    return prior


def _refit(
    fitted: BradleyTerry, counts: PairCounts, prior: Floats, inverse: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Every sample's maximum, and whether it was reached.

    Chord iterations first: they keep the inverse curvature of the point estimate, which costs a gradient a step.
    Samples that need more of the prior, that have no ties where the point estimate has, or whose steps do not shrink
    fast enough get Newton's own method.
    """
    settings, form = fitted.settings, fitted.form
    x, converged = np.tile(fitted.x, (len(prior), 1)), np.zeros(len(prior), np.bool_)
    alike = (prior == fitted.prior).all(axis=1) & (form.tie_parameter(counts) == form.tie_parameter(fitted.counts))
    near, adding = np.flatnonzero(alike), sums(counts)
    chunk = max(1, _CELLS_IN_CACHE // counts.a.size)
    for start in range(0, near.size, chunk):
        part = slice(start, start + chunk) if near.size == alike.size else near[start : start + chunk]
        x[part], converged[part] = _chord(fitted, counts.sample(part), inverse, adding)
    far = np.flatnonzero(~converged)
    chunk = max(1, _CELLS_IN_MEMORY // form.size**2)  # of matrices of second derivatives that fit into memory
    for start in range(0, far.size, chunk):
        part = far[start : start + chunk]
        best = maximise(
            form,
            counts.sample(part),
            np.tile(fitted.x, (part.size, 1)),
            prior[part],
            max_iterations=settings.max_iterations,
            tolerance=settings.tolerance,
        )
        x[part], converged[part] = best.x, best.converged
    return x, converged


def _chord(fitted: BradleyTerry, counts: PairCounts, inverse: Floats, adding: Sums) -> tuple[Floats, NDArray[np.bool_]]:
    """Chord iterations from the point estimate on samples with its prior, and whether each has converged.

    Steps that shrink by a factor r leave a distance of at most r / (1 - r) times the last step to the maximum.
    """
    samples = len(counts.ties)
    x = np.tile(fitted.x, (samples, 1))
    prior = np.tile(fitted.prior, (samples, 1))
    size, left = np.full(samples, np.inf), np.full(samples, np.inf)
    slope = gradient_on(fitted.form, counts, prior, adding)
    for number in range(_CHORD_STEPS):
        step = slope(x) @ inverse
        x += step
        last, size = size, np.abs(step).max(axis=1)
        if number == 0:
            continue
        shrinks = size / np.maximum(last, 1e-300)
        left = size * shrinks / (1 - np.minimum(shrinks, _SLOWEST_CONTRACTION))
        hopeless = (shrinks > _SLOWEST_CONTRACTION) & (size > fitted.settings.tolerance)
        left[hopeless] = np.inf
        if ((left <= fitted.settings.tolerance) | hopeless).all():
            break
    return x, left <= fitted.settings.tolerance


def _model_draws(fitted: BradleyTerry, samples: int, seed: int) -> Floats:
    """Draws from the normal approximation to the fit, which with the prior is its approximate posterior.

    The same normal draws whatever the games are, so that one more win never says less by the luck of the draw.
    """
    rng = np.random.default_rng([seed, 1])
    draws = rng.multivariate_normal(fitted.ratings, fitted.model_covariance(), size=samples, method="eigh")
    return np.asarray(draws, np.float64)
