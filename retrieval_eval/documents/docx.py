"""DOCX: paragraphs, headings and tables of the body."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrieval_eval.documents.blocks import Block, titled_parts
from retrieval_eval.documents.types import Limits, Part, UnreadableError

_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_UNPACKED = 4
"""How many times the limit on the file's size its content may have."""


def docx_parts(path: Path, limits: Limits) -> tuple[str, tuple[Part, ...]]:
    """The title and the parts. Pages are made where a document is printed, so there are none.

    Raises:
        UnreadableError: it is no DOCX, or its content is far larger than itself, as in files made to fill a memory.
        Exception: whatever else python-docx makes of a broken file.
    """
    from docx import Document

    _check_size(path, limits)
    document = Document(str(path))
    title, parts = titled_parts(_grouped(document))
    return title or " ".join((document.core_properties.title or "").split()), parts


def _check_size(path: Path, limits: Limits) -> None:
    try:
        with zipfile.ZipFile(path) as packed:
            unpacked = sum(entry.file_size for entry in packed.infolist())  # reading stops there, whatever comes
    except zipfile.BadZipFile as error:
        raise UnreadableError("is not a DOCX file, or damaged; an old .doc or an encrypted file is none") from error
    if unpacked > _UNPACKED * limits.megabytes * 1_000_000:
        raise UnreadableError(f"unpacks to {unpacked // 1_000_000} MB")


def _grouped(document: Any) -> Iterator[Block]:
    """Items of a list that follow each other are one block."""
    items: list[str] = []
    for block, is_item in _blocks(document):
        if is_item:
            items.append(block.text)
            continue
        if items:
            yield Block(0, "\n".join(items))
            items = []
        yield block
    if items:
        yield Block(0, "\n".join(items))


def _blocks(document: Any) -> Iterator[tuple[Block, bool]]:
    from docx.table import Table

    for element in document.iter_inner_content():
        if isinstance(element, Table):
            rows = (" | ".join(_cells(row)) for row in element.rows)
            text = "\n".join(row for row in rows if row.strip(" |"))
            if text:
                yield Block(0, text), False
            continue
        text = " ".join(element.text.split())
        if not text:
            continue
        style = element.style.name or "" if element.style is not None else ""
        heading = _HEADING.match(style)
        level = 1 if style == "Title" else min(6, int(heading[1])) if heading else 0
        yield Block(level, text), not level and style.startswith("List")


def _cells(row: Any) -> Iterator[str]:
    """A cell that spans several columns once."""
    before = None
    for cell in row.cells:
        if cell._tc is not before:
            yield " ".join(cell.text.split())
        before = cell._tc
