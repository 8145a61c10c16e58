"""PDF: a part for each page that has text."""

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
"""Operators that put a picture or an area of colour on a page."""
_OFFSETS = re.compile(r"xref|Object Streams|Object .* found|wrong pointing object|ref repaired", re.IGNORECASE)
"""Words of pypdf about the table that says where in the file each object begins."""
_LOST = re.compile(
    "object not found|ignoring the stream|skipping the entry|page tree entry|broken line|content is skipped"
    "|Impossible to decode|may be missing|might not be read|Invalid stream|contents are not|[rR]esources are not"
)
"""Words of pypdf about something that it gave up."""
_NUMBER = re.compile(r"\d+")
_MOST_SAID = 10


def read_pdf(path: Path, limits: Limits) -> Extract:
    """The pages with text, and what is missing: pages that cannot be read or are scanned, filled forms, attachments.

    A file is opened with the empty password where it wants one, as viewers do. Where its table of objects is wrong,
    pypdf searches the file for them; that, and whatever else it mends, is said.

    Raises:
        UnreadableError: the file is encrypted, or has too many pages or too much text.
        Exception: whatever else pypdf makes of a broken file.
    """
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    with _said_by_pypdf() as said:
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
        problems += _beside_the_pages(reader)
    lost = [words for words in said if _LOST.search(words)]
    rest = [words for words in said if words not in lost]
    mended = ["wrong cross-reference offsets"] if any(map(_OFFSETS.search, rest)) else []
    mended += [words for words in rest if not _OFFSETS.search(words)]
    return Extract(
        title,
        tuple(parts),
        (*problems, *(f"is damaged: {words}" for words in lost)),
        tuple(f"recovered: {words}" for words in mended),
    )


def _pages(reader: PdfReader, number: int, limits: Limits) -> tuple[list[DocumentPart], list[str]]:
    parts: list[DocumentPart] = []
    problems: list[str] = []
    pictures: list[int] = []
    left = limits.characters
    for place in range(number):
        try:
            page = reader.pages[place]
            text = page.extract_text()
            if not text.strip() and _shows_something(page):
                pictures.append(place + 1)
        except Exception as error:  # a broken page may raise anything, and the others may be whole
            problems.append(f"page {place + 1} cannot be read: {type(error).__name__}: {error}")
            continue
        left -= len(text)
        if left < 0:
            raise UnreadableError(f"has more than {limits.characters} characters of text")
        if paragraphs := page_paragraphs(text):
            parts.append(DocumentPart("", place + 1, paragraphs))
    if pictures and parts:
        which = f"page {pictures[0]} shows" if len(pictures) == 1 else f"pages {_ranges(pictures)} show"
        problems.append(f"{which} pictures and no text; scanned?")
    return parts, problems


def _shows_something(page: PageObject) -> bool:
    """Whether a page without text has anything on it, as a scanned one has and a blank one has not."""
    content = page.get_contents()
    return content is not None and any(operator in _PAINTS for _, operator in content.operations)


def _ranges(pages: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for page in pages:
        if runs and runs[-1][-1] == page - 1:
            runs[-1] = [runs[-1][0], page]
        else:
            runs.append([page])
    return ", ".join("-".join(map(str, run)) for run in runs)


def _beside_the_pages(reader: PdfReader) -> list[str]:
    """Texts that are no part of a page's own content."""
    counts = Counter[str]()
    try:
        counts["filled form field"] = sum(bool(_value(field)) for field in (reader.get_fields() or {}).values())
        for page in reader.pages:
            notes = (each.get_object() for each in page.get("/Annots") or ())
            counts["text annotation"] += sum(each.get("/Subtype") == "/FreeText" for each in notes)
        counts["attached file"] = len(reader.attachments)
    except Exception as error:  # as of a page
        return [f"its forms and attachments cannot be read: {type(error).__name__}: {error}"]
    counted = amounts(counts)
    return [f"{counted} not read"] if counted else []


def _value(field: Any) -> str:
    """What somebody wrote into a field; names, as of boxes that are ticked, are no text."""
    from pypdf.generic import TextStringObject

    value = field.get("/V")
    return value.strip() if isinstance(value, TextStringObject) else ""


@contextmanager
def _said_by_pypdf() -> Iterator[list[str]]:
    """What pypdf says in its log meanwhile, each once whatever the numbers in it are."""
    said: dict[str, str] = {}

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if len(said) < _MOST_SAID:
                message = record.getMessage()
                said.setdefault(_NUMBER.sub("0", message), message)

    log, listener = logging.getLogger("pypdf"), Listener()
    log.addHandler(listener)
    texts: list[str] = []
    try:
        yield texts
    finally:
        log.removeHandler(listener)
        texts += said.values()


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
