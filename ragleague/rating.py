"""Ratings of verdicts that stand in a frame or a file, in Python."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from msgspec import Struct

from arena.boards.rated_tables import RatedTable, TableOptions, rate_table
from arena.boards.ratings import RatedBoard
from arena.present.blocks import Board as Shown
from arena.present.table import plain
from arena.ratings.results import Ratings, RatingSettings
from judges.errors import InputError
from judges.sections import argument, nearest
from ragleague.shown import NotebookPicture, as_html, as_text, drawn, frame

if TYPE_CHECKING:
    import pandas as pd


_SHOWN = 2
"""Sections that appear by themselves: what may be concluded, and the ratings."""


class Rated(Struct, frozen=True):
    """Ratings of a table of verdicts. At the end of a notebook's cell, or printed, it shows them.

    Attributes:
        table: everything that was computed.
    """

    table: RatedTable

    @property
    def ratings(self) -> Ratings:
        """Elo and Bradley-Terry ratings, ranks, the judges' health."""
        return self.table.ratings

    def to_frame(self) -> pd.DataFrame:
        """A row for each agent, best first, with the columns of ``ragleague rate --format csv``."""
        return frame(self._board.tables()[0])

    def json(self) -> Any:
        """What ``ragleague rate --format json`` prints."""
        return plain(self._board.json())

    def plot(self, path: str | Path | None = None) -> NotebookPicture:
        """Ratings with their intervals; ``path`` ends in ``.svg``, ``.png`` or ``.html``."""
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
    """Rate agents by verdicts: no store, no configuration.

    Args:
        verdicts: columns ``agent_a, agent_b, verdict`` (A, B or TIE) and, where there are, ``qid, judge, order``: a
            frame, dictionaries, or a file as ``ragleague rate`` reads it.
        columns: the table's name for one of ours: ``{"verdict": "gold"}``.
        values: what words, numbers or ranges of numbers mean: ``{"A ist besser": "A", "0": "TIE", "-3..-1": "A"}``.
        cluster: the column whose values are resampled whole; ``None`` resamples single games, and ``auto`` the
            conversations of a column of that name, else queries.
        covariates: numeric columns that ratings are controlled for, see ``TableOptions``.
        by_judge: also rate each judge's verdicts alone.
        skip_empty: leave out and count rows without a verdict.
        skip_self_play: leave out and count games of an agent against itself.
        settings: fields of ``RatingSettings``: ``ties``, ``position``, ``anchor``, ``bootstrap``, ``seed``, ...

    Raises:
        InputError: the table, a column or a setting cannot be used; says which and why.
    """
    known = get_type_hints(RatingSettings)
    if unknown := [name for name in settings if name not in known]:
        raise InputError(f"rate: unknown setting {unknown[0]!r}{nearest(unknown[0], known)}")
    given = {"cluster": cluster is not None, **settings}
    chosen = RatingSettings(**{name: argument(f"rate.{name}", known[name], own) for name, own in given.items()})
    mapped = argument("columns", dict[str, str], columns or {})
    names = tuple(f"{ours}={theirs}" for ours, theirs in mapped.items())
    numeric = tuple(argument("covariates", list[str], covariates))
    by = argument("cluster", str | None, cluster) or "none"
    meant = argument("values", dict[str, str], values or {})
    how = TableOptions(by, numeric, names, meant, skip_empty, skip_self_play, by_judge)
    if isinstance(verdicts, str | Path):
        return Rated(rate_table(Path(verdicts), chosen, how))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verdicts.parquet"
        _written(verdicts, path)
        try:
            return Rated(rate_table(path, chosen, how))
        except InputError as error:
            said = str(error).replace(f"{path} ", "").replace(f"{path}: ", "")
            raise InputError(said.replace("say --skip-faulty", "give skip_empty=True")) from error


def _written(rows: pd.DataFrame | Iterable[Mapping[str, Any]], path: Path) -> None:
    """Rows as a file of their own, so that a table is read in one place alone."""
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
    """Values of several kinds as text, and fractions that are whole as such: pandas makes them of numbers with gaps."""
    if column.dtype.kind == "f" and (column.dropna() % 1 == 0).all():
        return column.astype("Int64")
    several = column.dtype == object and len(set(map(type, column.dropna()))) > 1
    return column.map(str, na_action="ignore") if several else column
