"""Tables of verdicts: ours, and the ones other tools and studies write."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from arena.data.verdict_words import BOTH_ORDERS, Coding, are_numbers, both, number_in, problem_of, side_of
from arena.present.numbers import counted
from arena.ratings.games import OUTCOME, GameVerdict, VerdictTable
from judges.errors import DataError
from judges.types import Verdict
from retrieval_eval.data.column_report import say_read
from retrieval_eval.data.columns import Texts, TextTable, in_order, joined, read_text_columns, row_at
from retrieval_eval.data.conversations import require_one_spelling
from retrieval_eval.data.rows import EMPTY, Cell, name_problem, spelling_problem, table_format
from retrieval_eval.data.tables import write_rows
from retrieval_eval.data.vocabulary import VERDICT_NAMES, canonical_names, clash, missing_column
from retrieval_eval.stats.arrays import Bools, Floats, Int32s

CONVERSATION: Final = "conversation"
"""The further column that names the conversation that a query is a turn of."""

VERDICT_CELLS: Final = ("agent_a", "agent_b", "verdict", "judge", "order")
"""What a table says of a game besides its query; ``order`` is that in which the row names the agents."""

_OWN: Final = frozenset(Verdict)
_NONE: Final = 9
"""Where a column has no verdict."""
_ROUNDING: Final = 0.01
"""By which rounded probabilities may miss 1."""
_NO_VERDICT: Final = {"", "error", "nan"}
_SHOWN_SWAPPED: Final = {"ab": False, "ba": True, "1": False, "2": True, "first": False, "second": True}


class ImportedVerdicts(Struct, frozen=True, eq=False, dict=True):
    """The games of a file, and what was noticed on the way.

    Attributes:
        path: the file.
        table: a verdict per game as it was shown, in the order of the file.
        further: other columns (``reason`` among them) as text, aligned with the verdicts; ``""`` where absent.
        rows: rows of the file.
        places: for each verdict, the row of the file it stands on, from 0.
        swapped: for each verdict, whether the file's agent_b was shown first.
        order_known: for each verdict, whether its ``order`` is given, or the file has no such column.
        skipped: games left out because the file gives no verdict.
        self_play: games left out because an agent plays itself.
        duplicates: verdicts that repeat an earlier one in every column, reasons aside.
        conflicts: games, the same in every column but verdict and reason, that have different verdicts.
        order_assumed: verdicts of rows without a column of the order; agent_a is taken to have been shown first.
        both_bad: ties that say that both answers are bad.
        both_good: ties that say that both are good.
        called: for each column of the file the name that it goes by.
    """

    path: Path
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
    called: Mapping[str, str] = {}

    def say(self, used: Collection[str] = ()) -> None:
        """Say which columns were read; ``used`` are further ones that the caller reads."""
        known = {*VERDICT_NAMES, *BOTH_ORDERS, CONVERSATION, *used}
        ties = {"both bad": self.both_bad, "both good": self.both_good}
        apart = "".join(f", {count:,} {what}" for what, count in ties.items() if count)
        numbers = f"{counted(self.rows, 'row')}, {counted(len(self.table), 'verdict')}{apart}"
        say_read(self.path, self.called, known, numbers)

    @property
    def order_unknown(self) -> int:
        """Verdicts whose ``order`` is empty; agent_a is taken to have been shown first."""
        return int((~self.order_known).sum())

    @cached_property
    def verdicts(self) -> list[GameVerdict]:
        """The verdicts one by one."""
        return list(self.table.each())

    @cached_property
    def extras(self) -> Mapping[str, list[str]]:
        """The texts of ``further``, one for each verdict."""
        return {name: column.each() for name, column in self.further.items()}

    def of_queries(self, column: str) -> dict[str, str]:
        """What a further column says of each query, such as its conversation; queries that it is empty of are left out.

        Raises:
            DataError: it says two things of one query.
        """
        queries, query, texts = self.table.queries, self.table.query, self.further[column]
        if queries is None or query is None:
            raise DataError(
                self.path, f"{column!r} is of queries, but no column names these; name it with --column qid=COLUMN"
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
        return {name: own for name, own in zip(queries, named, strict=True) if own}

    def error(self, verdict: int, problem: str, value: str | None = None) -> DataError:
        """The error that says what is wrong with the row of a verdict, for the caller to raise."""
        return row_at(self.path, int(self.places[verdict])).error(problem, value)


def read_verdicts(
    path: Path | str,
    *,
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, str] | None = None,
    skip_empty: bool = False,
    skip_self_play: bool = False,
    preferences: bool = False,
) -> ImportedVerdicts:
    """Read a table of verdicts from CSV, TSV, JSONL or Parquet.

    Columns are ``agent_a, agent_b, verdict`` and optionally ``qid, judge, order, reason``, or ``VERDICT_NAMES``; a
    table with ``BOTH_ORDERS`` instead of a verdict gives two games a row. ``agent_a`` was shown first unless ``order``
    says ``ba`` (or ``2`` or ``second``: the place where agent_a was shown).

    A verdict is read without regard to case, and what it points at depends on the word:

    - ``A``, ``B``, ``1``, ``2`` mean the *columns* agent_a and agent_b, whatever the order; in ``BOTH_ORDERS`` they
      mean the answer shown first and second, as in the records of MT-bench judges;
    - ``agent_a``, ``model_a`` and so on, or the agent's own name, mean that agent;
    - ``left``, ``right``, ``first``, ``second`` mean the place where the answer was shown;
    - ``TIE``, ``draw``, ``C``, ``N``, ``both_bad``, ``both_good``, ``tie (bothbad)``, ``tie (inconsistent)`` and
      ``inconsistent`` are ties;
    - in a column ``preference`` (AlpacaEval) a number from 1 for agent_a to 2 for agent_b goes to the nearer one;
      1.5 is a tie.

    ``values`` say what other words mean, and other numbers: 0 is refused without, since some tables mean a tie by it,
    some the first answer, some a loss.

    With ``preferences`` the probability that agent_a's answer is the better one is read as well: from ``p_a``, with
    ``p_b`` and ``p_tie`` if they are there (a tie counts as half), else from a column ``preference``. Where there is
    no verdict it is what that probability says. A row without one has its verdict alone.

    Args:
        path: the file.
        columns: the file's name for a column, where neither name nor alias fits: ``{"verdict": "gold"}``.
        values: what words, numbers or ranges of numbers mean: ``{"A ist besser": "A", "-3..-1": "A"}``.
        skip_empty: leave out and count games with an empty verdict, ``error`` or ``nan`` instead of refusing them.
        skip_self_play: leave out and count games of an agent against itself, as in AlpacaEval's baseline against its
            own answers, instead of refusing them.
        preferences: read how sure the judge is.

    Raises:
        DataError: the file cannot be read, a column is missing, an agent has no name or plays itself, or a verdict or
            order is none of the above.
    """
    path = Path(path)
    if unknown := (columns or {}).keys() - VERDICT_NAMES.keys():
        raise DataError(path, f"no such column to map; choose from {', '.join(VERDICT_NAMES)}", value=min(unknown))
    read, faults, size, coding = [], _Faults(), 0, Coding.of(values or {})
    called: dict[str, str] = {}
    for rows in read_text_columns(path):
        layout = _Layout.of(path, rows, columns or {}, coding, preferences=preferences)
        called |= layout.called
        read.append(_games(rows, layout, faults, skip_empty=skip_empty, skip_self_play=skip_self_play))
        size += rows.places.size
    faults.raise_first(path)
    games = _together(read)
    with_query = [part.query is not None for part in read]
    without = sum(len(part.places) for part, has in zip(read, with_query, strict=True) if not has)
    if any(with_query) and without:
        raise DataError(path, f"{without:,} of {games.places.size:,} verdicts name no query: give all or none")
    agents, (first, second) = in_order(games.first, games.second)
    _require_one_spelling(path, agents, first, second, games.places)
    judges, (judge,) = in_order(games.judge)
    queries, query = None, None
    if games.query is not None:
        queries, (query,) = in_order(games.query)
    preference = None if np.isnan(games.preference).all() else games.preference
    table = VerdictTable(agents, first, second, games.outcome, queries, query, judges, judge, preference)
    duplicates, conflicts = _repeats(table, [column for name, column in games.further.items() if name != "reason"])
    return ImportedVerdicts(
        path,
        table,
        games.further,
        size,
        games.places,
        games.swapped,
        games.order_known,
        skipped=sum(part.skipped for part in read),
        self_play=sum(part.self_play for part in read),
        duplicates=duplicates,
        conflicts=conflicts,
        order_assumed=sum(part.order_assumed for part in read),
        both_bad=sum(part.both_bad for part in read),
        both_good=sum(part.both_good for part in read),
        called=called,
    )


def _require_one_spelling(
    path: Path, agents: Sequence[str], first: Int32s, second: Int32s, places: NDArray[np.int64]
) -> None:
    """See that no agent is taken for two: the row where the second spelling begins is named."""
    begins = np.full(len(agents), places.size)
    for column in (first, second):
        begins[column[::-1]] = np.minimum(begins[column[::-1]], np.arange(column.size)[::-1])
    spelt: dict[str, str] = {}
    for number in np.argsort(begins, kind="stable"):
        if problem := spelling_problem("agents", agents[number], spelt):
            raise row_at(path, int(places[begins[number]])).error(problem)


def verdict_cells(game: GameVerdict) -> dict[str, Cell]:
    """A game as it was shown, without its query, under the names of ``VERDICT_CELLS``."""
    cells = (game.agent_a, game.agent_b, game.verdict.value, game.judge, "ab")
    return dict(zip(VERDICT_CELLS, cells, strict=True))


def write_verdicts(path: Path | str, verdicts: Sequence[GameVerdict]) -> None:
    """Write a table of verdicts that ``read_verdicts`` gives back equal.

    Args:
        path: the file; its extension says the format.
        verdicts: the games as they were shown, so ``order`` is always ``ab``.

    Raises:
        DataError: the file cannot be written.
        ValueError: some games have a query and others do not.
    """
    queries = [game.query_id for game in verdicts if game.query_id is not None]
    if queries and len(queries) < len(verdicts):
        raise ValueError("either every game has a query or none has")
    key = ("qid",) if queries else ()
    rows = (dict.fromkeys(key, game.query_id) | verdict_cells(game) for game in verdicts)
    write_rows(path, (*key, *VERDICT_CELLS), rows)


class _Layout(Struct, frozen=True):
    """Which column of the file holds what."""

    agent_a: str
    agent_b: str
    verdicts: Sequence[str]
    qid: str | None
    judge: str | None
    order: str | None
    extras: Mapping[str, str]
    """Further columns: the name they get, and the file's."""
    shares: Sequence[str | None] = ()
    """Where the probabilities of p_a, p_b and p_tie stand, empty where they are not read."""
    called: Mapping[str, str] = {}
    """For each column the name that it goes by."""
    coding: Coding = Coding()

    @staticmethod
    def of(path: Path, rows: TextTable, columns: Mapping[str, str], coding: Coding, *, preferences: bool) -> _Layout:
        header, line = list(rows.columns), rows.line if table_format(path) == "jsonl" else None
        for column in columns.values():
            if column not in header:
                raise missing_column(path, column, header, line)
        called = canonical_names(header, VERDICT_NAMES, columns)
        if (problem := clash(called, VERDICT_NAMES, VERDICT_NAMES, columns)) is not None:
            raise DataError(path, problem, line=line)
        ours = {name: theirs for theirs, name in called.items()}
        found = {name: ours.get(name) for name in VERDICT_NAMES}
        shares = [found[name] for name in ("p_a", "p_b", "p_tie")] if preferences else []
        if preferences and found["p_a"] is None and found["verdict"] != "preference":
            raise missing_column(path, "p_a", header, line)
        both = found["verdict"] is None and set(BOTH_ORDERS) <= set(header) and not preferences
        for name in ("agent_a", "agent_b", "verdict"):
            if found[name] is None and not ((both or any(shares)) and name == "verdict"):
                raise missing_column(path, name, header, line, also=VERDICT_NAMES[name], option=True)
        verdicts = BOTH_ORDERS if both else (found["verdict"] or str(found["p_a"]),)
        order = None if both else found["order"]
        used = {found[name] for name in ("qid", "agent_a", "agent_b", "judge")} | {*verdicts, order}
        extras = {"reason" if column == found["reason"] else column: column for column in header if column not in used}
        sides = str(found["agent_a"]), str(found["agent_b"])
        return _Layout(*sides, verdicts, found["qid"], found["judge"], order, extras, shares, called, coding)


