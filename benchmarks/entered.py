"""Our files and functions that ``leaderboard`` on a tournament of two queries enters.

A new process computes the leaderboard of the demo's first two queries under ``sys.setprofile``, and another one runs
the whole command, which reads arguments and shows it: with games alone, and with labels and criteria too.

A file counts if its body or anything in it ran, a function if it ran. Functions are counted twice: those that are
written as ones (``def`` and ``lambda``), and all code objects but the bodies of files, which are comprehensions and
bodies of classes besides. ``python -m benchmarks.entered``; ``--checkout PATH`` counts another checkout, ``--list``
prints the files with their numbers of functions.
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
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any

import yaml

PACKAGES = ("judges", "retrieval_eval", "arena")
STAGES = {"games alone": ("retrieval", "criteria", "exam", "nuggets"), "games, labels, criteria": ("exam", "nuggets")}
"""Names of the measurements, and the sections of the demo's configuration that each leaves out."""
BAR_FILES, BAR_FUNCTIONS = 80, 450
_COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
"""Code objects that Python 3.12 no longer makes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--list", action="store_true", help="print the files too")
    parser.add_argument("--child", nargs=2, metavar=("WHAT", "STORE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _report(_entered(given.checkout, *given.child), given.checkout, listed=given.list)
        return
    for name, left_out in STAGES.items():
        with tempfile.TemporaryDirectory() as folder:
            config = _two_queries(given.checkout / "arena" / "demo", Path(folder), left_out)
            _run(given.checkout, ["-m", "ragleague", "run", str(config)])
            store = config.with_name("rag-handbook.db")
            for what in ("computed", "command"):
                again = [__file__, "--checkout", str(given.checkout), "--child", what, str(store)]
                said = _run(given.checkout, [*again, "--list"] if given.list else again)
                print(f"{name}, {what}: {said}", end="")
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


def _entered(checkout: Path, what: str, store: str) -> set[CodeType]:
    """The code objects of a checkout that a leaderboard enters, ``computed`` or by ``command``, imports included."""
    entered: set[CodeType] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            entered.add(frame.f_code)

    sys.argv = ["ragleague", "leaderboard", store]
    sys.path.insert(0, str(checkout))
    printed, sys.stdout = sys.stdout, open("/dev/null", "w")  # noqa: SIM115, PTH123 - until the process ends
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        if what == "command":
            runpy.run_module("ragleague", run_name="__main__")
        else:
            import_module("arena.results.ratings").leaderboard(import_module("arena.store").Store.open(store))
    except SystemExit as ending:
        if ending.code:
            raise
    finally:
        sys.setprofile(None)
        sys.stdout = printed
    ours = tuple(f"{checkout / package}/" for package in PACKAGES)
    return {code for code in entered if code.co_filename.startswith(ours)}


def _report(entered: set[CodeType], checkout: Path, *, listed: bool) -> None:
    own = [code for code in entered if code.co_name != "<module>"]
    functions = [code for code in own if code.co_flags & inspect.CO_NEWLOCALS and code.co_name not in _COMPREHENSIONS]
    by_file = Counter({code.co_filename: 0 for code in entered})
    by_file.update(code.co_filename for code in functions)
    print(f"{len(by_file)} files, {len(functions)} functions, {len(own)} with comprehensions and bodies of classes")
    if listed:
        for name, number in sorted(by_file.items()):
            print(f"  {number:3} {Path(name).relative_to(checkout)}")


if __name__ == "__main__":
    main()
