"""A heat map of names against names as a table, which can be read out, selected and hovered over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Final

_EVEN: Final = (0xF4, 0xF1, 0xEA)
_LESS: Final = (0xE6, 0x9F, 0x00)
_MORE: Final = (0x56, 0xB4, 0xE9)
"""Colours of the middle and of both ends: orange and sky blue by Okabe and Ito, told apart with every kind of colour
vision, and light enough for dark figures on all of them."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell.

    Attributes:
        strength: of its colour, from -1 to 1.
        figure: in it.
        told: where the pointer rests on it.
        below: in small type below the figure.
        bold: the figure.
    """

    strength: float
    figure: str
    told: str
    below: str = ""
    bold: bool = False


def heat_table(names: Mapping[str, str], cells: Mapping[tuple[str, str], Cell], corner: str, label: str) -> str:
    """HTML of the table.

    Args:
        names: as they are shown, down and across; texts from outside, as those of cells may be.
        cells: by the names in a row and a column; there may be gaps.
        corner: what rows and columns are; our own, as the label is.
        label: what a screen reader calls it.
    """
    across = "".join(f'<th scope="col">{escape(name)}</th>' for name in names.values())
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(_cell(cells.get((row, column))) for column in names)}</tr>'
        for row, name in names.items()
    )
    return (
        f'<style>{_STYLE}</style><div class="heat-box" tabindex="0" role="region" aria-label="{label}">'
        f'<table class="heat"><thead><tr><th scope="col">{corner}</th>{across}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def colour(strength: float) -> str:
    """From -1 to 1, the stronger the farther from 0."""
    end = _MORE if strength > 0 else _LESS
    mixed = (round(even + abs(strength) * (own - even)) for even, own in zip(_EVEN, end, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td></td>"
    style = f"background:{colour(cell.strength)};font-weight:{'bold' if cell.bold else 'normal'}"
    small = f"<small>{escape(cell.below)}</small>" if cell.below else ""
    return f'<td style="{style}" title="{escape(cell.told)}">{escape(cell.figure)}{small}</td>'


_STYLE: Final = """
.heat-box { overflow-x: auto; max-width: 100%; }
.heat { border-collapse: separate; border-spacing: 2px; line-height: 1.2; }
.heat th { border: 0; padding: 0.2rem 0.4rem; font-weight: 400; font-size: 0.8rem; text-align: left; }
.heat th { min-width: 6rem; max-width: 10rem; overflow-wrap: anywhere; }
.heat thead th { vertical-align: bottom; }
.heat thead th + th { min-width: 4.4rem; text-align: center; }
.heat td { border: 0; padding: 0; text-align: center; color: #1a1a1a; min-width: 4.4rem; height: 3rem; }
.heat small { display: block; font-size: 0.7rem; font-weight: 400; }
"""
