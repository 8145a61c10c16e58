"""Retrieval on a leaderboard as plain values: its part of the JSON, and columns of flat rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

from arena.boards.metrics import share_labelled as coverage
from arena.present.plain import flat as flattened
from arena.retrieval import AgentScores, LabelScores, RetrievalBoard, Source
from retrieval_eval.relevance import LabelDistribution
from retrieval_eval.stats.agreement import LabelAgreement
from retrieval_eval.stats.estimate import Estimate, written_fields

Row: TypeAlias = dict[str, Any]

_COLUMNS: Mapping[Source, str] = {"judge": "retrieval", "people": "retrieval_people"}


def retrieval_json(board: RetrievalBoard | None) -> Row | None:
    """The field ``retrieval`` of a leaderboard's JSON."""
    if board is None:
        return None
    return {
        "measures": list(board.measures),
        "queries": board.queries,
        "scores": {source: _scores_json(scores) for source, scores in board.scores.items()},
        "labels": {
            agent: {**_distribution_json(board.distributions[agent]), **asdict(mean), "coverage": mean.coverage}
            for agent, mean in board.mean_labels.items()
        },
        "without_documents": list(board.without_documents),
        "judges": {
            judge: {**_distribution_json(own.distribution), "agreement": _agreement_json(own.agreement)}
            for judge, own in board.judges.items()
        },
        "between_judges": None if board.between_judges is None else flattened(board.between_judges),
        "agreement": _agreement_json(board.agreement),
        "rankings": {measure: flattened(ranking) for measure, ranking in board.rankings.items()},
    }


def agent_columns(board: RetrievalBoard | None, agent: str) -> Row:
    """One agent's scores as columns of a flat row, the same columns for every agent."""
    row: Row = {}
    for source, scores in ({} if board is None else board.scores).items():
        own, first = scores.agents.get(agent), True
        row[f"{_COLUMNS[source]}_queries"] = None if own is None else len(scores.topics) - len(own.unanswered)
        for measure in next(iter(scores.agents.values())).measures:
            estimate = Estimate(None) if own is None else own.measures[measure]
            name = f"{_COLUMNS[source]}_{measure}"
            row[name] = estimate.value
            if first:
                row |= {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
            first = False
    return row


def _scores_json(scores: LabelScores) -> Row:
    return {
        "topics": len(scores.topics),
        "labels": scores.labels,
        "without_relevant": list(scores.without_relevant),
        "agents": {agent: _agent_json(own) for agent, own in scores.agents.items()},
    }


def _agent_json(own: AgentScores) -> Row:
    return {
        "measures": {measure: asdict(one, dict_factory=written_fields) for measure, one in own.measures.items()},
        "missing": list(own.missing),
        "unanswered": list(own.unanswered),
    }


def _distribution_json(own: LabelDistribution) -> Row:
    counts = {str(label): count for label, count in own.counts.items()}
    return {"counts": counts, "failed": own.failed, "left": own.left}


def _agreement_json(own: LabelAgreement | None) -> Row | None:
    if own is None:
        return None
    binarised = [flattened(one) for one in own.binarised]
    return {**flattened(own), "coverage": coverage(own), "binarised": binarised}
