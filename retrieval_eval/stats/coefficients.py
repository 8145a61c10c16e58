"""Agreement beyond chance: Cohen's kappa of tables of counts, Krippendorff's alpha of coincidences.

Cohen (1960, Educational and Psychological Measurement 20) and, weighted, Cohen (1968, Psychological Bulletin 70):

    kappa = 1 - sum(w * observed) / sum(w * expected),   expected from the product of the two raters' margins

Krippendorff (2004, *Content Analysis*, chapter 11), for any number of raters and with missing labels:

    alpha = 1 - (n - 1) * sum(o_ck * d_ck) / sum(n_c * n_k * d_ck)

where o counts the ordered pairs of labels within units, a unit of m labels with weight 1 / (m - 1), n_c is a margin of
o, n their total, and d the squared difference of the level. Functions in the plural take stacks of tables with any
leading axes, which is what a jackknife over queries needs; there NaN stands for a coefficient that is not defined.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Weights: TypeAlias = Literal["none", "linear", "quadratic"]
Level: TypeAlias = Literal["nominal", "ordinal", "interval"]


def cohen_kappa(table: ArrayLike, weights: Weights = "none") -> float | None:
    """Cohen's kappa of one confusion table, shape (labels, labels), labels in their order where weights are used.

    Returns:
        ``None`` where the table is empty or chance alone agrees fully: both raters gave one and the same label.
    """
    return _defined(cohen_kappas(np.asarray(table, np.float64), weights))


def cohen_kappas(tables: Floats, weights: Weights = "none") -> Floats:
    """Cohen's kappa of each table, shape (..., labels, labels) to (...); NaN where it is not defined.

    Args:
        tables: counts, fractions allowed.
        weights: cost of a disagreement: all alike, or by the distance of the labels' places, or by its square.
    """
    places = np.arange(tables.shape[-1])
    distance = np.abs(places[:, np.newaxis] - places).astype(np.float64)
    cost = {"none": np.sign(distance), "linear": distance, "quadratic": distance**2}[weights]
    rows, columns = tables.sum(axis=-1), tables.sum(axis=-2)
    expected = (cost * rows[..., :, np.newaxis] * columns[..., np.newaxis, :]).sum(axis=(-2, -1))
    observed = (cost * tables).sum(axis=(-2, -1)) * tables.sum(axis=(-2, -1))
    return _one_minus_ratio(observed, expected)


def coincidences(ratings: Floats, labels: Floats) -> Floats:
    """Pairs of labels within each unit, shape (units, labels, labels); zero where a unit has fewer than two labels.

    Args:
        ratings: labels as numbers, shape (raters, units), NaN where missing.
        labels: all labels there are, ascending.
    """
    given = (ratings[:, :, np.newaxis] == labels).sum(axis=0).astype(np.float64)
    pairs = given[:, :, np.newaxis] * given[:, np.newaxis, :]
    own = np.arange(labels.size)
    pairs[:, own, own] -= given
    partners = np.maximum(given.sum(axis=1) - 1, 1)
    result: Floats = pairs / partners[:, np.newaxis, np.newaxis]
    return result


def krippendorff_alphas(tables: Floats, labels: Floats, level: Level = "nominal") -> Floats:
    """Krippendorff's alpha of each matrix of coincidences, shape (..., labels, labels) to (...); NaN if not defined."""
    margins = tables.sum(axis=-1)
    size = margins.sum(axis=-1)
    difference = _difference(margins, labels, level)
    expected = (difference * margins[..., :, np.newaxis] * margins[..., np.newaxis, :]).sum(axis=(-2, -1))
    observed = (difference * tables).sum(axis=(-2, -1)) * (size - 1)
    return _one_minus_ratio(observed, expected)


def _difference(margins: Floats, labels: Floats, level: Level) -> Floats:
    """Squared difference of each two labels, shape (labels, labels) or, where it depends on margins, (..., same)."""
    if level == "nominal":
        return 1.0 - np.eye(labels.size)
    if level == "interval":
        return np.asarray((labels[:, np.newaxis] - labels) ** 2, np.float64)
    # The labels between c and k, both ends with half their weight, which is a difference of mid-ranks.
    middle = margins.cumsum(axis=-1) - margins / 2
    return np.asarray((middle[..., :, np.newaxis] - middle[..., np.newaxis, :]) ** 2, np.float64)


def _one_minus_ratio(observed: Floats, expected: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.asarray(observed) / np.asarray(expected)
    return np.where(np.asarray(expected) > 0, 1.0 - ratio, np.nan)


def _defined(coefficient: Floats) -> float | None:
    value = float(coefficient)
    return None if np.isnan(value) else value
