"""The page that plans, starts, watches and stops runs; the runs are real processes that ask a loopback server."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from arena.config.schema import Config
from arena.store import Store
from arena.store.runners import Runner
from arena.store.runs import Runs
from arena.store.wants import TournamentProgress, progress
from judges.errors import InputError
from tests.support.llm_server import LLMServer, steady_judge
from tests.support.pages import page, press, shown, start_on, table
from tests.support.sample_store import write_store
from tests.support.tournaments import configured, run, write_data
from ui import editing, runs
from ui.access import EVERYBODY_VARIABLE


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Config]:
    """A tournament whose judge takes its time."""
    write_data(tmp_path)
    with LLMServer(lambda call: replace(steady_judge(call), delay_s=0.5)) as server:
        yield configured(tmp_path, server.openai_url, judge={"concurrency": 1}, criteria=None)


def until(done: Callable[[], object]) -> None:
    for _ in range(600):
        if done():
            return
        time.sleep(0.1)
    pytest.fail("it never happened")


def state(config: Config) -> str:
    found = runs.latest(config.store, config.name)
    return found[0].state if found else "none"


def test_a_run_is_planned_started_seen_by_everybody_stopped_and_killed(
    slow: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    Store.create(slow.store).close()
    start_on(monkeypatch, slow, editable=True)
    asked = page("runs")
    assert "No run of this tournament has been recorded yet" in shown(asked)
    asked = press(asked, "Plan it")
    assert table(asked, "Calls")["Calls"].sum() == 20
    asked = press(asked, "Start the run")
    assert not asked.exception
    until(lambda: state(slow) == "running")
    with pytest.raises(InputError, match="already running"):
        runs.start(session())
    another = page("runs")
    assert "A run is at work since" in shown(another)
    stopped = press(another, "Stop")
    assert "finishes what is in flight" in shown(stopped)
    until(lambda: not runs.is_alive(session()))
    ended = page("runs")
    assert "The last run was stopped" in shown(ended)
    assert "run again to go on" in shown(ended), "its log"
    assert table(ended, "State")["State"].tolist() == ["stopped"]
    assert oct(runs.log_file(session()).stat().st_mode)[-3:] == "600"
    runs.start(session())
    until(lambda: state(slow) == "running")
    os.kill(runs.latest(slow.store, slow.name)[0].pid, signal.SIGKILL)
    until(lambda: state(slow) == "killed")
    assert "The last run was killed" in shown(page("runs"))
    slow.data.queries[0].unlink()
    runs.start(session())
    until(lambda: not runs.is_alive(session()))
    failed = shown(page("runs"))
    assert "The last run ended before it began to judge" in failed
    assert "queries.csv" in failed, "its log"


def session() -> editing.Session:
    found = editing.session()
    assert found is not None
    return found


def test_who_is_no_editor_cannot_start_or_stop(slow: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    Store.create(slow.store).close()
    start_on(monkeypatch, slow, editable=True)
    own = session()
    monkeypatch.setenv(EVERYBODY_VARIABLE, "voter")
    asked = page("runs")
    assert [one.label for one in asked.button] == []
    for act in (lambda: runs.start(own), lambda: runs.stop(own, None)):
        with pytest.raises(InputError, match="no longer allows"):
            act()
    assert not runs.is_alive(own)


def test_a_killed_run_is_said_to_be_and_a_run_elsewhere_is_not_stopped_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(tmp_path)
    config = configured(tmp_path, criteria=None)
    run(config)
    start_on(monkeypatch, config)
    with closing(Store.open(config.store)) as store:
        of = Runs(store, config.name)
        of.begin(replace(Runner(), pid=2**22 + 1), {})
        assert "The last run was killed" in shown(page("runs"))
        of.begin(replace(Runner(), host="elsewhere"), {})
    asked = page("runs")
    assert "A run is at work since" in shown(asked)
    assert "Documents labelled: 8 of 8" in [one.text for one in asked.get("progress")]
    assert "ragleague ui CONFIG" in shown(asked), "opened on a store, nothing can be started"
    assert [one.label for one in asked.button] == []


def test_how_far_a_run_is_is_counted_once_however_many_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = str(write_store(tmp_path / "s.db"))
    counts = []

    def slow_count(store: Store, tournament: str) -> TournamentProgress:
        counts.append(tournament)
        time.sleep(0.2)
        return progress(store, tournament)

    monkeypatch.setattr(runs, "progress", slow_count)
    with ThreadPoolExecutor(4) as lookers:
        seen = list(lookers.map(lambda _: runs.current_progress(location, "sample"), range(4)))
    assert (len(counts), len({id(own) for own in seen})) == (1, 1)
