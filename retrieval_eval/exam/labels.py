"""EXAM-Qrels: one relevance label for a passage, from its grades (000, section 4.3.2; 001, section 4.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from judges.errors import InputError
from retrieval_eval.exam.grades import UNGRADED, Grids

By: TypeAlias = Literal["highest", "count"]

_STEP = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?:(\d{1,3})")


@dataclass(frozen=True)
class ExamLabels:
    """Labels and what they rest on.

    Attributes:
        labels: by query_id and passage_id, of all passages with a grade.
        partly: passages whose label may be too low, since some of their items are not graded.
        ungraded: passages without any grade, which have no label.
    """

    labels: Mapping[str, Mapping[str, int]]
    partly: int
    ungraded: int

    def __len__(self) -> int:
        return sum(map(len, self.labels.values()))


def exam_labels(
    grids: Grids, *, by: By = "highest", level: int = 1, grade_to_label: Mapping[int, int] | None = None
) -> ExamLabels:
    """Labels of all graded passages.

    Args:
        grids: the grades.
        by: ``highest``: the highest grade; ``count``: the number of items graded ``level`` or more.
        level: used with ``count``.
        grade_to_label: turns the highest grade, or the count, into a label.

    Raises:
        InputError: ``grade_to_label`` does not say what becomes of a grade that occurs.
    """
    labels: dict[str, dict[str, int]] = {}
    partly = ungraded = 0
    for query_id, grid in grids.grids.items():
        known = grid.grades != UNGRADED
        values = grid.grades.max(axis=1, initial=UNGRADED) if by == "highest" else (grid.grades >= level).sum(axis=1)
        some, every = known.any(axis=1), known.all(axis=1)
        ungraded += int((~some).sum())
        partly += int((some & ~every).sum())
        labels[query_id] = {
            passage: _mapped(int(values[row]), grade_to_label) for row, passage in enumerate(grid.passages) if some[row]
        }
    return ExamLabels(labels, partly, ungraded)


def read_grade_map(text: str) -> dict[int, int]:
    """``0:0,1-3:1,4:2,5:3`` as a mapping from grade to label.

    Raises:
        InputError: it is not of this form, or maps a grade twice.
    """
    found: dict[int, int] = {}
    for part in text.split(","):
        step = _STEP.fullmatch(part.strip())
        if step is None:
            raise InputError(f"{part.strip()!r} in the map of grades is not like 4:2 or 1-3:1")
        low, high = int(step[1]), int(step[2] or step[1])
        for grade in range(low, high + 1):
            if found.setdefault(grade, int(step[3])) != int(step[3]):
                raise InputError(f"the map of grades gives {grade} two labels")
        if low > high:
            raise InputError(f"{part.strip()!r} in the map of grades counts down")
    return found


def _mapped(value: int, grade_to_label: Mapping[int, int] | None) -> int:
    if grade_to_label is None:
        return value
    if value not in grade_to_label:
        raise InputError(f"the map of grades does not say what becomes of {value}")
    return grade_to_label[value]
