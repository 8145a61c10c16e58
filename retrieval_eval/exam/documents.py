"""Grades of passages as grades of the documents that they are cut from.

Rankings and people's labels are about documents, so a document that was graded passage by passage gets one grade of
each item: the highest of its passages, since one of them is enough to answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from retrieval_eval.exam.grades import Grade, Graded
from retrieval_eval.exam.passages import document_of

_CHECKED, _RATED = 1, 5
"""The highest grades: of a checked answer, and of a rating."""


def by_document(graded: Graded) -> Graded:
    """The same by document; it is ``graded`` itself where no id is that of a document's piece."""
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
    """The grade of each document and item, with the answer of the passage that has it.

    A document of which a passage lacks its grade is ungraded, unless another passage has the highest grade there is:
    the missing one might be higher.

    Args:
        entries: of one grader.
        cut: of passages that are pieces, the doc_id and how many pieces the document has.
        highest: the highest grade that may be given.
    """
    found: dict[tuple[str, str, str], list[Grade]] = {}
    pieces: dict[str, int] = {}
    for entry in entries:
        doc_id, number = cut.get(entry.passage_id, (entry.passage_id, 1))
        pieces[doc_id] = number
        found.setdefault((entry.query_id, doc_id, entry.item_id), []).append(entry)
    return [_whole(key, own, pieces[key[1]], highest) for key, own in found.items()]


def _whole(key: tuple[str, str, str], own: list[Grade], pieces: int, highest: int) -> Grade:
    grades = [entry.grade for entry in own if entry.grade is not None]
    best = max(grades, default=None)
    said = (entry.answer for entry in sorted(own, key=lambda entry: entry.grade != best) if entry.answer)
    known = len(grades) == pieces or best == highest
    return Grade(*key, best if known else None, next(said, ""))


def _joined(texts: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for passage_id, text in texts.items():
        found.setdefault(document_of(passage_id)[0], []).append(text)
    return {doc_id: "\n\n".join(own) for doc_id, own in found.items()}


def _highest(labels: Mapping[str, int], names: Mapping[str, str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for passage_id, label in labels.items():
        doc_id = names.get(passage_id, passage_id)
        found[doc_id] = max(label, found.get(doc_id, label))
    return found
