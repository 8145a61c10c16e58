"""Retrieval as a reader looks at it: tables of scores and labels, and the documents of one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pandas as pd

from arena.dataset import Dataset
from arena.prompting import Labels
from arena.retrieval import LabelScores, RetrievalBoard, Source
from judges.pointwise import label_of
from judges.types import Document, Judgment, Query
from retrieval_eval.relevance import LabelDistribution
from retrieval_eval.stats.estimate import Estimate

WHOSE: Mapping[Source, str] = {"judge": "the judge", "people": "people"}

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


def scores_frame(board: RetrievalBoard, order: Sequence[str]) -> pd.DataFrame:
    """A row per agent and whose labels: each measure with its interval, and what is missing."""
    rows: list[dict[str, Any]] = []
    for agent in order:
        for source, scores in board.scores.items():
            own = scores.agents.get(agent)
            row: dict[str, Any] = {"Agent": agent, "Labels of": WHOSE[source]}
            for measure in board.measures:
                estimate = Estimate(None) if own is None else own.measures[measure]
                row |= {measure: _rounded(estimate.value), f"{measure} interval": span(estimate)}
            row["Nothing retrieved"] = None if own is None else len(own.missing)
            if board.failing:
                row["No answer"] = None if own is None else len(own.unanswered)
            rows.append(row)
    return pd.DataFrame(rows)


def labels_frame(board: RetrievalBoard, order: Sequence[str]) -> pd.DataFrame:
    """How often each label was given to what each agent retrieved, and by each judge."""
    named: list[tuple[str, LabelDistribution, float | None]] = [
        (agent, board.distributions[agent], board.mean_labels[agent].mean)
        for agent in order
        if agent in board.mean_labels
    ]
    named += [(f"all documents, judge {judge}", own.distribution, None) for judge, own in board.judges.items()]
    labels = sorted({label for _, own, _ in named for label in own.counts})
    return pd.DataFrame(
        [
            {
                "Documents of": name,
                **{f"Label {label}": own.counts.get(label, 0) for label in labels},
                "Failed": own.failed,
                "Not judged": own.left,
                "Mean label": _rounded(mean, 2),
            }
            for name, own, mean in named
        ]
    )


def queries_frame(
    scores: LabelScores, measure: str, queries: Mapping[str, Query], order: Sequence[str]
) -> pd.DataFrame:
    """A row per topic: one measure of each agent. Columns of agents go by their names, which are no markup here."""
    rows = {
        "Query": list(scores.topics),
        "Text": [queries[query_id].text for query_id in scores.topics],
    }
    frame = pd.DataFrame(rows)
    for agent in order:
        if agent in scores.agents:
            frame[f"agent {agent}"] = [_rounded(value) for value in scores.agents[agent].per_query[measure]]
    return frame


def span(estimate: Estimate, digits: int = 3) -> str:
    """An interval in words."""
    if estimate.low is None or estimate.high is None:
        return "none"
    return f"{estimate.low:.{digits}f} to {estimate.high:.{digits}f}"


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)
