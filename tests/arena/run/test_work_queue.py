"""How a run goes through its plan: in which order, how much at a time, and without holding up the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from arena.run import tournament
from arena.run.writer import Writer
from arena.stages.schedule import AdaptiveGames
from arena.store import Store, Wanted
from arena.store.runners import Runner
from arena.store.runs import Runs
from judges.types import Task
from tests.support.llm_server import LLMServer, Reply
from tests.support.tournaments import AGENTS, Quiet, configured, results, run, write_data

QUERIES = [f"q{number}" for number in range(300)]


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[list[Wanted]]:
    """The wants that are looked up together, as they come."""
    told: list[list[Wanted]] = []
    claim = Store.claim

    def telling(store: Store, name: str, judgments: Sequence[tuple[Wanted, str]], *rest: Any) -> Any:
        told.append([want for want, _ in judgments])
        return claim(store, name, judgments, *rest)

    monkeypatch.setattr(Store, "claim", telling)
    return told


def test_alone_a_run_keeps_the_plans_order_and_beside_others_it_has_one_of_its_own(
    tmp_path: Path, looked_up: list[list[Wanted]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All answers are alike, so that nothing has to be asked. Pieces get smaller as less is left."""
    monkeypatch.setattr("arena.run.engine._BLOCK", 16)
    write_data(tmp_path, QUERIES, {(query, agent): "The same." for query in QUERIES for agent in AGENTS})
    config = configured(tmp_path, retrieval=None, criteria=None, pairwise={"judges": ["judge"]})

    def order() -> list[Wanted]:
        looked_up.clear()
        assert run(config).complete
        return [want for piece in looked_up for want in piece]

    planned = list(results(config)) if order() else []
    assert order() == planned
    sizes = [len(piece) for piece in looked_up]
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-2]) == (len(planned) // 32, 16)
    store = Store.open(config.store)
    Runs(store, config.name).begin(Runner(), {})
    store.close()
    mine, anothers = order(), order()
    assert planned != mine != anothers != planned
    assert set(mine) == set(anothers) == set(planned)
    blocks = [planned[start : start + 16] for start in range(0, len(planned), 16)]
    assert all(mine[mine.index(block[0]) :][: len(block)] == block for block in blocks)


async def test_a_kill_costs_no_more_replies_than_are_allowed_on_their_way_into_the_store() -> None:
    stored, busy = list[int](), threading.Event()
    writer: Writer[int] = Writer(lambda _: busy.wait(20) and None, stored.append, lambda _: 1, most_open=3)
    working = asyncio.create_task(writer.work())
    puts = [asyncio.create_task(writer.put(number)) for number in range(10)]
    await asyncio.sleep(0.1)
    assert sum(put.done() for put in puts) == 3
    busy.set()
    await asyncio.gather(*puts)
    await writer.finish()
    assert stored == list(range(10))
    working.cancel()


def test_nothing_that_takes_long_holds_up_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is heard while a run looks up what is known, at its begin, in the middle, and after all has been asked."""
    called: set[str] = set()

    def apart(kind: type, name: str) -> None:
        method: Callable[..., Any] = getattr(kind, name)

        def checked(*arguments: Any, **options: Any) -> Any:
            called.add(name)
            with pytest.raises(RuntimeError, match="no running event loop"):
                asyncio.get_running_loop()
            return method(*arguments, **options)

        monkeypatch.setattr(kind, name, checked)

    for name in ("claim", "assign", "results", "extend"):
        apart(Store, name)
    apart(AdaptiveGames, "choose")
    write_data(tmp_path)
    games = {"judges": ["judge"], "documents": {"threshold": 1}, "schedule": {"kind": "adaptive", "batch": 2}}
    for only in ([Task.RELEVANCE], [Task.CRITERIA], None):
        assert run(configured(tmp_path, pairwise=games), only=only).complete
    with LLMServer(lambda call: Reply(status=401)) as server:
        other = configured(tmp_path, server.openai_url, judge={"concurrency": 1}, pairwise=games, name="other")
        stopped = tournament.run(other, Quiet())
    assert stopped.stages[Task.RELEVANCE].left
    assert called == {"claim", "assign", "results", "extend", "choose"}
