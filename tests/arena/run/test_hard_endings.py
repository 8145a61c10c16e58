"""Runs that meet a full disk, a lock, a store that cannot be written or read, or are told to end.

What meets a hardship is the real command in a process of its own: one clear line, the exit status that ``main``
documents, a whole store, and no paid reply lost in silence.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import termios
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arena.config.schema import load_config
from arena.store import engine
from judges.types import Judgment
from tests.conftest import CLI, ROOT, Ended
from tests.support.children import BOUND_BY_PERMISSIONS, Child, begin, command, ended, files_at_most, ragleague, start
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.tournaments import results, run, write_data

QUERIES = 20
ALL = QUERIES * 6
FILE = """
name: hard
store: kept/store.db
data: {{queries: queries.csv, documents: documents.csv, answers: answers.csv}}
judges: {{judge: {{provider: openai, model: m, base_url: '{url}', api_key_env: JUDGE_KEY, concurrency: 4}}}}
pairwise: {{judges: judge, documents: {{include: false}}}}
ratings: {{min_coverage: 0, bootstrap: {{samples: 20}}}}
"""


def wordily(call: Call) -> Reply:
    reply = steady_judge(call)
    return Reply(text=(reply.text or "").replace("Read with care.", "Read with care. " * 100), delay_s=0.005)


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer(wordily) as running:
        yield running


@pytest.fixture
def config(tmp_path: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUDGE_KEY", "none")
    return written(tmp_path / "hard.yaml", server)


def written(path: Path, server: LLMServer) -> Path:
    write_data(path.parent, [f"q{number}" for number in range(QUERIES)])
    (path.parent / "kept").mkdir()
    path.write_text(FILE.format(url=server.openai_url))
    return path


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, LLMServer]]:
    with pytest.MonkeyPatch.context() as patched, LLMServer(wordily) as server:
        patched.setenv("JUDGE_KEY", "none")
        config = written(tmp_path_factory.mktemp("judged") / "hard.yaml", server)
        assert run(load_config(config)).complete
        yield config, server


@pytest.fixture
def played(judged: tuple[Path, LLMServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUDGE_KEY", "none")
    return shutil.copytree(judged[0].parent, tmp_path / "copy") / "hard.yaml"


@pytest.fixture
def asked(judged: tuple[Path, LLMServer]) -> Iterator[None]:
    before = len(judged[1].calls)
    yield
    assert len(judged[1].calls) == before


def store_of(config: Path) -> Path:
    return config.parent / "kept/store.db"


def kept(config: Path) -> int:
    return sum(isinstance(result, Judgment) for result in results(load_config(config)).values())


def one_line(done: Ended, status: int = 2) -> str:
    assert (done.status, done.out) == (status, ""), done
    assert done.err.count("\n") == 1, done.err
    line = done.err.rstrip()
    assert line.startswith("error: ")
    return line


def whole(store: Path) -> bool:
    with closing(sqlite3.connect(store)) as connection:
        return list(connection.execute("PRAGMA integrity_check")) == [("ok",)]


def goes_on(config: Path, server: LLMServer, said_lost: int) -> None:
    """The next run requests only what is missing; requests sent twice were in flight, or reported as lost."""
    there = kept(config)
    assert 0 < there < ALL
    asked = len(server.calls)
    assert asked - there <= said_lost + 4, "every reply is stored, or said to be lost, or was in flight"
    assert run(load_config(config)).complete
    assert kept(config) == ALL
    assert len(server.calls) == asked + ALL - there
    assert max(Counter(call.sha256 for call in server.calls).values()) <= 2


def lost(line: str) -> int:
    told = re.search(r"; replies that arrived but could not be stored: (\d+)$", line)
    assert told is not None, line
    return int(told[1])


def test_a_file_that_may_not_grow_ends_a_run_with_a_whole_store(config: Path, server: LLMServer) -> None:
    line = one_line(ragleague(config.parent, "run", config, hardship=files_at_most(750_000)))
    assert "kept/store.db: the disk is full or fails" in line
    assert whole(store_of(config))
    goes_on(config, server, lost(line))


SMALL_DISK = """
mount -t tmpfs -o size=900k none kept || exit 99
"$@"
status=$?
mkdir -p saved && cp kept/* saved/
exit $status
"""


def test_a_full_disk_ends_a_run_with_a_whole_store(config: Path, server: LLMServer) -> None:
    """The disk is a real one of 600 kB, mounted only for the child process."""
    shell = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SMALL_DISK, "sh"]
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    done = ended(start([*shell, *command("run", config)], config.parent))
    if done.status in {1, 99} and "error: " not in done.err:
        pytest.skip(f"no mount is allowed here: {done.err.strip()}")
    line = one_line(done)
    assert "kept/store.db: the disk is full" in line
    shutil.copytree(config.parent / "saved", config.parent / "kept", dirs_exist_ok=True)
    assert whole(store_of(config))
    goes_on(config, server, lost(line))


def impatient(seconds: float) -> str:
    """Python code that shortens the half minute for which a process waits for a lock."""
    return f"import arena.store.engine as engine; engine.PATIENCE_S = {seconds}"


@pytest.mark.usefixtures("asked")
def test_a_store_that_is_locked_throughout_is_one_line(cli: CLI, played: Path) -> None:
    with closing(sqlite3.connect(store_of(played), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = ended(begin("run", played, folder=played.parent, before=impatient(0.2)))
        assert "kept/store.db: another program keeps it locked" in one_line(done)
        engine.PATIENCE_S, began = 240.0, time.monotonic()
        assert cli("leaderboard", played).status == 0
        assert time.monotonic() - began < 0.5 * engine.PATIENCE_S, "readers do not wait"
        other.execute("ROLLBACK")
    assert kept(played) == ALL


def test_a_store_that_is_locked_during_a_run_loses_no_reply_in_silence(config: Path, server: LLMServer) -> None:
    child = begin("run", config, folder=config.parent, before=impatient(0.3))
    wait_until(lambda: len(server.calls) >= 40, child)
    with closing(sqlite3.connect(store_of(config), isolation_level=None, timeout=10)) as other:
        other.execute("BEGIN IMMEDIATE")
        line = one_line(ended(child))
        other.execute("ROLLBACK")
    assert "kept/store.db: another program keeps it locked" in line
    assert whole(store_of(config))
    goes_on(config, server, lost(line))


def test_a_run_whose_store_is_removed_puts_it_back_and_goes_on(config: Path, server: LLMServer) -> None:
    child = begin("run", config, folder=config.parent)
    wait_until(lambda: len(server.calls) >= 40, child)
    shutil.rmtree(config.parent / "kept")
    done = ended(child)
    assert done.status == 0
    assert "kept/store.db: somebody removed it while it was in use; it was restored with all" in done.err
    assert len(server.calls) == kept(config) == ALL


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("shut", ["file", "folder"])
def test_a_store_that_cannot_be_written_is_one_line_and_can_be_read(played: Path, shut: str) -> None:
    before = store_of(played).read_bytes()
    table = played.parent / "v.csv"
    table.write_text("qid,agent_a,agent_b,verdict\n1,x,y,A\n")
    folder = played.parent / "kept"
    closed = store_of(played) if shut == "file" else folder
    closed.chmod(0o555)
    try:
        for arguments in (("run", played), ("import", "verdicts", table, "--store", store_of(played))):
            line = one_line(ragleague(played.parent, *arguments, hardship=BOUND_BY_PERMISSIONS))
            assert "kept/store.db: cannot be written; fix its permissions" in line
        assert ragleague(played.parent, "leaderboard", played, hardship=BOUND_BY_PERMISSIONS).status == 0
        if shut == "folder":
            new = folder / "new.db"
            line = one_line(
                ragleague(played.parent, "import", "verdicts", table, "--store", new, hardship=BOUND_BY_PERMISSIONS)
            )
            assert "kept/new.db: cannot be opened; fix the permissions" in line
    finally:
        closed.chmod(0o755)
    assert store_of(played).read_bytes() == before


def pages_overwritten(store: Path) -> None:
    whole = store.read_bytes()
    middle = len(whole) // 2
    store.write_bytes(whole[:8192] + b"\x5a" * (middle - 8192) + whole[middle:])


def settings_unreadable(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE tournament SET settings = '{\"ratings'")


def judgments_gone(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("DROP TABLE judgment")


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("harm", "said", "at_once"),
    [
        (pages_overwritten, "damaged; restore a copy", False),
        (settings_unreadable, "damaged; restore a copy", False),
        (judgments_gone, "damaged; restore a copy", True),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_store_that_cannot_be_read_is_one_line_and_left_alone(
    cli: CLI, played: Path, harm: object, said: str, at_once: bool
) -> None:
    assert callable(harm)
    harm(store_of(played))
    before = store_of(played).read_bytes()
    runs = [cli(*command, played) for command in (["leaderboard"], ["failures"])]
    runs.append(cli("export", "verdicts", played, played.parent / "out.csv"))
    if at_once:
        runs += [cli("run", played), cli("ui", played)]
    for done in runs:
        assert f"{store_of(played)}: {said}" in one_line(done)
    assert store_of(played).read_bytes() == before
    assert not (played.parent / "out.csv").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_told_to_end_keeps_what_is_in_flight_and_shows_what_there_is(
    config: Path, server: LLMServer, number: signal.Signals
) -> None:
    child = begin("run", config, folder=config.parent)
    wait_until(lambda: len(server.calls) >= 12, child)
    child.send_signal(number)
    done = ended(child)
    assert "Ranks" in done.out
    keeps_what_was_in_flight(config, server, done)


def test_a_run_whose_terminal_is_closed_ends_as_one_that_is_told_to(config: Path, server: LLMServer) -> None:
    ours, terminal = os.openpty()
    words = command("run", config, before=f"import os, fcntl; fcntl.ioctl({terminal}, {termios.TIOCSCTTY}, 0)")
    with (config.parent / "said").open("w") as said:
        child = subprocess.Popen(
            words,
            cwd=config.parent,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            start_new_session=True,
            stdout=terminal,
            stderr=said,
            pass_fds=[terminal],
        )
    os.close(terminal)
    wait_until(lambda: len(server.calls) >= 12, child)
    os.close(ours)  # the system sends SIGHUP
    child.send_signal(signal.SIGHUP)  # and so does a shell
    keeps_what_was_in_flight(config, server, Ended(child.wait(60), "", (config.parent / "said").read_text()))


def keeps_what_was_in_flight(config: Path, server: LLMServer, done: Ended) -> None:
    asked = len(server.calls)
    assert done.status == 3
    assert f"{ALL - asked} left of {ALL}" in done.err
    assert done.err.splitlines()[-1].startswith("incomplete: ")
    assert "Traceback" not in done.err
    assert kept(config) == asked < ALL
    assert whole(store_of(config))


def wait_until(come: object, child: Child | subprocess.Popen[Any]) -> None:
    assert callable(come)
    deadline = time.monotonic() + 120
    while not come():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)
