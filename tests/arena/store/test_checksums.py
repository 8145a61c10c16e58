"""``store check`` names whatever is no longer what was written; no other command looks."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from arena.store import Store
from arena.store.agents import AgentQuery, AgentReplies
from arena.store.annotations import Annotations
from arena.store.check import check, damage_behind, discard
from arena.store.database import Database
from judges.errors import StoreError
from judges.types import Task
from tests.arena.store.test_annotations import SAID
from tests.arena.store.test_replies import FAILURE, REPLY
from tests.conftest import CLI
from tests.support.sample_store import write_store
from tests.support.stores import DATA, GAME, JUDGMENT, LABEL, save

AGENTS = ("a", "b", "c")
FURTHER = replace(LABEL, item="d2")


@pytest.fixture
def store(store_location: str) -> Iterator[Store]:
    with closing(Store.create(store_location)) as made:
        made.begin("t", {"left_out": 1}, DATA, [LABEL, FURTHER])
        save(made, JUDGMENT, replace(JUDGMENT, judgment_id="2"))
        made.assign("t", [(LABEL, JUDGMENT.judgment_id), (FURTHER, "2")])
        yield made


DAMAGE = {
    "judgment 2 .*": "UPDATE judgment SET outcome = '1' WHERE judgment_id = '2'",
    "judgment .*": "UPDATE judgment SET model = 'another' WHERE judgment_id = '2'",
    "what tournament 't' wants .*": "UPDATE wanted SET judge = 'another' WHERE judgment_id = '2'",
    "what tournament 't' .*": "UPDATE wanted SET judgment_id = '3' WHERE judgment_id = '2'",
    "what tournament .*": "UPDATE wanted SET position = 7 WHERE judgment_id = '2'",
    "the settings of tournament 't'": "UPDATE tournament SET settings = '{\"a\": 2}'",
    "the settings of tournament 'u'": "UPDATE tournament SET name = 'u'",
    "the data of tournament 't'": "UPDATE query SET text = 'another'",
    "the data .*": "DELETE FROM answer",
}


@pytest.mark.parametrize("named", DAMAGE)
def test_what_was_changed_is_named(store: Store, named: str) -> None:
    assert check(store).problems == ()
    with store._engine.begin() as connection:
        connection.exec_driver_sql(DAMAGE[named])
    (problem,) = check(store).problems
    assert re.fullmatch(named, problem)


def test_a_changed_byte_takes_no_game_away_without_a_word(tmp_path: Path) -> None:
    """Also where no index of wants and judgments is looked through: an id or a tournament's number that is another."""
    path, verdict = tmp_path / "s.db", replace(JUDGMENT, judgment_id="0123456789", outcome="A")
    with closing(Store.create(str(path))) as made:
        made.begin("t", {"left_out": 1}, DATA, [GAME, replace(GAME, order="ba")])
        save(made, verdict, task=Task.PAIRWISE)
        made.assign("t", [(GAME, verdict.judgment_id)])
    with closing(Store.open(str(path))) as store:
        right = repr(store.games("t"))
    content, ended = path.read_bytes(), Counter[str]()
    headers = [match.start() for match in re.finditer(b"\x09\x1d", content)]  # of rows that begin with 1, "pairwise"
    for at in headers + [match.start() for match in re.finditer(verdict.judgment_id.encode(), content)]:
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with closing(Store.open(str(path))) as store:
            same, problems = repr(store.games("t")) == right, check(store).problems
            assert same or problems
            ended["found"] += bool(problems)
    assert ended["found"] >= 3  # the want's number and id, and the judgment's id, in their tables


def test_checksums_hold_through_all_that_is_done_to_wants(store: Store) -> None:
    store.extend("t", [FURTHER, replace(LABEL, item="d3")])
    store.assign("t", [(FURTHER, JUDGMENT.judgment_id)])
    assert check(store).problems == ()
    store.begin("t", {"left_out": 1}, DATA, [FURTHER, replace(LABEL, item="d4"), LABEL])  # keeps what was judged
    assert check(store).problems == ()
    assert dict(store.wanted("t"))[FURTHER] == JUDGMENT.judgment_id
    store.begin("t", {"left_out": 2}, DATA, [LABEL])
    assert check(store).problems == ()


