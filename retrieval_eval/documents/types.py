"""What is read of a document, and how much of it at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from judges.sections import Section

Whole = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, slots=True)
class Part:
    """Paragraphs that belong together: a section by its heading, or a page of a PDF.

    Attributes:
        heading: empty where there is none.
        page: counts from 1; ``None`` in formats that know no pages.
        paragraphs: running texts, lists, tables and blocks of code, each without blank lines.
    """

    heading: str
    page: int | None
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A file's text.

    Attributes:
        source: the path below the folder that was named, with ``/``. Passages are named by it, so another file that is
            added changes no passage's id.
        title: of the document itself, else its file's name.
        parts: in reading order, none of them empty.
    """

    source: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or a page of one, that could not be read."""

    source: str
    reason: str


class Limits(Section):
    """How much one file may be and take: files come from anywhere, and some are made to use up a machine."""

    megabytes: Whole = 100
    """Size of the file; unpacked, a DOCX may have four times as much."""
    pages: Whole = 5000
    seconds: Annotated[float, Field(gt=0)] = 120.0
    memory_megabytes: Annotated[int, Field(ge=256)] = 2048
    """Not enforced on Windows."""

    @property
    def characters(self) -> int:
        """Text of one document: a tenth of what its file may have."""
        return self.megabytes * 100_000


class UnreadableError(Exception):
    """A file has no text to give; the message says why, in words that follow its name."""
