"""Our files and functions that ``leaderboard`` on a tournament of two queries enters.

A new process runs the command on the demo's first two queries under ``sys.setprofile``: once with games alone, once
with the demo's three stages. Counted are the code objects in whose frames something ran: a file counts if its body or
anything in it ran; a function (comprehensions and lambdas are ones) if it ran; bodies of modules and classes are no
functions. ``python -m benchmarks.entered``; ``--checkout PATH`` counts another checkout, run with that one's Python;
``--list`` prints the files with their numbers of functions.
"""

from __future__ import annotations

import argparse
import csv
import inspect
import runpy
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType
from typing import Any

import yaml

PACKAGES = ("judges", "retrieval_eval", "arena")
STAGES = {"games alone": ("retrieval", "criteria"), "games, labels, criteria": ()}
"""What is measured, and the sections of the demo's configuration that are left out for it."""
BAR_FILES, BAR_FUNCTIONS = 80, 450


def main() -> None:
    """Print the counts of both tournaments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--list", action="store_true", help="print the files too")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _report(_entered(given.checkout, ["leaderboard", given.child]), given.checkout, listed=given.list)
        return
    for name, left_out in STAGES.items():
        with tempfile.TemporaryDirectory() as folder:
            config = _two_queries(given.checkout / "arena" / "demo", Path(folder), left_out)
            _run(given.checkout, ["-m", "arena", "run", str(config)])
            store = config.with_name("rag-handbook.db")
            again = [__file__, "--checkout", str(given.checkout), "--child", str(store)]
            said = _run(given.checkout, [*again, "--list"] if given.list else again)
            print(f"{name}: {said}", end="")
    print(f"bar: {BAR_FILES} files, {BAR_FUNCTIONS} functions")


def _run(checkout: Path, words: list[str]) -> str:
    command = [sys.executable, *words]
    environment = {"PYTHONPATH": str(checkout), "PATH": ""}
    done = subprocess.run(command, cwd=checkout, env=environment, check=True, capture_output=True, text=True)
    return done.stdout


def _two_queries(demo: Path, folder: Path, left_out: tuple[str, ...]) -> Path:
    """Write the demo's first two queries and its configuration, without some sections, into a folder."""
    chosen: set[str] = set()
    for name in ("queries.csv", "documents.csv", "answers.csv"):
        with (demo / name).open(newline="") as file:
            rows = list(csv.DictReader(file))
        chosen = chosen or {row["qid"] for row in rows[:2]}
        with (folder / name).open("w", newline="") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows(row for row in rows if row["qid"] in chosen)
    config: dict[str, Any] = yaml.safe_load((demo / "tournament.yaml").read_text())
    if left_out:
        config["pairwise"]["documents"] = {"include": False}
    written = folder / "tournament.yaml"
    written.write_text(yaml.safe_dump({name: own for name, own in config.items() if name not in left_out}))
    return written


def _entered(checkout: Path, words: list[str]) -> set[CodeType]:
    """The code objects of a checkout that a command line enters, those of its imports included."""
    entered: set[CodeType] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            entered.add(frame.f_code)

    sys.argv = ["ragarena", *words]
    sys.path.insert(0, str(checkout))
    printed, sys.stdout = sys.stdout, open("/dev/null", "w")  # noqa: SIM115, PTH123 - until the process ends
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        runpy.run_module("arena", run_name="__main__")
    except SystemExit as ending:
        if ending.code:
            raise
    finally:
        sys.setprofile(None)
        sys.stdout = printed
    ours = tuple(f"{checkout / package}/" for package in PACKAGES)
    return {code for code in entered if code.co_filename.startswith(ours)}


def _report(entered: set[CodeType], checkout: Path, *, listed: bool) -> None:
    functions = [code for code in entered if code.co_flags & inspect.CO_NEWLOCALS]
    bodies = len(entered) - len(functions)
    by_file = Counter({code.co_filename: 0 for code in entered})
    by_file.update(code.co_filename for code in functions)
    print(f"{len(by_file)} files, {len(functions)} functions ({bodies} bodies of modules and classes besides)")
    if listed:
        for name, number in sorted(by_file.items()):
            print(f"  {number:3} {Path(name).relative_to(checkout)}")


if __name__ == "__main__":
    main()
