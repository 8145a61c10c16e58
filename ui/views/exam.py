"""Exam: how much of the test bank each agent covers, and where grades and bank go wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import streamlit as st

from arena.boards.exam import ExamBoard
from arena.boards.exam_oversight import (
    answers_table,
    grid_picture,
    grid_table,
    influence_table,
    items_table,
    spurious_table,
    uncovered_table,
)
from arena.boards.retrieval import WHOSE
from arena.present.numbers import counted
from arena.stages.exam.study import Study, Unit
from ui import data, text
from ui.address import pick, say_what_is_unknown
from ui.show import show_block, show_table
from ui.text import incomplete, nothing

_NO_LABELS: Final[dict[Unit, str]] = {
    "answers": "Not known: nobody labelled a passage of an answer. Name people's labels of passages, by ids such as "
    "`query/agent#1`, under `data: {qrels: FILE}`, or give the passages as documents to a `retrieval` judge.",
    "documents": "Not known: nobody labelled a graded document. Name people's labels under `data: {qrels: FILE}`, or a "
    "judge under `retrieval`.",
}


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Exam", anchor=False)
    study = data.study(source)
    if study is None:
        nothing("This tournament has no exam. Give its YAML file an `exam` section and run `ragleague run`.")
        return
    if study.bank is None or not any(study.bank.active.values()):
        nothing("No item of the test bank is written yet. `ragleague run` has them written.")
        return
    text.quiet(f"Graded by {study.grader}")
    if secret := sum(item.secret for own in study.bank.active.values() for item in own):
        st.caption(f"{counted(secret, 'item is', 'items are')} secret: texts of them are shown nowhere.")
    if study.grids.ungraded:
        incomplete(f"{study.grids.ungraded:,} of {study.grids.pairs:,} pairs of passage and item have no grade.")
    scores, level = data.board(source).exam, study.usual_level
    if scores is None:
        nothing("Answers are extracted and not graded in this exam (`extraction_only`): there is no score.")
    else:
        if len(study.levels) > 1:
            usual = study.levels.index(level)
            level = pick("An item is covered from grade", study.levels, "level", index=usual, width=260)
            say_what_is_unknown()
        for table in (*ExamBoard(scores, level).tables(), influence_table(study, data.left_out(source, level))):
            show_table(table)
        _show_labels(source, study, level)
    _show_query(source, study, level)


def _show_labels(source: data.Source, study: Study, level: int) -> None:
    st.subheader("Does the bank ask for what is relevant?", anchor=False)
    labels = data.exam_labels(source)
    if not labels:
        st.caption(_NO_LABELS[study.unit])
        return
    with st.container(horizontal=True):
        whose = pick("Labels of", list(labels), "labels", WHOSE.__getitem__, width=260)
        values = sorted({label for own in labels[whose].values() for label in own.values()})
        start = next((at for at, value in enumerate(values) if value >= 1), len(values) - 1)
        relevant = pick("Relevant from label", values, f"relevant-{whose}", index=start, width=260)
    say_what_is_unknown()
    labelled = replace(study, labels=labels[whose])
    show_table(uncovered_table(labelled, level, relevant))
    show_table(spurious_table(labelled, level, relevant))


def _show_query(source: data.Source, study: Study, level: int) -> None:
    st.subheader("Query by query", anchor=False)
    queries = data.queries(source)
    named = {
        query_id: text.query_label(query_id, queries[query_id].text)
        for query_id, grid in study.grids.grids.items()
        if grid.items
    }
    query_id = pick("Query", list(named), "query", named.__getitem__)
    say_what_is_unknown()
    text.lead(queries[query_id].text)
    show_table(items_table(study, query_id, level, data.left_out(source, level)))
    if not study.grids.grids[query_id].passages:
        nothing("Nothing was there to be graded for this query.")
        return
    if (picture := grid_picture(study, query_id)) is not None:
        show_block(picture)
    else:
        show_table(grid_table(study, query_id))
    _show_item(study, query_id, list(named).index(query_id))


def _show_item(study: Study, query_id: str, place_of_query: int) -> None:
    ids = study.grids.grids[query_id].items
    names = [f"{number}: {text.clipped(study.text_of(item_id), 120)}" for number, item_id in enumerate(ids, start=1)]
    # Numbers, not ids: an id may give a secret item away.
    place = pick("Item", range(len(ids)), f"item-{place_of_query}", names.__getitem__)
    say_what_is_unknown()
    text.plain(study.text_of(ids[place]))
    answers = answers_table(study.of_query(query_id), ids[place])
    if not answers.rows:
        st.caption("No passage is graded against this item yet.")
        return
    show_table(answers)
    if ids[place] in study.secret:
        st.caption("What was answered to a secret item is not shown: it may repeat the item.")
