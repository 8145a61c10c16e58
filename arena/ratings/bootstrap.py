"""Bootstrap over queries: how far ratings would move with other queries.

Verdicts on one query depend on each other, so whole queries are drawn with replacement (Efron and Tibshirani 1993,
*An Introduction to the Bootstrap*, chapter 8). A sample is a set of multinomial weights on queries, which give weighted
counts. The fit of every sample starts at the point estimate.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.bradley_terry import BradleyTerry, unsettled
from arena.ratings.games import Games, Unit
from arena.ratings.likelihood import PairCounts, cluster_counts, gradient_on, maximise, signed_sums, weighted
from retrieval_eval.stats import Floats

_CELLS_IN_MEMORY = 2_000_000
"""Maximum number of elements in one array; bootstrap samples are processed in chunks of a matching size."""
_CELLS_IN_CACHE = 100_000
"""The same limit for samples that are fitted together, low enough for the processor's cache."""
_MAX_CACHED_DRAWS = 100_000_000
"""Up to this many draws, of one byte each, are cached and used again by other ratings with as many queries."""
_CHORD_STEPS = 30
_SLOWEST_CONTRACTION = 0.5
"""If a chord step is longer than this share of the previous step, Newton's method takes over."""


class Bootstrap(Struct, frozen=True, eq=False):
    """Ratings of resampled games.

    Attributes:
        samples: ratings in points, shape (samples, agents).
        by: the resampled unit: ``query``, or ``game`` if queries are unknown or clustering is off.
        units: number of queries (or games) in the data.
        without_maximum: number of samples whose likelihood has no maximum; they use the settings' weak prior.
        not_converged: number of samples in which Newton's method did not reach its tolerance.
        model_samples: draws from the normal approximation to the fitted model, shape (samples, agents). Present only
            if resampling cannot show the uncertainty: the point estimate needs the prior (no resampling shows the
            first loss of an undefeated agent), or all samples are equal.
    """

    samples: Floats
    by: Unit
    units: int
    without_maximum: int
    not_converged: int
    model_samples: Floats | None

    @property
    def sample_sets(self) -> tuple[Floats, ...]:
        """``samples`` and, if present, ``model_samples``; an interval is the widest over these sets."""
        return (self.samples,) if self.model_samples is None else (self.samples, self.model_samples)


