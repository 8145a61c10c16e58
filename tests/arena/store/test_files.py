"""A store in a file: everything wrong with the file is one line, and what is not ours is left alone."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from arena.store import SCHEMA_VERSION, Store
from judges.errors import InputError, RagleagueError, StoreError
from tests.support.stores import DATA, JUDGMENT, LABEL, save


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.create(str(tmp_path / "s.db"))
    yield opened
    opened.close()


def one_line(error: RagleagueError, path: Path) -> str:
    assert str(error).startswith(str(path))
    assert "\n" not in str(error)
    return str(error)


def refused(path: Path) -> set[str]:
    """What opening and creating a store at ``path`` say; both must refuse."""
    told = set()
    for opening in (Store.open, Store.create):
        with pytest.raises(RagleagueError) as caught:
            opening(str(path))
        told.add(one_line(caught.value, path))
    return told


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"these are my notes\n" * 500)
    assert refused(path) == {f"{path}: not a ragleague store, or damaged"}
    assert path.read_bytes() == b"these are my notes\n" * 500


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    for number, statement in enumerate(("CREATE TABLE album (title TEXT)", "CREATE TABLE state (song TEXT)")):
        path = tmp_path / f"music{number}.db"
        with sqlite3.connect(path) as connection:
            connection.execute(statement)
        connection.close()
        before = path.read_bytes()
        assert refused(path) == {f"{path}: not a ragleague store"}
        assert path.read_bytes() == before
        assert sorted(file.name for file in tmp_path.glob(f"music{number}*")) == [path.name]


def test_a_store_of_a_later_version_is_refused_and_left_alone(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE state SET schema_version = 99")
        connection.execute("DROP TABLE answer")
    connection.close()
    before = path.read_bytes()
    assert refused(path) == {f"{path}: written by another version of ragleague (schema 99, not {SCHEMA_VERSION})"}
    assert path.read_bytes() == before


def test_a_damaged_store_is_one_line(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store.begin("one", {}, DATA, [LABEL])
    save(store, *(replace(JUDGMENT, judgment_id=f"id-{number}", reply="x" * 500) for number in range(500)))
    store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged") as caught:
        Store.open(str(path)).results([f"id-{number}" for number in range(500)])
    one_line(caught.value, path)
    path.write_bytes(bytes(content[:100]))
    refused(path)


def test_an_empty_file_becomes_a_store_and_is_none_before(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(StoreError, match="not a ragleague store"):
        Store.open(str(path))
    Store.create(str(path)).close()
    Store.open(str(path)).close()


def test_a_missing_store_or_folder_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no store there") as caught:
        Store.open(str(tmp_path / "gone.db"))
    one_line(caught.value, tmp_path / "gone.db")
    for opening in (Store.open, Store.create):
        with pytest.raises(RagleagueError) as told:
            opening(str(tmp_path / "gone" / "s.db"))
        one_line(told.value, tmp_path / "gone" / "s.db")
    assert list(tmp_path.iterdir()) == []
    refused(tmp_path)


@pytest.fixture
def nobodys_folder() -> Iterator[Path]:
    """A folder with a store, in which this process may not write: as root it becomes another user for the while."""
    folder = Path(tempfile.mkdtemp())
    store = Store.create(str(folder / "s.db"))
    save(store, JUDGMENT)
    store.close()
    folder.chmod(0o555)
    (folder / "s.db").chmod(0o444)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield folder
    os.seteuid(user)
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_store_that_cannot_be_written_is_one_line(nobodys_folder: Path) -> None:
    path = nobodys_folder / "s.db"
    with pytest.raises(StoreError) as caught:
        Store.create(str(path))
    one_line(caught.value, path)
    with pytest.raises(StoreError) as caught:
        Store.create(str(nobodys_folder / "new.db"))
    one_line(caught.value, nobodys_folder / "new.db")


def test_a_store_that_others_hold_for_long_is_one_line(store: Store, tmp_path: Path) -> None:
    """A writer waits half a minute; here the waiting is cut short."""
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute("BEGIN IMMEDIATE")
        with store._engine.connect() as held:
            held.exec_driver_sql("PRAGMA busy_timeout = 50")
        with pytest.raises(StoreError, match="another program keeps it locked"):
            save(store, JUDGMENT)
    connection.close()
    save(store, JUDGMENT)


def test_a_store_is_the_same_by_path_and_by_address(store: Store, tmp_path: Path) -> None:
    save(store, JUDGMENT)
    by_address = Store.open(f"sqlite:///{tmp_path / 's.db'}")
    assert by_address.results(["id-1"]) == {"id-1": JUDGMENT}
    by_address.close()


def test_a_store_lies_where_its_path_says(tmp_path: Path) -> None:
    folder = tmp_path / "which? 100%20 #1"
    folder.mkdir()
    Store.create(str(folder / "s.db")).close()
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    Store.open(str(folder / "s.db")).close()
