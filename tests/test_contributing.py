"""The way of an answer, as CONTRIBUTING tells it, held against a run."""

from __future__ import annotations

import re
import sys
import threading
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
