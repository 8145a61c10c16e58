"""How often intervals for other judges hold the truth, in simulation and on recorded verdicts of six judges.

``python -m benchmarks.judges_random`` prints the section "Other judges" of benchmarks/README.md; with ``--verdicts
FILE`` also the figures on recorded verdicts, where each judge is held out in turn.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np

from arena.data.verdicts import read_verdicts
from arena.ratings.games import average, reconcile
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import mean_interval, student
from retrieval_eval.stats.components import (
    JUDGES,
    QUERIES,
    contributions_of_mean,
    for_one_judge,
    for_other_judges,
    parts,
    strata,
    variance,
)
from retrieval_eval.stats.estimate import Estimate

JUDGE_COUNTS: Final = (3, 6, 12)
QUERY_COUNTS: Final = (20, 60)
JUDGE_SDS: Final = (0.0, 0.03, 0.08, 0.15)
QUERY_SD, REST_SD = 0.18, 0.26
"""Medians over the pairs of agents of the recorded verdicts, in share of games won."""
MISSING: Final = 0.2
CHUNK: Final = 250


def worlds(rng: np.random.Generator, runs: int, queries: int, judges: int, judge_sd: float, *, rounded: bool) -> Floats:
    """Differences of two agents, shape (runs, queries, judges); truly 0. ``rounded`` to lost, tied and won games."""
    drawn: Floats = (
        rng.normal(0, QUERY_SD, (runs, queries, 1))
        + rng.normal(0, judge_sd, (runs, 1, judges))
        + rng.normal(0, REST_SD, (runs, queries, judges))
    )
    return np.where(np.abs(drawn) < 0.2, 0.0, np.sign(drawn) / 2) if rounded else drawn


def covered(values: Floats) -> tuple[float, float, float]:
    """Shares of runs in which the first and the second interval hold 0, and median ratio of their widths."""
    contributions = contributions_of_mean(values)
    figure = np.nanmean(np.nanmean(values, axis=2), axis=1)
    found = variance(contributions)
    queries = values.shape[1]
    first = student(0.95, queries) * np.sqrt(found.of_queries)
    second = np.maximum(first, found.half_widths(0.025))
    held = [float((np.abs(figure) <= half).mean()) for half in (first, second)]
    return held[0], held[1], float(np.median(second / first))


def parts_covered(values: Floats, judge_sd: float) -> list[float]:
    """Shares of runs in which the intervals of the queries' and the judges' part hold the true part."""
    _, queries, judges = values.shape
    terms = np.array([QUERY_SD**2 / queries, judge_sd**2 / judges, REST_SD**2 / (queries * judges)])
    truth = dict(zip((QUERIES, JUDGES), (terms / terms.sum()).tolist(), strict=False))
    found = parts(strata(contributions_of_mean(values)))
    return [float(np.mean([_holds(own[name], share) for own in found])) for name, share in truth.items()]


def _holds(estimate: Estimate, truth: float) -> bool:
    low, high = estimate.low, estimate.high
    return low is not None and high is not None and low <= truth <= high


def without_cells(rng: np.random.Generator, values: Floats) -> Floats:
    kept = rng.random(values.shape) >= MISSING
    kept[~kept.any(axis=2), 0] = True  # every query is judged
    return np.where(kept, values, np.nan)


def simulated(runs: int) -> Iterator[str]:
    heads = ["first", "second", "games", "cells missing", "queries' part", "judges' part", "wider"]
    yield f"| judges | queries | sd of judges | {' | '.join(heads)} |"
    yield f"|---|---|---|{'---|' * len(heads)}"
    for judges in JUDGE_COUNTS:
        for queries in QUERY_COUNTS:
            for judge_sd in JUDGE_SDS:
                rng = np.random.default_rng([judges, queries, round(1000 * judge_sd)])
                draw = partial(worlds, rng, runs, queries, judges, judge_sd)
                values = draw(rounded=False)
                first, second, wider = covered(values)
                of_games, gaps = covered(draw(rounded=True))[1], covered(without_cells(rng, values))[1]
                of_parts = np.mean(
                    [parts_covered(values[at : at + CHUNK], judge_sd) for at in range(0, runs, CHUNK)], axis=0
                )
                shares = (first, second, of_games, gaps, *of_parts.tolist())
                figures = " | ".join(f"{share:.1%}" for share in shares)
                yield f"| {judges} | {queries} | {judge_sd:g} | {figures} | {wider:.2f} |"


def differences(verdicts: Path, *, single: bool = False) -> dict[tuple[str, str], Floats]:
    """Difference of each pair of agents on each query by each judge, shape (queries, judges), of recorded verdicts.

    The two orders of a game are reconciled, as ratings do; with ``single`` their mean counts.
    """
    table = read_verdicts(verdicts, skip_empty=True).table
    games = average(table) if single else reconcile(table)
    assert games.cluster is not None
    found = {}
    for one, other in combinations(range(len(table.agents)), 2):
        rows = (games.a == one) & (games.b == other)
        cells = np.full((len(table.queries or ()), len(table.judges)), np.nan)
        cells[games.cluster[rows], table.judge[table.pairs.first][rows]] = games.score[rows] - 0.5
        found[table.agents[one], table.agents[other]] = cells
    return found


def intervals(values: Floats) -> tuple[Floats, Floats]:
    """Ends of the first interval, which gates use, and of the second."""
    by_query = np.nanmean(values, axis=1)
    low, high = mean_interval(by_query + 0.5)
    half = float(variance(contributions_of_mean(values[np.newaxis])).half_widths(0.025)[0])
    second = for_other_judges(Estimate(float(by_query.mean()), low - 0.5, high - 0.5), half)
    return np.array([low - 0.5, high - 0.5]), np.array([second.low, second.high])


def held_out(recorded: Path, *, single: bool) -> Iterator[str]:
    """Each judge held out in turn: which intervals from the others hold its own difference."""
    held, ratios, number = np.zeros(3, np.int64), [], 0
    for values in differences(recorded, single=single).values():
        for judge in range(values.shape[1]):
            others, own = np.delete(values, judge, axis=1), float(np.nanmean(values[:, judge]))
            ends = (low <= own <= high for low, high in intervals(others))
            held += [_holds(for_one_judge(np.nanmean(others, axis=0)), own), *ends]
            number += 1
        first, second = map(np.ptp, intervals(values))
        ratios.append(float(second / first))
    shares = " | ".join(f"{count} of {number} ({count / number:.0%})" for count in held.tolist())
    what = "mean of both orders" if single else "both orders reconciled"
    yield f"| {what} | {shares} | {min(ratios):.2f} to {max(ratios):.2f}, median {np.median(ratios):.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--verdicts", type=Path, help="mtbench_multijudge/verdicts.csv")
    given = parser.parse_args()
    for line in simulated(given.runs):
        print(line, flush=True)
    if given.verdicts is not None:
        print("\n| figure of a game | prediction | first | second | second to first |\n|---|---|---|---|---|")
        for single in (False, True):
            print(*held_out(given.verdicts, single=single), sep="\n")


if __name__ == "__main__":
    main()
