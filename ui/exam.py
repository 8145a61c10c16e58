"""The exam as a reader looks at it: cached reads of one tournament."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Final

import streamlit as st

from arena.boards.documents import Source as Whose
from arena.stages.exam.stored import exam_study
from arena.stages.exam.study import Study
from arena.store import Store
from retrieval_eval.exam.grades import Labels
from retrieval_eval.exam.oversight import Influence, influences
from ui import data
from ui.views.documents import label_in

_KEPT: Final = 4


@st.cache_resource(max_entries=_KEPT, show_spinner="Reading the grades …")
def study(source: data.Source) -> Study | None:
    """Bank, grades and passages; ``None`` where the tournament has no exam."""
    if not data.settings(source).get("exam"):
        return None
    scores = data.board(source).exam
    if scores is not None:
        return scores.study
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
