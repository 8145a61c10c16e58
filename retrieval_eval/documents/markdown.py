"""Markdown: CommonMark with tables."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from retrieval_eval.documents.blocks import Block, titled_parts
from retrieval_eval.documents.types import Extract, amounts

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_DEEPEST = 200
"""Levels of quotes and lists that are read; the preset's 20 would lose text of long outlines without a word."""


_CONTAINERS = frozenset({"blockquote_open", "bullet_list_open", "ordered_list_open", "list_item_open"})
_COMMENT = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def read_markdown(text: str) -> Extract:
    """The title and the parts; a list, a table or a block of code is one paragraph. HTML in it is read as HTML."""
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

    tokens = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable("table").parse(text)
    html = _Html()
    title, parts = titled_parts(_blocks(SyntaxTreeNode(tokens), html))
    problems, notes = html.unseen()
    if any(token.level >= _DEEPEST - 1 and token.type in _CONTAINERS for token in tokens):
        problems = (*problems, f"what is nested deeper than {_DEEPEST} levels is not read")
    return Extract(title, parts, problems, notes)


class _Html:
    """Reads the HTML in Markdown where the library for it is there, and counts what is not read."""

    def __init__(self) -> None:
        self._readable = importlib.util.find_spec("lxml") is not None
        self._unread = 0
        self._unseen = Counter[str]()

    def blocks(self, content: str) -> list[Block]:
        if self._readable:
            from retrieval_eval.documents.html import html_blocks

            return html_blocks(content, self._unseen)
        self._unread += not _COMMENT.fullmatch(content)
        return []

    def unseen(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The problems and the notes of an extract."""
        if self._readable:
            from retrieval_eval.documents.html import unseen_text

            return unseen_text(self._unseen)
        unread = amounts({"HTML block": self._unread})
        return (f"{unread} not read without the extra 'documents' ('ragleague doctor' says how to install it)",) * bool(
            unread
        ), ()


def _blocks(root: SyntaxTreeNode, html: _Html) -> Iterator[Block]:
    for node in root.children:
        if node.type == "html_block":
            yield from html.blocks(node.content)
            continue
        plain = "\n".join(line for line in _lines(node, html) if line)
        if plain:
            yield Block(int(node.tag[1]) if node.type == "heading" else 0, plain)


def _lines(node: SyntaxTreeNode, html: _Html) -> Iterator[str]:
    """The plain text of a block, one line for each paragraph, list item, table row or line of code in it."""
    if node.type in {"fence", "code_block"}:
        yield from node.content.rstrip().splitlines()
    elif node.type == "html_block":
        yield from (block.text for block in html.blocks(node.content))
    elif node.type == "tr":
        yield " | ".join(" ".join(_lines(cell, html)) for cell in node.children)
    elif node.type == "inline":
        yield " ".join("".join(_inline_text(child) for child in node.children).split())
    else:
        for child in node.children:
            yield from _lines(child, html)


def _inline_text(node: SyntaxTreeNode) -> str:
    if node.type in {"softbreak", "hardbreak"} or (node.type == "html_inline" and _BREAK.fullmatch(node.content)):
        return " "
    if node.type in {"text", "code_inline"}:
        return node.content
    return "".join(_inline_text(child) for child in node.children)
