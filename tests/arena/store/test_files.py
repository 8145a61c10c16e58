"""A store in a file: everything wrong with the file is one line, and what is not ours is left alone."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from arena.store import Store
from arena.store.tables import SCHEMA_VERSION
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
    told = set()
    for opening in (Store.open, Store.create):
        with pytest.raises(RagleagueError) as caught:
            opening(str(path))
        told.add(one_line(caught.value, path))
    return told


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"these are my notes\n" * 500)
    assert refused(path) == {f"{path}: not a ragleague store, or damaged; name another, or restore it"}
    assert path.read_bytes() == b"these are my notes\n" * 500


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    for number, statement in enumerate(("CREATE TABLE album (title TEXT)", "CREATE TABLE state (song TEXT)")):
        path = tmp_path / f"music{number}.db"
        with sqlite3.connect(path) as connection:
            connection.execute(statement)
        connection.close()
        before = path.read_bytes()
        assert refused(path) == {f"{path}: not a ragleague store; name another"}
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
    assert refused(path) == {
        f"{path}: written by another version of ragleague (schema 99, not {SCHEMA_VERSION}); name a new store"
    }
    assert path.read_bytes() == before


def test_a_store_from_before_replies_had_a_time_is_refused_and_left_alone(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE agent_reply DROP COLUMN made_at")
        connection.execute("DROP TABLE asking")
    before = path.read_bytes()
    assert refused(path) == {
        f"{path}: written by another version of ragleague (without the column agent_reply.made_at); name a new store"
    }
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
    with pytest.raises(InputError, match="no store there; 'ragleague run' makes one"):
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
    with pytest.raises(InputError, match="this is a folder; name a file"):
        Store.create(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    refused(tmp_path)


@pytest.mark.parametrize("went", ["removed", "renamed", "folder"])
def test_a_store_that_is_removed_while_it_is_in_use_is_put_back_with_all_that_it_held(
    tmp_path: Path, went: str
) -> None:
    path = tmp_path / "kept" / "s.db"
    path.parent.mkdir()
    with closing(Store.create(str(path))) as store:
        save(store, JUDGMENT)
        if went == "folder":
            shutil.rmtree(path.parent)
        else:
            path.rename(tmp_path / "other.db")
            if went == "removed":
                for each in path.parent.iterdir():
                    each.unlink()
        with pytest.raises(StoreError, match=r"removed it while it was in use; it was restored .*, try again$"):
            save(store, replace(JUDGMENT, judgment_id="id-2"))
        save(store, replace(JUDGMENT, judgment_id="id-2"))
        assert len(store.results(["id-1", "id-2"])) == 2
    with closing(Store.open(str(path))) as again:
        assert again.results(["id-1"]) == {"id-1": JUDGMENT}
        assert len(again.results(["id-1", "id-2"])) == 2
    assert [each.name for each in path.parent.iterdir()] == ["s.db"]


def test_what_a_store_held_that_is_replaced_while_it_is_in_use_is_put_beside_it(store: Store, tmp_path: Path) -> None:
    save(store, JUDGMENT)
    Store.create(str(tmp_path / "other.db")).close()
    (tmp_path / "other.db").replace(tmp_path / "s.db")
    for _ in range(2):
        with pytest.raises(StoreError, match="replaced it while it was in use; its content was saved to") as caught:
            save(store, replace(JUDGMENT, judgment_id="id-2"))
    (aside,) = tmp_path.glob("s.*.db")
    assert f"its content was saved to {aside}; name that file" in str(caught.value)
    with closing(Store.open(str(aside))) as held:
        assert held.results(["id-1", "id-2"]) == {"id-1": JUDGMENT}


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
