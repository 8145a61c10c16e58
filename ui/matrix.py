"""The win matrix: its cells, and a heat map of them. Not a chart of Vega, which takes a second over fifty agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pandas as pd

from arena.games.pairs import PairResults
from arena.present.texts import printable
from ui import text
from ui.heat_table import Cell, colour, heat_table
from ui.pictures import picture

Counted: TypeAlias = Literal["wins and half the ties", "wins only"]

ALPHA: Final = 0.05
"""Below so small a p-value a pair is called told apart."""
_ROOMY: Final = 14
"""Matrices up to this many agents are tables, with the number of games in the cells."""
_NAME: Final = 60
"""Characters of an agent's name that are written out."""


def matrix_frame(results: PairResults, order: Sequence[str], counted: Counted) -> pd.DataFrame:
    """A row for each two agents that met: the percentage of their games that ``row`` took from ``column``.

    Args:
        results: of all pairs.
        order: the agents as rows and columns are to be sorted.
        counted: what the percentage counts.
    """
    matrix = results.wins
    number = {agent: i for i, agent in enumerate(matrix.agents)}
    order = [agent for agent in order if agent in number]
    taken = matrix.wins + (matrix.ties / 2 if counted == "wins and half the ties" else 0)
    rows: list[dict[str, Any]] = []
    for row in order:
        for column in order:
            i, j = number[row], number[column]
            if matrix.games[i, j] == 0:
                continue
            rows.append(
                {
                    "row": row,
                    "column": column,
                    "percent": 100 * taken[i, j] / matrix.games[i, j],
                    "games": matrix.games[i, j],
                    "won": matrix.wins[i, j],
                    "tied": matrix.ties[i, j],
                    "lost": matrix.wins[j, i],
                    "p": results.p[i, j],
                }
            )
    frame = pd.DataFrame(rows, columns=["row", "column", "percent", "games", "won", "tied", "lost", "p"])
    counts = ["games", "won", "tied", "lost"]
    if bool(np.equal(np.mod(frame[counts], 1), 0).all(axis=None)):
        frame[counts] = frame[counts].astype(int)
    return frame


def matrix_html(frame: pd.DataFrame, order: Sequence[str]) -> str:
    """The heat map of ``matrix_frame``; a figure in bold is of a pair that its own games tell apart.

    A table, which can be read out, selected and hovered over; for many agents a picture, since a browser takes long
    over thousands of cells.

    Args:
        frame: the cells.
        order: the agents, down and across.
    """
    names = {agent: text.clipped(agent, _NAME) for agent in order}
    if len(order) <= _ROOMY:
        return _table(frame, names)
    return _picture(frame, {agent: printable(name) for agent, name in names.items()})  # what XML cannot hold breaks it


def _table(frame: pd.DataFrame, names: Mapping[str, str]) -> str:
    rows: Iterable[Any] = frame.itertuples(index=False)
    cells = {(cell.row, cell.column): _cell(cell, names) for cell in rows}
    return heat_table(names, cells, "Row against column", "Win matrix")


def _cell(cell: Any, names: Mapping[str, str]) -> Cell:
    told = f"{names[cell.row]} against {names[cell.column]}: won {cell.won:g}, tied {cell.tied:g}, lost {cell.lost:g}"
    return Cell(
        _strength(cell.percent),
        f"{cell.percent:.0f} %",
        f"{told}; p {cell.p:.2g}",
        below=f"{cell.games:,.4g}",
        bold=cell.p < ALPHA,
    )


def _picture(frame: pd.DataFrame, names: Mapping[str, str]) -> str:
    """All figures in one picture, names at the left and on top.

    One path for all cells of a colour and two texts for a row, of its plain and its bold figures: a browser lays out
    each text by itself, which takes long for thousands.
    """
    place = {agent: number for number, agent in enumerate(names)}
    margin = round(5.4 * max(map(len, names.values()))) + 8  # pixels of the longest name
    size = margin + _SIDE * len(names)
    squares: dict[str, list[str]] = {}
    lines = {(agent, weight): ["   "] * len(names) for agent in names for weight in ("plain", "bold")}
    cells: Iterable[Any] = frame.itertuples(index=False)
    for cell in cells:
        x, y = margin + _SIDE * place[cell.column], margin + _SIDE * place[cell.row]
        squares.setdefault(colour(_strength(round(cell.percent))), []).append(
            f"M{x} {y}h{_SIDE - 1}v{_SIDE - 1}h{1 - _SIDE}z"
        )
        lines[cell.row, "bold" if cell.p < ALPHA else "plain"][place[cell.column]] = f"{cell.percent:3.0f}"
    marks = [f'<path fill="{fill}" d="{"".join(own)}"/>' for fill, own in squares.items()]
    for agent, name in names.items():
        along = margin + _SIDE * place[agent] + 12
        marks.append(f'<text x="{margin - 4}" y="{along}" class="row">{escape(name)}</text>')
        marks.append(f'<text transform="translate({along} {margin - 4}) rotate(-90)">{escape(name)}</text>')
    marks += [
        f'<text x="{margin - 3}" y="{margin + _SIDE * place[agent] + 12}" class="cells {weight}"'
        f' xml:space="preserve" textLength="{_SIDE * len(names)}">{"".join(own)}</text>'
        for (agent, weight), own in lines.items()
        if any(map(str.strip, own))
    ]
    return picture(
        "".join(marks),
        _WORDS,
        box=f'viewBox="0 0 {size} {size}" width="{size}" height="{size}"',
        style=_DRAWN,
        css=f"min-width:{size // 2}px",
    )


def _strength(percent: float) -> float:
    """Of a cell's colour, the stronger the farther it is from even."""
    return (percent - 50) / 50


_WORDS: Final = "Win matrix. The table below it holds its figures."
_SIDE: Final = 18
"""Pixels from one cell of the picture to the next."""
_DRAWN: Final = """
text { font: 10px sans-serif; fill: #6f7682; }
.row { text-anchor: end; }
.cells { font: 9px monospace; fill: #1a1a1a; white-space: pre; }
.bold { font-weight: 700; }
"""
