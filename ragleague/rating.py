"""Rate agents by a table of verdicts, from Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
from retrieval_eval.data.columns import Frame, TextSource
from retrieval_eval.data.rows import Rows

if TYPE_CHECKING:
    import pandas as pd


_SHOWN = 2
"""Number of sections that a printed result shows: the conclusion and the ratings."""


class Rated(Struct, frozen=True):
    """Ratings computed from a table of verdicts. Print them, or end a notebook cell with them, to see the ratings.

    Attributes:
        table: the full results: the ratings and all other tables.

    Example:
        >>> row = {"agent_a": "new", "agent_b": "old", "order": 1}
        >>> rated = rl.rate([{**row, "qid": f"q{n}", "verdict": "AAB"[n % 3]} for n in range(9)])
        >>> isinstance(rated, rl.Rated)
        True
    """

    table: RatedTable

    @property
    def ratings(self) -> Ratings:
        """Elo and Bradley-Terry ratings, ranks, and the judge's consistency and biases.

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
    columns: Mapping[str, str | list[str] | None] | None = None,
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
        columns: the table's column for a name that ragleague uses, as in ``{"verdict": "gold"}``; a list of columns of
            verdicts if each judge has one.
        values: the verdict that a word, number or range means: ``{"A ist besser": "A", "0": "TIE", "-3..-1": "A"}``.
        cluster: the column that groups games; the bootstrap resamples whole groups. ``None`` resamples single games;
            ``auto`` groups by the column ``conversation`` if there is one, else by query.
        covariates: numeric columns to control the ratings for, see ``TableOptions``.
        by_judge: whether to rate the agents also by the verdicts of each judge alone.
        skip_empty: whether to leave out and count rows without a verdict.
        skip_self_play: whether to leave out and count games of an agent against itself.
        settings: fields of ``RatingOptions``: ``ties``, ``position``, ``anchor``, ``bootstrap``, ``seed``, ...

    Raises:
        InputError: the table, a column or a setting is invalid; the message says which one and why.

    Example:
        >>> rated = rl.rate("demo-verdicts.csv", bootstrap=200)
        >>> rated.to_frame()[["agent", "wins", "losses"]].head(2)
                 agent  wins  losses
        0  fusion-bm25    54      21
        1   rag-hybrid    49      23
    """
    chosen: RatingOptions = argument("rate", RatingOptions, {"cluster": cluster is not None, **settings})
    names = argument("columns", dict[str, str | list[str] | None], columns or {})
    numeric = tuple(argument("covariates", list[str], covariates))
    by = argument("cluster", str | None, cluster) or "none"
    meant = argument("values", dict[str, str], values or {})
    how = TableOptions(by, numeric, names, meant, skip_empty, skip_self_play, by_judge)
    try:
        return Rated(rate_table(_source(verdicts), chosen.settings(), how))
    except InputError as error:
        if isinstance(verdicts, str | Path):
            raise
        raise InputError(_with_arguments(str(error))) from error


def _source(verdicts: Any) -> TextSource:
    if isinstance(verdicts, str | Path):
        return Path(verdicts)
    if hasattr(verdicts, "iterrows"):
        return Frame.of("verdicts", verdicts)
    several = isinstance(verdicts, Iterable) and not isinstance(verdicts, Mapping)
    rows: list[Any] = list(verdicts) if several else [verdicts]
    if not several or not all(isinstance(row, Mapping) for row in rows):
        other = next((row for row in rows if not isinstance(row, Mapping)), verdicts)
        raise InputError(f"verdicts: give a frame, dictionaries or a file, and not {type(other).__name__}")
    return Rows("verdicts", rows)


_OPTIONS: Final = (
    (r"(?<=itself: remove the row, or )say --skip-faulty", "give skip_self_play=True"),
    (r"say --skip-faulty", "give skip_empty=True"),
    (r"with --column (\w+)=(\w+)", r"with columns={'\1': '\2'}"),
    (r"say --column (\w+)=(\w+)", r"give columns={'\1': '\2'}"),
    (r"--value (\S+)=(\w+)", r"values={'\1': '\2'}"),
    (r"(?<='\}) values=\{", ", "),
    (r"no --value says", "no entry of 'values' says"),
    (r"--by judge", "by_judge"),
    (r"--(cluster|covariate) ", r"\1 "),
)
"""Patterns for options of ``ragleague rate`` in error messages, and the arguments of ``rate`` that replace them."""


def _with_arguments(message: str) -> str:
    """Reword an error message about a table in memory: name arguments of ``rate`` in place of command-line options."""
    for option, given in _OPTIONS:
        message = re.sub(option, given, message)
    return message.replace("'}, '", "', '")
