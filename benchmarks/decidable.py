"""How often a run finds the smallest difference that a pilot predicts, on subsamples of recorded verdicts.

``python -m benchmarks.decidable FOLDER``, the folder of recorded data. A pilot of some queries and judges predicts the
smallest difference that a run finds with 80 %. For each pair of agents the run has as many queries as make this the
recorded difference of the pair; they are drawn with replacement, and decided as ``compare`` decides. So the true
difference is the predicted one, and no verdict is changed. Judges of a run *for other judges* are drawn likewise.
"""

from __future__ import annotations

import argparse
import bisect
import csv
import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.judges_random import differences
from retrieval_eval.stats import Floats
from retrieval_eval.stats.components import contributions_of_mean, variance
from retrieval_eval.stats.decidable import components, smallest_difference
from retrieval_eval.stats.paired import paired

STRATEGIES: Final = ("CoT", "Metrics_Reference", "Vanilla_NoRules")
QUERIES: Final = (12, 400)
"""Fewest and most queries of a run."""


def mtbench(folder: Path) -> Floats:
    return np.stack([*differences(folder / "mtbench_multijudge/verdicts.csv").values()])


def crowdrag(folder: Path) -> Floats:
    """Votes of people on the whole quality; the mean of all votes is that of one judge."""
    votes: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    with gzip.open(folder / "crowdrag25/human_votes.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            if row["dimension"] == "quality_overall":
                score = {"a": 0.5, "b": -0.5}.get(row["vote"], 0.0)
                swapped = row["agent_a"] > row["agent_b"]
                one, other = sorted((row["agent_a"], row["agent_b"]))
                votes[row["qid"], one, other].append(-score if swapped else score)
    queries, agents = sorted({key[0] for key in votes}), sorted({name for key in votes for name in key[1:]})
    rows = [[np.mean(votes.get((query, *pair), [np.nan])) for query in queries] for pair in combinations(agents, 2)]
    return np.array(rows)[:, :, np.newaxis]


def llmbar(folder: Path) -> Floats:
    """The right output against the wrong one, both orders reconciled; each subset and prompt is a pair of agents."""
    right = {}
    with gzip.open(folder / "llmbar/instances_dev.jsonl.gz", "rt") as file:
        for line in file:
            instance = json.loads(line)
            right[instance["subset"], str(instance["id"])] = str(instance["label"])
    cells: dict[tuple[str, str], dict[tuple[str, str], float]] = defaultdict(dict)
    with (folder / "llmbar/verdicts_dev.csv").open() as file:
        for row in csv.DictReader(file):
            both, label = (row["winner"], row["winner_swapped"]), right[row["subset"], row["id"]]
            if row["strategy"] in STRATEGIES and all(both):
                won = sum(0.5 if winner == label else -0.5 for winner in both) / 2
                cells[row["subset"], row["strategy"]][row["id"], row["judge"]] = won
    judges = sorted({judge for subset in cells.values() for _, judge in subset})
    longest = max(len({item for item, _ in subset}) for subset in cells.values())
    values = np.full((len(cells), longest, len(judges)), np.nan)
    for number, subset in enumerate(cells.values()):
        items = {item: place for place, item in enumerate(sorted({item for item, _ in subset}))}
        for (item, judge), won in subset.items():
            values[number, items[item], judges.index(judge)] = won
    return values


def queries_for(difference: float, predict: Callable[[int], float | None]) -> int | None:
    """The number of queries whose predicted smallest difference is ``difference``; ``None`` outside ``QUERIES``."""
    number = bisect.bisect_left(range(QUERIES[1]), -difference, key=lambda queries: -(predict(queries) or 1.0))
    return number if QUERIES[0] <= number < QUERIES[1] else None


def realised(
    values: Floats, rng: np.random.Generator, runs: int, pilot: tuple[int, int], judges: int, *, others: bool
) -> tuple[float, float, int]:
    """Median number of queries, the share of runs that find the pair's difference, and the number of runs."""
    found, sizes = 0, []
    for _ in range(runs):
        asked = rng.permutation(values.shape[2])
        seen = [rng.choice(np.flatnonzero(~np.isnan(pair).all(axis=1)), pilot[0], replace=False) for pair in values]
        parts = components(np.stack([pair[of][:, asked[: pilot[1]]] for pair, of in zip(values, seen, strict=True)]))
        assert parts is not None
        for pair in values:
            judged = pair if others else pair[:, asked[:judges]]
            known = judged[~np.isnan(judged).all(axis=1)]
            mean = float(np.nanmean(known, axis=1).mean()) if len(known) else 0.0
            number = queries_for(abs(mean), partial(smallest_difference, parts, judges=judges, others=others))
            if number is None:
                continue
            drawn = known[rng.integers(0, len(known), number)]
            if others:
                drawn = drawn[:, rng.integers(0, drawn.shape[1], judges)]
            drawn = drawn[~np.isnan(drawn).all(axis=1)]
            half = float(variance(contributions_of_mean(drawn[np.newaxis])).half_widths(0.025)[0]) if others else 0.0
            verdict = paired(np.nanmean(drawn, axis=1), 0.0, reach=0.5, half=half).verdict
            found += verdict == ("better" if mean > 0 else "worse")
            sizes.append(number)
    return float(np.median(sizes)) if sizes else np.nan, found / max(len(sizes), 1), len(sizes)


CASES: Final = (
    ((8, 1), 1, False),
    ((20, 1), 1, False),
    ((8, 3), 3, False),
    ((20, 3), 3, False),
    ((20, 3), 6, False),
    ((20, 6), 6, False),
    ((20, 6), 3, False),
    ((20, 6), 6, True),
)


def table(folder: Path, runs: int) -> Iterator[str]:
    yield "| data | pilot: queries, judges | judges of the run | for | queries, median | found | runs |"
    yield "|---|---|---|---|---|---|---|"
    for name, read in (("mtbench_multijudge", mtbench), ("crowdrag25", crowdrag), ("llmbar", llmbar)):
        values = read(folder)
        for pilot, judges, others in CASES:
            if max(pilot[1], judges) <= values.shape[2]:
                figures = realised(values, np.random.default_rng(7), runs, pilot, judges, others=others)
                whom = "other judges" if others else "these judges"
                yield (
                    f"| {name} | {pilot[0]}, {pilot[1]} | {judges} | {whom} | {figures[0]:.0f} | {figures[1]:.1%} "
                    f"| {figures[2]:,} |"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with mtbench_multijudge, crowdrag25 and llmbar")
    parser.add_argument("--runs", type=int, default=200)
    given = parser.parse_args()
    for line in table(given.folder, given.runs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
