"""Several runner processes on one PostgreSQL store, some of them killed: ``python -m benchmarks.runners``.

With ``--restarts N`` the server breaks off all connections that often, is away for three seconds, and starts again.

Eight processes judge 100,000 games against a loopback server that keeps a log; three get SIGKILL on the way. By that
log everything is judged, and nothing twice but for calls that a killed process had in flight or whose reply was on its
way into the store: of each at most as many as it makes at once.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from arena.store import Store, missing
from benchmarks.judging import settings, write_tournament
from benchmarks.loopback import server
from tests.support.postgres import PostgresServer, postgres_server

AGENTS = 10
AWAY_S = 3
OF_A_QUERY = AGENTS * (AGENTS - 1)
RUN = """
import sys
from pathlib import Path
from arena.config.schema import load_config
from arena.run.judging import run
from tests.support.tournaments import Quiet
assert run(load_config(Path(sys.argv[1])), Quiet()).complete
"""


class Plan(Struct, frozen=True):
    """A run to measure: ``kills`` runners are killed, and the store's server is restarted ``restarts`` times."""

    runners: int
    kills: int
    restarts: int
    queries: int
    concurrency: int
    delay_ms: float


class Shared(Struct, frozen=True):
    """Result of a run by several processes.

    Attributes:
        wanted: judgments.
        asked: requests by the server's log.
        twice: those of them that repeat an earlier one.
        most_lost: calls that the killed runners can have had in flight, and replies on their way into the store.
        seconds: from the start of the first to the end of the last.
        cpu_s: of all runners together.
    """

    wanted: int
    asked: int
    twice: int
    most_lost: int
    seconds: float
    cpu_s: float


def judged(location: str) -> int:
    if missing(location):
        return 0
    store = Store.open(location)
    with store.reading() as connection:
        found = int(connection.exec_driver_sql("SELECT count(*) FROM judgment WHERE calls > 0").scalar_one())
    store.close()
    return found


def share(folder: Path, postgres: PostgresServer, plan: Plan) -> Shared:
    """Start all runners, kill some and restart the store's server on the way, and read the judge's log at the end."""
    location = postgres.database()
    wanted = plan.queries * OF_A_QUERY
    with server(plan.delay_ms) as base_url:
        judge = {
            "model": "m",
            "base_url": base_url,
            "concurrency": plan.concurrency,
            "price": {"input": 0, "output": 0},
        }
        config, _ = write_tournament(folder, wanted, settings(location, provider="openai", **judge), AGENTS)
        environment = os.environ | {"OPENAI_API_KEY": "none"}
        command = [sys.executable, "-c", RUN, str(config)]
        started = time.perf_counter()
        running = [subprocess.Popen(command, env=environment) for _ in range(plan.runners)]
        try:
            for number in range(plan.kills):
                _wait_for(location, (number + 1) * wanted // (plan.kills + 1), running)
                victim = running.pop(0)
                victim.send_signal(signal.SIGKILL)
                victim.wait()
            for number in range(plan.restarts):
                _wait_for(location, (number + 1) * wanted // (plan.restarts + 1), running)
                with postgres.away():
                    time.sleep(AWAY_S)
            if sum(process.wait() != 0 for process in running):
                raise RuntimeError("a runner did not end well")
        finally:
            for process in running:
                process.kill()
        seconds = time.perf_counter() - started
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        with urllib.request.urlopen(base_url.removesuffix("/v1") + "/log", timeout=600) as answer:
            times = Counter(call["sha256"] for call in json.load(answer)["calls"])
    if len(times) != wanted or judged(location) != wanted:
        raise RuntimeError(f"{len(times)} different requests and {judged(location)} judgments of {wanted}")
    return Shared(
        wanted,
        times.total(),
        times.total() - wanted,
        2 * plan.kills * plan.concurrency,
        seconds,
        used.ru_utime + used.ru_stime,
    )


def _wait_for(location: str, done: int, running: Sequence[subprocess.Popen[bytes]]) -> None:
    while judged(location) < done:
        if any(process.poll() for process in running):
            raise RuntimeError("a runner did not end well")
        time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runners", type=int, default=8)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--restarts", type=int, default=0)
    parser.add_argument("--judgments", type=int, default=100_000)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--delay-ms", type=float, default=20)
    given = parser.parse_args()
    queries = -(-given.judgments // OF_A_QUERY)
    with tempfile.TemporaryDirectory() as folder, postgres_server() as postgres:
        plan = Plan(given.runners, given.kills, given.restarts, queries, given.concurrency, given.delay_ms)
        did = share(Path(folder), postgres, plan)
    met = "met" if did.twice <= did.most_lost else "missed"
    print(
        f"{given.runners} runners, {given.kills} killed, {given.restarts} restarts: {did.wanted} judgments, "
        f"{did.asked} requests, {did.twice} of them repeated, of at most {did.most_lost} in flight or on their way "
        f"into the store at the kills ({met})"
    )
    print(
        f"{did.seconds:.0f} s, {did.wanted / did.seconds:.0f} a second, {did.cpu_s:.0f} s of the runners' CPU: "
        f"{1000 * did.cpu_s / did.wanted:.1f} ms a judgment"
    )


if __name__ == "__main__":
    main()