def test_a_damaged_judgment_is_asked_for_again_once_it_is_discarded(store: Store) -> None:
    with store._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE judgment SET outcome = '0' WHERE judgment_id = '2'")
    found = check(store)
    assert "judgment 2 (relevance of d2 on query" in found.problems[0]
    discard(store, found)
    assert check(store).problems == ()
    assert [result for _, result in store.outcomes("t", Task.RELEVANCE)] == [JUDGMENT, None]


def test_damaged_data_are_written_anew_by_the_next_run(store: Store) -> None:
    with store._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE query SET text = 'another'")
    discard(store, check(store))
    assert check(store).problems == ("tournament 't', until its next run writes it again",)
    store.begin("t", {"left_out": 1}, DATA, [LABEL])
    assert check(store).problems == ()
    assert store.dataset("t") == DATA


def test_what_people_say_and_agents_reply_is_checked(store: Store) -> None:
    said, asked = Annotations(store, "t"), AgentQuery("agent", "why?")
    said.add([SAID, replace(SAID, item="y")])
    AgentReplies(store).save([(asked, FAILURE)])
    AgentReplies(store).save([(asked, REPLY)])
    assert (len(said.latest()), AgentReplies(store).replies([asked])) == (2, {asked: REPLY})
    assert check(store).problems == ()
    with store._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE annotation SET value = '1' WHERE item = 'y'")
        connection.exec_driver_sql("UPDATE agent_reply SET answer = 'no'")
    AgentReplies(store).save([(asked, REPLY)])  # of a runner that asked at the same time; the first answer stays
    assert check(store).problems == ("annotation 2", f"agent reply {asked.reply_id}")
    discard(store, check(store))
    assert check(store).problems == ()
    assert (said.latest(), AgentReplies(store).replies([asked])) == ([SAID], {})


def test_the_command_says_all_that_is_wrong(tmp_path: Path, cli: CLI) -> None:
    path = tmp_path / "s.db"
    write_store(path, agents=AGENTS, queries=6)
    assert cli("store", "check", path).status == 0
    with closing(sqlite3.connect(path)) as connection, connection:
        games = (
            "SELECT judgment_id FROM judgment WHERE task = 'pairwise' AND cause IS NULL ORDER BY judgment_id LIMIT 2"
        )
        connection.execute(f"UPDATE judgment SET outcome = '\"TIE \"' WHERE judgment_id IN ({games})")
        connection.execute("DELETE FROM query WHERE position = 5")
        connection.execute("DELETE FROM figures")
    board = cli("leaderboard", path)
    assert (board.status, board.err) == (2, f"error: {path}: damaged; restore a copy, or name a new store\n")
    found = cli("store", "check", path, "--format", "json")
    problems = json.loads(found.out)["problems"]
    assert found.status == 1
    assert sum(problem.startswith("judgment ") and "pairwise of" in problem for problem in problems) == 2
    assert any("the data of tournament" in problem for problem in problems)
    assert any("name a query that is not there" in problem for problem in problems)
    assert cli("store", "check", path, "--discard").status == 1
    assert not any(
        "judgment " in problem
        for problem in json.loads(cli("store", "check", path, "--format", "json").out)["problems"]
    )


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE query SET query_id = 'q99' WHERE position = 1",
        "UPDATE wanted SET other = '[' || other WHERE task = 'grading'",
        "UPDATE judgment SET outcome = replace(outcome, 'vital', 'vitel')",
        "UPDATE tournament SET settings = replace(settings, '\"query_id\"', '\"qukry_id\"')",
    ],
)
def test_a_damaged_row_that_nothing_can_be_made_of_is_one_line(
    played_demo: Path, tmp_path: Path, cli: CLI, statement: str
) -> None:
    path = tmp_path / "s.db"
    path.write_bytes((played_demo / "rag-handbook.db").read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM figures")
        connection.execute(statement)
    board = cli("leaderboard", path)
    assert (board.status, board.err.count("\n")) == (2, 1)
    assert "damaged (" in board.err
    assert "'ragleague store check' lists all damage" in board.err


def test_a_file_that_was_refused_is_not_blamed_for_a_later_error(tmp_path: Path) -> None:
    Database.used.clear()
    (tmp_path / "answers.csv").write_text("qid,agent,answer\n", encoding="utf-8")
    with pytest.raises(StoreError, match="not a ragleague store") as refused:
        Store.open(str(tmp_path / "answers.csv"))
    assert damage_behind() is None, refused  # which keeps the store that it refused