class _Faults:
    """What is wrong with rows; the first row counts, and of it what was found first."""

    def __init__(self) -> None:
        self._found: list[tuple[int, int, str, str | None]] = []

    def add(self, faulty: Bools, places: NDArray[np.int64], problem: str, shown: Texts | None = None) -> None:
        """Rows that have a problem: which, the places of all, and the text that shows it."""
        if faulty.any():
            row = int(faulty.argmax())
            value = None if shown is None else shown.names[shown.codes[row]]
            self._found.append((int(places[row]), len(self._found), problem, value))

    def names(self, column: str, texts: Texts, places: NDArray[np.int64]) -> None:
        """Cells of a column of names that name nothing."""
        found = [name_problem(str(name)) for name in texts.names]
        for problem in {each for each in found if each is not None}:
            faulty = np.array([each == problem for each in found], np.bool_)[texts.codes]
            self.add(faulty, places, f"{column!r} {problem}", None if problem == EMPTY else texts)

    def raise_first(self, path: Path) -> None:
        """Raise what is wrong, if anything is."""
        if self._found:
            place, _, problem, value = min(self._found)
            raise row_at(path, place).error(problem, value)


class _Games(NamedTuple):
    """The games of rows as they were shown, with what was left out."""

    first: Texts
    second: Texts
    outcome: NDArray[np.int8]
    query: Texts | None
    judge: Texts
    preference: Floats
    places: NDArray[np.int64]
    swapped: Bools
    order_known: Bools
    further: Mapping[str, Texts]
    skipped: int
    self_play: int
    order_assumed: int
    both_bad: int
    both_good: int


