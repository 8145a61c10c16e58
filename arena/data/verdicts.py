"""Reads and writes tables of verdicts, also those of other tools and studies; reads matrices of win percentages."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from arena.data.rankings import RANKINGS, Tiers, games_of_rankings, is_ranked
from arena.data.verdict_words import (
    BOTH_ORDERS,
    VERDICTS,
    Coding,
    are_numbers,
    both,
    is_strong,
    number_in,
    problem_of,
    side_of,
)
from arena.present.numbers import counted
from arena.ratings.games import GameVerdict, VerdictTable, without_repeats
from arena.ratings.pairs import ROUNDING
from judges.errors import DataError
from judges.types import GAME_OUTCOMES, Verdict
from retrieval_eval.data.columns import Texts, TextSource, TextTable, in_order, joined, read_text_columns, row_at
from retrieval_eval.data.conversations import require_one_spelling
from retrieval_eval.data.rows import EMPTY, Cell, Row, name_problem, spelling_problem
from retrieval_eval.data.table_spec import SHOWN_SWAPPED, Columns, TableSpec, Wide, say_read
from retrieval_eval.data.tables import read_columns, write_rows
from retrieval_eval.stats import Bools, Floats, Int32s

CONVERSATION: Final = "conversation"
"""Name of the extra column with the conversation to which the row's query belongs."""

VERDICT_CELLS: Final = ("agent_a", "agent_b", "verdict", "judge", "order")
"""Columns for a verdict, besides the query's id. ``order``: agent_a (``ab``) or agent_b (``ba``) was shown first."""

_LETTER_VERDICTS: Final = frozenset(Verdict)
_NONE: Final = 9
_ROUNDING: Final = 0.01
"""How far the sum of a verdict's probabilities may be from 1, because they are rounded."""
_NO_VERDICT: Final = {"", "error", "nan"}
_TRUE: Final = {"true": "1", "false": "0"}


class ImportedVerdicts(Struct, frozen=True, eq=False, dict=True):
    """The verdicts in a file, with counts of games that were skipped or repeated, or whose order was assumed.

    Attributes:
        table: one verdict per game, with the agents in the order shown, in the order of the file.
        further: extra columns (including ``reason``) as text, one cell per verdict; ``""`` for empty cells.
        rows: number of rows in the file.
        places: for each verdict, the index of its row in the file, from 0.
        swapped: for each verdict, whether the file's agent_b was shown first.
        order_known: for each verdict, whether its ``order`` is not empty, or the file has no such column.
        skipped: number of games that were skipped because they have no verdict.
        self_play: number of games that were skipped because both agents are the same.
        duplicates: number of verdicts that repeat an earlier one in every column except ``reason``.
        conflicts: number of games with different verdicts in rows that are otherwise equal, except for ``reason``.
        order_assumed: number of verdicts if there is no column ``order``; agent_a is assumed to have been shown first.
        both_bad, both_good: number of ties that also rate both answers as bad, or as good.
        strong: number of verdicts that call an answer much better, such as ``A>>B``; they count like others.
        called: ragleague's name for each column of the file.
        form: the other tool's format of the file, ``""`` for a plain table.
        rankings: the rankings whose pairs are the games, if the file has rankings.
    """

    source: TextSource
    table: VerdictTable
    further: Mapping[str, Texts]
    rows: int
    places: NDArray[np.int64]
    swapped: Bools
    order_known: Bools
    skipped: int = 0
    self_play: int = 0
    duplicates: int = 0
    conflicts: int = 0
    order_assumed: int = 0
    both_bad: int = 0
    both_good: int = 0
    strong: int = 0
    called: Mapping[str, str] = {}
    form: str = ""
    rankings: Sequence[Tiers] = ()

    def say(self, used: Collection[str] = ()) -> None:
        """Log which columns of the file were read; ``used`` names the extra columns that the caller reads."""
        known = {*VERDICTS.columns, *RANKINGS.columns, CONVERSATION, *used}
        known |= {"repeat"} if self.table.repeat is not None else set()
        ties = {"both bad": self.both_bad, "both good": self.both_good, "much better, counted as better": self.strong}
        rated_ties = "".join(f", {count:,} {what}" for what, count in ties.items() if count)
        numbers = f"{counted(self.rows, 'row')}, {counted(len(self.table), 'verdict')}{rated_ties}"
        say_read(self.path, self.called, known, numbers, self.form)

    @property
    def path(self) -> Path:
        return Path(str(self.source))

    @property
    def order_unknown(self) -> int:
        """Number of verdicts whose ``order`` is empty; agent_a is assumed to have been shown first."""
        return int((~self.order_known).sum())

    @cached_property
    def verdicts(self) -> list[GameVerdict]:
        return list(self.table.each())

    @cached_property
    def extras(self) -> Mapping[str, list[str]]:
        return {name: column.each() for name, column in self.further.items()}

    def of_queries(self, column: str) -> dict[str, str]:
        """Value of an extra column by query id, such as each query's conversation; empty values are left out.

        Raises ``DataError`` if rows of the same query have different values.
        """
        queries, query, texts = self.table.queries, self.table.query, self.further[column]
        if queries is None or query is None:
            raise DataError(
                self.path,
                f"{column!r} describes queries, but the table has no query ids; name their column: --column qid=COLUMN",
            )
        _, first = np.unique(query, return_index=True)
        of_query = texts.codes[first]
        other = texts.codes != of_query[query]
        if other.any():
            at = int(other.argmax())
            before = str(texts.names[of_query[query[at]]])
            problem = f"query {queries[query[at]]!r} has {before!r} as {column!r} above, and another value here"
            raise self.error(at, problem, str(texts.names[texts.codes[at]]))
        named = [str(texts.names[code]).strip() for code in of_query]
        if column == CONVERSATION:
            require_one_spelling(named)
        return {query_id: value for query_id, value in zip(queries, named, strict=True) if value}

    def error(self, verdict: int, problem: str, value: str | None = None) -> DataError:
        """Build the error for a problem in the row of a verdict; the caller raises it."""
        return row_at(self.source, int(self.places[verdict])).error(problem, value)


