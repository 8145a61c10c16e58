"""Ratings of a file of verdicts, with everything that was noticed about its rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from arena.data.verdicts import CONVERSATION, ImportedVerdicts, read_verdicts
from arena.data.win_matrix import read_win_matrix
from arena.ratings.covariates import Controlled, controlled_ratings, standardised_difference
from arena.ratings.games import Unit, as_games
from arena.ratings.health import judge_health
from arena.ratings.judges import of_judge
from arena.ratings.pairs import from_win_matrix
from arena.ratings.panel import PanelRatings, panel_ratings
from arena.ratings.rate import rate, rate_games
from arena.ratings.results import Ratings, RatingSettings
from judges.errors import DataError, InputError
from retrieval_eval.data.columns import Texts
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.estimate import Estimate

BY_QUERY = "qid"
NO_CLUSTER = "none"
AUTO = "auto"
LOG = "log:"
_LOG_NAME = "log_"

_OF_ORDER = {
    **dict.fromkeys(("both_orders", "contradictions"), 0),
    **dict.fromkeys(("order_agreement", "first_share", "first_effect"), Estimate(None)),
}
"""What judge health says about places where nobody knows who was shown first."""


class TableOptions(Struct, frozen=True):
    """How a table of verdicts is read.

    Attributes:
        cluster: the column whose values are resampled whole, ``qid`` for the query, ``none`` for single games;
            ``auto`` is ``conversation`` where the table has that column, else the query.
        covariates: ``NAME`` for the columns NAME_a and NAME_b, or ``COLUMN:COLUMN`` for those of agent_a and agent_b;
            ``log:`` before either takes logarithms, and so does ``log_NAME`` where there are no such columns.
        columns: ``NAME=COLUMN``, the file's name for one of ours.
        values: what words of the file mean, see ``read_verdicts``.
        skip_empty: leave out rows without a verdict.
        skip_self_play: leave out games of an agent against itself.
        by_judge: also rate each judge's verdicts alone.
    """

    cluster: str = AUTO
    covariates: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    values: Mapping[str, str] = {}
    skip_empty: bool = False
    skip_self_play: bool = False
    by_judge: bool = False

    def cluster_column(self, read: ImportedVerdicts) -> str | None:
        """The column to resample by where it is neither the query nor the game."""
        if self.cluster == AUTO:
            return CONVERSATION if CONVERSATION in read.further and read.table.queries else None
        return None if self.cluster in {BY_QUERY, NO_CLUSTER} else self.cluster


class RatedTable(Struct, frozen=True):
    """Ratings of a file.

    Attributes:
        ratings: of all verdicts.
        by_judge: each judge's own, where they are asked for.
        controlled: ratings controlled for covariates, ``None`` where none are asked for.
        rows: what was noticed: rows, those left out, repeated or in conflict.
        cluster_column: the column whose values stand where the ratings speak of queries, ``None`` for the query itself.
        panel: ratings that weigh each judge by how well it tells agents apart, where each judge's are asked for and
            there are several.
    """

    ratings: Ratings
    by_judge: Mapping[str, Ratings] = field(default_factory=dict)
    controlled: Controlled | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    cluster_column: str | None = None
    panel: PanelRatings | None = None


def rate_win_matrix(file: Path, settings: RatingSettings, queries: int | None) -> RatedTable:
    """Rate a matrix of win percentages whose cells stand for ``queries`` games each.

    Raises:
        InputError: the number is missing, the anchor is none of the agents, or the file cannot be read.
    """
    if queries is None:
        raise InputError(f"{file}: a matrix of win percentages; say with --queries how many games each cell stands for")
    agents, percentages = read_win_matrix(file)
    if settings.anchor is not None and settings.anchor not in agents:
        raise InputError(f"{file}: the anchor {settings.anchor!r} has no games; choose one of {', '.join(agents)}")
    return RatedTable(rate_games(from_win_matrix(agents, percentages, queries), settings))


def rate_table(file: Path, settings: RatingSettings, options: TableOptions) -> RatedTable:
    """Rate a table of verdicts.

    Raises:
        InputError: the table, a column or the settings cannot be used; says where and why.
    """
    read = read_verdicts(
        file,
        columns=column_names(options.columns),
        values=options.values,
        skip_empty=options.skip_empty,
        skip_self_play=options.skip_self_play,
        preferences=settings.preferences == "soft",
    )
    if not len(read.table):
        raise DataError(file, "no row is left to rate")
    sides = [_sides(read, name) for name in options.covariates]
    read.say({options.cluster, *(column for pair in sides for column in pair)})
    if settings.position and read.order_unknown:
        raise read.error(int(read.order_known.argmin()), "position needs the order of every row, and it is empty")
    if column := options.cluster_column(read):
        unit: Unit = "conversation" if column == CONVERSATION else "query"
        read = replace(read, table=read.table.clustered(_clusters(file, read, column), unit))
    return RatedTable(
        _with_known_order(rate(read.table, settings), read, settings),
        _by_judge(file, read, settings) if options.by_judge else {},
        _controlled(file, read, settings, options) if options.covariates else None,
        {
            "rows": read.rows,
            "verdicts": len(read.table),
            "skipped": read.skipped,
            "self_play": read.self_play,
            "duplicates": read.duplicates,
            "conflicts": read.conflicts,
            "order_unknown": read.order_unknown,
            "order_assumed": read.order_assumed,
            "both_bad": read.both_bad,
            "both_good": read.both_good,
        },
        column,
        panel_ratings(read.table) if options.by_judge and len(read.table.judges) > 1 else None,
    )


def column_names(given: Sequence[str], option: str = "--column") -> dict[str, str]:
    """The file's name for each of our columns, from entries ``NAME=COLUMN`` of a command-line option.

    Raises:
        InputError: an entry is none, or two contradict each other.
    """
    found: dict[str, str] = {}
    for entry in given:
        name, separator, column = entry.partition("=")
        if not (name and separator and column):
            raise InputError(f"{option}: NAME=COLUMN, as in verdict=gold, not {entry!r}")
        if found.setdefault(name, column) != column:
            raise InputError(f"{option}: {name!r} is given as {found[name]!r} and as {column!r}")
    return found


def _by_judge(file: Path, read: ImportedVerdicts, settings: RatingSettings) -> dict[str, Ratings]:
    verdicts = read.table
    nameless = np.array([not judge.strip() for judge in verdicts.judges], np.bool_)[verdicts.judge]
    if nameless.any():
        problem = "--by judge needs a judge in every row; name their column with --column judge=COLUMN"
        raise read.error(int(nameless.argmax()), problem)
    found = {}
    for judge in verdicts.judges:
        try:
            own = rate(of_judge(verdicts, judge), settings)
        except InputError as error:
            raise InputError(f"{file}: judge {judge!r}: {error}") from error
        found[judge] = _with_known_order(own, read, settings, judge)
    return found


def _with_known_order(
    ratings: Ratings, read: ImportedVerdicts, settings: RatingSettings, judge: str | None = None
) -> Ratings:
    """Health of places from the verdicts alone whose order is given; an order taken for granted says nothing of it."""
    if not read.order_unknown or ratings.judge_health is None:
        return ratings
    told = read.order_known.copy()
    if judge is not None:
        told &= read.table.judge == read.table.judges.index(judge)
    of_told = judge_health(read.table.of(told), ties=settings.ties, scale=settings.scale) if told.any() else None
    values: dict[str, Any] = {name: getattr(of_told, name, unknown) for name, unknown in _OF_ORDER.items()}
    return replace(ratings, judge_health=replace(ratings.judge_health, **values), beyond_place=None)


def _clusters(file: Path, read: ImportedVerdicts, column: str) -> dict[str, str]:
    names, value = _extra(file, read, column)
    empty = np.array([not str(name).strip() for name in names], np.bool_)[value]
    if empty.any() and column != CONVERSATION:
        raise read.error(int(empty.argmax()), f"--cluster {column}: this row has no value there")
    return read.of_queries(column)


def _controlled(file: Path, read: ImportedVerdicts, settings: RatingSettings, options: TableOptions) -> Controlled:
    """Controlled ratings take every verdict as a game, since its two answers have their own covariates."""
    covariates = {name: _difference(file, read, name) for name in options.covariates}
    games = as_games(read.table, soft=settings.preferences == "soft")
    try:
        return controlled_ratings(games, covariates, settings.bradley_terry, by_query=settings.cluster)
    except ValueError as error:
        raise InputError(f"{file}: --covariate: {error}") from error


def _difference(file: Path, read: ImportedVerdicts, name: str) -> Floats:
    """The covariate of the answer shown first minus that of the second, in standard deviations."""
    log = name.startswith(LOG) or _is_log_name(read, name)
    of_a, of_b = (_numbers(file, read, column, log=log) for column in _sides(read, name))
    shown_first, shown_second = np.where(read.swapped, of_b, of_a), np.where(read.swapped, of_a, of_b)
    return standardised_difference(shown_first, shown_second, log=log)


def _is_log_name(read: ImportedVerdicts, name: str) -> bool:
    return name.startswith(_LOG_NAME) and f"{name}_a" not in read.further  # as a tournament names it: log_length


def _sides(read: ImportedVerdicts, name: str) -> tuple[str, str]:
    """The columns of a covariate, of agent_a and of agent_b."""
    plain = name.removeprefix(_LOG_NAME if _is_log_name(read, name) else LOG)
    first, separator, second = plain.partition(":")
    return (first, second) if separator else (f"{plain}_a", f"{plain}_b")


def _numbers(file: Path, read: ImportedVerdicts, column: str, *, log: bool) -> Floats:
    texts = _extra(file, read, column)
    numbers = np.array([_finite(str(name)) for name in texts.names])[texts.codes]
    for wrong, problem in (
        (np.isnan(numbers), f"{column!r} is to be controlled for and is no number"),
        (numbers < 0 if log else np.isnan(numbers), f"{column!r} is negative and has no logarithm"),
    ):
        if wrong.any():
            at = int(wrong.argmax())
            raise read.error(at, problem, texts.names[texts.codes[at]])
    return numbers


def _finite(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _extra(file: Path, read: ImportedVerdicts, column: str) -> Texts:
    if column not in read.further:
        known = ", ".join(sorted(read.further)) or "none"
        raise InputError(f"{file}: no further column {column!r}; there are: {known}")
    return read.further[column]
