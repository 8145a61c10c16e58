"""Tables and plots of an HTML file, as cells of text and places of marks."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class PageTable:
    caption: str = ""
    rows: list[list[str]] = field(default_factory=list)

    def by_name(self) -> dict[str, dict[str, str]]:
        """By its first cell each row, by heading each cell."""
        heading, *rows = self.rows
        return {row[0]: dict(zip(heading, row, strict=True)) for row in rows}


class _Tables(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tables: list[PageTable] = []
        self._into: list[str] | None = None
        self._label = ""
        self._layout = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("role") == "region":
            self._label = given.get("aria-label") or ""
        if tag == "table":
            self._layout = given.get("role") == "presentation"
        if self._layout:
            return
        if tag == "table":
            self.tables.append(PageTable(self._label))
        elif tag == "tr":
            self.tables[-1].rows.append([])
        elif tag in {"td", "th", "caption"}:
            self._into = []

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th", "caption"} and self._into is not None:
            text, self._into = "".join(self._into).strip(), None
            if tag == "caption":
                self.tables[-1].caption = text
            else:
                self.tables[-1].rows[-1].append(text)


def tables(page: str) -> dict[str, PageTable]:
    """The page's tables by caption."""
    parser = _Tables()
    parser.feed(page)
    found = {table.caption: table for table in parser.tables}
    assert len(found) == len(parser.tables), "two tables have one caption"
    return found


@dataclass
class PagePlot:
    """Places in pixels of marks by what is told of them, and all texts."""

    marks: dict[str, tuple[float, float]]
    texts: list[str]


def plots(page: str) -> dict[str, PagePlot]:
    """The page's charts by their words."""
    found = {}
    for label, body in re.findall(r'<div role="img" aria-label="([^"]*)">(.*?)</svg>', page, re.DOTALL):
        marks = re.findall(r'transform="translate\(([^,]*),([^)]*)\)"[^>]*><title>([^<]*)</title>', body)
        own = {told: (float(x), float(y)) for x, y, told in marks}
        found[html.unescape(label)] = PagePlot(own, re.findall(r"<text[^>]*>([^<]*)<", body))
    return found
