"""The picture of two labels of the same things."""

from __future__ import annotations

from collections.abc import Sequence

from arena.present.numbers import COUNT, PERCENT
from arena.present.picture import Cell, Matrix


def confusion(scale: Sequence[object], counts: Sequence[Sequence[float]], judge: str = "the judge") -> Matrix:
    """How often people's label was the row's where the judge's was the column's.

    Args:
        scale: labels, of people and judge alike.
        counts: by label of people, then of the judge.
        judge: its name.
    """
    labels = list(map(str, scale))
    cells = {}
    for people, row in zip(labels, counts, strict=True):
        for said, count in zip(labels, row, strict=True):
            share = count / (sum(row) or 1)
            told = f"People {people}, {judge} {said}: {COUNT.write(count)}, {PERCENT.write(share)} of the row"
            cells[people, said] = Cell(COUNT.write(count), share, told=told, bold=people == said)
    words = f"Labels of people by those of {judge}"
    caption = (
        f"Rows are people's labels, columns those of {judge}: on the diagonal (bold) both agree, to the right of it "
        f"{judge} is more generous than people. The stronger a colour, the larger the share of its row."
    )
    return Matrix("confusion", "", words, caption, labels, labels, cells, f"People against {judge}")
