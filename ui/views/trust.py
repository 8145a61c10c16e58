"""The page Trust: whether the judge can be trusted, and results corrected for its bias."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import streamlit as st

from arena.boards.calibration import corrected_figures
from arena.boards.card import judge_cards
from arena.boards.leaderboard import TournamentBoard
from arena.boards.methods import style_blocks
from arena.boards.people import (
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
from arena.boards.people import in_short as shortened
from arena.boards.scores import further_boards
from arena.boards.trust import habits_table, in_short, judge_section
from arena.calibration.comparison import Comparison, Disagreement, JudgeAgainstPeople
from arena.calibration.votes import Level
from arena.present.blocks import Checks, Remarks
from arena.present.table import Table
from arena.results.agreement import resampling_of
from arena.results.games import GameKey
from arena.results.table_agreement import Calibration
from ui import data, onward, text
from ui.address import link, note_unless, pick, unfold
from ui.show import draw, show_table
from ui.views import review
from ui.views.game import to_game

_WIDTHS: Final = (0.2, 0.1, 0.05, 0.02, 0.01)


def checks(source: data.Source) -> None:
    """Draw the checks of the leaderboard: first the checks that failed, with what to do."""
    board = TournamentBoard(data.board(source), *data.people(source))
    _, all_checks = board.verdict()
    st.header("Can this leaderboard be trusted?", anchor=False)
    text.lead(in_short(all_checks, named=()))
    if lacking := [check for check in all_checks if check.status != "passed"]:
        draw(Checks(lacking))
    passed = [check for check in all_checks if check.status == "passed"]
    if passed:
        with unfold(f"The {len(passed)} that passed", "passed") as opened:
            if opened.open:
                draw(Checks(passed))


def card(source: data.Source) -> None:
    """Draw a card for each judge with the verdict whether the judge can replace people."""
    effects = data.styles(source)
    if effects is None:
        return
    comparisons, uncompared, _ = data.people(source)
    settings, spent = resampling_of(data.settings(source)), data.spent(source)
    calibration = Calibration(comparisons, settings, tournament=source.tournament, spent=spent, styles=effects)
    cards = judge_cards(data.board(source), calibration, datetime.now(UTC).date()).sections()
    draw(*cards)
    if not cards:
        _say_how_to_get_people(source, uncompared, "With them, a card says whether the judge can stand in for people.")
    for further in further_boards(data.board(source).further).values():
        if further.checks():  # those without are on Compare
            draw(*further.sections())


def people(source: data.Source) -> None:
    """Draw the comparison of judges with people."""
    purpose = "This part compares them with the judge's."
    comparisons = _compared("Does the judge see what people see?", source, purpose, explains=True)
    if not comparisons:
        return
    text.lead(people_checks(comparisons)[0].finding)
    draw(*votes_picture(comparisons))
    show_table(shortened(comparisons))
    with unfold("All coefficients, people among themselves, and the distance", "more") as opened:
        if not opened.open:
            return
        full_comparisons, *_ = data.people(source, boards=True)
        draw(Remarks(remarks_of(full_comparisons)))
        for table in (
            against_people(full_comparisons),
            among_table(full_comparisons),
            *coefficient_tables(full_comparisons, "the consensus"),
        ):
            show_table(table)
        if judges := [judge for judge in judges_of(full_comparisons) if judge.differences is not None]:
            draw(*filter(None, [difference_chart(_choose("differences", judges))]))


def corrected(source: data.Source) -> None:
    """Draw the results corrected for the judge's bias."""
    purpose = "From them, this part estimates the judge's bias and corrects the results for it."
    if not _compared("The answer if the judge is biased", source, purpose):
        return
    if (comparisons := data.corrected(source)) is None:
        return
    judge = _choose("corrected", [judge for judge in judges_of(comparisons) if judge.estimates is not None])
    *others, main = [block for block in corrected_figures(judge) if not isinstance(block, Table)]
    summary = [*(block for block in others if isinstance(block, Remarks)), main]
    draw(*summary)
    with unfold("The numbers, and how many labels an interval needs", "numbers", "width") as opened:
        if opened.open:
            draw(*[block for block in corrected_figures(judge, _width()) if block not in summary])


