"""Responses cut into paragraph-sized passages whose ids lead back to the response (000, 4.2; 001, section 6)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from judges.types import Answer
from retrieval_eval.documents.spans import cut, words

MOST_WORDS = 400


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a response: ``text`` is ``answer.text[start:end]``."""

    passage_id: str
    query_id: str
    agent: str
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
    names = answer.query_id, answer.agent
    return tuple(
        Passage(passage_id_of(*names, number), *names, answer.text[start:end], start, end)
        for number, (start, end) in enumerate(cut(answer.text, words(answer.text), most_words), start=1)
    )


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
