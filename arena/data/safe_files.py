"""Edits a user's files atomically, keeps replaced versions, and never overwrites other people's edits.

Next to ``bank.csv``, the folder ``bank.csv.history/`` holds the replaced versions, byte for byte, as ``0001-bank.csv``,
``0002-bank.csv`` and so on, and ``log.jsonl`` with one line per save: who saved, when, what was changed, the name of
the replaced version, and the SHA-256 of both. A version is copied before it is replaced, so an interrupted save loses
nothing: then the hash ``after`` in the last line of the log is not the hash of any version.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from judges.errors import DataError, InputError, reason
from retrieval_eval.exam.bank_files import read_bank, write_bank
from retrieval_eval.exam.items import Bank

LOG: Final = "log.jsonl"

_NUMBERED = re.compile(r"(\d+)-")


class Saved(Struct, frozen=True):
    """One saved change of a file, which is one line of ``log.jsonl``.

    Attributes:
        at: time of saving in UTC, ISO 8601.
        by: name of the person who saved, as entered.
        what: description of the change.
        earlier: name of the replaced version in the history folder.
        before, after: SHA-256 of the replaced and of the new version.
    """

    at: str
    by: str
    what: str
    earlier: str
    before: str
    after: str


def digest(path: Path) -> str | None:
    """SHA-256 of a file's content, ``None`` if there is no file. Compute it before you read the file for editing."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(path, f"cannot be read: {reason(error)}") from error


def within(folder: Path, path: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def save(
    path: Path, write: Callable[[Path], object], *, folder: Path, seen: str | None, by: str, what: str
) -> Path | None:
    """Replace a file by a new version, and copy the old one to the history; returns the path of the copy, if any.

    Args:
        path: the file; it keeps its permissions.
        write: function that writes the new version to the path passed to it; that path has the extension of ``path``.
        folder: the folder of the configuration; files elsewhere are not written.
        seen: ``digest`` of the version that was edited, ``None`` for a new file.
        by: name of the person who edits.
        what: description of the change.

    Raises:
        InputError: the file is outside the folder, or was changed since it was read for editing. Nothing is written.
        DataError: the file cannot be written. Its old version is unchanged.
    """
    if not within(folder, path):
        raise InputError(f"{path}: is not in {folder}, the folder of the configuration; edit it with another program")
    target = path.resolve()
    draft = target.with_name(f".{secrets.token_hex(4)}.{target.name}")
    try:
        write(draft)
        _make_lasting(draft)
        with _locked(target.parent):
            if digest(target) != seen:
                raise InputError(f"{path}: {_CHANGED if seen else _THERE}")
            earlier = _keep(target, draft, by, what) if seen else None
            draft.replace(target)
            _make_lasting(target.parent)
        return earlier
    except OSError as error:
        raise DataError(path, f"cannot be written: {reason(error)}") from error
    finally:
        draft.unlink(missing_ok=True)


_CHANGED = "the file was changed since you opened it, and nothing was saved; open it again"
_THERE = "the file exists already and may have been edited; choose another name"


def history(path: Path) -> list[Saved]:
    """Read the log of a file's saved changes, latest first."""
    log = history_folder(path) / LOG
    if not log.is_file():
        return []
    try:
        lines = log.read_text(encoding="utf-8").splitlines()
        return [Saved(**json.loads(line)) for line in reversed(lines) if line]
    except OSError as error:
        raise DataError(log, f"cannot be read: {reason(error)}") from error
    except (ValueError, TypeError) as error:
        raise DataError(
            log, "has a damaged line: not the JSON object of a saved change; repair or remove the line"
        ) from error


def history_folder(path: Path) -> Path:
    target = path.resolve()
    return target.with_name(f"{target.name}.history")


def _keep(target: Path, draft: Path, by: str, what: str) -> Path:
    """Copy the current version to the history folder, log the change, and give the draft the same permissions."""
    folder = history_folder(target)
    folder.mkdir(exist_ok=True)
    numbers = [int(match[1]) for entry in folder.iterdir() if (match := _NUMBERED.match(entry.name))]
    earlier = folder / f"{max(numbers, default=0) + 1:04}-{target.name}"
    shutil.copy2(target, earlier)
    _make_lasting(earlier)
    shutil.copymode(target, draft)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    entry = Saved(at, by, what, earlier.name, digest(earlier) or "", digest(draft) or "")
    log = folder / LOG
    torn = log.exists() and not log.read_bytes().endswith(b"\n")
    with log.open("a", encoding="utf-8") as file:
        file.write(("\n" if torn else "") + json.dumps(asdict(entry), ensure_ascii=True) + "\n")
    _make_lasting(log)
    _make_lasting(folder)
    return earlier


def _make_lasting(path: Path) -> None:
    """Flush a file, or the list of files in a folder, to the disk, so that it survives a power failure."""
    if sys.platform == "win32" and path.is_dir():  # Windows cannot fsync a folder
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder while the block runs, so that only one process at a time replaces files (not on Windows)."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def save_bank(
    path: Path, bank: Bank, *, folder: Path | None = None, seen: str | None = None, by: str = "", what: str = ""
) -> Path | None:
    """Write a bank to a file, including its secret items.

    Args:
        bank: the bank to write; items are never deleted from a bank, only retired.
        folder: the folder in which the file must be; ``None`` to allow any.
        seen: ``digest`` of the version that was edited; ``None`` for a new file.

    Returns:
        Path of the previous version in the file's history, if there is one.

    Raises:
        InputError: the file has changed since it was read, exists already, is outside the folder, or cannot be written.
    """
    inside = path.parent if folder is None else folder
    return save(path, lambda draft: _write_bank(draft, path, bank), folder=inside, seen=seen, by=by, what=what)


def _write_bank(draft: Path, path: Path, bank: Bank) -> None:
    """Write the bank to the draft and read it back, since a file format may be unable to hold some text."""
    try:
        write_bank(draft, bank, secret=True)
        again = read_bank(draft)
    except DataError as error:
        raise DataError(path, error.problem, line=error.line, value=error.value) from error
    if again.by_id != {item.item_id: replace(item, text=item.text.strip()) for item in bank.items}:
        raise DataError(
            path, "the file's format cannot hold this bank; nothing was saved. Convert it with 'ragleague convert bank'"
        )
