"""Sections as one HTML page: no script, no request, every text inert."""

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
"""How every report begins, so that a command knows one it may replace."""


class Report(Struct, frozen=True):
    """A page.

    Attributes:
        name: of what it reports.
        opening: its first screen, which begins with the verdict.
        sections: in order.
        made: when and by what.
        pages: names and addresses of others that it stands beside.
        style: address of the style sheet; without one, the page holds it.
    """

    name: str
    opening: Sequence[Block]
    sections: Sequence[Section]
    made: str
    pages: Sequence[tuple[str, str]] = ()
    style: str = ""

    @property
    def title(self) -> str:
        """Of the window."""
        return ": ".join([self.name, *(block.headline for block in self.opening if isinstance(block, VerdictCard))])


def style_sheet() -> str:
    """Of all that a page holds."""
    return resources.files("arena.present").joinpath("report.css").read_text(encoding="utf-8") + STYLE


def render(report: Report) -> str:
    """The page.

    Its policy forbids scripts, images, frames, fonts, forms and connections. It allows one style sheet: the one inside,
    by its hash, or one from where the page comes from.
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
    """Texts without what moves a cursor or turns the direction of what follows; our own markup as it is."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