def read_verdicts(
    source: TextSource,
    *,
    columns: Columns | None = None,
    values: Mapping[str, str] | None = None,
    skip_empty: bool = False,
    skip_self_play: bool = False,
    preferences: bool = False,
) -> ImportedVerdicts:
    """Read a table of verdicts from CSV, TSV, JSONL, JSON or Parquet, or from a table in memory.

    Columns are ``agent_a, agent_b, verdict`` and optionally ``qid, judge, order, reason``, or the alternative names in
    ``VERDICTS``. A table with ``BOTH_ORDERS`` instead of a verdict has two games per row. ``agent_a`` was shown
    first unless ``order`` is ``ba`` (or ``2`` or ``second``, the place where agent_a was shown).

    Verdicts are read without regard to case. Their meaning depends on the word:

    - ``A``, ``B``, ``1``, ``2`` mean the *columns* agent_a and agent_b, whatever the order; in ``BOTH_ORDERS`` they
      mean the answer shown first and second, as in the records of MT-bench judges;
    - ``agent_a``, ``model_a`` and so on, or the agent's own name, mean that agent;
    - ``left``, ``right``, ``first``, ``second`` mean the place where the answer was shown;
    - ``TIE``, ``draw``, ``C``, ``N``, ``both_bad``, ``both_good``, ``tie (bothbad)``, ``tie (inconsistent)`` and
      ``inconsistent`` are ties;
    - in a column ``preference`` (AlpacaEval) a number from 1 for agent_a to 2 for agent_b goes to the nearer one;
      1.5 is a tie.

    ``values`` defines the meaning of other words and numbers. 0 is an error without it, because some tables mean a tie
    by 0, some the first answer, and some a loss.

    With ``preferences``, the probability that agent_a's answer is better is read as well: from ``p_a``, with ``p_b``
    and ``p_tie`` if present (a tie counts as half), else from a column ``preference``. A row without a verdict gets the
    verdict that its probability implies. A row without a probability has only its verdict.

    Args:
        source: the file, or the table in memory.
        columns: the file's column for a column name of ragleague, if its name is unknown: ``{"verdict": "gold"}``.
        values: meanings of words, numbers or ranges of numbers: ``{"A ist besser": "A", "-3..-1": "A"}``.
        skip_empty: skip and count games whose verdict is empty, ``error`` or ``nan`` instead of raising an error.
        skip_self_play: skip and count games of an agent against itself instead of raising an error; AlpacaEval has
            games of its baseline against the baseline's answers.
        preferences: also read probabilities.
    """
    path = Path(str(source))
    if unknown := (columns or {}).keys() - {*VERDICTS.columns, *RANKINGS.columns}:
        raise DataError(
            path,
            f"ragleague has no such column for verdicts; choose from {', '.join(VERDICTS.columns)}",
            value=min(unknown),
        )
    read, faults, size, coding = [], _Faults(), 0, Coding.of(values or {})
    called: dict[str, str] = {}
    forms: dict[str, None] = {}
    rankings: list[Tiers] = []
    wide = VERDICTS.wide(columns)
    for rows in read_text_columns(source) if wide is None else _long(path, read_text_columns(source), wide):
        if not VERDICTS.has_all(rows.columns, columns) and is_ranked(rows.columns, columns or {}):
            called |= RANKINGS.named(rows.columns, columns)
            rows, ranked = games_of_rankings(source, rows, columns or {})  # noqa: PLW2901
            rankings += ranked
            columns = {}
        forms[rows.form] = None
        layout = _Layout.of(
            path, rows, columns or {} if wide is None else wide.columns, coding, preferences=preferences
        )
        called |= {} if rankings else layout.called
        read.append(_games(rows, layout, faults, skip_empty=skip_empty, skip_self_play=skip_self_play))
        size += rows.places.size
    faults.raise_first(source)
    games = _concatenated(read)
    with_query = [part.query is not None for part in read]
    without = sum(len(part.places) for part, has in zip(read, with_query, strict=True) if not has)
    if any(with_query) and without:
        raise DataError(
            path,
            f"{without:,} of {games.places.size:,} verdicts have no query id; give all verdicts a query id, or none",
        )
    names, (first, second) = in_order(games.first, games.second)
    agents, first, second, repeat = without_repeats(names, first, second)
    if repeat is None and (column := games.further.get("repeat")) is not None:
        repeat = column.codes + np.int32(1)
    _require_one_spelling(source, agents, first, second, games.places)
    judges, (judge,) = in_order(games.judge)
    queries, query = None, None
    if games.query is not None:
        queries, (query,) = in_order(games.query)
    preference = None if np.isnan(games.preference).all() else games.preference
    weight = None if (games.weight == 1).all() else games.weight
    verdicts = agents, first, second, games.outcome, queries, query, judges, judge, preference
    table = VerdictTable(*verdicts, weight=weight, repeat=repeat)
    duplicates, conflicts = _repeats(table, [column for name, column in games.further.items() if name != "reason"])
    return ImportedVerdicts(
        source,
        table,
        games.further,
        size,
        games.places,
        games.swapped,
        games.order_known,
        duplicates=duplicates,
        conflicts=conflicts,
        called=called,
        form=", ".join(filter(None, forms)),
        rankings=rankings,
        **games.counts,
    )


