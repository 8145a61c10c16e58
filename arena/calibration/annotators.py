"""Each person held against the others: whose votes are no better than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from arena.calibration.opinions import Opinion, by_item
from arena.ratings.games import Floats
from retrieval_eval.stats.agreement import cohen_kappas
from retrieval_eval.stats.bootstrap import jackknife_interval
from retrieval_eval.stats.estimate import Estimate

_FEWEST = 10
"""Things shared with others below which nobody is called no better than chance."""


@dataclass(frozen=True, slots=True)
class Annotator:
    """One rater against all others on the things that both judged.

    Attributes:
        rater: the name.
        votes: that it gave.
        shared: those on things that others judged too.
        kappa: Cohen's with the others' votes, each thing counting once; interval clustered by query.
        above_chance: whether the interval lies above 0; ``None`` where there is none, or it does not and fewer than
            ten things are shared.
    """

    rater: str
    votes: int
    shared: int
    kappa: Estimate
    above_chance: bool | None


def annotators(opinions: Sequence[Opinion], *, mirrored: bool = False) -> tuple[Annotator, ...]:
    """Everybody, whoever agrees least with the others first and those that cannot be compared last.

    Args:
        opinions: one vote of each rater on each thing.
        mirrored: values are verdicts; both sides count alike.
    """
    given = {one.value for one in opinions}
    labels = sorted(given | {-value for value in given}) if mirrored else sorted(given)
    place = {label: at for at, label in enumerate(labels)}
    raters = sorted({one.rater for one in opinions})
    number = {rater: at for at, rater in enumerate(raters)}
    queries = by_item(opinions)
    tables = np.zeros((len(raters), len(queries), len(labels), len(labels)))
    votes, shared = np.zeros((2, len(raters)), np.int64)
    for query, things in enumerate(queries.values()):
        for own in things.values():
            counts = np.bincount([place[one.value] for one in own], minlength=len(labels)).astype(np.float64)
            for one in own:
                votes[number[one.rater]] += 1
                if len(own) > 1:
                    others = counts.copy()
                    others[place[one.value]] -= 1
                    shared[number[one.rater]] += 1
                    tables[number[one.rater], query, place[one.value]] += others / (len(own) - 1)
    if mirrored:
        tables = (tables + tables[..., ::-1, ::-1]) / 2
    found = [
        _annotator(rater, int(votes[at]), int(shared[at]), tables[at][tables[at].any(axis=(1, 2))])
        for at, rater in enumerate(raters)
    ]
    return tuple(sorted(found, key=lambda one: (one.kappa.value is None, one.kappa.value or 0.0, one.rater)))


def _annotator(rater: str, votes: int, shared: int, tables: Floats) -> Annotator:
    value = float(cohen_kappas(tables.sum(axis=0)))
    if np.isnan(value):
        return Annotator(rater, votes, shared, Estimate(None), None)
    bounds = jackknife_interval(cohen_kappas, tables)
    if bounds is None:
        return Annotator(rater, votes, shared, Estimate(value), None)
    low, high = max(-1.0, bounds[0]), min(1.0, bounds[1])
    known = low > 0 or shared >= _FEWEST
    return Annotator(rater, votes, shared, Estimate(value, low, high), low > 0 if known else None)
