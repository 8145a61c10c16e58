"""How commands write what they find: ``--format``."""

from __future__ import annotations

from enum import StrEnum


class BoardFormat(StrEnum):
    """All that ``arena.cli.show`` writes: for people, for programs, and the first table for a page or a paper."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"
    HTML = "html"
    LATEX = "latex"


class Format(StrEnum):
    """For people, for programs, or one flat row a thing."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class PageFormat(StrEnum):
    """The same, or for a page."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"
    HTML = "html"