def _require_one_spelling(
    source: TextSource, agents: Sequence[str], first: Int32s, second: Int32s, places: NDArray[np.int64]
) -> None:
    """Raise an error if the names of two agents look like spellings of one; it shows the first row with the second."""
    first_rows = np.full(len(agents), places.size)
    for column in (first, second):
        first_rows[column[::-1]] = np.minimum(first_rows[column[::-1]], np.arange(column.size)[::-1])
    spelt: dict[str, str] = {}
    for number in np.argsort(first_rows, kind="stable"):
        if problem := spelling_problem("agents", agents[number], spelt):
            raise row_at(source, int(places[first_rows[number]])).error(problem)


def verdict_cells(game: GameVerdict) -> dict[str, Cell]:
    """The cells of a verdict's row, by the columns ``VERDICT_CELLS``; agent_a is the one shown first."""
    cells = (game.agent_a, game.agent_b, game.verdict.value, game.judge, "ab")
    return dict(zip(VERDICT_CELLS, cells, strict=True))


def write_verdicts(path: Path | str, verdicts: Sequence[GameVerdict]) -> None:
    """Write a table of verdicts; ``read_verdicts`` reads the same verdicts back.

    In each row, agent_a is the one shown first, so that ``order`` is always ``ab``. Raises ``ValueError`` if some
    games have a query and others do not.
    """
    queries = [game.query_id for game in verdicts if game.query_id is not None]
    if queries and len(queries) < len(verdicts):
        raise ValueError("either every game has a query or none has")
    key = ("qid",) if queries else ()
    rows = (dict.fromkeys(key, game.query_id) | verdict_cells(game) for game in verdicts)
    write_rows(path, (*key, *VERDICT_CELLS), rows)


