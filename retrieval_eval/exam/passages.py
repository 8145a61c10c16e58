"""Cuts responses and documents into passages (000, 4.2; 001, section 6), and merges grades of passages by document.

A passage's id encodes its response or document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace

from judges.types import Answer, Document
from judges.writing import Span, word_spans
from retrieval_eval.documents.passages import cut
from retrieval_eval.exam.grades import Grade, Graded

MOST_WORDS = 400

_PIECE = re.compile(r"(.*)#(\d+)of(\d+)", re.DOTALL)


class Passage(Struct, frozen=True):
    """A piece of a text: ``text`` is ``whole[start:end]``."""

    passage_id: str
    text: str
    start: int
    end: int


def passages_of(answer: Answer, *, most_words: int = MOST_WORDS) -> tuple[Passage, ...]:
    """Cut a response into passages of whole paragraphs with at most ``most_words`` words each, in order.

    Short paragraphs share a passage, so that a list of short lines does not use up the first k passages. A paragraph
    that is too long is cut after a sentence, and a sentence that is too long between words. An empty response has no
    passages.

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
    """Cut a document like ``passages_of``; a document that fits into one passage keeps its id.

    Raises:
        ValueError: ``most_words`` is less than 1.
    """
    spans = _spans(document.text, most_words)
    return tuple(
        Passage(piece_id_of(document.doc_id, number, len(spans)), document.text[start:end], start, end)
        for number, (start, end) in enumerate(spans, start=1)
    )


def piece_id_of(doc_id: str, number: int, pieces: int) -> str:
    """``doc_id#2of5``; for a whole document just ``doc_id``, unless that looks like a piece's id."""
    return doc_id if pieces == 1 and not _PIECE.fullmatch(doc_id) else f"{doc_id}#{number}of{pieces}"


def document_of(passage_id: str) -> tuple[str, int]:
    """The doc_id of a passage and the document's number of passages; other ids belong to whole documents."""
    piece = _PIECE.fullmatch(passage_id)
    return (piece[1], int(piece[3])) if piece else (passage_id, 1)


def passage_id_of(query_id: str, agent: str, number: int) -> str:
    """``query_id/agent#number``, percent-encoded so that different passages have different ids."""
    return f"{quote(query_id, safe='')}/{quote(agent, safe='')}#{number}"


def origin_of(passage_id: str) -> tuple[str, str, int] | None:
    """The query_id, agent and passage number (from 1) of a passage's id; ``None`` for ids of another form."""
    names, _, number = passage_id.rpartition("#")
    query_id, separator, agent = names.partition("/")
    if not separator or not number.isascii() or not number.isdigit():
        return None
    origin = unquote(query_id), unquote(agent), int(number)
    return origin if passage_id_of(*origin) == passage_id else None


def _spans(text: str, most_words: int) -> list[Span]:
    return list(cut(text, word_spans(text), most_words))


_CHECKED, _RATED = 1, 5
"""Highest grade of a checked answer, and highest rating."""


def by_document(graded: Graded) -> Graded:
    """Merge the passages of each document; returns ``graded`` itself if no passage is a piece of a document."""
    origins = {entry.passage_id for entries in graded.grades.values() for entry in entries}
    cut = {passage_id: origin for passage_id in origins if (origin := document_of(passage_id))[0] != passage_id}
    if not cut:
        return graded
    names = {passage_id: doc_id for passage_id, (doc_id, _) in cut.items()}
    return replace(
        graded,
        grades={
            grader: document_grades(entries, cut, highest=_RATED if grader in graded.rated else _CHECKED)
            for grader, entries in graded.grades.items()
        },
        passages={query_id: _joined(texts) for query_id, texts in graded.passages.items()},
        rankings={
            key: tuple(dict.fromkeys(names.get(passage_id, passage_id) for passage_id in ranking))
            for key, ranking in graded.rankings.items()
        },
        labels={query_id: _highest(labels, names) for query_id, labels in graded.labels.items()},
    )


def document_grades(entries: Iterable[Grade], cut: Mapping[str, tuple[str, int]], *, highest: int) -> list[Grade]:
    """For each document and item, the grade and answer of the document's best passage.

    A document with an ungraded passage is ungraded, because the missing grade may be the highest, unless
    another passage has the highest possible grade.

    Args:
        entries: grades of one grader.
        cut: doc_id and number of pieces by passage_id, for passages that are pieces of a document.
        highest: the highest possible grade.
    """
    by_document_item: dict[tuple[str, str, str], list[Grade]] = {}
    document_pieces: dict[str, int] = {}
    for entry in entries:
        doc_id, number = cut.get(entry.passage_id, (entry.passage_id, 1))
        document_pieces[doc_id] = number
        by_document_item.setdefault((entry.query_id, doc_id, entry.item_id), []).append(entry)
    return [
        _document_grade(key, passage_grades, document_pieces[key[1]], highest)
        for key, passage_grades in by_document_item.items()
    ]


def _document_grade(key: tuple[str, str, str], entries: list[Grade], pieces: int, highest: int) -> Grade:
    grades = [entry.grade for entry in entries if entry.grade is not None]
    best = max(grades, default=None)
    answers = (entry.answer for entry in sorted(entries, key=lambda entry: entry.grade != best) if entry.answer)
    known = len(grades) == pieces or best == highest
    return Grade(*key, best if known else None, next(answers, ""))


def _joined(texts: Mapping[str, str]) -> dict[str, str]:
    pieces: dict[str, list[str]] = {}
    for passage_id, text in texts.items():
        pieces.setdefault(document_of(passage_id)[0], []).append(text)
    return {doc_id: "\n\n".join(document_texts) for doc_id, document_texts in pieces.items()}


def _highest(labels: Mapping[str, int], names: Mapping[str, str]) -> dict[str, int]:
    document_labels: dict[str, int] = {}
    for passage_id, label in labels.items():
        doc_id = names.get(passage_id, passage_id)
        document_labels[doc_id] = max(label, document_labels.get(doc_id, label))
    return document_labels
