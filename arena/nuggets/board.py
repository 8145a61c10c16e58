"""Nugget scores of a tournament's agents, to stand beside their ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena.nuggets.results import NuggetResults
from retrieval_eval.nuggets.run_scores import RunScores, score_runs
from retrieval_eval.nuggets.scores import ScoreTable, score_table
from retrieval_eval.nuggets.types import Assignment


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of what agents answered or retrieved.

    Attributes:
        runs: by agent, best Vital strict first; none where these are not held against nuggets.
        table: the counts behind them.
    """

    runs: Sequence[RunScores]
    table: ScoreTable


@dataclass(frozen=True, slots=True)
class NuggetBoard:
    """Scores over the queries that have nuggets.

    Attributes:
        answers: scores of what agents answered.
        documents: scores of what they retrieved, all of a ranking's first documents taken together: nugget recall.
        depth: how many documents these are.
        without: why each other query has no nuggets; these are in nobody's mean.
    """

    answers: Scored
    documents: Scored
    depth: int
    without: Mapping[str, str]


def nugget_board(results: NuggetResults, samples: int, seed: int) -> NuggetBoard:
    """Score every agent; see ``run_scores.score_runs`` for the intervals.

    Args:
        results: banks and assignments.
        samples: bootstrap samples over queries.
        seed: of the samples.
    """

    def scored(assignments: Sequence[Assignment]) -> Scored:
        table = score_table(assignments, list(results.banks))
        return Scored(score_runs(table, samples, seed), table)

    return NuggetBoard(scored(results.assignments), scored(results.retrieved), results.depth, results.without)
