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
from tests.test_docs import blocks

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
    git(folder, "init", "-q")
    commit(folder)
    return folder


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b.invalid", "commit", "-qm", "a change")


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
                "PYTHONPATH": str(ROOT),
                "GITHUB_ACTION_PATH": str(ROOT),
                "GITHUB_API_URL": f"http://127.0.0.1:{comments.server_port}",
                "GITHUB_OUTPUT": str(temp / "output"),
                "GITHUB_REPOSITORY": "somebody/rag",
                "GITHUB_SHA": git(repository, "rev-parse", "HEAD"),
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


PAGE = {block.file: block.text for block in blocks(ROOT / "docs/ci.md") if block.file}
SERVICE = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["question"]
        sent = json.dumps({"answer": ANSWER.format(question)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *args):
        pass

server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""
SEARCH = """
from types import SimpleNamespace

def search(text):
    first, *others = text.strip("?").split()
    return [SimpleNamespace(id=f"{first}-{number}", text=each) for number, each in enumerate((first, " ".join(others)))]
"""


class Service:
    """The service of a checkout, as its workflow starts it; after ``restart`` at the same address."""

    def __init__(self, checkout: Path) -> None:
        self.checkout, self.port = checkout, 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "service.py", str(self.port)]
        self._process = subprocess.Popen(command, cwd=self.checkout, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def pull_request(tmp_path: Path) -> Iterator[tuple[Path, Service]]:
    """A checkout of a pull request with the files of docs/ci.md, and its service behind an address."""
    origin, checkout = tmp_path / "origin", tmp_path / "checkout"
    origin.mkdir()
    git(origin, "init", "-q")
    table = "".join(f"q{at},How{at} should{at} one{at} judge{at}?\n" for at in range(12))
    (origin / "queries.csv").write_text(f"qid,query\n{table}")
    (origin / "service.py").write_text(f"ANSWER = '{{}}'\n{SERVICE}")
    (origin / "search.py").write_text(SEARCH)
    (origin / "baseline.py").write_text(PAGE["baseline.py"])
    commit(origin)
    git(tmp_path, "clone", "-q", str(origin), str(checkout))
    service = Service(checkout)
    config = PAGE["tournament.yaml"].replace("127.0.0.1:8000", f"127.0.0.1:{service.port}")
    (origin / "tournament.yaml").write_text(
        config.replace("{provider: openai, model: gpt-4.1-mini, max_cost_usd: 5}", "{provider: lexical}")
    )
    commit(origin)
    git(checkout, "pull", "-q")
    yield checkout, service
    service.stop()


def replaced(checkout: Path, service: Service, answer: str, version: str = "") -> None:
    """A commit replaces the service, which is deployed at the same address; the store is as the cache restores it."""
    origin = checkout.with_name("origin")
    (origin / "service.py").write_text(f"ANSWER = {answer!r}\n{SERVICE}")
    if version:
        config = (origin / "tournament.yaml").read_text()
        (origin / "tournament.yaml").write_text(re.sub(r"version: \S+", f"version: {version}", config))
    commit(origin)
    git(checkout, "pull", "-q")
    service.stop()
    service.start()


def test_the_page_on_ci_judges_the_system_of_this_checkout(
    pull_request: tuple[Path, Service], comments: Comments
) -> None:
    checkout, service = pull_request
    (step,) = (
        one for one in yaml.safe_load(PAGE["gate.yml"])["jobs"]["gate"]["steps"] if "ragleague" in one.get("uses", "")
    )
    steps = ("Gate", "Comment", "Verdict")

    def gate(**more: str) -> tuple[int, str]:
        ended = act(checkout, comments, *steps, **step["with"], **more)
        assert ended["Gate"][0] == ended["Comment"][0] == 0, ended
        assert comments.bodies[-1].removeprefix("<!-- ragleague gate -->\n") == ended["summary"]
        return ended["Verdict"][0], ended["summary"]

    status, said = gate()
    assert (status, said.startswith("### Passed: service is better than baseline.\n")) == (0, True), said
    assert re.search(r"Answers of service: 12, made .*, 12 asked anew\.", said)
    assert re.search(r"Answers of baseline: 12, made .*, 12 asked anew\.", said)

    replaced(checkout, service, "I cannot say.")
    status, said = gate()
    assert (status, said.startswith("### Failed: service is worse than baseline.\n")) == (1, True), said
    assert re.search(r"Answers of service: 12, made .*, 12 asked anew\.", said)
    assert re.search(r"Answers of baseline: 12, made .*, 0 asked anew\.", said)

    replaced(checkout, service, "{}", version="fixed")
    assert gate()[0] == 0
    replaced(checkout, service, "I cannot say.")
    status, said = gate()
    assert status == 0, "a version that stays lets yesterday's answers pass"
    assert re.search(r"Answers of service: 12, made .*, 0 asked anew\.", said)
    status, said = gate(ask="service")
    assert (status, said.startswith("### Failed: service is worse than baseline.\n")) == (1, True), said
    assert re.search(r"Answers of service: 12, made .*, 12 asked anew\.", said)
    assert len(comments.bodies) == 2, "one comment, written anew each time"
