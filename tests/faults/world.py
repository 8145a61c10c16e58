"""A small tournament, one fault in it, and what the command says."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from msgspec import Struct, field
from pyarrow import parquet

from arena.cli import console
from arena.cli.main import main
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge

Change: TypeAlias = "Sequence[str] | str | Mapping[str, Any] | None"
"""What becomes of a file: a text in place of another, or all of it; ``None`` removes it.

Else ``{kind: text, of: it, encoding: latin-1}``, or of kind ``link`` (to ``of``), ``folder`` (``of`` is the file in
it), ``parquet`` (``of`` are columns; texts are bytes where an encoding is named), ``pipe``, or ``gzip`` (of ``of``, so
many times).
"""

FILES: Mapping[str, str] = {
    "t.yaml": """name: t
store: t.db
data: {queries: queries.csv, documents: documents.csv, answers: answers.csv}
judges:
  j: {provider: openai, model: m, base_url: URL}
retrieval: {judge: j, depth: 3}
pairwise: {judges: j, both_orders: true}
criteria: {judge: j, scale: [0, 2]}
ratings: {seed: 0}
""",
    "queries.csv": "qid,query\n" + "".join(f"q{number},what is {number}?\n" for number in range(1, 9)),
    "documents.csv": "qid,did,document,agent\n"
    + "".join(f"q{number},d{number},it is {number},{agent}\n" for number in range(1, 9) for agent in "xy"),
    "answers.csv": "qid,agent,answer\n"
    + "".join(f"q{number},{agent},{agent} says {number}\n" for number in range(1, 9) for agent in "xy"),
    "verdicts.csv": "qid,agent_a,agent_b,verdict\n1,x,y,A\n2,y,x,A\n",
    "ours.py": "def raises(prompt):\n    raise KeyError('label')\n\n\ndef number(prompt):\n    return 0.5\n",
    "broken.py": "import no_such_module\n",
}

REPLIES: Mapping[str, Reply] = {
    **{str(status): Reply("the server's words", status=status) for status in (400, 401, 402, 403, 404, 500)},
    "302": Reply("moved", status=302, headers={"Location": "https://elsewhere.example/v1?token=1"}),
    "429": Reply("slower", status=429, headers={"Retry-After": "3600"}),
    "html": Reply(fault="garbage"),
    "empty": Reply(body={}),
    "list": Reply(raw=lambda _: b"[]"),
    "prose": Reply("I like the first one."),
    "blank": Reply(""),
    "cut": Reply('{"reason": "so', ending="length"),
    "refusal": Reply("no", ending="refusal"),
    "422": Reply(body={"detail": "the field 'model' is missing"}, status=422),
    "503": Reply(raw=lambda _: b"<html><style>p {}</style><p>loading</p></html>", status=503, kind="text/html"),
    "half": Reply(fault="half"),
    "number": Reply(body={"choices": [{"message": {"content": 5}}]}),
    "other label": Reply('{"reason": "r", "label": "7"}'),
    "999": Reply("no such status", status=999),
    "moved nowhere": Reply("moved", status=301, headers={"Location": "http://[::1"}),
    "two lengths": Reply("so", headers={"Content-Length": "9"}),
    "long": Reply("so " * 400_000),
    "quota": Reply(body={"error": {"message": "no credit", "code": "insufficient_quota"}}, status=429),
}
"""A server's behaviour, by the name in a fault's ``server``."""


class Fault(Struct, frozen=True):
    """One faulty input.

    Attributes:
        group: settings, data, commands or servers.
        what: is wrong, in a few words.
        says: what the command must say; ``FOLDER`` and ``SERVER`` stand for both.
        change: by file.
        command: its words, in one text where none of them is empty or holds a blank.
        server: what a server does with every call; it replies well otherwise.
        before: whether it must be found before any call.
    """

    group: str
    what: str
    says: str
    change: Mapping[str, Change] = field(default_factory=dict)
    command: str | Sequence[str] = "run t.yaml"
    server: str = ""
    before: bool = True


class Met(Struct, frozen=True):
    """A command's exit status and output, the line that names the fault, and the calls that the server got."""

    status: int
    out: str
    err: str
    says: str
    calls: int


def meet(fault: Fault, folder: Path, command: str | None = None) -> Met:
    """Make the tournament with the fault in a folder, and run its command, or another one."""
    words = command or fault.command
    lost = {"refused": _unused(), "unresolved": "http://judge.invalid/v1"}

    def reply(call: Call) -> Reply:
        return REPLIES[fault.server] if fault.server in REPLIES else steady_judge(call)

    with LLMServer(reply) as server:
        url = lost.get(fault.server, server.openai_url)
        write(fault, folder, url)
        status, out, err = _run(words.split() if isinstance(words, str) else words, folder)
        calls = len(server.calls)
    out, err = (text.replace(str(folder), "FOLDER").replace(url, "SERVER") for text in (out, err))
    lines = err.strip().splitlines()
    telling = [line for line in lines if line.startswith(("error: ", "judge 'j' stopped", "Error: "))]
    return Met(status, out, err, (telling or lines or [""])[-1], calls)


def write(fault: Fault, folder: Path, url: str) -> None:
    for name in FILES.keys() | fault.change.keys():
        change = fault.change.get(name, FILES.get(name))
        if isinstance(change, list):
            old, new = change
            assert old in FILES[name], old
            change = FILES[name].replace(old, new, 1)
        if isinstance(change, str):
            (folder / name).write_text(change.replace("URL", url), encoding="utf-8")
        elif isinstance(change, dict):
            _make(folder / name, **change)


def _make(path: Path, kind: str, of: Any = None, encoding: str = "", times: int = 1) -> None:
    if kind == "text":
        path.write_bytes(of.encode(encoding))
    elif kind == "pipe":
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    elif kind == "gzip":
        path.write_bytes(gzip.compress(of.encode() * times))
    elif kind == "link":
        path.symlink_to(of)
    elif kind == "folder":
        path.mkdir()
        (path / of).write_text("")
    else:
        columns = {name: [cell.encode("latin-1") if encoding else cell for cell in cells] for name, cells in of.items()}
        parquet.write_table(pa.table(columns), path)


def _unused() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


def _run(command: Sequence[str], folder: Path) -> tuple[int, str, str]:
    before, argv, out, err = Path.cwd(), sys.argv, io.StringIO(), io.StringIO()
    kept = {name: os.environ.pop(name) for name in list(os.environ) if re.match("(OPENAI|ANTHROPIC)_", name)}
    sys.argv = ["ragleague", *command]
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as ending:
                return int(ending.code or 0), out.getvalue(), err.getvalue()
    finally:
        os.chdir(before)
        sys.argv = argv
        os.environ.update(kept)
    raise AssertionError(f"{console.program()} did not end")
