"""The public interface in a real notebook: a kernel of its own runs the cells, with its event loop."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

CELLS = (
    'import ragleague as rl\nboard = rl.run("demo/tournament.yaml")\nboard',
    'board.plot("compare")',
    "board.to_frame()",
    'rl.rate(board.games(), bootstrap=50).plot("ratings.svg")',
    "rl.rate([], sed=1)",
)


@pytest.mark.filterwarnings("default")  # of the kernel's own libraries
def test_cells_of_a_notebook_show_boards_and_pictures(played_demo: Path, tmp_path: Path) -> None:
    shutil.copytree(played_demo, tmp_path / "demo")
    notebook = new_notebook(cells=[new_code_cell(source) for source in CELLS])
    settings = {"timeout": 300, "kernel_name": "python3", "allow_errors": True}
    NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}, **settings).execute()
    told = "".join(output["text"] for output in notebook.cells[0].outputs if output.output_type == "stream")
    assert "of 1,092" in told
    assert "pairwise: 0 judged, 1092 known" in told
    shown = [output for cell in notebook.cells[:4] for output in cell.outputs if output.output_type != "stream"]
    assert [output.output_type for output in shown] == ["execute_result"] * 4, shown
    board, compare, frame, ratings = (output["data"] for output in shown)
    assert "No language model judged these games" in board["text/html"]
    assert "No language model judged these games" in board["text/plain"]
    assert "Row against column, % won" in compare["text/html"]
    assert "7 rows" in frame["text/html"]
    assert "weak-baseline" in ratings["text/html"]
    assert (tmp_path / "ratings.svg").exists()
    (wrong,) = notebook.cells[4].outputs
    assert (wrong.ename, wrong.evalue) == ("InputError", "rate: unknown setting 'sed'; did you mean 'seed'?")
