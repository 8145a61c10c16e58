"""What a person looks at before trusting grades and a bank (001, section 4.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from retrieval_eval.exam.grades import UNGRADED, Grids, Labels


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """A grade beside the answer that was extracted; ``grade`` is ``None`` where there is none."""

    query_id: str
    item_id: str
    passage_id: str
    grade: int | None
    answer: str


@dataclass(frozen=True, slots=True)
class Uncovered:
    """A relevant passage that covers no item: the bank may lack one.

    Attributes:
        label: its relevance by people.
        best_grade: its highest, ``None`` where it has none.
        ungraded: items that it was not graded against; any of them may cover it.
    """

    query_id: str
    passage_id: str
    label: int
    best_grade: int | None
    ungraded: int


@dataclass(frozen=True, slots=True)
class Spurious:
    """How often an item is covered by passages that people found not relevant, and by relevant ones.

    Attributes:
        not_relevant: passages without relevance that cover it.
        of: passages without relevance that were graded against it.
        relevant: relevant passages that cover it.
        of_relevant: relevant passages that were graded against it.
    """

    query_id: str
    item_id: str
    not_relevant: int
    of: int
    relevant: int
    of_relevant: int


def graded_answers(grids: Grids, answers: Mapping[tuple[str, str, str], str]) -> Iterator[GradedAnswer]:
    """All grades and extracted answers, item by item, the highest grade first, then in the order of the passages.

    Args:
        grids: the grades.
        answers: by query, passage and item.
    """
    for query_id, grid in grids.grids.items():
        for column, item_id in enumerate(grid.items):
            order = np.argsort(-grid.grades[:, column].astype(np.int64), kind="stable")
            for row in order.tolist():
                grade, passage = int(grid.grades[row, column]), grid.passages[row]
                answer = answers.get((query_id, passage, item_id), "")
                if grade != UNGRADED or answer:
                    yield GradedAnswer(query_id, item_id, passage, None if grade == UNGRADED else grade, answer)


def uncovered_passages(grids: Grids, labels: Labels, *, level: int, relevant: int) -> list[Uncovered]:
    """Passages labelled ``relevant`` or more of which no grade reaches ``level``, the most relevant ones first."""
    found = []
    for query_id, grid in grids.grids.items():
        best = grid.grades.max(axis=1, initial=UNGRADED)
        for row, passage in enumerate(grid.passages):
            label = labels.get(query_id, {}).get(passage)
            if label is not None and label >= relevant and best[row] < level:
                missing = int((grid.grades[row] == UNGRADED).sum())
                grade = None if best[row] == UNGRADED else int(best[row])
                found.append(Uncovered(query_id, passage, label, grade, missing))
    return sorted(found, key=lambda passage: -passage.label)


def spurious_items(grids: Grids, labels: Labels, *, level: int, relevant: int) -> list[Spurious]:
    """Items covered by passages labelled below ``relevant``, the most often so first. Only labelled passages count."""
    found = []
    for query_id, grid in grids.grids.items():
        known = labels.get(query_id, {})
        good = np.array([known.get(passage, relevant - 1) >= relevant for passage in grid.passages], np.bool_)
        bad = np.array([passage in known for passage in grid.passages], np.bool_) & ~good
        covers, graded = grid.grades >= level, grid.grades != UNGRADED
        counts = [table[side].sum(axis=0) for side in (bad, good) for table in (covers, graded)]
        for column, item_id in enumerate(grid.items):
            item = Spurious(query_id, item_id, *(int(count[column]) for count in counts))
            if item.not_relevant:
                found.append(item)
    return sorted(found, key=lambda item: (-item.not_relevant, item.relevant))


def grid_rows(grids: Grids, query_id: str) -> Iterator[tuple[str, Sequence[int | None]]]:
    """The grid of one query, passages with the highest sum of grades first; ``None`` stands for an ungraded pair."""
    grid = grids.grids[query_id]
    sums = np.where(grid.grades == UNGRADED, 0, grid.grades).sum(axis=1)
    for row in np.argsort(-sums, kind="stable").tolist():
        yield grid.passages[row], [None if grade == UNGRADED else int(grade) for grade in grid.grades[row]]
