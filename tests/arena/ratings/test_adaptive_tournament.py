"""Whole tournaments with an adaptive schedule: batch by batch, decided or not, the same way after a restart."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from arena.cli.leaderboard import print_leaderboard
from arena.config.schema import Config
from arena.results.ratings import leaderboard
from arena.run import judging
from arena.run.ledger import RunSummary
from arena.run.plan import plan
from arena.stages.adaptive import AdaptiveState
from arena.store import Store, Wanted
from judges.types import Task
from tests.support.llm_server import Call, LLMServer, Reply, by_name, steady_judge
from tests.support.tournaments import Quiet, configured, results, write_data

QUERIES = [f"q{number}" for number in range(30)]


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer(by_name) as running:
        yield running


def adaptive(
    folder: Path, server: LLMServer, judge: dict[str, Any] | None = None, *, both_orders: bool = True, **schedule: Any
) -> Config:
    write_data(folder, QUERIES)
    schedule = {"kind": "adaptive", "batch": 12, "seed": 7, **schedule}
    games = {"judges": ["judge"], "documents": {"include": False}, "both_orders": both_orders, "schedule": schedule}
    return configured(folder, server.openai_url, judge=judge or {}, pairwise=games, retrieval=None, criteria=None)


def play(config: Config, **options: Any) -> RunSummary:
    return judging.run(config, Quiet(), **options)


def state(config: Config) -> AdaptiveState:
    store = Store.open(config.store)
    try:
        found = leaderboard(store).adaptive
    finally:
        store.close()
    return found


def wants(config: Config) -> list[Wanted]:
    return list(results(config, Task.PAIRWISE))


def test_a_clear_order_is_decided_long_before_all_games_are_played(tmp_path: Path, server: LLMServer) -> None:
    config = adaptive(tmp_path, server)
    summary = play(config)
    found = state(config)
    assert (found.decided, found.places, found.ended) == (True, ("x", "y", "z"), True)
    assert (found.possible, summary.complete) == (90, True)
    assert found.games < 60
    assert found.games % 12 == 0
    assert len(server.calls) == summary.stages[Task.PAIRWISE].wanted == 2 * found.games == len(wants(config))


def test_the_limit_holds_and_the_board_says_that_nothing_is_decided(
    tmp_path: Path, server: LLMServer, capsys: pytest.CaptureFixture[str]
) -> None:
    config = adaptive(tmp_path, server, max_games=15)
    play(config)
    found = state(config)
    assert (found.decided, found.games, found.ended) == (False, 15, True)
    store = Store.open(config.store)
    print_leaderboard(store, leaderboard(store), "table", details=True)
    print_leaderboard(store, leaderboard(store), "json")
    store.close()
    shown = capsys.readouterr().out
    assert "the order is not decided after 15 of 90 possible games (no game is left that could" in shown
    assert json.loads(shown[shown.index("{") :])["adaptive"]["games"] == 15


def test_a_run_that_was_cut_short_goes_on_the_same_way(tmp_path: Path, server: LLMServer) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        folder.mkdir()
    uncut = adaptive(whole, server)
    play(uncut)
    sent = len(server.calls)

    def stops_early(call: Call) -> Reply:
        return Reply(status=401) if len(server.calls) > sent + 40 else by_name(call)

    server.script = stops_early
    config = adaptive(cut, server, {"concurrency": 1})
    summary = play(config)
    assert not summary.complete
    assert summary.stopped
    assert not state(config).decided
    assert not state(config).ended
    server.script = by_name
    assert play(config).complete
    assert wants(config) == wants(uncut)
    assert state(config) == state(uncut)


def test_without_the_stage_earlier_verdicts_are_found_again(tmp_path: Path, server: LLMServer) -> None:
    config = adaptive(tmp_path, server)
    play(config)
    sent, before = len(server.calls), results(config, Task.PAIRWISE)
    play(config, only=[Task.CRITERIA])
    assert len(server.calls) == sent
    assert results(config, Task.PAIRWISE) == before


def test_one_order_is_drawn_where_both_are_not_wanted(tmp_path: Path, server: LLMServer) -> None:
    config = adaptive(tmp_path, server, both_orders=False)
    play(config)
    orders = [want.order for want in wants(config)]
    assert set(orders) == {"ab", "ba"}
    assert len(orders) == state(config).games


def test_a_plan_gives_the_most_that_a_run_may_take(tmp_path: Path, server: LLMServer) -> None:
    made = plan(adaptive(tmp_path, server, max_games=50))
    assert sum(row.calls for row in made.rows) == 100
    assert any("upper bound" in note for note in made.notes)
    assert server.calls == []


@pytest.mark.parametrize("key", ["decide", "confidence", "batch", "max_games"])
def test_adaptive_settings_go_with_an_adaptive_schedule_only(key: str, tmp_path: Path, server: LLMServer) -> None:
    value = {"decide": "top", "confidence": 0.9, "batch": 3, "max_games": 9}[key]
    with pytest.raises(ValueError, match=f"'{key}' goes with kind 'adaptive' only"):
        configured(tmp_path, pairwise={"judges": ["judge"], "schedule": {"kind": "all", key: value}})


def test_a_document_without_a_label_ends_the_games_and_not_the_patience(tmp_path: Path, server: LLMServer) -> None:
    """Games that show it cannot be asked for: the rest of their batch is judged, and the next run goes on."""

    def busy_at_first(call: Call) -> Reply:
        labels = call.body["response_format"]["json_schema"]["name"] == Task.RELEVANCE.value
        return Reply("busy", status=500) if labels and "About q3, as x" in str(call.body) else steady_judge(call)

    server.script = busy_at_first
    write_data(tmp_path, QUERIES[:4])
    games = {"judges": ["judge"], "schedule": {"kind": "adaptive", "batch": 4}, "documents": {"threshold": 1}}
    config = configured(tmp_path, server.openai_url, judge={"max_attempts": 1}, pairwise=games, criteria=None)
    without_labels = within(20, lambda: play(config, only=[Task.PAIRWISE]))
    assert not without_labels.complete
    assert without_labels.stages[Task.PAIRWISE].left > 0
    summary = within(20, lambda: play(config))
    assert summary.stages[Task.RELEVANCE].failed == 1
    assert summary.stages[Task.PAIRWISE].left > 0
    server.script = steady_judge
    assert within(20, lambda: play(config)).complete


def test_a_run_stopped_between_two_batches_is_not_complete(tmp_path: Path, server: LLMServer) -> None:
    """The money ends with the last reply of a batch, of 10 dollars each: the games that would come next are left."""
    price = {"price": {"input": 0, "output": 1e6}, "max_cost_usd": 239, "concurrency": 64}
    config = adaptive(tmp_path, server, price)
    summary = play(config)
    stage = summary.stages[Task.PAIRWISE]
    assert (stage.judged, stage.failed, stage.left) == (24, 0, 24)
    assert not summary.complete
    assert not state(config).ended


def test_a_run_that_is_stopped_early_still_shows_the_games_that_are_known(tmp_path: Path, server: LLMServer) -> None:
    config = adaptive(tmp_path, server)
    play(config)
    before, decided = results(config, Task.PAIRWISE), state(config)
    stopping = Quiet()
    stopping.begin = lambda *_: signal.raise_signal(signal.SIGINT)  # type: ignore[method-assign]
    judging.run(config, stopping)
    assert results(config, Task.PAIRWISE) == before
    assert state(config) == decided


def within(seconds: float, work: Callable[[], RunSummary]) -> RunSummary:
    """Its result, or a failed test rather than one that hangs."""
    done: Queue[RunSummary | BaseException] = Queue()

    def worked() -> None:
        try:
            done.put(work())
        except BaseException as error:
            done.put(error)

    Thread(target=worked, daemon=True).start()
    result = done.get(timeout=seconds)
    if isinstance(result, BaseException):
        raise result
    return result
