"""Files at the edge: UTF-8 lines in, whole files out, gzip where the name ends in ``.gz``; errors name the file."""

from __future__ import annotations

import gzip
import io
import json
import secrets
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from judges.errors import DataError


@contextmanager
def open_binary(path: Path | str) -> Iterator[BinaryIO]:
    """A file's bytes, unpacked.

    Raises:
        DataError: the file is missing, a folder, unreadable, or its gzip data is torn; also while it is read.
    """
    path = Path(path)
    try:
        with gzip.open(path) if is_gzip(path) else path.open("rb") as raw:
            yield cast(BinaryIO, raw)
    except FileNotFoundError as error:
        raise DataError(path, "no such file") from error
    except IsADirectoryError as error:
        raise DataError(path, "is a folder, not a file") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(path, f"the gzip data is cut off or damaged ({error})") from error
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror or error}") from error


def is_gzip(path: Path) -> bool:
    """Whether the name says that the content is packed."""
    return path.name.lower().endswith(".gz")


def file_stem(path: Path) -> str:
    """The file's name without its extension and ``.gz``."""
    return Path(path.name.removesuffix(".gz")).stem or path.name


def read_lines(path: Path | str) -> Iterator[tuple[int, str]]:
    """Stream the lines of a UTF-8 text file, plain or ``.gz``, numbered from 1, with their line ends.

    Raises:
        DataError: the file is missing, unreadable or torn, or a line holds NUL or bytes that are not UTF-8.
    """
    with open_binary(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", "surrogateescape", newline="") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.isascii():
                _require_utf8(path, number, line)
            if "\0" in line:
                raise DataError(path, "the line holds a NUL byte; is this a text file?", line=number)
            yield number, line


def read_json(path: Path | str) -> Any:
    """The content of a JSON file, plain or ``.gz``.

    Raises:
        DataError: the file cannot be read, or is not JSON.
    """
    try:
        return json.loads("".join(line for _, line in read_lines(path)))
    except (ValueError, RecursionError) as error:
        raise DataError(path, f"not JSON: {error}") from error


@contextmanager
def open_replacing(path: Path | str) -> Iterator[BinaryIO]:
    """A binary file, compressed where the name ends in ``.gz``, that takes the place of ``path`` once it is whole.

    Raises:
        DataError: the file cannot be written. Whatever stood at ``path`` then stands there still.
    """
    target = Path(path).resolve()
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with draft.open("xb") as plain:
            if is_gzip(target):
                with gzip.GzipFile("", "wb", fileobj=plain, mtime=0) as packed:
                    yield cast(BinaryIO, packed)
            else:
                yield plain
        draft.replace(target)
    except OSError as error:
        raise DataError(path, f"cannot be written: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)


def write_json_lines(path: Path | str, records: Iterable[Any]) -> None:
    """Write one JSON value a line.

    Raises:
        DataError: the file cannot be written, or a number is not finite.
    """
    try:
        with open_replacing(path) as raw:
            raw.writelines((json.dumps(one, ensure_ascii=False, allow_nan=False) + "\n").encode() for one in records)
    except ValueError as error:
        raise DataError(path, f"cannot be written as JSON: {error}") from error


def _require_utf8(path: Path | str, number: int, line: str) -> None:
    try:
        line.encode()
    except UnicodeEncodeError as error:
        around = line[max(0, error.start - 20) : error.end + 20]
        shown = around.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace").strip()
        raise DataError(path, "not UTF-8; save the file as UTF-8", line=number, value=shown) from None
