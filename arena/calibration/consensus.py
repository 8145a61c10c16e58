"""What several people together say of a thing: their majority, or what a model of their reliability makes most likely.

Dawid and Skene (1979, Applied Statistics 28): every rater has a confusion matrix, the chance of each label given the
true one; true labels and matrices are fitted together by expectation maximisation, from the majority on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arena.calibration.votes import Item, Opinion, by_item
from arena.ratings.games import Floats

Method: TypeAlias = Literal["majority", "dawid-skene"]

_MAX_ITERATIONS = 1000
_TOLERANCE = 1e-6
_PRIOR_VOTES = 0.1


@dataclass(frozen=True, slots=True)
class Reliability:
    """One rater in the model: the chance that it gives a thing's true label, and how many votes say so."""

    rater: str
    votes: int
    accuracy: float


@dataclass(frozen=True, slots=True)
class Consensus:
    """One value for each thing.

    Attributes:
        method: how it came about.
        values: by query and thing.
        contested: things on which no value leads; a tie of verdicts, the lowest of labels.
        raters: of the model, the least reliable first; empty for the majority.
        iterations, converged: how the fit ended, ``None`` for the majority.
    """

    method: Method
    values: Mapping[str, Mapping[Item, float]]
    contested: int = 0
    raters: tuple[Reliability, ...] = ()
    iterations: int | None = None
    converged: bool | None = None


def consensus(opinions: Iterable[Opinion], method: Method, *, mirrored: bool = False) -> Consensus:
    """One value of many.

    Args:
        opinions: of people.
        method: ``majority`` or ``dawid-skene``.
        mirrored: values are verdicts, 1 and -1 for the two sides.
    """
    votes = list(opinions)
    return dawid_skene(votes, mirrored=mirrored) if method == "dawid-skene" else majority(votes, mirrored=mirrored)


def majority(opinions: Iterable[Opinion], *, mirrored: bool = False) -> Consensus:
    """The value that most raters gave; where several lead, a tie of verdicts and the lowest label."""
    values: dict[str, dict[Item, float]] = {}
    contested = 0
    for query_id, things in by_item(opinions).items():
        for item, own in things.items():
            counts = Counter(one.value for one in own)
            leading = [value for value, times in counts.items() if times == max(counts.values())]
            contested += len(leading) > 1
            settled = leading[0] if len(leading) == 1 else 0.0 if mirrored else min(leading)
            values.setdefault(query_id, {})[item] = settled
    return Consensus("majority", values, contested)


def dawid_skene(opinions: Sequence[Opinion], *, mirrored: bool = False, prior_votes: float = _PRIOR_VOTES) -> Consensus:
    """The most likely value of each thing under the model.

    Args:
        opinions: of people.
        mirrored: values are verdicts; raters then err alike for both sides.
        prior_votes: virtual votes in each cell of each rater's matrix, so that few votes do not make a rater certain.
    """
    things = list(dict.fromkeys((one.query_id, one.item) for one in opinions))
    raters = sorted({one.rater for one in opinions})
    given = {one.value for one in opinions}
    labels = sorted(given | {-value for value in given}) if mirrored else sorted(given)
    votes = _numbered(opinions, things, raters, labels)
    fit = _fit(votes, (len(things), len(raters), len(labels)), prior_votes, mirrored=mirrored)
    values: dict[str, dict[Item, float]] = {}
    contested = 0
    for (query_id, item), chances in zip(things, fit.truth, strict=True):
        leading = [label for label, chance in zip(labels, chances, strict=True) if chance > chances.max() - 1e-9]
        contested += len(leading) > 1
        settled = leading[0] if len(leading) == 1 else 0.0 if mirrored else min(leading)
        values.setdefault(query_id, {})[item] = settled
    right = np.einsum("k,rkk->r", fit.shares, fit.confusion)
    counts = np.bincount(votes[1], minlength=len(raters))
    found = [Reliability(*one) for one in zip(raters, counts.tolist(), right.tolist(), strict=True)]
    order = tuple(sorted(found, key=lambda one: one.accuracy))
    return Consensus("dawid-skene", values, contested, order, fit.iterations, fit.converged)


Votes: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Numbers of thing, rater and label of each vote."""


def _numbered(
    opinions: Sequence[Opinion],
    things: Sequence[tuple[str, Item]],
    raters: Sequence[str],
    labels: Sequence[float],
) -> Votes:
    thing, rater, label = ({name: at for at, name in enumerate(names)} for names in (things, raters, labels))
    rows = [(thing[one.query_id, one.item], rater[one.rater], label[one.value]) for one in opinions]
    columns = np.array(rows, np.int64).reshape(len(rows), 3)
    return columns[:, 0], columns[:, 1], columns[:, 2]


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """``truth`` (things, labels), ``confusion`` (raters, true, given), ``shares`` (labels)."""

    truth: Floats
    confusion: Floats
    shares: Floats
    iterations: int
    converged: bool


def _fit(votes: Votes, shape: tuple[int, int, int], prior_votes: float, *, mirrored: bool) -> _Fit:
    thing, rater, label = votes
    things, raters, labels = shape
    truth = np.zeros((things, labels))
    np.add.at(truth, (thing, label), 1.0)
    truth /= truth.sum(axis=1, keepdims=True)
    change, iterations = np.inf, 0
    while True:
        confusion = np.zeros((raters, labels, labels))
        np.add.at(confusion.transpose(0, 2, 1), (rater, label), truth[thing])
        shares = truth.mean(axis=0)
        if mirrored:
            confusion, shares = confusion + confusion[:, ::-1, ::-1], (shares + shares[::-1]) / 2
        confusion += prior_votes
        confusion /= confusion.sum(axis=2, keepdims=True)
        if change < _TOLERANCE or iterations == _MAX_ITERATIONS:
            return _Fit(truth, confusion, shares, iterations, change < _TOLERANCE)
        with np.errstate(divide="ignore"):
            likelihood = np.tile(np.log(shares), (things, 1))
        np.add.at(likelihood, thing, np.log(confusion)[rater, :, label])
        updated = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
        updated /= updated.sum(axis=1, keepdims=True)
        change, truth, iterations = float(np.abs(updated - truth).max()), updated, iterations + 1
