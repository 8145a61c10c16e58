"""A terminal obeys what is written to it, so no name, reply or file reaches it as it is; files get every byte."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.support.children import command, environment
from tests.support.sample_store import write_store

ORDERS = (
    "\x1b]52;c;cHduZWQ=\x07",  # into the clipboard (OSC 52)
    "\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\",  # a link (OSC 8)
    "\x1b[2J\x1b[1A\x1b[31m",  # clears the screen, goes up, writes red
    "\x9b31m\x9d0;title\x9c",  # the same in one character each (C1)
    "\x07\x08\x7f\x0b\x0c\r",
    "\u202eevil\u2066x\u2069\u200f",  # turns the line around
)
NAMES = tuple(f"agent-{number}{order}" for number, order in enumerate(ORDERS))
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
OWN = re.compile(r"\x1b\[[\d;]*m|\x1b\[\?25[lh]|\x1b\[\d*[AKG]|\r")
"""Our own control codes: colours, and those that draw a bar."""


def on_terminal(folder: Path, *arguments: object, before: str = "") -> str:
    leader, follower = pty.openpty()
    keys = environment() | {"COLUMNS": "200", "TERM": "xterm-256color"}
    process = subprocess.Popen(
        command(*arguments, before=before), cwd=folder, env=keys, stdin=follower, stdout=follower, stderr=follower
    )
    os.close(follower)
    sent = bytearray()
    try:
        while part := os.read(leader, 65_536):
            sent += part
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    process.wait()
    return sent.decode("utf-8")


def into_files(folder: Path, *arguments: object) -> bytes:
    return subprocess.run(command(*arguments), cwd=folder, env=environment(), capture_output=True, check=False).stdout


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("names") / "s.db", agents=NAMES, queries=6)


def gate(form: str) -> tuple[object, ...]:
    return ("gate", "s.db", "--new", NAMES[0], "--old", NAMES[1], "--format", form)


@pytest.mark.parametrize(
    "arguments",
    [
        *(("leaderboard", "s.db", "--format", form) for form in ("table", "csv", "md", "html", "latex", "json")),
        ("leaderboard", "s.db", "--details"),
        *(map(gate, ("table", "json", "md"))),
        ("gate", "s.db", "--new", "nobody", "--old", NAMES[1]),
        ("leaderboard", f"none{ORDERS[0]}.db"),
        ("rate", "broken.csv"),
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[-1:]).encode("ascii", "ignore").decode()[:30],
)
def test_no_text_commands_the_terminal_that_it_is_written_to(store: Path, arguments: tuple[object, ...]) -> None:
    rows = f"qid,agent_a,agent_b,verdict\nq1,a,b,{ORDERS[0]}{ORDERS[3]}{ORDERS[5]}\n"
    (store.parent / "broken.csv").write_text(rows, encoding="utf-8")
    sent = on_terminal(store.parent, *arguments)
    assert UNSEEN.search(OWN.sub("", sent)) is None
    assert "\x1b]" not in sent
    assert "52;c;" in sent, "it is there to be read"


def test_files_and_pipes_get_every_byte(store: Path) -> None:
    told = into_files(store.parent, "leaderboard", "s.db", "--format", "csv").decode()
    assert {row["agent"] for row in csv.DictReader(io.StringIO(told))} == set(NAMES)
    told = into_files(store.parent, "leaderboard", "s.db", "--format", "json").decode()
    assert {row["agent"] for row in json.loads(told)["agents"]} == set(NAMES)


def test_what_is_json_stays_what_it_was_on_a_terminal(store: Path) -> None:
    told = on_terminal(store.parent, "leaderboard", "s.db", "--format", "json")
    assert {row["agent"] for row in json.loads(told)["agents"]} == set(NAMES)


BAR = """
import sys, time
sys.argv = ["ragleague", "--version"]
from arena.cli.main import guard_streams
guard_streams()
from arena.cli.progress import Bars
from arena.cli.console import errors, output
with Bars() as bars:
    bars.begin("[link=https://evil.example]name[/link]" + sys.stdin.readline().rstrip(), 3)
    errors.print("said: \\x1b]52;c;eA==\\x07")
    print("printed: \\x1b]52;c;eA==\\x07")
    sys.stderr.write("written: \\x9d52;c;eA==\\x9c\\n")
output.print("bold", style="bold")
"""


def test_bars_are_drawn_and_no_name_in_them_is_a_link() -> None:
    leader, follower = pty.openpty()
    keys = environment() | {"COLUMNS": "200", "TERM": "xterm-256color"}
    with subprocess.Popen(
        [sys.executable, "-c", BAR], cwd=ROOT, env=keys, stdin=subprocess.PIPE, stdout=follower, stderr=follower
    ) as process:
        os.close(follower)
        assert process.stdin is not None
        process.stdin.write(b"\x1b]8;;x\x07\n")
        process.stdin.close()
        sent = bytearray()
        try:
            while part := os.read(leader, 65_536):
                sent += part
        except OSError:
            pass
    os.close(leader)
    shown: Any = sent.decode()
    assert "\x1b]" not in shown
    assert "\x9d" not in shown
    for words in ("[link=https://evil.example]name[/link]", "said: ", "printed: ", "written: "):
        assert words in shown
    assert "\x1b[1mbold\x1b[0m" in shown, "our own colours are"
    assert "\x1b[2K" in shown, "and the bar is drawn in its place"
