"""Ratings of a file of verdicts, with everything that was noticed about its rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from arena.ratings.counts import from_win_matrix
from arena.ratings.covariates import Controlled, controlled_ratings, standardised_difference
from arena.ratings.games import Floats, as_games
from arena.ratings.rate import Ratings, RatingSettings, bradley_terry_settings, rate, rate_by_judge, rate_games
from arena.verdicts import ImportedVerdicts, read_verdicts
from arena.win_matrix import read_win_matrix
from judges.errors import InputError

NO_CLUSTER = "none"
LOG = "log:"


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How a table of verdicts is read.

    Attributes:
        cluster: the column whose values are resampled whole, ``qid`` for the query, ``none`` for single games.
        covariates: ``NAME`` for the columns NAME_a and NAME_b, or ``COLUMN:COLUMN`` for those of agent_a and agent_b;
            ``log:`` before either takes logarithms.
        columns: ``NAME=COLUMN``, the file's name for one of ours.
        skip_empty: leave out rows without a verdict.
        skip_self_play: leave out games of an agent against itself.
        by_judge: also rate each judge's verdicts alone.
    """

    cluster: str = "qid"
    covariates: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    skip_empty: bool = False
    skip_self_play: bool = False
    by_judge: bool = False


@dataclass(frozen=True, slots=True)
class RatedTable:
    """Ratings of a file.

    Attributes:
        ratings: of all verdicts.
        by_judge: each judge's own, where they are asked for.
        controlled: ratings controlled for covariates, ``None`` where none are asked for.
        rows: what was noticed: rows, those left out, repeated or in conflict.
    """

    ratings: Ratings
    by_judge: Mapping[str, Ratings] = field(default_factory=dict)
    controlled: Controlled | None = None
    rows: Mapping[str, int] = field(default_factory=dict)


def rate_win_matrix(file: Path, settings: RatingSettings, queries: int | None) -> RatedTable:
    """Rate a matrix of win percentages whose cells stand for ``queries`` games each.

    Raises:
        InputError: the number is missing, or the file cannot be read.
    """
    if queries is None:
        raise InputError(f"{file}: a matrix of win percentages; say with --queries how many games each cell stands for")
    agents, percentages = read_win_matrix(file)
    return RatedTable(rate_games(from_win_matrix(agents, percentages, queries), settings))


def rate_table(file: Path, settings: RatingSettings, options: TableOptions) -> RatedTable:
    """Rate a table of verdicts.

    Raises:
        InputError: the table, a column or the settings cannot be used; says where and why.
    """
    table = read_verdicts(
        file,
        columns=_columns(options.columns),
        skip_empty=options.skip_empty,
        skip_self_play=options.skip_self_play,
    )
    clusters = None if options.cluster in {"qid", NO_CLUSTER} else _clusters(file, table, options.cluster)
    return RatedTable(
        rate(table.verdicts, settings, clusters=clusters),
        rate_by_judge(table.verdicts, settings) if options.by_judge else {},
        _controlled(file, table, settings, options.covariates) if options.covariates else None,
        {
            "rows": table.rows,
            "verdicts": len(table.verdicts),
            "skipped": table.skipped,
            "self_play": table.self_play,
            "duplicates": table.duplicates,
            "conflicts": table.conflicts,
            "order_unknown": table.order_unknown,
        },
    )


def _columns(given: Sequence[str]) -> dict[str, str]:
    pairs = [entry.partition("=") for entry in given]
    for entry, (name, separator, column) in zip(given, pairs, strict=True):
        if not (name and separator and column):
            raise InputError(f"--column: NAME=COLUMN, as in verdict=gold, not {entry!r}")
    return {name: column for name, _, column in pairs}


def _clusters(file: Path, table: ImportedVerdicts, column: str) -> dict[str, str]:
    """For each query the value of another column, by which verdicts are resampled."""
    found: dict[str, str] = {}
    for verdict, value in zip(table.verdicts, _extra(file, table, column), strict=True):
        if verdict.query_id is None:
            raise InputError(f"{file}: --cluster {column} needs a 'qid' column; name it with --column qid=COLUMN")
        if found.setdefault(verdict.query_id, value) != value:
            raise InputError(f"{file}: --cluster {column}: query {verdict.query_id!r} has more than one value there")
    return found


def _controlled(file: Path, table: ImportedVerdicts, settings: RatingSettings, names: Sequence[str]) -> Controlled:
    """Controlled ratings take every verdict as a game, since its two answers have their own covariates."""
    covariates = {name: _difference(file, table, name) for name in names}
    games = as_games(table.verdicts)
    try:
        return controlled_ratings(games, covariates, bradley_terry_settings(settings), by_query=settings.cluster)
    except ValueError as error:
        raise InputError(f"{file}: --covariate: {error}") from error


def _difference(file: Path, table: ImportedVerdicts, name: str) -> Floats:
    """The covariate of the answer shown first minus that of the second, in standard deviations."""
    plain = name.removeprefix(LOG)
    first, separator, second = plain.partition(":")
    columns = (first, second) if separator else (f"{plain}_a", f"{plain}_b")
    of_a, of_b = (_numbers(file, column, _extra(file, table, column)) for column in columns)
    swapped = np.asarray(table.swapped, np.bool_)
    shown_first, shown_second = np.where(swapped, of_b, of_a), np.where(swapped, of_a, of_b)
    return standardised_difference(shown_first, shown_second, log=name.startswith(LOG))


def _extra(file: Path, table: ImportedVerdicts, column: str) -> Sequence[str]:
    if column not in table.extras:
        known = ", ".join(sorted(table.extras)) or "no further columns"
        raise InputError(f"{file}: no column {column!r}; there are {known}")
    return table.extras[column]


def _numbers(file: Path, column: str, texts: Sequence[str]) -> Floats:
    numbers = np.empty(len(texts))
    for place, text in enumerate(texts):
        try:
            numbers[place] = float(text)
        except ValueError:
            numbers[place] = math.nan
        if not math.isfinite(numbers[place]):
            raise InputError(f"{file}: column {column!r}: verdict {place + 1}: not a number ({text!r})")
    return numbers
