"""The win matrix: its cells, and a heat map of them. Not a chart of Vega, which takes a second over fifty agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pandas as pd

from arena.games.pairs import PairResults
from arena.plain_text import printable
from ui import text
from ui.pictures import picture

Counted: TypeAlias = Literal["wins and half the ties", "wins only"]

ALPHA: Final = 0.05
"""Below so small a p-value a pair is called told apart."""
_ROOMY: Final = 14
"""Matrices up to this many agents are tables, with the number of games in the cells."""
_NAME: Final = 60
"""Characters of an agent's name that are written out."""
_EVEN: Final = (0xF4, 0xF1, 0xEA)
_WORSE: Final = (0xE6, 0x9F, 0x00)
_BETTER: Final = (0x56, 0xB4, 0xE9)
"""Colours of 50, 0 and 100 percent: orange and sky blue by Okabe and Ito, told apart with every kind of colour vision,
and light enough for dark figures on all of them."""


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
    shown = {agent: escape(name) for agent, name in names.items()}
    cells = {(cell.row, cell.column): _cell(cell, shown) for cell in frame.itertuples(index=False)}
    across = "".join(f'<th scope="col">{name}</th>' for name in shown.values())
    rows = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(cells.get((row, column), "<td></td>") for column in shown)}</tr>'
        for row, name in shown.items()
    )
    return (
        f'<style>{_STYLE}</style><div class="matrix-box" tabindex="0" role="region" aria-label="Win matrix">'
        f'<table class="matrix"><thead><tr><th scope="col">Row against column</th>{across}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cell(cell: Any, names: Mapping[str, str]) -> str:
    games, weight = f"{cell.games:,.4g}", "bold" if cell.p < ALPHA else "normal"
    told = f"{names[cell.row]} against {names[cell.column]}: won {cell.won:g}, tied {cell.tied:g}, lost {cell.lost:g}"
    style = f"background:{_colour(cell.percent)};font-weight:{weight}"
    return f'<td style="{style}" title="{told}; p {cell.p:.2g}">{cell.percent:.0f} %<small>{games}</small></td>'


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
        squares.setdefault(_colour(round(cell.percent)), []).append(f"M{x} {y}h{_SIDE - 1}v{_SIDE - 1}h{1 - _SIDE}z")
        lines[cell.row, "bold" if cell.p < ALPHA else "plain"][place[cell.column]] = f"{cell.percent:3.0f}"
    marks = [f'<path fill="{colour}" d="{"".join(own)}"/>' for colour, own in squares.items()]
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


def _colour(percent: float) -> str:
    """Of a cell, the stronger the farther it is from even."""
    end, strength = (_BETTER if percent > 50 else _WORSE), abs(percent - 50) / 50
    return "#" + "".join(f"{round(even + strength * (own - even)):02x}" for even, own in zip(_EVEN, end, strict=True))


_WORDS: Final = "Win matrix. The table below it holds its figures."
_SIDE: Final = 18
"""Pixels from one cell of the picture to the next."""
_DRAWN: Final = """
text { font: 10px sans-serif; fill: #6f7682; }
.row { text-anchor: end; }
.cells { font: 9px monospace; fill: #1a1a1a; white-space: pre; }
.bold { font-weight: 700; }
"""
_STYLE: Final = """
.matrix-box { overflow-x: auto; max-width: 100%; }
.matrix { border-collapse: separate; border-spacing: 2px; line-height: 1.2; }
.matrix th { border: 0; padding: 0.2rem 0.4rem; font-weight: 400; font-size: 0.8rem; text-align: left; }
.matrix th { min-width: 6rem; max-width: 10rem; overflow-wrap: anywhere; }
.matrix thead th { vertical-align: bottom; }
.matrix thead th + th { min-width: 4.4rem; text-align: center; }
.matrix td { border: 0; padding: 0; text-align: center; color: #1a1a1a; min-width: 4.4rem; height: 3rem; }
.matrix small { display: block; font-size: 0.7rem; font-weight: 400; }
"""
