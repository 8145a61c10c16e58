"""A tournament's results in Python: data frames, pictures and HTML for notebooks."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from arena.boards.gate.board import GateBoard
from arena.boards.gate.compare import compare
from arena.boards.gate.figures import MARGIN, JudgesAs
from arena.boards.leaderboard import TournamentBoard, with_people
from arena.data.dataset import read_group
from arena.present.table import plain
from arena.results.cache import cached_leaderboard
from arena.results.groups import require_column
from arena.results.ratings import of_group, queries_of
from arena.store import Store
from judges.errors import InputError, MissingExtraError
from judges.sections import argument
from ragleague.shown import NotebookPicture, drawn, fragment, frame

if TYPE_CHECKING:
    import pandas as pd

    from arena.boards.compare import CompareBoard
    from arena.boards.conclusion import Conclusion
    from arena.present.picture import Picture
    from arena.ratings.results import Ratings

Plot = Literal["compare", "ratings", "matrix"]
"""A kind of picture: all scores side by side, the ratings with their intervals, or the matrix of wins."""
_PLOTS = ("compare", "ratings", "matrix")
_NOT_IN_A_KEY = re.compile(r"[^\w./ -]", re.ASCII)
"""Characters that MLflow refuses in names of metrics."""


class Board:
    """The results of a tournament so far. Each call reads the store again if there are new judgments.

    If you print a board, or end a notebook cell with it, it shows the conclusion, the agents and the failed checks.

    Args:
        store: path or URL of the store.
        tournament: name of the tournament; optional if the store has only one tournament.
        group: a column of the queries and a value, as in ``"kind=factual"``: only the queries with this value count.
        by: a column of the queries: the leader is tested on its groups alone, not on those of all columns.

    Raises:
        InputError: there is no such store, tournament, group or column.

    Example:
        >>> board = rl.Board("demo/rag-handbook.db")
        >>> board.tournament
        'rag-handbook'
    """

    def __init__(self, store: str | Path, tournament: str | None = None, *, group: str = "", by: str = "") -> None:
        self.store = str(store)
        self.group, self.by = read_group(argument("group", str, group)), argument("by", str, by)
        with closing(Store.open(self.store)) as opened:
            self.tournament = tournament or opened.only_tournament()
            opened.settings(self.tournament)  # raises, and lists the names, if this one is unknown
            queries = queries_of(opened.queries(self.tournament), self.group)  # likewise
        if self.by:
            require_column(queries, self.by)

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion: ``headline``, ``sentence``, and ``standing``.

        The standing is ``decided``, ``care`` if a trust check failed, or ``none`` if there is no conclusion.

        Example:
            >>> rl.open("demo/rag-handbook.db").conclusion.headline
            'No language model judged these games'
        """
        return self._shown().conclusion

    @property
    def ratings(self) -> Ratings | None:
        """Elo and Bradley-Terry ratings; ``None`` if there are no games, or if too few were judged.

        Example:
            >>> [line.agent for line in rl.open("demo/rag-handbook.db").ratings.by_rank][:2]
            ['fusion-bm25', 'rag-hybrid']
        """
        return self._shown().board.ratings

    @property
    def complete(self) -> bool:
        """Whether the tournament has all answers and judgments that it plans.

        Example:
            >>> rl.open("demo/rag-handbook.db").complete
            True
        """
        return self._shown().board.complete

    def json(self) -> Any:
        """The output of ``ragleague leaderboard --format json``, as dictionaries and lists.

        Example:
            >>> rl.open("demo/rag-handbook.db").json()["conclusion"]["standing"]
            'none'
        """
        return plain(self._shown().json())

    def to_frame(self) -> pd.DataFrame:
        """One row per agent, best first, with the columns of ``ragleague leaderboard --format csv``.

        Example:
            >>> rl.open("demo/rag-handbook.db").to_frame()[["agent", "rank", "wins"]].head(2)
                     agent  rank  wins
            0  fusion-bm25     1    54
            1   rag-hybrid     2    49
        """
        return frame(self._shown().tables()[0])

    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table of the leaderboard, by name; a stage's table has the stage's name.

        Example:
            >>> list(rl.open("demo/rag-handbook.db").tables())[:2]
            ['leaderboard', 'leaderboard-neighbours']
        """
        return {table.name: frame(table) for table in self._shown().tables()}

    def scores(self, of: str = "", *, by: Literal["agent", "query"] = "agent") -> pd.DataFrame:
        """The agents' scores with intervals, or their scores on each query.

        Args:
            of: ``pairwise``, ``exam``, ``nuggets``, ``criteria``, ``people`` or a measure such as ``nDCG@10``; all
                scores by default.
            by: ``agent`` gives the columns agent, score, value, low, high, queries. ``query`` gives score, query_id
                and a column per agent, NaN where the agent has no score.

        Raises:
            InputError: the tournament has no such score.

        Example:
            >>> rl.open("demo/rag-handbook.db").scores("nuggets")[["agent", "value", "queries"]].round(2).head(2)
                      agent  value  queries
            0   fusion-bm25   0.53       26
            1  fusion-dense   0.48       26
        """
        import pandas as pd

        from arena.boards.compare import OF_STAGE, score_of

        compared = self._compared()
        public_names = {way.name: way.name for way in compared.ways}
        public_names |= {name: stage for stage, name in OF_STAGE.items() if name in public_names}
        chosen = [name for name, public in public_names.items() if of in ("", name, public) or name == score_of(of)]
        if not chosen:
            raise InputError(f"no score {of!r}; there are {', '.join(public_names.values()) or 'none'}")
        if by not in {"agent", "query"}:
            raise InputError(f"by={by!r}: must be 'agent' or 'query'")
        if by == "query":
            frames = [
                pd.DataFrame(score.values.T, columns=list(score.agents)).assign(
                    score=public_names[score.name], query_id=list(score.queries)
                )
                for score in compared.by_query
                if score.name in chosen
            ]
            if not frames:
                raise InputError(f"{of!r} has no scores by query; give by='agent'")
            table = pd.concat(frames, ignore_index=True)
            return table[["score", "query_id", *(name for name in table if name not in {"score", "query_id"})]]
        rows = [
            (agent, public_names[way.name], estimate.value, estimate.low, estimate.high, estimate.n)
            for way in compared.ways
            if way.name in chosen
            for agent, estimate in way.scores.items()
        ]
        return pd.DataFrame(rows, columns=["agent", "score", "value", "low", "high", "queries"])

    def games(self) -> pd.DataFrame:
        """All verdicts, one row per order in which the answers were shown.

        Columns: qid, agent_a, agent_b, verdict, judge, order, reason.

        Example:
            >>> len(rl.open("demo/rag-handbook.db").games())
            1092
        """
        import pandas as pd

        from arena.boards.exports import verdict_rows_of

        with self._opened() as store:
            columns, rows = verdict_rows_of(store, self.tournament)
            return pd.DataFrame(list(rows), columns=list(columns))

    def compare(
        self,
        new: str,
        old: str,
        *,
        on: str | Sequence[str] = (),
        margin: float = MARGIN,
        judges: JudgesAs = "fixed",
        by: str = "",
    ) -> GateBoard:
        """Compare a new agent with an old one: better, not worse, worse, or undecided, with what would decide it.

        Args:
            new: the agent that may replace the old one.
            old: the agent in use.
            on: ``pairwise``, ``exam``, ``nuggets``, ``criteria``, a measure such as ``nDCG@10``, or a list of these;
                every score by default.
            margin: how much worse the new agent may be, as a share of games won or in units of the score.
            judges: with ``random``, the verdict by games must hold for other judges of this kind too.
            by: a column of the queries: compares the agents on each of its groups too (``GateBoard.groups``). The
                verdict *worse* on a group makes the verdict on all *worse*.

        Raises:
            InputError: there is no such agent, score or column.

        Example:
            >>> gate = rl.open("demo/rag-handbook.db").compare("rag-hybrid", "weak-baseline", on="pairwise")
            >>> gate.passed
            True
        """
        with self._opened() as store:
            scores = argument("on", str | list[str], on)
            margin, by = argument("margin", float, margin), argument("by", str, by)
            judges = argument("judges", JudgesAs, judges)
            return compare(store, self.tournament, new, old, on=scores, margin=margin, judges=judges, by=by)

    def plot(self, what: Plot = "compare", path: str | Path | None = None) -> NotebookPicture:
        """Plot scores, ratings or wins; a notebook shows the returned picture at the end of a cell.

        Args:
            what: ``compare`` (whether the scores agree with the games), ``ratings`` (with intervals) or ``matrix``
                (wins against each agent).
            path: a ``.svg``, ``.png`` or ``.html`` file to write the picture to.

        Raises:
            InputError: there is no such picture or nothing to draw, or the file cannot be written.

        Example:
            >>> picture = rl.open("demo/rag-handbook.db").plot("matrix", "matrix.svg")
        """
        if what not in _PLOTS:
            raise InputError(f"no plot {what!r}; there are {', '.join(_PLOTS)}")
        picture = self._picture(what)
        if picture is None:
            raise InputError(f"{self.tournament}: cannot plot {what!r}: no agent has a rating or score yet")
        return drawn(picture, path, self.tournament)

    def report(self, path: str | Path = "report.html") -> Path:
        """Write all results to one HTML file, which needs no network and runs no script, and return its path.

        Raises:
            InputError: the path names a file that is not a report.

        Example:
            >>> rl.open("demo/rag-handbook.db").report("board.html").name
            'board.html'
        """
        from arena.boards.report import write_report

        with self._opened() as store:
            path = Path(argument("report", str | Path, path))
            write_report(store, self.tournament, path, Path(self.store).name, by=self.by)
        return path

    def to_mlflow(self) -> None:
        """Log figures as metrics (``AGENT/bt``), and tables, picture and report as artifacts of the active MLflow run.

        If no run is active, it starts one and ends it afterwards.

        Raises:
            MissingExtraError: the extra ``mlflow`` is not installed.

        Example:
            >>> rl.open("demo/rag-handbook.db").to_mlflow()  # doctest: +SKIP
        """
        _log_to_mlflow(self)

    def __repr__(self) -> str:
        return self._shown().screen().rstrip()

    def _repr_html_(self) -> str:
        return fragment(self._shown().opening())

    def _picture(self, what: Plot) -> Picture | None:
        if what == "compare":
            from arena.boards.compare_drawing import compare_figure

            compared = self._compared()
            return compare_figure(compared) if compared.ways else None
        kind = "Whiskers" if what == "ratings" else "Matrix"
        if what == "matrix":
            compared = self._compared()
            return None if compared.wins is None else compared.wins.picture()
        return next((picture for picture in self._shown().pictures() if type(picture).__name__ == kind), None)

    def _compared(self) -> CompareBoard:
        from arena.boards.compare import compare_board

        with self._opened() as store:
            return compare_board(store, self.tournament)

    def _shown(self) -> TournamentBoard:
        with self._opened() as store:
            return with_people(store, cached_leaderboard(store, self.tournament, by=self.by))

    @contextmanager
    def _opened(self) -> Iterator[Store]:
        with closing(Store.open(self.store)) as store:
            yield of_group(store, self.tournament, self.group)


def _log_to_mlflow(board: Board) -> None:
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
            return _log_to_mlflow(board)
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
