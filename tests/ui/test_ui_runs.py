"""The page that plans, starts, watches and stops runs; the runs are real processes that ask a loopback server."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from arena.config.whole import Config
from arena.store import Store
from arena.store.agents import AgentQuery, AgentReplies
from arena.store.runners import Runner
from arena.store.runs import Runs
from arena.store.wants import Progress, progress
from judges.errors import InputError
from judges.types import Task
from retrieval_eval.agents.types import AgentReply
from tests.support.llm_server import LLMServer, steady_judge
from tests.support.pages import page, press, shown, start_on, table
from tests.support.sample_store import write_store
from tests.support.stores import JUDGMENT
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
    with pytest.raises(InputError, match="at work already"):
        runs.start(session())
    another = page("runs")
    assert "A run is at work since" in shown(another)
    stopped = press(another, "Stop")
    assert "finishes what is in flight" in shown(stopped)
    until(lambda: not runs.begins(session()))
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
    until(lambda: not runs.begins(session()))
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
        with pytest.raises(InputError, match="does not allow"):
            act()
    assert not runs.begins(own)


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

    def slow_count(store: Store, tournament: str) -> Progress:
        counts.append(tournament)
        time.sleep(0.2)
        return progress(store, tournament)

    monkeypatch.setattr(runs, "progress", slow_count)
    with ThreadPoolExecutor(4) as lookers:
        seen = list(lookers.map(lambda _: runs.how_far(location, "sample"), range(4)))
    assert (len(counts), len({id(own) for own in seen})) == (1, 1)


def played_games(folder: Path) -> Config:
    """A tournament of games alone, after a run."""
    write_data(folder)
    pairwise = {"judges": ["judge"], "documents": {"include": False}}
    config = configured(folder, retrieval=None, criteria=None, pairwise=pairwise)
    run(config)
    return config


def test_runs_at_work_at_once_show_each_its_own_spending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = played_games(tmp_path)
    with closing(Store.open(config.store)) as store:
        of = Runs(store, config.name)
        for name, cost in (("a", 0.25), ("b", 1.5)):
            runner = Runner()
            of.tell(of.begin(runner), {"agents": {"wanted": 4, "known": 1, "judged": 0, "failed": 0, "calls": 0}})
            store.save([(Task.PAIRWISE, "p", replace(JUDGMENT, judgment_id=name, cost_usd=cost))], runner)
            AgentReplies(store).save([(AgentQuery(name, "why?"), AgentReply("so", calls=1, cost_usd=0.5))], runner)
        with store._write() as connection:
            connection.execute(text("UPDATE run SET begun = number"))
    start_on(monkeypatch, config)
    asked = page("runs")
    assert "2 runs are at work since 00:00:02 and 00:00:03 UTC" in shown(asked)
    names = [f"run of 1970-01-01 00:00:0{second} UTC" for second in (2, 3)]
    assert [one.text for one in asked.get("progress")][:2] == [f"Agents asked by the {name}: 2 of 4" for name in names]
    tokens = "10 tokens in and 5 out without 1 result of unknown tokens"
    for name, cost in zip(names, ("0.75", "2.00"), strict=True):
        assert f"The {name} so far: 1 answer and 1 judgment by 3 calls; {tokens}; ${cost}." in shown(asked)


def test_two_runs_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_data(tmp_path)
    config = configured(tmp_path, criteria=None)
    run(config)
    keep_standings(config, [("z", 1100.0), ("x", 1000.0), ("y", 900.0)])
    run(configured(tmp_path, criteria=None, pairwise={"judges": ["judge"], "documents": {"threshold": 2}}))
    start_on(monkeypatch, config)
    asked = page("runs")
    assert "Changed: settings" in shown(asked)
    moves = table(asked, "Place before")
    assert dict(zip(moves["Agent"], moves["Place before"], strict=True)) == {"z": 1, "x": 2, "y": 3}
    changed = table(asked, "Setting")
    history = page("history")
    assert "are anchored to the agents whose answers are the same now: always x, y and z." in shown(history)
    assert table(history, "Version")["Version"].tolist() == [1, 1, 1]
    assert changed.values.tolist() == [["pairwise.documents.threshold", "1", "2"]]


def test_runs_begun_within_one_second_can_each_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = played_games(tmp_path)
    with closing(Store.open(config.store)) as store:
        of = Runs(store, config.name)
        for points in (1.0, 2.0, 3.0):
            of.end(of.begin(Runner(), of.all()[-1].subject), "complete", {})
            keep_standings(config, [("x", 1000 + points), ("y", 1000.0), ("z", 900.0)])
        with store._write() as connection:
            connection.execute(text("UPDATE run SET begun = 1700000000 + number / 100.0"))
    start_on(monkeypatch, config)
    asked = page("runs")
    begun = "2023-11-14 22:13:20 UTC"
    assert asked.selectbox(key="run").options == [f"{begun} (4)", f"{begun} (3)", f"{begun} (2)", begun]
    assert asked.selectbox(key="since").options == [f"run of {begun} ({n})" for n in (3, 2)]
    for number, before in ((2, 1001.0), (3, 1002.0)):
        asked.selectbox(key="since").set_value(f"run of {begun} ({number})").run(timeout=20)
        assert table(asked, "Rating before").set_index("Agent")["Rating before"]["x"] == before


def keep_standings(config: Config, ratings: list[tuple[str, float]]) -> None:
    lines = [
        {"agent": agent, "rank": place, "rank_low": 1, "rank_high": 3, "group": "A", "bt": bt, "bt_low": bt - 9,
         "bt_high": bt + 9, "games": 4}
        for place, (agent, bt) in enumerate(ratings, start=1)
    ]  # fmt: skip
    with closing(Store.open(config.store)) as store:
        own = Runs(store, config.name)
        own.keep_standings(own.all()[0].run_id, lines)
