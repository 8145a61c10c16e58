"""Every public name of ``ragleague`` has an example, and it does what it shows."""

from __future__ import annotations

import doctest
import inspect
import json
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

import ragleague
from arena.demo import copy_demo
from ragleague import testing


def public() -> Iterator[tuple[str, Any]]:
    yield "ragleague", ragleague
    yield "ragleague.testing.assert_not_worse", testing.assert_not_worse
    for name in ragleague.__all__:
        if name == "__version__":  # a text, which can have no docstring
            continue
        value = getattr(ragleague, name)
        yield name, value
        if name in {"Board", "Rated"}:
            methods = (each for each in vars(value) if not each.startswith("_") and each not in ("table", "store"))
            yield from ((f"{name}.{method}", inspect.getattr_static(value, method)) for method in methods)


PUBLIC = dict(public())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples")
    config = copy_demo(folder / "demo")
    ragleague.run(config, progress=False).games().to_csv(folder / "demo-verdicts.csv", index=False)
    return folder


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_an_example_that_runs(name: str, folder: Path) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    example = doctest.DocTestParser().get_doctest(text, {"rl": ragleague}, name, None, None)
    assert example.examples, f"{name} has no example"
    report: list[str] = []
    with chdir(folder):
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=report.append)
    assert not report, "".join(report)


SIX_LINES = (
    'import ragleague as rl\ndata = rl.load("answers/*.jsonl")',
    "def judge(prompt):\n"
    "    first, second = prompt.asked.inputs.answers\n"
    '    return "A" if len(first.text) > len(second.text) else "B"\n'
    "board = rl.run(data, judge=judge)",
    "board",
    "board.to_frame(); board.games(); board.plot('compare')",
    'board.report("board.html")',
    "rl.rate(board.games(), bootstrap=50)",
    'board.compare("new", "old")',
    "class Judge:\n    def __call__(self, prompt):\n        return 'TIE'\nrl.run(data, judge=Judge)",
    "class Judge:\n    def __call__(self, prompt):\n        return 'A'\nrl.run(data, judge=Judge)",
)


def run_notebook(cells: Sequence[str], folder: Path) -> list[Any]:
    notebook = new_notebook(cells=[new_code_cell(source) for source in cells])
    settings = {"timeout": 300, "kernel_name": "python3", "allow_errors": True}
    NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}, **settings).execute()
    cells_run: list[Any] = notebook.cells
    return cells_run


def streamed(cell: Any) -> str:
    return "".join(output["text"] for output in cell.outputs if output.output_type == "stream")


@pytest.mark.filterwarnings("default")  # of the kernel's own libraries
def test_a_judge_written_in_a_cell_judges_answers_from_files(tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()
    for agent, more in (("new", " Really."), ("old", "")):
        rows = [{"question": f"Why {n}?", "answer": f"Because of {n}.{more}"} for n in range(12)]
        (tmp_path / "answers" / f"{agent}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    cells = run_notebook(SIX_LINES, tmp_path)
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]
    assert "pairwise: 1 of 24" in streamed(cells[1])
    assert "pairwise: 24 judged, 0 needed no call" in streamed(cells[1])
    assert {output["name"] for output in cells[1].outputs} == {"stdout"}  # what comes by stderr is painted red
    assert "new" in cells[2].outputs[0]["data"]["text/html"]
    assert (tmp_path / "board.html").exists()
    assert "new is better than old" in cells[6].outputs[0]["data"]["text/markdown"]
    assert all(
        "24 judged, 0 needed no call" in streamed(cell) for cell in cells[7:]
    )  # another class, though of the same name