def _games(rows: TextTable, layout: _Layout, faults: _Faults, *, skip_empty: bool, skip_self_play: bool) -> _Games:
    """The games of rows, one or two of each."""
    agent_a, agent_b = rows.columns[layout.agent_a], rows.columns[layout.agent_b]
    faults.names(layout.agent_a, agent_a, rows.places)
    faults.names(layout.agent_b, agent_b, rows.places)
    names, (a, b) = in_order(agent_a, agent_b)
    itself, self_play = a == b, 0
    if itself.any() and skip_self_play:
        kept = np.flatnonzero(~itself)
        rows = TextTable({name: column.of(kept) for name, column in rows.columns.items()}, rows.places[kept], rows.line)
        a, b, self_play = a[kept], b[kept], len(layout.verdicts) * int(itself.sum())
    elif itself.any():
        problem = "an agent plays against itself: remove the row, or say --skip-faulty"
        faults.add(itself, rows.places, problem, agent_a)
    query = None if layout.qid is None else rows.columns[layout.qid]
    if layout.qid is not None and query is not None:
        faults.names(layout.qid, query, rows.places)
    size = rows.places.size
    judge = Texts([""], np.zeros(size, np.int32)) if layout.judge is None else rows.columns[layout.judge]
    order = Texts([""], np.zeros(size, np.int32)) if layout.order is None else rows.columns[layout.order]
    swapped, order_known = _orders(order, layout, rows, faults)
    cells = _Cells(rows, layout, faults, names, a, b)
    each = [cells.said(column, swapped) for column in layout.verdicts]
    said = np.stack([one.outcome for one in each], axis=1)
    empty = said == _NONE
    if empty.any() and not skip_empty:
        for column, of_column in zip(layout.verdicts, empty.T, strict=True):
            problem = f"no verdict in {column!r}: remove the row, or say --skip-faulty"
            faults.add(of_column, rows.places, problem, _stripped(rows.columns[column]))
    row, number = np.nonzero(~empty)
    turned = np.stack([one.swapped for one in each], axis=1)[row, number]
    a, b = a[row], b[row]
    return _Games(
        Texts(names, np.where(turned, b, a)),
        Texts(names, np.where(turned, a, b)),
        said[row, number],
        None if query is None else query.of(row),
        judge.of(row),
        np.stack([one.preference for one in each], axis=1)[row, number],
        rows.places[row],
        turned,
        order_known[row],
        {name: rows.columns[column].of(row) for name, column in layout.extras.items()},
        skipped=int(empty.sum()),
        self_play=self_play,
        order_assumed=row.size if layout.order is None and len(layout.verdicts) == 1 else 0,
        both_bad=sum(int(one.both_bad.sum()) for one in each),
        both_good=sum(int(one.both_good.sum()) for one in each),
    )


