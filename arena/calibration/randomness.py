"""Tests of whether people's labels can be a random sample of what a judge judged.

A correction by labels is right if the labels were drawn at random: single items, queries in turn, or whole queries.
All three designs leave two things to chance: how many labels each query has, and which items of a query have them. Two
kinds of tests check each of these:

- position: do labels stand early or late in the judge's file, between queries or within queries? A rank-sum test; its
  variance is that of permutations of the queries, and of the items of each query.
- group: do items of one group (one value of the judge, one opponent) have more or fewer labels than chance explains?
  Chernoff's bound; between queries its exponent is divided by the largest number of labels of a query, since labels of
  a query are drawn together.

The tests of position use one half of ``LEVEL`` and the tests of groups use the other half, so that at most one random
sample in a thousand is rejected. A sample that passes may still not be random: labels alone cannot show that it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import numbered

Mask: TypeAlias = NDArray[np.bool_]

LEVEL: Final = 0.001
"""Probability that a random sample is rejected."""

_MOST_VALUES: Final = 10
"""Maximum number of values that are each a group. More numbers are cut into quartiles; more names are skipped."""


def queries_not_random(labelled: Mask, queries: Sequence[Hashable], level: float = LEVEL) -> str:
    """Say why the labelled queries cannot be a random sample; empty if they can.

    Args:
        labelled: whether people labelled each item, in the order of the file.
        queries: the query of each item.
        level: the probability that a random sample is rejected.
    """
    unit = numbered(queries)
    return _position_test(
        "queries", _by_query(np.bincount(unit), np.bincount(unit, labelled).astype(np.float64)), level
    )


def not_random(
    labelled: Mask, queries: Sequence[Hashable], kinds: Mapping[str, Sequence[str] | Floats], level: float = LEVEL
) -> str:
    """Say why the labelled items cannot be a random sample; empty if they can.

    Args:
        labelled: whether people labelled each item, in the order of the file.
        queries: the query of each item.
        kinds: by name of an attribute, the value of each item: a string or a number.
        level: the probability that a random sample is rejected.
    """
    unit = numbered(queries)
    sizes, labels = np.bincount(unit), np.bincount(unit, labelled)
    if not 0 < labels.sum() < unit.size:
        return ""
    position = _position_test("things of each query", _in_query(unit, sizes, labelled), level / 4)
    if reason := queries_not_random(labelled, queries, level / 4) or position:
        return reason
    groups = [(name, value, members) for name, values in kinds.items() for value, members in _groups(values)]
    for name, value, members in groups:
        count, in_queries = int((members & labelled).sum()), float((labels / sizes) @ np.bincount(unit, members))
        overall = float(labels.sum()) * members.mean()
        p_value = min(_count_p_value(count, in_queries, 1), _count_p_value(in_queries, overall, labels.max()))
        if p_value < level / 4 / len(groups):
            return f"{count:,} labels are on things with {name} {value}, and a random sample has about {overall:,.0f}"
    return ""


def _position_test(what: str, z: float, level: float) -> str:
    if math.erfc(abs(z) / math.sqrt(2)) >= level:
        return ""
    return f"the {'first' if z < 0 else 'last'} {what} in the judge's file have more labels than chance gives"


def _by_query(sizes: NDArray[np.int64], labels: Floats) -> float:
    """Rank-sum z of the positions of labelled queries; standard normal if labels do not depend on position."""
    excess = labels - sizes * (labels.sum() / sizes.sum())
    ranks = np.arange(sizes.size) - (sizes.size - 1) / 2
    spread = float((excess**2).sum() * (ranks**2).sum()) / max(1, sizes.size - 1)
    return float(excess @ ranks) / math.sqrt(spread) if spread > 0 else 0.0


def _in_query(unit: NDArray[np.int64], sizes: NDArray[np.int64], labelled: Mask) -> float:
    """Rank-sum z of the positions of labels within queries; standard normal if labels do not depend on position."""
    order = np.argsort(unit, kind="stable")
    starts = np.cumsum(sizes) - sizes
    ranks = np.empty(unit.size)
    ranks[order] = np.arange(unit.size) - np.repeat(starts, sizes)
    ranks -= ((sizes - 1) / 2)[unit]
    labels = np.bincount(unit, labelled)
    # m of n ranks drawn without replacement: m (n - m) / n times their variance (n + 1) n / 12.
    spread = float((labels * (sizes - labels) * (sizes + 1) / 12).sum())
    return float(ranks[labelled].sum()) / math.sqrt(spread) if spread > 0 else 0.0


def _count_p_value(count: float, expected: float, batch: float) -> float:
    """Chernoff's bound on the probability of a count this far from ``expected``; draws come in batches of that size."""
    if expected <= 0:
        return 1.0
    surplus = count * math.log(count / expected) if count else 0.0
    return 2 * math.exp(-(surplus - count + expected) / batch)


def _groups(values: Sequence[str] | Floats) -> Iterator[tuple[str, Mask]]:
    array = np.asarray(values)
    distinct = [value for value, _ in Counter(array.tolist()).most_common(_MOST_VALUES + 1)]
    if 1 < len(distinct) <= _MOST_VALUES:
        for value in distinct:
            yield value if isinstance(value, str) else f"{value:g}", array == value
    elif len(distinct) > 1 and array.dtype.kind == "f":
        ends = np.quantile(array, [0.25, 0.5, 0.75])
        for low, high in zip([-np.inf, *ends], [*ends, np.inf], strict=True):
            yield f"{low:g} to {high:g}", (array > low) & (array <= high)
