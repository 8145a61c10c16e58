"""The store: what goes in comes out, judgments stay, and everything wrong with a file is one line."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.dataset import Dataset
from arena.store import SCHEMA_VERSION, Runner, Store, Wanted, chunks
from judges.errors import InputError, RagarenaError, StoreError
from judges.types import Answer, Document, JudgeFailure, Judgment, Query, Retrieved, Task, Usage

JUDGMENT = Judgment(
    "id-1", 2, "On the subject.", '{"label": 2}', "gpt-x-2026", Usage(10, 3, 5), 2, 0.25, 0.001, ("first try",)
)
FAILURE = JudgeFailure("id-1", "contract", "not a label", "no", "gpt-x", Usage(10, None, 5), 3, 0.5, None, ("a", "b"))
DATA = Dataset(
    {"q2": Query("q2", "how?", {"lang": "en"}), "q1": Query("q1", "why?")},
    {"d1": Document("d1", "one", {"title": "T"}), "d2": Document("d2", "two")},
    {("q1", "x"): Answer("q1", "x", "because"), ("q1", "y"): Answer("q1", "y", "", {"model": "m"})},
    {"q1": (Retrieved("q1", "d1", "x", 1, 0.5), Retrieved("q1", "d2", "x", 2), Retrieved("q1", "d1", "y", 1, -1.0))},
    {"q1": {"d1": 2, "nobody's": 1}, "q2": {"d1": -1}},
)
LABEL = Wanted(Task.RELEVANCE, "strong", "q1", "d1")
GAME = Wanted(Task.PAIRWISE, "strong", "q1", "x", "y", "ab")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.create(str(tmp_path / "s.db"))
    yield opened
    opened.close()


def save(store: Store, *results: Judgment | JudgeFailure) -> None:
    store.save([(Task.RELEVANCE, "reasoner@1", result) for result in results])


@pytest.mark.parametrize(
    "result",
    [
        JUDGMENT,
        FAILURE,
        Judgment("id-2", "TIE", "", "", "m"),
        Judgment("id-3", {"tone": 2, "depth": 0}, "é 𝄞", "{}", "m", Usage(), 1, 0.0, 0.0),
        JudgeFailure("id-4", "timeout", "no reply", None),
    ],
    ids=["label", "failure", "verdict", "grades", "bare failure"],
)
def test_a_result_comes_back_equal(store: Store, result: Judgment | JudgeFailure) -> None:
    save(store, result)
    assert store.results([result.judgment_id, "unknown"]) == {result.judgment_id: result}


@given(st.text(), st.text(), st.text())
def test_any_text_can_be_kept(reason: str, reply: str, rejected: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(f"{folder}/s.db")
        save(store, replace(JUDGMENT, reason=reason, reply=reply, rejected=(rejected,)))
        kept = store.results(["id-1"])["id-1"]
        assert isinstance(kept, Judgment)
        assert (kept.outcome, kept.rejected) == (2, (rejected,))
        if "\0" not in reason + reply:
            assert (kept.reason, kept.reply) == (reason, reply)
        store.close()


@pytest.mark.parametrize("text", ["half \ud800", "\udfff\ud800", "nul \0 nul"])
def test_what_no_database_holds_is_kept_with_a_replacement(store: Store, text: str) -> None:
    results = [
        replace(JUDGMENT, reason=text, reply=text),
        replace(FAILURE, judgment_id="id-2", message=text, reply=text),
    ]
    save(store, *results)
    for kept in store.results(["id-1", "id-2"]).values():
        assert "\ufffd" in str(kept.reply)


def test_a_judgment_stays_and_a_failure_does_not(store: Store) -> None:
    save(store, FAILURE)
    later = replace(FAILURE, cause="timeout", reply=None)
    save(store, later)
    assert store.results(["id-1"]) == {"id-1": later}
    save(store, JUDGMENT)
    save(store, FAILURE)
    save(store, replace(JUDGMENT, outcome=0))
    save(store, replace(JUDGMENT, outcome=1), FAILURE)
    assert store.results(["id-1"]) == {"id-1": JUDGMENT}


def test_many_results_are_found_at_once(store: Store) -> None:
    results = [replace(JUDGMENT, judgment_id=f"id-{number}") for number in range(1700)]
    save(store, *results)
    assert len(store.results([result.judgment_id for result in results])) == 1700


def test_the_data_come_back_equal(store: Store) -> None:
    store.begin("one", {"k": 1}, DATA, [])
    assert store.dataset("one") == DATA
    assert list(store.dataset("one").queries) == ["q2", "q1"]
    assert store.dataset("one").digest() == DATA.digest()
    changed = replace(DATA, answers={("q2", "x"): Answer("q2", "x", "so")})
    store.begin("one", {"k": 1}, changed, [])
    assert store.dataset("one") == changed


def test_wants_keep_their_order_and_point_to_their_results(store: Store) -> None:
    store.begin("one", {}, DATA, [GAME, LABEL, replace(GAME, order="ba")])
    assert store.wanted("one") == [(GAME, None), (LABEL, None), (replace(GAME, order="ba"), None)]
    store.assign("one", [(LABEL, "id-1"), (GAME, "id-9")])
    save(store, JUDGMENT)
    assert store.outcomes("one", Task.RELEVANCE) == [(LABEL, JUDGMENT)]
    assert store.outcomes("one", Task.PAIRWISE) == [(GAME, None), (replace(GAME, order="ba"), None)]
    assert store.wanted("one", Task.PAIRWISE)[0] == (GAME, "id-9")


def test_beginning_again_forgets_wants_and_no_judgment(store: Store) -> None:
    store.begin("one", {"k": 1}, DATA, [LABEL])
    store.assign("one", [(LABEL, "id-1")])
    save(store, JUDGMENT)
    store.begin("one", {"k": 2}, DATA, [GAME])
    assert store.wanted("one") == [(GAME, None)]
    assert store.settings("one") == {"k": 2}
    assert store.results(["id-1"]) == {"id-1": JUDGMENT}


def test_tournaments_share_judgments_and_nothing_else(store: Store) -> None:
    store.begin("one", {"k": 1}, DATA, [LABEL])
    store.begin("two", {"k": 2}, replace(DATA, answers={}), [LABEL])
    store.assign("one", [(LABEL, "id-1")])
    assert store.tournaments() == ["one", "two"]
    assert (store.wanted("one"), store.wanted("two")) == ([(LABEL, "id-1")], [(LABEL, None)])
    assert (store.dataset("one"), store.dataset("two").answers) == (DATA, {})


def test_names_that_could_run_together_stay_apart(store: Store) -> None:
    wants = [
        replace(GAME, item=item, other=other) for item, other in (("a-b", "c"), ("a", "b-c"), ("a", "b"), ("", "ab"))
    ]
    store.begin("one", {}, DATA, wants)
    store.assign("one", [(want, f"id-{number}") for number, want in enumerate(wants)])
    assert store.wanted("one") == [(want, f"id-{number}") for number, want in enumerate(wants)]


def test_a_beginning_that_fails_leaves_the_earlier_one(store: Store) -> None:
    store.begin("one", {"k": 1}, DATA, [LABEL])

    def wants() -> Iterator[Wanted]:
        yield GAME
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        store.begin("one", {"k": 2}, DATA, wants())
    assert (store.wanted("one"), store.settings("one")) == ([(LABEL, None)], {"k": 1})


def test_every_change_shows_to_other_readers(store: Store, tmp_path: Path) -> None:
    reader = Store.open(str(tmp_path / "s.db"))
    seen = [reader.changes()]
    for change in (
        lambda: store.begin("one", {}, DATA, [LABEL]),
        lambda: store.assign("one", [(LABEL, "id-1")]),
        lambda: save(store, JUDGMENT),
    ):
        change()
        seen.append(reader.changes())
    assert seen == sorted(set(seen))
    assert reader.outcomes("one", Task.RELEVANCE) == [(LABEL, JUDGMENT)]
    assert [reader.changes(), reader.changes()] == [seen[-1]] * 2
    reader.close()


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


def test_creating_again_opens_what_is_there(store: Store, tmp_path: Path) -> None:
    save(store, JUDGMENT)
    again = Store.create(str(tmp_path / "s.db"))
    assert again.results(["id-1"]) == {"id-1": JUDGMENT}
    again.close()


def one_line(error: RagarenaError, path: Path) -> str:
    assert str(error).startswith(str(path))
    assert "\n" not in str(error)
    return str(error)


def refused(path: Path) -> set[str]:
    """What opening and creating a store at ``path`` say; both must refuse."""
    told = set()
    for opening in (Store.open, Store.create):
        with pytest.raises(RagarenaError) as caught:
            opening(str(path))
        told.add(one_line(caught.value, path))
    return told


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE state (song TEXT)")
        connection.execute("CREATE TABLE album (title TEXT)")
    connection.close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"these are my notes\n" * 500)
    assert refused(path) == {f"{path}: not a ragarena store, or damaged"}
    assert path.read_bytes() == b"these are my notes\n" * 500


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    for number, statement in enumerate(("CREATE TABLE album (title TEXT)", "CREATE TABLE state (song TEXT)")):
        path = tmp_path / f"music{number}.db"
        with sqlite3.connect(path) as connection:
            connection.execute(statement)
        connection.close()
        before = path.read_bytes()
        assert refused(path) == {f"{path}: not a ragarena store"}
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
    assert refused(path) == {f"{path}: written by another version of ragarena (schema 99, not {SCHEMA_VERSION})"}
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
    with pytest.raises(StoreError, match="not a ragarena store"):
        Store.open(str(path))
    Store.create(str(path)).close()
    Store.open(str(path)).close()


def test_a_missing_store_or_folder_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no store there") as caught:
        Store.open(str(tmp_path / "gone.db"))
    one_line(caught.value, tmp_path / "gone.db")
    for opening in (Store.open, Store.create):
        with pytest.raises(RagarenaError) as told:
            opening(str(tmp_path / "gone" / "s.db"))
        one_line(told.value, tmp_path / "gone" / "s.db")
    assert list(tmp_path.iterdir()) == []
    refused(tmp_path)
    with pytest.raises(InputError, match="only SQLite stores are supported"):
        Store.create("postgresql://server/docs")


def test_an_unknown_tournament_is_the_users_mistake(store: Store) -> None:
    store.begin("one", {}, DATA, [])
    with pytest.raises(InputError, match="no tournament named 'two'; there are one"):
        store.settings("two")
    with pytest.raises(InputError, match="no tournament named 'two'"):
        store.wanted("two")
    with pytest.raises(InputError, match="no tournament named 'two'"):
        store.dataset("two")


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


WRITER = """
import sys
from arena.dataset import Dataset
from arena.store import Store, Wanted
from judges.types import JudgeFailure, Judgment, Query, Task
path, who = sys.argv[1:]
data = Dataset({"q": Query("q", "?")})
for _ in range(5):
    store = Store.create(path)
    wants = [Wanted(Task.RELEVANCE, "judge", "q", f"d{n}") for n in range(20)]
    store.begin("shared", {}, data, wants)
    for n in range(20):
        right = (n % 2 == 0) == (who == "a")
        found = Judgment(f"id-{n}", 1, who, "", "m") if right else JudgeFailure(f"id-{n}", "empty", who)
        store.save([(Task.RELEVANCE, "p@1", found), (Task.RELEVANCE, "p@1", Judgment(f"{who}-{n}", 1, who, "", "m"))])
        store.assign("shared", [(wants[n], f"id-{n}")])
        store.outcomes("shared", Task.RELEVANCE)
    store.close()
