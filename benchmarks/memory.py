"""Memory of a run with 100,000 judgments to make, above that of its data.

A child process loads the data of a tournament and notes its peak (``VmHWM``); another runs the same tournament against
a slow server until it is told to stop, and notes its own: ``python -m benchmarks.memory``. The bar is 300 MB.
``--stage exam`` grades passages by a test bank instead of playing games.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from arena.config.whole import Config
from benchmarks.loopback import asked, server

BAR_MB = 300
AGENTS = 11
"""Of which 55 pairs meet on each query in both orders: 110 judgments."""
ITEMS = 10
"""Of the test bank for each query: 110 grades of the answers, which are one passage each."""
CONCURRENCY = 64
SECTIONS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "pairwise": lambda _: {"judges": "judge", "documents": {"include": False}},
    "exam": lambda folder: {"judge": "judge", "bank": str(folder / "bank.csv")},
}


def main() -> None:
    """Print both peaks and their difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judgments", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="from the first call to the stop")
    parser.add_argument("--delay-ms", type=float, default=100.0)
    parser.add_argument("--stage", choices=SECTIONS, default="pairwise")
    parser.add_argument("--child", nargs=2, metavar=("FOLDER", "BASE_URL"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(Path(given.child[0]), given.child[1], given.seconds, given.stage)))
        return
    with tempfile.TemporaryDirectory() as name, server(given.delay_ms) as base_url:
        pending = write_data(Path(name), given.judgments)
        idle = measured(name, base_url, 0, given.stage)
        busy = measured(name, base_url, given.seconds, given.stage)
        if not 0 < asked(base_url) < pending:
            raise RuntimeError(f"{asked(base_url)} of {pending} judgments were asked for: stop later, or sooner")
        above = busy["peak_mb"] - idle["peak_mb"]
        print(f"{pending:,} judgments wanted, {busy['judged']:,} made until the stop after {given.seconds:g} s")
        print(f"peak of the process with the data loaded {idle['peak_mb']:.0f} MB, of the run {busy['peak_mb']:.0f} MB")
        print(f"above the data {above:.0f} MB (bar {BAR_MB}: {'met' if above < BAR_MB else 'missed'})")


def write_data(folder: Path, judgments: int) -> int:
    """Answers of about 100 words; returns how many games in both orders, or grades, that makes."""
    per_query = AGENTS * (AGENTS - 1)
    queries = -(-judgments // per_query)
    answers = ["qid,agent,answer"]
    for query in range(queries):
        for agent in range(AGENTS):
            text = " ".join(f"word{(query * 7 + agent * 3 + place) % 101}" for place in range(100))
            answers.append(f"q{query},agent{agent},{text} as agent {agent} says of {query}")
    (folder / "answers.csv").write_text("\n".join(answers) + "\n")
    asks = [f"q{query},what is asked in number {query}" for query in range(queries)]
    (folder / "queries.csv").write_text("\n".join(["qid,query", *asks]) + "\n")
    rows = [f"q{query},What does number {query} say of {item}?" for query in range(queries) for item in range(ITEMS)]
    (folder / "bank.csv").write_text("\n".join(["qid,question", *rows]) + "\n")
    return queries * per_query


def measured(folder: str, base_url: str, seconds: float, stage: str) -> dict[str, float]:
    """What a child tells; with no seconds to run it only loads the data."""
    command = [sys.executable, "-m", "benchmarks.memory", "--child", folder, base_url, "--seconds", str(seconds)]
    command += ["--stage", stage]
    told: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return told


def child(folder: Path, base_url: str, seconds: float, stage: str) -> dict[str, float]:
    """Load the data, run if there is time to, and tell the peak of this process."""
    from arena.run import tournament

    config = Config.model_validate(
        {
            "name": "memory",
            "store": str(folder / "store.db"),
            "data": {name: str(folder / f"{name}.csv") for name in ("queries", "answers")},
            "judges": {"judge": {"provider": "openai", "model": "m", "base_url": base_url, "concurrency": CONCURRENCY}},
            stage: SECTIONS[stage](folder),
        }
    )
    judged = 0
    if seconds == 0:
        import openai  # noqa: F401 - the libraries of a run are no part of what it needs for its judgments
        import sqlalchemy  # noqa: F401

        data = tournament.load_data(config)
        assert data.answers
    else:
        threading.Thread(target=stop_later, args=(base_url, seconds), daemon=True).start()
        summary = tournament.run(config, Silent())
        judged = sum(stage.judged for stage in summary.stages.values())
    return {"peak_mb": peak_mb(), "judged": judged}


def stop_later(base_url: str, seconds: float) -> None:
    """As Ctrl-C would, some seconds after the server got the first call."""
    import os
    import signal

    while not asked(base_url):
        time.sleep(0.2)
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGINT)


def peak_mb() -> float:
    """The largest resident size of this process so far, in MB of 10**6 bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("/proc/self/status has no VmHWM: this needs Linux")


class Silent:
    """Shows nothing."""

    def begin(self, task: object, wanted: int) -> None:
        """A stage begins."""

    def more(self, task: object, wanted: int) -> None:
        """More wants than were known when it began."""

    def count(self, task: object, kind: str, cost_usd: float | None) -> None:
        """One more want is settled."""


if __name__ == "__main__":
    main()
