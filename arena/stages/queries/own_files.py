"""Writes files of queries, but never over a version that someone has edited."""

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
"""An outcome of writing a file, as shown to the user."""
_UNREADABLE: Final = "unreadable"
"""Value used instead of a digest for a file that cannot be read; the tool did not write such a file."""


class WrittenFiles:
    """Writes the tables of a tournament, and records a digest of each in its store.

    Args:
        store: the store, open for writing.
        tournament: name of the tournament.
    """

    def __init__(self, store: Store, tournament: str) -> None:
        self._store, self._tournament = store, tournament

    def replace(
        self, path: Path, columns: Sequence[str], rows: Sequence[dict[str, Cell]], *, reviewed: bool = False
    ) -> str:
        """Write a table over its previous version; returns the outcome as a phrase.

        The tool leaves a file alone if someone else wrote or changed it, or if it would become empty. Only a
        ``reviewed`` table replaces a ``reviewed`` table, since people made its decisions.

        Raises:
            DataError: the file cannot be written.
        """
        present = _content(path)
        if present and not rows:
            return NONE
        with TemporaryDirectory() as folder:  # read back after writing, since a format may be unable to hold some text
            sample = Path(folder) / path.name
            write_rows(sample, columns, rows)
            new = _content(sample)
        place = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._store.announce(self._tournament)
        runs = Runs(self._store, self._tournament)
        subjects = (run.subject for run in runs.all())
        written = {subject.get(_FILES, {}).get(place) for subject in subjects if reviewed or not subject.get(_REVIEWED)}
        if present and present == new and present in written:
            return WRITTEN
        if present and present != new and present not in written:
            return CHANGED
        # Record the digest first: an unrecorded file would look as if a person had written it.
        run_id = runs.begin(Runner(), {_FILES: {place: new}, _REVIEWED: reviewed})
        if present != new or not present:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_rows(path, columns, rows)
        runs.end(run_id, "complete", {})
        return WRITTEN


def _content(path: Path) -> str:
    """Digest of a table's cells; empty if the file does not exist or has no rows."""
    if not path.is_file() or path.stat().st_size == 0:
        return ""
    digest, has_rows = hashlib.sha256(), False
    try:
        for row in read_rows(path, empty=True):
            cells = sorted((name, text) for name in row.values if (text := row.text(name)))
            digest.update(json.dumps(cells).encode())
            has_rows = True
    except DataError:
        return _UNREADABLE
    return digest.hexdigest()[:16] if has_rows else ""
