"""Users' test suites, with the plugin in a pytest of its own; and what MLflow holds of a board, in a process too."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ragleague
from judges.errors import InputError
from ragleague.testing import assert_not_worse
from tests.conftest import ROOT

SUITE = """
from ragleague.testing import assert_not_worse

def test_passes(ragleague_board):
    assert_not_worse(ragleague_board, new="rag-bm25", old="weak-baseline")

def test_fails(ragleague_board):
    assert_not_worse(ragleague_board, new="weak-baseline", old="rag-bm25", on=["pairwise", "exam"])
"""


def test_the_assertion_fails_with_the_markdown(played_demo: Path) -> None:
    store = played_demo / "rag-handbook.db"
    found = assert_not_worse(store, new="rag-bm25", old="weak-baseline")
    assert found.passed
    assert assert_not_worse(ragleague.open(store), new="rag-bm25", old="weak-baseline").json() == found.json()
    with pytest.raises(AssertionError) as failed:
        assert_not_worse(store, new="rag-dense", old="rag-bm25")
    assert "### Undecided: it is not shown whether rag-dense is worse" in str(failed.value)
    assert "| Win rate, 0.5 is even | 0.423 |" in str(failed.value)
    with pytest.raises(InputError, match="no agent"):
        assert_not_worse(store, new="rag", old="rag-bm25")


def test_the_plugin_opens_the_tournament_of_the_settings(played_demo: Path, tmp_path: Path) -> None:
    (tmp_path / "test_rag.py").write_text(SUITE)
    store = os.path.relpath(played_demo / "rag-handbook.db", tmp_path)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nragleague = {store}\n")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "ragleague.pytest_plugin", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed" in ended.stdout, ended.stdout + ended.stderr
    assert "### Failed: weak-baseline is worse than rag-bm25." in ended.stdout
    assert "| EXAM-Cover |" in ended.stdout
    assert "gate.compare" not in ended.stdout  # the failure is the Markdown, not our code


def test_the_plugin_costs_suites_without_it_nothing() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["project"]["entry-points"]["pytest11"] == {"ragleague": "ragleague.pytest_plugin"}
    code = "import ragleague.pytest_plugin, sys; print([m for m in ('numpy', 'arena', 'judges') if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


LOG = """
import sys, mlflow, ragleague as rl
mlflow.set_tracking_uri(sys.argv[1])
board = rl.open(sys.argv[2])
board.to_mlflow()
assert mlflow.active_run() is None
client = mlflow.MlflowClient()
(kept,) = client.search_runs(["0"])
row = board.to_frame().set_index("agent").loc["rag-bm25"]
assert abs(kept.data.metrics["rag-bm25/bt"] - row["bt"]) < 1e-9
assert kept.data.tags["ragleague.standing"] == board.conclusion.standing == "none"
files = {file.path for file in client.list_artifacts(kept.info.run_id)}
assert files == {"leaderboard.json", "report.html", "compare.svg", "tables"}, files
assert "tables/leaderboard.csv" in {file.path for file in client.list_artifacts(kept.info.run_id, "tables")}
print("kept")
"""


def test_figures_tables_and_pictures_are_in_the_run(played_demo: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOG, (tmp_path / "runs").as_uri(), played_demo / "tournament.yaml"],
        cwd=tmp_path,
        # Files, since MLflow would make a database by each of its forty migrations.
        env=os.environ
        | {"MLFLOW_DISABLE_TELEMETRY": "true", "GIT_PYTHON_REFRESH": "quiet", "MLFLOW_ALLOW_FILE_STORE": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.endswith("kept\n"), ran.stderr[-2000:]