class _Layout(Struct, frozen=True):
    """Which column of a file has which role.

    Attributes:
        ours: the file's column by ragleague's name for it.
        verdicts: the file's columns of verdicts, one or two.
        order: the file's column of orders, if any.
        extras: the file's columns without a role, by the name under which they are kept.
        called: ragleague's name by the file's column.
        coding: the user's meanings of words and numbers.
    """

    ours: Mapping[str, str]
    verdicts: Sequence[str]
    order: str | None
    extras: Mapping[str, str]
    shares: Sequence[str | None]
    """The file's columns of the probabilities p_a, p_b and p_tie; empty if probabilities are not read."""
    called: Mapping[str, str]
    coding: Coding
    one_hot: bool = False
    """Whether the columns of probabilities are 1 for the winner and 0 for others."""

    @staticmethod
    def of(path: Path, rows: TextTable, columns: Columns, coding: Coding, *, preferences: bool) -> _Layout:
        header = list(rows.columns)
        for column in columns.values():
            if isinstance(column, str) and column not in header:
                raise VERDICTS.missing(path, column, header, rows.line)
        called = VERDICTS.checked(path, header, columns, line=rows.line)
        ours = {name: theirs for theirs, name in called.items() if name in VERDICTS.columns}
        both = not preferences and set(BOTH_ORDERS) <= set(ours) and ("verdict" not in ours or "winner_ab" in columns)
        one_hot = not preferences and not both and "verdict" not in ours and {"p_a", "p_b"} <= set(ours)
        shares = [ours.get(name) for name in ("p_a", "p_b", "p_tie")] if preferences or one_hot else []
        if half := {*BOTH_ORDERS} & set(columns) and {*BOTH_ORDERS} - set(ours):
            raise VERDICTS.missing(path, min(half), header, rows.line, chosen=True)
        if preferences and "p_a" not in ours and ours.get("verdict") != "preference":
            raise VERDICTS.missing(path, "p_a", header, rows.line)
        if "verdict" not in ours and not both and not any(shares):
            raise VERDICTS.missing(path, "verdict", header, rows.line, chosen=True)
        verdicts = [ours[name] for name in BOTH_ORDERS] if both else (ours.get("verdict") or ours["p_a"],)
        order = None if both else ours.get("order")
        used = {order, *verdicts, *(ours.get(name) for name in ("qid", "agent_a", "agent_b", "judge", "weight"))}
        extras = {"reason" if called[name] == "reason" else name: name for name in header if name not in used}
        return _Layout(ours, verdicts, order, extras, shares, called, coding, one_hot)


class _Faults:
    """Collects the problems in rows of a table; ``raise_first`` raises an error for the topmost faulty row."""

    def __init__(self) -> None:
        self._faults: list[tuple[int, int, str, str | None]] = []

    def add(self, faulty: Bools, places: NDArray[np.int64], problem: str, shown: Texts | None = None) -> None:
        """Add a problem of the rows where ``faulty`` is true; the error quotes the value in the column ``shown``."""
        if faulty.any():
            row = int(faulty.argmax())
            value = None if shown is None else shown.names[shown.codes[row]]
            self._faults.append((int(places[row]), len(self._faults), problem, value))

    def names(self, column: str, texts: Texts, places: NDArray[np.int64]) -> None:
        problems = Texts([name_problem(str(name)) for name in texts.names], texts.codes)
        for problem in set(problems.names) - {None}:
            faulty = problems.mapped([problem].__contains__)
            self.add(faulty, places, f"{column!r} {problem}", None if problem == EMPTY else texts)

    def raise_first(self, source: TextSource) -> None:
        if self._faults:
            place, _, problem, value = min(self._faults)
            raise row_at(source, place).error(problem, value)


class _Games(NamedTuple):
    """The games in some rows of a table, agents in the order shown; and counts, as in ``ImportedVerdicts``."""

    first: Texts
    second: Texts
    outcome: NDArray[np.int8]
    query: Texts | None
    judge: Texts
    preference: Floats
    places: NDArray[np.int64]
    swapped: Bools
    order_known: Bools
    weight: Floats
    further: Mapping[str, Texts]
    counts: Counter[str]


