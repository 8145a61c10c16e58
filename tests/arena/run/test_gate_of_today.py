"""A system is replaced behind its address: the gate dates its answers, and asks it anew by version or on request."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arena.config.schema import load_config
from arena.run.answers import run_agents
from tests.arena.stages.test_answers_endings import wait_for
from tests.conftest import CLI
from tests.support.agents import QUERIES, asked, http_agent, write_config
from tests.support.children import begin
from tests.support.llm_server import Call, LLMServer, Reply
from tests.support.tournaments import Quiet

DAY = 86_400


class Systems(LLMServer):
    """Two systems behind two addresses; ``says`` are the words of each, which a test replaces."""

    def __init__(self) -> None:
        self.says = {"new": "It is", "old": "It is"}
        self.delay_s = 0.0
        super().__init__(self._reply)

    def _reply(self, call: Call) -> Reply:
        query, agent = asked(call), call.path.strip("/")
        text = f"{self.says[agent]} {query}." if self.says[agent] else f"No idea {len(query)}."
        return Reply(body={"answer": text}, delay_s=self.delay_s)

    def counted(self) -> Counter[str]:
        return Counter(call.path.strip("/") for call in self.calls)


@pytest.fixture
def systems() -> Iterator[Systems]:
    with Systems() as running:
        yield running


def tournament(folder: Path, systems: Systems, *, schedule: str = "all", **of_new: Any) -> Path:
    agents = {
        name: http_agent(f"http://127.0.0.1:{systems.port}/{name}", mapping={"answer": "answer"}, **more)
        for name, more in (("new", {"concurrency": 1, **of_new}), ("old", {}))
    }
    games = {"judges": "words", "documents": {"include": False}, "schedule": {"kind": schedule}}
    return write_config(folder, agents, pairwise=games)


def gated(cli: CLI, config: Path, *more: object, form: str = "json") -> Any:
    ended = cli("gate", config, "--new", "new", "--old", "old", "--margin", 0.3, "--format", form, *more)
    assert ended.status in (0, 1, 3), ended.err
    return json.loads(ended.out) if form == "json" else ended


def a_day_passes(config: Path) -> None:
    """Move the replies in the store a day back."""
    with closing(sqlite3.connect(config.with_suffix(".db"))) as connection, connection:
        connection.execute("UPDATE agent_reply SET made_at = made_at - ?", (DAY,))


def answers_of(config: Path, identity: str = "%") -> int:
    with closing(sqlite3.connect(config.with_suffix(".db"))) as connection:
        (count,) = connection.execute("SELECT count(*) FROM agent_reply WHERE identity LIKE ?", (identity,)).fetchone()
    return int(count)


@pytest.mark.parametrize("schedule", ["all", "adaptive"])
def test_yesterdays_answers_are_dated_and_asking_anew_finds_the_regression(
    cli: CLI, tmp_path: Path, systems: Systems, schedule: str
) -> None:
    config, count = tournament(tmp_path, systems, schedule=schedule), len(QUERIES)
    first = gated(cli, config)
    assert (first["passed"], first["answers"]["new"]["asked"], first["answers"]["old"]["asked"]) == (True, count, count)
    a_day_passes(config)
    systems.says["new"] = ""
    stale = gated(cli, config)
    assert (stale["passed"], stale["answers"]["new"]["asked"]) == (True, 0), "these are yesterday's answers"
    assert stale["answers"]["new"]["made"][1] < time.strftime("%Y-%m-%d", time.gmtime())
    yesterday = time.strftime("%-d %B %Y", time.gmtime(time.time() - DAY))
    sentence = f"Answers of new: {count}, made {yesterday}, 0 asked anew."
    assert sentence in gated(cli, config, form="table").out.replace("\n", " ")
    assert sentence in gated(cli, config, form="md").out
    gated(cli, config, "--junit", tmp_path / "gate.xml")
    assert sentence in (tmp_path / "gate.xml").read_text()
    assert systems.counted() == {"new": count, "old": count}

    fresh = gated(cli, config, "--ask", "new")
    assert systems.counted() == {"new": 2 * count, "old": count}
    assert (fresh["verdict"], fresh["answers"]["new"]["asked"], fresh["answers"]["old"]["asked"]) == ("worse", count, 0)
    again = gated(cli, config)
    assert (again["verdict"], again["answers"]["new"]["asked"]) == ("worse", 0), "the newest answers stay"
    assert systems.counted() == {"new": 2 * count, "old": count}
    assert answers_of(config) == 3 * count, "the earlier replies are kept"
    assert answers_of(config, "%/1") == count


def test_asking_anew_goes_on_after_a_kill_and_pays_nothing_twice(cli: CLI, tmp_path: Path, systems: Systems) -> None:
    config, count = tournament(tmp_path, systems), len(QUERIES)
    gated(cli, config)
    systems.says["new"], systems.delay_s = "", 0.2
    child = begin("gate", config, "--new", "new", "--old", "old", "--ask", "new", folder=tmp_path)
    wait_for(systems, 2 * count + 4, child)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    kept = answers_of(config, "%/1")
    assert 0 < kept < count
    systems.delay_s = 0.0
    before = systems.counted()["new"]
    went_on = gated(cli, config)
    assert went_on["answers"]["new"] | {"made": None} == {"answers": count, "made": None, "asked": count - kept}
    assert went_on["verdict"] == "worse"
    assert systems.counted()["new"] - before == count - kept


def test_another_asking_asks_again_and_equal_agents_share_it(tmp_path: Path, systems: Systems) -> None:
    same = http_agent(f"http://127.0.0.1:{systems.port}/new", mapping={"answer": "answer"})
    config = load_config(write_config(tmp_path, {"new": same, "twin": same}))
    for number, ask in enumerate(((), ("new",), ("twin",), ("new", "twin")), start=1):
        ran = run_agents(config, Quiet(), ask=ask)
        assert ran.complete
        assert len(systems.calls) == number * len(QUERIES)
        assert len({agent.identity for agent in ran.declared}) == 1


def test_a_commit_as_version_asks_anew_once_for_each_commit(
    cli: CLI, tmp_path: Path, systems: Systems, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, count = tournament(tmp_path, systems, version="build ${GIT_SHA}"), len(QUERIES)
    monkeypatch.setenv("GIT_SHA", "1f0c")
    assert gated(cli, config)["passed"]
    systems.says["new"] = ""
    assert gated(cli, config)["answers"]["new"]["asked"] == 0
    monkeypatch.setenv("GIT_SHA", "9b2d")
    later = gated(cli, config)
    assert (later["verdict"], later["answers"]["new"]["asked"], later["answers"]["old"]["asked"]) == ("worse", count, 0)
    settings = json.loads(cli("leaderboard", config, "--format", "json").out)
    assert settings["complete"]
    monkeypatch.delenv("GIT_SHA")
    for command in (("plan",), ("doctor",), ("run",), ("gate", "--new", "new", "--old", "old"), ("leaderboard",)):
        ended = cli(command[0], config, *command[1:])
        said = ended.out + ended.err
        assert ended.status, said
        line = next(line for line in said.splitlines() if "GIT_SHA" in line)
        assert "agents.new.version: the variable GIT_SHA is not set; set it, or write the version itself" in line


def test_answers_from_files_are_said_to_be_from_files(cli: CLI, tmp_path: Path, systems: Systems) -> None:
    rows = "".join(f"{query},It is the answer to {query}.\n" for query in QUERIES)
    (tmp_path / "old.csv").write_text(f"qid,answer\n{rows}")
    agents = {
        "new": http_agent(f"http://127.0.0.1:{systems.port}/new", mapping={"answer": "answer"}),
        "old": {"kind": "file", "answers": "old.csv"},
    }
    config = write_config(tmp_path, agents)
    shown = gated(cli, config, form="md").out
    assert f"Answers of old: {len(QUERIES)}, from a file." in shown
    assert f"{len(QUERIES)} asked anew." in shown
    looked = cli("compare", config.with_suffix(".db"), "new", "old", "--format", "md").out
    assert "asked anew" not in looked, "a command that asks nobody does not say so"
    assert "Answers of new: 8, made " in looked


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("gate", "--new", "new", "--old", "old", "--ask", "nwe"), "--ask nwe: name new or old, which this gate"),
        (("gate", "--new", "new", "--old", "old", "--ask", "old"), "--ask old: its answers are from a file"),
        (("run", "--ask", "nwe"), "--ask nwe: the configuration has no agent of this name to ask; did you mean 'new'?"),
        (("run", "--ask", "new", "--stage", "pairwise"), "--ask new: goes with the stage agents; add --stage agents"),
    ],
)
def test_who_cannot_be_asked_is_one_line_before_anything_is_sent(
    cli: CLI, tmp_path: Path, systems: Systems, command: tuple[str, ...], says: str
) -> None:
    (tmp_path / "old.csv").write_text("qid,answer\nq0,It is.\n")
    agents = {
        "new": http_agent(f"http://127.0.0.1:{systems.port}/new", mapping={"answer": "answer"}),
        "old": {"kind": "file", "answers": "old.csv"},
    }
    config = write_config(tmp_path, agents)
    ended = cli(command[0], config, *command[1:])
    assert (ended.status, systems.calls) == (2, [])
    assert says in ended.err
    assert ended.err.count("\n") == 1
    assert not config.with_suffix(".db").exists()


def test_a_store_is_only_looked_at(cli: CLI, tmp_path: Path, systems: Systems) -> None:
    config = tournament(tmp_path, systems)
    gated(cli, config)
    ended = cli("gate", config.with_suffix(".db"), "--new", "new", "--old", "old", "--ask", "new")
    assert (ended.status, "a store does not say how to ask an agent" in ended.err) == (2, True)
    assert "0 asked anew" in cli("gate", config.with_suffix(".db"), "--new", "new", "--old", "old").out


def test_a_run_asks_anew_too_and_the_leaderboard_is_of_the_new_answers(
    cli: CLI, tmp_path: Path, systems: Systems
) -> None:
    config, count = tournament(tmp_path, systems), len(QUERIES)
    assert cli("run", config).status == 0
    systems.says["new"] = ""
    ran = cli("run", config, "--ask", "new", "--format", "json")
    assert (ran.status, systems.counted()) == (0, {"new": 2 * count, "old": count})
    assert [(line["agent"], line["wins"]) for line in json.loads(ran.out)["agents"]] == [("old", count), ("new", 0)]
