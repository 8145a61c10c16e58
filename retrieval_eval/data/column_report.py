"""Logs how the columns of tables were read, one line per table.

Commands print these lines on standard error; a program sees them if it sets the logger ``ragleague.read`` to INFO.
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
"""How the log describes the use of further columns of queries, documents and answers."""
_FILES: Final = 3
"""Most files that a log line names; it gives only the number of the others."""
_LAYOUTS: Final = 4
"""Most distinct sets of columns that get a log line each."""
_COLUMNS: Final = 12
"""Most unused columns that a log line names."""
_NAME: Final = 40
"""Most characters of a column's name in a log line."""


class ColumnsRead:
    """Collects how the columns of tables were read, row by row, then logs it."""

    def __init__(self, used: Collection[str], *, kept: str = "") -> None:
        """Start a report without tables.

        Args:
            used: the canonical columns that are read.
            kept: how other columns are used, as a phrase; empty if they are ignored.
        """
        self._used, self._kept = used, kept
        self._called: dict[tuple[str, str], dict[str, str]] = {}
        self._last: Mapping[str, str] | None = None

    def add(self, row: Row, form: str = "") -> None:
        """Record the columns of a row; ``form`` names the tool or study whose format the file has, if not a table."""
        if row.called is not self._last:
            self._last = row.called
            self._called.setdefault((str(row.path), form), {}).update(row.called)

    def through(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows and record the columns of each."""
        for row in rows:
            self.add(row)
            yield row

    def say(self, count: str = "", *, plain: bool = True) -> None:
        """Log the columns; tables with the same columns share a line.

        Args:
            count: a summary of the numbers of items read, shown in the log.
            plain: whether to include tables whose column names are all canonical already.
        """
        paths_by_columns: dict[tuple[str, str], list[str]] = {}
        for (path, form), called in self._called.items():
            if not plain and all(theirs == ours in self._used for theirs, ours in called.items()):
                continue
            paths_by_columns.setdefault((form, self._columns(called)), []).append(path)
        lines = [
            f"{_listed(paths, _FILES)}{f' ({form})' if form else ''}{f': {columns}' if columns else ''}"
            for (form, columns), paths in paths_by_columns.items()
        ]
        if len(lines) > _LAYOUTS:
            lines = [*lines[:_LAYOUTS], f"{len(lines) - _LAYOUTS} more kinds of tables, with other columns"]
        if count and len(self._called) == len(lines) == 1:
            lines, count = [f"{lines[0]}; {count}"], ""
        for line in filter(None, (*lines, count)):
            READ.info("%s", line)

    def _columns(self, called: Mapping[str, str]) -> str:
        canonical = {_clipped(theirs): ours for theirs, ours in called.items() if theirs.strip()}
        read = [
            ours if ours == theirs else f"{ours}={theirs}" for theirs, ours in canonical.items() if ours in self._used
        ]
        unused = [theirs for theirs, ours in canonical.items() if ours not in self._used]
        use = f", {self._kept}" if self._kept else ""
        parts = [", ".join(read), f"not used{use}: {_listed(unused, _COLUMNS)}" if unused else ""]
        return "; ".join(filter(None, parts))


def say_read(path: Path | str, called: Mapping[str, str], used: Collection[str], count: str = "") -> None:
    """Log which columns of one table were used; ``called`` maps its columns to canonical names."""
    reading = ColumnsRead(used)
    reading.add(Row(Path(path), 0, {}, called=called))
    reading.say(count)


def say_count(paths: Sequence[Path | str], **counts: int) -> None:
    """Log the numbers of items read from some files; logs nothing if there are no files."""
    if not paths:
        return
    numbers = ", ".join(f"{name}: {number:,}" for name, number in counts.items())
    READ.info("%s", f"{_listed([str(path) for path in paths], _FILES)} ({numbers})")


def _clipped(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"


def _listed(names: Sequence[str], limit: int) -> str:
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


@contextmanager
def unsaid() -> Iterator[None]:
    """Log nothing within the block, for example when files are read only to compare them."""
    was_disabled = READ.disabled
    READ.disabled = True
    try:
        yield
    finally:
        READ.disabled = was_disabled
