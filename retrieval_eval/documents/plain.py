"""Plain text: paragraphs between blank lines."""

from __future__ import annotations

import codecs
import re

from retrieval_eval.documents.types import Part, UnreadableError

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
    if "\0" in text:
        raise UnreadableError("holds NUL bytes; is it a text file?")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def plain_parts(text: str) -> tuple[str, tuple[Part, ...]]:
    """No title, and one part with a paragraph for each run of lines without a blank one."""
    found = ("\n".join(line.strip() for line in block.split("\n")) for block in _BLANK_LINE.split(text))
    paragraphs = tuple(filter(None, (paragraph.strip() for paragraph in found)))
    return "", (Part("", None, paragraphs),) if paragraphs else ()
