"""A table, defined once: for people as cells of text, for programs as records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from arena.present.glossary import TERMS
from arena.present.numbers import COUNT, MISSING, WORDS, Form, Number, bracketed, deserved
from arena.present.plain import plain
from retrieval_eval.stats.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        key: for programs: the field of a row, of JSON and of CSV.
        heading: for people; empty for a column of programs alone.
        form: how its values are written.
        meaning: one sentence; where it is empty, that of the heading in the glossary.
        interval: heading of its interval, which stands beside it; empty without one. The ends are the row's
            ``KEY_low`` and ``KEY_high``, or those of the ``Estimate`` that is the value.
        programs: whether programs get it as well.
        link: key of a row's field with the address that the cell leads to, on a page.
        drawn: whether value and interval share a cell, which HTML draws.
    """

    key: str
    heading: str
    form: Form = WORDS
    meaning: str = ""
    interval: str = ""
    programs: bool = True
    link: str = ""
    drawn: bool = False

    @property
    def explained(self) -> str:
        """Its meaning."""
        return self.meaning or TERMS.get(self.heading, "")

    def value(self, row: Mapping[str, Any]) -> Any:
        """A row's value."""
        found = row.get(self.key)
        return found.value if isinstance(found, Estimate) else found

    def ends(self, row: Mapping[str, Any]) -> tuple[Any, Any]:
        """Low and high end of a row's interval."""
        found = row.get(self.key)
        if isinstance(found, Estimate):
            return found.low, found.high
        return row.get(f"{self.key}_low"), row.get(f"{self.key}_high")


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first column names its rows.

    Attributes:
        name: unique among those shown together: of its file and in the page's address.
        title: for people; may be empty.
        columns: for people and programs; each group in this order.
        rows: values by key of column; texts in them may come from outside.
        notes: sentences that belong to it wherever it is shown.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = ()


def first(table: Table, most: int, how: str = "--most") -> Table:
    """The table with so many rows, and a note on how many it leaves out and how to see them."""
    left = len(table.rows) - most
    if left <= 0:
        return table
    return replace(table, rows=table.rows[:most], notes=[f"... and {left:,} more ({how})", *table.notes])


def for_programs(name: str, keys: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table for programs alone, of rows of values."""
    return Table(name, "", [Column(key, "") for key in keys], [dict(zip(keys, row, strict=True)) for row in rows])


def crossed(
    name: str,
    title: str,
    corner: str,
    names: tuple[Sequence[str], Sequence[str]],
    counts: Iterable[Sequence[int]],
    *,
    notes: Sequence[str] = (),
) -> Table:
    """Counts by the names of rows and of columns, which are unique; ``corner`` says what both are."""
    rows, columns = names
    cells = [{"": row, **dict(zip(columns, line, strict=True))} for row, line in zip(rows, counts, strict=True)]
    return Table(name, title, [Column("", corner), *(Column(own, own, COUNT) for own in columns)], cells, notes)


class Shown(NamedTuple):
    """A column as people see it.

    Attributes:
        heading: above it.
        numeric: whether it holds numbers, which stand to the right.
        meaning: a sentence, or nothing.
        cells: from top to bottom.
        values: by which it is sorted: numbers, or the lower ends of intervals; none of texts.
        form: of a column of numbers, how they are written; ``None`` of intervals and texts.
        links: addresses that the cells lead to; empty without any.
        drawn: of a drawn column its values with their ends.
    """

    heading: str
    numeric: bool
    meaning: str
    cells: Sequence[str]
    values: Sequence[float | None]
    form: Number | None
    links: Sequence[str] = ()
    drawn: Sequence[Estimate] = ()


def shown(table: Table) -> list[Shown]:
    """The columns of a table for people; those without any value, and intervals without any, are left out."""
    found = []
    for place, column in enumerate(table.columns):
        if not column.heading:
            continue
        values, ends = [column.value(row) for row in table.rows], [column.ends(row) for row in table.rows]
        written = deserved(column.form, ends)
        cells = list(map(written.write, values))
        if place == 0 or any(cell != MISSING for cell in cells):
            form = written if isinstance(written, Number) else None
            numbers = [] if form is None else list(map(_number, values))
            links = [str(row.get(column.link, "")) for row in table.rows] if column.link else []
            drawn = (
                [Estimate(*own) for own in zip(numbers, *zip(*ends, strict=True), strict=True)] if column.drawn else []
            )
            if column.drawn and form is not None:
                cells = [bracketed(own, form) for own in drawn]
            found.append(Shown(column.heading, written.numeric, column.explained, cells, numbers, form, links, drawn))
        if column.interval and not column.drawn:
            cells = [written.between(low, high) for low, high in ends]
            if any(cell != MISSING for cell in cells):
                lows = [_number(low) for low, _ in ends]
                found.append(Shown(column.interval, True, TERMS.get(column.interval, ""), cells, lows, None))
    return found


def places_of(table: Table, words: str) -> list[int]:
    """Places of the rows in which any cell that people see holds the words, in capitals or not."""
    wanted = words.casefold()
    rows = zip(*(column.cells for column in shown(table)), strict=True)
    return [place for place, cells in enumerate(rows) if any(wanted in cell.casefold() for cell in cells)]


def _number(value: Any) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def records(table: Table) -> list[dict[str, Any]]:
    """The rows for programs: plain values by key, numbers with six decimals, the same keys in every row."""
    return [dict(_fields(table, row)) for row in table.rows]


def keys(table: Table) -> list[str]:
    """The keys of ``records``, also of a table without rows."""
    return [key for key, _ in _fields(table, {})]


def _fields(table: Table, row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for column in table.columns:
        if column.programs:
            yield column.key, plain(column.value(row))
            if column.interval:
                low, high = column.ends(row)
                yield f"{column.key}_low", plain(low)
                yield f"{column.key}_high", plain(high)
