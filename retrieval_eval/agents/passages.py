"""Markdown files -> paragraph-sized passages with stable ids and titles."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from judges.errors import DataError
from judges.types import Document

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode


@dataclass(frozen=True, slots=True)
class _Block:
    """A heading (``level`` 1 to 6) or a piece of running text (``level`` 0)."""

    level: int
    text: str


def read_folder(folder: Path, *, exclude: Collection[str] = ()) -> list[Document]:
    """The passages of all Markdown files below a folder, in the order of their paths.

    Args:
        folder: where to look, at any depth.
        exclude: file names to leave out, such as an index that only repeats titles.

    Raises:
        DataError: there is no passage, or a file is not UTF-8 text.
    """
    paths = sorted(
        (path for path in folder.rglob("*.md") if path.name not in exclude),
        key=lambda path: path.relative_to(folder).as_posix(),
    )
    passages = [passage for path in paths for passage in _file_passages(path, folder)]
    if not passages:
        raise DataError(folder, "holds no Markdown file with text; name a folder of .md files")
    return passages


def _file_passages(path: Path, folder: Path) -> list[Document]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(path, f"is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    return markdown_passages(text, path.relative_to(folder).with_suffix("").as_posix())


def markdown_passages(text: str, source: str) -> list[Document]:
    """One passage per paragraph, list, table or code block.

    A passage is named ``source#section-n``, its number counted within its section, so that an edit in one section
    leaves the ids of the others alone. ``title`` in its metadata is "Page: Section". A paragraph that ends in a
    colon stays together with the list, table or code that it introduces.

    Args:
        text: CommonMark with tables.
        source: the page's name, the first part of every id.
    """
    page, section = "", ""
    numbers: Counter[str] = Counter()
    passages: list[Document] = []
    for block in _with_introductions(_blocks(text)):
        if block.level == 1 and not page:
            page = block.text
        elif block.level:
            section = block.text
        else:
            slug = _slug(section)
            numbers[slug] += 1
            title = ": ".join(part for part in (page or source, section) if part)
            passages.append(Document(_doc_id(source, slug, numbers[slug]), block.text, {"title": title}))
    return passages


def _slug(heading: str) -> str:
    return re.sub(r"\W+", "-", heading.lower()).strip("-")


def _doc_id(source: str, slug: str, number: int) -> str:
    """An id without white space, which TREC files do not allow, and never the same for two passages."""
    page = re.sub(r"[\s%#]", lambda match: quote(match[0]), source)
    return f"{page}#{slug}-{number}" if slug else f"{page}#{number}"


def _with_introductions(blocks: Iterator[_Block]) -> Iterator[_Block]:
    """Join a paragraph ending in a colon to the text behind it."""
    introduction = ""
    for block in blocks:
        if introduction and block.level:
            yield _Block(0, introduction)
            introduction = ""
        text = f"{introduction}\n{block.text}" if introduction else block.text
        introduction = ""
        if not block.level and text.endswith(":"):
            introduction = text
        else:
            yield _Block(block.level, text)
    if introduction:
        yield _Block(0, introduction)


def _blocks(text: str) -> Iterator[_Block]:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

    for node in SyntaxTreeNode(MarkdownIt("commonmark").enable("table").parse(text)).children:
        plain = "\n".join(line for line in _lines(node) if line)
        if plain:
            yield _Block(int(node.tag[1]) if node.type == "heading" else 0, plain)


def _lines(node: SyntaxTreeNode) -> Iterator[str]:
    """The plain text of a block, one line for each paragraph, list item, table row or line of code in it."""
    if node.type in {"fence", "code_block"}:
        yield from node.content.rstrip().splitlines()
    elif node.type == "tr":
        yield " | ".join(" ".join(_lines(cell)) for cell in node.children)
    elif node.type == "inline":
        yield " ".join("".join(_inline_text(child) for child in node.children).split())
    else:
        for child in node.children:
            yield from _lines(child)


def _inline_text(node: SyntaxTreeNode) -> str:
    if node.type in {"softbreak", "hardbreak"}:
        return " "
    if node.type in {"text", "code_inline"}:
        return node.content
    return "".join(_inline_text(child) for child in node.children)
