"""Commands as their user runs them, each in a new process: ``python -m benchmarks.commands``.

First each command on the tournament of ``ragleague demo``, where starting is most of it; then ``rate`` from a file.
The peer reads the same file with pandas and loops over evalica's ``elo``, once for each of a few orders; its time for
all 500 is extrapolated from them. 100 agents, a fifth of the games tied, 1000 queries.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from pathlib import Path
from typing import Final

import pandas as pd

from benchmarks.ratings import AGENTS, ORDERS, QUERIES, evalica_columns, games_of, orders_by_evalica, simulated
from benchmarks.used import Used, run

_PEERS_ORDERS = 3
_ON_DEMO: Final = (
    *(("leaderboard",), ("run",), ("plan",), ("queries",), ("failures",), ("doctor",), ("calibrate",)),
    ("leaderboard", "--details"),
    ("leaderboard", "--format", "json"),
)


def peer_s(file: Path) -> float:
    """Seconds that the peer needs for all orders."""
    started = time.perf_counter()
    read = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
    games = games_of(read.rename(columns={"qid": "query_id"}))
    columns, before = evalica_columns(games, names=True), time.perf_counter()
    orders_by_evalica(columns, _PEERS_ORDERS)
    return before - started + (time.perf_counter() - before) * ORDERS / _PEERS_ORDERS


def show(what: str, used: Used, beside: float | None = None) -> None:
    """One line of the table."""
    peer = "" if beside is None else f"{beside:9.1f} {beside / used.seconds:7.1f}x"
    print(f"{what:64} {used.seconds:8.2f} {used.cpu_s:8.2f} {used.peak_mb:6.0f}  {peer}", flush=True)


def on_demo(folder: Path) -> None:
    """A line for each command on the demo's tournament."""
    with contextlib.chdir(folder):
        run("demo")
        for command, *options in _ON_DEMO:
            show(" ".join((command, *options)), run(command, "demo/tournament.yaml", *options))


def main() -> None:
    """Print a line for each command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", type=int, default=2_000_000, help="games of the large table; 0 leaves it out")
    given = parser.parse_args()
    print(f"{AGENTS} agents, {QUERIES} queries")
    print(f"{'command':64} {'seconds':>8} {'CPU s':>8} {'MB':>6}  {'peer s':>9} {'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        on_demo(Path(folder))
        small, large = Path(folder, "small.csv"), Path(folder, "large.parquet")
        simulated(100_000, 1).rename(columns={"query_id": "qid"}).to_csv(small, index=False)
        run("rate", str(small))  # the first call of an installation compiles Elo
        show("rate, 100,000 games, CSV", run("rate", str(small)), peer_s(small))
        if given.large:
            games = simulated(given.large, 0).rename(columns={"query_id": "qid"})
            games.to_parquet(large)
            games.to_csv(large.with_suffix(".csv"), index=False)
            for file in (large, large.with_suffix(".csv")):
                used = run("rate", str(file), "--set", "tournaments=0")
                show(f"rate --set tournaments=0, {given.large:,} games, {file.suffix}", used)


if __name__ == "__main__":
    main()
