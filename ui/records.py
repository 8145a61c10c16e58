"""Games as a reader looks at them: both orders of a pair together, with what they make, and the documents behind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arena.config.judging import PairwiseSection
from arena.data.dataset import SHARED, Dataset
from arena.games.table import GameKey
from arena.prompting import Labels
from arena.store import IDENTICAL, Result
from judges.prompts.tasks import references
from judges.types import AnnotatedDocument, Document, Judgment, Verdict, label_of


@dataclass(frozen=True, slots=True)
class Shown:
    """One order of a game: ``first`` is the judge's answer A, ``second`` its B; ``result`` is ``None`` if not asked."""

    first: str
    second: str
    result: Result | None

    @property
    def preferred(self) -> str | None:
        """The agent preferred, the empty string for a tie, ``None`` without a verdict."""
        if not isinstance(self.result, Judgment):
            return None
        return {Verdict.A: self.first, Verdict.B: self.second, Verdict.TIE: ""}[Verdict(str(self.result.outcome))]


@dataclass(frozen=True, slots=True)
class GameRecord:
    """One query, two agents, one judge.

    Attributes:
        orders: one or two, as planned.
        score: of ``agent_a`` in the rated game: 1, 0.5 or 0; ``None`` without a verdict.
    """

    query_id: str
    agent_a: str
    agent_b: str
    judge: str
    orders: tuple[Shown, ...]
    score: float | None

    @property
    def key(self) -> GameKey:
        """What names the game."""
        return GameKey(self.query_id, self.agent_a, self.agent_b, self.judge)

    @property
    def mark(self) -> str:
        """Twelve hexadecimal digits for the keys of the page's elements."""
        return hashlib.sha256(json.dumps(self.key).encode()).hexdigest()[:12]

    @property
    def winner(self) -> str | None:
        """The agent that won the rated game, if one did."""
        return {1.0: self.agent_a, 0.0: self.agent_b}.get(-1.0 if self.score is None else self.score)

    @property
    def orders_disagree(self) -> bool:
        """Whether both orders have a verdict and prefer different agents, or one of them neither."""
        preferred = [order.preferred for order in self.orders]
        return len(preferred) == 2 and None not in preferred and preferred[0] != preferred[1]

    @property
    def same_answers(self) -> bool:
        """Whether the two answers are the same text, which is a tie that no judge was asked about."""
        return any(order.result is not None and order.result.judgment_id == IDENTICAL for order in self.orders)


@dataclass(frozen=True, slots=True)
class RetrievedDocument:
    """A document that one of a game's two agents retrieved.

    Attributes:
        result: what the relevance judge said, ``None`` if it was not asked.
        ranks: agent and rank of each retrieval; ``SHARED`` for one given to every agent.
        shown: whether the answer judge saw it.
    """

    document: Document
    result: Result | None
    ranks: tuple[tuple[str, int], ...]
    shown: bool


def retrieved_documents(
    game: GameRecord, data: Dataset, labels: Labels, settings: Mapping[str, Any]
) -> list[RetrievedDocument]:
    """The documents behind a game: those shown to its judge first, as they were ordered, then the others."""
    ranks: dict[str, list[tuple[str, int]]] = {}
    for entry in data.retrieved.get(game.query_id, ()):
        if entry.agent in {SHARED, game.agent_a, game.agent_b}:
            ranks.setdefault(entry.doc_id, []).append((entry.agent, entry.rank))
    results = {doc_id: labels.get((game.query_id, doc_id)) for doc_id in ranks}
    shown = [] if game.same_answers else _shown(ranks, results, data, settings)
    others = sorted(set(ranks) - set(shown), key=lambda doc_id: (-_label(results[doc_id]), doc_id))
    return [
        RetrievedDocument(data.documents[doc_id], results[doc_id], tuple(ranks[doc_id]), doc_id in shown)
        for doc_id in (*shown, *others)
    ]


def _shown(
    ranks: Mapping[str, Sequence[tuple[str, int]]],
    results: Mapping[str, Result | None],
    data: Dataset,
    settings: Mapping[str, Any],
) -> list[str]:
    """Ids of the documents that the answer judge saw, in its order."""
    section, depth = _pairwise(settings).documents, (settings.get("retrieval") or {}).get("depth")
    pool = [doc_id for doc_id, found in ranks.items() if depth is None or any(rank <= depth for _, rank in found)]
    if settings.get("retrieval") is None:
        annotated = [AnnotatedDocument(data.documents[doc_id]) for doc_id in pool]
    else:
        annotated = [
            AnnotatedDocument(data.documents[doc_id], _label(result))
            for doc_id in pool
            if isinstance(result := results[doc_id], Judgment)
        ]
    return [entry.document.doc_id for entry in references(annotated, section.options())]


def _label(result: Result | None) -> int:
    """The label, or less than any label where there is none."""
    return label_of(result.outcome) if isinstance(result, Judgment) else -1


def _pairwise(settings: Mapping[str, Any]) -> PairwiseSection:
    return PairwiseSection.model_validate(settings.get("pairwise") or {"judges": ["none"]})
