"""What CONTRIBUTING tells, held against the code: the way of an answer, and that a class name means one thing."""

from __future__ import annotations

import ast
import re
import sys
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

from arena.demo import copy_demo

ROOT = Path(__file__).resolve().parents[1]
_STEP = re.compile(r"^\| [^|]+ \| `(?P<file>[\w/]+\.py): (?P<function>\w+)` \|$", re.MULTILINE)


def test_an_answers_way_is_the_one_that_is_told(cli: Any, tmp_path: Path) -> None:
    told = [(step["file"], step["function"]) for step in _STEP.finditer((ROOT / "CONTRIBUTING.md").read_text())]
    assert 10 <= len(told) <= 15
    entered: dict[tuple[str, str], None] = {}

    def enter(frame: Any, event: str, _argument: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(f"{ROOT}/"):
            entered.setdefault((file[len(f"{ROOT}/") :], frame.f_code.co_name))

    config = copy_demo(tmp_path / "demo")
    text = config.read_text()
    config.write_text(text[: text.index("retrieval:")] + "pairwise: {judges: [lexical], documents: {include: false}}\n")
    try:
        threading.setprofile(enter)
        sys.setprofile(enter)
        assert cli("run", config).status == 0
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    found = [step for step in entered if step in told]
    assert found == told, "\n".join(map(str, found))


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
