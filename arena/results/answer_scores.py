"""Scores of answers that stand in their table, such as ragas': columns without a judge."""

from __future__ import annotations

from msgspec.structs import replace

from arena.data.scored import scores_in
from arena.results.outcomes import StageResults
from arena.store import Store
from judges.types import conversations
from retrieval_eval.stats.scores import scores_of


def results(store: Store, tournament: str) -> StageResults:
    data, section = store.dataset(tournament), store.settings(tournament).further["answer_scores"]
    wanted, clusters = [(agent, query_id) for query_id, agent in data.answers], conversations(data.queries.values())
    scores = []
    for name in section.columns:
        values = scores_in(data, name)
        scale = min([0.0, *values.values()]), max([1.0, *values.values()])
        score = scores_of(name, values, wanted, scale=scale, clusters=clusters, column=name, heading=name)
        scores.append(replace(score, lower=name in section.lower, ranks=name not in section.lower))
    return StageResults(tuple(scores))
