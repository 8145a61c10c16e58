"""Tables whose cells are texts already."""

from __future__ import annotations

from collections.abc import Sequence

from arena.present.numbers import Words
from arena.present.table import Column, Table


def text_table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
    words: frozenset[str] = frozenset(),
) -> Table:
    """A table of cells as they are shown; ``words`` are columns besides the first that hold no figures."""
    forms = [Words(numeric=bool(at) and name not in words) for at, name in enumerate(columns)]
    return Table(
        caption,
        caption,
        [Column(str(at), name, form) for at, (name, form) in enumerate(zip(columns, forms, strict=True))],
        [{str(at): cell for at, cell in enumerate(row)} for row in rows],
        notes,
    )
