"""Nugget scores of runs, of a tournament's agents to stand beside their ratings, and with edited nuggets.

Scores with edited nuggets are known before anybody has assigned these: what is known of the old ones is carried over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from arena.stages.nuggets.results import NuggetResults
from retrieval_eval.nuggets.scores import RunScores, ScoreTable, score_runs, score_table
from retrieval_eval.nuggets.types import Assignment, NuggetBank, Support


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


def carried(assignments: Iterable[Assignment], banks: Mapping[str, NuggetBank]) -> list[Assignment]:
    """Assignments of edited nuggets.

    A label holds for a nugget of the same text, whatever its importance or place. Nuggets of other words have ``None``
    until they are assigned, but for an empty answer, which states nothing.

    Args:
        assignments: of the nuggets before.
        banks: the edited nuggets, by query; other queries stay as they are.
    """
    return [_carried(own, banks[own.query_id]) if own.query_id in banks else own for own in assignments]


def preview(assignments: Sequence[Assignment], banks: Mapping[str, NuggetBank]) -> list[tuple[RunScores, RunScores]]:
    """Scores of every agent before and after, best first as they were before; see ``carried``.

    Where labels are open, the bounds of those after hold for any that they may come to.
    """
    after = {own.run: own for own in _scores(carried(assignments, banks))}
    return [(own, after[own.run]) for own in _scores(assignments)]


def _carried(own: Assignment, bank: NuggetBank) -> Assignment:
    known = {nugget.text.strip(): label for nugget, label in zip(own.nuggets, own.labels, strict=True)}
    unknown = Support.NONE if own.words == 0 else None
    labels = tuple(known.get(nugget.text.strip(), unknown) for nugget in bank.nuggets)
    return replace(own, nuggets=bank.nuggets, labels=labels, label_details=())


def _scores(assignments: Sequence[Assignment]) -> list[RunScores]:
    return score_runs(score_table(assignments), samples=0)
