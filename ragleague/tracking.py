"""Log a tournament's results to MLflow."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from judges.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

    from arena.boards.conclusion import Conclusion

_NOT_IN_A_KEY = re.compile(r"[^\w./ -]", re.ASCII)


class Tracked(Protocol):
    """The properties and methods of a board that ``log_to_mlflow`` uses."""

    tournament: str

    @property
    def conclusion(self) -> Conclusion: ...

    @property
    def ratings(self) -> object | None: ...

    def to_frame(self) -> pd.DataFrame: ...

    def tables(self) -> dict[str, pd.DataFrame]: ...

    def json(self) -> Any: ...

    def report(self, path: Path) -> Path: ...

    def plot(self, what: Literal["compare"], path: Path) -> object: ...


def log_to_mlflow(board: Tracked) -> None:
    """Log a board to the active MLflow run; starts and ends a run if none is active.

    Raises:
        MissingExtraError: MLflow is not installed.
    """
    try:
        import mlflow
    except ImportError as error:
        raise MissingExtraError("mlflow", "'to_mlflow'") from error
    if mlflow.active_run() is None:
        with mlflow.start_run(run_name=board.tournament):
            return log_to_mlflow(board)
    frame = board.to_frame().set_index("agent")
    metrics = {
        _NOT_IN_A_KEY.sub("_", f"{agent}/{name}"): float(value)
        for name, values in frame.select_dtypes("number").items()
        for agent, value in values.dropna().items()
    }
    mlflow.log_metrics(metrics)
    conclusion = board.conclusion
    mlflow.set_tags({"ragleague.conclusion": conclusion.line, "ragleague.standing": conclusion.standing})
    mlflow.log_dict(board.json(), "leaderboard.json")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for table, rows in board.tables().items():
            rows.to_csv(folder / f"{table}.csv", index=False)
        mlflow.log_artifacts(name, "tables")
        mlflow.log_artifact(str(board.report(folder / "report.html")))
        if board.ratings is not None:
            board.plot("compare", folder / "compare.svg")
            mlflow.log_artifact(str(folder / "compare.svg"))
    return None