def bootstrap(
    games: Games,
    fitted: BradleyTerry,
    samples: int = 1000,
    seed: int = 0,
    *,
    by_query: bool = True,
) -> Bootstrap | None:
    """Resample the queries of ``games`` and fit the model of ``fitted``, a fit to the same games, to each sample.

    Single games are drawn if the games do not name their query or ``by_query`` is false. The draws do not depend on the
    chunk size. ``None`` for fewer than two queries (or games): one unit shows no variation.
    """
    clusters = None
    if by_query and games.cluster is not None:
        clusters = cluster_counts(games, fitted.counts, ordered=fitted.form.position)
    units = clusters.shape[1] if clusters is not None else round(float(fitted.counts.games.sum()))
    if units < 2 or samples < 1:
        return None
    cached_weights, rng = None, np.random.default_rng(seed)
    if clusters is not None and units * samples <= _MAX_CACHED_DRAWS:
        cached_weights, rng = _query_weights(units, samples, seed)
    parameters = np.empty((samples, fitted.form.size))
    without = failed = 0
    inverse = np.asarray(np.linalg.inv(fitted.curvature()), np.float64)
    chunk = max(1, _CELLS_IN_MEMORY // max(3 * fitted.counts.a.size, units if clusters is not None else 1))
    for start in range(0, samples, chunk):
        size = min(chunk, samples - start)
        if clusters is not None:
            weights = _multinomial(rng, units, size) if cached_weights is None else cached_weights[start : start + size]
            counts = fitted.counts.replaced(*weighted(clusters, weights.astype(np.float64)))
        else:
            counts = _by_game(fitted, units, size, rng)
        prior = _prior(fitted, counts)
        parameters[start : start + size], converged = _refit(fitted, counts, prior, inverse)
        without, failed = without + int(prior.any(axis=1).sum()), failed + int((~converged).sum())
    ratings = fitted.to_points(parameters)
    model_needed = bool(fitted.problems) or bool((ratings.std(axis=0) < 1e-6).all())
    by: Unit = "query" if clusters is not None else "game"
    model_samples = _model_draws(fitted, samples, seed) if model_needed else None
    return Bootstrap(ratings, by, units, without, failed, model_samples)


@lru_cache(maxsize=1)
def _query_weights(units: int, samples: int, seed: int) -> tuple[NDArray[np.uint8], np.random.Generator]:
    """How often each sample draws each query, shape (samples, units), and the random generator after these draws.

    Cached because the ratings of each judge and of people need the same draws. A count never exceeds 255.
    """
    rng, draws = np.random.default_rng(seed), np.empty((samples, units), np.uint8)
    chunk = max(1, _CELLS_IN_MEMORY // units)
    for start in range(0, samples, chunk):
        draws[start : start + chunk] = _multinomial(rng, units, min(chunk, samples - start))
    return draws, rng


def _multinomial(rng: np.random.Generator, units: int, size: int) -> NDArray[np.int64]:
    return rng.multinomial(units, np.full(units, 1 / units), size=size)


def refitted(games: Games, fitted: BradleyTerry, weights: Floats) -> Floats:
    """Ratings if each game counts as often as ``weights`` says for its query, shape (samples, agents).

    ``fitted`` is the fit to ``games`` without weights. ``weights`` has shape (samples, queries), with queries numbered
    as in ``games.cluster``.
    """
    clusters = cluster_counts(games, fitted.counts, ordered=fitted.form.position)
    query_weights = weights[:, np.unique(np.asarray(games.cluster))]
    inverse = np.asarray(np.linalg.inv(fitted.curvature()), np.float64)
    parameters = np.empty((len(query_weights), fitted.form.size))
    chunk = max(1, _CELLS_IN_MEMORY // max(3 * fitted.counts.a.size, clusters.shape[1]))
    for start in range(0, len(query_weights), chunk):
        counts = fitted.counts.replaced(*weighted(clusters, query_weights[start : start + chunk]))
        parameters[start : start + chunk], _ = _refit(fitted, counts, _prior(fitted, counts), inverse)
    return fitted.to_points(parameters)


def _by_game(fitted: BradleyTerry, units: int, size: int, rng: np.random.Generator) -> PairCounts:
    """Outcome counts of games drawn one by one with replacement, scaled so that fractional counts keep their total."""
    observed = np.concatenate([fitted.counts.wins_a[0], fitted.counts.wins_b[0], fitted.counts.ties[0]])
    total = observed.sum()
    resampled = rng.multinomial(units, observed / total, size=size) * (total / units)
    return fitted.counts.replaced(*np.split(resampled, 3, axis=1))


def _prior(fitted: BradleyTerry, counts: PairCounts) -> Floats:
    """The prior's virtual games for each sample, shape (samples, parameters): at least those of the point estimate.

    A sample in which every outcome of the original games still occurs needs no more than these, so only the other
    samples are checked.
    """
    prior = np.tile(fitted.prior, (len(counts.ties), 1))
    point = fitted.counts
    incomplete = np.zeros(len(prior), np.bool_)
    for sample_counts, point_counts in (
        (counts.wins_a, point.wins_a),
        (counts.wins_b, point.wins_b),
        (counts.ties, point.ties),
    ):
        incomplete |= ((sample_counts > 0) != (point_counts > 0)).any(axis=1)
    sample_prior = fitted.settings.prior_games * unsettled(
        fitted.form, counts.sample(slice(None) if incomplete.all() else incomplete)
    )
    prior[incomplete] = np.maximum(prior[incomplete], sample_prior)
    return prior


def _refit(
    fitted: BradleyTerry, counts: PairCounts, prior: Floats, inverse: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Maximum-likelihood parameters of every sample, and whether the iteration converged.

    Most samples use chord iterations: these reuse the inverse curvature of the point estimate, so that a step costs one
    gradient. A sample uses Newton's method if its prior is not that of the point estimate, only one of the two has
    ties, or its chord steps shrink too slowly.
    """
    settings, form = fitted.settings, fitted.form
    x, converged = np.tile(fitted.x, (len(prior), 1)), np.zeros(len(prior), np.bool_)
    same_form = (prior == fitted.prior).all(axis=1) & (form.tie_parameter(counts) == form.tie_parameter(fitted.counts))
    nearby, signed = np.flatnonzero(same_form), signed_sums(counts)
    chunk = max(1, _CELLS_IN_CACHE // counts.a.size)
    for start in range(0, nearby.size, chunk):
        part = slice(start, start + chunk) if nearby.size == same_form.size else nearby[start : start + chunk]
        x[part], converged[part] = _chord(fitted, counts.sample(part), inverse, signed)
    unconverged = np.flatnonzero(~converged)
    chunk = max(1, _CELLS_IN_MEMORY // form.size**2)  # the matrices of second derivatives must fit into memory
    for start in range(0, unconverged.size, chunk):
        part = unconverged[start : start + chunk]
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


def _chord(
    fitted: BradleyTerry, counts: PairCounts, inverse: Floats, signed: scipy.sparse.csc_array
) -> tuple[Floats, NDArray[np.bool_]]:
    """Parameters of each sample after chord iterations from the point estimate, and whether it converged.

    If steps shrink by a factor r, the maximum is at most r / (1 - r) times the last step away.
    """
    samples = len(counts.ties)
    x = np.tile(fitted.x, (samples, 1))
    prior = np.tile(fitted.prior, (samples, 1))
    size, distance = np.full(samples, np.inf), np.full(samples, np.inf)
    slope = gradient_on(fitted.form, counts, prior, signed)
    for number in range(_CHORD_STEPS):
        step = slope(x) @ inverse
        x += step
        last, size = size, np.abs(step).max(axis=1)
        if number == 0:
            continue
        shrinks = size / np.maximum(last, 1e-300)
        distance = size * shrinks / (1 - np.minimum(shrinks, _SLOWEST_CONTRACTION))
        hopeless = (shrinks > _SLOWEST_CONTRACTION) & (size > fitted.settings.tolerance)
        distance[hopeless] = np.inf
        if ((distance <= fitted.settings.tolerance) | hopeless).all():
            break
    return x, distance <= fitted.settings.tolerance


def _model_draws(fitted: BradleyTerry, samples: int, seed: int) -> Floats:
    """Draws from the normal approximation to the fit (with the prior, its approximate posterior).

    The underlying normal draws do not depend on the games, so an additional win never looks worse by chance.
    """
    rng = np.random.default_rng([seed, 1])
    draws = rng.multivariate_normal(fitted.ratings, fitted.model_covariance(), size=samples, method="eigh")
    return np.asarray(draws, np.float64)
