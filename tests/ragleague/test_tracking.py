"""What MLflow holds after a board was logged to it; in a process of its own, since MLflow warns and starts threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
        [sys.executable, "-W", "ignore", "-c", LOG, f"sqlite:///{tmp_path}/runs.db", played_demo / "tournament.yaml"],
        cwd=tmp_path,
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "GIT_PYTHON_REFRESH": "quiet"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.endswith("kept\n"), ran.stderr[-2000:]