def _together(parts: Sequence[_Games]) -> _Games:
    """The games of several parts of a file, in its order; further columns are empty where a part has none."""
    if len(parts) == 1:
        return parts[0]
    places = np.concatenate([part.places for part in parts])
    order = np.argsort(places, kind="stable")

    def texts(columns: Sequence[Texts]) -> Texts:
        return joined(columns).of(order)

    def numbers(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])[order]

    queries = [part.query for part in parts if part.query is not None]
    absent = [Texts([""], np.zeros(part.places.size, np.int32)) for part in parts]
    further = dict.fromkeys(name for part in parts for name in part.further)
    return _Games(
        texts([part.first for part in parts]),
        texts([part.second for part in parts]),
        numbers("outcome"),
        texts(queries) if len(queries) == len(parts) else None,
        texts([part.judge for part in parts]),
        numbers("preference"),
        places[order],
        numbers("swapped"),
        numbers("order_known"),
        {
            name: texts([part.further.get(name, none) for part, none in zip(parts, absent, strict=True)])
            for name in further
        },
        *(sum(getattr(part, name) for part in parts) for name in _COUNTED),
    )


_COUNTED: Final = ("skipped", "self_play", "order_assumed", "both_bad", "both_good")
"""The counts of ``_Games``, in their order."""


