"""A tournament's results in Python: figures as frames, pictures and pages that notebooks show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from arena.boards.gate.board import GateBoard
from arena.boards.gate.compare import compare
from arena.boards.gate.score import MARGIN
from arena.boards.leaderboard import TournamentBoard, judged_on, with_people
from arena.present.table import plain
from arena.results.cache import cached_leaderboard
from arena.store import Store
from judges.errors import InputError
from judges.sections import argument
from ragleague.shown import NotebookPicture, drawn, fragment, frame

if TYPE_CHECKING:
    import pandas as pd

    from arena.boards.compare import CompareBoard
    from arena.boards.conclusion import Conclusion
    from arena.present.picture import Picture
    from arena.ratings.results import Ratings

Plot = Literal["compare", "ratings", "matrix"]
"""All scores side by side with the win matrix; ratings with their intervals; who won how often against whom."""
_PLOTS = ("compare", "ratings", "matrix")


class Board:
    """What a tournament has shown so far. It reads its store anew where something was judged since.

    At the end of a notebook's cell, or printed, it shows the conclusion, the agents and the checks that failed.

    Args:
        store: path or URL of the store.
        tournament: its name; may be left out where the store holds one alone.

    Raises:
        InputError: there is no such store or tournament.
    """

    def __init__(self, store: str | Path, tournament: str | None = None) -> None:
        self.store = str(store)
        with closing(Store.open(self.store)) as opened:
            self.tournament = tournament or opened.only_tournament()
            opened.settings(self.tournament)  # says which there are, if not this one

    @property
    def conclusion(self) -> Conclusion:
        """What may be said: ``headline``, ``sentence``, and as ``standing`` how firmly (decided, care, none)."""
        return self._shown().conclusion

    @property
    def ratings(self) -> Ratings | None:
        """Elo and Bradley-Terry ratings; ``None`` without games, or where too little is judged."""
        return self._shown().board.ratings

    @property
    def complete(self) -> bool:
        """Whether nothing that the tournament wants is missing."""
        return self._shown().board.complete

    def json(self) -> Any:
        """What ``ragleague leaderboard --format json`` prints, as dictionaries and lists."""
        return plain(self._shown().json())

    def to_frame(self) -> pd.DataFrame:
        """A row for each agent, best first, with the columns of ``ragleague leaderboard --format csv``."""
        return frame(self._shown().tables()[0])

    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table of the leaderboard by its name; a stage's table has the stage's name."""
        return {table.name: frame(table) for table in self._shown().tables()}

    def scores(self, of: str = "", *, by: Literal["agent", "query"] = "agent") -> pd.DataFrame:
        """Scores of agents, with intervals, or of agents on single queries.

        Args:
            of: ``pairwise``, ``exam``, ``nuggets``, ``criteria``, ``people``, a measure such as ``nDCG@10``; all when
                left out.
            by: ``agent``: columns agent, score, value, low, high, queries. ``query``: columns score, query_id and one
                for each agent, NaN where it has no score.

        Raises:
            InputError: the tournament has no such score.
        """
        import pandas as pd

        from arena.boards.compare import OF_STAGE

        compared = self._compared()
        called = {way.name: way.name for way in compared.ways}
        called |= {name: stage for stage, name in OF_STAGE.items() if name in called}
        chosen = [name for name, shown in called.items() if of in ("", name, shown)]
        if not chosen:
            raise InputError(f"no score {of!r}; there are {', '.join(called.values()) or 'none'}")
        if by not in {"agent", "query"}:
            raise InputError(f"by={by!r}: there are 'agent' and 'query'")
        if by == "query":
            frames = [
                pd.DataFrame(own.values.T, columns=list(own.agents)).assign(
                    score=called[own.name], query_id=list(own.queries)
                )
                for own in compared.by_query
                if own.name in chosen
            ]
            if not frames:
                raise InputError(f"{of!r} has no score of a single query; try by='agent'")
            found = pd.concat(frames, ignore_index=True)
            return found[["score", "query_id", *(name for name in found if name not in {"score", "query_id"})]]
        rows = [
            (agent, called[way.name], own.value, own.low, own.high, own.n)
            for way in compared.ways
            if way.name in chosen
            for agent, own in way.scores.items()
        ]
        return pd.DataFrame(rows, columns=["agent", "score", "value", "low", "high", "queries"])

    def games(self) -> pd.DataFrame:
        """Every verdict as judged, a row for each order shown: qid, agent_a, agent_b, verdict, judge, order, reason."""
        import pandas as pd

        from arena.boards.exports import verdict_rows_of

        with self._opened() as store:
            columns, rows = verdict_rows_of(store, self.tournament)
            return pd.DataFrame(list(rows), columns=list(columns))

    def compare(self, new: str, old: str, *, on: str | Sequence[str] = (), margin: float = MARGIN) -> GateBoard:
        """Is an agent better than another, not worse, worse, or is that undecided? Says what would decide it.

        Args:
            new: the agent that may replace the other.
            old: the other.
            on: ``pairwise``, ``exam``, ``nuggets``, ``criteria``, a measure such as ``nDCG@10``, or several; all that
                there is when left out.
            margin: how much worse still passes, in share of games won or in units of the score.

        Raises:
            InputError: no such agent or score.
        """
        with self._opened() as store:
            named = argument("on", str | list[str], on)
            return compare(store, self.tournament, new, old, on=named, margin=argument("margin", float, margin))

    def plot(self, what: Plot = "compare", path: str | Path | None = None) -> NotebookPicture:
        """A picture, which a notebook shows at the end of a cell.

        Args:
            what: ``compare``, ``ratings`` or ``matrix``.
            path: a ``.svg``, ``.png`` or ``.html`` file to write it to.

        Raises:
            InputError: no such picture, nothing to draw, or the file cannot be written.
        """
        if what not in _PLOTS:
            raise InputError(f"no plot {what!r}; there are {', '.join(_PLOTS)}")
        picture = self._picture(what)
        if picture is None:
            raise InputError(f"{self.tournament}: nothing to plot as {what!r}: no agent has a rating")
        return drawn(picture, path, self.tournament)

    def report(self, path: str | Path = "report.html") -> Path:
        """Write all of it as one HTML file that needs no network and runs no script; gives back its path.

        Raises:
            InputError: a file stands there that is no report.
        """
        from arena.boards.report import write_report

        with self._opened() as store:
            path = Path(argument("report", str | Path, path))
            write_report(store, self.tournament, path, Path(self.store).name)
        return path

    def to_mlflow(self) -> None:
        """Log figures as metrics (``AGENT/bt``), and tables, picture and report as artifacts of the active MLflow run.

        Without an active run, one is made.

        Raises:
            MissingExtraError: the extra ``mlflow`` is not installed.
        """
        from ragleague.tracking import log_to_mlflow

        log_to_mlflow(self)

    def __repr__(self) -> str:
        return self._shown().screen().rstrip()

    def _repr_html_(self) -> str:
        with self._opened() as store:
            queries = len(store.queries(self.tournament))
            return fragment(self._shown().opening(queries, judged_on(store, self.tournament)))

    def _picture(self, what: Plot) -> Picture | None:
        if what == "compare":
            compared = self._compared()
            return compared.figure() if compared.ways else None
        kind = "Whiskers" if what == "ratings" else "Matrix"
        if what == "matrix":
            compared = self._compared()
            return None if compared.wins is None else compared.wins.picture()
        drawn = (own for own in self._shown().pictures() if type(own).__name__ == kind)
        return next(drawn, None)

    def _compared(self) -> CompareBoard:
        from arena.boards.compare import compare_board

        with self._opened() as store:
            return compare_board(store, self.tournament)

    def _shown(self) -> TournamentBoard:
        with self._opened() as store:
            return with_people(store, cached_leaderboard(store, self.tournament))

    @contextmanager
    def _opened(self) -> Iterator[Store]:
        with closing(Store.open(self.store)) as store:
            yield store
