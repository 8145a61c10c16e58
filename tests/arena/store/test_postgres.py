"""A store on a PostgreSQL server: what may go wrong there is one line, and no line shows a password."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from arena.store import Store, Wanted
from arena.store.runners import Runner
from arena.store.runs import Runs
from judges.errors import InputError, StoreError
from judges.types import Judgment, Task
from tests.conftest import CLI
from tests.support.postgres import PostgresServer
from tests.support.stores import DATA, GAME, JUDGMENT, save


def test_an_empty_database_is_no_store_until_a_run_makes_one(postgres: PostgresServer) -> None:
    location = postgres.database()
    with pytest.raises(InputError, match="no store there; 'ragleague run' makes one"):
        Store.open(location)
    Store.create(location).close()
    Store.open(location).close()


@pytest.mark.parametrize("statement", ["CREATE TABLE album (title TEXT)", "CREATE TABLE state (song TEXT)"])
def test_another_programs_database_is_refused_and_left_alone(postgres: PostgresServer, statement: str) -> None:
    location = postgres.database()
    with psycopg.connect(location) as connection:
        connection.execute(statement)
    for opening in (Store.open, Store.create):
        with pytest.raises(StoreError, match=r"not a ragleague store; name another$"):
            opening(location)
    with psycopg.connect(location) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert tables == (1,)


def test_a_server_that_does_not_answer_is_one_line_without_the_password(cli: CLI, tmp_path: Path) -> None:
    location = "postgresql+psycopg://me:planted-secret@127.0.0.1:1/docs"
    with pytest.raises(StoreError, match="no database server answers there") as caught:
        Store.create(location)
    ended = cli("leaderboard", location)
    for told in (str(caught.value), ended.err):
        assert "me:***@127.0.0.1:1/docs" in told
        assert "planted-secret" not in told
    assert (ended.status, ended.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("rest", "printed"),
    [
        ("me@127.0.0.1:1/docs?password=planted", "me@127.0.0.1:1/docs?***"),
        ("me@127.0.0.1:1/docs?sslmode=prefer&sslpassword=planted", "me@127.0.0.1:1/docs?sslmode=prefer&***"),
        ("me@127.0.0.1:1/docs?options=-capp.token%3Dplanted", "me@127.0.0.1:1/docs?***"),
        ("me:one@planted@127.0.0.1:1/docs", "me:***@127.0.0.1:1/docs"),
        ("me@127.0.0.1:1/docs?password=one&planted=two", "me@127.0.0.1:1/docs?***"),
        ("me@127.0.0.1:1/docs&password=planted", "me@127.0.0.1:1/docs?***"),
        ("me:planted@127.0.0.1:one/docs", "..."),
    ],
)
def test_no_message_shows_a_password_wherever_an_address_holds_one(
    cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: str, printed: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("verdicts.csv").write_text("qid,agent_a,agent_b,verdict\nq1,a,b,A\n")
    address = f"postgresql://{rest}"
    commands = [
        ("leaderboard", address),
        ("batches", address, "--cancel", "x"),
        ("import", "verdicts", "verdicts.csv", "--store", address),
        ("store", "copy", address, "copy.db"),
        ("report", address),
    ]
    for command in commands:
        ended = cli(*command)
        assert (ended.status, ended.err.count("\n")) == (2, 1)
        assert f"postgresql://{printed}: " in ended.err
        assert "planted" not in ended.out + ended.err


def test_an_address_where_a_file_is_asked_for_is_not_shown_with_its_password(cli: CLI) -> None:
    address = "postgresql://me:plant-ed@127.0.0.1/docs?password=planted&sslmode=prefer"
    for command in (("run", address), ("rate", address), ("calibrate", address, address), ("documents", address)):
        ended = cli(*command)
        assert ended.status == 2
        assert "me:***@127.0.0.1/docs?password=***" in ended.err
        assert "plant" not in ended.out + ended.err


def test_what_an_import_prints_next_has_no_password(cli: CLI, tmp_path: Path, postgres: PostgresServer) -> None:
    table = tmp_path / "verdicts.csv"
    table.write_text("qid,agent_a,agent_b,verdict\nq1,a,b,A\n")
    ended = cli("import", "verdicts", table, "--store", f"{postgres.database()}&password=planted")
    assert ended.status == 0
    assert ended.err == f"read: {table}: qid, agent_a, agent_b, verdict; 1 row, 1 verdict\n"
    assert "next:  ragleague leaderboard" in ended.out
    assert "planted" not in ended.out + ended.err


def test_other_servers_and_malformed_addresses_are_the_users_mistake() -> None:
    with pytest.raises(InputError, match="only SQLite and PostgreSQL stores are supported") as caught:
        Store.create("mysql://me:planted-secret@server/docs")
    with pytest.raises(InputError, match="not the address of a database") as malformed:
        Store.create("postgresql://me:planted-secret@server:port/docs")
    assert "planted-secret" not in str(caught.value) + str(malformed.value)


def test_without_a_driver_the_extra_is_named(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match="needs the extra 'postgres'"):
        Store.create(postgres.database())


def test_a_connection_that_is_cut_costs_one_line_and_no_judgment(postgres: PostgresServer) -> None:
    location = postgres.database()
    store = Store.create(location)
    save(store, JUDGMENT)
    with psycopg.connect(location, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises(StoreError, match="the database server went away"):
        store.changes()
    assert store.results(["id-1"]) == {"id-1": JUDGMENT}
    store.close()


ASKER = """
import os, signal, sys
from arena.store import Store, Wanted
from arena.store.runners import Runner
from judges.types import Judgment, Task
location, who = sys.argv[1:]
store, runner = Store.create(location), Runner()
store.beat(runner)
wants = [Wanted(Task.PAIRWISE, "j", "q1", f"a{n}", "b", "ab") for n in range(400)]
pairs = [(want, want.item) for want in wants]
if int(who) % 2:
    pairs.reverse()
