"""Rate agents by a table of verdicts, from Python."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from arena.boards.rated_tables import RatedTable, TableOptions, rate_table
from arena.boards.ratings import RatedBoard
from arena.config.ratings import RatingOptions
from arena.present.blocks import Board as Shown
from arena.present.table import plain
from arena.ratings.results import Ratings
from judges.errors import InputError
from judges.sections import argument
from ragleague.shown import NotebookPicture, as_html, as_text, drawn, frame

if TYPE_CHECKING:
    import pandas as pd


_SHOWN = 2
"""Number of sections shown by default: the conclusion and the ratings."""


class Rated(Struct, frozen=True):
    """Ratings computed from a table of verdicts; printed, or at the end of a notebook cell, it shows them.

    Attributes:
        table: everything that was computed.

    Example:
        >>> row = {"agent_a": "new", "agent_b": "old", "order": 1}
        >>> rated = rl.rate([{**row, "qid": f"q{n}", "verdict": "AAB"[n % 3]} for n in range(9)])
        >>> isinstance(rated, rl.Rated)
        True
    """

    table: RatedTable

    @property
    def ratings(self) -> Ratings:
        """Elo and Bradley-Terry ratings, ranks, and the judges' health.

        Example:
            >>> rl.rate("demo-verdicts.csv").ratings.by_rank[0].agent
            'fusion-bm25'
        """
        return self.table.ratings

    def to_frame(self) -> pd.DataFrame:
        """One row per agent, best first, with the columns of ``ragleague rate --format csv``.

        Example:
            >>> rl.rate("demo-verdicts.csv").to_frame()["agent"][0]
            'fusion-bm25'
        """
        return frame(self._board.tables()[0])

    def json(self) -> Any:
        """The output of ``ragleague rate --format json``.

        Example:
            >>> len(rl.rate("demo-verdicts.csv").json()["agents"])
            7
        """
        return plain(self._board.json())

    def plot(self, path: str | Path | None = None) -> NotebookPicture:
        """A picture of the ratings with their intervals.

        Args:
            path: a ``.svg``, ``.png`` or ``.html`` file to write the picture to.

        Example:
            >>> picture = rl.rate("demo-verdicts.csv").plot("ratings.svg")
        """
        return drawn(self._board.pictures()[0], path, "ratings")

    def __repr__(self) -> str:
        return as_text(self._board.sections()[:_SHOWN])

    def _repr_html_(self) -> str:
        return as_html(self._board.sections()[:_SHOWN])

    @property
    def _board(self) -> Shown:
        return RatedBoard(self.table)


def rate(
    verdicts: pd.DataFrame | Iterable[Mapping[str, Any]] | str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, str] | None = None,
    cluster: str | None = "auto",
    covariates: Iterable[str] = (),
    by_judge: bool = False,
    skip_empty: bool = False,
    skip_self_play: bool = False,
    **settings: Any,
) -> Rated:
    """Rate agents by a table of verdicts, without a store or a configuration.

    Args:
        verdicts: a data frame, dictionaries, or a file that ``ragleague rate`` reads; columns ``agent_a, agent_b,
            verdict`` (A, B or TIE) and optionally ``qid, judge, order``.
        columns: the table's column for one of our names, as in ``{"verdict": "gold"}``.
        values: the meaning of words, numbers or ranges: ``{"A ist besser": "A", "0": "TIE", "-3..-1": "A"}``.
        cluster: the column whose values are resampled whole. ``None`` resamples single games; ``auto`` resamples
            conversations if there is a column of that name, else queries.
        covariates: numeric columns to control the ratings for, see ``TableOptions``.
        by_judge: also rate each judge's verdicts alone.
        skip_empty: leave out and count rows without a verdict.
        skip_self_play: leave out and count games of an agent against itself.
        settings: ``RatingOptions``: ``ties``, ``position``, ``anchor``, ``bootstrap``, ``seed``, ...

    Raises:
        InputError: the table, a column or a setting is invalid; the message says which and why.

    Example:
        >>> rated = rl.rate("demo-verdicts.csv", bootstrap=200)
        >>> rated.to_frame()[["agent", "wins", "losses"]].head(2)
                 agent  wins  losses
        0  fusion-bm25    56      23
        1     rag-bm25    55      25
    """
    chosen: RatingOptions = argument("rate", RatingOptions, {"cluster": cluster is not None, **settings})
    mapped = argument("columns", dict[str, str], columns or {})
    names = tuple(f"{ours}={theirs}" for ours, theirs in mapped.items())
    numeric = tuple(argument("covariates", list[str], covariates))
    by = argument("cluster", str | None, cluster) or "none"
    meant = argument("values", dict[str, str], values or {})
    how = TableOptions(by, numeric, names, meant, skip_empty, skip_self_play, by_judge)
    if isinstance(verdicts, str | Path):
        return Rated(rate_table(Path(verdicts), chosen.settings(), how))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verdicts.parquet"
        _written(verdicts, path)
        try:
            return Rated(rate_table(path, chosen.settings(), how))
        except InputError as error:
            message = str(error).replace(f"{path} ", "").replace(f"{path}: ", "")
            raise InputError(message.replace("say --skip-faulty", "give skip_empty=True")) from error


def _written(rows: pd.DataFrame | Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write rows to a file, so that the reader of files reads every table."""
    import pandas as pd
    import pyarrow as pa

    if not isinstance(rows, Iterable):
        raise InputError(f"verdicts: give a frame, dictionaries or a file, and not {type(rows).__name__}")
    table = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
    if not all(isinstance(name, str) for name in table):
        raise InputError("verdicts: give a frame, dictionaries or a file: the columns have no names")
    if table.empty:
        raise InputError("verdicts: the table has no rows; add at least one")
    try:
        table.assign(**{name: _alike(table[name]) for name in table.columns}).to_parquet(path, index=False)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"verdicts: cannot be read as a table: {str(error).splitlines()[0]}") from error


def _alike(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column of mixed types as text, and whole floats as integers: pandas turns integers with gaps into floats."""
    if column.dtype.kind == "f" and (column.dropna() % 1 == 0).all():
        return column.astype("Int64")
    several = column.dtype == object and len(set(map(type, column.dropna()))) > 1
    return column.map(str, na_action="ignore") if several else column
