"""One condition of a nugget evaluation as a file has it: its assignments, or scores of runs or of runs and topics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from judges.errors import DataError, InputError
from retrieval_eval.data.files import read_json
from retrieval_eval.data.rows import Row, table_format
from retrieval_eval.data.tables import read_columns, read_rows
from retrieval_eval.nuggets.files import read_assignments
from retrieval_eval.nuggets.scores import COLUMNS, NUGGETIZER, Floats, score_table
from retrieval_eval.nuggets.types import Assignment

_RUN: Final = ("run_id", "agent", "system", "run_tag")
_TOPIC: Final = ("query_id", "topic_id", "topic")
_LENGTH: Final = ("response_length", "words")
_MEAN: Final = "all"
"""The topic under which nuggetizer and trec_eval write means."""


@dataclass(frozen=True, eq=False)
class Condition:
    """Scores of one condition.

    Attributes:
        path: where they come from.
        runs: names, sorted.
        topics: sorted; ``None`` where the file has scores of whole runs only.
        scores: shape (runs, topics) or (runs,), NaN where not defined, 0 where a run did not answer.
        answered: whether the run answered, shape as ``scores``.
        lengths: words, shape as ``scores``; ``None`` where the file does not say.
        assignments: what the scores come from, where the file holds that.
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
        """Mean over topics of what is defined, shape (runs,), NaN where nothing is."""
        return self.scores if self.topics is None else means(self.scores)

    def chosen(self, runs: Sequence[str], topics: Sequence[str] | None) -> Condition:
        """These runs and topics alone; without topics those of whole runs."""
        rows = [self.runs.index(run) for run in runs]
        if topics is None:
            lengths = self.lengths if self.lengths is None or self.topics is None else self.lengths.mean(axis=1)
            lengths = None if lengths is None else lengths[rows]
            return Condition(self.path, tuple(runs), None, self.run_scores[rows], np.ones(len(rows), np.bool_), lengths)
        assert self.topics is not None
        grid = np.ix_(rows, [self.topics.index(topic) for topic in topics])
        lengths = None if self.lengths is None else self.lengths[grid]
        kept = tuple(own for own in self.assignments if own.run in runs and own.query_id in topics)
        return Condition(self.path, tuple(runs), tuple(topics), self.scores[grid], self.answered[grid], lengths, kept)


def means(scores: Floats) -> Floats:
    """Mean over topics of what is defined, shape (runs, topics) to (runs,), NaN where nothing is."""
    defined = ~np.isnan(scores)
    used = defined.sum(axis=1)
    return np.where(used > 0, np.where(defined, scores, 0.0).sum(axis=1) / np.maximum(used, 1), np.nan)


def read_condition(path: Path, column: str) -> Condition:
    """Read a file of assignments, the JSON or the table of ``nuggets score``, or any table of runs and scores.

    Tables have columns ``run`` and ``column``, and may have ``qid`` and ``length``; nuggetizer's names are understood.

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
        raise InputError(f"{path}: no score is called {column!r}; there are {', '.join(COLUMNS)}")
    assignments = tuple(read_assignments([path]))
    table = score_table(assignments)
    scores, lengths = table.values[..., COLUMNS.index(column)], table.words.astype(np.float64)
    return Condition(path, table.runs, table.topics, scores, table.answered, lengths, assignments)


def _of_table(path: Path, column: str) -> Condition:
    aliases = {"run": _RUN, "qid": _TOPIC, column: (NUGGETIZER.get(column, column),), "length": _LENGTH}
    rows = list(read_rows(path, ("run", column), aliases))
    if not any("qid" in row.values for row in rows):
        return _of_runs(path, column, rows)
    rows = [row for row in rows if row.text("qid") != _MEAN]
    entries: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = row.identifier("run"), row.identifier("qid")
        if key in entries:
            raise row.error(f"run {key[0]!r} has its score of topic {key[1]!r} in {entries[key].place} already")
        entries[key] = row
    runs, topics = (tuple(sorted({key[place] for key in entries})) for place in (0, 1))
    scores, lengths = np.zeros((2, len(runs), len(topics)))
    answered = np.zeros((len(runs), len(topics)), np.bool_)
    for i, run in enumerate(runs):
        for j, topic in enumerate(topics):
            found = entries.get((run, topic))
            if found is not None:
                scores[i, j], lengths[i, j] = _number(found, column), _number(found, "length")
                answered[i, j] = found.text("answered").lower() != "false"
    return Condition(path, runs, topics, scores, answered, None if np.isnan(lengths).any() else lengths)


def _of_runs(path: Path, column: str, rows: Sequence[Row]) -> Condition:
    entries: dict[str, Row] = {}
    for row in rows:
        run = row.identifier("run")
        if run in entries:
            raise row.error(f"run {run!r} has its score in {entries[run].place} already")
        entries[run] = row
    runs = tuple(sorted(entries))
    scores, lengths = (np.array([_number(entries[run], name) for run in runs]) for name in (column, "length"))
    answered = np.ones(len(runs), np.bool_)
    return Condition(path, runs, None, scores, answered, None if np.isnan(lengths).any() else lengths)


def _json_rows(path: Path, numbers: Sequence[str]) -> list[Row]:
    """The runs of ``nuggets score --format json``."""
    content = read_json(path)
    runs = content.get("runs") if isinstance(content, Mapping) else None
    if not isinstance(runs, Mapping) or not runs or not all(isinstance(own, Mapping) for own in runs.values()):
        raise DataError(path, "not what 'nuggets score --format json' writes: it has no object 'runs'")
    for run, own in runs.items():
        for name in numbers:
            if not isinstance(own.get(name), int | float | None):
                raise DataError(path, f"run {run!r}: {name!r} must be a number", value=str(own[name]))
    if all(own.get(numbers[0]) is None for own in runs.values()):
        raise DataError(path, f"no run has a score {numbers[0]!r}")
    return [Row(path, 1, {**own, "run": run}) for run, own in runs.items()]


def _number(row: Row, name: str) -> float:
    """A score or a length; NaN where there is none."""
    text = row.text(name).strip()
    try:
        number = float(text) if text else math.nan
    except ValueError:
        number = math.inf
    if math.isinf(number):
        raise row.error(f"run {row.text('run')!r}: {name!r} must be a number", text)
    return number
