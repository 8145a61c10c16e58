"""A new system against an old one on the same queries: what their differences allow to be said, with a margin.

A query is the unit: whatever was judged on it, by several judges and in both orders, is one difference d_1, ..., d_n of
new less old, which lies between -reach and reach. A figure x_i = (1 + d_i / reach) / 2 lies in [0, 1] then, and a
gambler who doubts that its mean is m or less stakes a share s of the capital on each query:

    log capital(m, s) = sum_i log(1 + s (x_i / m - 1)),   0 <= s < 1.

Both intervals are made of that, each end by itself; ties and queries that all say the same are no special case.

- *One look*, once all queries are judged: the empirical likelihood, as for every mean (``means.mean_interval``). It is
  the capital of the stake that is best in hindsight, of the queries and of a part of one more with the worst possible
  figure.
- *Several looks* at a number of queries that is known beforehand: the same at the level that alpha spending leaves to
  this look (``looks``).
- *Any number of looks*, while queries are judged one after another in an order drawn beforehand: the mean capital over
  stakes fixed beforehand, which ever reaches 2 / (1 - level) with a probability of (1 - level) / 2 at most, whatever
  the figures are (Ville's inequality; Waudby-Smith and Ramdas 2024, JRSS B 86). ``arena.ratings.evidence`` is the same
  at m = 1/2.

``benchmarks/gate.py`` shows what both hold, and what looking often costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import ArrayLike

from judges.errors import InputError
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.looks import level_of_look
from retrieval_eval.stats.means import METHOD, mean_interval

GateVerdict: TypeAlias = Literal["better", "not worse", "worse", "undecided"]

STAKES: Final[Floats] = np.geomspace(0.05, 1.8, 8) / 2
"""Shares of what may be staked. The best on a win share p against one half is about 2p - 1."""
SEVERAL_LOOKS: Final = "alpha spending"
ANY_LOOK: Final = "confidence sequence"
MOST: Final = 1_000_000
"""Queries beyond which nobody asks for more."""
_POWER: Final = 0.8
_SMALLEST: Final = 1e-9


class Paired(Struct, frozen=True):
    """What paired differences allow to be said.

    Attributes:
        difference: mean of new less old; ``n`` queries. Without an interval for fewer than two, and no value for none.
        verdict: by the interval: ``better`` above 0, else ``not worse`` above -margin, else ``worse`` below 0, else
            ``undecided``. Of these each of the first three is wrong with a probability of (1 - level) / 2 at most. A
            verdict that what is missing alone could turn round, were all of it lost or all won, does not stand: neither
            chance, nor what is missing, could by itself turn one that does.
        margin: how much worse still passes, in units of the differences.
        wins, ties, losses: queries on which new is better, as good, worse.
        missing: queries without a difference.
        ends: the least and the most that the mean over all queries can be, whatever is missing; ``None`` without any.
        unsure: whether what is missing, and not the interval, keeps it from a verdict.
        more: further queries that would decide with a probability of 80 % if they turn out like these; ``None`` where
            it is decided, no number would, or fewer than two queries show how they vary.
    """

    difference: Estimate
    verdict: GateVerdict
    margin: float
    wins: int
    ties: int
    losses: int
    missing: int
    unsure: bool
    more: int | None
    ends: tuple[float, float] | None = None


def paired(
    differences: ArrayLike,
    margin: float,
    *,
    missing: int = 0,
    known: ArrayLike = 1.0,
    bounds: ArrayLike | None = None,
    reach: float = 1.0,
    level: float = 0.95,
    looks: Sequence[float] = (),
    any_look: bool = False,
) -> Paired:
    """Compare two systems by the differences of new less old.

    Args:
        differences: one of each query, shape (queries,), in any order.
        margin: how much worse still passes, from 0 to below ``reach``.
        missing: further queries of which nothing is known.
        known: the share of each query that its difference is of, where a query is a conversation and turns are missing.
        reach: the largest difference there can be: 1/2 for win shares less one half, 1 for scores from 0 to 1.
        level: of the interval; with several looks of all of them together.
        bounds: the least and the most that the difference of each query can be, also of those without one, shape (2,
            queries); in place of ``known``, which takes what is missing for lost or won as a whole.
        looks: the share of all queries that was judged at each look so far, this one last; see ``level_of_look``.
        any_look: whether the interval must hold however often one looks while queries are added.

    Raises:
        InputError: a margin or level outside its range.
        ValueError: a difference beyond ``reach``.
    """
    if not 0 <= margin < reach:
        raise InputError(f"the margin must be at least 0 and below {reach:g}, not {margin:g}")
    if not 0 < level < 1:
        raise InputError(f"the level must lie between 0 and 1, not {level:g}")
    d = np.asarray(differences, np.float64)
    if not (np.abs(d) <= reach * (1 + _SMALLEST)).all():
        raise ValueError(f"differences must lie between {-reach:g} and {reach:g}")
    x, null = np.clip((1 + d / reach) / 2, 0, 1), (1 - margin / reach) / 2
    signs = (int((d > _SMALLEST).sum()), int((np.abs(d) <= _SMALLEST).sum()), int((d < -_SMALLEST).sum()))
    share = np.broadcast_to(np.asarray(known, np.float64), x.shape)
    unknown = missing + float((1 - share).sum())
    if bounds is not None:
        lost, won = np.clip((1 + np.asarray(bounds, np.float64).mean(axis=1) / reach) / 2, 0, 1).tolist()
    elif d.size + missing:
        lost, won = (float((share * x).sum() + own * unknown) / (x.size + missing) for own in (0, 1))
    ends = (reach * (2 * lost - 1), reach * (2 * won - 1)) if d.size + missing else None
    if not d.size:
        return Paired(Estimate(None, n=0), "undecided", margin, *signs, missing, False, None, ends)
    of_this_look = level_of_look(looks, level) if looks else level
    low, high = interval(x, of_this_look, any_look=any_look)
    of_known = _verdict(low, high, null)
    verdict = _verdict(min(low, lost), max(high, won), null)
    more = _more(x, null, level, any_look=any_look) if of_known == "undecided" and d.size > 1 else None
    shown: tuple[float, float] | tuple[None, None] = (None, None)
    if d.size > 1:
        shown = reach * (2 * low - 1), reach * (2 * high - 1)
    method = ANY_LOOK if any_look else SEVERAL_LOOKS if looks else METHOD
    estimate = Estimate(float(d.mean()), shown[0], shown[1], d.size, method)
    return Paired(estimate, verdict, margin, *signs, missing, of_known != verdict == "undecided", more, ends)


def interval(x: Floats, level: float, *, any_look: bool, times: float = 1.0) -> tuple[float, float]:
    """Interval of the mean of figures in [0, 1], shape (n,), as if each were there so many times."""
    if not any_look:
        return mean_interval(x, level, times=times)
    return _low_of_any_look(x, level, times), 1 - _low_of_any_look(1 - x, level, times)


def _verdict(low: float, high: float, null: float) -> GateVerdict:
    if low > 0.5:
        return "better"
    if low > null:
        return "not worse"
    return "worse" if high < 0.5 else "undecided"


def _low_of_any_look(x: Floats, level: float, times: float) -> float:
    """Lower end by betting: where the mean capital against it is just allowed."""
    mean, allowed = float(x.mean()), math.log(2 / (1 - level))

    def excess(m: float) -> float:
        capital = times * np.log1p(np.outer(STAKES, x / m - 1)).sum(axis=1)
        return float(scipy.special.logsumexp(capital)) - math.log(STAKES.size) - allowed

    if mean <= _SMALLEST or excess(_SMALLEST) <= 0:
        return 0.0
    return float(scipy.optimize.brentq(excess, _SMALLEST, mean))


def _more(x: Floats, null: float, level: float, *, any_look: bool) -> int | None:
    """Further queries that decide with ``_POWER``: also where their mean is less clear by so much of its error."""
    apart, mean = float(scipy.special.ndtri(_POWER)) * float(x.std(ddof=1)), float(x.mean())

    def decides(queries: int) -> bool:
        times, unlucky = queries / x.size, apart / math.sqrt(queries)
        lower = x * (1 - min(1, unlucky / max(mean, _SMALLEST)))
        higher = 1 - (1 - x) * (1 - min(1, unlucky / max(1 - mean, _SMALLEST)))
        return any(
            _verdict(*interval(figures, level, any_look=any_look, times=times), null) in wanted
            for figures, wanted in ((lower, ("better", "not worse")), (higher, ("worse",)))
        )

    few, enough = x.size, 2 * x.size
    while not decides(enough):
        if enough >= MOST:
            return None
        few, enough = enough, min(2 * enough, MOST)
    while enough - few > max(1, enough // 200):
        middle = (few + enough) // 2
        few, enough = (few, middle) if decides(middle) else (middle, enough)
    return enough - x.size
