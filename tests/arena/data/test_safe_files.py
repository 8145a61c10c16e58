"""Edits of a user's files: whole, only over the version that was edited, with the versions before."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from arena.data.safe_files import LOG, digest, history, history_folder, save
from judges.errors import DataError, InputError


def put(path: Path, text: str, *, seen: str | None, folder: Path | None = None, by: str = "ann") -> Path | None:
    return save(
        path, lambda draft: draft.write_text(text), folder=folder or path.parent, seen=seen, by=by, what=f"to {text}"
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bank.csv"
    path.write_text("one")
    return path


def test_every_version_that_was_replaced_is_kept_with_who_when_and_what(file: Path) -> None:
    for text in ("two", "three"):
        put(file, text, seen=digest(file))
    assert file.read_text() == "three"
    latest, first = history(file)
    assert (first.by, first.what, latest.what) == ("ann", "to two", "to three")
    assert first.at <= latest.at
    assert (first.after, latest.after) == (latest.before, digest(file))
    folder = history_folder(file)
    assert [(folder / entry.earlier).read_text() for entry in (first, latest)] == ["one", "two"]
    assert sorted(entry.name for entry in folder.iterdir()) == ["0001-bank.csv", "0002-bank.csv", LOG]
    assert sorted(entry.name for entry in file.parent.iterdir()) == ["bank.csv", "bank.csv.history"]


def test_what_somebody_else_wrote_meanwhile_is_not_overwritten(file: Path) -> None:
    seen = digest(file)
    file.write_text("theirs")
    with pytest.raises(InputError, match=r"bank\.csv: the file was changed since you opened it, and nothing was saved"):
        put(file, "mine", seen=seen)
    file.unlink()
    with pytest.raises(InputError, match="the file was changed since you opened it"):
        put(file, "mine", seen=seen)
    assert not file.exists()
    assert not history_folder(file).exists()


def test_of_many_edits_of_one_version_exactly_one_is_saved(file: Path) -> None:
    seen = digest(file)

    def attempt(number: int) -> bool:
        try:
            put(file, f"edit {number}", seen=seen)
        except InputError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(attempt, range(40)))
    assert sum(done) == 1
    assert file.read_text() == f"edit {done.index(True)}"
    assert len(history(file)) == 1


def test_a_new_file_is_made_and_never_put_in_the_place_of_one(tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    assert put(new, "first", seen=None) is None
    with pytest.raises(InputError, match=r"new\.csv: the file exists already and may have been edited"):
        put(new, "second", seen=None)
    assert new.read_text() == "first"
    assert history(new) == []


@pytest.mark.parametrize("linked", [False, True])
def test_nothing_outside_the_folder_is_written(file: Path, linked: bool) -> None:
    folder = file.parent / "project"
    folder.mkdir()
    path = folder / "link.csv" if linked else folder / ".." / "bank.csv"
    if linked:
        path.symlink_to(file)
    with pytest.raises(InputError, match="the folder of the configuration"):
        put(path, "mine", seen=digest(path), folder=folder)
    assert file.read_text() == "one"


def test_a_link_within_the_folder_stays_one(file: Path) -> None:
    link = file.with_name("link.csv")
    link.symlink_to(file)
    put(link, "two", seen=digest(link))
    assert link.is_symlink()
    assert file.read_text() == "two"
    assert history(link) == history(file) != []


@pytest.mark.parametrize("failure", [DataError("bank.csv", "wrong"), OSError(28, "No space left on device")])
def test_a_version_that_cannot_be_written_leaves_all_as_it_was(file: Path, failure: Exception) -> None:
    def write(draft: Path) -> None:
        draft.write_text("half")
        raise failure

    with pytest.raises(DataError):
        save(file, write, folder=file.parent, seen=digest(file), by="ann", what="nothing")
    assert [entry.name for entry in file.parent.iterdir()] == ["bank.csv"]
    assert file.read_text() == "one"


def test_who_may_read_the_file_stays(file: Path) -> None:
    file.chmod(0o600)
    earlier = put(file, "two", seen=digest(file))
    assert earlier is not None
    assert {stat.S_IMODE(path.stat().st_mode) for path in (file, earlier)} == {0o600}


def test_a_torn_line_of_the_log_spoils_no_later_one(file: Path) -> None:
    put(file, "two", seen=digest(file))
    log = history_folder(file) / LOG
    log.write_text(log.read_text() + '{"at": "20')
    with pytest.raises(DataError, match=r"log\.jsonl: has a damaged line"):
        history(file)
    put(file, "three", seen=digest(file))
    first, torn, last = log.read_text().splitlines()
    assert (json.loads(first)["what"], torn, json.loads(last)["what"]) == ("to two", '{"at": "20', "to three")
