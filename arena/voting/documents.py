"""People label: a document for a query, on the scale of the relevance judges, without knowing what these said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from arena.data.dataset import Dataset
from arena.opinions.people import texts_now
from arena.store.annotations import Annotation, Kind, texts_digest
from arena.voting.things import State, asker, drawn
from judges.types import Document


@dataclass(frozen=True)
class Slip:
    """One document to be labelled for one query.

    Attributes:
        state: what became of it.
        said: the label, where there is one.
    """

    query_id: str
    query: str
    document: Document
    state: State = State.OPEN
    said: int | None = None

    @property
    def thing_id(self) -> str:
        """Twelve hexadecimal digits for what is read."""
        return texts_digest(self.query_id, self.document.doc_id, self.query, self.document.text)[:12]


def scale_of(settings: Mapping[str, Any], given: Iterable[int]) -> list[tuple[int, str]]:
    """Labels with their words, the lowest first: those of a tournament's relevance judges.

    Args:
        settings: the tournament's.
        given: labels that judges gave; of a store from before scales were kept, the scale goes from 0 to the highest.
    """
    section = settings.get("retrieval") or {}
    words = section.get("scale") or {str(label): label for label in range(max(given, default=0) + 1)}
    return sorted((label, word) for word, label in words.items())


def slips(labelled: Iterable[tuple[str, str]], data: Dataset, said: Iterable[Annotation], annotator: str) -> list[Slip]:
    """What a person is to label, in their own random order. A changed document or query is to be labelled anew.

    Args:
        labelled: query and document of everything that a judge labelled.
        data: the texts.
        said: the latest word of this person.
        annotator: who they are.
    """
    heard = {
        (own.query_id, own.item): own.value
        for own in said
        if own.kind is Kind.RELEVANCE and texts_now(own, data, {}) == own.texts
    }
    order = sorted(labelled, key=lambda names: drawn(asker(annotator, *names), *names))
    return [_slip(names, data, heard) for names in order]


def annotation_of(slip: Slip, label: int | None, annotator: str, seconds: float | None = None) -> Annotation:
    """What a person said of a document, ``None`` where they skip it."""
    texts = texts_digest(slip.query, slip.document.text)
    return Annotation(Kind.RELEVANCE, annotator, slip.query_id, slip.document.doc_id, "", texts, label, seconds)


def _slip(names: tuple[str, str], data: Dataset, heard: dict[tuple[str, str], int | None]) -> Slip:
    query_id, doc_id = names
    said = heard.get(names)
    state = State.DONE if said is not None else State.SKIPPED if names in heard else State.OPEN
    return Slip(query_id, data.queries[query_id].text, data.documents[doc_id], state, said)
