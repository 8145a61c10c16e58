"""Responses and documents cut into paragraph-sized passages whose ids lead back (000, 4.2; 001, section 6)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from judges.types import Answer, Document
from retrieval_eval.documents.spans import Span, cut, words

MOST_WORDS = 400

_PIECE = re.compile(r"(.*)#(\d+)of(\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a text: ``text`` is ``whole[start:end]``."""

    passage_id: str
    text: str
    start: int
    end: int


def passages_of(answer: Answer, *, most_words: int = MOST_WORDS) -> tuple[Passage, ...]:
    """Cut a response into passages of whole paragraphs, at most ``most_words`` words each, in its order.

    Short paragraphs share a passage, so that a list of one-liners does not use up the first k passages. A paragraph
    that is too long is cut behind a sentence, a sentence that is too long between words. An empty response has none.

    Raises:
        ValueError: ``most_words`` is less than 1.
    """
    spans = _spans(answer.text, most_words)
    first_id = passage_id_of(answer.query_id, answer.agent, 1)
    return tuple(
        Passage(f"{first_id[:-1]}{number}", answer.text[start:end], start, end)
        for number, (start, end) in enumerate(spans, start=1)
    )


def passages_of_document(document: Document, *, most_words: int = MOST_WORDS) -> tuple[Passage, ...]:
    """Cut a document likewise. One that needs no cut keeps its id, and is the rule.

    Raises:
        ValueError: ``most_words`` is less than 1.
    """
    spans = _spans(document.text, most_words)
    return tuple(
        Passage(piece_id_of(document.doc_id, number, len(spans)), document.text[start:end], start, end)
        for number, (start, end) in enumerate(spans, start=1)
    )


def piece_id_of(doc_id: str, number: int, pieces: int) -> str:
    """``doc_id#2of5``, or ``doc_id`` where it is whole and does not end like that itself, so that no two collide."""
    return doc_id if pieces == 1 and not _PIECE.fullmatch(doc_id) else f"{doc_id}#{number}of{pieces}"


def document_of(passage_id: str) -> tuple[str, int]:
    """The doc_id that a passage's id leads back to, and into how many passages the document was cut.

    Every other id is that of a whole document.
    """
    piece = _PIECE.fullmatch(passage_id)
    return (piece[1], int(piece[3])) if piece else (passage_id, 1)


def passage_id_of(query_id: str, agent: str, number: int) -> str:
    """``query_id/agent#number``; what would be taken for a separator or a space is written %XX, so no two collide."""
    return f"{quote(query_id, safe='')}/{quote(agent, safe='')}#{number}"


def origin_of(passage_id: str) -> tuple[str, str, int] | None:
    """The query_id, the agent and the number, from 1, that a passage's id leads back to; ``None`` for another id."""
    names, _, number = passage_id.rpartition("#")
    query_id, separator, agent = names.partition("/")
    if not separator or not number.isascii() or not number.isdigit():
        return None
    origin = unquote(query_id), unquote(agent), int(number)
    return origin if passage_id_of(*origin) == passage_id else None


def _spans(text: str, most_words: int) -> list[Span]:
    """Where the passages of a text start and end."""
    return list(cut(text, words(text), most_words))