def _repeats(table: VerdictTable, further: Sequence[Texts]) -> tuple[int, int]:
    """How many verdicts repeat an earlier one, and how many games have several, by all columns given."""
    key, limit = np.zeros(len(table), np.int64), 1
    parts = [(table.a, len(table.agents)), (table.b, len(table.agents)), (table.judge, len(table.judges))]
    if table.query is not None and table.queries is not None:
        parts.append((table.query, len(table.queries)))
    for codes, size in [*parts, *((column.codes, len(column.names)) for column in further)]:
        if limit * size > 2**60:
            found, key = np.unique(key, return_inverse=True)
            limit = found.size
        key = key * size + codes
        limit *= size
    with_verdict = np.sort(3 * key + table.outcome + 1)
    fresh = with_verdict[np.flatnonzero(np.diff(with_verdict, prepend=-1))]
    _, verdicts = np.unique(fresh // 3, return_counts=True)
    return len(table) - fresh.size, int((verdicts > 1).sum())


def _orders(order: Texts, layout: _Layout, rows: TextTable, faults: _Faults) -> tuple[Bools, Bools]:
    """Whether each row's agent_b was shown first, and whether that is known."""
    words = [str(name).strip().casefold() for name in order.names]
    unknown = np.array([bool(word) and word not in _SHOWN_SWAPPED for word in words], np.bool_)
    if unknown.any():
        problem = f"{layout.order!r} must be one of {', '.join(_SHOWN_SWAPPED)}"
        faults.add(unknown[order.codes], rows.places, problem, _stripped(order))
    swapped = np.array([_SHOWN_SWAPPED.get(word, False) for word in words], np.bool_)[order.codes]
    given = np.array([bool(word) for word in words], np.bool_)[order.codes]
    return swapped, given | (layout.order is None)


class _Said(NamedTuple):
    """What a column says of each row's game: for the answer shown first, and whether that is agent_b's."""

    outcome: NDArray[np.int8]
    swapped: Bools
    preference: Floats
    both_bad: Bools
    both_good: Bools


class _Cells(Struct, frozen=True, eq=False):
    """Rows whose cells say verdicts; ``a`` and ``b`` index ``agents``."""

    rows: TextTable
    layout: _Layout
    faults: _Faults
    agents: Sequence[str]
    a: Int32s
    b: Int32s

    def said(self, column: str, swapped: Bools) -> _Said:
        """The verdicts of a column, ``_NONE`` where it has none."""
        if column == BOTH_ORDERS[1]:
            swapped = np.ones_like(swapped)
        texts = self._coded(column)
        given = ~np.array([str(name).casefold() in _NO_VERDICT for name in texts.names], np.bool_)[texts.codes]
        preference = self._preferences(column, texts, given)
        if column in self.layout.shares:
            meant = np.where(given, np.nan_to_num(np.sign(preference - 0.5)), _NONE).astype(np.int8)
        else:
            meant = self._meant(column, texts, given, swapped)
        shown = np.where(swapped & given, -meant, meant).astype(np.int8)
        bad, good = (
            given & np.array([both(str(name)) == word for name in texts.names], np.bool_)[texts.codes]
            for word in ("both_bad", "both_good")
        )
        return _Said(shown, swapped, np.where(swapped, 1 - preference, preference), bad, good)

    def _coded(self, column: str) -> Texts:
        """A column in our words, as far as the user says what its own mean."""
        texts, coding = _stripped(self.rows.columns[column]), self.layout.coding
        if column in self.layout.shares or coding == Coding():
            return texts
        unsaid = np.array([coding.lacks(str(name)) for name in texts.names], np.bool_)[texts.codes]
        self.faults.add(unsaid, self.rows.places, f"{column!r}: no --value says what this number means", texts)
        return Texts([coding.read(str(name)) for name in texts.names], texts.codes)

    def _meant(self, column: str, texts: Texts, given: Bools, swapped: Bools) -> NDArray[np.int8]:
        """1 where agent_a is preferred, -1 for agent_b, 0 for a tie, ``_NONE`` without a verdict."""
        number = {name: at for at, name in enumerate(self.agents)}
        self._require_no_zero(column, texts, given)
        of_words = [[_side(str(text), column, swapped=turned) for text in texts.names] for turned in (False, True)]
        by_word = np.array(of_words, np.int8)[swapped.astype(np.int8), texts.codes]
        named = np.array([number.get(str(text), -1) for text in texts.names], np.int32)[texts.codes]
        by_name = np.select([named == self.a, named == self.b], [1, -1], _NONE)
        # In our own tables A, B and TIE keep their meaning even where agents are called so.
        own = np.array([column == "verdict" and text in _OWN for text in texts.names], np.bool_)[texts.codes]
        torn = given & (by_word != _NONE) & (by_name != _NONE) & (by_word != by_name) & ~own
        problem = "the winner is the name of one agent and a word for something else"
        self.faults.add(torn, self.rows.places, problem, texts)
        meant = np.where(by_word == _NONE, by_name, by_word)
        unknown = given & (meant == _NONE)
        if unknown.any():
            self.faults.add(unknown, self.rows.places, problem_of(column, _held(texts, given)), texts)
        return np.where(given, meant, _NONE).astype(np.int8)

    def _require_no_zero(self, column: str, texts: Texts, given: Bools) -> None:
        """Refuse a column of numbers that holds 0, unless an agent is called so: 1 means another thing then, too."""
        zero = np.array([number_in(str(name)) == 0 and name not in self.agents for name in texts.names], np.bool_)
        with_zero = given & zero[texts.codes]
        if with_zero.any() and are_numbers(held := _held(texts, given)):
            self.faults.add(with_zero, self.rows.places, problem_of(column, held))

    def _preferences(self, column: str, said: Texts, given: Bools) -> Floats:
        """Probability that agent_a's answer is the better one; NaN where the row has none, or it is not read."""
        none = np.full(given.size, np.nan)
        if not self.layout.shares:
            return none
        if self.layout.shares[0] is None:
            if column != "preference":
                return none
            likely = np.array([_likely(str(text), column) for text in said.names])[said.codes]
            return np.where(given, likely, np.nan)
        of_a, of_b, of_tie = (self._shares(share, given) for share in self.layout.shares)
        known = ~np.isnan(of_b)
        total = of_a + np.nan_to_num(of_tie) + np.nan_to_num(of_b)
        wrong = (total > 1 + _ROUNDING) | (known & (total < 1 - _ROUNDING))
        if wrong.any():
            problem = f"probabilities of one verdict must sum to 1, and these to {total[wrong.argmax()]:.6g}"
            self.faults.add(wrong, self.rows.places, problem, self.rows.columns.get("p_a"))
        return np.asarray((of_a + np.nan_to_num(of_tie) / 2) / np.where(known, total, np.maximum(1.0, total)))

    def _shares(self, column: str | None, given: Bools) -> Floats:
        """A column of probabilities, NaN where a row has none."""
        if column is None:
            return np.full(given.size, np.nan)
        texts = _stripped(self.rows.columns[column])
        numbers = np.array([number_in(str(text)) for text in texts.names])
        wrong = np.array([bool(text) for text in texts.names], np.bool_) & ~((numbers >= 0) & (numbers <= 1))
        problem = f"{column!r} must be a probability from 0 to 1"
        self.faults.add(given & wrong[texts.codes], self.rows.places, problem, texts)
        return np.where(given, numbers[texts.codes], np.nan)


def _held(column: Texts, given: Bools) -> list[str]:
    """What a column holds, each text once."""
    return [str(column.names[code]) for code in np.unique(column.codes[given])]


def _stripped(column: Texts) -> Texts:
    return Texts([str(name).strip() for name in column.names], column.codes)


def _side(text: str, column: str, *, swapped: bool) -> int:
    """1 where a word means agent_a, -1 for agent_b, 0 for a tie; ``_NONE`` where it means nothing."""
    meant = side_of(text, column, swapped=swapped)
    return _NONE if meant is None else OUTCOME[meant]


def _likely(text: str, column: str) -> float:
    """How likely agent_a's answer is the better one, of a preference from 1 to 2 or a word."""
    if (meant := _side(text, "" if column == "preference" else column, swapped=False)) in {-1, 0, 1}:
        return (1 + meant) / 2
    return float(np.clip(2 - number_in(text), 0.0, 1.0))
