"""Flat rows as CSV, Markdown and HTML. Names in them come from outside and never become markup."""

from __future__ import annotations

import csv
import html
import sys
from collections.abc import Sequence
from typing import Any

from arena.cli.console import printable

Row = dict[str, Any]

_MARKUP = "\\`*_[]()!|~$#"


def print_csv(rows: Sequence[Row]) -> None:
    """The rows as CSV; text is written as it is, like every table of this project (see ``judges.tables``)."""
    writer = csv.DictWriter(sys.stdout, _columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def print_markdown(rows: Sequence[Row], sentence: str = "") -> None:
    """The rows as a Markdown table, and a sentence below it."""
    names = _columns(rows)
    _print_markdown_row([_inert(name) for name in names])
    _print_markdown_row(["---"] * len(names))
    for row in rows:
        _print_markdown_row([_inert(_cell(row[name])) for name in names])
    if sentence:
        print(f"\n{_inert(printable(sentence))}")


def print_html(rows: Sequence[Row], sentence: str = "") -> None:
    """The rows as one HTML table, to paste into a page, and a sentence below it."""
    names = _columns(rows)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    print(f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>")
    for row in rows:
        print("<tr>" + "".join(f"<td>{html.escape(_cell(row[name]))}</td>" for name in names) + "</tr>")
    print("</tbody>\n</table>")
    if sentence:
        print(f"<p>{html.escape(printable(sentence))}</p>")


def _columns(rows: Sequence[Row]) -> list[str]:
    return list(rows[0]) if rows else ["agent"]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2g}" if 0 < abs(value) < 0.1 else f"{value:.2f}"
    return "" if value is None else printable(str(value))


def _print_markdown_row(cells: Sequence[str]) -> None:
    print("| " + " | ".join(cells) + " |")


def _inert(cell: str) -> str:
    escaped = html.escape(cell, quote=False)
    return "".join("\\" + character if character in _MARKUP else character for character in escaped)
