"""Standard streams that tolerate write errors (full disk, closed stream) and escape control codes on terminals."""

from __future__ import annotations

import errno
import os
import re
import sys
from typing import Any, Final, TextIO

_READER_GONE: Final = 141
"""Exit status if the reader closed the output (``ragleague ... | head``): 128 + SIGPIPE, as in shells."""
_UNWRITTEN: Final = 1


def guard_streams() -> None:
    """Replace the standard streams, so that a command ends normally if it cannot write; see ``output_problem``.

    Streams that the caller has already replaced, as tests do, stay unchanged.
    """
    for number in range(3):
        _reserve(number)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _Stream(sys.stdout or _null(os.O_RDONLY))
    if sys.stderr is sys.__stderr__:
        sys.stderr = _Stream(sys.stderr or _null(os.O_WRONLY))


def output_problem() -> tuple[int, str | None]:
    """Exit status and error message if standard output could not be written, else 0 and ``None``."""
    sys.stdout.flush()
    return sys.stdout.problem if isinstance(sys.stdout, _Stream) else (0, None)


def visible(text: str) -> str:
    """The text with all control, direction and zero-width characters escaped, except line breaks and tabs.

    Escapes are those of JSON, so JSON stays valid.
    """
    return text if text.isascii() and text.isprintable() else re.sub(_INVISIBLE, _escaped, text)


_INVISIBLE: Final = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters, direction marks, surrogates and zero-width characters, except zero-width joiners.

A text, as few commands need it compiled.
"""


def _escaped(character: re.Match[str]) -> str:
    import json  # late: help texts need none

    return json.dumps(character[0]).strip('"') if character[0] != "\x7f" else "\\u007f"


class _Stream:
    """A text stream that forwards to another stream and, once writing fails, drops all further text.

    On a terminal, texts pass through ``visible``, because names, replies and files come from outside. A file or a pipe
    gets every byte unchanged.

    Attributes:
        problem: exit status and error message for the first text that could not be written.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self.problem: tuple[int, str | None] = (0, None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def rich_proxied_file(self) -> _Commands:
        """Stream for the library rich, whose control codes (colours, progress bars) must not be escaped.

        The consoles in ``arena.cli.console`` escape texts before rich adds its codes.
        """
        return _Commands(self)

    def write(self, text: str) -> int:
        self.command(visible(text) if self._terminal else text)
        return len(text)

    def command(self, text: str) -> None:
        """Write text without escaping its control codes."""
        try:
            self._stream.write(text)
        except OSError as error:
            self._failed(error)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        """Record a write error and redirect the stream to the null device, as Python writes to it again at exit."""
        if isinstance(error, BrokenPipeError):
            self.problem = _READER_GONE, None
        elif not (error.errno == errno.EIO and self._terminal):  # EIO: the terminal was closed, so nobody reads
            self.problem = _UNWRITTEN, "closed" if error.errno == errno.EBADF else error.strerror
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self._stream.fileno())
        os.close(null)
        self._stream.flush()


class _Commands:
    """A view of a ``_Stream`` that escapes nothing, for code that sends control codes to the terminal."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._stream.command(text)
        return len(text)


def _null(mode: int) -> TextIO:
    """Open a text stream on the null device; with mode ``O_RDONLY``, writing to it fails, as on a closed stream."""
    return os.fdopen(os.open(os.devnull, mode), "w", encoding="utf-8")


def _reserve(number: int) -> None:
    """If a standard stream is closed, open the null device in its place; else the next opened file gets its number."""
    try:
        os.fstat(number)
    except OSError:
        os.set_inheritable(os.open(os.devnull, os.O_RDONLY if number < 2 else os.O_WRONLY), True)
