"""A tournament's test bank written to its file, in place of the version that was edited or as a new file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from arena.data import safe_files
from judges.errors import DataError
from retrieval_eval.exam.bank_files import read_bank, write_bank
from retrieval_eval.exam.items import Bank


def save_bank(
    path: Path, bank: Bank, *, folder: Path | None = None, seen: str | None = None, by: str = "", what: str = ""
) -> Path | None:
    """Write a bank, its secret items too.

    Args:
        path: of the file.
        bank: what to write; items of an earlier version are never missing from it, only retired.
        folder: where the file must be; anywhere when ``None``.
        seen: ``safe_files.digest`` of the version that was edited; ``None`` for a file that is not there yet.
        by: who edits.
        what: they changed, in words.

    Returns:
        The earlier version in the file's history, if there is one.

    Raises:
        InputError: the file changed meanwhile, is there already, is outside the folder, or cannot be written.
    """
    inside = path.parent if folder is None else folder
    return safe_files.save(path, lambda draft: _write(draft, path, bank), folder=inside, seen=seen, by=by, what=what)


def _write(draft: Path, path: Path, bank: Bank) -> None:
    """Write it and read it again: what a file of its kind cannot hold is not lost in silence."""
    try:
        write_bank(draft, bank, secret=True)
        again = read_bank(draft)
    except DataError as error:
        raise DataError(path, error.problem, line=error.line, value=error.value) from error
    if again.by_id != {item.item_id: replace(item, text=item.text.strip()) for item in bank.items}:
        raise DataError(path, "cannot hold this bank; nothing was saved. Convert it with 'ragleague convert'")
