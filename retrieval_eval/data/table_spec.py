"""Specifications of kinds of tables: which columns a table may have, which it must have, and how it spells them."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from judges.errors import DataError
from retrieval_eval.data.column_report import KEPT, ColumnsRead
from retrieval_eval.data.rows import Only, Row, Rows
from retrieval_eval.data.tables import memory_rows, read_rows
from retrieval_eval.data.vocabulary import OF_DATA, Columns, folded, how_to_name, spellings

_SINGLE: Final[Mapping[str, str]] = {
    "answer": "the answer",
    "reference": "the gold answer",
    "passages": "the passages",
    "verdict": "the verdict",
}
"""Columns that must not be ambiguous, since a wrong choice would silently change the judgments."""
_UNAMBIGUOUS: Final = {"verdict": {"verdict", "winner"}}
"""Spellings that are never ambiguous. ``answer`` is not listed, since data sets also use it for the gold answer."""
_CONVERSATIONS: Final = ("turns", "user_input", "messages")
"""Columns of DeepEval, ragas and chat logs that contain a whole conversation with its answers."""
_ROOM: Final = 108
"""Space for column names, in characters, in an error message of two lines of 80 characters."""
_NUMBERS: Final = {2: "two", 3: "three"}


class TableSpec(Struct, frozen=True):
    """The columns of a kind of table, by their names in ``VOCABULARY``.

    Attributes:
        columns: all columns that are read; if two of them share a spelling, it belongs to the first.
        needed: the columns that a table must have.
        words: for a column, spellings to try before those of the vocabulary, because in this kind of table the word
            means this column.
        kept: whether other columns are kept as metadata.
        option: whether the user chooses columns by ``--column`` alone, and not in a configuration.
    """

    columns: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kept: bool = False
    option: bool = False

    def spellings(self, column: str) -> tuple[str, ...]:
        """The other spellings of a column in this kind of table, best first."""
        if column not in self.columns:
            return ()
        return tuple(dict.fromkeys((*self.words.get(column, ()), *spellings(column))))

    def rows(
        self, source: Path | str | Rows, columns: Columns | None = None, only: Only | None = None
    ) -> Iterator[Row]:
        """Stream the rows of a table, its columns renamed to canonical names; ``columns`` are the user's choices.

        Raises:
            DataError: the table cannot be read, see ``read_rows``; it lacks a column, or a column is ambiguous.
        """
        if isinstance(source, Rows):
            return self.renamed(memory_rows(source), columns)

        def named(line: int | None, header: Sequence[str], cells: Mapping[str, Any] | None) -> dict[str, str]:
            return self.checked(Path(source), header, columns, line=line, cells=cells)

        return read_rows(source, named, only)

    def renamed(self, rows: Iterable[Row], columns: Columns | None = None) -> Iterator[Row]:
        """The rows, their columns renamed to canonical names; raises ``DataError`` for the same reasons as ``rows``."""
        by_header: dict[tuple[str, ...], dict[str, str]] = {}  # most rows have the same
        for row in rows:
            header = tuple(row.values)
            if (called := by_header.get(header)) is None:
                called = by_header[header] = self.checked(row.path, header, columns, line=row.line, cells=row.values)
            values = {called[name]: cell for name, cell in row.values.items() if called[name]}
            yield replace(row, values=values, called=called)

    def report(self, *further: str) -> ColumnsRead:
        """An empty report on how columns are read: the columns of this specification and the ``further`` ones."""
        return ColumnsRead({*self.columns, *self.needed, *further}, kept=KEPT if self.kept else "")

    def has_all(self, header: Iterable[str], columns: Columns | None = None) -> bool:
        """Whether a table with this header has all needed columns."""
        return set(self.needed) <= set(self.named(header, columns).values())

    def named(
        self, header: Iterable[str], columns: Columns | None = None, objects: Collection[str] = ()
    ) -> dict[str, str]:
        """The canonical name for each column of a table, ``""`` if the column is ignored.

        Args:
            header: the table's columns.
            columns: the user's choice of columns; the vocabulary decides about canonical names without a choice, and
                about names whose chosen column the table lacks.
            objects: columns whose cells are objects; one of them becomes the answer only if no other column can.
        """
        names = {name: name if name.strip() else "" for name in header}
        chosen = {ours: theirs for ours, theirs in (columns or {}).items() if theirs is None or theirs in names}
        names |= dict.fromkeys(chosen.keys() & names.keys(), "")
        names |= {theirs: ours for ours, theirs in chosen.items() if theirs is not None}
        for ours in chosen.keys() & _SINGLE.keys() & set(self.columns):
            rivals = [theirs for theirs in self._spelt(names, ours) if names[theirs] == theirs != chosen[ours]]
            names |= dict.fromkeys(rivals, "")
        by_folded, ours_all = {folded(name): name for name in reversed(names)}, {*self.columns, *self.needed}
        for ours in self.columns:
            if ours in chosen or ours in names.values():
                continue
            # With messages the last one may be the question; then a title is something else.
            others = spellings(ours) if ours == "query" and "messages" in names.values() else self.spellings(ours)
            alike = (name if name in names else by_folded.get(folded(name), "") for name in (ours, *others))
            free = [name for name in alike if name and names[name] == name and name not in ours_all]
            best = [name for name in free if ours != "answer" or name not in objects] or free
            names |= dict.fromkeys(best[:1], ours)
        return names

    def checked(
        self,
        path: Path,
        header: Collection[str],
        columns: Columns | None = None,
        *,
        line: int | None = None,
        cells: Mapping[str, Any] | None = None,
    ) -> dict[str, str]:
        """The canonical name for each column, see ``named``.

        Args:
            path: the table.
            header: the table's columns.
            columns: the user's choice of columns; ``None`` if the user has no way to choose.
            line: line number of the header or of the row.
            cells: the row's cells, if rows may differ in their columns; a row with an ``error`` may lack ``answer``.

        Raises:
            DataError: a column is missing or ambiguous.
        """
        objects = {name for name, cell in (cells or {}).items() if isinstance(cell, dict)}
        names = self.named(header, columns, objects)
        if (problem := self._clash(names, columns, objects)) is not None:
            raise DataError(path, problem, line=line)
        present = set(names.values())
        for column in self.needed:
            is_there = column in present or (column == "query" and "messages" in present)
            if is_there or (cells is not None and column == "answer" and "error" in present):
                continue
            for whole in _CONVERSATIONS if cells is not None and column in {"answer", "query"} else ():
                row = Row(path, line or 0, cells or {})
                if any(isinstance(each, dict) for each in row.listed(whole) or ()):
                    problem = "is a whole conversation; write a row for each turn to judge, with 'messages' before its"
                    raise row.error(f"{whole!r} {problem} answer")
            raise self.missing(path, column, header, line, chosen=columns is not None)
        return names

    def missing(
        self, path: Path, column: str, header: Iterable[str], line: int | None = None, *, chosen: bool = False
    ) -> DataError:
        """An error that names the missing column and the likely one, for the caller to raise.

        Args:
            path: the table.
            column: the missing column.
            header: the table's columns.
            line: line number of the header, if known.
            chosen: whether the user can choose the column.
        """
        from judges.sections import shortened

        names, also = [name for name in header if name], self.spellings(column)
        similar = difflib.get_close_matches(column, [name for name in names if name not in OF_DATA], n=1)
        suggestion = similar[0] if similar else "NAME"
        advice = f"; is it {similar[0]!r}?" if similar else ""
        if chosen:
            how = f"say --column {column}={suggestion}" if self.option else f": {how_to_name(column, suggestion)}"
            advice = f"; or {how}".replace("or :", "or:")
        room = _ROOM - len(os.path.relpath(path)) - len(column) - len(advice)
        accepted = f"; may be called {shortened(also, max(room // 2, 20))}" if also else ""
        found_names = shortened(names, max(room - len(accepted), 20)) or "none"
        return DataError(path, f"no column {column!r}; found {found_names}{accepted}{advice}", line=line)

    def _clash(self, names: Mapping[str, str], columns: Columns | None, objects: Collection[str]) -> str | None:
        """Why the columns of a table are ambiguous; ``None`` if they are not.

        They are ambiguous if two columns differ only in spaces, or only in case and one of them is read; or if several
        columns are spellings of the answer (or gold answer, passages, verdict) and ``columns`` does not choose one.
        """
        from judges.sections import shortened

        ours, seen = {*self.columns, *self.needed}, dict[str, str]()
        for name in filter(names.get, names):
            other = seen.setdefault(name.strip().casefold(), name)
            if other != name and (other.strip() == name.strip() or not {names[name], names[other]}.isdisjoint(ours)):
                return f"columns {other!r} and {name!r} differ in case or spaces only; rename one, or leave it out"
        for column in (name for name in _SINGLE if name in self.columns and name not in (columns or {})):
            rivals = [name for name in self._spelt(names, column) if names[name] in {name, column}]
            rivals = [name for name in rivals if column != "answer" or name not in objects]
            if len({folded(name).removesuffix("s") for name in rivals}) < 2 or not _UNAMBIGUOUS.get(
                column, set()
            ).isdisjoint(rivals):
                continue
            which = f"{_NUMBERS.get(len(rivals), len(rivals))} columns may be {_SINGLE[column]}: {shortened(rivals)}"
            if columns is None:
                return f"{which}; rename one, or leave it out"
            how = "" if self.option else f", or columns: {{{column}: NAME}}"
            gold = "; the gold answer is 'reference'" if column == "answer" else ""
            return f"{which}; say --column {column}=NAME{how}{gold}"
        return None

    def _spelt(self, names: Iterable[str], column: str) -> list[str]:
        """The columns of a table that are spellings of a canonical column."""
        looks = {folded(spelling) for spelling in (column, *self.spellings(column))}
        return [name for name in names if folded(name) in looks]
