"""Trust: whether the judge can be believed, by its own verdicts and by people, and the answer where it is biased."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
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
from arena.boards.card import judge_cards
from arena.boards.further import further_boards
from arena.boards.leaderboard import TournamentBoard
from arena.boards.trust import habits_table, in_short, judge_section
from arena.calibration.comparison import Comparison, Disagreement, JudgeAgainstPeople
from arena.calibration.votes import Level
from arena.present.blocks import Checks, Remarks
from arena.present.table import Table
from arena.results.agreement import resampling_of
from arena.results.calibration import Calibration
from arena.results.games import GameKey
from ui import data, text
from ui.address import link, note_unless, pick, unfold
from ui.show import draw, show_table
from ui.text import lacking, nothing
from ui.views.game import to_game

_WIDTHS: Final = (0.2, 0.1, 0.05, 0.02, 0.01)
_FILES: Final = "data:\n  qrels: labels.csv   # query, document, label"


def checks(source: data.Source) -> None:
    """Draw what must hold for the leaderboard to be believed: at first what does not, and what to do."""
    board = TournamentBoard(data.board(source), *data.people(source))
    _, found = board.verdict()
    st.header("Can this leaderboard be trusted?", anchor=False)
    text.lead(in_short(found, named=()))
    if lacking := [check for check in found if check.status != "passed"]:
        draw(Checks(lacking))
    passed = [check for check in found if check.status == "passed"]
    if passed:
        with unfold(f"The {len(passed)} that passed", "passed") as opened:
            if opened.open:
                draw(Checks(passed))


def card(source: data.Source) -> None:
    """Draw whether each judge may stand in for people."""
    found = data.styles(source)
    if found is None:
        return
    comparisons, apart = data.people(source)
    how, spent = resampling_of(data.settings(source)), data.spent(source)
    known = Calibration(comparisons, how, tournament=source.tournament, spent=spent, styles=found)
    cards = judge_cards(data.board(source), known, datetime.now(UTC).date()).sections()
    draw(*cards)
    if not cards:
        _say_how_to_get_people(source, apart)
    for further in further_boards(data.board(source).further).values():
        if further.checks():  # those without are on Compare
            draw(*further.sections())


def people(source: data.Source) -> None:
    """Draw the judges held against people."""
    comparisons = _compared("Does the judge see what people see?", source)
    if not comparisons:
        return
    text.lead(people_checks(comparisons)[0].finding)
    draw(*votes_picture(comparisons))
    show_table(shortened(comparisons))
    with unfold("All coefficients, people among themselves, and the distance", "more") as opened:
        if not opened.open:
            return
        whole, _ = data.people(source, boards=True)
        draw(Remarks(remarks_of(whole)))
        for table in (against_people(whole), among_table(whole), *coefficient_tables(whole, "the consensus")):
            show_table(table)
        if known := [judge for judge in judges_of(whole) if judge.differences is not None]:
            draw(*filter(None, [difference_chart(_choose("differences", known))]))


def corrected(source: data.Source) -> None:
    """Draw the answer if the judge is biased."""
    if not _compared("The answer if the judge is biased", source) or (found := data.corrected(source)) is None:
        return
    judge = _choose("corrected", [judge for judge in judges_of(found) if judge.estimates is not None])
    *others, main = [block for block in corrected_figures(judge) if not isinstance(block, Table)]
    first = [*(block for block in others if isinstance(block, Remarks)), main]
    draw(*first)
    with unfold("The numbers, and how many labels an interval needs", "numbers", "width") as opened:
        if opened.open:
            draw(*[block for block in corrected_figures(judge, _width()) if block not in first])


def style(source: data.Source) -> None:
    """Draw what goes along with winning besides quality."""
    st.header("What does the judge like besides quality?", anchor=False)
    board = data.board(source)
    if board.ratings is None or board.ratings.judge_health is None:
        snippet = "pairwise:\n  judges: [judge]\n  both_orders: true"
        lacking("No answers are compared yet.", snippet, data.settings(source))
        return
    show_table(habits_table(board.ratings, board.by_judge))
    if not (found := data.styles(source)):
        return
    picture, *tables = style_blocks(found)
    draw(picture)
    with unfold("The numbers, and how far judges agree", "more") as opened:
        if opened.open:
            for section in judge_section(board.ratings, board.by_judge, board.panel, board.consistency):
                draw(*tables, *section.blocks[1:])


def disagreements(source: data.Source) -> None:
    """List what judge and people see most differently."""
    comparisons = _compared("Where judge and people disagree most", source)
    if not comparisons:
        return
    known = [judge for judge in judges_of(comparisons) if judge.disagreements]
    if not known:
        text.lead("Nowhere: on everything that both judged, they say the same.")
        return
    judge = _choose("list", known)
    most = "The furthest apart; `ragleague calibrate --disagreements` lists as many as you ask for. "
    shown = most if len(judge.disagreements) == data.DISAGREEMENTS else ""
    st.caption(f"{shown}Read them before you blame the judge: some are people's errors.")
    queries = {query_id: own.text for query_id, own in data.queries(source).items()}
    leads = [_address(source, one, judge) for one in judge.disagreements]
    show_table(disagreement_table(judge, judge.disagreements, queries, leads))


def _compared(title: str, source: data.Source) -> Sequence[Comparison]:
    """Judges held against people under a heading; none, and how to get people's judgments, where there are none."""
    st.header(title, anchor=False)
    comparisons, apart = data.people(source)
    if not comparisons:
        _say_how_to_get_people(source, apart)
    return comparisons


def _say_how_to_get_people(source: data.Source, apart: Sequence[Level]) -> None:
    names = ("vote",) if data.settings(source).imported else ("vote", "label", "grade", "assess", "check")
    pages = ", ".join(f"[{name}]({link('review', source, view=name)})" for name in names)
    found = "No person judged anything that a judge did"
    if apart:
        found = f"People judged {', '.join(apart)}, but nothing that a judge did"
    words = f"**{found}.** Fifty judgments on many queries tell more than hundreds on few: {pages}. Judgments that you "
    words += "have already: `ragleague import --kind verdict`"
    if data.settings(source).imported:
        nothing(f"{words}.")
    else:
        lacking(f"{words}, or labels of documents:", _FILES, data.settings(source))


def _choose(key: str, options: Sequence[JudgeAgainstPeople]) -> JudgeAgainstPeople:
    """One of the judges and levels, asked for where there are several."""
    named = [judge.named for judge in options]
    label = "Judge and what it judged"
    if len(options) == 1:
        note_unless(label, key, named.__contains__)
    else:
        options = [options[named.index(pick(label, named, key, width=420))]]
    return options[0]


def _width() -> float:
    return pick("Say how many labels an interval of this width needs", _WIDTHS, "width", width=420)


def _address(source: data.Source, found: Disagreement, judge: JudgeAgainstPeople) -> str:
    """Of the game, or of the query."""
    games = data.games(source)
    if judge.level == "verdicts":
        first, second = sorted(found.item[-2:])
        for name in dict.fromkeys([judge.judge, *games.judges]):
            key = GameKey(found.query_id, first, second, name)
            if games.find(key) is not None:
                return to_game(source, key)
    return link("queries", source, query=found.query_id)
