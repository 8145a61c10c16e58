"""Commands as their user runs them, each in a new process, beside their bars: ``python -m benchmarks.commands``.

``--only`` chooses rows by words that they hold, such as ``--only "rate large.csv"`` or ``--only volume.db``.

Each command runs ``--times`` times; the table gives the median of the seconds on the clock with the least and the most,
and the median CPU and largest memory. First each command on the tournament of ``ragleague demo``, where starting is
most of it; then ``rate`` of files, recorded votes where ``RAGLEAGUE_SHARED`` leads to them, and a leaderboard.

Peers read the same file with pandas in the same run. evalica's ``elo`` is called once for each of a few random orders,
and its time for all 500 is extrapolated from them. FastChat's way to 1000 resamples of Bradley-Terry ratings is
followed as its ``rating_systems`` does it. Neither says what a query is, and neither has health or fragility.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
import pandas as pd
from msgspec import Struct
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from benchmarks import volume
from benchmarks.ratings import AGENTS, ORDERS, QUERIES, evalica_columns, games_of, orders_by_evalica, simulated
from benchmarks.used import run

_PEERS_ORDERS = 3
_SAMPLES = 1000
_DEMO_S: Final = 0.8
_ON_DEMO: Final = (
    *("leaderboard", "run", "plan", "queries", "failures", "doctor", "calibrate"),
    *("leaderboard --details", "leaderboard --format json"),
)
_CROWD: Final = "data/crowdrag25"
Floats = NDArray[np.float64]


def by_evalica(file: Path) -> float:
    started = time.perf_counter()
    columns = evalica_columns(games_of(_read(file)), names=True)
    before = time.perf_counter()
    orders_by_evalica(columns, _PEERS_ORDERS)
    return before - started + (time.perf_counter() - before) * ORDERS / _PEERS_ORDERS


def by_fastchat(file: Path) -> float:
    """Seconds of FastChat's way: resamples of the distinct results, fitted by a pool of processes."""
    started = time.perf_counter()
    table = _read(file)
    codes, names = pd.factorize(pd.concat([table["agent_a"], table["agent_b"]]))
    score = table["verdict"].map({"A": 1.0, "TIE": 0.5, "B": 0.0})
    results = np.column_stack([codes.reshape(2, -1).T, 2 * score]).astype(np.int32)
    distinct, number = np.unique(results, axis=0, return_counts=True)
    drawn = np.random.default_rng(0).multinomial(len(table), number / number.sum(), size=_SAMPLES) / len(table)
    fit = partial(_fitted, distinct[:, :2], distinct[:, 2] / 2, len(names))
    with ProcessPoolExecutor() as pool:
        list(pool.map(fit, drawn))
    return time.perf_counter() - started


def _fitted(sides: NDArray[np.int32], score: Floats, agents: int, weight: Floats) -> Floats:
    """Bradley-Terry ratings of weighted results, in units of a factor of ten in the odds."""

    def loss(ratings: Floats) -> tuple[float, Floats]:
        wins = expit(np.log(10) * (ratings[sides[:, 0]] - ratings[sides[:, 1]]))
        slope, gradient = np.log(10) * (wins - score) * weight, np.zeros(agents)
        np.add.at(gradient, sides, np.column_stack([slope, -slope]))
        return -float(((np.log(wins) * score + np.log(1 - wins) * (1 - score)) * weight).sum()), gradient

    fitted: Floats = minimize(
        loss, np.zeros(agents), jac=True, method="L-BFGS-B", options={"maxiter": 100, "gtol": 1e-6}
    ).x
    return fitted


def _read(file: Path) -> pd.DataFrame:
    read = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
    return read.rename(columns={"qid": "query_id"})


class Rows(Struct, frozen=True):
    """Number of repetitions, and words that the line of a command must hold to be measured."""

    times: int
    only: str

    def wanted(self, words: str) -> bool:
        return self.only in shown(words)


def shown(words: str) -> str:
    return " ".join(Path(word).name if "/" in word else word for word in shlex.split(words))


