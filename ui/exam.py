"""The exam as a reader looks at it: cached reads of one tournament, and tables. Of a secret item only figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import pandas as pd
import streamlit as st

from arena.exam.board import exam_study
from arena.exam.score import ScoreReport
from arena.exam.study import Study
from arena.retrieval import Source as Whose
from arena.store import Store
from retrieval_eval.exam.cover import Mean
from retrieval_eval.exam.grades import Grids, Labels
from retrieval_eval.exam.influence import Influence, influences
from retrieval_eval.exam.oversight import graded_answers, grid_rows, spurious_items, uncovered_passages
from retrieval_eval.exam.passages import origin_of
from ui import data, text
from ui.retrieval import label_in

_KEPT: Final = 4
_LONGEST: Final = 2000
"""Characters of a text in a cell, which opens at a double click."""


@st.cache_resource(max_entries=_KEPT, show_spinner="Reading the grades …")
def study(source: data.Source) -> Study | None:
    """Bank, grades and passages; ``None`` where the tournament has no exam."""
    if not data.settings(source).get("exam"):
        return None
    board = data.board(source).exam
    if board is not None:
        return board.study
    with closing(Store.open(source.location)) as store:
        return exam_study(store, source.tournament)


@st.cache_resource(max_entries=_KEPT, show_spinner="Reading the labels …")
def labels(source: data.Source) -> Mapping[Whose, Labels]:
    """Relevance labels of the graded passages, by whose they are; only those who labelled any.

    A label goes to the passage whose id it names, for instance ``q1/agent#2``.
    """
    found = study(source)
    if found is None:
        return {}
    passages = {query_id: set(grid.passages) for query_id, grid in found.grids.grids.items()}
    judged: dict[str, dict[str, int]] = {}
    for (query_id, doc_id), result in data.labels(source).items():
        if (label := label_in(result)) is not None:
            judged.setdefault(query_id, {})[doc_id] = label
    given: Mapping[Whose, Labels] = {"people": data.dataset(source).qrels, "judge": judged}
    own: dict[Whose, Labels] = {
        whose: {
            query_id: {passage: label for passage, label in of_query.items() if passage in passages.get(query_id, ())}
            for query_id, of_query in some.items()
        }
        for whose, some in given.items()
    }
    return {whose: some for whose, some in own.items() if any(some.values())}


@st.cache_resource(max_entries=2 * _KEPT, show_spinner="Leaving out each item in turn …")
def left_out(source: data.Source, level: int) -> Sequence[Influence]:
    """What the leaderboard would be without each item, those that move it most first."""
    found = study(source)
    if found is None or not found.rankings:
        return ()
    return influences(found.grids, found.rankings, level=level, k=depth(source))


def depth(source: data.Source) -> int:
    """Passages of an answer that count."""
    return int(data.settings(source)["exam"]["depth"])


def cover_frame(report: ScoreReport, level: int) -> pd.DataFrame:
    """Every agent's cover at every grade, with standard errors, and what is behind it."""
    ranked = sorted(report.agents, key=lambda row: (row.place[level], row.agent))
    names = {own: f"Grade {own} or more" if len(report.levels) > 1 else "Cover" for own in report.levels}
    return pd.DataFrame(
        {
            "Place": [row.place[level] for row in ranked],
            "Agent": [row.agent for row in ranked],
            **{names[own]: [with_error(row.cover[own]) for row in ranked] for own in report.levels},
            "At most": [round(row.possible[level].value, 3) for row in ranked],
            "Normalised": [with_error(row.normalised[level]) for row in ranked],
            "alpha-nDCG": [with_error(row.alpha_ndcg[level]) for row in ranked],
            "Queries": [row.queries for row in ranked],
            "Graded": [100 * row.graded / row.pairs if row.pairs else None for row in ranked],
        }
    )


def items_frame(found: Study, query_id: str, level: int, without: Sequence[Influence]) -> pd.DataFrame:
    """The items of one query: who covers them, and what the leaderboard would be without."""
    grid = found.grids.grids[query_id]
    influence = {one.item_id: one for one in without if one.query_id == query_id}
    rows: list[dict[str, Any]] = []
    for column, item_id in enumerate(grid.items):
        grades, one = grid.grades[:, column], influence.get(item_id)
        rows.append(
            {
                "No.": column + 1,
                "Item": _cell(found.text_of(item_id)),
                "Weight": float(grid.weights[column]),
                "Covered by": int((grades >= level).sum()),
                "Highest grade": int(grades.max()) if (grades >= 0).any() else None,
                "Not graded": int((grades < 0).sum()),
                "Agents moved": None if one is None else one.moved,
                "Other leader": "" if one is None or not one.new_leader else "yes",
            }
        )
    return pd.DataFrame(rows)


