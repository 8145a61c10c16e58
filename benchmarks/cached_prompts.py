"""How much of the input of a run lies in a vendor's prompt cache, by stage, and what that saves.

A loopback server in a process of its own caches prefixes as OpenAI and Anthropic say, and counts them. Six agents
answer each query from ten passages of 200 words, sixteen in all; every stage runs, 16 calls at once. Dollars are those
of a token read at a quarter of the price, written at 1.25 (Anthropic), and replied at 4 times the price, with replies
of the length that the prompts declare.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from arena.config.schema import Config
from arena.run.judging import load_data, run
from arena.stages.together import TournamentStages
from benchmarks.loopback import log, server
from judges.types import CallTrace
from tests.support.prefix_cache import PrefixCache, Sent
from tests.support.tournaments import Quiet

AGENTS, PASSAGES, RETRIEVED, QUESTIONS = 6, 16, 10, 10
AT_ONCE = 16
CACHED, OUTPUT = 0.25, 4.0
"""Price of a token read from the cache and of a reply's, as multiples of a fresh token of a prompt."""


def write_data(folder: Path, queries: int) -> None:
    rng = random.Random(0)
    words = [f"word{number:03}" for number in range(500)]
    asks, answers, documents, items = (
        ["qid,query"],
        ["qid,agent,answer"],
        ["qid,did,document,agent,rank"],
        ["qid,question"],
    )

    def text(number: int) -> str:
        return " ".join(rng.choices(words, k=number))

    for query in range(queries):
        asks.append(f"q{query:03},What is asked of {text(8)}?")
        passages = [text(200) for _ in range(PASSAGES)]
        items += [f"q{query:03},What is known of {text(6)}?" for _ in range(QUESTIONS)]
        for agent in range(AGENTS):
            sentences = " ".join(f"It says {text(38)} [{number}]." for number in range(1, 6))
            answers.append(f"q{query:03},agent{agent},{sentences}")
            retrieved = rng.sample(range(PASSAGES), RETRIEVED)
            documents += [
                f"q{query:03},q{query:03}-{place:02},{passages[place]},agent{agent},{rank}"
                for rank, place in enumerate(retrieved, start=1)
            ]
    for name, lines in (("queries", asks), ("answers", answers), ("documents", documents), ("bank", items)):
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


def configured(
    folder: Path, base_url: str, provider: str, items: int, documents: Mapping[str, Any], **sections: Any
) -> Config:
    """The tournament of a folder; ``sections`` add to the judge's declaration, or replace or leave out sections."""
    address = base_url if provider == "openai" else base_url.removesuffix("/v1")
    judge = {"provider": provider, "model": "m", "base_url": address, "concurrency": AT_ONCE}
    judge |= {"price": {"input": 1, "cached_input": CACHED, "output": OUTPUT}} | sections.pop("judge", {})
    content: dict[str, Any] = {
        "name": "cached",
        "store": str(folder / f"{time.monotonic_ns()}.db"),
        "data": {name: str(folder / f"{name}.csv") for name in ("queries", "answers", "documents")},
        "judges": {"judge": judge},
        "retrieval": {"judge": "judge"},
        "pairwise": {"judges": "judge", "documents": {"threshold": 0, **documents}},
        "criteria": {"judge": "judge", "documents": {"threshold": 0}},
        "exam": {"judge": "judge", "bank": str(folder / "bank.csv"), "texts": "answers", "items_per_call": items},
        "nuggets": {"judge": "judge"},
        "support": {"judge": "judge"},
        "refusals": {"judge": "judge"},
    } | sections
    return Config.model_validate({name: section for name, section in content.items() if section is not None})


class Measured(Struct):
    """One run: the tokens of each stage's prompts, the tokens of typical replies, and seconds."""

    stages: dict[str, Sent]
    replied: int = 0
    seconds: float = 0.0

    def take(self, call: CallTrace) -> None:
        sent, cached, written = (
            call.usage.input_tokens or 0,
            call.usage.cached_input_tokens or 0,
            call.usage.cache_write_tokens or 0,
        )
        counted = Sent(sent - cached - written, cached, written)
        self.stages[call.task] = self.stages.get(call.task, Sent(0, 0)) + counted

    @property
    def whole(self) -> Sent:
        return sum(self.stages.values(), Sent(0, 0))

    def dollars(self) -> float:
        """For a million runs, at one dollar for a million fresh tokens."""
        whole = self.whole
        return whole.fresh + CACHED * whole.cached + PrefixCache.written_usd * whole.written + OUTPUT * self.replied


def measure(config: Config, base_url: str) -> Measured:
    before, measured, started = Sent(**log(base_url)["tokens"]), Measured({}), time.perf_counter()
    summary = run(config, Quiet(), trace=measured.take)
    measured.seconds = time.perf_counter() - started
    assert summary.complete, summary
    assert before + measured.whole == Sent(**log(base_url)["tokens"]), "our count is the server's"
    stages = TournamentStages(config, load_data(config))
    for task, counts in summary.stages.items():
        typical = [each.reply.typical_tokens for each in stages.of(task).templates.values()]
        measured.replied += counts.calls * max(typical)
    return measured


def report(title: str, measured: Measured, plain: Measured) -> None:
    print(f"\n{title}: {measured.seconds:.1f} s, {measured.seconds / plain.seconds - 1:+.0%}")
    print(f"{'stage':14} {'tokens in':>12} {'cached':>8} {'written':>8}")
    for name, sent in [*measured.stages.items(), ("whole run", measured.whole)]:
        print(f"{name:14} {sent.all:12,} {sent.cached / sent.all:8.0%} {sent.written / sent.all:8.0%}")
    uncached = measured.whole.all + OUTPUT * measured.replied
    shares = measured.dollars() / uncached, measured.dollars() / plain.dollars()
    print("dollars: {:.0%} of the same without a cache, {:.0%} of the first table's".format(*shares), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=24)
    parser.add_argument("--delay-ms", type=float, default=200)
    parser.add_argument("--provider", nargs="+", default=["openai", "anthropic"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder, given.queries)
        for provider in given.provider:
            plain: Measured | None = None
            for title, documents, items in (
                ("each game its two agents' documents", {}, 1),
                ("one pool for all games of a query", {"pool": "query"}, 1),
                ("one pool, ten exam questions in a call", {"pool": "query"}, 10),
            ):
                with server(given.delay_ms, "--cached") as base_url:
                    measured = measure(configured(folder, base_url, provider, items, documents), base_url)
                plain = plain or measured
                report(f"{provider}, {title}", measured, plain)


if __name__ == "__main__":
    main()
