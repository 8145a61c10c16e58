"""Starting the server: on this machine only, and one line where it cannot start."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from arena.store import Store
from ui.data import LOCATION_VARIABLE
from ui.shell import HEALTH, health


def refused(*arguments: str) -> str:
    """What the command says when it does not start."""
    command = [sys.executable, "-m", "ui.serve", *arguments, "--no-browser"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    return line


def test_a_port_in_use_is_said_in_one_line(tmp_path: Path) -> None:
    Store.create(str(tmp_path / "s.db")).close()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        line = refused(str(tmp_path / "s.db"), "--port", str(port))
    assert f"port {port}" in line
    assert "--port" in line


def test_a_store_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
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
