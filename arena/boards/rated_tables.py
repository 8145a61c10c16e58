"""Rate agents from a file of verdicts or of win percentages, and count skipped, repeated and conflicting rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from arena.data.rankings import plackett_luce
from arena.data.verdicts import CONVERSATION, ImportedVerdicts, read_verdicts, read_win_matrix
from arena.ratings.covariates import Controlled, controlled_ratings, standardised_difference
from arena.ratings.games import Unit, as_games
from arena.ratings.health import judge_health, of_judge
from arena.ratings.pairs import from_win_matrix
from arena.ratings.rate import rate, rate_games
from arena.ratings.results import Ratings, RatingSettings
from judges.errors import DataError, InputError
from retrieval_eval.data.columns import Texts, TextSource
from retrieval_eval.data.rows import finite
from retrieval_eval.data.table_spec import Columns
from retrieval_eval.stats import Floats
from retrieval_eval.stats.estimate import Estimate

BY_QUERY = "qid"
NO_CLUSTER = "none"
AUTO = "auto"
LOG = "log:"
_LOG_NAME = "log_"

_UNKNOWN_ORDER = {
    **dict.fromkeys(("both_orders", "contradictions"), 0),
    **dict.fromkeys(("order_agreement", "first_share", "first_effect"), Estimate(None)),
}
"""Fields of ``JudgeHealth`` that depend on which answer was shown first, with their values if no verdict says so."""


class TableOptions(Struct, frozen=True):
    """Options of ``ragleague rate`` that say how to read a table of verdicts."""

    cluster: str = AUTO
    covariates: tuple[str, ...] = ()
    columns: Columns = {}
    values: Mapping[str, str] = {}
    skip_empty: bool = False
    skip_self_play: bool = False
    by_judge: bool = False

    def cluster_column(self, verdict_file: ImportedVerdicts) -> str | None:
        if self.cluster == AUTO:
            return CONVERSATION if CONVERSATION in verdict_file.further and verdict_file.table.queries else None
        return None if self.cluster in {BY_QUERY, NO_CLUSTER} else self.cluster


class RatedTable(Struct, frozen=True):
    """Ratings of the agents in a file.

    Attributes:
        by_judge: ratings from each judge's verdicts alone, by judge; empty unless requested.
        rows: number of all rows, of verdicts, and of rows that were skipped, repeat another, contradict another, ...
        cluster_column: column by which the bootstrap resamples rows, one value at a time; ``None`` for queries.
        plackett_luce: points by the Plackett-Luce model, with mean ``settings.initial``, if the file has rankings.
    """

    ratings: Ratings
    by_judge: Mapping[str, Ratings] = field(default_factory=dict)
    controlled: Controlled | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    cluster_column: str | None = None
    plackett_luce: Mapping[str, float] = field(default_factory=dict)


def rate_win_matrix(file: Path, settings: RatingSettings, queries: int | None) -> RatedTable:
    """Rate a matrix of win percentages; each cell counts as ``queries`` games."""
    if queries is None:
        raise InputError(
            f"{file}: is a matrix of win percentages; give the number of games behind each cell with --queries"
        )
    agents, percentages = read_win_matrix(file)
    if settings.anchor is not None and settings.anchor not in agents:
        raise InputError(f"{file}: the anchor {settings.anchor!r} has no games; choose one of {', '.join(agents)}")
    return RatedTable(rate_games(from_win_matrix(agents, percentages, queries), settings))


def rate_table(source: TextSource, settings: RatingSettings, options: TableOptions) -> RatedTable:
    verdict_file = read_verdicts(
        source,
        columns=options.columns,
        values=options.values,
        skip_empty=options.skip_empty,
        skip_self_play=options.skip_self_play,
        preferences=settings.preferences == "soft",
    )
    if not len(verdict_file.table):
        raise DataError(
            verdict_file.path,
            "no row has a verdict, so there is nothing to rate; check the column of verdicts",
        )
    sides = [_sides(verdict_file, name) for name in options.covariates]
    verdict_file.say({options.cluster, *(column for pair in sides for column in pair)})
    if settings.position and verdict_file.order_unknown:
        raise verdict_file.error(
            int(verdict_file.order_known.argmin()), "position needs the order of every row, and it is empty"
        )
    if column := options.cluster_column(verdict_file):
        unit: Unit = "conversation" if column == CONVERSATION else "query"
        verdict_file = replace(verdict_file, table=verdict_file.table.clustered(_clusters(verdict_file, column), unit))
    return RatedTable(
        _with_known_order(rate(verdict_file.table, settings), verdict_file, settings),
        _by_judge(verdict_file, settings) if options.by_judge else {},
        _controlled(verdict_file, settings, options) if options.covariates else None,
        {
            "rows": verdict_file.rows,
            "verdicts": len(verdict_file.table),
            "skipped": verdict_file.skipped,
            "self_play": verdict_file.self_play,
            "duplicates": verdict_file.duplicates,
            "conflicts": verdict_file.conflicts,
            "order_unknown": verdict_file.order_unknown,
            "order_assumed": verdict_file.order_assumed,
            "weighted": 0 if verdict_file.table.weight is None else len(verdict_file.table),
            "strong": verdict_file.strong,
            "both_bad": verdict_file.both_bad,
            "both_good": verdict_file.both_good,
        },
        column,
        {
            agent: settings.initial + settings.scale / np.log(10) * strength
            for agent, strength in plackett_luce(verdict_file.rankings, verdict_file.table.agents).items()
        }
        if verdict_file.rankings
        else {},
    )


def column_names(entries: Sequence[str]) -> dict[str, str | Sequence[str] | None]:
    """Parse ``NAME=COLUMN`` entries of the option ``--column``: the file's columns, by the standard name of each.

    ``NAME=`` gives ``None``: no column is it. Several columns for a name are one each for an agent or a person.
    """
    columns: dict[str, list[str]] = {}
    for entry in entries:
        name, separator, column = entry.partition("=")
        if not (name and separator):
            raise InputError(f"--column: write NAME=COLUMN, as in verdict=gold, not {entry!r}")
        if column not in columns.setdefault(name, []):
            columns[name].append(column)
        if len(columns[name]) > 1 and "" in columns[name]:
            raise InputError(f"--column: {name!r} is mapped to {max(columns[name])!r} and to no column; keep one")
    return {name: theirs if len(theirs) > 1 else theirs[0] or None for name, theirs in columns.items()}


def _by_judge(verdict_file: ImportedVerdicts, settings: RatingSettings) -> dict[str, Ratings]:
    verdicts = verdict_file.table
    nameless = np.array([not judge.strip() for judge in verdicts.judges], np.bool_)[verdicts.judge]
    if nameless.any():
        problem = "--by judge needs a judge in every row; name their column with --column judge=COLUMN"
        raise verdict_file.error(int(nameless.argmax()), problem)
    by_judge = {}
    for judge in verdicts.judges:
        try:
            judge_ratings = rate(of_judge(verdicts, judge), settings)
        except InputError as error:
            raise InputError(f"{verdict_file.path}: judge {judge!r}: {error}") from error
        by_judge[judge] = _with_known_order(judge_ratings, verdict_file, settings, judge)
    return by_judge


def _with_known_order(
    ratings: Ratings, verdict_file: ImportedVerdicts, settings: RatingSettings, judge: str | None = None
) -> Ratings:
    """Recompute the judge's position bias from only those verdicts for which the file says what was shown first."""
    if not verdict_file.order_unknown or ratings.judge_health is None:
        return ratings
    order_given = verdict_file.order_known.copy()
    if judge is not None:
        order_given &= verdict_file.table.judge == verdict_file.table.judges.index(judge)
    health = (
        judge_health(verdict_file.table.of(order_given), ties=settings.ties, scale=settings.scale)
        if order_given.any()
        else None
    )
    values: dict[str, Any] = {name: getattr(health, name, unknown) for name, unknown in _UNKNOWN_ORDER.items()}
    return replace(ratings, judge_health=replace(ratings.judge_health, **values), beyond_place=None)


