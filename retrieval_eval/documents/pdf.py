"""Reader of the text of PDF files; each page with text becomes one part."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_eval.documents.types import DocumentPart, Extract, Limits, UnreadableError, amounts

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

_BLANK_LINE = re.compile(r"\n\s*\n")
_ENCRYPTED = "is encrypted; save it without a password"
_PAINTS = frozenset({b"Do", b"INLINE IMAGE", b"sh", b"f", b"F", b"f*", b"B", b"B*", b"b", b"b*"})
"""PDF operators that paint a picture or a filled area."""
_OFFSETS = re.compile(r"xref|Object Streams|Object .* found|wrong pointing object|ref repaired", re.IGNORECASE)
"""pypdf's messages about wrong offsets in the cross-reference table."""
_LOST = re.compile(
    "object not found|ignoring the stream|skipping the entry|page tree entry|broken line|content is skipped"
    "|Impossible to decode|may be missing|might not be read|Invalid stream|contents are not|[rR]esources are not"
)
"""pypdf's messages about content that it could not read."""
_NUMBER = re.compile(r"\d+")
_MOST_MESSAGES = 10


def read_pdf(path: Path, limits: Limits) -> Extract:
    """The pages with text, and problems that name missing text: unreadable or scanned pages, filled forms, attachments.

    Encrypted files are opened with the empty password, as viewers do. If the cross-reference table is wrong, pypdf
    searches the file for the objects; this and other repairs are listed in the notes.

    Raises:
        UnreadableError: the file is encrypted, or has too many pages or too much text.
        Exception: pypdf may raise any other exception for a broken file.
    """
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    with _pypdf_messages() as messages:
        reader = PdfReader(path)
        try:
            if reader.is_encrypted and not reader.decrypt(""):
                raise UnreadableError(_ENCRYPTED)
            number = len(reader.pages)
        except (DependencyError, FileNotDecryptedError) as error:
            raise UnreadableError(_ENCRYPTED) from error
        if number > limits.pages:
            raise UnreadableError(f"has {number} pages, more than {limits.pages}")
        parts, problems = _pages(reader, number, limits)
        title = _title(reader)
        problems += _unread_texts(reader)
    lost = [message for message in messages if _LOST.search(message)]
    other = [message for message in messages if message not in lost]
    mended = ["wrong cross-reference offsets"] if any(map(_OFFSETS.search, other)) else []
    mended += [message for message in other if not _OFFSETS.search(message)]
    return Extract(
        title,
        tuple(parts),
        (*problems, *(f"is damaged: {message}" for message in lost)),
        tuple(f"recovered: {message}" for message in mended),
    )


def _pages(reader: PdfReader, number: int, limits: Limits) -> tuple[list[DocumentPart], list[str]]:
    parts: list[DocumentPart] = []
    problems: list[str] = []
    pictures: list[int] = []
    remaining = limits.characters
    for index in range(number):
        try:
            page = reader.pages[index]
            text = page.extract_text()
            if not text.strip() and _paints(page):
                pictures.append(index + 1)
        except Exception as error:  # a broken page may raise anything, and the others may be fine
            problems.append(f"page {index + 1} cannot be read: {type(error).__name__}: {error}")
            continue
        remaining -= len(text)
        if remaining < 0:
            raise UnreadableError(f"has more than {limits.characters} characters of text")
        if paragraphs := page_paragraphs(text):
            parts.append(DocumentPart("", index + 1, paragraphs))
    if pictures and parts:
        which = f"page {pictures[0]} shows" if len(pictures) == 1 else f"pages {_ranges(pictures)} show"
        problems.append(f"{which} pictures and no text; scanned?")
    return parts, problems


def _paints(page: PageObject) -> bool:
    """Whether a page without text paints a picture or an area, like a scanned page and unlike a blank one."""
    content = page.get_contents()
    return content is not None and any(operator in _PAINTS for _, operator in content.operations)


def _ranges(pages: Sequence[int]) -> str:
    page_ranges: list[list[int]] = []
    for page in pages:
        if page_ranges and page_ranges[-1][-1] == page - 1:
            page_ranges[-1] = [page_ranges[-1][0], page]
        else:
            page_ranges.append([page])
    return ", ".join("-".join(map(str, page_range)) for page_range in page_ranges)


def _unread_texts(reader: PdfReader) -> list[str]:
    """Problems that name unread texts outside the page contents: form fields, annotations and attachments."""
    counts = Counter[str]()
    try:
        counts["filled form field"] = sum(bool(_value(field)) for field in (reader.get_fields() or {}).values())
        for page in reader.pages:
            annotations = (note.get_object() for note in page.get("/Annots") or ())
            counts["text annotation"] += sum(note.get("/Subtype") == "/FreeText" for note in annotations)
        counts["attached file"] = len(reader.attachments)
    except Exception as error:  # a broken file may raise anything
        return [f"its forms and attachments cannot be read: {type(error).__name__}: {error}"]
    unread = amounts(counts)
    return [f"{unread} not read"] if unread else []


def _value(field: Any) -> str:
    """The text entered into a form field; PDF names, such as those of ticked boxes, are not text."""
    from pypdf.generic import TextStringObject

    value = field.get("/V")
    return value.strip() if isinstance(value, TextStringObject) else ""


@contextmanager
def _pypdf_messages() -> Iterator[list[str]]:
    """Collect pypdf's log messages within the block; lists messages that differ only in numbers once."""
    messages: dict[str, str] = {}

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if len(messages) < _MOST_MESSAGES:
                message = record.getMessage()
                messages.setdefault(_NUMBER.sub("0", message), message)

    log, listener = logging.getLogger("pypdf"), Listener()
    log.addHandler(listener)
    texts: list[str] = []
    try:
        yield texts
    finally:
        log.removeHandler(listener)
        texts += messages.values()


def page_paragraphs(text: str) -> tuple[str, ...]:
    """The paragraphs of a page, separated by blank lines, each joined into one line.

    A word divided at a line break keeps its hyphen, since the hyphen may be part of the word.
    """
    joined = (re.sub(r"(?<=\w-)\n(?=\w)", "", block.strip()) for block in _BLANK_LINE.split(text))
    return tuple(filter(None, (" ".join(block.split()) for block in joined)))


def _title(reader: object) -> str:
    try:
        title = getattr(getattr(reader, "metadata", None), "title", None)
    except Exception:  # the document is readable without a title
        return ""
    return " ".join(title.split()) if isinstance(title, str) else ""
