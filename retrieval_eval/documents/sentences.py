"""Sentences of English text."""

from __future__ import annotations

import re

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])")
_ABBREVIATION = re.compile(r"(?:\b(?:al|cf|eq|fig|sec|vs)|\b[A-Za-z]|\be\.g|\bi\.e)\.$", re.IGNORECASE)


def sentences(text: str) -> list[str]:
    """Sentences in the order of the text; a line break always ends one, an abbreviation never does."""
    found: list[str] = []
    for line in text.splitlines():
        pieces = _pieces(line)
        start = 0
        for position, piece in enumerate(pieces):
            last = position == len(pieces) - 1
            if last or not _ABBREVIATION.search(piece.rstrip()):
                found.append("".join(pieces[start : position + 1]).strip())
                start = position + 1
    return [sentence for sentence in found if sentence]


def _pieces(line: str) -> list[str]:
    """The line cut behind everything that may be the end of a sentence; nothing is lost."""
    ends = [match.end() for match in _SENTENCE_END.finditer(line)]
    return [line[start:end] for start, end in zip([0, *ends], [*ends, len(line)], strict=True)]