def style(source: data.Source) -> None:
    """Draw what judges prefer besides quality, such as length or position."""
    st.header("What does the judge like besides quality?", anchor=False)
    board = data.board(source)
    if board.ratings is None or board.ratings.judge_health is None:
        onward.add("No answers are compared yet.", onward.PAIRWISE, source)
        return
    show_table(habits_table(board.ratings, board.by_judge))
    if not (effects := data.styles(source)):
        return
    picture, *tables = style_blocks(effects)
    draw(picture)
    with unfold("The numbers, and how far judges agree", "more") as opened:
        if opened.open:
            for section in judge_section(board.ratings, board.by_judge, board.consistency):
                draw(*tables, *section.blocks[1:])


def disagreements(source: data.Source) -> None:
    """Draw the items on which a judge and people differ most."""
    comparisons = _compared(
        "Where judge and people disagree most", source, "This part lists where they differ most from the judge's."
    )
    if not comparisons:
        return
    judges = [judge for judge in judges_of(comparisons) if judge.disagreements]
    if not judges:
        text.lead("Nowhere: on everything that both judged, they say the same.")
        return
    judge = _choose("list", judges)
    explanation = "The furthest apart; `ragleague calibrate --disagreements` lists as many as you ask for. "
    remark = explanation if len(judge.disagreements) == data.DISAGREEMENTS else ""
    st.caption(f"{remark}Read them before you blame the judge: some are people's errors.")
    queries = {query_id: query.text for query_id, query in data.queries(source).items()}
    addresses = [_address(source, disagreement, judge) for disagreement in judge.disagreements]
    show_table(disagreement_table(judge, judge.disagreements, queries, addresses))


def _compared(title: str, source: data.Source, purpose: str, *, explains: bool = False) -> Sequence[Comparison]:
    """Draw a heading and return the comparisons; if there are none, draw what they are for and what leads to them."""
    st.header(title, anchor=False)
    comparisons, uncompared, _ = data.people(source)
    if not comparisons and explains:
        _say_how_to_get_people(source, uncompared, purpose)
    elif not comparisons:
        text.nothing(f"No human labels yet. {purpose}")
        onward.buttons({"How to get labels": link("trust", source, view="people")})
    return comparisons


def _say_how_to_get_people(source: data.Source, levels: Sequence[Level], purpose: str) -> None:
    situation = (
        f"People judged {', '.join(levels)}, but nothing that a judge did." if levels else "No human labels yet."
    )
    words = f"**{situation}** {purpose} Fifty judgments on many queries tell more than hundreds on few."
    forms = [kind.form for kind in review.with_tasks(source) if kind.form]
    onward.labels(words, source, {f"{form.view.capitalize()}: {form.question}": form.view for form in forms})


def _choose(key: str, options: Sequence[JudgeAgainstPeople]) -> JudgeAgainstPeople:
    """The comparison that the viewer selects by judge and level; if there is only one, that comparison."""
    names = [judge.named for judge in options]
    label = "Judge and what it judged"
    if len(options) == 1:
        note_unless(label, key, names.__contains__)
    else:
        options = [options[names.index(pick(label, names, key, width=420))]]
    return options[0]


def _width() -> float:
    return pick("Say how many labels an interval of this width needs", _WIDTHS, "width", width=420)


def _address(source: data.Source, disagreement: Disagreement, judge: JudgeAgainstPeople) -> str:
    """The URL of the page about a disagreement: the game's page if it is about a verdict, else the query's."""
    games = data.games(source)
    if judge.level == "verdicts":
        first, second = sorted(disagreement.item[-2:])
        for name in dict.fromkeys([judge.judge, *games.judges]):
            key = GameKey(disagreement.query_id, first, second, name)
            if games.find(key) is not None:
                return to_game(source, key)
    return link("queries", source, query=disagreement.query_id)
