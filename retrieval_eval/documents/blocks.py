"""Headings and texts in reading order -> titled parts: what Markdown, HTML and DOCX have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from retrieval_eval.documents.types import Part


@dataclass(frozen=True, slots=True)
class Block:
    """A heading (``level`` 1 to 6) or a piece of running text (``level`` 0)."""

    level: int
    text: str


def titled_parts(blocks: Iterable[Block]) -> tuple[str, tuple[Part, ...]]:
    """The document's title, which is its first heading of level 1, and a part for each heading that has text below it.

    A paragraph that ends in a colon stays together with the list, table or code that it introduces.
    """
    title, heading = "", ""
    parts: list[Part] = []
    paragraphs: list[str] = []
    for block in _with_introductions(blocks):
        if block.level == 0:
            paragraphs.append(block.text)
            continue
        if paragraphs:
            parts.append(Part(heading, None, tuple(paragraphs)))
            paragraphs = []
        if block.level == 1 and not title:
            title = block.text
        else:
            heading = block.text
    if paragraphs:
        parts.append(Part(heading, None, tuple(paragraphs)))
    return title, tuple(parts)


def _with_introductions(blocks: Iterable[Block]) -> Iterator[Block]:
    """Join a paragraph ending in a colon to the text behind it."""
    introduction = ""
    for block in blocks:
        if introduction and block.level:
            yield Block(0, introduction)
            introduction = ""
        text = f"{introduction}\n{block.text}" if introduction else block.text
        introduction = ""
        if not block.level and text.endswith(":"):
            introduction = text
        else:
            yield Block(block.level, text)
    if introduction:
        yield Block(0, introduction)
