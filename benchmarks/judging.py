"""How near a run comes to its bound, concurrency divided by the server's delay, and what a call costs in CPU.

A loopback server in a process of its own answers after a fixed delay. A tournament of games in both orders is run
through the real openai provider, store included; then the same prompts go through a plain loop of the SDK's, and
through RAGElo from PyPI where it can be had: ``python -m benchmarks.judging --ragelo``. Medians of five, with the least
and the largest. ``--known N`` then runs and plans a tournament of N wants that are all known, as whole commands.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import openai
from msgspec import Struct

from arena.config.schema import Config
from arena.run.judging import load_data, run
from arena.stages.together import TournamentStages
from benchmarks import used
from benchmarks.loopback import asked, server
from judges.providers.hosted import OpenAIProvider
from judges.types import Prompt, Task
from tests.support.tournaments import Quiet

RAGELO = "ragelo==0.7.0"
GAMES = 400
AGENTS = 11
PEER_CONCURRENCY = 64


def write_data(folder: Path, games: int) -> None:
    words = [f"word{number}" for number in range(17)]
    queries, answers = ["qid,query"], ["qid,agent,answer"]
    for number in range(games):
        queries.append(f"q{number},what is asked in number {number}")
        for agent in ("one", "two"):
            text = " ".join(words[(number + offset) % len(words)] for offset in range(100))
            answers.append(f"q{number},{agent},{agent} says {text} {number}")
    (folder / "queries.csv").write_text("\n".join(queries) + "\n")
    (folder / "answers.csv").write_text("\n".join(answers) + "\n")


def settings(store: str, **judge: Any) -> dict[str, Any]:
    """Configuration of a tournament of games that one judge decides by their answers alone."""
    return {
        "name": "benchmark",
        "store": store,
        "data": {"queries": "queries.csv", "answers": "answers.csv"},
        "judges": {"judge": judge},
        "pairwise": {"judges": "judge", "documents": {"include": False}},
    }


def write_tournament(folder: Path, judgments: int, config: dict[str, Any], agents: int = AGENTS) -> tuple[Path, int]:
    """A tournament of agents that all meet on each query, with answers of about 100 words; its file and its games."""
    per_query = agents * (agents - 1)
    queries = -(-judgments // per_query)
    asks, answers = ["qid,query"], ["qid,agent,answer"]
    for query in range(queries):
        asks.append(f"q{query},what is asked in number {query}")
        for agent in range(agents):
            text = " ".join(f"word{(query * 7 + agent * 3 + place) % 101}" for place in range(100))
            answers.append(f"q{query},agent{agent},{text} as agent {agent} says of {query}")
    (folder / "queries.csv").write_text("\n".join(asks) + "\n")
    (folder / "answers.csv").write_text("\n".join(answers) + "\n")
    path = folder / "tournament.yaml"
    path.write_text(json.dumps(config))  # which is YAML too
    return path, queries * per_query


class Measured(Struct, frozen=True):
    """One run on a fresh store: calls, seconds in all, of CPU, and of judging alone once data and store are there."""

    calls: int
    seconds: float
    cpu_s: float
    judging_s: float


def configured(folder: Path, base_url: str, concurrency: int, **sections: Any) -> Config:
    """The tournament of a folder, in a store of its own, with further sections of the configuration."""
    judge = {"model": "m", "base_url": base_url, "concurrency": concurrency, "price": {"input": 0, "output": 0}}
    config = settings(str(folder / f"{time.monotonic_ns()}.db"), provider="openai", **judge)
    config["data"] = {name: str(folder / file) for name, file in config["data"].items()}
    return Config.model_validate(config | sections)


def measure(folder: Path, base_url: str, concurrency: int, **sections: Any) -> Measured:
    config = configured(folder, base_url, concurrency, **sections)
    before = asked(base_url)
    cpu, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    summary = run(config, Quiet())
    wall, spent = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    calls = summary.stages[Task.PAIRWISE].calls
    assert summary.complete
    assert calls == asked(base_url) - before, "our count is the server's"
    cpu_s = spent.ru_utime + spent.ru_stime - cpu.ru_utime - cpu.ru_stime
    return Measured(calls, wall, cpu_s, summary.judges["judge"].seconds)


class Spread(Struct, frozen=True):
    """Median, least and largest share of the bound over several runs, and the same of the CPU of a call in
    milliseconds."""

    shares: tuple[float, float, float]
    cpu_ms: tuple[float, float, float]

    @classmethod
    def of(cls, runs: Sequence[Measured], concurrency: int, delay_ms: float) -> Spread:
        shares = [ran.calls * delay_ms / 1000 / concurrency / ran.seconds for ran in runs]
        costs = [1000 * ran.cpu_s / ran.calls for ran in runs]
        return cls(*((statistics.median(each), min(each), max(each)) for each in (shares, costs)))


def by_sdk(folder: Path, base_url: str, concurrency: int) -> Measured:
    """Send the same prompts by the SDK's typed method; replies are decoded and not kept."""
    config = configured(folder, base_url, concurrency)
    stages = TournamentStages(config, load_data(config))
    bodies = [
        OpenAIProvider(config.judges["judge"]).request(cast(Prompt, stages.prompt(want))) for want in stages.wants()
    ]

    async def ask() -> None:
        async with openai.AsyncOpenAI(api_key="k", base_url=base_url, max_retries=0) as client:
            left = iter(bodies)

            async def work() -> None:
                for body in left:
                    json.loads((await client.chat.completions.create(**body)).choices[0].message.content or "")

            await asyncio.gather(*(work() for _ in range(concurrency)))

    cpu, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    asyncio.run(ask())
    wall, spent = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    return Measured(len(bodies), wall, spent.ru_utime + spent.ru_stime - cpu.ru_utime - cpu.ru_stime, wall)