"""


def test_two_processes_write_one_store_at_once(tmp_path: Path) -> None:
    """Both make it, begin the same tournament and judge the same things; nothing fails and no judgment is lost."""
    path = tmp_path / "s.db"
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER, path, who], stderr=subprocess.PIPE, text=True, cwd=Path.cwd())
        for who in "ab"
    ]
    for process in running:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    store = Store.open(str(path))
    kept = store.results([f"{who}-{number}" for who in ("id", "a", "b") for number in range(20)])
    assert len(kept) == 60
    assert all(isinstance(result, Judgment) for result in kept.values())
    assert [kept[f"id-{number}"].reason for number in range(4)] == ["a", "b", "a", "b"]  # type: ignore[union-attr]
    store.close()


def test_a_crowd_of_processes_can_make_one_store(tmp_path: Path) -> None:
    """Turning a new file to write-ahead logging while others do the same must not fail."""
    code = "import sys; from arena.store import Store; Store.create(sys.argv[1]).close()"
    running = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path / "s.db"], stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [process.communicate(timeout=60)[1] for process in running] == [""] * 4
    Store.open(str(tmp_path / "s.db")).close()


def test_chunks_hold_everything_in_order() -> None:
    assert list(chunks(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(chunks([], 2)) == []


def test_beginning_again_with_nothing_changed_keeps_what_wants_are_linked_to(store: Store) -> None:
    wants = [Wanted(Task.PAIRWISE, "j", "q1", "x", other, "ab") for other in ("y", "z")]
    store.begin("t", {"a": 1}, DATA, wants)
    store.save([(Task.PAIRWISE, "p@1", Judgment("1", "A", "", "", "m"))])
    store.assign("t", [(wants[0], "1")])
    added = Wanted(Task.PAIRWISE, "j", "q1", "y", "z", "ab")
    store.begin("t", {"a": 1}, DATA, [added, wants[0]])
    assert store.wanted("t") == [(added, None), (wants[0], "1")]
    store.begin("t", {"a": 2}, DATA, [added, wants[0]])
    assert store.wanted("t") == [(added, None), (wants[0], None)]


def test_what_one_runner_is_about_to_ask_no_other_one_asks(store: Store) -> None:
    wants = [Wanted(Task.PAIRWISE, "j", "q1", "x", other, "ab") for other in ("y", "z")]
    store.begin("t", {}, DATA, wants)
    here, there = Runner(), Runner()
    links = list(zip(wants, ("1", "2"), strict=True))
    unknown = lambda known: known is None
    for runner in (here, there):
        store.beat(runner)
    assert store.claim("t", links[:1], here, unknown) == ({}, set())
    assert store.claim("t", links, there, unknown) == ({}, {"1"})
    judged = Judgment("1", "A", "", "", "m")
    store.save([(Task.PAIRWISE, "p@1", judged)])
    assert store.claim("t", links, there, unknown) == ({"1": judged}, set())
    assert store.claim("t", links, here, unknown) == ({"1": judged}, {"2"})
    store.leave(there)
    assert store.claim("t", links, here, unknown) == ({"1": judged}, set())


@pytest.mark.parametrize(
    ("host", "silent_s", "free"),
    [("here", 0, True), ("here", 999, True), ("elsewhere", 0, False), ("elsewhere", 999, True)],
)
def test_what_a_dead_runner_was_about_to_ask_is_free(
    store: Store, monkeypatch: pytest.MonkeyPatch, host: str, silent_s: float, free: bool
) -> None:
    """A process that is gone is known at once on its own machine, elsewhere when it has been silent for long."""
    want = Wanted(Task.PAIRWISE, "j", "q1", "x", "y", "ab")
    store.begin("t", {}, DATA, [want])
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    dead, here = Runner(host=host, pid=gone.pid), Runner(host="here")
    now = time.time()
    monkeypatch.setattr("arena.store.runners.time.time", lambda: now - silent_s)
    store.beat(dead)
    store.claim("t", [(want, "1")], dead, lambda known: True)
    monkeypatch.setattr("arena.store.runners.time.time", lambda: now)
    store.beat(here)
    assert (store.claim("t", [(want, "1")], here, lambda known: True)[1] == set()) is free


def test_containers_of_one_name_are_not_one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each counts processes by itself, so that another one's number means nothing here."""
    here = Runner()
    assert Runner().host == here.host
    monkeypatch.setattr(Path, "readlink", lambda _: Path("pid:[1]"))
    assert Runner().host != here.host


