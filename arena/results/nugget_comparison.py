"""Comparison of two conditions of a nugget evaluation, such as manual and automatic nuggets.

The method is that of Pradeep et al. 2024, section 4, Figures 6 and 7.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from arena.results.costs import pareto_front
from judges.errors import DataError, InputError
from judges.types import Query, conversations
from retrieval_eval.data.files import read_json
from retrieval_eval.data.rows import Row, table_format
from retrieval_eval.data.table_spec import TableSpec, spellings
from retrieval_eval.data.tables import read_columns
from retrieval_eval.nuggets.files import read_assignments
from retrieval_eval.nuggets.scores import COLUMNS, NUGGETIZER, score_table
from retrieval_eval.nuggets.types import Assignment, Importance, Support
from retrieval_eval.stats import Floats
from retrieval_eval.stats.agreement import LabelAgreement, label_agreement
from retrieval_eval.stats.bootstrap import Clusters, units_of
from retrieval_eval.stats.rank import RankCorrelation, correlate_runs, correlate_topics

_MIN_RUNS = 3
"""Minimum number of runs to compare rankings; with two, rankings can only be equal or reversed."""

SCALES: Final[Mapping[str, tuple[str, ...]]] = {
    "assignment": tuple(Support),
    "two_grades": (Support.FULL, Support.NONE),
    "importance": tuple(Importance),
}


class Point(Struct, frozen=True):
    """Scores of a run, or of its answer to one topic, in both conditions (``a`` and ``b``).

    Attributes:
        length: length in words, ``None`` if neither condition gives it.
        topic: the topic of an answer; empty for a run.
        front: whether the run is on the Pareto front of score and length in the first condition; only for runs.
    """

    run: str
    a: float
    b: float
    length: float | None
    topic: str = ""
    front: bool = False


class NuggetAgreement(Struct, frozen=True):
    """Agreement of two conditions on the labels of the same nuggets, matched by query and text.

    Attributes:
        assignment: agreement on how well the answers of runs support the nuggets.
        two_grades: agreement on these labels if partial_support counts as not_support, as in strict scores.
        importance: agreement on the importance of nuggets that have one in both conditions.
    """

    shared: int
    only_a: int
    only_b: int
    assignment: LabelAgreement
    two_grades: LabelAgreement
    importance: LabelAgreement


class ConditionsCompared(Struct, frozen=True):
    """Result of a comparison: how far the scores and labels of two conditions agree.

    Attributes:
        topics: names of the shared topics; empty if a condition has none.
        runs: runs in both conditions, sorted by their score in the first condition, best first.
        pairs: answers scored in both conditions; empty if a condition has no topics.
        nuggets: agreement on the labels of single nuggets, if both conditions have assignments.
        left_out: runs with a score in only the first condition (``runs_a``) or the second (``runs_b``), and topics
            likewise (``topics_a``, ``topics_b``).
        unit: unit that the bootstrap resamples, if topics are known.
    """

    correlation: RankCorrelation
    topics: tuple[str, ...]
    runs: tuple[Point, ...]
    pairs: tuple[Point, ...]
    nuggets: NuggetAgreement | None
    left_out: Mapping[str, Sequence[str]]
    unit: Literal["query", "conversation"] = "query"


def compare_conditions(
    first: Condition, second: Condition, samples: int = 1000, seed: int = 0, asked: Mapping[str, Query] | None = None
) -> ConditionsCompared:
    """Compare the scores of both conditions over the runs and topics that they share.

    ``asked`` has the topics to compare on, by default all shared topics; turns of one conversation are resampled
    together.

    Raises:
        InputError: fewer than three runs have a score in both conditions, or both name topics and share none.
    """
    topics = None
    if first.topics is not None and second.topics is not None:
        known = {*first.topics} & {*second.topics}
        topics = tuple(sorted(known if asked is None else known & {*asked}))
        if not topics:
            raise InputError(
                f"{first.path} and {second.path}: the two files share no topic; check that their topic ids are the same"
            )
    common = sorted({*first.runs} & {*second.runs})
    a, b = first.chosen(common, topics), second.chosen(common, topics)
    scored = ~np.isnan(a.run_scores) & ~np.isnan(b.run_scores)
    runs = [run for run, has_both in zip(common, scored, strict=True) if has_both]
    if len(runs) < _MIN_RUNS:
        available = f"{len(runs)} with a score in both files, out of {len(first.runs)} and {len(second.runs)}"
        raise InputError(
            f"{first.path} and {second.path}: a comparison of rankings needs {_MIN_RUNS} runs; there are {available}"
        )
    a, b = a.chosen(runs, topics), b.chosen(runs, topics)
    clusters = conversations((asked or {}).values())
    if topics is None:
        correlation = correlate_runs(a.scores, b.scores, samples, seed)
    else:
        correlation = correlate_topics(
            a.scores, b.scores, a.answered & b.answered, samples, seed, unit=units_of(topics, clusters)
        )
    return ConditionsCompared(
        correlation,
        topics or (),
        _run_points(a, b),
        () if topics is None else _pair_points(a, b),
        _nugget_agreement(a.assignments, b.assignments, clusters) if a.assignments and b.assignments else None,
        {
            "runs_a": [run for run in first.runs if run not in runs],
            "runs_b": [run for run in second.runs if run not in runs],
            "topics_a": [topic for topic in first.topics or () if topics and topic not in topics],
            "topics_b": [topic for topic in second.topics or () if topics and topic not in topics],
        },
        "conversation" if clusters else "query",
    )


def _run_points(a: Condition, b: Condition) -> tuple[Point, ...]:
    lengths = a.lengths if a.lengths is not None else b.lengths
    if lengths is not None and lengths.ndim == 2:
        lengths = lengths.mean(axis=1)
    scored = {} if lengths is None else dict(zip(a.runs, zip(a.run_scores, lengths, strict=True), strict=True))
    front = pareto_front(scored)
    points = [
        Point(run, float(x), float(y), None if lengths is None else float(lengths[index]), front=run in front)
        for index, (run, x, y) in enumerate(zip(a.runs, a.run_scores, b.run_scores, strict=True))
    ]
    return tuple(sorted(points, key=lambda point: (-point.a, point.run)))


def _pair_points(a: Condition, b: Condition) -> tuple[Point, ...]:
    lengths = a.lengths if a.lengths is not None else b.lengths
    used = a.answered & b.answered & ~np.isnan(a.scores) & ~np.isnan(b.scores)
    topics = a.topics or ()
    return tuple(
        Point(a.runs[i], float(a.scores[i, j]), float(b.scores[i, j]), length, topics[j])
        for i, j in zip(*np.nonzero(used), strict=True)
        for length in [None if lengths is None else float(lengths[i, j])]
    )


def _nugget_agreement(first: Sequence[Assignment], second: Sequence[Assignment], clusters: Clusters) -> NuggetAgreement:
    importances = [_importances(assignments) for assignments in (first, second)]
    rated = [{key: label for key, label in nugget_labels.items() if label is not None} for nugget_labels in importances]
    grades = [_labels(assignments) for assignments in (first, second)]
    strict = [{key: _as_strict(label) for key, label in item_labels.items()} for item_labels in grades]
    shared = len(importances[0].keys() & importances[1].keys())
    labels: list[Sequence[Mapping[tuple[str, ...], str]]] = [grades, strict, rated]
    return NuggetAgreement(
        shared,
        len(importances[0]) - shared,
        len(importances[1]) - shared,
        *(
            label_agreement(
                *(_by_query(condition_labels, names) for condition_labels in both),
                scale=range(len(names)),
                clusters=clusters,
            )
            for both, names in zip(labels, SCALES.values(), strict=True)
        ),
    )


def _by_query(labels: Mapping[tuple[str, ...], str], names: Sequence[str]) -> dict[str, dict[tuple[str, ...], int]]:
    numbered: dict[str, dict[tuple[str, ...], int]] = {}
    for (query_id, *item), label in labels.items():
        numbered.setdefault(query_id, {})[tuple(item)] = names.index(label)
    return numbered


def _as_strict(label: Support) -> Support:
    return Support.NONE if label is Support.PARTIAL else label


def _labels(assignments: Sequence[Assignment]) -> dict[tuple[str, ...], Support]:
    return {
        (assignment.query_id, assignment.run, nugget.nugget_id): label
        for assignment in assignments
        for nugget, label in zip(assignment.nuggets, assignment.labels, strict=True)
        if label is not None
    }


def _importances(assignments: Sequence[Assignment]) -> dict[tuple[str, ...], Importance | None]:
    return {
        (assignment.query_id, nugget.nugget_id): nugget.importance
        for assignment in assignments
        for nugget in assignment.nuggets
    }


SCORES: Final = TableSpec(
    ("agent", "qid", "length"), ("agent",), {"agent": ("run", "run_id", "run_tag"), "qid": (*spellings("qid"), "topic")}
)
"""Columns of a table of runs and scores, without the column of the score, whose name the user gives."""
_MEAN: Final = "all"
"""The topic name in rows that hold a mean over topics, as nuggetizer and trec_eval write them."""


class Condition(Struct, frozen=True, eq=False):
    """Scores of the runs in one condition, read from a file.

    Attributes:
        topics: sorted names of topics; ``None`` if the file only has scores of whole runs.
        scores: shape (runs, topics) or (runs,), NaN where undefined, 0 where a run did not answer.
        answered: whether the run answered the topic, same shape as ``scores``.
        lengths: lengths of answers in words, same shape as ``scores``; ``None`` if the file has none.
        assignments: nugget assignments from which the scores were computed, if the file has them.
    """

    path: Path
    runs: tuple[str, ...]
    topics: tuple[str, ...] | None
    scores: Floats
    answered: NDArray[np.bool_]
    lengths: Floats | None
    assignments: tuple[Assignment, ...] = ()

    @property
    def run_scores(self) -> Floats:
        return self.scores if self.topics is None else means(self.scores)

    def chosen(self, runs: Sequence[str], topics: Sequence[str] | None) -> Condition:
        """The condition restricted to these runs and topics; if ``topics`` is ``None``, with one score per run."""
        rows = [self.runs.index(run) for run in runs]
        if topics is None:
            lengths = self.lengths if self.lengths is None or self.topics is None else self.lengths.mean(axis=1)
            lengths = None if lengths is None else lengths[rows]
            return Condition(self.path, tuple(runs), None, self.run_scores[rows], np.ones(len(rows), np.bool_), lengths)
        assert self.topics is not None
        grid = np.ix_(rows, [self.topics.index(topic) for topic in topics])
        lengths = None if self.lengths is None else self.lengths[grid]
        assignments = tuple(
            assignment for assignment in self.assignments if assignment.run in runs and assignment.query_id in topics
        )
        return Condition(
            self.path, tuple(runs), tuple(topics), self.scores[grid], self.answered[grid], lengths, assignments
        )


def means(scores: Floats) -> Floats:
    """Mean of each run over the topics with a score, shape (runs, topics) to (runs,); NaN for a run without a score."""
    defined = ~np.isnan(scores)
    used = defined.sum(axis=1)
    return np.where(used > 0, np.where(defined, scores, 0.0).sum(axis=1) / np.maximum(used, 1), np.nan)


def read_condition(path: Path, column: str) -> Condition:
    """Read scores from nugget assignments, the output of ``ragleague nuggets``, or any table of runs and scores.

    Tables need the columns ``run`` and ``column`` and may have ``qid`` and ``length``; nuggetizer's names are accepted.

    Raises:
        InputError: the file cannot be read, lacks the column, or a score is not a number; names file, line and value.
    """
    if path.name.lower().removesuffix(".gz").endswith(".json"):
        return _of_runs(path, column, _json_rows(path, (column, "length")))
    if table_format(path) == "jsonl" and "nuggets" in read_columns(path):
        return _of_assignments(path, column)
    return _of_table(path, column)


def _of_assignments(path: Path, column: str) -> Condition:
    if column not in COLUMNS:
        raise InputError(f"{path}: there is no score {column!r}; choose one of {', '.join(COLUMNS)}")
    assignments = tuple(read_assignments([path]))
    table = score_table(assignments)
    scores, lengths = table.score(column), table.words.astype(np.float64)
    return Condition(path, table.runs, table.topics, scores.values, table.answered, lengths, assignments)


def _of_table(path: Path, column: str) -> Condition:
    words = {**SCORES.words, column: (NUGGETIZER.get(column, column),)}
    rows = list(TableSpec((*SCORES.columns, column), (*SCORES.needed, column), words).rows(path))
    if not any("qid" in row.values for row in rows):
        return _of_runs(path, column, rows)
    rows = [row for row in rows if row.text("qid") != _MEAN]
    entries: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = row.identifier("agent"), row.identifier("qid")
        if key in entries:
            raise row.error(f"run {key[0]!r} has its score of topic {key[1]!r} in {entries[key].place} already")
        entries[key] = row
    runs, topics = (tuple(sorted({key[place] for key in entries})) for place in (0, 1))
    scores, lengths = np.zeros((2, len(runs), len(topics)))
    answered = np.zeros((len(runs), len(topics)), np.bool_)
    for i, run in enumerate(runs):
        for j, topic in enumerate(topics):
            entry = entries.get((run, topic))
            if entry is not None:
                scores[i, j], lengths[i, j] = _number(entry, column), _number(entry, "length")
                answered[i, j] = entry.text("answered").lower() != "false"
    return Condition(path, runs, topics, scores, answered, None if np.isnan(lengths).any() else lengths)


def _of_runs(path: Path, column: str, rows: Sequence[Row]) -> Condition:
    entries: dict[str, Row] = {}
    for row in rows:
        run = row.identifier("agent")
        if run in entries:
            raise row.error(f"run {run!r} has its score in {entries[run].place} already")
        entries[run] = row
    runs = tuple(sorted(entries))
    scores, lengths = (np.array([_number(entries[run], name) for run in runs]) for name in (column, "length"))
    answered = np.ones(len(runs), np.bool_)
    return Condition(path, runs, None, scores, answered, None if np.isnan(lengths).any() else lengths)


def _json_rows(path: Path, numbers: Sequence[str]) -> list[Row]:
    content = read_json(path)
    runs = content.get("runs") if isinstance(content, Mapping) else None
    if not isinstance(runs, Mapping) or not runs or not all(isinstance(record, Mapping) for record in runs.values()):
        raise DataError(path, "must have an object 'runs', as 'ragleague nuggets score --format json' writes it")
    for run, record in runs.items():
        for name in numbers:
            if not isinstance(record.get(name), int | float | None):
                raise DataError(path, f"run {run!r}: {name!r} must be a number", value=str(record[name]))
    if all(record.get(numbers[0]) is None for record in runs.values()):
        raise DataError(path, f"no run has a value of the score {numbers[0]!r}; choose another score with --score")
    return [Row(path, 1, {**record, "agent": run}) for run, record in runs.items()]


def _number(row: Row, name: str) -> float:
    text = row.text(name).strip()
    try:
        number = float(text) if text else math.nan
    except ValueError:
        number = math.inf
    if math.isinf(number):
        raise row.error(f"run {row.text('agent')!r}: {name!r} must be a number", text)
    return number
