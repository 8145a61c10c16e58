"""DOCX: the text of a document with all tracked changes accepted, its notes, text boxes, headers and footers."""

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

_SYMBOL_FONT = {
    0x20: " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_",  # noqa: RUF001
    0x61: "αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼",  # noqa: RUF001
    0xA1: "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…",  # noqa: RUF001
    0xBF: "↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑",  # noqa: RUF001
    0xF1: "〉∫",
}
"""Characters of the font Symbol from a code on (Adobe's encoding of it, with Greek letters for its Greek)."""
_WINGDINGS = dict(
    zip(b"\x4a\x6c\x6e\x6f\x71\xa7\xa8\xd8\xdf\xe0\xe8\xf0\xfb\xfc\xfd\xfe", "☺●■□❑▪◻➢←→➔⇨✗✓☒☑", strict=True)
)
"""Those that stand for something: check marks, boxes and arrows."""
_PRIVATE = range(0xF000, 0xF100)
"""Where Word puts the characters of symbol fonts."""
_FORMS = {
    "f": "{num}/{den}",
    "sSup": "{e}^{sup}",
    "sSub": "{e}_{sub}",
    "sSubSup": "{e}_{sub}^{sup}",
    "rad": "{deg}√{e}",
}


def symbol(font: str, code: str) -> str | None:
    """The character of a ``w:sym``; ``None`` where only its font knows what it looks like."""
    try:
        number = int(code, 16)
    except ValueError:
        return None
    if font in ("Symbol", "Wingdings"):
        number &= 0xFF
        if font == "Wingdings":
            return _WINGDINGS.get(number)
        return next((row[number - at] for at, row in _SYMBOL_FONT.items() if at <= number < at + len(row)), None)
    return None if number in _PRIVATE or not chr(number).isprintable() else chr(number)


def formula(element: Any) -> str:
    """A formula of Office Math on one line: fractions with ``/``, raised and lowered parts with ``^`` and ``_``."""
    inner = [
        (child.tag.rpartition("}")[2], formula(child))
        for child in element
        if isinstance(child.tag, str) and not child.tag.endswith(("Pr", "}del", "}moveFrom"))
    ]
    of = {name: _in_brackets(text) for name, text in inner}
    kind = element.tag.rpartition("}")[2]
    if kind == "t":
        return element.text or ""
    if kind == "d":
        return f"({', '.join(text for _, text in inner)})"
    if kind == "nary":
        low, high = (f"{mark}{of[name]}" if of.get(name) else "" for mark, name in (("_", "sub"), ("^", "sup")))
        return f"{_sign(element)}{low}{high} {dict(inner).get('e', '')}"
    if kind in _FORMS:
        return _FORMS[kind].format_map({"num": "", "den": "", "e": "", "sub": "", "sup": "", "deg": ""} | of)
    return "".join(text for _, text in inner)


def _in_brackets(text: str) -> str:
    return text if len(text) < 2 or text.isalnum() else f"({text})"


def _sign(element: Any) -> str:
    """Of a sum, product or integral; Word leaves out the integral's."""
    chosen = next((child for child in element.iter() if str(child.tag).endswith("}chr")), None)
    return "∫" if chosen is None else next(iter(chosen.attrib.values()), "")


Element: TypeAlias = Any
"""Of lxml, which has no types."""

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"

_PARAGRAPH, _TABLE, _ROW, _CELL, _TEXT = f"{W}p", f"{W}tbl", f"{W}tr", f"{W}tc", f"{W}t"
_SYMBOL = f"{W}sym"
_FORMULA = "{http://schemas.openxmlformats.org/officeDocument/2006/math}oMath"
_BLOCKS = frozenset({_PARAGRAPH, _TABLE, _ROW, _CELL, f"{W}r", f"{W}hyperlink", _FORMULA})
_ALTERNATIVES = f"{_MC}AlternateContent"
_TEXT_BOX, _SHAPE_TEXT, _WORD_ART = f"{W}txbxContent", f"{_A}p", "{urn:schemas-microsoft-com:vml}textpath"
_SIGNS = {f"{W}tab": "\t", f"{W}ptab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-"}
_NOTES = {f"{W}footnoteReference": "footnote", f"{W}endnoteReference": "endnote"}
_NO_TEXT = frozenset(W + name for name in ("del", "moveFrom", "pPr", "rPr", "sdtPr", "instrText", "delText", "sectPr"))
"""What was deleted or moved away, properties, and the codes of fields."""
_NOT_READ = {
    f"{W}object": "embedded object",
    f"{W}altChunk": "imported file",
    f"{W}subDoc": "subdocument",
    f"{W}control": "form control",
    "{http://schemas.openxmlformats.org/drawingml/2006/chart}chart": "chart",
    "{http://schemas.microsoft.com/office/drawing/2014/chartex}chart": "chart",
    "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds": "diagram",
}
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)


class BlockPlace(Enum):
    """Where a block stands: in the running text, in a list, or beside the text as notes and text boxes do."""

    TEXT = 0
    ITEM = 1
    ASIDE = 2


