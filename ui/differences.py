"""Where two answers differ, word by word, as inert HTML."""

from __future__ import annotations

import html
import re
from typing import Final

MOST_CHARACTERS: Final = 20_000
"""Of an answer; longer ones are not compared: that takes time that grows with the product of both lengths."""

_PIECES = re.compile(r"\S+|\s+")


def similarity(left: str, right: str) -> float | None:
    """Share of words that both answers have in the same order, from 0 to 1; ``None`` for long ones."""
    from rapidfuzz.distance import LCSseq

    if max(len(left), len(right)) > MOST_CHARACTERS:
        return None
    return float(LCSseq.normalized_similarity(_words(left), _words(right)))


def marked(left: str, right: str) -> tuple[str, str]:
    """Both texts as HTML, escaped, with ``<mark>`` around the words that the other one does not have there."""
    from rapidfuzz.distance import LCSseq

    ours, theirs = _words(left), _words(right)
    common: tuple[set[int], set[int]] = set(), set()
    for step in LCSseq.opcodes(ours, theirs):
        if step.tag == "equal":
            common[0].update(range(step.src_start, step.src_end))
            common[1].update(range(step.dest_start, step.dest_end))
    return _html(left, common[0]), _html(right, common[1])


def _words(text: str) -> list[str]:
    return [word.casefold() for word in text.split()]


def _html(text: str, common: set[int]) -> str:
    """The text with runs of words that are not common inside marks."""
    out: list[str] = []
    is_open, number = False, 0
    for piece in _PIECES.findall(text):
        if piece.isspace():
            out.append(piece)
            continue
        wanted = number not in common
        if wanted and not is_open:
            out.append("<mark>")
        elif is_open and not wanted:
            out.insert(-1, "</mark>")  # before the space that is there
        is_open = wanted
        out.append(html.escape(piece))
        number += 1
    return "".join(out) + ("</mark>" if is_open else "")
