"""alpha-nDCG with a bank's items as the intents of a query (Clarke et al., SIGIR 2008).

    gain(passage r) = sum over the items it covers of (1 - alpha) ** (passages before it that cover the item)
    alpha-DCG@k = sum over r <= k of gain(r) / log2(1 + r), divided by that of an ideal order

Finding the best order is NP-hard; as in ndeval, the ideal one takes the passage with the highest gain next. A pair
without a grade covers nothing here: read the score beside its coverage. A passage that stands twice counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval_eval.exam.grades import Grid

DEFAULT_ALPHA = 0.5


def alpha_ndcg(
    grid: Grid, rankings: Iterable[Sequence[str]], *, level: int, k: int, alpha: float = DEFAULT_ALPHA
) -> list[float]:
    """The scores of some responses to one query, 0 to 1; 0 where no passage of the query covers an item.

    Args:
        grid: the query's grades.
        rankings: of each response the passages in their order; all must be in the grid.
        level: the lowest grade that counts as covered.
        k: passages that count.
        alpha: how little it is worth to cover an item once more, 0 to 1.
    """
    covers = grid.grades >= level
    best = _discounted(_ideal(covers, k, alpha))
    rows = [grid.rows(dict.fromkeys(ranking))[:k] for ranking in rankings]
    return [_discounted(_gains(covers[own], alpha)) / best if best else 0.0 for own in rows]


def _gains(covers: NDArray[np.bool_], alpha: float) -> NDArray[np.float64]:
    before: NDArray[np.int64] = np.cumsum(covers, axis=0) - covers
    gains: NDArray[np.float64] = (covers * (1.0 - alpha) ** before).sum(axis=1)
    return gains


def _ideal(covers: NDArray[np.bool_], k: int, alpha: float) -> NDArray[np.float64]:
    left = covers.astype(np.float64)
    worth = np.ones(covers.shape[1])
    gains = np.zeros(min(k, len(covers)))
    for place in range(gains.size):
        offered = left @ worth
        chosen = int(offered.argmax())
        gains[place] = offered[chosen]
        worth = np.where(left[chosen] > 0, worth * (1.0 - alpha), worth)
        left[chosen] = 0.0
    return gains


def _discounted(gains: NDArray[np.float64]) -> float:
    return float((gains / np.log2(np.arange(2, gains.size + 2))).sum())
