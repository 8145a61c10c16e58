"""Repeated answers: one system asked the same queries several times, so that its noise can be told from differences.

Repeats are averaged within the query, and then the query is the unit as ever. Averaging is enough: the interval of a
mean over queries covers the truth as it does without repeats, while a bootstrap that draws repeats as well counts their
noise twice (``benchmarks/repeats.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from judges.types import repeat_of
from retrieval_eval.stats import Bools, Floats
from retrieval_eval.stats.bootstrap import jackknife_estimate, units_of
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.scores import Scores

_Z: Final = 1.959964
"""Two runs of one system differ by less than this many standard errors in 95 % of cases."""
_ROUNDING: Final = 1e-9


def averaged(scores: Scores, present: Bools | None = None) -> Scores:
    """Put the repeats of each agent together (``rag`` and ``rag (repeat 2)``): values are means over its repeats.

    ``repeats`` of the result keeps the values of each. ``present`` says which answers exist, shape (agents, queries),
    if a missing answer scores 0: it then does so only where the agent has no repeat at all.

    >>> from retrieval_eval.stats.scores import scores_of
    >>> tone = averaged(scores_of("tone", {("a", "q1"): 1.0, ("a (repeat 2)", "q1"): 0.0, ("b", "q1"): 1.0}))
    >>> tone.cells(), tone.repeats.shape
    ({('q1', 'a'): 0.5, ('q1', 'b'): 1.0}, (2, 2, 1))
    """
    parts = [repeat_of(name) for name in scores.agents]
    most = max((repeat for _, repeat in parts), default=1)
    if most == 1:
        return scores
    agents = tuple(sorted({agent for agent, _ in parts}))
    row = np.array([agents.index(agent) for agent, _ in parts])
    place = np.array([repeat for _, repeat in parts]) - 1
    shape = most, len(agents), len(scores.queries)
    repeats, ends = np.full(shape, np.nan), np.full((2, *shape), np.nan)
    repeats[place, row] = scores.values
    ends[:, place, row] = scores.bounds
    if present is not None:
        there = np.zeros(shape, np.bool_)
        there[place, row] = present
        absent = ~there & (there.any(axis=0) | (np.arange(most) > 0)[:, np.newaxis, np.newaxis])
        repeats[absent], ends[:, absent] = np.nan, np.nan
    judgments = None
    if scores.judgments is not None:
        judgments = np.zeros((2, *shape[1:]), np.int64)
        for counts, of_repeats in zip(judgments, scores.judgments, strict=True):
            np.add.at(counts, row, of_repeats)
    bounds = None if scores.ends is None else np.array([mean_of_repeats(end) for end in ends])
    values = mean_of_repeats(repeats)
    return replace(scores, agents=agents, values=values, judgments=judgments, ends=bounds, repeats=repeats)


def mean_of_repeats(values: Floats) -> Floats:
    """Mean over the first axis of what is there; NaN where nothing is."""
    seen = ~np.isnan(values)
    number = seen.sum(axis=0)
    return np.where(number > 0, np.where(seen, values, 0.0).sum(axis=0) / np.maximum(number, 1), np.nan)


def halves(scores: Scores | None, agent: str, number: int) -> Scores:
    """One agent with so many repeats as two: its first repeats and the others, on the queries that have both."""
    names = _called(agent, 1, number // 2), _called(agent, number // 2 + 1, number)
    if scores is None or scores.repeats is None or agent not in scores.agents:
        return Scores("" if scores is None else scores.name, names, (), np.zeros((2, 0)))
    of_agent = scores.repeats[:, scores.agents.index(agent)]
    values = np.array([mean_of_repeats(half) for half in np.split(of_agent, [number // 2])])
    has_both = ~np.isnan(values).any(axis=0)
    queries = tuple(name for name, has in zip(scores.queries, has_both.tolist(), strict=True) if has)
    plain = replace(scores, judgments=None, ends=None, repeats=None, conditional=False)
    return replace(plain, agents=names, queries=queries, values=values[:, has_both])


def _called(agent: str, first: int, last: int) -> str:
    return f"{agent} (repeat {first})" if first == last else f"{agent} (repeats {first} to {last})"


class Noise(Struct, frozen=True):
    """How much a score changes when a system is asked again.

    Attributes:
        score: name of the score.
        floor: the means of two runs of one system, one answer per query, differ by up to this in 95 % of cases; its
            interval says how well that is known. 0, without interval, if all repeats score the same.
        queries: number of queries of such a run.
        repeats: the largest number of repeats.
    """

    score: str
    floor: Estimate
    queries: int
    repeats: int


def noise(scores: Scores) -> Noise | None:
    """The noise floor of a score, from the variance between repeats pooled over agents; ``None`` without repeats."""
    if scores.repeats is None:
        return None
    seen = ~np.isnan(scores.repeats)
    number = seen.sum(axis=0)
    apart = np.where(seen, scores.repeats - mean_of_repeats(scores.repeats), 0.0)
    squares = (np.where(np.abs(apart) < _ROUNDING, 0.0, apart) ** 2).sum(axis=0)
    freedom = np.maximum(number - 1, 0)
    if not freedom.any():
        return None
    unit = units_of(scores.queries, scores.clusters)
    totals = np.array([np.bincount(unit, table.sum(axis=0)) for table in (squares, freedom)]).T
    queries = round(float((number > 0).sum(axis=1)[freedom.any(axis=1)].mean()))
    value = _Z * math.sqrt(2 * totals[:, 0].sum() / totals[:, 1].sum() / queries)
    floor = Estimate(value, n=int((totals[:, 1] > 0).sum()))
    if value:
        logarithm = jackknife_estimate(_log_mean_square, totals)
        if logarithm.value is not None and logarithm.low is not None and logarithm.high is not None:
            low, high = (value * math.exp((end - logarithm.value) / 2) for end in (logarithm.low, logarithm.high))
            floor = replace(floor, low=low, high=high, method="jackknife")
    return Noise(scores.name, floor, queries, int(number.max()))


def noises(scores: Iterable[Scores]) -> tuple[Noise, ...]:
    return tuple(one for each in scores if (one := noise(each)) is not None)


def _log_mean_square(totals: Floats) -> Floats:
    squares, freedom = np.moveaxis(totals, 1, 0)
    known = (squares > 0) & (freedom > 0)
    return np.where(known, np.log(np.where(known, squares, 1.0) / np.maximum(freedom, 1)), np.nan)
