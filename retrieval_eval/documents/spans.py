"""Where to cut a text: at most so many words or tokens, between paragraphs or behind a sentence where possible."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
"""Characters of a text, from the first to behind the last."""

_WORD = re.compile(r"\S{1,100}")
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W{_CJK}]{{1,8}}|[^\w\s]")
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_SENTENCE_END = re.compile("[.!?\u3002\uff01\uff1f][\"'\u201d\u2019)\\]]*$")


def words(text: str) -> list[Span]:
    """Whatever stands between white space; of what is no word by its length, a hundred characters at a time."""
    return [match.span() for match in _WORD.finditer(text)]


def tokens(text: str) -> list[Span]:
    """Up to eight letters or digits, a single Chinese, Japanese or Korean character, or a mark of punctuation.

    No model's own tokens, which would differ from model to model and need its vocabulary. English prose has about 1.3
    of them a word, as it has of the tokens of current models.
    """
    return [match.span() for match in _TOKEN.finditer(text)]


def cut(text: str, units: Sequence[Span], most: int, overlap: int = 0) -> Iterator[Span]:
    """Spans of at most ``most`` units, which follow each other or share ``overlap`` units.

    Raises:
        ValueError: there is no room for one unit, or the overlap leaves no way forward.
    """
    if most < 1 or not 0 <= overlap < most:
        raise ValueError(f"a passage has one unit at least and fewer in common with the next, not {most} and {overlap}")
    first = 0
    while first < len(units):
        last = _last_unit(text, units, first, most, overlap)
        yield units[first][0], units[last][1]
        first = last + 1 if last == len(units) - 1 else last + 1 - overlap


def _last_unit(text: str, units: Sequence[Span], first: int, most: int, overlap: int) -> int:
    """Number of the span's last unit: the rest, or the last place to cut that leaves at most ``most``.

    Best between paragraphs, else behind a sentence, else between words.
    """
    full = first + most - 1
    if full >= len(units) - 1:
        return len(units) - 1
    window = range(full, first + overlap - 1, -1)
    between = (place for place in window if _PARAGRAPH.search(text, units[place][1], units[place + 1][0]))
    behind = (place for place in window if _SENTENCE_END.search(text, *units[place]))
    apart = (place for place in window if units[place][1] < units[place + 1][0])
    return next(chain(between, behind, apart), full)
