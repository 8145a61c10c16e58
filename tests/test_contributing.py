"""CONTRIBUTING against the code: the picture of the house, four ways through it, and one meaning per class name."""

from __future__ import annotations

import ast
import re
import sys
import threading
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from arena.demo import copy_demo
from tests.support.pages import page, press
from tests.support.sample_store import write_store
from ui.access import EVERYBODY_VARIABLE
from ui.data import LOCATION_VARIABLE

ROOT = Path(__file__).resolve().parents[1]
_WAY = re.compile(r"^\*\*(?P<name>One [\w ]+)\*\*.*?\n\n(?P<table>(?:\|.*\n)+)", re.MULTILINE)
_STEP = re.compile(r"^\| [^|]+ \| `(?P<file>[\w/]+\.py): (?P<function>\w+)` \|$", re.MULTILINE)
WAYS = {
    way["name"]: [(step["file"], step["function"]) for step in _STEP.finditer(way["table"])]
    for way in _WAY.finditer((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
}


@contextmanager
def traced() -> Iterator[list[tuple[str, str]]]:
    """Files and functions of the project, in the order in which they are first entered, in any thread."""
    entered: list[tuple[str, str]] = []
    seen: set[tuple[str, str]] = set()

    def enter(frame: Any, event: str, _argument: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(f"{ROOT}/"):
            step = (file[len(f"{ROOT}/") :], frame.f_code.co_name)
            if step not in seen:
                seen.add(step)
                entered.append(step)

    try:
        threading.setprofile(enter)
        sys.setprofile(enter)
        yield entered
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _demo_with(folder: Path, *sections: str) -> Path:
    config = copy_demo(folder / "demo")
    text = config.read_text(encoding="utf-8")
    config.write_text(text[: text.index("retrieval:")] + "\n".join(sections), encoding="utf-8")
    return config


def _game(cli: Any, folder: Path) -> None:
    config = _demo_with(folder, "pairwise: {judges: [lexical], documents: {include: false}}")
    assert cli("run", config).status == 0


def _nugget(cli: Any, folder: Path) -> None:
    assert cli("run", _demo_with(folder, "nuggets: {judge: lexical, bank: nuggets.jsonl}")).status == 0


def _vote(cli: Any, folder: Path) -> None:
    form = page("vote").text_input(key="annotator").set_value("ann").run(timeout=60)
    for _ in range(4):
        form = press(form, "Answer 1 is better")
    assert cli("calibrate", folder / "votes.db").status == 0


def _imported_verdict(cli: Any, folder: Path) -> None:
    rows = "".join(f"q{number},x,y,{'AB'[number % 3 == 0]},ann\n" for number in range(9))
    (folder / "verdicts.csv").write_text("qid,agent_a,agent_b,verdict,judge\n" + rows, encoding="utf-8")
    assert cli("import", "verdicts", folder / "verdicts.csv", "--store", folder / "imported.db").status == 0
    assert cli("leaderboard", folder / "imported.db").status == 0


@pytest.mark.parametrize(
    ("name", "travel"),
    [
        ("One game", _game),
        ("One nugget", _nugget),
        ("One vote", _vote),
        ("One imported verdict", _imported_verdict),
    ],
)
def test_a_way_is_entered_in_the_order_that_is_listed(
    name: str, travel: Callable[[Any, Path], None], cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 10 <= len(WAYS[name]) <= 15
    monkeypatch.setenv(EVERYBODY_VARIABLE, "editor")
    monkeypatch.setenv(LOCATION_VARIABLE, str(write_store(tmp_path / "votes.db", queries=4)))
    with traced() as entered:
        travel(cli, tmp_path)
    passed = [step for step in entered if step in WAYS[name]]
    assert passed == WAYS[name], "\n".join(map(str, passed))


def test_the_picture_of_the_house_is_the_order_that_import_linter_holds() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    picture = re.search(r"```\n(.*?)```", contributing, re.DOTALL)
    assert picture is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    inside, packages = (
        next(each["layers"] for each in contracts if ("containers" in each) is within and each["type"] == "layers")
        for within in (True, False)
    )
    rows = [re.split(r"  +", line.strip(" |")) for line in picture[1].splitlines()]
    names = [name for *folders, _says in rows for folder in folders for name in folder.split(", ")]
    for layers in (packages, [layer for layer in inside if layer != "demo"]):
        assert [name for name in names if name in layers] == layers


IN_TWO_MODULES = {
    "Answer": "the answer that is judged; in `ragleague` what a function that answers returns",
    "AskedAgent": "an agent in the queue; in `ragleague` what may be given as one",
    "Board": "what is shown of results; in `ragleague` what a program holds of a tournament",
    "Section": "a part of what is shown; a part of the YAML file",
}
"""Names of classes and types that stand in two modules, and why."""


def test_a_class_name_means_one_thing() -> None:
    modules: defaultdict[str, set[str]] = defaultdict(set)
    for package in ("judges", "retrieval_eval", "arena", "ui", "ragleague"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    modules[node.name].add(str(path))
                elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
                    modules[ast.unparse(node.target)].add(str(path))
    several = {name for name, paths in modules.items() if len(paths) > 1 and not name.startswith("_")}
    assert several == IN_TWO_MODULES.keys()


EMPTY_NAMES = {"own", "found", "said", "told"}
"""Identifiers that name nothing; a noun of the glossary says more."""


def test_names_say_what_a_thing_is() -> None:
    files: Counter[str] = Counter()
    for package in ("judges", "retrieval_eval", "arena", "ui", "ragleague"):
        for path in (ROOT / package).rglob("*.py"):
            with tokenize.open(path) as source:
                tokens = tokenize.generate_tokens(source.readline)
                files[str(path)] += sum(token.type == tokenize.NAME and token.string in EMPTY_NAMES for token in tokens)
    assert files.total() <= 400, files.most_common(5)
