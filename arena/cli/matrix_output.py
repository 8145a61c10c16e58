"""The win matrix of a leaderboard, for people and for ``ragarena rate``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arena.cli.console import output, print_json, rounded
from arena.cli.markup import print_csv, print_html, print_markdown
from arena.cli.tables import print_table


def print_matrix(rows: Sequence[Mapping[str, Any]], form: str) -> None:
    """Write a matrix of win percentages to standard output in one of the formats of ``leaderboard --format``."""
    if form == "json":
        print_json({"percent": rounded(list(rows))})
        return
    shown = [{name: _cell(value) for name, value in row.items()} for row in rows]
    if form == "table":
        names = [name for name in shown[0] if name != "agent"] if shown else []
        print_table(["agent"], names, [[row["agent"], *(row[name] or "-" for name in names)] for row in shown])
        output.print(
            "\npercentage of its games that the row's agent won against the column's; the rest are ties and losses"
        )
    else:
        {"csv": print_csv, "md": print_markdown, "html": print_html}[form](shown)


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)
