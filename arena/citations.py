"""How many of the documents that answers cite are relevant, by the judges' labels and by people's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arena.config import RatingsSection
from arena.dataset import SHARED, Dataset
from arena.retrieval import Source, labels_in
from arena.samples import across_judges, combinations, document_labels
from arena.store import Result, Wanted
from retrieval_eval.citations import CitationScores, citation_scores, cited_documents

RELEVANT = 1
"""The lowest label that counts as relevant where no nuggets say from which label on documents are read."""


@dataclass(frozen=True, slots=True)
class CitationBoard:
    """Citations of a tournament's agents.

    Attributes:
        relevant: the lowest label that counts as relevant.
        scores: by whose labels, and by agent.
    """

    relevant: int
    scores: Mapping[Source, Mapping[str, CitationScores]]


def citation_board(
    data: Dataset, wanted: Iterable[tuple[Wanted, Result | None]], settings: Mapping[str, Any]
) -> CitationBoard | None:
    """Score what the answers cite; ``None`` where no answer cites a document that has a label.

    Args:
        data: of the tournament.
        wanted: all relevance wants with their results, in the order of the plan.
        settings: as stored with the tournament.
    """
    results = document_labels(wanted, combinations(settings), across_judges(settings))
    labels: dict[Source, Mapping[str, Mapping[str, int]]] = {"judge": labels_in(data, results), "people": data.qrels}
    ratings = RatingsSection.model_validate(settings.get("ratings") or {})
    resampling = {"samples": ratings.bootstrap.samples, "seed": ratings.seed}
    create = (settings.get("nuggets") or {}).get("create") or {}
    relevant: int = create.get("from_label", RELEVANT)
    rankings, scores = _given(data), {}
    for source, own in labels.items():
        if own:
            cited = cited_documents(data.answers.values(), rankings, own)
            found = citation_scores(cited, own, relevant=relevant, **resampling)
            if any(agent.labelled for agent in found.values()):
                scores[source] = found
    return CitationBoard(relevant, scores) if scores else None


def _given(data: Dataset) -> Mapping[tuple[str, str], Sequence[str]]:
    """By query and agent the documents that it answered from, best first."""
    given: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for query_id, entries in data.retrieved.items():
        for entry in entries:
            for agent in data.agents if entry.agent == SHARED else [entry.agent]:
                given[query_id, agent].append((entry.rank, entry.doc_id))
    return {key: [doc_id for _, doc_id in sorted(own)] for key, own in given.items()}
