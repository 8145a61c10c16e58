"""The documents of one query with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from arena.dataset import Dataset
from arena.prompting import Labels
from judges.types import Document, Judgment, label_of

Shown: TypeAlias = Literal["all", "where people disagree", "without a label"]


@dataclass(frozen=True, slots=True)
class JudgedDocument:
    """One document of a query.

    Attributes:
        ranks: agent and rank of each retrieval; ``SHARED`` for one given to every agent.
        label: of the judges together, ``None`` without one.
        human: of people, ``None`` where they gave none.
    """

    document: Document
    ranks: tuple[tuple[str, int], ...]
    label: int | None
    human: int | None

    @property
    def disagrees(self) -> bool:
        """Whether both labels are there and differ."""
        return self.label is not None and self.human is not None and self.label != self.human


def judged_documents(query_id: str, data: Dataset, labels: Labels, depth: int | None) -> list[JudgedDocument]:
    """The documents that agents retrieved for a query, by label from the highest; those without one last."""
    ranks: dict[str, list[tuple[str, int]]] = {}
    for entry in data.retrieved.get(query_id, ()):
        if depth is None or entry.rank <= depth:
            ranks.setdefault(entry.doc_id, []).append((entry.agent, entry.rank))
    human = data.qrels.get(query_id, {})
    found = [
        JudgedDocument(data.documents[doc_id], tuple(own), label_in(labels.get((query_id, doc_id))), human.get(doc_id))
        for doc_id, own in ranks.items()
    ]
    return sorted(found, key=lambda one: (one.label is None, -(one.label or 0), one.document.doc_id))


def passing(documents: Sequence[JudgedDocument], shown: Shown, label: int | None) -> list[JudgedDocument]:
    """Those that a reader asked for; ``label`` ``None`` is any."""
    wanted = {
        "all": documents,
        "where people disagree": [one for one in documents if one.disagrees],
        "without a label": [one for one in documents if one.label is None],
    }[shown]
    return [one for one in wanted if label in {None, one.label}]


def label_in(result: Any) -> int | None:
    """The label of a relevance result, if it is one."""
    return label_of(result.outcome) if isinstance(result, Judgment) else None
