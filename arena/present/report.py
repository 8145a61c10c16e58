"""The report: sections as one HTML page without scripts or requests, with all texts escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from arena.present.blocks import Block, Section, VerdictCard
from arena.present.files import html_block
from arena.present.markup import STYLE
from arena.present.numbers import printable

MARK: Final = "<!doctype html>\n<!-- ragleague report -->\n"
"""First lines of every report; commands replace an existing file only if it begins with them."""


class Report(Struct, frozen=True):
    """Contents of a report page.

    Attributes:
        name: name of the tournament or file.
        opening: blocks of the first screen, the verdict first.
        sections: sections below the first screen, in order.
        made: time of writing, and version of the program.
        pages: names and addresses of the other pages of the report.
        style: address of the style sheet; if empty, the page contains the style sheet.
    """

    name: str
    opening: Sequence[Block]
    sections: Sequence[Section]
    made: str
    pages: Sequence[tuple[str, str]] = ()
    style: str = ""

    @property
    def title(self) -> str:
        """Title of the window: the name and the headline of the verdict."""
        return ": ".join([self.name, *(block.headline for block in self.opening if isinstance(block, VerdictCard))])


def style_sheet() -> str:
    """The style sheet of report pages, pictures included."""
    return resources.files("arena.present").joinpath("report.css").read_text(encoding="utf-8") + STYLE


def render(report: Report) -> str:
    """The report as an HTML page.

    Its content security policy forbids scripts, images, frames, fonts, forms and connections. It allows one style
    sheet: the embedded one by its hash, or one from the same origin.
    """
    style = "" if report.style else style_sheet()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return MARK + _environment().get_template("report.html").render(
        report=report,
        style=Markup(style),  # noqa: S704 - our own file
        style_source="'self'" if report.style else f"'sha256-{digest}'",
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("arena.present", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters["drawn"] = lambda block: Markup(html_block(block))  # noqa: S704 - its texts are escaped
    return environment


def _visible(value: Any) -> Any:
    """Replace control and direction characters in texts by escapes; ``Markup`` passes unchanged."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