def _games(rows: TextTable, layout: _Layout, faults: _Faults, *, skip_empty: bool, skip_self_play: bool) -> _Games:
    """Parse the games in rows of a table: one per row, or two if the table has the columns ``BOTH_ORDERS``."""
    agent_a, agent_b = rows.columns[layout.ours["agent_a"]], rows.columns[layout.ours["agent_b"]]
    faults.names(layout.ours["agent_a"], agent_a, rows.places)
    faults.names(layout.ours["agent_b"], agent_b, rows.places)
    names, (a, b) = in_order(agent_a, agent_b)
    is_self_play, self_play = a == b, 0
    if is_self_play.any() and skip_self_play:
        valid = np.flatnonzero(~is_self_play)
        columns = {name: column.of(valid) for name, column in rows.columns.items()}
        rows = TextTable(columns, rows.places[valid], rows.line)
        a, b, self_play = a[valid], b[valid], len(layout.verdicts) * int(is_self_play.sum())
    elif is_self_play.any():
        problem = "an agent plays against itself: remove the row, or say --skip-faulty"
        faults.add(is_self_play, rows.places, problem, agent_a)
    none = Texts([""], np.zeros(rows.places.size, np.int32))
    query = rows.columns[layout.ours["qid"]] if "qid" in layout.ours else None
    if query is not None:
        faults.names(layout.ours["qid"], query, rows.places)
    judge = rows.columns[layout.ours["judge"]] if "judge" in layout.ours else none
    order = none if layout.order is None else rows.columns[layout.order]
    swapped, order_known = _orders(order, layout, rows, faults)
    cells = _Cells(rows, layout, faults, names, a, b)
    verdict_columns = [cells.verdicts(column, swapped) for column in layout.verdicts]
    outcomes = np.stack([column.outcome for column in verdict_columns], axis=1)
    empty = outcomes == _NONE
    if empty.any() and not skip_empty:
        for name, empty_cells in zip(layout.verdicts, empty.T, strict=True):
            problem = f"no verdict in {name!r}: remove the row, or say --skip-faulty"
            faults.add(empty_cells, rows.places, problem, _stripped(rows.columns[name]))
    row, number = np.nonzero(~empty)
    b_first = np.stack([column.swapped for column in verdict_columns], axis=1)[row, number]
    a, b = a[row], b[row]
    return _Games(
        Texts(names, np.where(b_first, b, a)),
        Texts(names, np.where(b_first, a, b)),
        outcomes[row, number],
        None if query is None else query.of(row),
        judge.of(row),
        np.stack([column.preference for column in verdict_columns], axis=1)[row, number],
        rows.places[row],
        b_first,
        order_known[row],
        _weights(rows, layout, faults)[row],
        {name: rows.columns[column].of(row) for name, column in layout.extras.items()},
        Counter(
            skipped=int(empty.sum()),
            self_play=self_play,
            order_assumed=row.size if layout.order is None and len(layout.verdicts) == 1 else 0,
            both_bad=sum(int(column.both_bad.sum()) for column in verdict_columns),
            both_good=sum(int(column.both_good.sum()) for column in verdict_columns),
            strong=sum(int(column.strong.sum()) for column in verdict_columns),
        ),
    )


def _weights(rows: TextTable, layout: _Layout, faults: _Faults) -> Floats:
    if "weight" not in layout.ours:
        return np.ones(rows.places.size)
    texts = _stripped(rows.columns[layout.ours["weight"]])
    numbers = texts.mapped(number_in, np.float64)
    problem = f"{layout.ours['weight']!r} must be a number of games above 0; or --column weight= to use no weights"
    faults.add(~((numbers > 0) & np.isfinite(numbers)), rows.places, problem, texts)
    return numbers


def _long(path: Path, tables: Sequence[TextTable], wide: Wide) -> Iterator[TextTable]:
    """The tables with one column of verdicts in place of one for each judge; empty cells are nobody's verdict."""
    header = dict.fromkeys(name for table in tables for name in table.columns)
    if missing := [name for name in wide.theirs if name not in header]:
        raise VERDICTS.missing(path, missing[0], header)
    for table in tables:
        for name in wide.theirs:
            if name not in table.columns:
                continue
            rest = {key: column for key, column in table.columns.items() if key not in {*wide.theirs, wide.named_by}}
            filled = np.flatnonzero(table.columns[name].mapped(lambda text: bool((text or "").strip())))
            names = Texts([name], np.zeros(table.places.size, np.int32))
            cells = {**rest, wide.ours: table.columns[name], wide.named_by: names}
            columns = {key: column.of(filled) for key, column in cells.items()}
            yield TextTable(columns, table.places[filled], table.line, wide.form)


