"""How near a run comes to its bound: concurrency divided by the server's delay.

A loopback server in a process of its own answers after a fixed delay. A tournament of 400 games in both orders is
run through the real openai provider, store included: ``python -m benchmarks.runtime --concurrency 16 64``.
``--ragelo`` lets RAGElo from PyPI judge the same games in the same run; ``--profile`` says where the CPU goes.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from arena.config.whole import Config
from arena.run.tournament import run
from benchmarks import peer
from benchmarks.loopback import asked, server
from benchmarks.profiling import profiled
from judges.types import Task

GAMES = 400
PEER_CONCURRENCY = 64
PEER_BAR = 4.0
"""How many times RAGElo's calls per second are asked of us."""


class Silent:
    """Shows nothing."""

    def begin(self, task: str, wanted: int) -> None:
        """A stage begins."""

    def more(self, task: str, wanted: int) -> None:
        """More wants than were known when it began."""

    def count(self, task: str, kind: str, cost_usd: float | None) -> None:
        """One more want is settled."""


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


@dataclass(frozen=True, slots=True)
class Measured:
    """One run on a fresh store: calls, seconds in all, of CPU, and of judging alone once data and store are there."""

    calls: int
    seconds: float
    cpu_s: float
    judging_s: float


def measure(folder: Path, base_url: str, concurrency: int, **sections: Any) -> Measured:
    """Run the tournament once, with further sections of the configuration."""
    config = Config.model_validate(
        {
            "name": "benchmark",
            "store": str(folder / f"{time.monotonic_ns()}.db"),
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
            **sections,
        }
    )
    before = asked(base_url)
    cpu, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    summary = run(config, Silent())
    wall, spent = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    calls = summary.stages[Task.PAIRWISE].calls
    assert summary.complete
    assert calls == asked(base_url) - before, "our count is the server's"
    cpu_s = spent.ru_utime + spent.ru_stime - cpu.ru_utime - cpu.ru_stime
    return Measured(calls, wall, cpu_s, summary.judges["judge"].seconds)


def main() -> None:
    """Print one line per concurrency."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay-ms", type=float, default=50)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--games", type=int, default=GAMES)
    parser.add_argument("--ragelo", action="store_true", help=f"install {peer.REQUIREMENT} aside and measure it too")
    parser.add_argument("--ragelo-python", type=Path, help="the same with a Python that has it")
    parser.add_argument("--profile", action="store_true", help="where our CPU goes, at the last concurrency")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, server(given.delay_ms) as base_url:
        write_data(Path(name), 8)
        measure(Path(name), base_url, 8)  # imports out of the way
        write_data(Path(name), given.games)
        print("concurrency  calls  seconds  share of the bound  CPU ms per call")
        for concurrency in given.concurrency:
            ran = measure(Path(name), base_url, concurrency)
            share = ran.calls * given.delay_ms / 1000 / concurrency / ran.seconds
            cpu_ms = 1000 * ran.cpu_s / ran.calls
            print(f"{concurrency:11d}  {ran.calls:5d}  {ran.seconds:7.2f}  {share:18.2f}  {cpu_ms:15.2f}", flush=True)
        if given.ragelo or given.ragelo_python:
            beside_ragelo(Path(name), base_url, given.ragelo_python, given.games)
        if given.profile:
            print("\n".join(profiled(partial(measure, Path(name), base_url, given.concurrency[-1]))))


def beside_ragelo(folder: Path, base_url: str, python: Path | None, games: int) -> None:
    """One line: RAGElo's calls per second, ours right before and after, and the ratio; judging alone on both sides."""
    python = python or peer.installed(folder)
    before = measure(folder, base_url, PEER_CONCURRENCY)
    theirs = peer.measure(python, folder, base_url, PEER_CONCURRENCY, games)
    after = measure(folder, base_url, PEER_CONCURRENCY)
    ours = (before.calls + after.calls) / (before.judging_s + after.judging_s)
    rate = theirs.calls / theirs.seconds
    met = "met" if ours >= PEER_BAR * rate else "missed"
    print(
        f"RAGElo {theirs.version} at concurrency {PEER_CONCURRENCY}: {theirs.calls} calls, {rate:.0f} a second; "
        f"ours {ours:.0f}: {ours / rate:.1f} times as many (bar {PEER_BAR:g}: {met})"
    )


if __name__ == "__main__":
    main()
