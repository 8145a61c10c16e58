"""Charts: from data to Altair, nothing else. Names of agents are values of the data, which Vega draws as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import altair as alt
import pandas as pd

from arena.agents.costs import LATENCY
from arena.agents.front import Front

_POINT: Final = "#0072B2"
"""Blue of the palette by Okabe and Ito, told apart with every kind of colour vision, on light and dark ground."""
_WHISKER: Final = "#8a8f98"
_NAME: Final = "#6f7682"
"""Grey that can be read on light and on dark ground."""
_LABEL_WIDTH: Final = 160
"""Pixels given to an agent's name before it is cut."""


def front_chart(front: Front) -> alt.LayerChart:
    """Rating against what an answer takes; agents on the front are filled and joined by steps.

    The best agents are in the upper left corner.
    """
    frame = pd.DataFrame(
        [
            {"agent": agent, "rating": rating, "price": price, "front": agent in front.agents}
            for agent, (rating, price) in front.points.items()
        ]
    )
    title = "Median latency, seconds" if front.price == LATENCY else "Mean cost of a query, US dollars"
    scale = alt.Scale(zero=False, nice=True, padding=24)
    base = alt.Chart(frame).encode(
        x=alt.X("price:Q", scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(title=title, tickCount=6)),
        y=alt.Y("rating:Q", scale=scale, axis=alt.Axis(title="Bradley-Terry rating, points", tickCount=6)),
        tooltip=[
            alt.Tooltip("agent:N", title="Agent"),
            alt.Tooltip("rating:Q", title="Rating", format=".1f"),
            alt.Tooltip("price:Q", title=title, format=".3~g"),
            alt.Tooltip("front:N", title="On the front"),
        ],
    )
    on_front = base.transform_filter("datum.front")
    steps = on_front.mark_line(color=_WHISKER, interpolate="step-after", strokeDash=[5, 4]).encode(order="price:Q")
    others = base.transform_filter("!datum.front").mark_point(color=_WHISKER, size=90, opacity=1)
    best = on_front.mark_point(color=_POINT, filled=True, size=110, opacity=1)
    names = base.mark_text(align="left", dx=9, dy=-7, limit=_LABEL_WIDTH, color=_NAME).encode(text="agent:N")
    return alt.layer(steps, others, best, names).properties(height=300)


def confusion_chart(frame: pd.DataFrame, scale: Sequence[int]) -> alt.LayerChart:
    """The heat map of two labels of one document, people's down and the judge's across, with counts in the cells."""
    axis = {"sort": list(scale), "scale": alt.Scale(domain=list(scale), paddingInner=0.03)}
    base = alt.Chart(frame).encode(
        x=alt.X("judge:O", axis=alt.Axis(orient="top", labelAngle=0, title="Label of the judge"), **axis),
        y=alt.Y("people:O", axis=alt.Axis(title="Label of people"), **axis),
        tooltip=[
            alt.Tooltip("people:O", title="People"),
            alt.Tooltip("judge:O", title="Judge"),
            alt.Tooltip("documents:Q", title="Documents", format=","),
            alt.Tooltip("share:Q", title="Share of the row", format=".0%"),
        ],
    )
    colour = alt.Color("share:Q", scale=alt.Scale(scheme="blues", domain=[0, 1]), legend=None)
    ink = alt.condition(alt.datum.share > 0.6, alt.value("#ffffff"), alt.value("#1a1a1a"))
    cells = base.mark_rect().encode(color=colour)
    figures = base.mark_text(fontSize=14).encode(text=alt.Text("documents:Q", format=","), color=ink)
    return alt.layer(cells, figures).properties(height=alt.Step(46))
