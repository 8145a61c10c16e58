"""Markdown: CommonMark with tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from retrieval_eval.documents.blocks import Block, titled_parts
from retrieval_eval.documents.types import Part

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_DEEPEST = 200
"""Levels of quotes and lists that are read; the preset's 20 would lose text of long outlines without a word."""


def markdown_parts(text: str) -> tuple[str, tuple[Part, ...]]:
    """The title and the parts; a list, a table or a block of code is one paragraph."""
    return titled_parts(_blocks(text))


def _blocks(text: str) -> Iterator[Block]:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

    for node in SyntaxTreeNode(MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable("table").parse(text)).children:
        plain = "\n".join(line for line in _lines(node) if line)
        if plain:
            yield Block(int(node.tag[1]) if node.type == "heading" else 0, plain)


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