def known(folder: Path, wants: int, rounds: int) -> None:
    """Print the times of ``run`` and ``plan`` of a tournament whose verdicts are all known."""
    path, pending = write_tournament(folder, wants, settings("known.db", provider="lexical"))
    used.run("run", str(path))
    for word in ("run", "plan"):
        took = [used.run(word, str(path)) for _ in range(rounds)]
        seconds, cpu_s = ([getattr(each, name) for each in took] for name in ("seconds", "cpu_s"))
        print(
            f"{word} of {pending:,} known wants: {statistics.median(seconds):.1f} s ({min(seconds):.1f} to "
            f"{max(seconds):.1f}), CPU {statistics.median(cpu_s):.1f} s, {max(each.peak_mb for each in took):.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--at", nargs="+", default=["64x50", "256x200"], metavar="CALLSxMS", help="calls at once, delay"
    )
    parser.add_argument("--calls", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ragelo", action="store_true", help=f"install {RAGELO} aside and measure it too")
    parser.add_argument("--ragelo-python", type=Path, help="the same with a Python that has it")
    parser.add_argument("--known", type=int, default=0, help="wants of a tournament of which all is known")
    given = parser.parse_args()
    gc.set_threshold(200_000, 50, 50)  # as the command does
    print(f"{'way':12} {'at once':>8} {'delay':>7}  {'share of the bound':>22}  {'CPU ms a call':>22}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for concurrency, delay_ms in (map(int, each.split("x")) for each in given.at):
            with server(delay_ms) as base_url:
                write_data(folder, 8)
                measure(folder, base_url, 8)  # imports out of the way
                write_data(folder, given.calls // 2)
                for way, act in (("ragleague", measure), ("SDK's loop", by_sdk)):
                    found = [act(folder, base_url, concurrency) for _ in range(given.rounds)]
                    spread = Spread.of(found, concurrency, delay_ms)
                    share, cost = (
                        f"{mid:.2f} ({low:.2f} to {high:.2f})" for mid, low, high in (spread.shares, spread.cpu_ms)
                    )
                    print(f"{way:12} {concurrency:8} {delay_ms:4} ms  {share:>22}  {cost:>22}", flush=True)
        if given.ragelo or given.ragelo_python:
            write_data(folder, GAMES)
            with server(50) as base_url:
                beside_ragelo(folder, base_url, given.ragelo_python, GAMES)
        if given.known:
            known(folder, given.known, given.rounds)


def beside_ragelo(folder: Path, base_url: str, python: Path | None, games: int) -> None:
    """Compare calls per second of RAGElo with ours right before and after; judging alone on both sides."""
    if python is None:  # the package index must be within reach
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        python = folder / "venv/bin/python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-cache-dir", RAGELO], check=True)
    before = measure(folder, base_url, PEER_CONCURRENCY)
    script, calls = Path(__file__).with_name("ragelo_peer.py"), -asked(base_url)
    command = [str(python), str(script), str(folder), base_url, str(PEER_CONCURRENCY)]
    theirs = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])
    calls += asked(base_url)
    if theirs["judged"] != games or calls != 2 * games:
        raise RuntimeError(f"RAGElo judged {theirs['judged']} of {games} games with {calls} calls")
    after = measure(folder, base_url, PEER_CONCURRENCY)
    ours = (before.calls + after.calls) / (before.judging_s + after.judging_s)
    rate = calls / theirs["seconds"]
    print(
        f"RAGElo {theirs['version']} at concurrency {PEER_CONCURRENCY}: {calls} calls, {rate:.0f} a second; "
        f"ours {ours:.0f}: {ours / rate:.1f} times as many"
    )


if __name__ == "__main__":
    main()
