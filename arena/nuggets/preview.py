"""Scores with edited nuggets before anybody has assigned them: what is known of the old ones is carried over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from retrieval_eval.nuggets.run_scores import RunScores, score_runs
from retrieval_eval.nuggets.scores import score_table
from retrieval_eval.nuggets.types import Assignment, NuggetBank, Support


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
