"""Standard streams that are full, closed, or have no reader: the work is done, and a line or a status says the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.children import command

EACH = """
import os, sys
from arena.cli.main import main
for words in sys.argv[2:]:
    if not (child := os.fork()):
        sys.argv = ["ragleague", *words.split("|")]
        main()
    print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=sys.stderr)
"""
"""One process that has imported the command line, and a copy of it for each command."""


def each(stdout: int, *commands: str) -> str:
    """What the commands say on standard error, in order, and how each ends."""
    done = subprocess.run(
        [sys.executable, "-c", EACH, "-", *commands],
        cwd=ROOT,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )
    return "".join(line for line in done.stderr.splitlines(True) if " judged, " not in line)


def test_a_full_disk_behind_standard_output_is_one_line_and_a_failure(played_demo: Path) -> None:
    demo = played_demo / "tournament.yaml"
    with Path("/dev/full").open("wb") as full:
        said = each(full.fileno(), "--help", f"leaderboard|{demo}")
    assert said == "error: standard output: No space left on device\nstatus 1\n" * 2


def test_a_reader_who_has_left_ends_a_command_as_it_ends_others(played_demo: Path) -> None:
    demo = played_demo / "tournament.yaml"
    reader, writer = os.pipe()
    os.close(reader)
    try:
        said = each(writer, "--help", f"leaderboard|{demo}|--format|csv")
    finally:
        os.close(writer)
    assert said == "status 141\n" * 2


@pytest.mark.parametrize(
    ("words", "closed", "status", "out", "err"),
    [("--help", (1,), 1, "", "error: standard output: closed\n"), ("demo", (0, 2), 0, "Nothing to conclude yet: ", "")],
)
def test_a_command_does_its_work_though_streams_are_closed(
    tmp_path: Path, words: str, closed: tuple[int, ...], status: int, out: str, err: str
) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    done = subprocess.run(
        command(words),
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        preexec_fn=close,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (status, err)
    assert out in done.stdout
    for store in tmp_path.glob("demo/*.db"):
        assert store.read_bytes().startswith(b"SQLite format 3"), "nothing said went into it"
