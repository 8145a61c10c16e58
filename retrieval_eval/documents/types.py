"""What is read of a document, how much of it at most, and its headings and texts as titled parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal, TypeAlias

from msgspec import Struct
from pydantic import Field

from judges.sections import Section

Whole = Annotated[int, Field(ge=1)]


class DocumentPart(Struct, frozen=True):
    """Paragraphs that belong together: a section by its heading, or a page of a PDF.

    Attributes:
        heading: empty where there is none.
        page: counts from 1; ``None`` in formats that know no pages.
        paragraphs: running texts, lists, tables and blocks of code, each without blank lines.
    """

    heading: str
    page: int | None
    paragraphs: tuple[str, ...]


class SourceDocument(Struct, frozen=True):
    """A file's text.

    Attributes:
        source: the path below the folder that was named, with ``/``. Passages are named by it, so another file that is
            added changes no passage's id.
        title: of the document itself, else its file's name.
        parts: in reading order, none of them empty.
    """

    source: str
    title: str
    parts: tuple[DocumentPart, ...]


class Extract(Struct, frozen=True):
    """What one file holds.

    Attributes:
        title: empty where the document has none.
        parts: in reading order.
        problems: what text of the file is not in the parts, each in words that follow the file's name.
        notes: what else to know of it: how it was read, and what is left out of every file of its kind.
    """

    title: str
    parts: tuple[DocumentPart, ...]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


ReadOutcome: TypeAlias = Literal["skipped", "partly read", "note"]


class FileNote(Struct, frozen=True):
    """What to know of a file or a folder.

    Attributes:
        source: as of ``SourceDocument``.
        reason: in words that follow the name.
        outcome: ``skipped`` where nothing was read, ``partly read`` where text is missing, and ``note`` where none is
            or none was wanted, as of hidden files.
    """

    source: str
    reason: str
    outcome: ReadOutcome = "skipped"


class Limits(Section):
    """How much one file may be and take: files come from anywhere, and some are made to use up a machine."""

    megabytes: Whole = 100
    """Largest file; a DOCX may unpack to four times as much."""
    pages: Whole = 5000
    """Longest PDF."""
    seconds: Annotated[float, Field(gt=0)] = 120.0
    """Seconds to read one file."""
    memory_megabytes: Annotated[int, Field(ge=256)] = 2048
    """Memory to read one file; not enforced on Windows."""

    @property
    def characters(self) -> int:
        """Text of one document: a tenth of what its file may have."""
        return self.megabytes * 100_000


class UnreadableError(Exception):
    """A file has no text to give; the message says why, in words that follow its name."""


def amounts(counts: Mapping[str, int]) -> str:
    """``2 charts, 1 embedded object``; nothing of what there is none."""
    return ", ".join(f"{number} {noun}{'s' * (number > 1)}" for noun, number in counts.items() if number)


class TextBlock(Struct, frozen=True):
    """A heading (``level`` 1 to 6) or a piece of running text (``level`` 0)."""

    level: int
    text: str


def titled_parts(blocks: Iterable[TextBlock]) -> tuple[str, tuple[DocumentPart, ...]]:
    """The document's title, which is its first heading of level 1, and a part for each heading that has text below it.

    A paragraph that ends in a colon stays together with the list, table or code that it introduces.
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
    """Join a paragraph ending in a colon to the text behind it."""
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
