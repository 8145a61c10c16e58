"""Whether a judge drifted: what it says now of items that people labelled, against what it said of them earlier.

The unit is a query. Two sign-flip tests, with Holm's correction: of the agreement with people, and of the labels
themselves. The labels of games have no common direction, so only their agreement is tested. "Drifted" is wrong with a
probability of at most 2.5 %, as one side of a gate is (``benchmarks/drift.py``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
import scipy
from msgspec import Struct
from msgspec.structs import replace

from arena.calibration import ItemKey, ItemMeans, Opinion
from arena.calibration.consensus import settled, values_of
from arena.calibration.corrected_ratings import means_of, score_of
from arena.calibration.two_judges import mean_difference
from arena.calibration.votes import Level, agreement_by_item
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import FEW_QUERIES, numbered, ratio_estimate, share_estimate, student
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.paired import holm, holm_levels, sign_flip

Drifted: TypeAlias = Literal["drifted", "no drift found", "not known"]

LEVEL: Final = 0.975
"""Confidence level of the tests and intervals of drift."""
_POWER: Final = 0.8


class Moved(Struct, frozen=True):
    """A label that is not what it was."""

    query_id: str
    item: ItemKey
    then: float
    now: float


class Drift(Struct, frozen=True):
    """How far a judge is from what it said earlier of the same labelled items.

    Attributes:
        n, queries: number of items labelled both times, and of queries (or conversations) that they are on.
        moved: share of the labels that differ, and ``labels`` which.
        then, now: agreement with a person's label.
        difference: agreement now minus then.
        shift: mean label now minus then; no value for games.
        p: the smaller p-value of both tests, corrected; ``None`` below ten queries.
        least: the smallest change of agreement found with 80 % probability; ``None`` if none is.
    """

    n: int
    queries: int
    moved: Estimate
    then: float | None
    now: float | None
    difference: Estimate
    shift: Estimate
    p: float | None
    verdict: Drifted
    least: float | None
    labels: tuple[Moved, ...] = ()


def drift(level: Level, then: Sequence[Opinion], now: Sequence[Opinion], people: Sequence[Opinion]) -> Drift:
    """Compare what one judge said then and says now; ``people`` has their settled labels."""
    sides = [settled(opinions, verdicts=level == "verdicts") for opinions in (then, now)]
    agreed = [agreement_by_item(side, people) for side in sides]
    values = [values_of(side) for side in sides]
    items = [key for key in agreed[0] if key in agreed[1]]
    old, new = (np.array([of[query_id][item] for query_id, item in items], np.float64) for of in values)
    agreements = np.array([[of[key] for key in items] for of in agreed], np.float64)
    unit = numbered([query_id for query_id, _ in items])
    sizes = np.bincount(unit).astype(np.float64)
    nothing = Estimate(None)
    if not items:
        return Drift(0, 0, nothing, None, None, nothing, nothing, None, "not known", None)
    scales = [1.0] if level == "verdicts" else [1.0, max(1.0, float(np.abs(new - old).max()))]
    sums = [
        np.bincount(unit, change / scale).astype(np.float64)
        for change, scale in zip((agreements[1] - agreements[0], new - old), scales, strict=False)
    ]
    levels, p, least = [LEVEL] * len(sums), None, None
    verdict: Drifted = "not known"
    if sizes.size >= FEW_QUERIES:
        flipped = sign_flip(np.array(sums))
        p = float(holm(flipped).min())
        levels = holm_levels(len(sums), lambda test, level: bool(flipped[test] <= 1 - level + 1e-12), LEVEL)
        verdict = "drifted" if p <= 1 - LEVEL else "no drift found"
        least = _least(sums[0], float(sizes.mean()), len(sums))
    difference, *shift = (
        _scaled(mean_difference(each, sizes, level=level).difference, scale)
        for each, scale, level in zip(sums, scales, levels, strict=True)
    )
    keys = ((*key, *pair) for key, *pair in zip(items, old.tolist(), new.tolist(), strict=True))
    return Drift(
        len(items),
        sizes.size,
        share_estimate(np.bincount(unit, new != old), sizes),
        float(agreements[0].mean()),
        float(agreements[1].mean()),
        difference,
        shift[0] if shift else nothing,
        p,
        verdict,
        least,
        tuple(Moved(*key) for key in keys if key[2] != key[3]),
    )


def _scaled(estimate: Estimate, scale: float) -> Estimate:
    value, low, high = (None if end is None else scale * end for end in (estimate.value, estimate.low, estimate.high))
    return replace(estimate, value=value, low=low, high=high)


def _least(sums: Floats, size: float, tests: int) -> float | None:
    """The smallest drift to be found: from the scatter of these differences, and the fewest queries that show one.

    ``sums`` has the differences of each query's items, of which it has ``size`` on average.
    """
    units = sums.size
    reach = student(1 - (1 - LEVEL) / tests, units) + float(scipy.special.stdtrit(units - 1, _POWER))
    moves = 1 + math.ceil(math.log2(tests / (1 - LEVEL)))
    if moves > units:
        return None
    of_queries = float(scipy.special.bdtri(moves - 1, units, 1 - _POWER))
    of_items = -math.expm1(math.log1p(-of_queries) / size)
    return max(of_items, reach * float(sums.std(ddof=1)) / size / math.sqrt(units))


def means_by_agent(
    level: Level, opinions: Sequence[Opinion], means: ItemMeans, then: Sequence[Opinion] | None = None
) -> dict[str, Estimate]:
    """The mean score of each agent, of all documents, or of one agent against another, by one judge's opinions.

    With ``then``, its mean change since those opinions, of the items that are in both.
    """
    scores = _scores(level, opinions, means)
    if then is not None:
        old = _scores(level, then, means)
        both = {name: by_item.keys() & old.get(name, {}).keys() for name, by_item in scores.items()}
        scores = {
            name: {key: scores[name][key] - old[name][key] for key in keys} for name, keys in both.items() if keys
        }
    flat = [score for by_item in scores.values() for score in by_item.values()]
    ends = min([0.0, *flat]), max([1.0, *flat])
    estimates = {}
    for name, by_item in scores.items():
        unit = numbered([query_id for query_id, _ in by_item])
        estimates[name] = ratio_estimate(np.bincount(unit, [*by_item.values()]), np.bincount(unit), ends)
    return estimates


def _scores(level: Level, opinions: Sequence[Opinion], means: ItemMeans) -> dict[str, dict[tuple[str, ItemKey], float]]:
    scores: dict[str, dict[tuple[str, ItemKey], float]] = {}
    for query_id, items in values_of(settled(opinions, verdicts=level == "verdicts")).items():
        for item, value in items.items():
            scores.setdefault(mean_of(level, item, means), {})[query_id, item] = score_of(level, value, mirrored=False)
    return scores


def mean_of(level: Level, item: ItemKey, means: ItemMeans) -> str:
    """The mean that an item is in; of a game, that of its first agent against the second alone.

    Against others, a judge's drift may go the other way.
    """
    (name, _, opponent), *_ = means_of(level, item, means)
    return f"{name} against {opponent}" if opponent else name


class TwoDates(Struct, frozen=True):
    """An agent's mean score on two dates, and the part of the change that is the judge's.

    Attributes:
        anew: share of its judgments that are not those of the first date; the judge's drift is in these.
        of_judge: the judge's drift in this mean.
        change: mean score now minus then minus ``of_judge``, with the interval of all three; no value if ``why`` says
            why it cannot be told.
    """

    agent: str
    then: Estimate
    now: Estimate
    anew: float
    of_judge: Estimate = Estimate(None)
    change: Estimate = Estimate(None)
    why: str = ""


def two_dates(agent: str, then: Estimate, now: Estimate, anew: float, of_judge: Estimate | None) -> TwoDates:
    """Correct the change of an agent's mean score by the judge's drift in the judgments that were made anew."""
    entry = TwoDates(agent, then, now, anew)
    if not anew:
        return replace(entry, why="nothing of it was judged anew")
    if of_judge is None or (of_judge.n or 0) < FEW_QUERIES:
        return replace(entry, why=f"fewer than {FEW_QUERIES} of its queries are among the labelled items")
    if then.value is None or now.value is None or None in (then.low, now.low):
        return replace(entry, why="its mean on one of the dates has no interval")
    of_judge = _scaled(of_judge, anew)
    half = math.hypot(*((each.high or 0.0) - (each.low or 0.0) for each in (then, now, of_judge))) / 2
    change = now.value - then.value - (of_judge.value or 0.0)
    return replace(entry, of_judge=of_judge, change=Estimate(change, change - half, change + half))
