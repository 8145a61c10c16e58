"""The page Compare: all scores of the agents in one chart, and how far the scores agree with each other."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

import streamlit as st

from arena.boards.compare import CompareBoard, compare_board
from arena.boards.compare_drawing import MOST_CHOSEN, compare_figure, compare_scatter, group_deltas
from arena.boards.coverage import missing
from arena.boards.leaderboard import TournamentBoard
from arena.boards.methods import method_pairs
from arena.boards.quantities import quantity
from arena.boards.scores import further_boards
from arena.data.dataset import groupings
from arena.present.blocks import Remarks
from arena.present.files import html_block
from arena.present.picture import Aligned
from ui import data, onward
from ui.address import link, links, pick, switch, unfold
from ui.show import draw, offer, show_table
from ui.text import incomplete

_YAML: Final = "exam:\n  judge: YOUR_JUDGE\nnuggets:\n  judge: YOUR_JUDGE"
_SCORES: Final = frozenset({"criteria", "exam", "nuggets", "citations"})
"""Sections of the leaderboard with details of a single score, which this page shows under Tables."""

_MANY: Final = 8
"""With more agents than this, the reader may choose which to show."""

compared = data.stored(compare_board, "Comparing the scores …")


def show(source: data.Source) -> None:
    board, rated = compared(source), data.board(source)
    if not board.order:
        onward.run("No game has a verdict and no answer a score yet.", source)
        return
    for sentence in missing(rated):
        incomplete(sentence)
    st.html(html_block(Remarks(board.sentences())))
    agents = []
    if len(board.order) > _MANY:
        agents = st.multiselect("Agents", board.order, key="only", bind="query-params", placeholder="Agents: all")
    figure, markup = _figure(source, link("queries", source), tuple(agents))
    st.html(markup)
    _export(figure)
    parts = _parts(source, board)
    if parts:
        part = switch("More", list(parts), "part", label_visibility="collapsed")
        parts[part](source, board)
    if len(board.ways) == 1:
        with unfold("Add other scores", "add") as opened:
            if opened.open:
                onward.add("Exam questions and nuggets, for instance.", _YAML, source)
    with unfold("Tables", "tables") as opened:
        if opened.open:
            _show_tables(source, board)


def _parts(source: data.Source, board: CompareBoard) -> dict[str, Callable[[data.Source, CompareBoard], None]]:
    """What can be shown below the chart, by its name on the switch."""
    parts: dict[str, Callable[[data.Source, CompareBoard], None]] = {}
    if board.methods.pairs:
        parts |= {"Agreement": lambda _, board: draw(board.agreement()), "Two scores": _show_two}
    if data.groups(source) and len(board.order) > 1:
        parts["Groups"] = _show_groups
    if board.judges():
        parts["Judges"] = lambda _, board: draw(*board.judges())
    return parts


@st.cache_resource(max_entries=4, show_spinner=False)
def _figure(source: data.Source, carried: str, agents: tuple[str, ...]) -> tuple[Aligned, str]:  # noqa: ARG001 - part of the cache key, as links contain it
    """The chart, and the chart as HTML; cached, as drawing fifty agents takes half a second."""
    figure = compare_figure(compared(source), links("queries", source), agents=agents)
    return figure, html_block(figure)


def _export(figure: Aligned) -> None:
    from arena.present import charts

    with st.container(horizontal=True, gap="small"):
        offer("compare.svg", "image/svg+xml", lambda: charts.svg(figure).encode())
        if find_spec("vl_convert"):  # of the extra 'png'
            offer("compare.png", "image/png", lambda: charts.png(figure))


def _show_two(source: data.Source, board: CompareBoard) -> None:
    titles = {way.title: way.name for way in board.ways if way.orders}
    with st.container(horizontal=True):
        first, second = pick("Across", list(titles), "across", index=1), pick("Up", list(titles), "up")
    draw(compare_scatter(board, titles[first], titles[second], links("queries", source)))


def _show_groups(source: data.Source, board: CompareBoard) -> None:
    titles = {quantity(way.name).title: way.name for way in board.by_query}
    columns = groupings(data.queries(source).values())
    column = source.by or next(iter(columns))
    way = pick("Score", list(titles), "score", width=260)
    label = f"Agents, the first of which the others are held against (2 to {MOST_CHOSEN})"
    agents = st.multiselect(
        label, board.order, default=board.order[:2], max_selections=MOST_CHOSEN, key="agents", bind="query-params"
    )
    if len(agents) < 2:
        st.caption("Choose two agents or more.")
        return
    groups = {f"{column}: {value}": ids for value, ids in columns[column].items()}
    draw(group_deltas(board, titles[way], agents, groups))


def _show_tables(source: data.Source, board: CompareBoard) -> None:
    show_table(board.table())
    if board.methods.pairs:
        show_table(method_pairs(board.methods))
    if board.wins is not None:
        show_table(board.wins.pairwise())
    leaderboard = data.board(source)
    for section in TournamentBoard(leaderboard).sections():
        if section.ident in _SCORES or section.ident.startswith("retrieval"):
            draw(section)
    for further in further_boards(leaderboard.further).values():
        if not further.checks():  # those with checks are on Trust
            draw(*further.sections())
