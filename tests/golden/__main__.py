"""``python -m tests.golden``: say what differs from the golden files, or write them anew.

``--write`` makes those for people (tables as text, Markdown, HTML, LaTeX) anew. JSON and CSV are what other programs
rely on: they are written only where ``--write`` names them (``--write whole/leaderboard.json 'shop/*'``), and each such
change is a decision that the changelog says. Of long files the golden ones hold the beginning and hashes; ``--whole
FOLDER`` writes them all whole, to be compared with those of another commit by ``diff -r``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path

from tests.golden.cases import WORLDS
from tests.golden.check import EXPECTED, HERE, differences, is_for_people, written

ROOT = HERE.parents[1]


def main() -> int:
    """Returns the number of golden files that differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--write", nargs="*", metavar="WORLD/FILE", help="write: forms for people, and what is named")
    parser.add_argument("--programs", action="store_true", help="look only at JSON and CSV, the contract")
    parser.add_argument(
        "--whole", type=Path, metavar="FOLDER", help="write every file whole into this folder, and stop"
    )
    parser.add_argument("--only", nargs="*", metavar="WORLD", help="only these worlds")
    options = parser.parse_args()
    differ = 0
    for world in WORLDS:
        if options.only and world.name not in options.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            shared = (ROOT / os.environ.get("RAGLEAGUE_SHARED", "../shared")).resolve()
            texts = written(world, Path(folder), shared, whole=options.whole is not None)
        if options.whole is not None:
            write(options.whole / world.name, texts, ["*"])
            continue
        if options.write is not None:
            write(EXPECTED / world.name, texts, options.write)
        for text in differences(world, texts, programs=options.programs):
            differ += 1
            print(text)  # noqa: T201 - it is a command
    return min(differ, 1)


def write(folder: Path, texts: dict[str, str], named: list[str]) -> None:
    """Write the golden files of a world for people and those that are named; the rest stay as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in {path.name for path in folder.glob("*")} | texts.keys():
        if is_for_people(name) or any(fnmatch(f"{folder.name}/{name}", pattern) for pattern in named):
            if name in texts:
                (folder / name).write_text(texts[name], encoding="utf-8")
            else:
                (folder / name).unlink()


if __name__ == "__main__":
    sys.exit(main())
