"""Where judges and people differ, as a plot and as a reading list: parts of the page of calibration."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

import streamlit as st

from arena.calibration.comparison import Comparison
from arena.calibration.judge_people import Disagreement
from arena.calibration.opinions import Level
from arena.games.table import GameKey
from arena.opinions.tournament import TournamentCalibration
from ui import data, text
from ui.address import link, note_unless, say_what_is_unknown
from ui.calibration import calibration, differences_frame, reports
from ui.calibration_charts import bland_altman_chart
from ui.game_list import address_of
from ui.tables import show_chart
from ui.views.estimates import choose

_PER_PAGE: Final = 5
_SUPPORT: Final = {2.0: "support", 1.0: "partial support", 0.0: "no support"}


def show_differences(comparisons: Sequence[Comparison]) -> None:
    """Draw the Bland-Altman plot."""
    st.subheader("How far the judge lies from people", anchor=False)
    known = [entry for entry in reports(comparisons) if (d := entry[2].against.differences) is not None and d.points]
    if not known:
        st.caption("Not known: it takes labels, grades or nuggets by people. Verdicts have no distance.")
        return
    _, name, report = choose("differences", known)
    own = report.against.differences
    assert own is not None
    bias = "none" if own.bias.value is None else f"{own.bias.value:+.2f}"
    between = "" if own.bias.low is None else f" (95 %: {own.bias.low:+.2f} to {own.bias.high:+.2f})"
    limits = (
        "too few things for limits of agreement"
        if own.lower.value is None or own.upper.value is None
        else f"95 % of all differences lie between {own.lower.value:+.2f} and {own.upper.value:+.2f} (dashed)"
    )
    text.plain(f"{name}: bias {bias}{between} (line), {limits}; {own.n:,} things.")
    words = (
        "Bland and Altman's plot: above 0 the judge gives more than people. The larger a mark, the more things lie "
        "there. Marks that fall or rise from left to right: the judge uses less, or more, of the scale than people do."
    )
    with st.container(width=760):
        show_chart(bland_altman_chart(own), words, differences_frame(own), "Judge less people")


def show_reading_list(source: data.Source, found: TournamentCalibration) -> None:
    """Draw what judge and people see most differently, with the texts."""
    st.subheader("Where they disagree most", anchor=False)
    known = [entry for entry in reports(found.comparisons) if entry[2].disagreements]
    if not known:
        agree = bool(found.comparisons)
        st.caption(
            "Nowhere: judges and people say the same of all." if agree else "Not known without labels of people."
        )
        return
    one, name, report = choose("list", known)
    listed = report.disagreements
    pages = ceil(len(listed) / _PER_PAGE)
    page = _page(pages, f"list-page-{one.people.level}-{len(listed)}") if pages > 1 else 1
    st.caption(
        f"The {len(listed):,} furthest apart, most agreed upon by people first. Read them before you blame the judge: "
        "some will be people's errors. They are no random sample: do not label by this list."
    )
    start = (page - 1) * _PER_PAGE
    for place, item in enumerate(listed[start : start + _PER_PAGE], start):
        _show_one(source, item, name, one.people.level, f"{one.people.level}-{place}")


def _page(pages: int, key: str) -> int:
    """The page of the list; another list has another key, and begins with its first."""
    note_unless("Page of the list", key, {str(page) for page in range(1, pages + 1)}.__contains__)
    say_what_is_unknown()
    return st.pagination(pages, key=key, bind="query-params")


def _show_one(
    source: data.Source,
    found: Disagreement,
    judge: str,
    level: Level,
    key: str,
) -> None:
    texts = calibration(source).texts
    with st.container(border=True, key=f"disagreement-{key}"):
        text.strong(texts.get((found.query_id, ""), found.query_id))
        text.quiet(f"{found.query_id}: {' / '.join(_names(source, found, level))}")
        votes = ", ".join(f"{rater}: {_worded(level, found, vote)}" for rater, vote in sorted(found.votes.items()))
        text.plain(f"{judge}: {_worded(level, found, found.judge)}")
        text.plain(f"People: {_worded(level, found, found.people)} ({votes})")
        parts = [part for part in found.item if (found.query_id, part) in texts]
        columns = st.columns(max(1, len(parts)))
        for side, part in enumerate(parts):
            with columns[side]:
                text.strong(part)
                text.passage(texts[found.query_id, part], f"{key}-{side}", empty="Empty.", height=220, border=True)
        if address := _address(source, found, judge, level):
            st.markdown(f"[{'The game' if level == 'verdicts' else 'Games on this query'}]({address})")


def _names(source: data.Source, found: Disagreement, level: Level) -> list[str]:
    """What was judged; a nugget by its words."""
    if level != "nuggets":
        return list(found.item)
    results = data.nuggets(source)
    bank = results.banks.get(found.query_id) if results is not None else None
    words = {nugget.nugget_id: nugget.text for nugget in bank.nuggets} if bank is not None else {}
    return [*found.item[:-1], words.get(found.item[-1], found.item[-1])]


def _worded(level: Level, found: Disagreement, value: float) -> str:
    if level == "verdicts":
        return "a tie" if not value else f"{found.item[-2 if value > 0 else -1]} wins"
    return _SUPPORT.get(value, f"{value:g}") if level == "nuggets" else f"{value:g}"


def _address(source: data.Source, found: Disagreement, judge: str, level: Level) -> str:
    """Of the game, or of all games on the query; empty where there are none."""
    games = data.games(source)
    if level == "verdicts":
        judges = dict.fromkeys([judge, *games.judges])
        first, second = sorted(found.item[-2:])
        keys = (GameKey(found.query_id, first, second, name) for name in judges)
        key = next((key for key in keys if games.find(key) is not None), None)
        return "" if key is None else link("games", source.tournament, game=address_of(key))
    label = text.query_label(found.query_id, data.queries(source)[found.query_id].text)
    return link("games", source.tournament, query=label) if games.of_query(found.query_id).any() else ""