def _concatenated(parts: Sequence[_Games]) -> _Games:
    """Join the games in the parts of a file, in the order of rows; extra columns that a part lacks are empty there."""
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate([part.places for part in parts]), kind="stable")

    def joint(columns: Sequence[Any]) -> Any:
        if any(column is None for column in columns):
            return None
        return joined(columns).of(order) if isinstance(columns[0], Texts) else np.concatenate(columns)[order]

    absent = [Texts([""], np.zeros(part.places.size, np.int32)) for part in parts]
    further = {
        name: joint([part.further.get(name, none) for part, none in zip(parts, absent, strict=True)])
        for name in dict.fromkeys(name for part in parts for name in part.further)
    }
    columns = (joint([part[at] for part in parts]) for at in range(len(_Games._fields) - 2))
    return _Games._make((*columns, further, sum((part.counts for part in parts), Counter())))


def _repeats(table: VerdictTable, further: Sequence[Texts]) -> tuple[int, int]:
    """Count the verdicts that repeat an earlier one, and the games that have different verdicts."""
    key, limit = np.zeros(len(table), np.int64), 1
    parts = [(table.a, len(table.agents)), (table.b, len(table.agents)), (table.judge, len(table.judges))]
    if table.query is not None and table.queries is not None:
        parts.append((table.query, len(table.queries)))
    if table.repeat is not None:
        parts.append((table.repeat, int(table.repeat.max(initial=0)) + 1))
    for codes, size in [*parts, *((column.codes, len(column.names)) for column in further)]:
        if limit * size > 2**60:
            unique_keys, key = np.unique(key, return_inverse=True)
            limit = unique_keys.size
        key = key * size + codes
        limit *= size
    with_verdict = np.sort(3 * key + table.outcome + 1)
    distinct = with_verdict[np.flatnonzero(np.diff(with_verdict, prepend=-1))]
    _, verdicts = np.unique(distinct // 3, return_counts=True)
    return len(table) - distinct.size, int((verdicts > 1).sum())


def _orders(order: Texts, layout: _Layout, rows: TextTable, faults: _Faults) -> tuple[Bools, Bools]:
    """For each row, whether agent_b was shown first, and whether the order is known."""
    words = Texts([str(name).strip().casefold() for name in order.names], order.codes)
    filled, known = words.mapped(bool), words.mapped(SHOWN_SWAPPED.__contains__)
    problem = f"{layout.order!r} must be one of {', '.join(SHOWN_SWAPPED)}"
    faults.add(filled & ~known, rows.places, problem, _stripped(order))
    return words.mapped(lambda word: SHOWN_SWAPPED.get(word, False)), filled | (layout.order is None)


class _Verdicts(NamedTuple):
    """The verdicts in one column, one per row. ``outcome`` and ``preference`` are for the answer shown first.

    Where ``swapped`` is true, that is the answer of agent_b.
    """

    outcome: NDArray[np.int8]
    swapped: Bools
    preference: Floats
    both_bad: Bools
    both_good: Bools
    strong: Bools


class _Cells(Struct, frozen=True, eq=False):
    """Parses the cells with verdicts in some rows; ``a`` and ``b`` are the rows' agents as indices into ``agents``."""

    rows: TextTable
    layout: _Layout
    faults: _Faults
    agents: Sequence[str]
    a: Int32s
    b: Int32s

    def verdicts(self, column: str, swapped: Bools) -> _Verdicts:
        """Parse the verdicts in a column; empty cells become ``_NONE``."""
        if self._place(column) == BOTH_ORDERS[1]:
            swapped = np.ones_like(swapped)
        texts = self._coded(column)
        filled = ~texts.mapped(lambda text: text.casefold() in _NO_VERDICT)
        preference = self._preferences(column, texts, filled)
        if self.layout.one_hot and not np.isin(preference[filled], (0.0, 0.5, 1.0)).all():
            problem = f"{column!r} is a probability and no winner; say --set preferences=soft, or name the verdict"
            self.faults.add(filled & ~np.isin(preference, (0.0, 0.5, 1.0)), self.rows.places, problem, texts)
        if column in self.layout.shares:
            outcome = np.where(filled, np.nan_to_num(np.sign(preference - 0.5)), _NONE).astype(np.int8)
        else:
            outcome = self._outcomes(column, texts, filled, swapped)
        shown = np.where(swapped & filled, -outcome, outcome).astype(np.int8)
        bad = filled & texts.mapped(lambda text: both(text) == "both_bad")
        good = filled & texts.mapped(lambda text: both(text) == "both_good")
        strong = filled & texts.mapped(is_strong)
        preference = np.full(filled.size, np.nan) if self.layout.one_hot else preference
        preference = np.where(swapped, 1 - preference, preference)
        return _Verdicts(shown, swapped, preference, bad, good, strong)

    def _place(self, column: str) -> str:
        """``winner_ab`` or ``winner_ba`` if a column is one of them or the user calls it so, else its name."""
        called = self.layout.called[column]
        return called if called in BOTH_ORDERS else column

    def _coded(self, column: str) -> Texts:
        """The texts in a column; words and numbers to which the user gave verdicts are replaced by these."""
        texts, coding = _stripped(self.rows.columns[column]), self.layout.coding
        if column in self.layout.shares or coding == Coding():
            return texts
        problem = f"{column!r}: no --value says what this number means"
        self.faults.add(texts.mapped(coding.lacks), self.rows.places, problem, texts)
        return Texts([coding.read(str(name)) for name in texts.names], texts.codes)

    def _outcomes(self, column: str, texts: Texts, filled: Bools, swapped: Bools) -> NDArray[np.int8]:
        """Outcome of each row: 1 if agent_a wins, -1 if agent_b wins, 0 for a tie, ``_NONE`` for an empty cell."""
        number = {name: at for at, name in enumerate(self.agents)}
        self._require_no_zero(column, texts, filled)
        place = self._place(column)
        sides = [[_side(str(text), place, swapped=b_first) for text in texts.names] for b_first in (False, True)]
        by_word = np.array(sides, np.int8)[swapped.astype(np.int8), texts.codes]
        named = texts.mapped(lambda text: number.get(text, -1), np.int32)
        by_name = np.select([named == self.a, named == self.b], [1, -1], _NONE)
        # In our own tables, A, B and TIE keep their meaning even if an agent has that name.
        is_letter = texts.mapped(lambda text: column == "verdict" and text in _LETTER_VERDICTS)
        ambiguous = filled & (by_word != _NONE) & (by_name != _NONE) & (by_word != by_name) & ~is_letter
        problem = "the winner is ambiguous, a word that is also an agent's name; write agent_a or agent_b"
        self.faults.add(ambiguous, self.rows.places, problem, texts)
        outcome = np.where(by_word == _NONE, by_name, by_word)
        unknown = filled & (outcome == _NONE)
        if unknown.any():
            self.faults.add(unknown, self.rows.places, problem_of(column, _distinct(texts, filled)), texts)
        return np.where(filled, outcome, _NONE).astype(np.int8)

    def _require_no_zero(self, column: str, texts: Texts, filled: Bools) -> None:
        """Add a fault if a column of numbers has a 0 that is no agent's name, as the meaning of 0 and 1 is unclear."""
        with_zero = filled & texts.mapped(lambda text: number_in(text) == 0 and text not in self.agents)
        if with_zero.any() and are_numbers(values := _distinct(texts, filled)):
            self.faults.add(with_zero, self.rows.places, problem_of(column, values))

    def _preferences(self, column: str, texts: Texts, filled: Bools) -> Floats:
        """Probability in each row that agent_a's answer is better; NaN if the row has none or they are not read."""
        none = np.full(filled.size, np.nan)
        if not self.layout.shares:
            return none
        if self.layout.shares[0] is None:
            if column != "preference":
                return none
            return np.where(filled, texts.mapped(lambda text: _likely(text, column), np.float64), np.nan)
        of_a, of_b, of_tie = (self._shares(share, filled) for share in self.layout.shares)
        known = ~np.isnan(of_b)
        total = of_a + np.nan_to_num(of_tie) + np.nan_to_num(of_b)
        wrong = (total > 1 + _ROUNDING) | (known & (total < 1 - _ROUNDING))
        if wrong.any():
            problem = f"the probabilities of a verdict must sum to 1, not {total[wrong.argmax()]:.6g}"
            self.faults.add(wrong, self.rows.places, problem, self.rows.columns.get("p_a"))
        total = np.where(np.isfinite(total) & (total > 0), total, 1.0)
        return np.asarray((of_a + np.nan_to_num(of_tie) / 2) / np.where(known, total, np.maximum(1.0, total)))

    def _shares(self, column: str | None, filled: Bools) -> Floats:
        """Parse a column of probabilities; empty cells become NaN."""
        if column is None:
            return np.full(filled.size, np.nan)
        texts = _stripped(self.rows.columns[column])
        texts = Texts([_TRUE.get(str(name).casefold(), str(name)) for name in texts.names], texts.codes)
        wrong = filled & texts.mapped(lambda text: bool(text) and not 0 <= number_in(text) <= 1)
        self.faults.add(wrong, self.rows.places, f"{column!r} must be a probability from 0 to 1", texts)
        return np.where(filled, texts.mapped(number_in, np.float64), np.nan)


def _distinct(column: Texts, filled: Bools) -> list[str]:
    return [str(column.names[code]) for code in np.unique(column.codes[filled])]


def _stripped(column: Texts) -> Texts:
    return Texts([str(name).strip() for name in column.names], column.codes)


def _side(text: str, column: str, *, swapped: bool) -> int:
    """Outcome that a word in a cell means: 1 for agent_a, -1 for agent_b, 0 for a tie, ``_NONE`` for no verdict."""
    verdict = side_of(text, column, swapped=swapped)
    return _NONE if verdict is None else GAME_OUTCOMES[verdict]


def _likely(text: str, column: str) -> float:
    """Probability that agent_a's answer is better, from a preference between 1 (agent_a) and 2, or from a word."""
    if (side := _side(text, "" if column == "preference" else column, swapped=False)) in {-1, 0, 1}:
        return (1 + side) / 2
    return float(np.clip(2 - number_in(text), 0.0, 1.0))


MATRIX: Final = TableSpec(("agent",), ("agent",))
SUMMARIES: Final = frozenset({"average", "mean"})


def is_win_matrix(path: Path | str) -> bool:
    """Whether a table is a matrix of win percentages: it has a column ``agent``, not ``agent_a`` and ``agent_b``."""
    header = read_columns(path)
    return MATRIX.has_all(header) and not VERDICTS.has_all(header) and not is_ranked(header, {})


def read_win_matrix(path: Path | str) -> tuple[list[str], NDArray[np.float64]]:
    """Read a matrix of win percentages: a table with a column ``agent`` and one further column for each agent.

    A cell is the percentage, 0 to 100, of games that the row's agent won against the column's agent. The rest of a
    pair's games, up to 100, are ties. Both cells of a pair are empty if its agents never met. The diagonal is ignored.
    Returns the K agents in the order of the rows, and the percentages, shape (K, K), NaN for empty cells.
    """
    rows = list(MATRIX.rows(path))
    agents = _agents(Path(path), rows)
    percentages = np.full((len(agents), len(agents)), np.nan)
    for i, row in enumerate(rows):
        for j, opponent in enumerate(agents):
            text = row.text(opponent).strip()
            percentages[i, j] = math.nan if i == j else number_in(text)
            if i != j and text.casefold() not in {"", "nan"} and not 0 <= percentages[i, j] <= 100:
                raise row.error(f"the percentage against {opponent!r} must be a number from 0 to 100", text)
    for i, j in itertools.combinations(range(len(agents)), 2):
        won, lost = float(percentages[j, i]), float(percentages[i, j])
        if math.isnan(won) != math.isnan(lost):
            problem = f"only one of the two percentages of this agent and {agents[i]!r} is given; give both"
            raise rows[j].error(problem)
        if won + lost > 100 + ROUNDING:
            raise rows[j].error(f"this agent and {agents[i]!r} together won more than all games", f"{won:g} + {lost:g}")
    if not np.nanmax(percentages, initial=0) > 1:
        raise DataError(path, "no value is above 1: if these are fractions, multiply them by 100")
    say_read(path, rows[0].called, {"agent", *agents}, f"a matrix of {len(agents)} agents")
    return agents, percentages


def _agents(path: Path, rows: Sequence[Row]) -> list[str]:
    agents: list[str] = []
    for row in rows:
        if (agent := row.identifier("agent")) in agents:
            raise row.error("this agent already has a row; remove one", agent)
        agents.append(agent)
    header = rows[0].values
    for agent in agents:
        if agent not in header:
            raise MATRIX.missing(path, agent, header)
    if extra := [name for name in header if name != "agent" and name not in agents and name not in SUMMARIES]:
        raise DataError(
            path,
            "this column has the name of no agent with a row; add a row for this agent, or remove the column",
            value=extra[0],
        )
    return agents
