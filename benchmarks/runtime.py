"""How near a run comes to its bound: concurrency divided by the server's delay.

A loopback server in a process of its own answers after a fixed delay. A tournament of 400 games in both orders is
run through the real openai provider, store included: ``python -m benchmarks.runtime --concurrency 16 64``.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from arena.config import Config
from arena.tournament import run
from judges.types import Task

GAMES = 400


class Silent:
    """Shows nothing."""

    def begin(self, task: Task, wanted: int) -> None:
        """A stage begins."""

    def count(self, task: Task, kind: str, cost_usd: float | None) -> None:
        """One more want is settled."""


@contextmanager
def server(delay_ms: float) -> Iterator[str]:
    """The base URL of a server that answers after ``delay_ms``."""
    command = [sys.executable, "-m", "tests.support.llm_server", "--delay-ms", str(delay_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def write_data(folder: Path, games: int) -> None:
    """One query per game between two agents, with answers of about 100 words."""
    words = [f"word{number}" for number in range(17)]
    queries, answers = ["qid,query"], ["qid,agent,answer"]
    for number in range(games):
        queries.append(f"q{number},what is asked in number {number}")
        for agent in ("one", "two"):
            text = " ".join(words[(number + offset) % len(words)] for offset in range(100))
            answers.append(f"q{number},{agent},{agent} says {text} {number}")
    (folder / "queries.csv").write_text("\n".join(queries) + "\n")
    (folder / "answers.csv").write_text("\n".join(answers) + "\n")


def measure(folder: Path, base_url: str, concurrency: int) -> tuple[int, float, float]:
    """Calls, wall seconds and CPU seconds of one run on a fresh store."""
    config = Config.model_validate(
        {
            "name": "benchmark",
            "store": str(folder / f"{concurrency}.db"),
            "data": {"queries": str(folder / "queries.csv"), "answers": str(folder / "answers.csv")},
            "judges": {
                "judge": {
                    "provider": "openai",
                    "model": "m",
                    "base_url": base_url,
                    "concurrency": concurrency,
                    "price": {"input": 0, "output": 0},
                }
            },
            "pairwise": {"judges": "judge", "documents": {"include": False}},
        }
    )
    cpu, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    summary = run(config, Silent())
    wall, spent = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    assert summary.complete
    return summary.stages[Task.PAIRWISE].calls, wall, spent.ru_utime + spent.ru_stime - cpu.ru_utime - cpu.ru_stime


def main() -> None:
    """Print one line per concurrency."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay-ms", type=float, default=50)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--games", type=int, default=GAMES)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, server(given.delay_ms) as base_url:
        write_data(Path(name), given.games)
        measure(Path(name), base_url, 1 if given.delay_ms < 5 else 8)  # imports and connections out of the way
        print("concurrency  calls  seconds  share of the bound  CPU ms per call")
        for concurrency in given.concurrency:
            calls, wall, cpu = measure(Path(name), base_url, concurrency)
            share = calls * given.delay_ms / 1000 / concurrency / wall
            print(f"{concurrency:11d}  {calls:5d}  {wall:7.2f}  {share:18.2f}  {1000 * cpu / calls:15.2f}")


if __name__ == "__main__":
    main()
