"""Calibration: can the judge be trusted, do methods agree, and what is the answer if the judge is biased."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Final

import streamlit as st

from arena.boards.calibration.board import Calibration, corrected_figures
from arena.boards.calibration.people import difference_chart, judges_of, said_of
from arena.calibration.comparison import Comparison, Disagreement, JudgeAgainstPeople
from arena.calibration.votes import Level
from arena.data.games import GameKey
from arena.people.calibrate import calibrate_tournament, resampling_of
from arena.present.blocks import Section
from arena.store import Store
from ui import data, text
from ui.address import link, note_unless, pick, say_what_is_unknown, unfold
from ui.show import show_block, show_section
from ui.text import incomplete, nothing
from ui.views.games import address_of

MOST_LISTED: Final = 50
"""Disagreements of each judge that are kept for the reading list."""
_PER_PAGE: Final = 5
_LEAST_WIDTH: Final = 0.001
_UNKNOWN: Final = {
    "corrected": (
        "The answer if the judge is biased",
        "Not known without labels of people: they measure the judge's error on a few things, and that corrects its "
        "figures over all of them.",
    ),
    "money": ("Which judge for the money", "No judge of answers: this tournament plays no games."),
    "style": ("Style and kin", "Not known: no judge has compared answers yet."),
    "differences": (
        "Judge minus people",
        "Not known: it takes labels, grades or nuggets by people. Verdicts have no distance.",
    ),
    "disagreements": ("Where they disagree most", "Nowhere, or nothing to compare."),
}
"""Titles and what stands where there is nothing to show."""


def _calibrated(store: Store, tournament: str) -> Calibration:
    settings = resampling_of(store.settings(tournament))
    return calibrate_tournament(store, tournament, settings, most=MOST_LISTED, label_next=0)


calibration = data.stored(_calibrated, "Holding judges against people …")
"""What the tournament shows about itself."""


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Can this judge be trusted?", anchor=False)
    found = calibration(source)
    sections = {section.ident: section for section in found.sections()}
    for note in found.notes:
        incomplete(note)
    if not found.comparisons:
        _say_how_to_get_people(source)
    _show_people(sections)
    parts: dict[str, Callable[[], None]] = {
        "corrected": partial(_show_corrected, found.comparisons),
        "differences": partial(_show_differences, found.comparisons),
        "disagreements": partial(_show_reading_list, source, found),
    }
    for ident, (title, unknown) in _UNKNOWN.items():
        section = sections.get(ident, Section(ident, title, unknown, ()))
        chosen = parts.get(ident) if ident in sections else None
        show_section(section if chosen is None else replace(section, blocks=()))
        if chosen is not None:
            chosen()


def _show_people(sections: Mapping[str, Section]) -> None:
    if "people" in sections:
        show_section(sections["people"])
        with unfold("All coefficients, and what is taken for what", "all-coefficients") as opened:
            if opened.open:
                for block in sections["coefficients"].blocks:
                    show_block(block)


def _say_how_to_get_people(source: data.Source) -> None:
    pages = (f"[{name}]({link('review', source, view=name.lower())})" for name in ("Vote", "Label", "Grade", "Assess"))
    nothing(
        "**No human labels yet** on anything that a judge judged. Three ways to get some:\n\n"
        f"- on the pages where people judge without knowing whose an answer is: {', '.join(pages)};\n"
        "- relevance labels: `data: {qrels: FILE}` in the YAML file, then `ragleague run`;\n"
        "- labels that you have already: `ragleague votes import`, or `ragleague calibrate CONFIG --people FILE`.\n\n"
        "Fifty labels on many queries say more than hundreds on few. Until then this page shows what needs no people."
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


def _show_corrected(comparisons: Sequence[Comparison]) -> None:
    judge = _choose("corrected", [judge for judge in judges_of(comparisons) if judge.estimates is not None])
    label = "Say how many labels an interval of this width needs"
    note_unless(label, "width", _is_width)
    say_what_is_unknown()
    width = st.number_input(
        label,
        min_value=_LEAST_WIDTH,
        value=0.2,
        step=0.01,
        format="%.3f",
        key="width",
        bind="query-params",
        width=420,
    )
    for block in corrected_figures(judge, width):
        show_block(block)


def _is_width(asked: str) -> bool:
    try:
        return _LEAST_WIDTH <= float(asked) < math.inf
    except ValueError:
        return False


def _show_differences(comparisons: Sequence[Comparison]) -> None:
    known = [judge for judge in judges_of(comparisons) if difference_chart(judge) is not None]
    chart = difference_chart(_choose("differences", known))
    assert chart is not None
    with st.container(width=760):
        show_block(chart)


def _show_reading_list(source: data.Source, found: Calibration) -> None:
    """What judge and people see most differently, with the texts."""
    judge = _choose("list", [judge for judge in judges_of(found.comparisons) if judge.disagreements])
    listed, level = judge.disagreements, judge.level
    pages = ceil(len(listed) / _PER_PAGE)
    page = _page(pages, f"list-page-{level}-{len(listed)}") if pages > 1 else 1
    start = (page - 1) * _PER_PAGE
    for place, item in enumerate(listed[start : start + _PER_PAGE], start):
        with st.container(border=True, key=f"disagreement-{level}-{place}"):
            _show_one(found, item, (judge.judge, level), f"{level}-{place}")
            if address := _address(source, item, judge.judge, level):
                st.markdown(f"[{'The game' if level == 'verdicts' else 'Games on this query'}]({address})")


def _page(pages: int, key: str) -> int:
    """The page of the list; another list has another key, and begins with its first."""
    note_unless("Page of the list", key, {str(page) for page in range(1, pages + 1)}.__contains__)
    say_what_is_unknown()
    return st.pagination(pages, key=key, bind="query-params")


def _show_one(found: Calibration, item: Disagreement, whose: tuple[str, Level], key: str) -> None:
    judge, level = whose
    by_judge, by_people, votes = said_of(level, item)
    text.strong(found.texts.get((item.query_id, ""), item.query_id))
    text.quiet(f"{item.query_id}: {' / '.join(item.item)}")
    text.plain(f"{judge}: {by_judge}")
    text.plain(f"People: {by_people} ({votes})")
    parts = [part for part in item.item if (item.query_id, part) in found.texts]
    for side, (part, column) in enumerate(zip(parts, st.columns(max(1, len(parts))), strict=False)):
        with column:
            text.strong(part)
            words = found.texts[item.query_id, part]
            text.passage(words, f"{key}-{side}", label=part, empty="Empty.", height=220)


def _address(source: data.Source, found: Disagreement, judge: str, level: Level) -> str:
    """Of the game, or of all games on the query; empty where there are none."""
    games = data.games(source)
    if level == "verdicts":
        judges = dict.fromkeys([judge, *games.judges])
        first, second = sorted(found.item[-2:])
        keys = (GameKey(found.query_id, first, second, name) for name in judges)
        key = next((key for key in keys if games.find(key) is not None), None)
        return "" if key is None else link("queries", source, view="games", game=address_of(key))
    label = text.query_label(found.query_id, data.queries(source)[found.query_id].text)
    return link("queries", source, view="games", query=label) if games.of_query(found.query_id).any() else ""
