"""The report as one HTML page: no script, no request, every text inert."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from arena.present.texts import printable
from arena.report.blocks import Report

MARK = "<!doctype html>\n<!-- ragarena report -->\n"
"""How every report begins, so that a command knows one it may replace."""


def render(report: Report) -> str:
    """The page.

    Its policy forbids scripts, images, frames, fonts, forms and connections, and allows one style sheet by its hash.
    """
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return MARK + _environment().get_template("page.html").render(
        report=report,
        style=Markup(style),  # noqa: S704 - our own file
        style_hash=digest,
    )


@cache
def _style() -> str:
    return resources.files("arena.report").joinpath("page.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("arena.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )


def _visible(value: Any) -> Any:
    """Texts without what moves a cursor or turns the direction of what follows; our own markup as it is."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
