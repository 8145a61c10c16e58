"""How much of a run's prompts a vendor's cache knows, and that calls wait for the one that fills it."""

from __future__ import annotations

import sqlite3
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from arena.boards.report import tournament_report
from arena.boards.runs import PlanBoard
from arena.config.schema import Config
from arena.present.table import Table
from arena.run.judging import load_data
from arena.run.plan import plan
from arena.stages.together import TournamentStages
from arena.store import Store
from benchmarks import cached_prompts
from judges.identity import cache_key, judgment_id
from judges.types import Prompt, Task
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.prefix_cache import PrefixCache
from tests.support.tournaments import run

DELAY_S = 0.05


def slow(call: Call) -> Reply:
    return replace(steady_judge(call), delay_s=DELAY_S)


def configured(folder: Path, server: LLMServer, provider: str = "openai", **sections: Any) -> Config:
    documents = sections.pop("documents", {"pool": "query"})
    return cached_prompts.configured(folder, server.openai_url, provider, 10, documents, **sections)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_most_of_what_is_sent_lies_in_the_vendors_cache(tmp_path: Path, provider: str) -> None:
    cached_prompts.write_data(tmp_path, 4)
    measured = cached_prompts.Measured({})
    with LLMServer(slow, cache=PrefixCache()) as server:
        assert run(configured(tmp_path, server, provider), trace=measured.take).complete
    assert server.cache is not None
    assert measured.whole == server.cache.total, "our count is the server's"
    shares = {name: sent.cached / sent.all for name, sent in measured.stages.items()}
    assert shares["pairwise"] >= 0.75
    assert shares["criteria"] >= 0.65
    assert measured.whole.cached / measured.whole.all >= 0.58
    written = {name: sent.written for name, sent in measured.stages.items() if sent.written}
    assert set(written) == ({"pairwise", "criteria"} if provider == "anthropic" else set()), "what is read again"
    for name, tokens in written.items():
        assert tokens < measured.stages[name].cached / 3, "each beginning is written once"


ONLY_GAMES: Mapping[str, Any] = dict.fromkeys(("retrieval", "criteria", "exam", "nuggets", "support", "refusals"))


def by_beginning(config: Config, calls: list[Call]) -> dict[str, list[Call]]:
    """The calls of each query's games, in the order in which they came."""
    queries = load_data(config).queries.values()
    found = defaultdict(list)
    for call in calls:
        user = call.body["messages"][1]["content"]
        found[next(query.query_id for query in queries if query.text in user)].append(call)
    return found


def test_a_querys_first_call_leads_while_other_queries_go_on(tmp_path: Path) -> None:
    cached_prompts.write_data(tmp_path, 6)
    with LLMServer(lambda call: replace(slow(call), delay_s=0.5 if len(server.calls) <= 4 else 0.01)) as server:
        config = configured(tmp_path, server, judge={"concurrency": 4}, **ONLY_GAMES)
        run(config)
    of_query = by_beginning(config, server.calls)
    assert {len(calls) for calls in of_query.values()} == {30}
    leaders = [calls[0] for calls in of_query.values()]
    assert server.calls[:4] == leaders[:4], "as many lead as calls go at once"
    for first, second, *_ in of_query.values():
        assert second.at >= first.at + (0.5 if first in leaders[:4] else 0.01)


def test_calls_do_not_wait_where_the_server_caches_nothing_of_them(tmp_path: Path) -> None:
    cached_prompts.write_data(tmp_path, 1)
    with LLMServer(slow) as server:
        run(configured(tmp_path, server, documents={"include": False}, **ONLY_GAMES))
    starts = sorted(call.at for call in server.calls)
    assert sum(at < starts[0] + DELAY_S for at in starts) > 1, "the beginning is too short"


def test_what_a_failing_call_leads_goes_out_after_its_first_attempt(tmp_path: Path) -> None:
    cached_prompts.write_data(tmp_path, 1)
    first = threading.Event()

    def failing(call: Call) -> Reply:
        if not first.is_set():
            first.set()
            return Reply("busy", status=500, headers={"Retry-After": "3"})
        return slow(call)

    with LLMServer(failing) as server:
        summary = run(configured(tmp_path, server, **ONLY_GAMES))
    assert summary.complete
    starts = [call.at for call in server.calls]
    assert len(starts) == 31
    assert starts[-1] >= starts[0] + 3, "the leader is asked again, as it was told"
    assert starts[-2] < starts[0] + 2.5, "and nobody waits for it"


