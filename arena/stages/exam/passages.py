"""What of a tournament's data an exam grades: passages of the answers, or the documents that agents retrieved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arena.config.exam import ExamSection
from arena.data.dataset import Dataset
from judges.types import Document
from retrieval_eval.exam.grades import Rankings
from retrieval_eval.exam.passages import document_of, passages_of, passages_of_document


@dataclass(frozen=True)
class Material:
    """What is graded.

    Attributes:
        passages: by query_id; a passage that several agents have stands there once.
        rankings: what makes up each agent's response, in order: passages of its answer, or documents.
    """

    passages: Mapping[str, tuple[Document, ...]]
    rankings: Rankings

    @property
    def texts(self) -> dict[str, dict[str, str]]:
        """By query_id and passage_id."""
        return {query_id: {own.doc_id: own.text for own in passages} for query_id, passages in self.passages.items()}

    @property
    def passage_rankings(self) -> Rankings:
        """The rankings with each document as its passages."""
        pieces: dict[tuple[str, str], list[str]] = {}
        for query_id, passages in self.passages.items():
            for passage in passages:
                pieces.setdefault((query_id, document_of(passage.doc_id)[0]), []).append(passage.doc_id)
        return {
            (query_id, agent): tuple(piece for name in ranking for piece in pieces.get((query_id, name), (name,)))
            for (query_id, agent), ranking in self.rankings.items()
        }


def material(data: Dataset, section: ExamSection) -> Material:
    """Cut what is to be graded, down to the depth of each agent."""
    return _documents(data, section) if section.texts == "documents" else _answers(data, section)


def _answers(data: Dataset, section: ExamSection) -> Material:
    """None of an empty answer, which is a response all the same."""
    found: dict[str, list[Document]] = {}
    rankings = {}
    for (query_id, agent), answer in data.answers.items():
        own = passages_of(answer, most_words=section.passage_words)[: section.depth]
        found.setdefault(query_id, []).extend(Document(passage.passage_id, passage.text) for passage in own)
        rankings[query_id, agent] = tuple(passage.passage_id for passage in own)
    return Material({query_id: tuple(own) for query_id, own in found.items()}, rankings)


def _documents(data: Dataset, section: ExamSection) -> Material:
    """A document without text has nothing to grade, and is none of a ranking."""
    found: dict[str, dict[str, tuple[Document, ...]]] = {query_id: {} for query_id in data.retrieved}
    ranked: dict[tuple[str, str], list[str]] = {key: [] for key in data.rankings}
    for key, ranking in data.rankings.items():
        cut, own = found[key[0]], ranked[key]
        for doc_id in ranking:
            if len(own) == section.depth:
                break
            if doc_id not in cut:
                cut[doc_id] = _pieces(data.documents[doc_id], section.passage_words)
            if cut[doc_id]:
                own.append(doc_id)
    passages = {query_id: tuple(piece for own in cut.values() for piece in own) for query_id, cut in found.items()}
    return Material(passages, {key: tuple(own) for key, own in ranked.items()})


def _pieces(document: Document, most_words: int) -> tuple[Document, ...]:
    return tuple(
        Document(piece.passage_id, piece.text, document.metadata)
        for piece in passages_of_document(document, most_words=most_words)
    )