def _clusters(verdict_file: ImportedVerdicts, column: str) -> dict[str, str]:
    names, value = _extra(verdict_file, column)
    empty = np.array([not str(name).strip() for name in names], np.bool_)[value]
    if empty.any() and column != CONVERSATION:
        raise verdict_file.error(int(empty.argmax()), f"--cluster {column}: this row has no value in that column")
    return verdict_file.of_queries(column)


def _controlled(verdict_file: ImportedVerdicts, settings: RatingSettings, options: TableOptions) -> Controlled:
    """Ratings adjusted for covariates such as length. Every verdict counts as a game, in the order it was shown."""
    differences = {name: _difference(verdict_file, name) for name in options.covariates}
    games = as_games(verdict_file.table, soft=settings.preferences == "soft")
    try:
        return controlled_ratings(games, differences, settings.bradley_terry, by_query=settings.cluster)
    except ValueError as error:
        raise InputError(f"{verdict_file.path}: --covariate: {error}") from error


def _difference(verdict_file: ImportedVerdicts, name: str) -> Floats:
    """A covariate's value for the answer shown first minus its value for the other, in standard deviations, by row."""
    log = name.startswith(LOG) or _is_log_name(verdict_file, name)
    values_a, values_b = (_numbers(verdict_file, column, log=log) for column in _sides(verdict_file, name))
    shown_first, shown_second = (
        np.where(verdict_file.swapped, values_b, values_a),
        np.where(verdict_file.swapped, values_a, values_b),
    )
    return standardised_difference(shown_first, shown_second, log=log)


def _is_log_name(verdict_file: ImportedVerdicts, name: str) -> bool:
    return name.startswith(_LOG_NAME) and f"{name}_a" not in verdict_file.further  # a tournament's name: log_length


def _sides(verdict_file: ImportedVerdicts, name: str) -> tuple[str, str]:
    """Names of the two columns that hold a covariate: for the answer of ``agent_a`` and of ``agent_b``."""
    plain = name.removeprefix(_LOG_NAME if _is_log_name(verdict_file, name) else LOG)
    first, separator, second = plain.partition(":")
    return (first, second) if separator else (f"{plain}_a", f"{plain}_b")


def _numbers(verdict_file: ImportedVerdicts, column: str, *, log: bool) -> Floats:
    texts = _extra(verdict_file, column)
    numbers = np.array([finite(str(name)) for name in texts.names], np.float64)[texts.codes]
    for faulty, problem in (
        (np.isnan(numbers), f"the covariate {column!r} is not a number"),
        (numbers < 0 if log else np.isnan(numbers), f"the covariate {column!r} is negative, so it has no logarithm"),
    ):
        if faulty.any():
            row = int(faulty.argmax())
            raise verdict_file.error(row, problem, texts.names[texts.codes[row]])
    return numbers


def _extra(verdict_file: ImportedVerdicts, column: str) -> Texts:
    if column not in verdict_file.further:
        names = ", ".join(sorted(verdict_file.further)) or "none"
        raise InputError(
            f"{verdict_file.path}: has no column {column!r} besides those of the verdicts; its other columns: {names}"
        )
    return verdict_file.further[column]
