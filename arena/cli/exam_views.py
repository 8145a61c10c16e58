"""The views of ``exam oversight``, each a list of flat rows: printed, as JSON, or as a table in a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

from arena.cli.console import output, print_json, printable, rounded
from arena.cli.tables import print_table
from arena.exam.study import Study
from judges.errors import InputError
from judges.tables import write_rows
from retrieval_eval.exam.grades import Grids
from retrieval_eval.exam.influence import influences
from retrieval_eval.exam.oversight import graded_answers, grid_rows, spurious_items, uncovered_passages

Row: TypeAlias = dict[str, Any]

_SHOWN = 10
_LONGEST_TEXT = 90

_TITLES = {
    "uncovered": "relevant passages that no item covers",
    "spurious": "items that passages without relevance cover",
    "influence": "items that the leaderboard hangs on",
}


def show_view(
    study: Study,
    view: str,
    *,
    query: str | None,
    level: int,
    relevant: int,
    k: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print one view, or the beginnings of those that name what to look at."""
    if query is not None:
        study = replace(study, grids=Grids({query: study.grids.grids[query]}))
    views: dict[str, Callable[[], list[Row]]] = {
        "answers": lambda: _answer_rows(study),
        "grid": lambda: _grid_table(study, query),
        "uncovered": lambda: _uncovered_rows(study, level, relevant),
        "spurious": lambda: _spurious_rows(study, level, relevant),
        "influence": lambda: _influence_rows(study, level, k),
    }
    if view != "summary":
        _write(views[view](), out, as_json)
        return
    if out is not None:
        raise InputError("--out goes with one view; say which with --show")
    possible = [name for name in _TITLES if study.rankings or name != "influence"]
    possible = [name for name in possible if study.labels or name == "influence"]
    if as_json:
        print_json({name: rounded(views[name]()) for name in possible})
        return
    output.print(f"{study.grids.pairs} pairs of passage and item, {study.grids.ungraded} without a grade")
    if not study.labels:
        output.print("no labels by people: name them with --qrels to see uncovered passages and spurious items")
    if not study.rankings:
        output.print("no rankings: name the runs with --run to see which items the leaderboard hangs on")
    for name in possible:
        rows = views[name]()
        output.print(f"\n{_TITLES[name]}: {len(rows)}")
        if rows:
            _print_rows(rows[:_SHOWN])
        if len(rows) > _SHOWN:
            output.print(f"... all of them:  --show {name}")


def _write(rows: list[Row], out: Path | None, as_json: bool) -> None:
    if out is not None:
        write_rows(out, tuple(rows[0]) if rows else ("qid",), rows)
        output.print(f"{len(rows)} rows written to {out}")
    elif as_json:
        print_json(rounded(rows))
    elif rows:
        _print_rows(rows)
    else:
        output.print("nothing to show")


def _print_rows(rows: Sequence[Row]) -> None:
    names = list(rows[0])
    texts = [name for name in names if any(isinstance(row[name], str) for row in rows)]
    numbers = [name for name in names if name not in texts]
    cells = [[*(_short(row[name]) for name in texts), *(_cell(row[name]) for name in numbers)] for row in rows]
    print_table([name.replace("_", " ") for name in texts], [name.replace("_", " ") for name in numbers], cells)


def _answer_rows(study: Study) -> list[Row]:
    answers = study.open_answers()
    return [
        {
            "qid": found.query_id,
            "item": study.text_of(found.item_id),
            "did": found.passage_id,
            "answer": found.answer,
            "grade": found.grade,
        }
        for found in graded_answers(study.grids, answers)
    ]


def _grid_table(study: Study, query: str | None) -> list[Row]:
    if query is None:
        raise InputError("--show grid: name the query with --query")
    items = [study.open_id(item_id) for item_id in study.grids.grids[query].items]
    return [
        {"did": passage, **dict(zip(items, grades, strict=True))} for passage, grades in grid_rows(study.grids, query)
    ]


def _uncovered_rows(study: Study, level: int, relevant: int) -> list[Row]:
    _require_labels(study)
    return [
        {
            "qid": found.query_id,
            "did": found.passage_id,
            "text": study.graded.passages.get(found.query_id, {}).get(found.passage_id, ""),
            "label": found.label,
            "best_grade": found.best,
            "ungraded": found.ungraded,
        }
        for found in uncovered_passages(study.grids, study.labels, level=level, relevant=relevant)
    ]


def _spurious_rows(study: Study, level: int, relevant: int) -> list[Row]:
    _require_labels(study)
    return [
        {
            "qid": found.query_id,
            "item": study.text_of(found.item_id),
            "not_relevant": found.not_relevant,
            "of": found.not_relevant_graded,
            "relevant": found.relevant,
            "of_relevant": found.relevant_graded,
        }
        for found in spurious_items(study.grids, study.labels, level=level, relevant=relevant)
    ]


def _influence_rows(study: Study, level: int, k: int) -> list[Row]:
    if not study.rankings:
        raise InputError("--show influence: there are no rankings; give the runs with --run")
    found = influences(study.grids, study.rankings, level=level, k=k)
    return [
        {
            "qid": item.query_id,
            "item": study.text_of(item.item_id),
            "new_leader": "yes" if item.new_leader else "no",
            **{name: value for name, value in asdict(item).items() if name in ("moved", "largest_move", "kendall")},
        }
        for item in found
    ]


def _require_labels(study: Study) -> None:
    if not study.labels:
        raise InputError("there are no labels by people; name them with --qrels")


def _short(value: Any) -> str:
    text = printable(" ".join(str("" if value is None else value).split()))
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
