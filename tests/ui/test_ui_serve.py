"""Starting the server: on this machine only, and one line where it cannot start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from arena.store import Store, engine
from tests.conftest import ROOT
from ui import serve
from ui.data import LOCATION_VARIABLE
from ui.serve import HEALTH, health

WEBSOCKET = (
    b"GET /_stcore/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: c29tZXRoaW5nIHJhbmRvbQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What the command says when it does not start."""
    monkeypatch.setattr("ui.serve._exit_on_signals", lambda: None)
    monkeypatch.setattr(engine, "PATIENCE_S", engine.PATIENCE_S)  # it sets another one

    def run(*arguments: str) -> str:
        assert serve.main([*arguments, "--no-browser"]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        (line,) = said.err.splitlines()
        return line

    return run


def test_a_port_in_use_is_said_in_one_line(refused: Callable[..., str], tmp_path: Path) -> None:
    Store.create(str(tmp_path / "s.db")).close()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        line = refused(str(tmp_path / "s.db"), "--port", str(port))
    assert f"port {port}" in line
    assert "--port" in line


def test_a_store_that_is_not_there_is_said_in_one_line(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "no store there" in refused(str(tmp_path / "none.db"))


def test_a_store_that_cannot_be_read_is_not_well_and_its_place_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LOCATION_VARIABLE, str(tmp_path / "secret-name.db"))
    client = TestClient(Starlette(routes=[Route(HEALTH, health)]))
    for status in (503, 200):
        answer = client.get(HEALTH)
        assert answer.status_code == status
        assert "secret-name" not in answer.text
        Store.create(str(tmp_path / "secret-name.db")).close()


SERVE = "import sys; sys.argv[0] = 'ragleague'; from arena.cli.main import main; main()"


@contextmanager
def opened(store: Path, *before: str) -> Iterator[subprocess.Popen[str]]:
    """``ragleague ui`` on a store, once it answers."""
    Store.create(str(store)).close()
    command = [*before, sys.executable, "-c", SERVE, "ui", str(store), "--port", "0"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            assert "http://" in process.stdout.readline()
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_the_server_is_the_command_and_ends_with_its_terminal(tmp_path: Path) -> None:
    with opened(tmp_path / "s.db") as process:
        assert psutil.Process(process.pid).children() == [], "nothing is left when the command is killed"
        process.send_signal(signal.SIGHUP)
        assert (*process.communicate(timeout=30), process.returncode) == ("", "", 0)


def test_the_server_ends_at_sigterm_as_process_1_of_a_container_though_a_browser_stays(tmp_path: Path) -> None:
    alone = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*alone, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine gives nobody a process 1")
    with opened(tmp_path / "s.db", *alone) as process:
        (first,) = psutil.Process(process.pid).children()
        (port,) = {each.laddr.port for each in first.net_connections() if each.status == psutil.CONN_LISTEN}
        with socket.create_connection(("127.0.0.1", port)) as browser:
            browser.sendall(WEBSOCKET)
            assert b"101" in browser.recv(4096)
            first.send_signal(signal.SIGTERM)
            assert (*process.communicate(timeout=30), process.returncode) == ("", "", 0)
