"""The gate in simulation: how often it passes what is worse, how often it passes what is equal, and what looking costs.

``python -m benchmarks.gate`` prints the tables of benchmarks/README.md; ``--runs`` sets how many gates each line rests
on. A query's figure is new's share of the points of four verdicts, of two judges in both orders, that depend on each
other; or the difference of two scores; or, hardest for means of few figures, a tie on most queries and all lost on few.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from retrieval_eval.stats.bootstrap import Floats, student
from retrieval_eval.stats.means import UNSEEN
from retrieval_eval.stats.paired import STAKES, interval, paired

MARGIN, LEVEL, BATCH = 0.05, 0.95, 20
QUERIES = (20, 50, 100, 200, 500, 1000)
OF_LOOKS = 1000
"""Queries that are there while one looks after each batch."""
HINDSIGHT = np.r_[np.geomspace(1e-3, 0.5, 100), 1 - np.geomspace(0.5, 1e-3, 40)[1:]]
"""Stakes among which the best in hindsight is sought."""
TRUTHS = {"equal": 0.0, "at the margin": -MARGIN, "worse": -2 * MARGIN}


def games(rng: np.random.Generator, truth: float, shape: tuple[int, int]) -> Floats:
    """Share of points less one half, by four verdicts that agree as often as not."""
    strength = np.clip(0.5 + truth + rng.uniform(-0.35, 0.35, shape), 0, 1)
    verdicts = rng.random((4, *shape)) < strength
    shares: Floats = verdicts.mean(axis=0) - 0.5
    return shares


def scores(rng: np.random.Generator, truth: float, shape: tuple[int, int]) -> Floats:
    """Differences of scores from 0 to 1: one query in three differs."""
    differing = rng.random(shape) < 1 / 3
    return np.where(differing, np.clip(rng.normal(3 * truth, 0.3, shape), -1, 1), 0.0)


def rare(rng: np.random.Generator, truth: float, shape: tuple[int, int]) -> Floats:
    """Most queries tie; where the two are equal, two in a hundred are lost altogether and as many won."""
    drawn = rng.random(shape)
    lost, won = (-truth, 0.0) if truth else (0.02, 0.02)
    return np.where(drawn < lost, -1.0, np.where(drawn < lost + won, 1.0, 0.0))


KINDS: dict[str, tuple[Callable[..., Floats], float]] = {
    "games": (games, 0.5),
    "scores": (scores, 1.0),
    "rare losses": (rare, 1.0),
}


def passes_once(d: Floats, reach: float) -> bool:
    """Whether one look at these queries passes."""
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


def first_passes(d: Floats, reach: float) -> tuple[Floats, Floats]:
    """Queries at which a gate first passes that looks after each batch, infinite where it never does, shape (runs,).

    By the interval that allows it, and by that of one look, which does not.
    """
    null = (1 - MARGIN / reach) / 2
    looks = np.arange(BATCH, d.shape[1] + 1, BATCH)
    once = np.array([student(LEVEL, n) ** 2 / 2 for n in looks])
    found = np.full((2, len(d)), np.inf)
    for run, own in enumerate((1 + d / reach) / 2):
        valid = scipy.special.logsumexp(capital(own, null, STAKES), axis=0) - np.log(STAKES.size)
        best = (capital(own, null, HINDSIGHT) + UNSEEN * np.log1p(-HINDSIGHT)[:, None]).max(axis=0)
        varied = np.maximum.accumulate(own)[looks - 1] * ((1 - LEVEL) / 2) ** (1 / looks) > null
        for passed, at in ((valid > np.log(2 / (1 - LEVEL)), found[0]), ((best > once) & varied, found[1])):
            at[run] = looks[passed.argmax()] if passed.any() else np.inf
        if run < 5:  # the same as the gate itself says
            at = int(min(found[0, run], d.shape[1]))
            verdict = paired(d[run, :at], MARGIN, reach=reach, any_look=True).verdict
            assert (verdict in ("better", "not worse")) == np.isfinite(found[0, run])
            assert found[1, run] == next((n for n in looks if passes_once(d[run, :n], reach)), np.inf)
    return found[0], found[1]


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
    print("\n| | truth | passes at any look | one look again and again | median queries until it passes |")
    print("|---|---|---|---|---|")
    for kind, (draw, reach) in KINDS.items():
        for truth, value in TRUTHS.items():
            d = draw(np.random.default_rng(25), value, (runs, OF_LOOKS))
            at, again = first_passes(d, reach)
            median = f"{np.median(at):,.0f}" if np.isfinite(np.median(at)) else "-"
            print(
                f"| {kind} | {truth} | {np.isfinite(at).mean():.1%} | {np.isfinite(again).mean():.1%} | {median} |",
                flush=True,
            )


def _line(kind: str, truth: str, method: str, shares: list[float]) -> None:
    print(f"| {kind} | {truth} | {method} | {' | '.join(f'{share:.1%}' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()
