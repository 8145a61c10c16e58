"""DOCX: the text of a document and of its notes, text boxes, headers and footers."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from retrieval_eval.documents.blocks import Block, titled_parts
from retrieval_eval.documents.docx_text import Place, W, WordText
from retrieval_eval.documents.types import Extract, Limits, UnreadableError, amounts

_UNPACKED = 4
"""How many times the limit on the file's size its content may have."""
_MARGINS = Block(2, "Headers and footers")


def read_docx(path: Path, limits: Limits) -> Extract:
    """The text, and what is left out of it. Pages are made where a document is printed, so there are none.

    Headers and footers come last, each paragraph of them once, but for those without a letter, as page numbers are.

    Raises:
        UnreadableError: it is no DOCX, or its content is far larger than itself, as in files made to fill a memory.
        Exception: whatever else python-docx makes of a broken file.
    """
    from docx import Document
    from docx.enum.style import WD_STYLE_TYPE

    _check_size(path, limits)
    document = Document(str(path))

    @cache
    def style(ident: str | None) -> str:
        named = document.part.get_style(ident, WD_STYLE_TYPE.PARAGRAPH)
        return getattr(named, "name", None) or ""

    body, notes = document.element.body, dict(_notes(document.part))
    margins = list(_margins(document.part))
    word = WordText(style, notes)
    title, parts = titled_parts([*_grouped(word.blocks(body)), *_once(word, margins)])
    title = title or " ".join((document.core_properties.title or "").split())
    entities = sum(_entities(root) for root in (body, *margins, *notes.values()))
    not_read = amounts({**word.not_read, "entity reference": entities})
    left_out = amounts({"comment": word.comments})
    return Extract(
        title, parts, (f"{not_read} not read",) if not_read else (), (f"{left_out} left out",) if left_out else ()
    )


def _check_size(path: Path, limits: Limits) -> None:
    try:
        with zipfile.ZipFile(path) as packed:
            unpacked = sum(entry.file_size for entry in packed.infolist())  # reading stops there, whatever comes
    except zipfile.BadZipFile as error:
        raise UnreadableError("is not a DOCX file, or damaged; an old .doc or an encrypted file is none") from error
    if unpacked > _UNPACKED * limits.megabytes * 1_000_000:
        raise UnreadableError(f"unpacks to {unpacked // 1_000_000} MB")


def _notes(part: Any) -> Iterator[tuple[tuple[str, str | None], Any]]:
    from docx.oxml.parser import parse_xml

    for kind in ("footnote", "endnote"):
        for related in _related(part, f"{kind}s"):
            for note in parse_xml(related.blob).iterchildren(f"{W}{kind}"):
                yield (kind, note.get(f"{W}id")), note


def _margins(part: Any) -> Iterator[Any]:
    """Headers and footers in the order of the sections, each once."""
    references = part.element.body.iter(f"{W}headerReference", f"{W}footerReference")
    relation = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
    idents = dict.fromkeys(reference.get(relation) for reference in references)
    return (part.rels[ident].target_part.element for ident in idents if ident in part.rels)


def _related(part: Any, kind: str) -> Iterator[Any]:
    return (
        each.target_part for each in part.rels.values() if each.reltype.endswith(f"/{kind}") and not each.is_external
    )


def _once(word: WordText, margins: Iterable[Any]) -> Iterator[Block]:
    texts = dict.fromkeys(block.text for margin in margins for block, _ in word.blocks(margin))
    lettered = [text for text in texts if any(map(str.isalpha, text))]
    yield from ([_MARGINS] if lettered else [])
    yield from (Block(0, text) for text in lettered)


def _entities(root: Any) -> int:
    from lxml import etree

    return sum(1 for _ in root.iter(etree.Entity))


def _grouped(blocks: Iterable[tuple[Block, Place]]) -> Iterator[Block]:
    """Items of a list that follow each other are one block; what stands beside them comes behind it."""
    items: list[str] = []
    beside: list[Block] = []
    for block, place in (*blocks, (None, Place.TEXT)):
        if block is not None and place is Place.ITEM:
            items.append(block.text)
        elif block is not None and place is Place.ASIDE and items:
            beside.append(block)
        else:
            yield from ([Block(0, "\n".join(items))] if items else [])
            yield from beside
            items, beside = [], []
            yield from ([block] if block is not None else [])
