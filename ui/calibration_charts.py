"""Charts of calibration: from data to Altair, nothing else. Names are values of the data, which Vega draws as text."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import altair as alt
import pandas as pd

from arena.calibration.bland_altman import BlandAltman

_BLUE: Final = "#0072B2"
_ORANGE: Final = "#D55E00"
"""Of the palette by Okabe and Ito, told apart with every kind of colour vision."""


def points_chart(frame: pd.DataFrame, named: Collection[str], across: str, up: str) -> alt.LayerChart:
    """Agents by two methods, from ``ui.methods.points_frame``; the named ones with their names."""
    scale = alt.Scale(zero=False, nice=True, padding=28)
    base = alt.Chart(frame.assign(named=frame["agent"].isin(named))).encode(
        x=alt.X("x:Q", scale=scale, axis=alt.Axis(title=across, tickCount=6)),
        y=alt.Y("y:Q", scale=scale, axis=alt.Axis(title=up, tickCount=6)),
        tooltip=[
            alt.Tooltip("agent:N", title="Agent"),
            alt.Tooltip("x:Q", title="First method", format=".5~g"),
            alt.Tooltip("y:Q", title="Second method", format=".5~g"),
        ],
    )
    points = base.mark_point(filled=True, size=100, opacity=1, color=_BLUE)
    names = base.transform_filter("datum.named").mark_text(dy=-13, fontSize=11, limit=120, color="#6f7682")
    return alt.layer(points, names.encode(text="agent:N")).properties(height=340)


def bland_altman_chart(own: BlandAltman) -> alt.LayerChart:
    """Judge less people against the mean of both; the larger a mark, the more things lie there. Lines: bias, limits."""
    frame = pd.DataFrame([{"mean": p.mean, "difference": p.difference, "times": p.times} for p in own.points])
    levels = {"bias": own.bias.value, "limit": own.lower.value, "limit ": own.upper.value}
    lines = pd.DataFrame(
        [{"line": name.strip(), "at": level} for name, level in levels.items() if level is not None],
        columns=["line", "at"],
    )
    points = (
        alt.Chart(frame)
        .mark_point(filled=True, color=_BLUE, opacity=0.75)
        .encode(
            x=alt.X("mean:Q", scale=alt.Scale(zero=False, padding=20), axis=alt.Axis(title="mean of judge and people")),
            y=alt.Y("difference:Q", scale=alt.Scale(padding=20), axis=alt.Axis(title="judge less people")),
            size=alt.Size("times:Q", scale=alt.Scale(range=[40, 600], domainMin=0), legend=None),
            tooltip=[
                alt.Tooltip("mean:Q", title="Mean of both", format=".3~g"),
                alt.Tooltip("difference:Q", title="Judge less people", format="+.3~g"),
                alt.Tooltip("times:Q", title="Things"),
            ],
        )
    )
    dash = alt.StrokeDash("line:N", scale=alt.Scale(domain=["bias", "limit"], range=[[1, 0], [6, 4]]), legend=None)
    rules = alt.Chart(lines).mark_rule(color=_ORANGE, strokeWidth=1.5).encode(y="at:Q", strokeDash=dash)
    return alt.layer(rules, points).properties(height=320)
