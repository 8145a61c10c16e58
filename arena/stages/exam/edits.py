"""A tournament's test bank in its file, and its next version in the place of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from arena.config.exam import ExamSection
from arena.data import safe_files
from arena.data.dataset import Dataset
from arena.stages.exam.bank import of_queries, require_usable
from judges.errors import DataError
from retrieval_eval.exam.bank_files import read_bank, write_bank
from retrieval_eval.exam.items import Bank, described, diff


@dataclass(frozen=True)
class BankFile:
    """A bank as it stood in its file.

    Attributes:
        path: the file.
        digest: of its bytes then.
        bank: all of it, items of other queries than the tournament's included.
    """

    path: Path
    digest: str | None
    bank: Bank


def read_bank_file(path: Path) -> BankFile:
    """Read a bank that somebody is going to edit.

    Raises:
        DataError: it cannot be used.
    """
    digest = safe_files.digest(path)
    return BankFile(path, digest, read_bank(path))


def save_edited_bank(
    file: BankFile, after: Bank, section: ExamSection, data: Dataset, *, folder: Path, by: str
) -> Path | None:
    """Write the next version of a bank in the place of the one that was read.

    Args:
        file: as it was read, and edited from.
        after: the next version; items are never missing from it, only retired.
        section: of the configuration that names the file.
        data: of the tournament.
        folder: of the configuration.
        by: who edits.

    Returns:
        The earlier version in the file's history.

    Raises:
        InputError: nothing can be graded with it, the file changed meanwhile, or it is outside the folder.
    """
    require_usable(section, of_queries(after, data))
    what = described(diff(file.bank, after))
    return safe_files.save(
        file.path, lambda draft: _write(draft, file.path, after), folder=folder, seen=file.digest, by=by, what=what
    )


def save_new_bank(path: Path, bank: Bank, *, folder: Path | None = None) -> None:
    """Write a bank, its secret items too, to a new file; never in place of one that may have been edited.

    Args:
        path: of a file that is not there.
        bank: what to write.
        folder: where it must be; anywhere when ``None``.

    Raises:
        InputError: there is such a file, it is outside the folder, or it cannot be written.
    """
    safe_files.save(
        path,
        lambda draft: _write(draft, path, bank),
        folder=path.parent if folder is None else folder,
        seen=None,
        by="",
        what="",
    )


def _write(draft: Path, path: Path, bank: Bank) -> None:
    """Write it and read it again: what a file of its kind cannot hold is not lost in silence."""
    try:
        write_bank(draft, bank, secret=True)
        again = read_bank(draft)
    except DataError as error:
        raise DataError(path, error.problem, line=error.line, value=error.value) from error
    if again.by_id != {item.item_id: replace(item, text=item.text.strip()) for item in bank.items}:
        raise DataError(path, "cannot hold this bank; nothing was saved. Convert it with 'ragleague bank convert'")
