"""Charts of calibration: from data to Altair, nothing else. Names are values of the data, which Vega draws as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import altair as alt
import pandas as pd

from arena.calibration.bland_altman import BlandAltman

_BLUE: Final = "#0072B2"
_ORANGE: Final = "#D55E00"
_GREY: Final = "#8a8f98"
"""Of the palette by Okabe and Ito, told apart with every kind of colour vision; shapes tell the same."""
_LABEL_WIDTH: Final = 170


def correlation_chart(frame: pd.DataFrame, methods: Sequence[str], coefficient: str) -> alt.LayerChart:
    """The heat map of ``ui.methods.correlation_frame`` with its figures in the cells."""
    axis = {"sort": list(methods), "scale": alt.Scale(domain=list(methods), paddingInner=0.03)}
    across = alt.Axis(orient="top", labelLimit=110, labelAngle=-40, labelOverlap=False, title=None)
    base = alt.Chart(frame).encode(
        x=alt.X("column:N", axis=across, **axis),
        y=alt.Y("row:N", axis=alt.Axis(labelLimit=110, title=None), **axis),
        tooltip=[
            alt.Tooltip("row:N", title="Method"),
            alt.Tooltip("column:N", title="Other method"),
            alt.Tooltip("value:Q", title=coefficient, format=".2f"),
            alt.Tooltip("interval:N", title="95 % interval"),
            alt.Tooltip("agents:Q", title="Agents that both score"),
        ],
    )
    colour = alt.Color("value:Q", scale=alt.Scale(scheme="blueorange", domain=[-1, 1], reverse=True), legend=None)
    ink = alt.condition(abs(alt.datum.value) > 0.7, alt.value("#ffffff"), alt.value("#1a1a1a"))
    figures = base.transform_filter("isValid(datum.value)").mark_text(fontSize=14)
    return alt.layer(
        base.mark_rect().encode(color=colour), figures.encode(text=alt.Text("value:Q", format=".2f"), color=ink)
    ).properties(height=alt.Step(40))


def points_chart(frame: pd.DataFrame, across: str, up: str) -> alt.LayerChart:
    """Agents by two methods, from ``ui.methods.points_frame``, each with its name."""
    scale = alt.Scale(zero=False, nice=True, padding=28)
    base = alt.Chart(frame).encode(
        x=alt.X("x:Q", scale=scale, axis=alt.Axis(title=across, tickCount=6)),
        y=alt.Y("y:Q", scale=scale, axis=alt.Axis(title=up, tickCount=6)),
        tooltip=[
            alt.Tooltip("agent:N", title="Agent"),
            alt.Tooltip("x:Q", title="First method", format=".5~g"),
            alt.Tooltip("y:Q", title="Second method", format=".5~g"),
        ],
    )
    points = base.mark_point(filled=True, size=100, opacity=1, color=_BLUE)
    names = base.mark_text(dy=-13, fontSize=11, limit=120, color="#6f7682").encode(text="agent:N")
    return alt.layer(points, names).properties(height=340)


def bars_chart(frame: pd.DataFrame, title: str, names: str, kinds: str, *, signed: bool = False) -> alt.LayerChart:
    """Figures with their intervals as whiskers, one line for each name; kinds differ in colour and shape.

    Args:
        frame: columns ``names``, ``kinds``, ``value``, ``low``, ``high`` and ``interval``.
        title: of the figures.
        names: the column with what stands on a line.
        kinds: the column with what several figures of a line are.
        signed: draw a line at 0.
    """
    order = list(dict.fromkeys(frame[kinds]))
    colour = alt.Color(
        f"{kinds}:N",
        scale=alt.Scale(domain=order, range=[_BLUE, _ORANGE, _GREY][: len(order)]),
        legend=alt.Legend(title=None, orient="top") if len(order) > 1 else None,
    )
    axis = alt.Axis(labelLimit=_LABEL_WIDTH, title=None, labelOverlap=False)
    base = alt.Chart(frame).encode(
        y=alt.Y(f"{names}:N", sort=list(dict.fromkeys(frame[names])), axis=axis),
        **({"yOffset": alt.YOffset(f"{kinds}:N", sort=order)} if frame[names].duplicated().any() else {}),
        color=colour,
        tooltip=[
            alt.Tooltip(f"{names}:N", title="Of"),
            alt.Tooltip(f"{kinds}:N", title="By"),
            alt.Tooltip("value:Q", title=title, format=".4~g"),
            alt.Tooltip("interval:N", title="95 % interval"),
        ],
    )
    scale = alt.Scale(zero=signed, nice=True)
    x_axis = alt.Axis(title=title, tickCount=6)
    whiskers = base.transform_filter("isValid(datum.low)").encode(
        x=alt.X("low:Q", scale=scale, axis=x_axis), x2="high:Q"
    )
    shape = alt.Shape(f"{kinds}:N", scale=alt.Scale(domain=order, range=["circle", "square", "triangle-up"]))
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X("value:Q", scale=scale, axis=x_axis), shape=shape.legend(None)
    )
    layers = [whiskers.mark_rule(strokeWidth=2), points]
    if signed:
        zero = alt.Chart(pd.DataFrame({"x": [0]})).mark_rule(color=_GREY, strokeDash=[4, 4]).encode(x="x:Q")
        layers.insert(0, zero)
    return alt.layer(*layers).properties(height=alt.Step(15 if frame[names].duplicated().any() else 22))


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
