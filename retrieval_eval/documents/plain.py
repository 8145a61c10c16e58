"""Plain text: paragraphs between blank lines."""

from __future__ import annotations

import codecs
import re

from retrieval_eval.documents.types import Extract, Part, UnreadableError

_BLANK_LINE = re.compile(r"\n\s*\n|\f")


def decoded(content: bytes) -> str:
    """UTF-8, or UTF-16 that begins with its mark.

    Raises:
        UnreadableError: it is neither, or holds NUL, which no text does.
    """
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    return without_nul(text).replace("\r\n", "\n").replace("\r", "\n")


def without_nul(text: str) -> str:
    """The text, which holds no NUL.

    Raises:
        UnreadableError: it does.
    """
    if "\0" in text:
        raise UnreadableError("holds NUL bytes; is it a text file?")
    return text


def read_plain(text: str) -> Extract:
    """No title, and one part with a paragraph for each run of lines without a blank one."""
    found = ("\n".join(line.strip() for line in block.split("\n")) for block in _BLANK_LINE.split(text))
    paragraphs = tuple(filter(None, (paragraph.strip() for paragraph in found)))
    return Extract("", (Part("", None, paragraphs),) if paragraphs else ())
