"""Scores that other tools gave to answers: where they stand in tables and files of results, and their values."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from arena.data.dataset import Dataset
from arena.data.files import load_dataset
from arena.data.kinds import as_number
from arena.data.records import ANSWERS
from judges.errors import DataError, InputError
from judges.types import WITHOUT_TEXT, Answer, Query
from retrieval_eval.data.files import file_stem
from retrieval_eval.data.rows import Row, id_of_text
from retrieval_eval.data.table_spec import OF_DATA, Columns
from retrieval_eval.data.table_spec import TableSpec as Spec
from retrieval_eval.data.tables import read_columns

SCORES: Final = Spec(
    ("qid", "query", "agent", "criterion", "score", "repeat"),
    words={"score": ("value", "metric_value", "result"), "repeat": ("run", "epoch", "trial", "seed", "iteration")},
    kept=True,
    option=True,
    named_by={"score": "criterion"},
)
"""Columns of a table with a row for each score, or with a column for each that the user names."""
LOWER: Final = re.compile(
    r"(?:^|[^a-z])(?:hallucinations?|toxicity|bias|noise|errors?|latency|cost|perplexity|distance|wer|cer)(?:$|[^a-z])"
)
"""Matches names of scores of which lower is better, in lower case."""
_GRADES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "true": 1.0, "false": 0.0}
"""Inspect's grades, and truth."""
_NESTED: Final = ("metricsData", "metrics_data", "metrics", "scores", "namedScores", "named scores", "feedback")
_NAMED: Final = re.compile(r"(?:feedback\.)?(.+?)(?:/v\d+)?(?:/score|/mean|/value)?")
"""Matches names of scores as LangSmith (``feedback.x``) and MLflow (``x/v1/score``) write them."""


def scores_in(data: Dataset, name: str) -> dict[tuple[str, str], float]:
    """The answers' numbers in a column, by (agent, query_id); answers without a number are left out."""
    cells = ((key, as_number(answer.metadata.get(name, ""))) for key, answer in data.answers.items())
    return {
        (agent, query_id): number for (query_id, agent), number in cells if number is not None and abs(number) < 1e300
    }


def read_scores(files: Sequence[Path], columns: Columns | None = None) -> tuple[Dataset, list[str]]:
    """Read scores of answers: the answers with their scores as metadata, and the scores' names, in order.

    Tables with a row for each score, or of which the user names several columns of scores, need no answers. In files
    of answers the scores are those that stand in objects, as DeepEval, promptfoo, RAGChecker and Inspect write them,
    else all columns of numbers from 0 to 1.
    """
    choice = columns or {}
    headers = [read_columns(file) for file in files]
    if "score" in choice and isinstance(choice["score"], str) and "criterion" not in choice:
        choice = {**choice, "score": [choice["score"]]}
    named = all({"criterion", "score"} <= set(SCORES.named(header, choice).values()) for header in headers)
    if named or not isinstance(choice.get("score"), str | None):
        return _from_rows(files, choice)
    if not all(ANSWERS.has_all(header, choice) for header in headers):
        raise DataError(files[0], "no columns 'metric' and 'value'; name each column of scores: --column score=NAME")
    data = load_dataset(answers=files, columns={name: choice[name] for name in choice if name in OF_DATA})
    scored = {key: _scores_of(answer.metadata) for key, answer in data.answers.items()}
    nested, flat = ([{**each[kind]} for each in scored.values()] for kind in (0, 1))
    names = list(dict.fromkeys(name for each in nested for name in each))
    if not names:
        names = list(dict.fromkeys(name for each in flat for name in each))
        names = [name for name in names if all(0 <= each.get(name, 0) <= 1 for each in flat)]
    if not names:
        raise DataError(files[0], "no column has scores from 0 to 1; say which one has: --column score=NAME")
    answers = {
        key: replace(
            answer,
            metadata={
                **answer.metadata,
                **{name: f"{cell:.15g}" for each in scored[key] for name, cell in each.items() if name in names},
            },
        )
        for key, answer in data.answers.items()
    }
    return replace(data, answers=answers), names


def _from_rows(files: Sequence[Path], columns: Columns) -> tuple[Dataset, list[str]]:
    values: defaultdict[tuple[str, str], dict[str, dict[str, tuple[float, Row]]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    queries: dict[str, Query] = {}
    reading = SCORES.report()
    for file in files:
        for row in reading.through(SCORES.rows(file, columns)):
            text = row.text("query").strip()
            if not (query_id := row.identifier("qid") if "qid" in row.values else text and id_of_text("q", text)):
                raise SCORES.missing(file, "qid", row.values, row.line, chosen=True)
            cell, agent = (
                row.text("score").strip(),
                row.identifier("agent") if "agent" in row.values else file_stem(file),
            )
            number = _GRADES.get(cell, as_number(cell))
            further = {name: value for name in row.values if name not in SCORES.columns and (value := row.text(name))}
            further |= {} if text else WITHOUT_TEXT
            first = queries.setdefault(query_id, Query(query_id, text or query_id, further))
            same = dict(first.metadata.items() & further.items())  # what varies is not of the query
            queries[query_id] = replace(first, metadata=same)
            runs = values[query_id, agent][row.identifier("criterion")]
            if cell and (number is None or not abs(number) < 1e300):
                raise row.error(f"{row.theirs('score')!r} must be a number; leave it empty where there is none", cell)
            if (repeat := row.text("repeat")) in runs:
                place = runs[repeat][1].place
                raise row.error(f"a second score of this answer, see {place}; name the column of runs 'repeat'", cell)
            if number is not None:
                runs[repeat] = number, row
    names = list(dict.fromkeys(name for by_name in values.values() for name, runs in by_name.items() if runs))
    most = max((len(runs) for by_name in values.values() for runs in by_name.values()), default=0)
    reading.say(
        f"{len(queries):,} queries, scores: {', '.join(names)}" + (f"; means of {most} runs" if most > 1 else "")
    )
    answers = {
        (query_id, agent): Answer(
            query_id,
            agent,
            "",
            {
                **WITHOUT_TEXT,
                **{
                    name: f"{sum(number for number, _ in runs.values()) / len(runs):.15g}"
                    for name, runs in by_name.items()
                    if runs
                },
            },
        )
        for (query_id, agent), by_name in values.items()
    }
    if not names:
        raise InputError(f"{files[0]}: no score in it; add at least one")
    return Dataset(queries, answers=answers), names


def _scores_of(metadata: Mapping[str, str]) -> tuple[dict[str, float], dict[str, float]]:
    """The scores in an answer's metadata: those in objects or so named, and all other numbers."""
    nested: dict[str, float] = {}
    flat: dict[str, float] = {}
    for name, text in metadata.items():
        if name in _NESTED:
            nested |= dict(_in_object(_decoded(text)))
        elif (number := as_number(text)) is not None:
            match = _NAMED.fullmatch(name)
            short = match[1] if match else name
            (flat if short == name else nested)[short] = number
    return nested, flat


def _in_object(whole: Any) -> Iterator[tuple[str, float]]:
    entries = (
        whole.items()
        if isinstance(whole, Mapping)
        else [(each.get("name") or each.get("metric"), each) for each in whole if isinstance(each, Mapping)]
        if isinstance(whole, list)
        else []
    )
    for name, cell in entries:
        value = (
            next((cell[key] for key in ("score", "value") if key in cell), None) if isinstance(cell, Mapping) else cell
        )
        number = (
            _GRADES.get(str(value).casefold() if isinstance(value, bool) else value)
            if isinstance(value, str | bool)
            else value
        )
        if isinstance(number, int | float) and name:
            yield str(name), float(number)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
