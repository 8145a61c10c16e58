"""The GitHub Action, step by step: its own commands in bash, in somebody else's repository, against a real server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
_EXPRESSION = re.compile(r"\$\{\{ (.+?) \}\}")


class Comments(HTTPServer):
    """Comments of a pull request, as GitHub's interface has them; ``asked`` are the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[str] = ["unrelated"]
        self.asked: list[tuple[str, str, str | None]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Comments

    def do_GET(self) -> None:
        self._reply([{"id": at, "body": body} for at, body in enumerate(self.server.bodies)])

    def do_POST(self) -> None:
        self.server.bodies.append(self._body())
        self._reply({})

    def do_PATCH(self) -> None:
        self.server.bodies[int(self.path.rpartition("/")[2])] = self._body()
        self._reply({})

    def _body(self) -> str:
        return str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])

    def _reply(self, content: Any) -> None:
        self.server.asked.append((self.command, self.path, self.headers["Authorization"]))
        sent = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def comments() -> Iterator[Comments]:
    with Comments() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def repository(played_demo: Path, tmp_path: Path) -> Path:
    """Somebody's repository: a tournament and its data, committed."""
    folder = tmp_path / "repository"
    shutil.copytree(played_demo, folder)
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b.invalid commit -qm tournament"):
        subprocess.run(["git", *command.split()], cwd=folder, check=True)
    return folder


def act(repository: Path, comments: Comments, *only: str, **given: str) -> dict[str, Any]:
    """Run the steps that have commands, or ``only`` some, as a runner does; their endings by name, and the summary."""
    temp = repository.parent / "runner"
    temp.mkdir(exist_ok=True)
    known = {f"inputs.{name}": own.get("default", "") for name, own in ACTION["inputs"].items()}
    known |= {f"inputs.{name}": value for name, value in given.items()}
    known |= {"inputs.token": "secret", "github.event.pull_request.number": "7", "runner.temp": str(temp)}
    ended: dict[str, Any] = {}
    (temp / "summary").write_text("")
    for step in ACTION["runs"]["steps"]:
        if "run" not in step or (only and step["name"] not in only):
            continue
        (temp / "output").write_text("")
        variables = {name: _evaluated(own, known) for name, own in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=repository,
            env={
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(temp),
                "GITHUB_ACTION_PATH": str(ROOT),
                "GITHUB_API_URL": f"http://127.0.0.1:{comments.server_port}",
                "GITHUB_OUTPUT": str(temp / "output"),
                "GITHUB_REPOSITORY": "somebody/rag",
                "GITHUB_STEP_SUMMARY": str(temp / "summary"),
                "RUNNER_TEMP": str(temp),
                # The package alone, from this folder and to a place of its own: all it needs is here.
                "PIP_NO_DEPS": "1",
                "PIP_NO_INDEX": "1",
                "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the value of 'build isolation'
                "PIP_TARGET": str(temp / "site"),
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        ended[step["name"]] = done.returncode, done.stdout + done.stderr
        lines = (temp / "output").read_text().splitlines()
        known |= {
            f"steps.{step.get('id')}.outputs.{name}": value for name, _, value in (one.partition("=") for one in lines)
        }
        if done.returncode and not step.get("continue-on-error"):
            break
    return ended | {"summary": (temp / "summary").read_text(), "temp": temp}


def _evaluated(text: str, known: Mapping[str, str]) -> str:
    return _EXPRESSION.sub(lambda found: known[found[1]], text)


def test_the_steps_of_the_action_judge_comment_and_keep(repository: Path, comments: Comments) -> None:
    scores = {"on": "pairwise RR(rel=1)@5", "new": "weak-baseline", "old": "rag-bm25"}
    ended = act(repository, comments, config="tournament.yaml", **scores)
    assert [ended[name][0] for name in ("Install", "Gate", "Comment", "Verdict")] == [0, 0, 0, 1], ended
    assert (ended["temp"] / "site/ragleague/pytest_plugin.py").is_file()
    assert ended["summary"].startswith("### Failed: weak-baseline is worse than rag-bm25.\n")
    assert "| RR\\(rel=1\\)@5 |" in ended["summary"]
    assert comments.bodies == ["unrelated", f"<!-- ragleague gate -->\n{ended['summary']}"]
    assert {authorization for *_, authorization in comments.asked} == {"Bearer secret"}
    assert comments.asked[-1][:2] == ("POST", "/repos/somebody/rag/issues/7/comments")
    kept = ended["temp"] / "ragleague"
    assert {path.name for path in kept.iterdir()} == {"gate.md", "gate.xml", "report.html"}
    (kept / "gate.md").write_text("later")
    act(repository, comments, "Comment")
    assert comments.bodies == ["unrelated", "<!-- ragleague gate -->\nlater"]  # the same comment, written anew


def test_wrong_input_ends_the_action_and_runs_nothing(repository: Path, comments: Comments) -> None:
    names = {"new": "$(touch hacked)", "old": 'x"; touch hacked; "'}
    ended = act(repository, comments, "Gate", "Comment", "Verdict", config="tournament.yaml", **names)
    assert ended["Gate"][0] == 2
    assert "no agent '$(touch hacked)'" in ended["Gate"][1]
    assert not list(repository.rglob("hacked"))
    assert not comments.asked


def test_nothing_from_outside_stands_in_a_command() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