def measure(
    words: str,
    rows: Rows,
    bar_s: float,
    bar_mb: float | None = None,
    *,
    peers: Mapping[str, Callable[[], float]] = MappingProxyType({}),
    before: Callable[[], None] = lambda: None,
) -> None:
    """Print a line for a command, and one for each peer; ``before`` runs ahead of each repetition."""
    if not rows.wanted(words):
        return
    took = []
    for _ in range(rows.times):
        before()
        took.append(run(*shlex.split(words)))
    seconds, memory = sorted(used.seconds for used in took), max(used.peak_mb for used in took)
    middle = statistics.median(seconds)
    held = "held" if middle <= bar_s and memory <= (bar_mb or memory) else "MISSED"
    print(
        f"{shown(words)[:58]:58} {middle:7.2f} {f'{seconds[0]:.2f} to {seconds[-1]:.2f}':>15} {bar_s:6g} "
        f"{statistics.median(used.cpu_s for used in took):7.2f} {memory:6.0f} {bar_mb or '':>6} {held}",
        flush=True,
    )
    for name, peer in peers.items():
        needed = peer()
        print(f"  {name:56} {needed:7.1f} {needed / middle:13.1f} x", flush=True)


def on_demo(folder: Path, rows: Rows) -> None:
    with contextlib.chdir(folder):
        run("demo")
        for words in _ON_DEMO:
            command, *options = words.split()
            measure(" ".join((command, "demo/tournament.yaml", *options)), rows, _DEMO_S)
        measure("--help", rows, 0.15)


def on_tables(folder: Path, rows: Rows, games: int) -> None:
    small = folder / "small.csv"
    if rows.wanted(f"rate {small}"):
        simulated(100_000, 1).rename(columns={"query_id": "qid"}).to_csv(small, index=False)
    evalica = {f"evalica, {ORDERS} orders, the same file": lambda: by_evalica(small)}
    measure(f"rate {small}", rows, 5, peers=evalica)
    files = folder / "large.csv", folder / "large.parquet"
    if games and any(rows.wanted(f"rate {file} --set tournaments=0") for file in files):
        table = simulated(games, 0).rename(columns={"query_id": "qid"})
        table.to_csv(files[0], index=False)
        table.to_parquet(files[1])
        del table
        for file in files:
            fastchat = {f"FastChat's way, {_SAMPLES} samples, the same file": partial(by_fastchat, file)}
            measure(f"rate {file} --set tournaments=0", rows, 5, 700, peers=fastchat)


def on_votes(data: Path, rows: Rows) -> None:
    votes, verdicts = data / "human_votes.csv.gz", data / "llm_verdicts.csv.gz"
    measure(f"rate {votes}", rows, 1.5)
    by = "--column judge=mode --by dimension --skip-faulty"
    measure(f"calibrate {verdicts} --people {votes} {by}", rows, 2)


def on_store(folder: Path, rows: Rows, verdicts: int) -> None:
    store = str(folder / "volume.db")
    if not rows.wanted(f"leaderboard {store}"):
        return
    volume.fill(store, verdicts)
    bar_s, bar_mb = (15, 1000) if verdicts <= 1_000_000 else (volume.BAR_S, volume.BAR_MB)
    measure(f"leaderboard {store}", rows, bar_s, bar_mb, before=lambda: volume.forget(store))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5, help="that each command runs")
    parser.add_argument("--games", type=int, default=2_000_000, help="of the large table; 0 leaves it out")
    parser.add_argument("--verdicts", type=int, default=1_000_000, help="in the store; 0 leaves it out")
    parser.add_argument("--only", default="", metavar="WORDS", help="commands whose line holds these words")
    given = parser.parse_args()
    rows = Rows(given.times, given.only)
    shared = os.environ.get("RAGLEAGUE_SHARED", "../shared")
    print(f"tables of {AGENTS} agents and {QUERIES} queries; seconds are medians of {given.times}")
    print(f"{'command':58} {'seconds':>7} {'least to most':>15} {'bar':>6} {'CPU s':>7} {'MB':>6} {'bar':>6}")
    with tempfile.TemporaryDirectory() as folder:
        on_demo(Path(folder), rows)
        on_tables(Path(folder), rows, given.games)
        if Path(shared, _CROWD).is_dir():
            on_votes(Path(shared, _CROWD), rows)
        if given.verdicts:
            on_store(Path(folder), rows, given.verdicts)


if __name__ == "__main__":
    main()
