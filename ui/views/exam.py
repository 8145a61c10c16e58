"""Exam: how much of the test bank each agent covers, and where grades and bank go wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pandas as pd
import streamlit as st

from arena.exam.board import ExamBoard
from arena.exam.study import Study, Unit
from retrieval_eval.exam.grades import Labels
from ui import data, exam, text
from ui.address import pick, say_what_is_unknown
from ui.retrieval import WHOSE
from ui.states import incomplete, nothing
from ui.tables import show_table

_MOST_COLOURED: Final = 5000
"""Cells of a grid that are coloured; a larger one is drawn plain, at once."""
_GRADED: Final[dict[Unit, str]] = {"answers": "passages of an answer", "documents": "documents of a ranking"}
_NO_LABELS: Final[dict[Unit, str]] = {
    "answers": "Not known: nobody labelled a passage of an answer. Name people's labels of passages, by ids such as "
    "`query/agent#1`, under `data: {qrels: FILE}`, or give the passages as documents to a `retrieval` judge.",
    "documents": "Not known: nobody labelled a graded document. Name people's labels under `data: {qrels: FILE}`, or a "
    "judge under `retrieval`.",
}


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Exam", anchor=False)
    found = exam.study(source)
    if found is None:
        nothing("This tournament has no exam. Give its YAML file an `exam` section and run `ragarena run`.")
        return
    if found.bank is None or not any(found.bank.active.values()):
        nothing("No item of the test bank is written yet. `ragarena run` has them written.")
        return
    _say_what_is_there(found)
    board = data.board(source).exam
    level = found.usual_level
    if board is None:
        nothing("Answers are extracted and not graded in this exam (`extraction_only`): there is no score.")
    else:
        level = _level(found)
        _show_cover(board, level)
        _show_influence(source, found, level)
        _show_labels(source, found, level)
    _show_query(source, found, level)


def _say_what_is_there(found: Study) -> None:
    assert found.bank is not None
    items = sum(map(len, found.bank.active.values()))
    secret = sum(item.secret for own in found.bank.active.values() for item in own)
    hidden = f", {secret:,} of them secret: their texts are shown nowhere" if secret else ""
    text.quiet(f"Graded by {found.grader}")
    st.caption(f"Version {found.version} of the bank: {items:,} items on {len(found.bank.active):,} queries{hidden}.")
    if found.grids.ungraded:
        incomplete(
            f"{found.grids.ungraded:,} of {found.grids.pairs:,} pairs of passage and item have no "
            "grade. They cover nothing in the figures below; *At most* is the score if they all covered their item."
        )


def _level(found: Study) -> int:
    if len(found.levels) == 1:
        return found.usual_level
    usual = found.levels.index(found.usual_level)
    level = pick("An item is covered from grade", found.levels, "level", index=usual, width=260)
    say_what_is_unknown()
    return level


def _show_cover(board: ExamBoard, level: int) -> None:
    st.subheader("How much of the bank each agent covers", anchor=False)
    frame = exam.cover_frame(board.report, level)
    number = st.column_config.NumberColumn
    complete = all(row.graded == row.pairs for row in board.report.agents)
    show_table(
        frame,
        "Exam cover",
        height="content" if len(frame) <= 20 else 740,
        column_order=[str(name) for name in frame if name != "At most" or not complete],
        columns={
            "Place": number(format="%g", help="By cover at the grade chosen above; ties share the average.", width=60),
            "Agent": st.column_config.TextColumn(pinned=True),
            "At most": number(format="%.3f", help="Cover at the grade chosen if all pairs without one covered."),
            "Normalised": st.column_config.TextColumn(
                help="Share of those items that any graded passage of the query covers."
            ),
            "alpha-nDCG": st.column_config.TextColumn(
                help="The items as intents: covering one again is worth half as much, and early passages count more."
            ),
            "Queries": number(help="Queries of the bank to which the agent has a response; the others count as 0."),
            "Graded": number(format="%.0f %%", help="Pairs of its passages and items that have a grade."),
        },
    )
    k = board.report.scores.k
    st.caption(
        f"EXAM-Cover@{k}: share of the items that the first {k} {_GRADED[board.study.unit]} cover, ± one standard "
        f"error, mean over {len(board.report.scores.queries):,} queries."
    )


def _show_influence(source: data.Source, found: Study, level: int) -> None:
    st.subheader("Items that the leaderboard hangs on", anchor=False)
    without = exam.left_out(source, level)
    frame = exam.influence_frame(found, without)
    if frame.empty:
        st.caption(f"None: without any one of the {len(without):,} items all agents keep their places.")
        return
    _table(frame, "Influence of items")
    st.caption(
        f"{len(frame):,} of the {len(without):,} items: without it alone, agents would change places. Look at these "
        "first: an order should not hang on one item."
    )


def _show_labels(source: data.Source, found: Study, level: int) -> None:
    st.subheader("Does the bank ask for what is relevant?", anchor=False)
    labels = exam.labels(source)
    if not labels:
        st.caption(_NO_LABELS[found.unit])
        return
    with st.container(horizontal=True):
        whose = pick("Labels of", list(labels), "labels", WHOSE.__getitem__, width=260)
        values = sorted({label for own in labels[whose].values() for label in own.values()})
        start = next((at for at, value in enumerate(values) if value >= 1), len(values) - 1)
        relevant = pick("Relevant from label", values, f"relevant-{whose}", index=start, width=260)
    say_what_is_unknown()
    _show_uncovered(found, labels[whose], level, relevant)
    _show_spurious(found, labels[whose], level, relevant)


def _show_uncovered(found: Study, labels: Labels, level: int, relevant: int) -> None:
    frame = exam.uncovered_frame(found, labels, level, relevant)
    if frame.empty:
        st.caption("Every relevant passage covers some item.")
        return
    _table(frame, "Relevant passages that no item covers")
    st.caption(f"{len(frame):,} relevant passages that cover no item: the bank may lack what they say.")


def _show_spurious(found: Study, labels: Labels, level: int, relevant: int) -> None:
    frame = exam.spurious_frame(found, labels, level, relevant)
    if frame.empty:
        st.caption("No item is covered by a passage that is not relevant.")
        return
    _table(frame, "Items that passages without relevance cover")
    st.caption(f"{len(frame):,} items are covered by passages that are not relevant: reword or retire them.")


def _show_query(source: data.Source, found: Study, level: int) -> None:
    st.subheader("Query by query", anchor=False)
    queries = data.queries(source)
    named = {
        query_id: f"{query_id}: {text.clipped(queries[query_id].text, 60)}"
        for query_id, grid in found.grids.grids.items()
        if grid.items
    }
    query_id = pick("Query", list(named), "query", named.__getitem__)
    say_what_is_unknown()
    text.lead(queries[query_id].text)
    without = exam.left_out(source, level)
    items = exam.items_frame(found, query_id, level, without)
    _table(items, "Items of the query", {"Item": st.column_config.TextColumn(width="large")})
    grid = exam.grid_frame(found, query_id)
    if grid.empty:
        nothing("Nothing was there to be graded for this query.")
        return
    narrow = {str(name): st.column_config.NumberColumn(width=110) for name in list(grid)[2:]}
    _table(grid, "Passages and items", narrow, lambda shown: _coloured(shown, max(found.levels)))
    st.caption("Passages by items, as numbered above; the darker, the higher the grade. Empty: no grade.")
    _show_item(found, query_id, list(named).index(query_id))


def _show_item(found: Study, query_id: str, place_of_query: int) -> None:
    ids = found.grids.grids[query_id].items
    names = [f"{number}: {text.clipped(found.text_of(item_id), 120)}" for number, item_id in enumerate(ids, start=1)]
    # Numbers, not ids: an id may give a secret item away.
    place = pick("Item", range(len(ids)), f"item-{place_of_query}", names.__getitem__)
    say_what_is_unknown()
    frame = exam.answers_frame(found, query_id, ids[place])
    if frame.empty:
        st.caption("No passage is graded against this item yet.")
        return
    wide = st.column_config.TextColumn(width="large")
    text.plain(found.text_of(ids[place]))
    said = frame["Answer or reason"].any()
    _table(
        frame if said else frame.drop(columns="Answer or reason"),
        "Grades of the item",
        {"Text of the passage": wide, "Answer or reason": wide},
    )
    if ids[place] in found.secret:
        st.caption("What was answered to a secret item is not shown: it may repeat the item.")


def _coloured(frame: pd.DataFrame, highest: int) -> Any:
    """The grades on a blue that fits both a light and a dark page."""
    if frame.size > _MOST_COLOURED:
        return frame

    def shade(grade: Any) -> str:
        return "" if pd.isna(grade) else f"background-color: rgba(28, 131, 225, {0.65 * int(grade) / highest:.2f})"

    return frame.style.map(shade, subset=list(frame)[2:])


def _table(
    frame: pd.DataFrame,
    alt: str,
    config: dict[str, Any] | None = None,
    style: Callable[[pd.DataFrame], Any] | None = None,
) -> None:
    """A table of bounded height."""
    show_table(
        frame,
        alt,
        height="content" if len(frame) <= 10 else 36 * 11 + 2,
        unknown="",
        style=style,
        columns={
            "Agent": st.column_config.TextColumn(pinned=True),
            **{name: st.column_config.NumberColumn(width=80) for name in ("No.", "Passage", "Grade")},
            **(config or {}),
        },
    )
