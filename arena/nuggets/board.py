"""Nugget scores of a tournament's agents, to stand beside their ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena.nuggets.results import NuggetResults
from retrieval_eval.nuggets.run_scores import RunScores, score_runs
from retrieval_eval.nuggets.scores import ScoreTable, score_table


@dataclass(frozen=True, slots=True)
class NuggetBoard:
    """Scores over the queries that have nuggets.

    Attributes:
        scored: by agent, best Vital strict first.
        table: the counts behind them.
        without: why each other query has no nuggets; these are in nobody's mean.
    """

    scored: Sequence[RunScores]
    table: ScoreTable
    without: Mapping[str, str]


def nugget_board(results: NuggetResults, samples: int, seed: int) -> NuggetBoard:
    """Score every agent; see ``run_scores.score_runs`` for the intervals.

    Args:
        results: banks and assignments.
        samples: bootstrap samples over queries.
        seed: of the samples.
    """
    table = score_table(results.assignments, list(results.banks))
    return NuggetBoard(score_runs(table, samples, seed), table, results.without)
