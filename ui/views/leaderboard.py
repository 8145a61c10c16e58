"""The page Leaderboard: who leads, how certain that is, and whether the judge can be trusted."""

from __future__ import annotations

from typing import Final

import streamlit as st
from msgspec.structs import replace

from arena.boards.coverage import missing
from arena.boards.groups import groups_section
from arena.boards.leaderboard import TournamentBoard, judged_on
from arena.boards.trust import ratings_noun
from arena.data.dataset import texts_of
from arena.present.blocks import Block
from arena.present.picture import Chart, Whiskers
from arena.present.table import Table
from arena.results.ratings import Leaderboard
from ui import data, onward
from ui.address import link, unfold
from ui.show import draw, show_table
from ui.text import incomplete

_MORE: Final = frozenset({"leaderboard", "groups", "judges", "noise", "costs", "coverage"})
"""Sections of the leaderboard to show in the expander; Compare and Trust show the other sections."""
_ON_TOP: Final = (Chart, Whiskers)
"""Kinds of charts to leave out of the expander, because the first screen shows them."""

judged = data.judged(judged_on)
"""Time of the tournament's last judgment."""


def show(source: data.Source) -> None:
    board = data.board(source)  # first, as it takes longest and says so
    full_board, opening = _opening(source)
    charts = [block for block in opening if isinstance(block, Chart)]
    for block in opening:
        if isinstance(block, Table):
            show_table(block, saved=False)  # "More" has all of it
        elif not isinstance(block, Chart):
            draw(block)
    _say_what_is_missing(source, board)
    for chart, column in zip(charts, st.columns(max(len(charts), 1)), strict=False):
        with column:
            draw(chart)
    if source.by and board.by_group is not None:
        draw(groups_section(board.by_group, ratings_noun(board)))
    with unfold("More", "more") as opened:
        if opened.open:
            for section in full_board.sections():
                if section.ident in _MORE:
                    blocks = [block for block in section.blocks if not isinstance(block, _ON_TOP)]
                    draw(replace(section, blocks=blocks))


def _say_what_is_missing(source: data.Source, board: Leaderboard) -> None:
    if not board.coverage:
        onward.add("Nothing is planned in this tournament.", onward.PAIRWISE, source)
    for sentence in missing(board):
        incomplete(sentence)
    if any(stage.judged < stage.wanted for stage in board.coverage.values()):
        onward.offer_run(source)


@st.cache_resource(max_entries=8, show_spinner="Checking whether this can be trusted …")
def _opening(source: data.Source) -> tuple[TournamentBoard, list[Block]]:
    """The board, including the comparison of judges with people, and the blocks to draw on the first screen."""
    queries = data.selected(source)
    board = TournamentBoard(
        data.board(source),
        *data.people(source),
        queries=texts_of(queries.values()),
        asked=len(queries),
        judged=judged(source) if any(stage.judged for stage in data.board(source).coverage.values()) else "",
    )
    checks = link("trust", source)
    return board, board.opening(checks=checks, link=lambda agent: link("queries", source, agent=agent))
