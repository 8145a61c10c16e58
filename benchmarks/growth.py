"""How time and memory grow: ``leaderboard`` and ``rate`` from 1e4 to 1e7 verdicts, ``run`` from 1,000 to 100,000 calls.

Each is a whole command in a process of its own; the exponent is that of seconds of CPU between a size and the one
before: ``python -m benchmarks.growth``. ``--verdicts`` and ``--calls`` name other sizes.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.judging import settings, write_tournament
from benchmarks.loopback import server
from benchmarks.ratings import simulated
from benchmarks.used import Used, run
from benchmarks.volume import NAME, fill


def leaderboard(folder: Path, verdicts: int) -> Used:
    store = folder / f"{verdicts}.db"
    fill(str(store), verdicts)
    used = run("leaderboard", str(store), "--tournament", NAME)
    store.unlink()
    return used


def rate(folder: Path, verdicts: int) -> Used:
    """Rate a Parquet file without Elo, whose number of passes is a choice of its own."""
    file = folder / f"{verdicts}.parquet"
    simulated(verdicts, 0).rename(columns={"query_id": "qid"}).to_parquet(file)
    used = run("rate", str(file), "--set", "tournaments=0")
    file.unlink()
    return used


def judging(folder: Path, calls: int) -> Used:
    with server(50) as base_url:
        judge = {"model": "m", "base_url": base_url, "concurrency": 256}
        path, _ = write_tournament(folder, calls, settings("calls.db", provider="openai", **judge))
        return run("run", str(path))


def show(what: str, sizes: Sequence[int], act: Callable[[Path, int], Used]) -> None:
    before: tuple[int, Used] | None = None
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            used = act(Path(folder), size)
        exponent = ""
        if before is not None:
            exponent = f"{math.log(used.cpu_s / before[1].cpu_s) / math.log(size / before[0]):8.2f}"
        print(f"{what:12} {size:12,} {used.seconds:9.1f} {used.cpu_s:8.1f} {used.peak_mb:7.0f} {exponent}", flush=True)
        before = size, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=int, nargs="*", default=[10_000, 100_000, 1_000_000, 10_000_000])
    parser.add_argument("--calls", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    given = parser.parse_args()
    print(f"{'command':12} {'size':>12} {'seconds':>9} {'CPU s':>8} {'MB':>7} {'exponent':>8}")
    show("leaderboard", given.verdicts, leaderboard)
    show("rate", given.verdicts, rate)
    show("run", given.calls, judging)


if __name__ == "__main__":
    main()
