"""Reader of DOCX files with all tracked changes accepted: text of body, notes, text boxes, headers and footers."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from retrieval_eval.documents.types import Extract, Limits, TextBlock, UnreadableError, amounts, titled_parts

Element: TypeAlias = Any
"""An lxml element; typed as ``Any``, since lxml has no type hints."""

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"

_PARAGRAPH, _TABLE, _ROW, _CELL, _TEXT = f"{W}p", f"{W}tbl", f"{W}tr", f"{W}tc", f"{W}t"
_BLOCKS = frozenset({_PARAGRAPH, _TABLE, _ROW, _CELL, f"{W}r", f"{W}hyperlink"})
_ALTERNATIVES = f"{_MC}AlternateContent"
_TEXT_BOX, _SHAPE_TEXT, _WORD_ART = f"{W}txbxContent", f"{_A}p", "{urn:schemas-microsoft-com:vml}textpath"
_SIGNS = {f"{W}tab": "\t", f"{W}ptab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-"}
_NOTES = {f"{W}footnoteReference": "footnote", f"{W}endnoteReference": "endnote"}
_NO_TEXT = frozenset(W + name for name in ("del", "moveFrom", "pPr", "rPr", "sdtPr", "instrText", "delText", "sectPr"))
"""Elements of a DOCX file whose content is skipped: deleted or moved text, properties, field codes."""
_NOT_READ = {
    f"{W}object": "embedded object",
    f"{W}sym": "symbol",
    "{http://schemas.openxmlformats.org/officeDocument/2006/math}oMath": "formula",
    f"{W}altChunk": "imported file",
    f"{W}subDoc": "subdocument",
    f"{W}control": "form control",
    "{http://schemas.openxmlformats.org/drawingml/2006/chart}chart": "chart",
    "{http://schemas.microsoft.com/office/drawing/2014/chartex}chart": "chart",
    "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds": "diagram",
}
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)


class BlockPlace(Enum):
    """Position of a block: in the running text, in a list, or beside the text, such as notes and text boxes."""

    TEXT = 0
    ITEM = 1
    ASIDE = 2


class WordText:
    """Extracts the text blocks of a DOCX document, and counts the elements that it cannot read, such as charts.

    Text boxes and notes follow the paragraph or table that they belong to. Word stores each box twice, for new and old
    versions of Word; this class reads it once. Word's table of contents is skipped, since it repeats the headings.

    Args:
        style: function that returns the name of a paragraph style for its id.
        notes: the elements of footnotes and endnotes, by their kind and id.
    """

    def __init__(self, style: Callable[[str | None], str], notes: Mapping[tuple[str, str | None], Element]) -> None:
        self._style, self._notes = style, dict(notes)
        self.not_read: Counter[str] = Counter()
        self.comments = 0

    def blocks(self, container: Element) -> Iterator[tuple[TextBlock, BlockPlace]]:
        """Yields the text blocks of a body, header, note or text box, each with its place."""
        for child in self._children(container):
            beside: list[Element | TextBlock] = []
            level, place = 0, BlockPlace.TEXT
            if child.tag == _TABLE:
                rows = (" | ".join(cells) for cells in self._rows(child, beside))
                text = "\n".join(row for row in rows if row.strip(" |"))
            else:
                text = self._line(child, beside)
                style = self._style(_value(child, "pPr/pStyle"))
                heading = _HEADING.match(style)
                level = 1 if style == "Title" else min(6, int(heading[1])) if heading else 0
                place = BlockPlace.ITEM if not level and style.startswith("List") else BlockPlace.TEXT
            if text:
                yield TextBlock(level, text), place
            for element in beside:
                aside = (element,) if isinstance(element, TextBlock) else (block for block, _ in self.blocks(element))
                yield from ((block, BlockPlace.ASIDE) for block in aside)

    def _children(self, container: Element) -> Iterator[Element]:
        """The paragraphs, tables, rows or cells in a container, at any depth of wrapping elements."""
        for child in container:
            tag = child.tag
            is_contents = _value(child, "sdtPr/docPartObj/docPartGallery") == "Table of Contents"
            if tag in _NO_TEXT or not isinstance(tag, str) or is_contents or _is_deleted(child):
                continue
            if tag in _NOT_READ:
                self.not_read[_NOT_READ[tag]] += 1
            elif tag in _BLOCKS:
                yield child
            else:
                yield from self._children(_branch(child) if tag == _ALTERNATIVES else child)

    def _rows(self, table: Element, beside: list[Element | TextBlock]) -> Iterator[list[str]]:
        """Yields each table row's cell texts; a cell appears once if it spans columns, but in every row it spans."""
        above: dict[int, tuple[Element, str]] = {}
        for row in self._children(table):
            column = int(_value(row, "trPr/gridBefore") or 0)
            row_cells: dict[int, tuple[Element, str]] = {}
            for cell in self._children(row):
                merged = cell.find(f"{W}tcPr/{W}vMerge")
                continues_above = (
                    merged is not None and merged.get(f"{W}val", "continue") == "continue" and column in above
                )
                row_cells[column] = above[column] if continues_above else (cell, self._cell_text(cell, beside))
                column += int(_value(cell, "tcPr/gridSpan") or 1)
            above = row_cells
            cells = list(row_cells.values())
            yield [text for number, (cell, text) in enumerate(cells) if not number or cells[number - 1][0] is not cell]

    def _cell_text(self, cell: Element, beside: list[Element | TextBlock]) -> str:
        """A cell's text on one line; in a nested table, commas separate cells and semicolons separate rows."""
        paragraphs = []
        for child in self._children(cell):
            if child.tag == _TABLE:
                rows = (", ".join(filter(None, cells)) for cells in self._rows(child, beside))
                paragraphs.append("; ".join(filter(None, rows)))
            else:
                paragraphs.append(self._line(child, beside))
        return " ".join(filter(None, paragraphs))

    def _line(self, element: Element, beside: list[Element | TextBlock]) -> str:
        return self._joined(element if element.tag == _PARAGRAPH else [element], beside)

    def _joined(self, elements: Iterable[Element], beside: list[Element | TextBlock]) -> str:
        pieces: list[str] = []
        self._gather(elements, pieces, beside)
        return " ".join("".join(pieces).split())

    def _gather(self, elements: Iterable[Element], pieces: list[str], beside: list[Element | TextBlock]) -> None:
        """Append the elements' running text to ``pieces``, and their notes and text boxes to ``beside``."""
        for child in elements:
            tag = child.tag
            if tag in _NO_TEXT or not isinstance(tag, str):
                continue
            if (text := self._inline(child, beside)) is not None:
                pieces.append(text)
            elif (aside := self._aside(child)) is not None:
                beside += aside
            else:
                self._gather(_branch(child) if tag == _ALTERNATIVES else child, pieces, beside)

    def _inline(self, element: Element, beside: list[Element | TextBlock]) -> str | None:
        """The text of an element within a line, such as a tab or line break; ``None`` for other elements."""
        tag = element.tag
        if tag == _TEXT:  # a comment or an entity may divide its text
            return "".join([element.text or "", *(inner.tail or "" for inner in element)])
        if tag == f"{W}rt":  # pronunciation of the word before it (ruby text)
            return f" ({self._joined(element, beside)}) "
        return _SIGNS.get(tag)

    def _aside(self, element: Element) -> list[Element | TextBlock] | None:
        """Notes and text boxes in an element; ``[]`` if there are none to read, ``None`` if it is running text."""
        tag = element.tag
        if tag in _NOTES:
            note = self._notes.pop((_NOTES[tag], element.get(f"{W}id")), None)
            return [] if note is None else [note]
        if tag in _NOT_READ:
            self.not_read[_NOT_READ[tag]] += 1
            return []
        if tag == f"{W}commentReference":
            self.comments += 1
            return []
        if tag == _SHAPE_TEXT:
            return _block("".join(text.text or "" for text in element.iter(f"{_A}t")))
        if tag == _WORD_ART:
            return _block(element.get("string", ""))
        return [element] if tag == _TEXT_BOX else None


