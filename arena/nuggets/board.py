"""Nugget scores of runs, and of a tournament's agents, to stand beside their ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena.nuggets.results import NuggetResults
from retrieval_eval.nuggets.run_scores import RunScores, score_runs
from retrieval_eval.nuggets.scores import ScoreTable, score_table
from retrieval_eval.nuggets.types import Assignment


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of what runs answered or retrieved, and what a reader must know who compares them.

    Attributes:
        runs: best Vital strict first.
        queries: in the topic set.
        unjudged: queries without an assignment of any run, which count 0 for all.
        differing: queries whose runs were held against different nuggets.
        left_out: assignments outside the topic set.
        partial: whether any label is partial support; without one, strict scores equal the others.
    """

    runs: Sequence[RunScores]
    queries: int
    unjudged: Sequence[str]
    differing: Sequence[str]
    left_out: int
    partial: bool


@dataclass(frozen=True, slots=True)
class NuggetBoard:
    """Scores over the queries that have nuggets.

    Attributes:
        answers: scores of what agents answered; of no runs where answers are not held against nuggets.
        documents: scores of what they retrieved, all of a ranking's first documents taken together: nugget recall.
        depth: how many documents these are.
        without: why each other query has no nuggets; these are in nobody's mean.
    """

    answers: Scored
    documents: Scored
    depth: int
    without: Mapping[str, str]


def scored(table: ScoreTable, samples: int, seed: int) -> Scored:
    """Score every run; see ``run_scores.score_runs`` for the intervals."""
    partial = bool(table.counts[..., 1].any()) or not table.counts[..., :3].any()
    return Scored(
        score_runs(table, samples, seed),
        len(table.topics),
        table.unjudged_topics,
        table.differing_topics,
        table.left_out,
        partial,
    )


def nugget_board(results: NuggetResults, samples: int, seed: int) -> NuggetBoard:
    """Score every agent.

    Args:
        results: banks and assignments.
        samples: bootstrap samples over queries.
        seed: of the samples.
    """

    def of(assignments: Sequence[Assignment]) -> Scored:
        return scored(score_table(assignments, list(results.banks)), samples, seed)

    return NuggetBoard(of(results.assignments), of(results.retrieved), results.depth, results.without)
