"""Edits of a user's own files: whole or not at all, never over somebody else's edit, with what stood there before.

Beside ``bank.csv`` stands ``bank.csv.history/``: the versions that were replaced, byte for byte, as ``0001-bank.csv``,
``0002-bank.csv`` ..., and ``log.jsonl``, one line a save: who saved, when, what was changed, the name of the version
that was replaced, and the SHA-256 of both. A version is kept before it is replaced, so nothing is lost where a save was
cut off; its line then has an ``after`` that is the hash of no version.
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
from msgspec.structs import asdict

from judges.errors import DataError, InputError, reason

LOG: Final = "log.jsonl"

_NUMBERED = re.compile(r"(\d+)-")


class Saved(Struct, frozen=True):
    """One line of the log.

    Attributes:
        at: when, UTC, ISO 8601.
        by: who, as they named themselves.
        what: what was changed, in words.
        earlier: name of the version that was replaced, in the folder of the history.
        before: SHA-256 of that version.
        after: SHA-256 of the one that took its place.
    """

    at: str
    by: str
    what: str
    earlier: str
    before: str
    after: str


def digest(path: Path) -> str | None:
    """SHA-256 of a file, ``None`` where there is none. Take it before reading what you let somebody edit.

    Raises:
        DataError: it cannot be read.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(path, f"cannot be read: {reason(error)}") from error


def within(folder: Path, path: Path) -> bool:
    """Whether a file is in a folder or below it, links followed."""
    return path.resolve().is_relative_to(folder.resolve())


def save(
    path: Path, write: Callable[[Path], object], *, folder: Path, seen: str | None, by: str, what: str
) -> Path | None:
    """Put a new version in the place of a file.

    Args:
        path: the file; its permissions stay.
        write: writes the new version to the path that it is given, whose name ends as ``path`` does.
        folder: nothing outside of it is written.
        seen: ``digest`` of the version that was edited, ``None`` for a new file.
        by: who edits.
        what: what they changed, in words.

    Returns:
        The version that was replaced, in the history; ``None`` for a new file.

    Raises:
        InputError: the file is outside the folder, or somebody else wrote it meanwhile. It stands as it was.
        DataError: it cannot be written. It stands as it was.
    """
    if not within(folder, path):
        raise InputError(f"{path}: is not in {folder}, the folder of the configuration; edit the file itself")
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


_CHANGED = "somebody changed it meanwhile; nothing was saved"
_THERE = "exists and may have been edited; name a new file"


def history(path: Path) -> list[Saved]:
    """The saves of a file, the latest first.

    Raises:
        DataError: the log cannot be read, or a line of it is damaged.
    """
    log = history_folder(path) / LOG
    if not log.is_file():
        return []
    try:
        lines = log.read_text(encoding="utf-8").splitlines()
        return [Saved(**json.loads(line)) for line in reversed(lines) if line]
    except OSError as error:
        raise DataError(log, f"cannot be read: {reason(error)}") from error
    except (ValueError, TypeError) as error:
        raise DataError(log, "has a damaged line; mend or remove it") from error


def history_folder(path: Path) -> Path:
    """Where the earlier versions of a file are."""
    target = path.resolve()
    return target.with_name(f"{target.name}.history")


def _keep(target: Path, draft: Path, by: str, what: str) -> Path:
    """Copy the version that is about to be replaced, and note who replaces it; the new one takes its permissions."""
    folder = history_folder(target)
    folder.mkdir(exist_ok=True)
    numbers = [int(found[1]) for entry in folder.iterdir() if (found := _NUMBERED.match(entry.name))]
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
    """Wait until a file, or the names in a folder, are on the disk."""
    if sys.platform == "win32" and path.is_dir():  # which knows no such thing of folders
        return
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Only one of us at a time between the look at a file and its replacement; ends with the process."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)
