"""A store from one kind of database to the other: everything arrives, or nothing does."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import psycopg
import pytest

from arena.data.kinds import Annotation
from arena.store import Store
from arena.store.annotations import Annotations
from arena.store.copying import content, copy
from judges.errors import StoreError
from tests.conftest import CLI
from tests.support.postgres import PostgresServer
from tests.support.stores import DATA, FAILURE, GAME, JUDGMENT, LABEL, save


def filled(location: str) -> Store:
    """A store with something in every table that is not of the moment, and a hole in the numbers of its rows."""
    store = Store.create(location)
    for name in ("gone", "one"):
        store.begin(name, {"left_out": 1}, DATA, [LABEL, GAME])
    store.assign("one", [(LABEL, "id-1")])
    save(store, JUDGMENT)
    Annotations(store, "one").add([Annotation("verdict", "ann", "q1", "x", "y", "0" * 32, "A", 1.5)])
    return store


def test_a_store_goes_to_the_other_database_and_back(postgres: PostgresServer, tmp_path: Path) -> None:
    source = filled(str(tmp_path / "here.db"))
    server, back = postgres.database(), str(tmp_path / "back.db")
    copied = copy(str(tmp_path / "here.db"), server)
    assert copied == copy(server, back)
    there, again = Store.open(server), Store.open(back)
    assert content(source) == content(there) == content(again) == copied
    assert copied["judgment"].rows == 1
    assert (there.dataset("one"), there.results(["id-1"])) == (DATA, {"id-1": JUDGMENT})
    there.begin("three", {}, DATA, [LABEL])  # its number follows those that came along
    assert there.tournaments() == ["gone", "one", "three"]
    assert content(there)["wanted"] != copied["wanted"]
    for store in (source, there, again):
        store.close()


def test_a_run_on_the_copy_asks_for_nothing(
    cli: CLI, postgres: PostgresServer, played_demo: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(played_demo, tmp_path / "demo")
    here, there, server = folder / "tournament.yaml", folder / "moved.yaml", postgres.database()
    moved = cli("store", "copy", here, server)
    assert moved.status == 0
    assert re.fullmatch(
        r"\S+ copied to postgresql\S+: [\d,]+ judgments, [\d,]+ rows in all, each the same there\n", moved.out
    )
    there.write_text(re.sub("^store:.*", f"store: {server}", here.read_text(), flags=re.MULTILINE))
    ran = cli("run", there)
    assert ran.status == 0
    assert set(re.findall(r"(\d+) calls", ran.err)) == {"0"}


@pytest.mark.parametrize("as_it_was", [True, False])
def test_a_place_that_holds_something_is_refused(cli: CLI, tmp_path: Path, as_it_was: bool) -> None:
    filled(str(tmp_path / "here.db")).close()
    target = tmp_path / ("here.db" if as_it_was else "there.db")
    if not as_it_was:
        filled(str(target)).close()
    ended = cli("store", "copy", tmp_path / "here.db", target)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert f"{target}: is not empty" in ended.err


def test_what_arrives_changed_is_not_kept(postgres: PostgresServer, tmp_path: Path) -> None:
    filled(str(tmp_path / "here.db")).close()
    server = postgres.database()
    Store.create(server).close()
    with psycopg.connect(server) as connection:
        connection.execute(
            "CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $$ "
            "BEGIN IF NEW.agent = 'x' THEN NEW.text = upper(NEW.text); END IF; RETURN NEW; END $$"
        )
        connection.execute("CREATE TRIGGER shouting BEFORE INSERT ON answer FOR EACH ROW EXECUTE FUNCTION shout()")
    with pytest.raises(StoreError, match="the copy of table 'answer' differs from the source"):
        copy(str(tmp_path / "here.db"), server)
    emptied = Store.open(server)
    assert {each.rows for each in content(emptied).values()} == {0}
    emptied.close()


def test_what_a_server_cannot_hold_is_one_line(postgres: PostgresServer, tmp_path: Path, cli: CLI) -> None:
    """SQLite keeps the character NUL; PostgreSQL keeps it in no text."""
    path = tmp_path / "here.db"
    store = filled(str(path))
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE judgment SET reason = 'nul' || char(0)")
    store.close()
    ended = cli("store", "copy", path, postgres.database(), "--format", "json")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert "NUL" in ended.err


def test_machines_get_counts_and_digests(cli: CLI, tmp_path: Path) -> None:
    source = filled(str(tmp_path / "here.db"))
    save(source, FAILURE)
    told = json.loads(cli("store", "copy", tmp_path / "here.db", tmp_path / "there.db", "--format", "json").out)
    assert told == {name: {"rows": each.rows, "digest": each.digest} for name, each in content(source).items()}
    source.close()
