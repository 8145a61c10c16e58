"""Files of queries are written anew only where nobody changed them since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from arena.store import Store
from arena.store.runners import Runner
from arena.store.runs import Runs
from judges.errors import DataError
from retrieval_eval.data.rows import Cell
from retrieval_eval.data.tables import read_rows, write_rows

_FILES: Final = "files"
_REVIEWED: Final = "reviewed"
WRITTEN: Final = "written"
CHANGED: Final = "left as it is, since people changed it; move it away to have it written anew"
NONE: Final = "not written, since there is no query"
"""What became of a file."""
_UNREADABLE: Final = "unreadable"
"""In place of a digest: not one of ours, so it is left as it is."""


class OwnFiles:
    """Tables that a tournament writes, with a digest of each in its store.

    Args:
        store: open for writing.
        tournament: whose files they are.
    """

    def __init__(self, store: Store, tournament: str) -> None:
        self._store, self._tournament = store, tournament

    def replace(
        self, path: Path, columns: Sequence[str], rows: Sequence[dict[str, Cell]], *, reviewed: bool = False
    ) -> str:
        """Write a table in place of what was written before; returns what became of it.

        What somebody else wrote or changed stays as it is, and so does a file in whose place an empty one would come.
        What people decided (``reviewed``) gives way only to what people decided.

        Raises:
            DataError: the file cannot be written.
        """
        there = _content(path)
        if there and not rows:
            return NONE
        with TemporaryDirectory() as folder:  # as it reads once it is written: not each format holds each text
            sample = Path(folder) / path.name
            write_rows(sample, columns, rows)
            new = _content(sample)
        place = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._store.announce(self._tournament)
        runs = Runs(self._store, self._tournament)
        earlier = (run.subject for run in runs.all())
        written = {own.get(_FILES, {}).get(place) for own in earlier if reviewed or not own.get(_REVIEWED)}
        if there and there == new and there in written:
            return WRITTEN
        if there and there != new and there not in written:
            return CHANGED
        # Noted first: a file that was written and not noted would count as somebody's.
        run_id = runs.begin(Runner(), {_FILES: {place: new}, _REVIEWED: reviewed})
        if there != new or not there:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_rows(path, columns, rows)
        runs.end(run_id, "complete", {})
        return WRITTEN


def _content(path: Path) -> str:
    """A digest of a table's cells; empty where there is none."""
    if not path.is_file() or path.stat().st_size == 0:
        return ""
    digest, some = hashlib.sha256(), False
    try:
        for row in read_rows(path, empty=True):
            cells = sorted((name, text) for name in row.values if (text := row.text(name)))
            digest.update(json.dumps(cells).encode())
            some = True
    except DataError:
        return _UNREADABLE
    return digest.hexdigest()[:16] if some else ""
