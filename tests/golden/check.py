"""Runs the commands of a tournament in this process and holds what they write against the files in ``expected``."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from difflib import unified_diff
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from msgspec import Struct, field

from arena.cli.console import WIDE, errors, output
from arena.cli.main import main

HERE = Path(__file__).parent
_FRACTION = re.compile(r"-?\d+\.\d{5,}")
_KEY = re.compile(r'^  "(\w+)":', re.MULTILINE)
INPUTS, EXPECTED = HERE / "inputs", HERE / "expected"
FOR_PROGRAMS = (".json", ".jsonl", ".csv", ".tsv", ".qrels")
"""Endings of what other programs rely on; all other files are for people and may be written anew with every form."""

_LINES = {".csv": 41, ".tsv": 41, ".jsonl": 20, ".qrels": 40, ".json": 60}
"""How many lines are kept of a long file; of the rest its SHA-256, of JSON that of each key."""
_VARYING = (
    (re.compile(r'("(?:[a-z_]*latency[a-z_0-9]*|tried_s|seconds)": )\d[\d.e-]*'), r"\1TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:[\d.]+)?(Z|[+-]\d\d:\d\d)?"), "DATE"),
    (re.compile(r'("digest": )"[0-9a-f]+"'), r"\1DIGEST"),
    (re.compile(r"(?<=judged )\d{1,2} [A-Z][a-z]+ \d{4}"), "DATE"),
)
"""What differs from run to run; paths besides."""


class Case(Struct, frozen=True):
    """A command, and the golden files of what it writes.

    Attributes:
        printed: golden file of standard output, and of the exit status where that is not 0; none where it is empty.
        command: the words behind ``ragleague``; ``$SHARED`` is the folder of recorded judgments.
        files: golden file by the name of each file that the command writes and that is kept.
    """

    printed: str
    command: str
    files: Mapping[str, str] = field(default_factory=dict)


class World(Struct, frozen=True):
    """A folder that commands run in, one after the other.

    Attributes:
        name: of its folder in ``expected``.
        cases: in order; a later one may read what an earlier one wrote.
        inputs: folder of ``inputs`` that is copied into it, if any.
        prepare: makes further files in it.
        recorded: whether it reads the recorded judgments, which are no part of the project.
    """

    name: str
    cases: Sequence[Case]
    inputs: str = ""
    prepare: Callable[[Path], object] = lambda folder: None
    recorded: bool = False


def written(world: World, folder: Path, shared: Path | None = None, *, whole: bool = False) -> dict[str, str]:
    """Run all commands of a world; returns the text of each golden file, what varies masked.

    Args:
        world: whose commands.
        folder: empty; the commands run in it.
        shared: the folder of recorded judgments.
        whole: return long texts whole, which are shortened for the golden files.
    """
    if world.inputs:
        shutil.copytree(INPUTS / world.inputs, folder, dirs_exist_ok=True)
    masks = {str(folder.resolve()): "FOLDER", str(folder): "FOLDER", sys.executable: "PYTHON"}
    if shared is not None:
        masks[str(shared)] = "SHARED"
    texts = {}
    with chdir(folder), patch.dict(os.environ, {"COLUMNS": "160"}):
        world.prepare(folder)
        for case in world.cases:
            status, out, err = _ran(case.command.replace("$SHARED", str(shared)))
            assert status in {0, 3}, f"ragleague {case.command}: exit status {status}\n{out[-2000:]}{err[-2000:]}"
            if case.printed:
                texts[case.printed] = f"{out}# exit status {status}\n" if status else out
            for file, golden in case.files.items():
                texts[golden] = _content(folder / file)
    texts = {name: _masked(text, masks) for name, text in texts.items()}
    return texts if whole else {name: _shortened(name, text) for name, text in texts.items()}


def differences(world: World, texts: Mapping[str, str], *, programs: bool = False) -> Iterator[str]:
    """What differs from the golden files of a world, a text for each file; ``programs``: JSON and CSV alone."""
    expected = {path.name for path in (EXPECTED / world.name).glob("*")}
    for name in sorted(expected | texts.keys()):
        if programs and is_for_people(name):
            continue
        path = EXPECTED / world.name / name
        known = path.read_text(encoding="utf-8") if name in expected else ""
        if name not in texts or name not in expected or not _same(known, texts[name]):
            lines = unified_diff(known.splitlines(), texts.get(name, "").splitlines(), str(path), "written", n=2)
            yield "\n".join([*lines][:60]) or f"{path}: {'not written' if name not in texts else 'new'}"


def _same(known: str, written: str) -> bool:
    """Whether two texts say the same; a last digit of a long fraction may differ, as machines differ."""
    if known == written:
        return True
    if _FRACTION.split(known) != _FRACTION.split(written):
        return False
    pairs = zip(_FRACTION.findall(known), _FRACTION.findall(written), strict=True)
    return all(math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1.5e-6) for one, other in pairs)


def is_for_people(name: str) -> bool:
    """Whether a golden file is a form for people, which changes with the form."""
    return not name.endswith(FOR_PROGRAMS)


def _ran(command: str) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    status = 0
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "argv", ["ragleague", *shlex.split(command)]):
        output.width = errors.width = WIDE
        try:
            main()
        except SystemExit as ending:
            status = int(ending.code or 0)
    return status, out.getvalue(), err.getvalue()


def _content(path: Path) -> str:
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return file.read()
    return path.read_text(encoding="utf-8")


def _masked(text: str, masks: Mapping[str, str]) -> str:
    for path, name in masks.items():
        text = text.replace(path, name)
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _shortened(name: str, text: str) -> str:
    kept = _LINES.get(Path(name).suffix, 200)
    lines = text.splitlines(keepends=True)
    if len(lines) <= kept + 1:
        return text
    head, rest = "".join(lines[:kept]), "".join(lines[kept:])
    values = _KEY.split(text)[1:]
    if name.endswith(".json") and values:
        digests = [f"{key}: {_digest(value)}\n" for key, value in zip(values[::2], values[1::2], strict=True)]
        return f"{head}... {len(lines) - kept} more lines, SHA-256 by key\n{''.join(digests)}"
    return f"{head}... {len(lines) - kept} more lines, SHA-256 {_digest(rest)}\n"


def _digest(text: str) -> str:
    """Of all but the last digits of long fractions, which differ between machines."""
    rounded = _FRACTION.sub(lambda fraction: f"{round(float(fraction[0]), 5) + 0:.5f}", text)
    return hashlib.sha256(rounded.encode()).hexdigest()[:16]
