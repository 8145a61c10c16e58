"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import typer
from filelock import FileLock
from hypothesis import settings
from msgspec import Struct

# Of small models and tables a second thread waits busily for the first.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from arena.cli.main import main
from arena.store import engine
from arena.store.database import Database
from tests.support.postgres import PostgresServer, postgres_server

typer.main.get_command = cache(typer.main.get_command)  # tests give a thousand commands, which are built once

settings.register_profile("untimed", deadline=None, max_examples=30)  # a busy machine is no failure
settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parents[1]


class Ended(Struct, frozen=True):
    """How a command ended."""

    status: int
    out: str
    err: str


CLI: TypeAlias = Callable[..., Ended]

LONGEST = (
    "test_ui_browser",
    "test_docs",
    "test_provider_transformers",
    "test_golden",
    "test_studies",
    "test_ui_runs",
    "test_kill",
    "test_hard_endings",
    "test_functions",
    "test_faults",
    "test_report",
    "test_ui_accessible_browser",
    "test_action",
    "test_configs",
    "test_batches",
    "test_tournament",
    "test_interface",
    "test_keys",
    "test_bombs",
    "test_false_sentences",
    "test_rated_tables",
    "test_errors",
    "test_read",
    "test_uncertainty",
    "test_examples",
    "test_queries_writing",
    "test_groups",
    "test_ui_review",
    "test_runs",
    "test_secret_items",
    "test_report_browser",
    "test_nugget_judging",
    "test_store",
    "test_checksums",
    "test_ui_pages",
    "test_cli_votes",
    "test_ui_serve",
    "test_ui_trust",
    "test_packaging",
)
"""Modules that take longest. They are begun first, so that at the end no worker is alone with one of them; those that
wait for processes and servers stand between those that compute."""

OF_MODELS = {
    "test_provider_transformers",
    "test_provider_extractive_qa",
    "test_local_batches",
    "test_exam_judging",
    "test_local_runs",
    "test_preferences",
    "test_embeddings",
}
"""Modules that run models in their own process: one worker loads what that needs, and teaches a model once."""


def pytest_configure() -> None:
    """Heed Ctrl-C and a closed terminal, which whoever starts the tests in the background or by ``nohup`` has ignored.

    Tests send both, and the commands that they start inherit what is ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection() -> None:
    """What is loaded now stays until the end: looking through it again and again takes a third of the collection."""
    gc.disable()


def pytest_collection_finish() -> None:
    """From here on there is garbage."""
    gc.enable()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before tests are deselected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as ``nightly`` what starts a Ray cluster, or a PostgreSQL server for more than the store's own tests.

    Put the longest modules first; with ``--no-loadscope-reorder`` workers take them in this order.
    """
    for item in items:
        assert isinstance(item, pytest.Function)
        given = item.callspec.params if hasattr(item, "callspec") else {}
        on_server = "postgres" in item.fixturenames or given.get("store_location") == "postgresql"
        if "cluster" in item.fixturenames or (on_server and item.path.parent.name != "store"):
            item.add_marker(pytest.mark.nightly)
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give whole modules to workers, and those of models to one."""
    from xdist.scheduler import LoadFileScheduling

    class ByModule(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module = super()._split_scope(nodeid)
            return "models" if Path(module).stem in OF_MODELS else module

    return ByModule(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded judgments of people and models that are not part of the project."""
    folder = Path(os.environ.get("RAGLEAGUE_SHARED", "../shared"))
    folder = folder if folder.is_absolute() else ROOT / folder
    if not (folder / "data").is_dir():
        message = "RAGLEAGUE_SHARED does not lead to the recorded data"
        if os.environ.get("RAGLEAGUE_REQUIRE_SHARED") == "1":
            pytest.fail(f"{message}, and RAGLEAGUE_REQUIRE_SHARED asks for them")
        pytest.skip(message)
    return folder


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CLI:
    """The command line in this process, without keys."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(engine, "PATIENCE_S", engine.PATIENCE_S)  # a server of pages sets another one

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["ragleague", *map(str, arguments)])
        Database.used.clear()  # a command is a process that opened none yet
        with pytest.raises(SystemExit) as ending:
            main()
        said = capsys.readouterr()
        return Ended(int(ending.value.code or 0), said.out, said.err)

    return run


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; each test takes a database of its own."""
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def store_location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store can be made, on each kind of database."""
    if request.param == "sqlite":
        return str(tmp_path / "s.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.database()


@pytest.fixture(scope="session")
def played_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo tournament that has been played: read it, or copy its folder to change it.

    It is played once for all workers; each has a copy, since who reads a store may keep figures in it.
    """
    base = tmp_path_factory.getbasetemp()
    of_all = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    played = of_all / "played-demo"
    with FileLock(of_all / "played-demo.lock"):
        if not played.exists():
            # Not in this process: where a browser is open already, no event loop can be started beside Playwright's.
            made = [sys.executable, "-m", "ragleague", "demo", "--out", str(played)]
            subprocess.run(made, check=True, capture_output=True)
    return Path(shutil.copytree(played, tmp_path_factory.mktemp("played") / "demo"))


@pytest.fixture(scope="session")
def skin_qa_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model that finds "upper epidermis" in a passage: teaching it takes longer than any test with it."""
    from tests.support.tiny_qa import save_tiny_qa_model

    return save_tiny_qa_model(tmp_path_factory.mktemp("qa") / "skin")