def test_a_store_of_the_first_version_is_brought_up_to_date_by_whoever_writes(store: Store, tmp_path: Path) -> None:
    want = Wanted(Task.PAIRWISE, "j", "q1", "x", "y", "ab")
    store.begin("t", {}, DATA, [want])
    store.assign("t", [(want, "1")])
    store.close()
    (path,) = tmp_path.glob("*.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            """
            CREATE TABLE first AS SELECT * FROM wanted;
            DROP TABLE wanted; DROP TABLE lease; DROP TABLE runner; DROP TABLE label;
            CREATE TABLE wanted (tournament_id INTEGER NOT NULL, task VARCHAR NOT NULL, judge VARCHAR NOT NULL,
                query_id VARCHAR NOT NULL, item VARCHAR NOT NULL, other VARCHAR NOT NULL, "order" VARCHAR NOT NULL,
                position INTEGER NOT NULL, judgment_id VARCHAR,
                PRIMARY KEY (tournament_id, task, judge, query_id, item, other, "order"),
                FOREIGN KEY(tournament_id) REFERENCES tournament (tournament_id));
            CREATE INDEX ix_wanted_judgment_id ON wanted (judgment_id);
            INSERT INTO wanted SELECT tournament_id, task, judge, query_id, item, other, "order", position, judgment_id
                FROM first;
            DROP TABLE first;
            UPDATE state SET schema_version = 1;
            """
        )
    with pytest.raises(StoreError, match="earlier version of ragarena; 'ragarena run' brings it up to date"):
        Store.open(str(path))
    Store.create(str(path)).close()
    brought = Store.open(str(path))
    assert brought.wanted("t") == [(want, "1")]
    assert brought.dataset("t") == replace(DATA, qrels={})
    brought.close()
