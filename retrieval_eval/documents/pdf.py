"""PDF: a part for each page that has text."""

from __future__ import annotations

import re
from pathlib import Path

from retrieval_eval.documents.types import Limits, Part, UnreadableError

_BLANK_LINE = re.compile(r"\n\s*\n")
_ENCRYPTED = "is encrypted; save it without a password"


def pdf_parts(path: Path, limits: Limits) -> tuple[str, tuple[Part, ...], list[str]]:
    """The title, the pages with text, and what is wrong with pages that cannot be read.

    A file is opened with the empty password where it wants one, as viewers do.

    Raises:
        UnreadableError: the file is encrypted, or has too many pages or too much text.
        Exception: whatever else pypdf makes of a broken file.
    """
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    reader = PdfReader(path)
    try:
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError(_ENCRYPTED)
        number = len(reader.pages)
    except (DependencyError, FileNotDecryptedError) as error:
        raise UnreadableError(_ENCRYPTED) from error
    if number > limits.pages:
        raise UnreadableError(f"has {number} pages, more than {limits.pages}")
    parts: list[Part] = []
    problems: list[str] = []
    left = limits.characters
    for place in range(number):
        try:
            text = reader.pages[place].extract_text()
        except Exception as error:  # a broken page may raise anything, and the others may be whole
            problems.append(f"page {place + 1} cannot be read: {type(error).__name__}: {error}")
            continue
        left -= len(text)
        if left < 0:
            raise UnreadableError(f"has more than {limits.characters} characters of text")
        if paragraphs := page_paragraphs(text):
            parts.append(Part("", place + 1, paragraphs))
    return _title(reader), tuple(parts), problems


def page_paragraphs(text: str) -> tuple[str, ...]:
    """Paragraphs between blank lines, each on one line: lines of a page end where its margin is.

    A word that is divided between lines keeps its hyphen, since it may have one by itself.
    """
    joined = (re.sub(r"(?<=\w-)\n(?=\w)", "", block.strip()) for block in _BLANK_LINE.split(text))
    return tuple(filter(None, (" ".join(block.split()) for block in joined)))


def _title(reader: object) -> str:
    try:
        title = getattr(getattr(reader, "metadata", None), "title", None)
    except Exception:  # of a page that is read without it, the title is the least
        return ""
    return " ".join(title.split()) if isinstance(title, str) else ""