class WordText:
    """The blocks of one document's parts; counts what it does not read.

    Text boxes and notes follow the paragraph or table that they belong to. A box is stored twice, for new and for old
    versions of Word, and read once. A table of contents made by Word is left out: it repeats the headings.

    Args:
        style: the name of a paragraph's style by its id.
        notes: elements of footnotes and endnotes, by kind and id.
    """

    def __init__(self, style: Callable[[str | None], str], notes: Mapping[tuple[str, str | None], Element]) -> None:
        self._style, self._notes = style, dict(notes)
        self.not_read: Counter[str] = Counter()
        self.comments = 0

    def blocks(self, container: Element) -> Iterator[tuple[TextBlock, BlockPlace]]:
        """The blocks of a body, a header, a note or a text box."""
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
            for each in beside:
                aside = (each,) if isinstance(each, TextBlock) else (block for block, _ in self.blocks(each))
                yield from ((block, BlockPlace.ASIDE) for block in aside)

    def _children(self, container: Element) -> Iterator[Element]:
        """Paragraphs, tables, rows or cells, whatever is wrapped around them."""
        for child in container:
            tag = child.tag
            if tag in _NO_TEXT or not isinstance(tag, str) or _is_deleted(child) or _is_contents(child):
                continue
            if tag in _NOT_READ:
                self.not_read[_NOT_READ[tag]] += 1
            elif tag in _BLOCKS:
                yield child
            else:
                yield from self._children(_branch(child) if tag == _ALTERNATIVES else child)

    def _rows(self, table: Element, beside: list[Element | TextBlock]) -> Iterator[list[str]]:
        """The texts of each row's cells: once where a cell spans columns, in each row where it spans rows."""
        above: dict[int, tuple[Element, str]] = {}
        for row in self._children(table):
            at = int(_value(row, "trPr/gridBefore") or 0)
            here: dict[int, tuple[Element, str]] = {}
            for cell in self._children(row):
                merged = cell.find(f"{W}tcPr/{W}vMerge")
                goes_on = merged is not None and merged.get(f"{W}val", "continue") == "continue" and at in above
                here[at] = above[at] if goes_on else (cell, self._flat(cell, beside))
                at += int(_value(cell, "tcPr/gridSpan") or 1)
            above = here
            cells = list(here.values())
            yield [text for number, (cell, text) in enumerate(cells) if not number or cells[number - 1][0] is not cell]

    def _flat(self, cell: Element, beside: list[Element | TextBlock]) -> str:
        """A cell's text on one line; of a table in it, commas divide the cells and semicolons the rows."""
        texts = []
        for child in self._children(cell):
            if child.tag == _TABLE:
                rows = (", ".join(filter(None, cells)) for cells in self._rows(child, beside))
                texts.append("; ".join(filter(None, rows)))
            else:
                texts.append(self._line(child, beside))
        return " ".join(filter(None, texts))

    def _line(self, element: Element, beside: list[Element | TextBlock]) -> str:
        return self._joined(element if element.tag == _PARAGRAPH else [element], beside)

    def _joined(self, elements: Iterable[Element], beside: list[Element | TextBlock]) -> str:
        pieces: list[str] = []
        self._gather(elements, pieces, beside)
        return " ".join("".join(pieces).split())

    def _gather(self, elements: Iterable[Element], pieces: list[str], beside: list[Element | TextBlock]) -> None:
        """Take the pieces of running text, and what stands beside it."""
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
        """The text of an element that is a piece of its line; ``None`` of any other."""
        tag = element.tag
        if tag == _TEXT:  # a comment or an entity in it does not end it
            return "".join([element.text or "", *(inner.tail or "" for inner in element)])
        if tag == _SYMBOL:
            sign = symbol(element.get(f"{W}font", ""), element.get(f"{W}char", ""))
            self.not_read["symbol"] += sign is None
            return sign or ""
        if tag == _FORMULA:
            return f" {formula(element)} "
        if tag == f"{W}rt":  # how the word before it is pronounced
            return f" ({self._joined(element, beside)}) "
        return _SIGNS.get(tag)

    def _aside(self, element: Element) -> list[Element | TextBlock] | None:
        """What stands beside the line: nothing of what is only counted; ``None`` of elements that are of the line."""
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


def _is_contents(element: Element) -> bool:
    return _value(element, "sdtPr/docPartObj/docPartGallery") == "Table of Contents"


def _branch(alternatives: Element) -> Element:
    """Of the forms of one thing the first that has text; the one for old versions of Word comes last."""
    forms = list(alternatives.iterchildren(f"{_MC}Choice", f"{_MC}Fallback"))
    with_text = (form for form in forms if next(form.iter(_TEXT, f"{_A}t", _WORD_ART), None) is not None)
    return next(with_text, forms[0] if forms else [])


def _block(text: str) -> list[Element | TextBlock]:
    text = " ".join(text.split())
    return [TextBlock(0, text)] if text else []


_UNPACKED = 4
"""How many times the limit on the file's size its content may have."""
_MARGINS = TextBlock(2, "Headers and footers")


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
    title, parts = titled_parts([*_grouped_items(word.blocks(body)), *_once(word, margins)])
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
    references = part.element.body.iter(f"{W}headerReference", f"{W}footerReference")
    relation = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
    idents = dict.fromkeys(reference.get(relation) for reference in references)
    return (part.rels[ident].target_part.element for ident in idents if ident in part.rels)


def _related(part: Any, kind: str) -> Iterator[Any]:
    return (
        each.target_part for each in part.rels.values() if each.reltype.endswith(f"/{kind}") and not each.is_external
    )


def _once(word: WordText, margins: Iterable[Any]) -> Iterator[TextBlock]:
    texts = dict.fromkeys(block.text for margin in margins for block, _ in word.blocks(margin))
    lettered = [text for text in texts if any(map(str.isalpha, text))]
    yield from ([_MARGINS] if lettered else [])
    yield from (TextBlock(0, text) for text in lettered)


def _entities(root: Any) -> int:
    from lxml import etree

    return sum(1 for _ in root.iter(etree.Entity))


def _grouped_items(blocks: Iterable[tuple[TextBlock, BlockPlace]]) -> Iterator[TextBlock]:
    """Items of a list that follow each other are one block; what stands beside them comes behind it."""
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