def grid_frame(found: Study, query_id: str) -> pd.DataFrame:
    """Passages by items, the highest sum of grades first; columns are numbered as in ``items_frame``."""
    items = found.grids.grids[query_id].items
    names = [f"{number}: {text.clipped(found.text_of(item_id), 40)}" for number, item_id in enumerate(items, start=1)]
    rows = list(grid_rows(Grids({query_id: found.grids.grids[query_id]}), query_id))
    frame = pd.DataFrame(_whose([passage for passage, _ in rows]))
    for column, name in enumerate(names):
        frame[name] = pd.array([grades[column] for _, grades in rows], dtype="Int64")
    return frame


def answers_frame(found: Study, query_id: str, item_id: str) -> pd.DataFrame:
    """The grades of one item beside what was found in each passage, the highest first."""
    answers = found.open_answers()
    texts = found.graded.passages.get(query_id, {})
    graded = graded_answers(Grids({query_id: found.grids.grids[query_id]}), answers)
    own = [one for one in graded if one.item_id == item_id]
    return pd.DataFrame(
        {
            **_whose([one.passage_id for one in own]),
            "Grade": pd.array([one.grade for one in own], dtype="Int64"),
            "Answer or reason": [_cell(one.answer) for one in own],
            "Text of the passage": [_cell(texts.get(one.passage_id, "")) for one in own],
        }
    )


def uncovered_frame(found: Study, labelled: Labels, level: int, relevant: int) -> pd.DataFrame:
    """Relevant passages that cover no item."""
    rows = uncovered_passages(found.grids, labelled, level=level, relevant=relevant)
    return pd.DataFrame(
        {
            "Query": [one.query_id for one in rows],
            **_whose([one.passage_id for one in rows]),
            "Label": [one.label for one in rows],
            "Highest grade": pd.array([one.best for one in rows], dtype="Int64"),
            "Not graded": [one.ungraded for one in rows],
            "Text": [_cell(found.graded.passages.get(one.query_id, {}).get(one.passage_id, "")) for one in rows],
        }
    )


def spurious_frame(found: Study, labelled: Labels, level: int, relevant: int) -> pd.DataFrame:
    """Items that passages without relevance cover."""
    rows = spurious_items(found.grids, labelled, level=level, relevant=relevant)
    return pd.DataFrame(
        {
            "Query": [one.query_id for one in rows],
            "Item": [_cell(found.text_of(one.item_id)) for one in rows],
            "Not relevant, cover it": [one.not_relevant for one in rows],
            "of": [one.not_relevant_graded for one in rows],
            "Relevant, cover it": [one.relevant for one in rows],
            "of those": [one.relevant_graded for one in rows],
        }
    )


def influence_frame(found: Study, without: Sequence[Influence]) -> pd.DataFrame:
    """What the leaderboard would be without each item, as far as it would be another one."""
    rows = [one for one in without if one.moved]
    return pd.DataFrame(
        {
            "Query": [one.query_id for one in rows],
            "Item": [_cell(found.text_of(one.item_id)) for one in rows],
            "Other leader": ["yes" if one.new_leader else "" for one in rows],
            "Agents moved": [one.moved for one in rows],
            "Largest move": [one.largest_move for one in rows],
            "Kendall's tau": [None if one.kendall is None else round(one.kendall, 3) for one in rows],
        }
    )


def with_error(value: Mean) -> str:
    """A mean with one standard error over queries."""
    return f"{value.value:.3f}" + ("" if value.error is None else f" ± {value.error:.3f}")


def _whose(passages: Sequence[str]) -> dict[str, list[Any]]:
    """Columns that say which passage of whose answer each is, which their ids tell."""
    origins = [origin_of(passage) for passage in passages]
    return {
        "Agent": ["" if origin is None else origin[1] for origin in origins],
        "Passage": [
            passage if origin is None else origin[2] for passage, origin in zip(passages, origins, strict=True)
        ],
    }


def _cell(given: str) -> str:
    return text.clipped(given, _LONGEST)
