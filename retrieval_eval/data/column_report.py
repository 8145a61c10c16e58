"""What tables were read as: said once for each table, to whoever listens.

A command prints it on standard error; a program that wants it sets the level of the logger ``ragleague.read`` to INFO.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from retrieval_eval.data.rows import Row

READ: Final = logging.getLogger("ragleague.read")
KEPT: Final = "kept as metadata"
"""What becomes of further columns of queries, documents and answers."""
_FILES: Final = 3
"""Files that a line names; more are counted."""
_LAYOUTS: Final = 4
"""Sets of columns that have a line each."""
_COLUMNS: Final = 12
"""Likewise columns that are not used."""
_NAME: Final = 40
"""Characters of a column's name."""


class ColumnsRead:
    """What the columns of some tables are: gathered row by row, then said."""

    def __init__(self, used: Collection[str], *, kept: str = "") -> None:
        """Begin.

        Args:
            used: our columns that are read.
            kept: what becomes of the others, if anything.
        """
        self._used, self._kept = used, kept
        self._called: dict[tuple[str, str], dict[str, str]] = {}
        self._last: Mapping[str, str] | None = None

    def add(self, row: Row, form: str = "") -> None:
        """A row was read; ``form`` says of which tool or study the file is, where that is not a plain table."""
        if row.called is not self._last:
            self._last = row.called
            self._called.setdefault((str(row.path), form), {}).update(row.called)

    def through(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows, added as they are read."""
        for row in rows:
            self.add(row)
            yield row

    def say(self, count: str = "", *, plain: bool = True) -> None:
        """Say it, alike tables together.

        Args:
            count: what was read in all.
            plain: also of tables whose columns all go by our names and are all read.
        """
        alike: dict[tuple[str, str], list[str]] = {}
        for (path, form), called in self._called.items():
            if not plain and all(theirs == ours in self._used for theirs, ours in called.items()):
                continue
            alike.setdefault((form, self._columns(called)), []).append(path)
        lines = [
            f"{_listed(paths, _FILES)}{f' ({form})' if form else ''}{f': {columns}' if columns else ''}"
            for (form, columns), paths in alike.items()
        ]
        if len(lines) > _LAYOUTS:
            lines = [*lines[:_LAYOUTS], f"{len(lines) - _LAYOUTS} more kinds of tables, with other columns"]
        if count and len(self._called) == len(lines) == 1:
            lines, count = [f"{lines[0]}; {count}"], ""
        for line in filter(None, (*lines, count)):
            READ.info("%s", line)

    def _columns(self, called: Mapping[str, str]) -> str:
        given = {_clipped(theirs): ours for theirs, ours in called.items() if theirs.strip()}
        read = [ours if ours == theirs else f"{ours}={theirs}" for theirs, ours in given.items() if ours in self._used]
        rest = [theirs for theirs, ours in given.items() if ours not in self._used]
        kept = f", {self._kept}" if self._kept else ""
        parts = [", ".join(read), f"not used{kept}: {_listed(rest, _COLUMNS)}" if rest else ""]
        return "; ".join(filter(None, parts))


def say_read(path: Path | str, called: Mapping[str, str], used: Collection[str], count: str = "") -> None:
    """Say of one table which of its columns are read, by the names in ``called``."""
    reading = ColumnsRead(used)
    reading.add(Row(Path(path), 0, {}, called=called))
    reading.say(count)


def say_count(paths: Sequence[Path | str], **counts: int) -> None:
    """Say how much there is in some files, if there are any."""
    if not paths:
        return
    if not paths:
        return
    numbers = ", ".join(f"{name}: {number:,}" for name, number in counts.items())
    READ.info("%s", f"{_listed([str(path) for path in paths], _FILES)} ({numbers})")


def _clipped(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"


def _listed(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


@contextmanager
def unsaid() -> Iterator[None]:
    """Read within the block without a word, such as to compare."""
    before = READ.disabled
    READ.disabled = True
    try:
        yield
    finally:
        READ.disabled = before