def _value(element: Element, path: str) -> str | None:
    inner = element.find("/".join(W + name for name in path.split("/")))
    return None if inner is None else inner.get(f"{W}val")


def _is_deleted(element: Element) -> bool:
    path = {_ROW: f"{W}trPr/{W}del", _CELL: f"{W}tcPr/{W}cellDel"}.get(element.tag)
    return path is not None and element.find(path) is not None


def _branch(alternatives: Element) -> Element:
    """Of several forms of the same content the first that has text; the last form is for old versions of Word."""
    forms = list(alternatives.iterchildren(f"{_MC}Choice", f"{_MC}Fallback"))
    with_text = (form for form in forms if next(form.iter(_TEXT, f"{_A}t", _WORD_ART), None) is not None)
    return next(with_text, forms[0] if forms else [])


def _block(text: str) -> list[Element | TextBlock]:
    text = " ".join(text.split())
    return [TextBlock(0, text)] if text else []


_UNPACKED = 4
"""A DOCX file may unpack to this many times the greatest size that ``Limits`` allows for a file."""
_MARGINS = TextBlock(2, "Headers and footers")


def read_docx(path: Path, limits: Limits) -> Extract:
    """Read a document's text, with remarks on skipped content. DOCX files have no page numbers, so parts have none.

    Headers and footers come last. Each of their paragraphs appears once; paragraphs without a letter, such as page
    numbers, are skipped. For a broken file, python-docx may raise any exception.
    """
    from docx import Document
    from docx.enum.style import WD_STYLE_TYPE
    from lxml import etree

    _check_size(path, limits)
    document = Document(str(path))

    @cache
    def style(ident: str | None) -> str:
        named = document.part.get_style(ident, WD_STYLE_TYPE.PARAGRAPH)
        return getattr(named, "name", None) or ""

    body, notes = document.element.body, dict(_notes(document.part))
    margins = list(_margins(document.part))
    word = WordText(style, notes)
    texts = dict.fromkeys(block.text for margin in margins for block, _ in word.blocks(margin))
    in_margins = [TextBlock(0, text) for text in texts if any(map(str.isalpha, text))]
    blocks = list(_grouped_items(word.blocks(body)))
    title, parts = titled_parts([*blocks, _MARGINS, *in_margins] if in_margins else blocks)
    title = title or " ".join((document.core_properties.title or "").split())
    entities = sum(1 for root in (body, *margins, *notes.values()) for _ in root.iter(etree.Entity))
    not_read = amounts({**word.not_read, "entity reference": entities})
    left_out = amounts({"comment": word.comments})
    return Extract(
        title, parts, (f"{not_read} not read",) if not_read else (), (f"{left_out} left out",) if left_out else ()
    )


