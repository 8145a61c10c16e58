"""Two judges compared with each other: which agrees more often with the same people on the same items."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
from msgspec.structs import replace

from arena.calibration.comparison import Agreements, Comparison, Settings, TwoJudges
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import FEW_QUERIES, numbered
from retrieval_eval.stats.paired import Paired, holm, holm_levels, paired, sign_flip

_LEVEL: Final = 0.95


def compare_judges(
    comparisons: Sequence[Comparison], settings: Settings, order: Sequence[str]
) -> tuple[Comparison, ...]:
    """Compare every two judges of each comparison, with Holm's correction over all these pairs.

    Of two judges, the one that comes first in ``order`` is compared with the other. The
    unit is a query (or conversation); its difference is the sum over its items. Judges with fewer than ten queries
    in common are not tested.
    """
    pairs = [
        (place, first, second, agreements)
        for place, comparison in enumerate(comparisons)
        for first, second in combinations(sorted(comparison.agreements, key=order.index), 2)
        if (agreements := _on_same_items(comparison.agreements[first], comparison.agreements[second])).size
    ]
    sums = [_by_query(agreements) for *_, agreements in pairs]
    tested = [number for number, (differences, _) in enumerate(sums) if differences.size >= FEW_QUERIES]
    flipped = np.zeros((len(tested), max((sums[number][0].size for number in tested), default=0)))
    for row, number in enumerate(tested):  # zeros at the end change no sum of flipped differences
        flipped[row, : sums[number][0].size] = sums[number][0]
    p = sign_flip(flipped, settings.seed) if tested else np.zeros(0)
    levels = holm_levels(len(tested), lambda test, level: bool(p[test] <= 1 - level + 1e-12), _LEVEL)
    by_test = dict(zip(tested, zip(p.tolist(), holm(p).tolist(), levels, strict=True), strict=True))
    found: list[list[TwoJudges]] = [[] for _ in comparisons]
    for number, (place, first, second, agreements) in enumerate(pairs):
        differences, sizes = sums[number]
        own_p, corrected, level = by_test.get(number, (None, None, _LEVEL))
        result = mean_difference(differences, sizes, level=level, margin=settings.epsilon)
        verdict = result.verdict
        if corrected is None:
            verdict = "undecided"
        elif corrected > 1 - _LEVEL and verdict in ("better", "worse"):
            verdict = "not worse" if verdict == "better" else "undecided"
        first_agreement, second_agreement = agreements[1:3].mean(axis=1).tolist()
        found[place].append(
            TwoJudges(
                first,
                second,
                n=agreements.shape[1],
                queries=differences.size,
                first_agreement=first_agreement,
                second_agreement=second_agreement,
                difference=result.difference,
                verdict=verdict,
                margin=settings.epsilon,
                level=level,
                more=result.more if verdict == "undecided" else None,
                p=own_p,
                p_holm=corrected,
            )
        )
    return tuple(replace(own, pairs=tuple(rows), agreements={}) for own, rows in zip(comparisons, found, strict=True))


def mean_difference(differences: Floats, sizes: Floats, *, level: float, margin: float = 0.0) -> Paired:
    """The mean over items of differences from -1 to 1, given as the sum and number of those of each query."""
    mean = float(differences.sum() / sizes.sum())
    share = sizes / sizes.mean()
    return paired(
        mean * (1 - share) + differences / sizes.mean(),  # the mean over items, and its influence by query
        margin,
        reach=float((share + abs(mean) * np.abs(1 - share)).max()),
        level=level,
        symmetric=True,
    )


def _on_same_items(first: Agreements, second: Agreements) -> Floats:
    """Number of the query, and both judges' agreement, of each item that both judged; shape (3, items)."""
    items = [item for item in first if item in second]
    query = numbered([query_id for query_id, _ in items])
    return np.array([query, [first[item] for item in items], [second[item] for item in items]], np.float64)


def _by_query(agreements: Floats) -> tuple[Floats, Floats]:
    """Sum of the differences, and number of items, of each query."""
    query = agreements[0].astype(np.int64)
    return np.bincount(query, agreements[1] - agreements[2]).astype(np.float64), np.bincount(query).astype(np.float64)
