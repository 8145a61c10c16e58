"""The gate in simulation: how often it passes what is worse, how often it passes what is equal, and what looking costs.

``python -m benchmarks.gate`` prints the tables of benchmarks/README.md; ``--runs`` sets how many gates each line rests
on. A query's figure is new's share of the points of four verdicts, of two judges in both orders, that depend on each
other; or the difference of two scores; or, hardest for means of few figures, a tie on most queries and all lost on few.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import LOST, UNSEEN, student
from retrieval_eval.stats.paired import STAKES, interval, level_of_look, paired

MARGIN, LEVEL, BATCH = 0.05, 0.95, 20
QUERIES = (20, 50, 100, 200, 500, 1000)
OF_LOOKS = 300
"""Number of queries of a gate that looks after each batch."""
HINDSIGHT = np.r_[np.geomspace(1e-3, 0.5, 1000), 1 - np.geomspace(0.5, 1e-3, 200)[1:]]
"""Stakes to choose the best from in hindsight."""
TRUTHS = {"equal": 0.0, "at the margin": -MARGIN, "worse": -2 * MARGIN}


def games(rng: np.random.Generator, truth: float, shape: tuple[int, int]) -> Floats:
    strength = np.clip(0.5 + truth + rng.uniform(-0.35, 0.35, shape), 0, 1)
    verdicts = rng.random((4, *shape)) < strength
    shares: Floats = verdicts.mean(axis=0) - 0.5
    return shares


def scores(rng: np.random.Generator, truth: float, shape: tuple[int, int]) -> Floats:
    differing = rng.random(shape) < 1 / 3
    return np.where(differing, np.clip(rng.normal(3 * truth, 0.3, shape), -1, 1), 0.0)


def rare(rng: np.random.Generator, truth: float, shape: tuple[int, int]) -> Floats:
    """Most queries tie; if the two are equal, two in a hundred are lost altogether and as many won."""
    drawn = rng.random(shape)
    lost, won = (-truth, 0.0) if truth else (0.02, 0.02)
    return np.where(drawn < lost, -1.0, np.where(drawn < lost + won, 1.0, 0.0))


KINDS: dict[str, tuple[Callable[..., Floats], float]] = {
    "games": (games, 0.5),
    "scores": (scores, 1.0),
    "rare losses": (rare, 1.0),
}


def passes_once(d: Floats, reach: float) -> bool:
    low, _ = interval((1 + d / reach) / 2, LEVEL, any_look=False)
    return reach * (2 * low - 1) > -MARGIN


def passes_t(d: Floats) -> NDArray[np.bool_]:
    """Whether Student's t would pass, shape (runs, queries) to (runs,); equal differences pass by their mean."""
    n = d.shape[1]
    error = d.std(axis=1, ddof=1) / np.sqrt(n)
    passed: NDArray[np.bool_] = d.mean(axis=1) - scipy.special.stdtrit(n - 1, (1 + LEVEL) / 2) * error > -MARGIN
    return passed


def capital(x: Floats, null: float, stakes: Floats) -> Floats:
    """Log capital against ``null`` of each stake after each batch, shape (queries,) to (stakes, looks)."""
    grown: Floats = np.log1p(np.outer(stakes, x / null - 1)).cumsum(axis=1)[:, BATCH - 1 :: BATCH]
    return grown


def first_passes(d: Floats, reach: float) -> Floats:
    """Number of queries at which a gate that looks after each batch first passes, shape (3, runs); else infinite.

    By alpha spending and by the confidence sequence, which allow looks, and by the interval of one look, which does
    not.
    """
    null = (1 - MARGIN / reach) / 2
    looks = np.arange(BATCH, d.shape[1] + 1, BATCH)
    found = np.full((3, len(d)), np.inf)
    for run, own in enumerate((1 + d / reach) / 2):
        valid = scipy.special.logsumexp(capital(own, null, STAKES), axis=0) - np.log(STAKES.size)
        best = (capital(own, null, HINDSIGHT) + UNSEEN * np.log1p(-HINDSIGHT)[:, None]).max(axis=0)
        passing = [
            _passes(best, own, null, looks, levels_of_looks(looks.size)),
            valid > np.log(2 / (1 - LEVEL)),
            _passes(best, own, null, looks, np.full(looks.size, LEVEL)),
        ]
        for passed, at in zip(passing, found, strict=True):
            at[run] = looks[passed.argmax()] if passed.any() else np.inf
        if run < 5:  # the same as the gate itself says
            times = (looks / looks[-1]).tolist()
            spending = next((n for k, n in enumerate(looks) if _said(d[run, :n], reach, looks=times[: k + 1])), np.inf)
            betting = next((n for n in looks if _said(d[run, :n], reach, any_look=True)), np.inf)
            again = next((n for n in looks if passes_once(d[run, :n], reach)), np.inf)
            assert found[:, run].tolist() == [spending, betting, again]
    return found


def _passes(best: Floats, x: Floats, null: float, looks: NDArray[np.int64], levels: Floats) -> NDArray[np.bool_]:
    """Which looks pass by the one-look interval at these levels, from the log-likelihood against ``null``."""
    allowed = np.array([student(level, n) ** 2 / 2 for level, n in zip(levels.tolist(), looks.tolist(), strict=True)])
    lost = np.cumsum(x <= LOST)[looks - 1]
    kept = 1 - scipy.special.betaincinv(lost + 1, np.maximum(looks - lost, 1), (1 + levels) / 2)
    above = np.cumsum(x)[looks - 1] / looks > null
    return above & (best > allowed) & (kept * np.maximum.accumulate(x)[looks - 1] > null)


def _said(d: Floats, reach: float, **how: Any) -> bool:
    return paired(d, MARGIN, reach=reach, level=LEVEL, **how).verdict in ("better", "not worse")


@cache
def levels_of_looks(looks: int) -> Floats:
    times = [number / looks for number in range(1, looks + 1)]
    return np.array([level_of_look(times[:number], LEVEL) for number in range(1, looks + 1)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    print(f"| | truth | method | {' | '.join(f'{n:,}' for n in QUERIES)} |\n|---|---|---|{'---|' * len(QUERIES)}")
    for kind, (draw, reach) in KINDS.items():
        for truth, value in TRUTHS.items():
            rng = np.random.default_rng(24)
            drawn = [draw(rng, value, (runs, n)) for n in QUERIES]
            once = [float(np.mean([passes_once(own, reach) for own in d])) for d in drawn]
            _line(kind, truth, "one look", once)
            _line(kind, truth, "Student's t", [float(passes_t(d).mean()) for d in drawn])
    heads = ["truth", "one look", "alpha spending", "confidence sequence", "one look again and again", "median queries"]
    print(f"\n| | {' | '.join(heads)} |")
    print("|---|---|---|---|---|---|---|")
    for kind, (draw, reach) in KINDS.items():
        for truth, value in TRUTHS.items():
            d = draw(np.random.default_rng(25), value, (runs, OF_LOOKS))
            at = first_passes(d, reach)
            single = float(np.mean([passes_once(own, reach) for own in d]))
            spending, betting, again = np.isfinite(at).mean(axis=1)
            median = " and ".join(f"{own:,.0f}" if np.isfinite(own) else "-" for own in np.median(at[:2], axis=1))
            print(
                f"| {kind} | {truth} | {single:.1%} | {spending:.1%} | {betting:.1%} | {again:.1%} | {median} |",
                flush=True,
            )


def _line(kind: str, truth: str, method: str, shares: list[float]) -> None:
    print(f"| {kind} | {truth} | {method} | {' | '.join(f'{share:.1%}' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()
