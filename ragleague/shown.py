"""Results as data frames, as text and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from arena.present import markup
from arena.present.blocks import Section
from arena.present.files import fragment, save_plot
from arena.present.picture import Picture
from arena.present.table import Table, records
from judges.sections import argument

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NotebookPicture", "as_html", "as_text", "drawn", "fragment", "frame"]


def frame(table: Table) -> pd.DataFrame:
    """Convert a table to a data frame with the same columns as in CSV and JSON."""
    import pandas as pd

    return pd.DataFrame(records(table))


class NotebookPicture(Struct, frozen=True):
    """A picture that a notebook displays at the end of a cell."""

    picture: Picture

    def _repr_html_(self) -> str:
        return markup.in_notebook(self.picture)


def drawn(picture: Picture, path: str | Path | None, title: str) -> NotebookPicture:
    """Wrap a picture for notebooks; also write it to a file if ``path`` is given."""
    if path is not None:
        save_plot(Path(argument("path", str | Path, path)), [picture], title)
    return NotebookPicture(picture)


def as_text(sections: Sequence[Section]) -> str:
    """The sections as plain text, as the terminal prints them."""
    from rich.console import Console

    from arena.present import terminal

    console = Console(width=terminal.WIDE, color_system=None, force_jupyter=False)
    with console.capture() as captured:
        terminal.show(console, sections)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def as_html(sections: Sequence[Section]) -> str:
    """The sections as HTML for a notebook."""
    return fragment(block for section in sections for block in section.blocks)