def test_a_run_that_ends_early_gives_back_what_waits_for_a_leader(tmp_path: Path) -> None:
    cached_prompts.write_data(tmp_path, 2)
    with LLMServer(slow) as server:
        poor, rich = (
            configured(tmp_path, server, store=str(tmp_path / "store.db"), judge=judge, **ONLY_GAMES)
            for judge in ({"max_cost_usd": 1e-6}, {})
        )
        assert run(poor).stages[Task.PAIRWISE].left >= 58
        assert run(rich).complete
    assert len(server.calls) == 60, "each game once"


def prompts(config: Config) -> dict[str, Prompt]:
    stages = TournamentStages(config, load_data(config))
    found = {" ".join((*sorted(want.shown), want.order)): stages.prompt(want) for want in stages.wants()}
    return {name: prompt for name, prompt in found.items() if prompt is not None}


def test_the_pool_decides_which_documents_a_game_shows_and_so_its_id(tmp_path: Path) -> None:
    cached_prompts.write_data(tmp_path, 1)
    with LLMServer() as server:
        pair, query, narrow = (
            configured(tmp_path, server, documents=documents, **ONLY_GAMES)
            for documents in ({}, {"pool": "query"}, {"pool": "query", "pool_tokens": 1})
        )
    spec = pair.judges["judge"]
    pairs, (pool,), (narrowest,) = (
        {tuple(entry.document.doc_id for entry in prompt.inputs.documents) for prompt in prompts(each).values()}
        for each in (pair, query, narrow)
    )
    assert len(pairs) == 15, "each pair of agents its own"
    assert 5 < len(pool) < 16, "as many as the budget holds"
    (best,) = narrowest
    assert best in pool
    assert min(entry.rank for entry in load_data(pair).retrieved["q000"] if entry.doc_id == best) == 1
    keys = [{cache_key(prompt, spec) for prompt in prompts(each).values()} for each in (pair, query)]
    assert [len(each) for each in keys] == [15, 1], "both orders of a pair begin alike"
    idents = [{judgment_id(prompt, {}) for prompt in prompts(each).values()} for each in (pair, query)]
    assert idents[0].isdisjoint(idents[1])


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_plan_counts_cached_and_written_tokens_at_the_price_that_the_server_takes(
    tmp_path: Path, provider: str
) -> None:
    cached_prompts.write_data(tmp_path, 3)
    with LLMServer(slow, cache=PrefixCache()) as server:
        free_replies = {"price": {"input": 1, "cached_input": 0.25, "output": 0}}
        config = configured(tmp_path, server, provider, judge=free_replies)
        planned = plan(config)
        run(config)
    assert server.cache is not None
    sent = server.cache.total
    charged = (sent.fresh + 0.25 * sent.cached + PrefixCache.written_usd * sent.written) / 1e6
    assert planned.cost_usd == pytest.approx(charged, rel=0.1)
    assert sum(row.cached_tokens for row in planned.rows) == pytest.approx(sent.cached, rel=0.1)
    assert sum(row.written_tokens for row in planned.rows) == pytest.approx(sent.written, rel=0.1)
    (games,) = (row for row in planned.rows if row.task is Task.PAIRWISE)
    assert games.cached_tokens > 0.75 * games.input_tokens
    (table,) = (block for block in PlanBoard(planned).sections()[0].blocks if isinstance(block, Table))
    (row,) = (row for row in table.rows if row["stage"] == "Games judged, each order counted")
    assert row["cached_tokens"] == games.cached_tokens
    with closing(sqlite3.connect(config.store)) as store:
        ((read, paid),) = store.execute("SELECT sum(cached_input_tokens), sum(cost_usd) FROM costs").fetchall()
    assert (read, paid) == (sent.cached, pytest.approx(charged))
    with closing(Store.open(config.store)) as opened:
        (asked,) = tournament_report(opened, "cached", str(config.store)).shown.effort
    (row,) = (row for row in asked.rows if row["task"] == "pairwise")
    assert row["cached"] > 0.75