asked = []
while True:
    open_ = 0
    store.beat(runner)
    for start in range(0, len(pairs), 20):
        part = pairs[start:start + 20]
        known, elsewhere = store.claim("t", part, runner, lambda result: result is None)
        mine = [ident for _, ident in part if ident not in known and ident not in elsewhere]
        if mine and who == "3":
            os.kill(os.getpid(), signal.SIGKILL)
        asked += mine
        store.save([(Task.PAIRWISE, "p@1", Judgment(ident, "A", who, "", "m")) for ident in mine])
        open_ += len(elsewhere)
    if not open_:
        break
store.leave(runner)
print("\\n".join(asked))
"""


def test_processes_that_want_the_same_ask_for_each_once(postgres: PostgresServer) -> None:
    """Three runners go through the same wants, one of them from the end: none waits for ever, nothing is asked twice.

    A fourth was killed with the first part that it took: the others take that over.
    """
    location = postgres.database()
    store = Store.create(location)
    wants = [Wanted(Task.PAIRWISE, "j", "q1", f"a{n}", "b", "ab") for n in range(400)]
    store.begin("t", {}, DATA, wants)

    def start(who: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", ASKER, location, str(who)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    killed = start(3)
    assert killed.communicate(timeout=120) == ("", "")
    assert killed.returncode == -signal.SIGKILL
    running = [start(who) for who in range(3)]
    ended = [process.communicate(timeout=120) for process in running]
    assert [errors for _, errors in ended] == [""] * 3
    asked = [ident for said, _ in ended for ident in said.split()]
    assert sorted(asked) == sorted(want.item for want in wants)
    assert all(result is not None for _, result in store.outcomes("t", Task.PAIRWISE))
    store.close()


def test_what_was_saved_between_the_look_and_the_lease_is_not_asked_again(postgres: PostgresServer) -> None:
    """The first runner saves while the second one decides what to ask for, which its own transaction cannot hold up."""
    location = postgres.database()
    first, second, here, there = Store.create(location), Store.open(location), Runner(), Runner()
    want = Wanted(Task.PAIRWISE, "j", "q1", "x", "y", "ab")
    first.begin("t", {}, DATA, [want])
    for runner in (here, there):
        first.beat(runner)
    judged = Judgment("1", "A", "", "", "m")
    looks = 0

    def to_be_asked(known: object) -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            first.save([(Task.PAIRWISE, "p@1", judged)])
        return known is None

    assert second.claim("t", [(want, "1")], there, to_be_asked) == ({"1": judged}, set())
    first.close()
    second.close()


def test_who_judges_waits_for_a_server_that_restarts_and_who_reads_is_told_at_once(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = postgres.database()
    store, runner = Store.create(location), Runner()
    store.begin("t", {}, DATA, [GAME])
    Runs(store, "t").begin(runner)
    store.beat(runner)
    store.claim("t", [(GAME, "id-1")], runner, lambda _: True)
    with postgres.away():
        saving = Thread(target=store.save, args=([(Task.PAIRWISE, "p@1", JUDGMENT)], runner))
        saving.start()
        saving.join(0.4)
        assert saving.is_alive(), "it waits for the server"
    saving.join(20)
    assert store.results(["id-1"]) == {"id-1": JUDGMENT}

    commit, cut = PGDialect_psycopg.do_commit, [True]

    def commit_and_be_cut(self: PGDialect_psycopg, connection: Any) -> None:
        commit(self, connection)
        if cut:
            cut.clear()
            connection.dbapi_connection.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

    store.claim("t", [(GAME, "id-2")], runner, lambda _: True)
    monkeypatch.setattr(PGDialect_psycopg, "do_commit", commit_and_be_cut)
    store.save([(Task.PAIRWISE, "p@1", replace(JUDGMENT, judgment_id="id-2"))], runner)
    assert not cut, "the reply to a commit was lost, and the whole was done again"
    (run,) = Runs(store, "t").all()
    assert run.spent["pairwise"].judged == 2, "nobody pays twice"
    store.close()

    other = postgres.database()
    Store.create(other).close()
    with postgres.away(), pytest.raises(StoreError, match="no database server answers there"):
        Store.open(other)
