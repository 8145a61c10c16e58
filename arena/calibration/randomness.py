"""Labels that are visibly no random sample of what a judge judged.

A correction by labels is right if these were drawn at random: things by themselves, queries in turn, or whole queries.
All three leave two things to chance: how many labels each query has, and which things of a query have them. Each is
tested by itself:

- place: labels stand early or late in the judge's file, by queries or within queries (a rank sum; its variance is that
  of permutations of queries, and of the things of each query);
- kind: things of one kind (one value of the judge, one opponent) have more labels than chance gives them, or fewer
  (Chernoff's bound; between queries divided by the most labels of a query, which come and go together).

Tests of places have one half of ``LEVEL`` and those of kinds the other, so that at most one random sample in a thousand
is refused. What passes may still be
no random sample: labels alone cannot show that.
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
"""Chance that a random sample is refused."""

_MOST_VALUES: Final = 10
"""Values of a kind that are tested one by one; more, of numbers, are cut into quarters, and of names left out."""


def queries_not_random(labelled: Mask, queries: Sequence[Hashable], level: float = LEVEL) -> str:
    """Why the queries of these labels cannot be a random sample; empty if they can.

    Args:
        labelled: whether people labelled each thing, in the order of the file.
        queries: of the things.
        level: the chance that a random sample is refused.
    """
    unit = numbered(queries)
    return _place("queries", _by_query(np.bincount(unit), np.bincount(unit, labelled).astype(np.float64)), level)


def not_random(
    labelled: Mask, queries: Sequence[Hashable], kinds: Mapping[str, Sequence[str] | Floats], level: float = LEVEL
) -> str:
    """Why these labels cannot be a random sample; arguments as above.

    ``kinds`` have a name or a number for each thing.
    """
    unit = numbered(queries)
    sizes, labels = np.bincount(unit), np.bincount(unit, labelled)
    if not 0 < labels.sum() < unit.size:
        return ""
    by_place = _place("things of each query", _in_query(unit, sizes, labelled), level / 4)
    if why := queries_not_random(labelled, queries, level / 4) or by_place:
        return why
    groups = [(name, value, own) for name, values in kinds.items() for value, own in _groups(values)]
    for name, value, own in groups:
        count, in_queries = int((own & labelled).sum()), float((labels / sizes) @ np.bincount(unit, own))
        overall = float(labels.sum()) * own.mean()
        chance = min(_chance(count, in_queries, 1), _chance(in_queries, overall, labels.max()))
        if chance < level / 4 / len(groups):
            return f"{count:,} labels are on things with {name} {value}, and a random sample has about {overall:,.0f}"
    return ""


def _place(what: str, z: float, level: float) -> str:
    if math.erfc(abs(z) / math.sqrt(2)) >= level:
        return ""
    return f"the {'first' if z < 0 else 'last'} {what} in the judge's file have more labels than chance gives"


def _by_query(sizes: NDArray[np.int64], labels: Floats) -> float:
    """Standard normal where queries have labels whatever their place."""
    excess = labels - sizes * (labels.sum() / sizes.sum())
    ranks = np.arange(sizes.size) - (sizes.size - 1) / 2
    spread = float((excess**2).sum() * (ranks**2).sum()) / max(1, sizes.size - 1)
    return float(excess @ ranks) / math.sqrt(spread) if spread > 0 else 0.0


def _in_query(unit: NDArray[np.int64], sizes: NDArray[np.int64], labelled: Mask) -> float:
    """Standard normal where things of a query have labels whatever their place."""
    order = np.argsort(unit, kind="stable")
    starts = np.cumsum(sizes) - sizes
    ranks = np.empty(unit.size)
    ranks[order] = np.arange(unit.size) - np.repeat(starts, sizes)
    ranks -= ((sizes - 1) / 2)[unit]
    labels = np.bincount(unit, labelled)
    # m of n ranks drawn without replacement: m (n - m) / n times their variance (n + 1) n / 12.
    spread = float((labels * (sizes - labels) * (sizes + 1) / 12).sum())
    return float(ranks[labelled].sum()) / math.sqrt(spread) if spread > 0 else 0.0


def _chance(count: float, expected: float, together: float) -> float:
    """Bound on the chance of a count this far from the expected one, where so many come together at most."""
    if expected <= 0:
        return 1.0
    surplus = count * math.log(count / expected) if count else 0.0
    return 2 * math.exp(-(surplus - count + expected) / together)


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