def _check_size(path: Path, limits: Limits) -> None:
    try:
        with zipfile.ZipFile(path) as packed:
            unpacked = sum(
                entry.file_size for entry in packed.infolist()
            )  # zipfile never unpacks more than the declared sizes
    except zipfile.BadZipFile as error:
        raise UnreadableError("is not a DOCX file, or is damaged; save .doc and encrypted files as DOCX") from error
    if unpacked > _UNPACKED * limits.megabytes * 1_000_000:
        raise UnreadableError(f"unpacks to {unpacked // 1_000_000} MB")


def _notes(part: Any) -> Iterator[tuple[tuple[str, str | None], Any]]:
    from docx.oxml.parser import parse_xml

    for kind in ("footnote", "endnote"):
        for relation in part.rels.values():
            if relation.reltype.endswith(f"/{kind}s") and not relation.is_external:
                for note in parse_xml(relation.target_part.blob).iterchildren(f"{W}{kind}"):
                    yield (kind, note.get(f"{W}id")), note


def _margins(part: Any) -> Iterator[Any]:
    references = part.element.body.iter(f"{W}headerReference", f"{W}footerReference")
    relation = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
    idents = dict.fromkeys(reference.get(relation) for reference in references)
    return (part.rels[ident].target_part.element for ident in idents if ident in part.rels)


def _grouped_items(blocks: Iterable[tuple[TextBlock, BlockPlace]]) -> Iterator[TextBlock]:
    """Join consecutive list items into one block; the notes and text boxes of the items follow that block."""
    items: list[str] = []
    beside: list[TextBlock] = []
    for block, place in (*blocks, (None, BlockPlace.TEXT)):
        if block is not None and place is BlockPlace.ITEM:
            items.append(block.text)
        elif block is not None and place is BlockPlace.ASIDE and items:
            beside.append(block)
        else:
            yield from ([TextBlock(0, "\n".join(items))] if items else [])
            yield from beside
            items, beside = [], []
            yield from ([block] if block is not None else [])
