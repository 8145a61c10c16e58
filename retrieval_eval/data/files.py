"""Readers and writers of files: UTF-8 lines, JSON, atomic replacement, gzip for ``.gz``; errors name the file.

A gzip file from a stranger may unpack to more bytes than fit in memory. Therefore gzip files are streamed, at most
``most_unpacked`` bytes are read, and no line may exceed ``LONGEST_LINE``: reading a 4 MB file takes less than 2 GB of
memory, whatever it contains. Files that are not compressed have no limit.
"""

from __future__ import annotations

import errno
import gzip
import io
import json
import secrets
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from judges.errors import DataError, reason, regular_file
from retrieval_eval.data.rows import no_file, unstorable


@contextmanager
def open_binary(path: Path | str, *, whole: bool = False) -> Iterator[BinaryIO]:
    """Open a file to read its unpacked bytes; set ``whole`` if the caller loads the whole file into memory."""
    path = Path(path)
    try:
        with _Unpacked(path, whole=whole) if is_gzip(regular_file(path)) else path.open("rb") as raw:
            yield cast(BinaryIO, raw)
    except FileNotFoundError as error:
        raise no_file(path) from error
    except IsADirectoryError as error:
        raise DataError(path, "is a folder; name a file in it") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            path, "the gzip data is cut off or damaged; compress it again, or remove '.gz' from its name"
        ) from error
    except OSError as error:
        raise DataError(path, f"cannot be read: {reason(error)}") from error


class _Unpacked(gzip.GzipFile):
    """A gzip stream that raises ``OSError`` once it unpacks to more than ``most_unpacked`` bytes."""

    _remaining = 0

    def __init__(self, path: Path, *, whole: bool) -> None:
        super().__init__(path, "rb")
        self._whole = whole
        self._remaining = self._limit = most_unpacked(path, whole=whole)

    def read(self, size: int | None = -1) -> bytes:
        return self._counted(super().read(self._remaining + 1 if size is None or size < 0 else size))

    def read1(self, size: int = -1) -> bytes:
        return self._counted(super().read1(size))

    def _counted(self, block: bytes) -> bytes:
        self._remaining -= len(block)
        if self._remaining < 0:
            lines = ", write it as JSON lines," if self._whole and ".json" in self.name else ""
            raise OSError(
                errno.EFBIG, f"it unpacks to over {self._limit // 1_000_000} MB; unpack it{lines} and try again"
            )
        return block


def most_unpacked(path: Path, *, whole: bool = False) -> int:
    """Most bytes to unpack from a gzip file: 100 times its size if streamed, else 20 times; never below 32 MB.

    Gzip shrinks real tables by a factor of up to 80, if names repeat in each row, and a single repeated byte by 1,000.
    JSON that is loaded as a whole takes up to 20 times its size in memory.
    """
    return max(path.stat().st_size * (20 if whole else 100), _LEAST_LIMIT)


_LEAST_LIMIT: Final = 32_000_000
LONGEST_LINE: Final = 2**25
"""Greatest length of a line and of a CSV cell, in characters."""


def is_gzip(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def file_stem(path: Path) -> str:
    if (problem := unstorable(path.name)) is not None:
        raise DataError(path, f"this name cannot be used: {problem}")
    return Path(path.name.removesuffix(".gz")).stem or path.name


def read_lines(path: Path | str, *, whole: bool = False) -> Iterator[tuple[int, str]]:
    """Stream the lines of a UTF-8 text file, plain or ``.gz``, numbered from 1, with their line ends.

    Lines have no length limit if the caller loads the ``whole`` file into memory.
    """
    longest = -1 if whole else LONGEST_LINE
    with (
        open_binary(path, whole=whole) as raw,
        io.TextIOWrapper(raw, "utf-8-sig", "surrogateescape", newline="") as lines,
    ):
        for number, line in enumerate(iter(partial(lines.readline, longest), ""), start=1):
            if len(line) == longest and not line.endswith(("\n", "\r")):
                raise DataError(
                    path, f"the line has over {longest:,} characters; split it into shorter lines", line=number
                )
            if number == 1 and (
                kind := next((_OTHER_FORMATS[each] for each in _OTHER_FORMATS if line.startswith(each)), None)
            ):
                raise DataError(path, f"is {kind}")
            if not line.isascii():
                _require_utf8(path, number, line)
            if "\0" in line:
                raise DataError(path, "the line holds a NUL byte; save the file as UTF-8 text", line=number)
            yield number, line


def first_line(path: Path) -> str:
    """The first line of a text file that is not blank; ``""`` if there is none."""
    return next((line for _, line in read_lines(path) if not line.isspace()), "")


_OTHER_FORMATS: Final = {
    "PK\x03\x04": "a zip file, as Excel writes its own; save the table as CSV",
    "\udcd0\udccf\x11\udce0": "a file of Excel; save the table as CSV",
    "\x1f\udc8b": "packed with gzip; let its name end in .gz",
    "PAR1\x15": "Parquet; let its name end in .parquet",  # the first page begins so, and an id may begin with PAR1
    "%PDF-": "a PDF; name a table, or see 'ragleague documents'",
    "SQLite format 3": "a database; name a table",
    "\udcff\udcfe": "not UTF-8 but UTF-16; save the file as UTF-8",
}
"""First characters of files that are not UTF-8 text (as ``read_lines`` decodes them), with the format's description for
error messages."""


def read_json(path: Path | str) -> Any:
    try:
        return json.loads("".join(line for _, line in read_lines(path, whole=True)))
    except (ValueError, RecursionError) as error:
        raise DataError(path, f"not JSON: {error}") from error


@contextmanager
def open_replacing(path: Path | str) -> Iterator[BinaryIO]:
    """Open a temporary binary file (gzip if ``path`` ends in ``.gz``) that replaces ``path`` when the block ends."""
    target, is_database = Path(path).resolve(), False
    with suppress(OSError), target.open("rb") as file:
        is_database = file.read(16) == b"SQLite format 3\0"
    if is_database:
        raise DataError(path, "this is a store or another database; name another file")
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
        no_folder = isinstance(error, FileNotFoundError)
        cause = f"the folder {Path(path).parent} does not exist; make it" if no_folder else reason(error)
        raise DataError(path, f"cannot be written: {cause}") from error
    finally:
        with suppress(OSError):  # on a read-only file system even deleting a missing file fails
            draft.unlink()


def write_json_lines(path: Path | str, records: Iterable[Any]) -> None:
    try:
        with open_replacing(path) as raw:
            raw.writelines(
                (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode() for record in records
            )
    except ValueError as error:
        raise DataError(path, f"cannot be written as JSON: {error}") from error


def _require_utf8(path: Path | str, number: int, line: str) -> None:
    try:
        line.encode()
    except UnicodeEncodeError as error:
        excerpt = line[max(0, error.start - 12) : error.end + 12]
        shown = excerpt.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace").strip()
        raise DataError(path, f"not UTF-8; save the file as UTF-8 ('{shown}')", line=number) from None
