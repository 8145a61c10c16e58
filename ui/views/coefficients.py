"""All coefficients of judges and people, which values they take for which, and people among themselves."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from arena.calibration.comparison import Comparison
from ui import text
from ui.address import unfold
from ui.calibration import coefficients_frame, confusion_frame, people_frame, reports
from ui.tables import show_table
from ui.views.estimates import choose


def show_people(comparisons: Sequence[Comparison]) -> None:
    """Draw what people say among themselves, and who of them stands out, where it is asked for."""
    with unfold("What people say among themselves", "people-among-themselves") as opened:
        if opened.open:
            _draw_people(comparisons)


def show_coefficients(comparisons: Sequence[Comparison]) -> None:
    """Draw correlations and coefficients of agreement, and the confusion table of one judge, where asked for."""
    with unfold("All coefficients, and what is taken for what", "all-coefficients", "confusion") as opened:
        if opened.open:
            _draw_coefficients(comparisons)


def _draw_people(comparisons: Sequence[Comparison]) -> None:
    number = st.column_config.NumberColumn
    show_table(
        people_frame(comparisons),
        "People among themselves",
        {
            "Two agree": number(format="%.1f %%"),
            "Alpha": number(format="%.2f", help="Krippendorff's: 0 is chance, 1 full agreement."),
            "Not above chance": number(help="People who agree with the others no more than chance would."),
        },
    )
    for one in comparisons:
        suspects = [person.rater for person in one.people.annotators if person.above_chance is False]
        if suspects:
            text.plain(f"{one.people.level}, not above chance: {', '.join(suspects)}")
    st.caption("Where people do not agree, no judge can agree with them.")


def _draw_coefficients(comparisons: Sequence[Comparison]) -> None:
    frame = coefficients_frame(comparisons)
    figures = frame.select_dtypes("number").columns
    formats = {name: st.column_config.NumberColumn(format="%.2f") for name in figures}
    show_table(frame, "All coefficients", formats, pinned="Judge")
    st.caption("Against what most people say, with 95 % intervals clustered by query.")
    known = [entry for entry in reports(comparisons) if entry[2].against.labels is not None]
    if known:
        one, _, report = choose("confusion", known)
        show_table(confusion_frame(one.people.level, report), "What is taken for what")
        st.caption("Rows: what most people say. Columns: what the judge says of the same things.")
