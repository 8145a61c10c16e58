"""How commands write what they find: ``--format``."""

from __future__ import annotations

from enum import StrEnum


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


class PaperFormat(StrEnum):
    """The same, or for a paper."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    LATEX = "latex"
