"""Readers of plain text, HTML (without menus and scripts), Markdown (CommonMark with tables), and the text of PDFs."""

from __future__ import annotations

import codecs
import importlib.util
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_eval.documents.types import (
    DocumentPart,
    Extract,
    Limits,
    TextBlock,
    UnreadableError,
    amounts,
    titled_parts,
)

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode
    from pypdf import PageObject, PdfReader


_BLANK_LINE = re.compile(r"\n\s*\n|\f")


def decoded(content: bytes) -> str:
    """Decode UTF-8 bytes, or UTF-16 with a byte order mark; all line breaks become LF."""
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    return without_nul(text).replace("\r\n", "\n").replace("\r", "\n")


def without_nul(text: str) -> str:
    if "\0" in text:
        raise UnreadableError("holds NUL bytes; is it a text file?")
    return text


def read_plain(text: str) -> Extract:
    """Plain text as one part without a heading; blank lines separate its paragraphs."""
    blocks = ("\n".join(line.strip() for line in block.split("\n")) for block in _BLANK_LINE.split(text))
    paragraphs = tuple(filter(None, (paragraph.strip() for paragraph in blocks)))
    return Extract("", (DocumentPart("", None, paragraphs),) if paragraphs else ())


_DECLARED = re.compile(rb"""charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_DECLARED_WITHIN = 1024
"""An HTML page must declare its encoding within this many bytes from its start (HTML standard)."""
_LATIN = frozenset({"iso8859-1", "ascii"})
"""Declared encodings that browsers read as Windows-1252 (Encoding standard)."""

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_UNSEEN = frozenset(
    {"head", "script", "style", "noscript", "template", "svg", "math", "iframe", "nav", "footer", "select", "button"}
)
_NOT_READ = {"math": "MathML formula", "svg": "SVG text"}
_LEFT_OUT = {"noscript": "<noscript> element", "template": "<template> element"}
_GROUPS = frozenset({"ul", "ol", "dl", "table", "pre"})
_INLINE = frozenset(
    """a abbr b bdi bdo big cite code data del dfn em font i img ins kbd label mark q s samp small span strike strong
    sub sup time tt u var wbr""".split()  # noqa: SIM905 - easier to read than a list
)
_SPACE = re.compile(r"\s+")
_CELLS = frozenset({"td", "th"})


def read_html(content: bytes) -> Extract:
    root = _parsed(_decoded_html(content))
    if root is None:
        return Extract("", ())
    unseen = Counter[str]()
    title, parts = titled_parts(_html_blocks(root, unseen))
    head = root.find(".//title")
    title = title or " ".join((head.text or "").split() if head is not None else [])
    return Extract(title, parts, *unseen_text(unseen))


def unseen_text(unseen: Counter[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    problems, notes = (amounts({noun: unseen[tag] for tag, noun in nouns.items()}) for nouns in (_NOT_READ, _LEFT_OUT))
    return (f"{problems} not read",) * bool(problems), (f"{notes} left out",) * bool(notes)


def _parsed(text: str) -> Any:
    from lxml import etree

    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    if root is not None and any("depth" in entry.message for entry in parser.error_log):
        raise UnreadableError("its elements are nested too deeply")
    return root


def _decoded_html(content: bytes) -> str:
    if content.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return decoded(content)
    declared = _DECLARED.search(content[:_DECLARED_WITHIN])
    if declared is None:
        return decoded(content)
    name = declared[1].decode("ascii", "replace")
    try:
        encoding = codecs.lookup(name).name
        if encoding.startswith("utf-16"):  # then the declaration would be unreadable; browsers assume UTF-8
            return decoded(content)
        return without_nul(content.decode("cp1252" if encoding in _LATIN else encoding))
    except LookupError as error:
        raise UnreadableError(f"declares the encoding {name!r}, which is not known") from error
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not {name}, the encoding that it declares (byte {error.start})") from error


def _html_blocks(root: Any, unseen: Counter[str]) -> Iterator[TextBlock]:
    """Yields the text blocks of an HTML page, without recursion, since its elements may be nested very deeply.

    Text after the end of the page is read too: libxml2 puts it into siblings of the root element.
    """
    from lxml import etree

    gathered, hidden = _Gathered(), 0
    trees = (root, *root.itersiblings())
    for event, element in (step for tree in trees for step in etree.iterwalk(tree, events=("start", "end"))):
        begins = event == "start"
        if element.tag in _UNSEEN:
            hidden += 1 if begins else -1
            unseen[element.tag] += begins and hidden == 1 and _has_text(element)
        elif not hidden and element.tag not in _INLINE:
            yield from gathered.boundary(element.tag, begins=begins)
        if not hidden and (text := element.text if begins else element.tail):
            gathered.add(text)
    yield from gathered.taken()


def _has_text(element: Any) -> bool:
    parts = element.iter("text") if element.tag == "svg" else (element,)
    return any(text.strip() for part in parts for text in part.itertext())


class _Gathered:
    """Collects the text of an HTML page, and yields a block whenever a tag ends one."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._level = 0
        self._groups = 0
        self._cells = 0
        self._verbatim = 0

    def add(self, text: str) -> None:
        """Add text to the current block; line breaks are kept within ``pre`` elements and become spaces elsewhere."""
        self._pieces.append(text if self._verbatim else _SPACE.sub(" ", text))

    def boundary(self, tag: str, *, begins: bool) -> Iterator[TextBlock]:
        """Handle the tag of a block element: it ends the current block, unless in a list, table or ``pre``."""
        if tag == "br":
            self._pieces.append("\n" if self._groups else " ")
        elif tag in _CELLS:
            self._cells += 1 if begins else -1
            self._pieces.append("" if begins else " | ")
        elif tag in _GROUPS:
            if not self._groups:
                yield from self.taken()
            self._groups += 1 if begins else -1
            self._verbatim += (1 if begins else -1) * (tag == "pre")
            self._pieces.append("\n")
            if not self._groups:
                yield from self.taken()
        elif self._groups:
            self._pieces.append(" " if self._cells else "\n")
        elif tag in _HEADINGS or not self._level:
            yield from self.taken()
            self._level = _HEADINGS.get(tag, 0) if begins else 0

    def taken(self) -> Iterator[TextBlock]:
        """Yields the collected text, if any, as a block, white space collapsed in each line; starts a new block."""
        lines = (" ".join(line.split()).removesuffix(" |") for line in "".join(self._pieces).split("\n"))
        block = "\n".join(line for line in lines if line)
        self._pieces.clear()
        if block:
            yield TextBlock(self._level, block)


_DEEPEST = 200
"""Most levels of nested Markdown quotes and lists; markdown-it's default of 20 would silently lose deeper text."""


_CONTAINERS = frozenset({"blockquote_open", "bullet_list_open", "ordered_list_open", "list_item_open"})
_COMMENT = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def read_markdown(text: str) -> Extract:
    """Read the title and parts of a Markdown text and of HTML in it; a list, table or code block is one paragraph."""
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

    tokens = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable("table").parse(text)
    html = _InnerHtml()
    title, parts = titled_parts(_markdown_blocks(SyntaxTreeNode(tokens), html))
    problems, notes = html.unseen()
    if any(token.level >= _DEEPEST - 1 and token.type in _CONTAINERS for token in tokens):
        problems = (*problems, f"what is nested deeper than {_DEEPEST} levels is not read")
    return Extract(title, parts, problems, notes)


class _InnerHtml:
    """Reads HTML within Markdown if lxml is installed, and counts the HTML elements that are not read."""

    def __init__(self) -> None:
        self._readable = importlib.util.find_spec("lxml") is not None
        self._unread = 0
        self._unseen = Counter[str]()

    def blocks(self, content: str) -> list[TextBlock]:
        if self._readable:
            root = _parsed(content)
            return [] if root is None else list(_html_blocks(root, self._unseen))
        self._unread += not _COMMENT.fullmatch(content)
        return []

    def unseen(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if self._readable:
            return unseen_text(self._unseen)
        unread = amounts({"HTML block": self._unread})
        return (f"{unread} not read without the extra 'documents' ('ragleague doctor' says how to install it)",) * bool(
            unread
        ), ()


def _markdown_blocks(root: SyntaxTreeNode, html: _InnerHtml) -> Iterator[TextBlock]:
    for node in root.children:
        if node.type == "html_block":
            yield from html.blocks(node.content)
            continue
        plain = "\n".join(line for line in _markdown_lines(node, html) if line)
        if plain:
            yield TextBlock(int(node.tag[1]) if node.type == "heading" else 0, plain)


def _markdown_lines(node: SyntaxTreeNode, html: _InnerHtml) -> Iterator[str]:
    """Yields the plain text of a Markdown block, one line per paragraph, list item, table row or line of code."""
    if node.type in {"fence", "code_block"}:
        yield from node.content.rstrip().splitlines()
    elif node.type == "html_block":
        yield from (block.text for block in html.blocks(node.content))
    elif node.type == "tr":
        yield " | ".join(" ".join(_markdown_lines(cell, html)) for cell in node.children)
    elif node.type == "inline":
        yield " ".join("".join(_inline_text(child) for child in node.children).split())
    else:
        for child in node.children:
            yield from _markdown_lines(child, html)


def _inline_text(node: SyntaxTreeNode) -> str:
    if node.type in {"softbreak", "hardbreak"} or (node.type == "html_inline" and _BREAK.fullmatch(node.content)):
        return " "
    if node.type in {"text", "code_inline"}:
        return node.content
    return "".join(_inline_text(child) for child in node.children)


_ENCRYPTED = "is encrypted; save it without a password"
_PAINTS = frozenset({b"Do", b"INLINE IMAGE", b"sh", b"f", b"F", b"f*", b"B", b"B*", b"b", b"b*"})
_OFFSETS = re.compile(r"xref|Object Streams|Object .* found|wrong pointing object|ref repaired", re.IGNORECASE)
"""Matches log messages of pypdf about wrong offsets in the cross-reference table."""
_LOST = re.compile(
    "object not found|ignoring the stream|skipping the entry|page tree entry|broken line|content is skipped"
    "|Impossible to decode|may be missing|might not be read|Invalid stream|contents are not|[rR]esources are not"
)
"""Matches log messages of pypdf about content that it could not read."""
_PDF_NUMBER = re.compile(r"\d+")
_MOST_MESSAGES = 10


def read_pdf(path: Path, limits: Limits) -> Extract:
    """Read the pages' text, and describe text that is missing: unreadable or scanned pages, filled forms, attachments.

    Encrypted files are opened with the empty password, as viewers do. If the cross-reference table is wrong, pypdf
    searches the file for the objects; this and other repairs are listed in the notes. For a broken file, pypdf may
    raise any exception.
    """
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    with _pypdf_messages() as messages:
        reader = PdfReader(path)
        try:
            if reader.is_encrypted and not reader.decrypt(""):
                raise UnreadableError(_ENCRYPTED)
            number = len(reader.pages)
        except (DependencyError, FileNotDecryptedError) as error:
            raise UnreadableError(_ENCRYPTED) from error
        if number > limits.pages:
            raise UnreadableError(f"has {number} pages, more than {limits.pages}")
        parts, problems = _pages(reader, number, limits)
        title = _pdf_title(reader)
        problems += _unread_texts(reader)
    lost = [message for message in messages if _LOST.search(message)]
    other = [message for message in messages if message not in lost]
    mended = ["wrong cross-reference offsets"] if any(map(_OFFSETS.search, other)) else []
    mended += [message for message in other if not _OFFSETS.search(message)]
    return Extract(
        title,
        tuple(parts),
        (*problems, *(f"is damaged: {message}" for message in lost)),
        tuple(f"recovered: {message}" for message in mended),
    )


def _pages(reader: PdfReader, number: int, limits: Limits) -> tuple[list[DocumentPart], list[str]]:
    parts: list[DocumentPart] = []
    problems: list[str] = []
    pictures: list[int] = []
    remaining = limits.characters
    for index in range(number):
        try:
            page = reader.pages[index]
            text = page.extract_text()
            if not text.strip() and _paints(page):
                pictures.append(index + 1)
        except Exception as error:  # a broken page may raise anything, and the others may be fine
            problems.append(f"page {index + 1} cannot be read: {type(error).__name__}: {error}")
            continue
        remaining -= len(text)
        if remaining < 0:
            raise UnreadableError(f"has more than {limits.characters} characters of text")
        if paragraphs := page_paragraphs(text):
            parts.append(DocumentPart("", index + 1, paragraphs))
    if pictures and parts:
        which = f"page {pictures[0]} shows" if len(pictures) == 1 else f"pages {_ranges(pictures)} show"
        problems.append(f"{which} pictures and no text; scanned?")
    return parts, problems


def _paints(page: PageObject) -> bool:
    """Whether a page without text draws a picture or fills an area, as scanned pages do and empty pages do not."""
    content = page.get_contents()
    return content is not None and any(operator in _PAINTS for _, operator in content.operations)


def _ranges(pages: Sequence[int]) -> str:
    page_ranges: list[list[int]] = []
    for page in pages:
        if page_ranges and page_ranges[-1][-1] == page - 1:
            page_ranges[-1] = [page_ranges[-1][0], page]
        else:
            page_ranges.append([page])
    return ", ".join("-".join(map(str, page_range)) for page_range in page_ranges)


def _unread_texts(reader: PdfReader) -> list[str]:
    """Describe text outside the page contents, which is not read: numbers of form fields, annotations, attachments."""
    counts = Counter[str]()
    try:
        counts["filled form field"] = sum(bool(_field_text(field)) for field in (reader.get_fields() or {}).values())
        for page in reader.pages:
            annotations = (note.get_object() for note in page.get("/Annots") or ())
            counts["text annotation"] += sum(note.get("/Subtype") == "/FreeText" for note in annotations)
        counts["attached file"] = len(reader.attachments)
    except Exception as error:  # a broken file may raise anything
        return [f"its forms and attachments cannot be read: {type(error).__name__}: {error}"]
    unread = amounts(counts)
    return [f"{unread} not read"] if unread else []


def _field_text(field: Any) -> str:
    """The text that someone entered into a form field; the state of a ticked box is no text."""
    from pypdf.generic import TextStringObject

    value = field.get("/V")
    return value.strip() if isinstance(value, TextStringObject) else ""


@contextmanager
def _pypdf_messages() -> Iterator[list[str]]:
    """Collect pypdf's log messages within the block; of messages that differ only in numbers only the first."""
    messages: dict[str, str] = {}

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if len(messages) < _MOST_MESSAGES:
                message = record.getMessage()
                messages.setdefault(_PDF_NUMBER.sub("0", message), message)

    log, listener = logging.getLogger("pypdf"), Listener()
    log.addHandler(listener)
    texts: list[str] = []
    try:
        yield texts
    finally:
        log.removeHandler(listener)
        texts += messages.values()


def page_paragraphs(text: str) -> tuple[str, ...]:
    """The paragraphs of a PDF page's text, which blank lines separate, each joined into one line.

    A word divided at a line break keeps its hyphen, since the hyphen may be part of the word.
    """
    joined = (re.sub(r"(?<=\w-)\n(?=\w)", "", block.strip()) for block in _BLANK_LINE.split(text))
    return tuple(filter(None, (" ".join(block.split()) for block in joined)))


def _pdf_title(reader: object) -> str:
    try:
        title = getattr(getattr(reader, "metadata", None), "title", None)
    except Exception:  # the document is readable without a title
        return ""
    return " ".join(title.split()) if isinstance(title, str) else ""
