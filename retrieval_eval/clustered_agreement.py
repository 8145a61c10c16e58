"""Agreement of two raters on labels that come in clusters, such as nuggets of one query: Cohen's kappa, interval."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from retrieval_eval.agreement import cohen_kappa, cohen_kappas, confusion

_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """How often two raters gave one label.

    Attributes:
        n: things that both labelled.
        labels: the labels, in their order.
        confusion: counts, the first rater's label by the second's.
        share: share of equal labels; ``None`` without any.
        kappa: Cohen's; ``None`` where chance alone agrees fully.
        low: lower end of the 95 % interval had other clusters been drawn; ``None`` with fewer than two.
        high: upper end.
    """

    n: int
    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    share: float | None
    kappa: float | None
    low: float | None
    high: float | None


def label_agreement(
    first: Sequence[str],
    second: Sequence[str],
    labels: Sequence[str],
    clusters: Sequence[Hashable],
    *,
    samples: int = 1000,
    seed: int = 0,
) -> LabelAgreement:
    """Compare two raters' labels of the same things, one entry each.

    Args:
        first: labels of the first rater.
        second: labels of the second.
        labels: all there are, in their order.
        clusters: what each thing belongs to; whole clusters are drawn with replacement.
        samples: bootstrap samples.
        seed: of the samples.

    Raises:
        ValueError: the raters labelled different numbers of things, or a label is not among ``labels``.
    """
    number = {cluster: at for at, cluster in enumerate(dict.fromkeys(clusters))}
    members: list[list[int]] = [[] for _ in number]
    for place, cluster in enumerate(clusters):
        members[number[cluster]].append(place)
    tables = np.zeros((len(number), len(labels), len(labels)), np.int64)
    for own, places in zip(tables, members, strict=True):
        own[:] = confusion([first[place] for place in places], [second[place] for place in places], labels)
    whole = tables.sum(axis=0)
    low, high = _interval(tables, samples, seed)
    n = int(whole.sum())
    counts = tuple(tuple(row) for row in whole.tolist())
    share = float(np.trace(whole)) / n if n else None
    return LabelAgreement(n, tuple(labels), counts, share, cohen_kappa(whole), low, high)


def _interval(tables: np.ndarray, samples: int, seed: int) -> tuple[float | None, float | None]:
    clusters = len(tables)
    if clusters < 2:
        return None, None
    weights = np.random.default_rng(seed).multinomial(clusters, np.full(clusters, 1 / clusters), size=samples)
    kappas = cohen_kappas(np.tensordot(weights.astype(np.float64), tables.astype(np.float64), axes=1))
    known = kappas[~np.isnan(kappas)]
    if not known.size:
        return None, None
    low, high = np.percentile(known, [50 * (1 - _LEVEL), 50 * (1 + _LEVEL)])
    return float(low), float(high)
