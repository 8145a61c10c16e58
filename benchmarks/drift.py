"""How often a judge that did not change is said to have drifted, and how often a planted drift of 10 points is found.

``python -m benchmarks.drift`` prints the section "Drift of a judge" of benchmarks/README.md; a minute. A judge's
chance to agree with people differs by query (sd 0.15) around 80 %. "By chance" draws each answer anew on both dates, as
a judge at temperature 1 would give it; "the same" repeats the first answer unless the drift moves it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from arena.calibration import Opinion
from arena.calibration.drift import LEVEL, Drift, drift
from arena.calibration.votes import Level
from retrieval_eval.stats import Floats
from retrieval_eval.stats.paired import sign_flip

SIZES: Final = ((30, 4), (100, 1), (100, 2))
"""Queries, and items on each."""
PLANTED: Final = 0.1
AGREES, BY_QUERY = 0.8, 0.15
CHUNK: Final = 50


def world(
    rng: np.random.Generator, size: tuple[int, int], level: Level, planted: float, *, by_chance: bool
) -> tuple[Floats, Floats, Floats]:
    """Labels of people and of the judge then and now, shape (queries, items); ``planted`` is lost in agreement."""
    people = rng.choice([-1.0, 1.0] if level == "verdicts" else [0.0, 1.0, 2.0], size)
    other = -people if level == "verdicts" else np.where(people > 0, people - 1, 1.0)
    agrees = np.clip(AGREES + rng.normal(0, BY_QUERY, (size[0], 1)), 0.05, 0.99)
    then = np.where(rng.random(size) < agrees, people, other)
    again = np.where(rng.random(size) < agrees, people, other) if by_chance else then
    return people, then, np.where(rng.random(size) < planted / AGREES, other, again)


def measured(people: Floats, then: Floats, now: Floats, level: Level) -> Drift:
    rows = (
        [Opinion(f"q{at[0]}", (str(at[1]), "x"), rater, float(value)) for at, value in np.ndenumerate(labels)]
        for rater, labels in (("j", then), ("j", now), ("ann", people))
    )
    return drift(level, *rows)


def found(rng: np.random.Generator, runs: int, level: Level, size: tuple[int, int], **how: Any) -> float:
    """Share of runs that are said to drift, by the tests of ``drift`` on many runs at once."""
    worlds = [world(rng, size, level, **how) for _ in range(runs)]
    tests = [[(now == people) * 1.0 - (then == people) for people, then, now in worlds]]
    if level != "verdicts":
        tests.append([now - then for _, then, now in worlds])
    p = [
        np.concatenate([sign_flip(np.array(test[at : at + CHUNK]).sum(axis=2), at) for at in range(0, runs, CHUNK)])
        for test in tests
    ]
    return float((len(tests) * np.min(p, axis=0) <= 1 - LEVEL).mean())  # Holm's smallest p-value


def table(runs: int) -> Iterator[str]:
    rng = np.random.default_rng(47)
    yield '| labels | queries x items | answers | unchanged, said to drift | drift of 10 points found | "would find" |'
    yield "|---|---|---|---|---|---|"
    levels: tuple[Level, ...] = ("verdicts", "criteria")
    for level in levels:
        for size in SIZES:
            for by_chance in (True, False):
                shares = [found(rng, runs, level, size, planted=own, by_chance=by_chance) for own in (0.0, PLANTED)]
                every = [measured(*world(rng, size, level, 0.0, by_chance=by_chance), level).least for _ in range(20)]
                least = np.median([each for each in every if each is not None])
                answers = "by chance" if by_chance else "the same"
                rates = " | ".join(f"{share:.1%}" for share in shares)
                yield f"| {level} | {size[0]} x {size[1]} | {answers} | {rates} | {least:.0%} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    for line in table(parser.parse_args().runs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
