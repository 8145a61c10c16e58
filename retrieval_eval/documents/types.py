"""Types for documents, extracted parts, limits and notes on files; groups blocks of text into titled parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal, TypeAlias

from msgspec import Struct
from pydantic import Field

from judges.sections import Section

Whole = Annotated[int, Field(ge=1)]


class DocumentPart(Struct, frozen=True):
    """Paragraphs that belong together: a section with its heading, or a page of a PDF.

    Attributes:
        heading: heading of the section; empty if there is none.
        page: page number from 1; ``None`` in formats without pages.
        paragraphs: running text, lists, tables and code blocks, each without blank lines.
    """

    heading: str
    page: int | None
    paragraphs: tuple[str, ...]


class SourceDocument(Struct, frozen=True):
    """The text of one file.

    Attributes:
        source: the file's path relative to the folder that the user named, with ``/``. Passage ids contain this path,
            so that adding another file changes no id.
        title: the document's title, or the file's name if it has no title.
        parts: the document's parts in reading order, none of them empty.
    """

    source: str
    title: str
    parts: tuple[DocumentPart, ...]


class Extract(Struct, frozen=True):
    """The content that a reader extracted from one file.

    Attributes:
        problems: descriptions of text that could not be read, worded to follow the file's name, such as ``is damaged``.
        notes: other remarks, worded in the same way, on how the file was read and on content that is always skipped in
            files of its format.
    """

    title: str
    parts: tuple[DocumentPart, ...]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


ReadOutcome: TypeAlias = Literal["skipped", "partly read", "note"]


class FileNote(Struct, frozen=True):
    """A remark on a file or folder (``source``); ``reason`` is worded to follow the file's name, such as ``is empty``.

    The outcome is ``skipped`` if nothing was read, ``partly read`` if text is missing, ``note`` if no text is missing,
    or if the file was not meant to be read, such as a hidden file.
    """

    source: str
    reason: str
    outcome: ReadOutcome = "skipped"


class Limits(Section):
    """Limits on size, time and memory for reading one file: files from strangers may be made to exhaust a machine."""

    megabytes: Whole = 100
    """Greatest size of a file in megabytes; a DOCX file may unpack to four times as much."""
    pages: Whole = 5000
    """Greatest number of pages of a PDF."""
    seconds: Annotated[float, Field(gt=0)] = 120.0
    """Longest time to read one file, in seconds."""
    memory_megabytes: Annotated[int, Field(ge=256)] = 2048
    """Most memory for reading one file, in megabytes; not enforced on Windows."""

    @property
    def characters(self) -> int:
        """Greatest number of characters in a document's text: a tenth of the greatest size of its file in bytes."""
        return self.megabytes * 100_000


class UnreadableError(Exception):
    """No text can be read from a file; the message is worded to follow the file's name, such as ``is encrypted``."""


def amounts(counts: Mapping[str, int]) -> str:
    """Write counts with their nouns, such as ``2 charts, 1 embedded object``; counts of zero are omitted."""
    return ", ".join(f"{number} {noun}{'s' * (number > 1)}" for noun, number in counts.items() if number)


class TextBlock(Struct, frozen=True):
    """A heading (``level`` 1 to 6) or other text, such as a paragraph, list or table (``level`` 0)."""

    level: int
    text: str


def titled_parts(blocks: Iterable[TextBlock]) -> tuple[str, tuple[DocumentPart, ...]]:
    """Turn blocks into a title (the first heading of level 1) and one part per heading with text below it.

    A paragraph that ends in a colon stays together with the list, table or code after it.
    """
    title, heading = "", ""
    parts: list[DocumentPart] = []
    paragraphs: list[str] = []
    for block in _with_introductions(blocks):
        if block.level == 0:
            paragraphs.append(block.text)
            continue
        if paragraphs:
            parts.append(DocumentPart(heading, None, tuple(paragraphs)))
            paragraphs = []
        if block.level == 1 and not title:
            title = block.text
        else:
            heading = block.text
    if paragraphs:
        parts.append(DocumentPart(heading, None, tuple(paragraphs)))
    return title, tuple(parts)


def _with_introductions(blocks: Iterable[TextBlock]) -> Iterator[TextBlock]:
    """Join a paragraph that ends in a colon to the block after it."""
    introduction = ""
    for block in blocks:
        if introduction and block.level:
            yield TextBlock(0, introduction)
            introduction = ""
        text = f"{introduction}\n{block.text}" if introduction else block.text
        introduction = ""
        if not block.level and text.endswith(":"):
            introduction = text
        else:
            yield TextBlock(block.level, text)
    if introduction:
        yield TextBlock(0, introduction)
