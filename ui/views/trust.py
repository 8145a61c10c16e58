"""Trust: whether the judge can be believed, by its own verdicts and by people, and the answer where it is biased."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import ceil
from typing import Final

import streamlit as st

from arena.boards.calibration.board import corrected_figures
from arena.boards.calibration.methods import style_blocks
from arena.boards.calibration.people import (
    against_people,
    among_table,
    coefficient_tables,
    difference_chart,
    disagreement_table,
    judges_of,
    people_checks,
    remarks_of,
    votes_picture,
)
from arena.boards.calibration.people import in_short as shortened
from arena.boards.games import address_of
from arena.boards.health import habits_table, judge_section
from arena.boards.leaderboard import TournamentBoard
from arena.boards.trust import in_short
from arena.calibration.comparison import Disagreement, JudgeAgainstPeople
from arena.calibration.votes import Level
from arena.data.games import GameKey
from arena.present.blocks import Block, Checks, Remarks
from arena.present.table import Table
from ui import data, text
from ui.address import link, note_unless, pick, say_what_is_unknown, unfold
from ui.show import show_block, show_table
from ui.text import nothing

_PER_PAGE: Final = 10
_LEAST_WIDTH: Final = 0.001
_FILES: Final = "data:\n  qrels: labels.csv   # query, document, label"


def checks(source: data.Source) -> None:
    """Draw what must hold for the leaderboard to be believed: at first what does not, and what to do."""
    board = TournamentBoard(data.board(source), *data.people(source))
    _, found = board.verdict()
    st.header("Can this leaderboard be trusted?", anchor=False)
    text.lead(in_short(found, named=()))
    if lacking := [check for check in found if check.status != "passed"]:
        show_block(Checks(lacking))
    passed = [check for check in found if check.status == "passed"]
    if passed:
        with unfold(f"The {len(passed)} that passed", "passed") as opened:
            if opened.open:
                show_block(Checks(passed))


def people(source: data.Source) -> None:
    """Draw the judges held against people."""
    comparisons, apart = data.people(source)
    st.header("Does the judge see what people see?", anchor=False)
    if not comparisons:
        _say_how_to_get_people(source, apart)
        return
    text.lead(people_checks(comparisons)[0].finding)
    _show_all(votes_picture(comparisons))
    show_table(shortened(comparisons))
    with unfold("All coefficients, people among themselves, and the distance", "more") as opened:
        if not opened.open:
            return
        whole, _ = data.people(source, boards=True)
        show_block(Remarks(remarks_of(whole)))
        for table in (against_people(whole), among_table(whole), *coefficient_tables(whole, "the consensus")):
            show_table(table)
        if known := [judge for judge in judges_of(whole) if judge.differences is not None]:
            chart = difference_chart(_choose("differences", known))
            if chart is not None:
                show_block(chart)


def corrected(source: data.Source) -> None:
    """Draw the answer if the judge is biased."""
    st.header("The answer if the judge is biased", anchor=False)
    comparisons, apart = data.people(source)
    if not comparisons:
        _say_how_to_get_people(source, apart)
        return
    found = data.corrected(source)
    if found is None:
        return
    judge = _choose("corrected", [judge for judge in judges_of(found) if judge.estimates is not None])
    *others, main = [block for block in corrected_figures(judge) if not isinstance(block, Table)]
    first = [*(block for block in others if isinstance(block, Remarks)), main]
    _show_all(first)
    with unfold("The numbers, and how many labels an interval needs", "numbers", "width") as opened:
        if opened.open:
            _show_all([block for block in corrected_figures(judge, _width()) if block not in first])


def style(source: data.Source) -> None:
    """Draw what goes along with winning besides quality."""
    st.header("What does the judge like besides quality?", anchor=False)
    board = data.board(source)
    if board.ratings is None or board.ratings.judge_health is None:
        nothing("No judge has compared answers yet.", yaml="pairwise:\n  judges: [judge]\n  both_orders: true")
        return
    show_table(habits_table(board.ratings, board.by_judge))
    found = data.styles(source)
    if found is None:
        return
    picture, *tables = style_blocks(found)
    show_block(picture)
    with unfold("The numbers, and how far judges agree", "more") as opened:
        if opened.open:
            for section in judge_section(board.ratings, board.by_judge, board.panel, board.consistency):
                _show_all([*tables, *section.blocks[1:]])


def disagreements(source: data.Source) -> None:
    """List what judge and people see most differently."""
    st.header("Where judge and people disagree most", anchor=False)
    comparisons, apart = data.people(source)
    if not comparisons:
        _say_how_to_get_people(source, apart)
        return
    known = [judge for judge in judges_of(comparisons) if judge.disagreements]
    if not known:
        text.lead("Nowhere: on everything that both judged, they say the same.")
        return
    judge = _choose("list", known)
    st.caption("Read them before you blame the judge: some are people's errors.")
    pages = ceil(len(judge.disagreements) / _PER_PAGE)
    start = _PER_PAGE * (_page(pages, f"list-page-{judge.level}-{len(judge.disagreements)}") - 1) if pages > 1 else 0
    part = judge.disagreements[start : start + _PER_PAGE]
    queries = {query_id: own.text for query_id, own in data.queries(source).items()}
    show_table(disagreement_table(judge, part, queries, [_address(source, one, judge) for one in part]))


def _show_all(blocks: Sequence[Block]) -> None:
    for block in blocks:
        show_block(block)


def _say_how_to_get_people(source: data.Source, apart: Sequence[Level]) -> None:
    pages = ", ".join(f"[{name}]({link('review', source, view=name)})" for name in ("vote", "label", "grade", "assess"))
    found = "No person judged anything that a judge did"
    if apart:
        found = f"People judged {', '.join(apart)}, but nothing that a judge did"
    nothing(
        f"**{found}.** Fifty judgments on many queries tell more than hundreds on few: {pages}. Judgments that you "
        "have already: `ragleague import --kind verdict`, or labels of documents:",
        yaml=_FILES,
    )


def _choose(key: str, options: Sequence[JudgeAgainstPeople]) -> JudgeAgainstPeople:
    """One of the judges and levels, asked for where there are several."""
    named = [judge.named for judge in options]
    label = "Judge and what it judged"
    if len(options) == 1:
        note_unless(label, key, named.__contains__)
    else:
        options = [options[named.index(pick(label, named, key, width=420))]]
    say_what_is_unknown()
    return options[0]


def _width() -> float:
    label = "Say how many labels an interval of this width needs"
    note_unless(label, "width", _is_width)
    say_what_is_unknown()
    return st.number_input(
        label,
        min_value=_LEAST_WIDTH,
        value=0.2,
        step=0.01,
        format="%.3f",
        key="width",
        bind="query-params",
        width=420,
    )


def _is_width(asked: str) -> bool:
    try:
        return _LEAST_WIDTH <= float(asked) < math.inf
    except ValueError:
        return False


def _page(pages: int, key: str) -> int:
    """The page of the list; another list has another key, and begins with its first."""
    note_unless("Page of the list", key, {str(page) for page in range(1, pages + 1)}.__contains__)
    say_what_is_unknown()
    return st.pagination(pages, key=key, bind="query-params")


def _address(source: data.Source, found: Disagreement, judge: JudgeAgainstPeople) -> str:
    """Of the game, or of the query."""
    games = data.games(source)
    if judge.level == "verdicts":
        first, second = sorted(found.item[-2:])
        for name in dict.fromkeys([judge.judge, *games.judges]):
            key = GameKey(found.query_id, first, second, name)
            if games.find(key) is not None:
                return link("queries", source, view="games", game=address_of(key))
    return link("queries", source, query=found.query_id)
