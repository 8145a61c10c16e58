"""The standard streams of a command: they may be full, closed, without a reader, or a terminal that obeys texts."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from typing import Any, Final, TextIO

_READER_GONE: Final = 141
"""Exit status where the reader of the output has closed it (``ragleague ... | head``): 128 + SIGPIPE, as in shells."""
_UNWRITTEN: Final = 1


def guard_streams() -> None:
    """Let a command finish its work even if a standard stream cannot be written; ``output_problem`` then reports it.

    Streams that the caller has replaced, as tests do, stay as they are.
    """
    for number in range(3):
        _reserve(number)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _Output(sys.stdout or _null(os.O_RDONLY))
    if sys.stderr is sys.__stderr__:
        sys.stderr = _Stream(sys.stderr or _null(os.O_WRONLY))


def output_problem() -> tuple[int, str | None]:
    """What became of standard output: an exit status, 0 where all is written, and what there is to say of it."""
    sys.stdout.flush()
    return sys.stdout.problem if isinstance(sys.stdout, _Output) else (0, None)


def visible(text: str) -> str:
    """The text on its lines: any other character that commands a terminal, or turns what is read around, is escaped.

    As in JSON, so that what is JSON stays what it was.
    """
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub(_escaped, text)


_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls, marks of direction, halves of surrogate pairs, and what has no width but that of joiners."""


def _escaped(character: re.Match[str]) -> str:
    return json.dumps(character[0]).strip('"') if character[0] != "\x7f" else "\\u007f"


class _Stream:
    """A text stream that behaves as the one behind it, until that cannot be written: from there on nothing is.

    On a terminal texts are ``visible``: names, replies and files come from outside, in whatever format they are
    written. Elsewhere every byte is as it is.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def rich_proxied_file(self) -> _Commands:
        """Where rich writes: colours, and where a bar is drawn. Its consoles see to the texts, see ``console``."""
        return _Commands(self)

    def write(self, text: str) -> int:
        """Write text."""
        self.command(visible(text) if self._terminal else text)
        return len(text)

    def command(self, text: str) -> None:
        """Write what may command a terminal."""
        try:
            self._stream.write(text)
        except OSError as error:
            self._failed(error)

    def flush(self) -> None:
        """Write what is held back."""
        try:
            self._stream.flush()
        except OSError as error:
            self._failed(error)

    def _failed(self, _error: OSError) -> None:
        """Drop what is held back and all that will come, so that Python does not try again when it ends."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        self._stream.flush()


class _Commands:
    """The same stream for whoever commands the terminal."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text as it is."""
        self._stream.command(text)
        return len(text)


class _Output(_Stream):
    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.problem: tuple[int, str | None] = (0, None)

    def _failed(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            self.problem = _READER_GONE, None
        elif not (error.errno == errno.EIO and self._terminal):  # a terminal that was closed reads nothing
            self.problem = _UNWRITTEN, "closed" if error.errno == errno.EBADF else error.strerror
        super()._failed(error)


def _null(mode: int) -> TextIO:
    """A stream for one that was closed: opened for reading, it cannot be written either."""
    return os.fdopen(os.open(os.devnull, mode), "w", encoding="utf-8")


def _reserve(number: int) -> None:
    """Put the null device in the place of a standard stream that is closed: the next file would get its number."""
    try:
        os.fstat(number)
    except OSError:
        os.set_inheritable(os.open(os.devnull, os.O_RDONLY if number < 2 else os.O_WRONLY), True)
