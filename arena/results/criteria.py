"""Grades of answers by criteria, from the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from arena.config.settings import StoredSettings
from arena.store import Result, Wanted
from arena.store.rows import GradedSubject
from judges.types import Judgment
from retrieval_eval.stats.bootstrap import ALONE, Clusters
from retrieval_eval.stats.repeats import averaged
from retrieval_eval.stats.scores import Scores, scores_of

COLUMN = "criteria_"


def criteria_scores(
    outcomes: Iterable[tuple[Wanted, Result | None]], settings: StoredSettings, clusters: Clusters = ALONE
) -> tuple[Scores, ...]:
    """Scores by the mean of each answer's grades, then by each criterion; empty if there are no answers to grade."""
    graded: dict[tuple[str, str], Mapping[str, float]] = {}
    wanted: dict[tuple[str, str], Sequence[str]] = {}
    for want, result in outcomes:
        key = want.item, want.query_id
        wanted[key] = graded_by(want, settings)
        if isinstance(result, Judgment):
            graded[key] = grades(want, result, settings)
    if not wanted:
        return ()
    assert settings.criteria is not None
    low, high = settings.criteria.scale
    scale = float(low), float(high)
    means = {key: float(np.mean(list(answer_grades.values()))) for key, answer_grades in graded.items()}
    scores = [scores_of("criteria", means, wanted, scale=scale, clusters=clusters)]
    for name in dict.fromkeys(name for criteria in wanted.values() for name in criteria):
        by_name = {key: answer_grades[name] for key, answer_grades in graded.items() if name in answer_grades}
        keys = [key for key, criteria in wanted.items() if name in criteria]
        scores.append(scores_of(name, by_name, keys, scale=scale, clusters=clusters, column=f"{COLUMN}{name}"))
    return tuple(map(averaged, scores))


def graded_by(want: Wanted, settings: StoredSettings) -> Sequence[str]:
    assert settings.criteria is not None
    return GradedSubject.of(want).by or tuple(settings.criteria.names)


def grades(want: Wanted, judgment: Judgment, settings: StoredSettings) -> dict[str, float]:
    """The grades in a judgment, by criterion; if it is on a single criterion, the judgment does not name it."""
    if isinstance(judgment.outcome, Mapping):
        return {name: grade for name, grade in judgment.outcome.items() if not isinstance(grade, str)}
    (name,) = graded_by(want, settings)
    assert isinstance(judgment.outcome, int | str)
    return {name: float(judgment.outcome)}


def ungraded(
    outcomes: Iterable[tuple[Wanted, Result | None]], settings: StoredSettings, answers: int
) -> tuple[str, ...]:
    """A sentence for each criterion that left answers ungraded for lack of the documents or reference it needs."""
    graded = Counter(name for want, _ in outcomes for name in graded_by(want, settings))
    criteria = settings.criteria.listed() if settings.criteria is not None else ()
    return tuple(filter(None, (criterion.left_out(graded[criterion.name], answers) for criterion in criteria)))
