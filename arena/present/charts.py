"""Drawing with Altair: charts for pages, and SVG and PNG of all pictures, without network or browser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import altair as alt
from altair.utils import schemapi

from arena.present.numbers import printable
from arena.present.picture import FLAG, Aligned, CellPanel, Chart, Dot, Matrix, Picture, Strip, Whiskers, safe

_BLUE, _ORANGE, _GREY = "#1f86c6", "#e07a1f", "#8a8f98"
_COLOURS: Final = {"blue": _BLUE, "orange": _ORANGE, "grey": _GREY, "quiet": _GREY}
_SHAPES: Final = {"blue": "circle", "orange": "square", "grey": "triangle-up", "quiet": "circle"}
_DOTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "quiet": {"color": _GREY, "filled": True, "opacity": 0.35},
    "grey": {"color": _GREY, "filled": False, "opacity": 1},
    "orange": {"color": _ORANGE, "filled": True, "opacity": 0.85},
    "blue": {"color": _BLUE, "filled": True, "opacity": 0.85},
}
"""Style by look, in drawing order: the last is on top."""
_INK: Final = "currentColor"
_NEITHER: Final = "#757c87"
"""Grey that is readable on light and dark backgrounds, because Vega does not know the page's text colour."""
_WIDTH, _HEIGHT = 440, 320
_LETTER, _TALL = 6.5, 12
"""Size in pixels of a letter (width) and of a text line (height)."""
_MOST_NAMED: Final = 30
"""Most dots with a name."""
_NAME: Final = 40
"""Longest name, in characters."""
_STEP: Final = 26
"""Height of a panel row and width of a cell column, in pixels; half of it with more rows than ``_MOST_ROOMY``."""
_MOST_ROOMY: Final = 20
_STRIP: Final = 110
_SHADES: Final = alt.Scale(domain=[-1, 0, 1], range=["#efbc8f", "#f4f4f2", "#8fc2e2"], interpolate="rgb")
_SYMBOL: Final = re.compile(r'<path aria-label="([^"]*)"([^>]*)/>')
_VEGA_LITE: Final = alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]


def chart(picture: Picture) -> alt.LayerChart | alt.HConcatChart:
    """Altair chart of the picture, without its title."""
    if isinstance(picture, Chart):
        return _points(picture)
    if isinstance(picture, Aligned):
        return _aligned(picture)
    return _whiskers(picture) if isinstance(picture, Whiskers) else _matrix(picture)


def spec(picture: Chart) -> dict[str, Any]:
    """Vega-Lite specification of the chart, as wide as its container; skips Altair's slow validation."""
    with schemapi.debug_mode(False):
        specification: dict[str, Any] = (
            _points(picture, linked=True).properties(width="container").to_dict(validate=False)
        )
    return {**specification, "config": {"text": {"color": _NEITHER}}}


def svg(*pictures: Picture) -> str:
    """SVG of the pictures on a white background, in two columns."""
    titled = [
        drawing.properties(title=alt.Title(title, anchor="start")) if title else drawing
        for drawing, title in (
            (chart(picture), picture.title or ("" if isinstance(picture, Aligned) else picture.name))
            for picture in pictures
        )
    ]
    return _svg(
        alt.concat(*titled, columns=2).resolve_scale(color="independent", size="independent", shape="independent"),
        "white",
    )


def png(*pictures: Picture) -> bytes:
    """PNG of the pictures, at twice the size in pixels."""
    import vl_convert

    return vl_convert.svg_to_png(svg(*pictures), scale=2)


def inline_svg(picture: Chart) -> str:
    """SVG element of the chart for an HTML page, in the page's text colour."""
    return _svg(chart(picture), None)


def _svg(drawing: alt.TopLevelMixin, background: str | None) -> str:
    import vl_convert

    axis = {
        "labelColor": _INK,
        "titleColor": _INK,
        "gridColor": _GREY,
        "gridOpacity": 0.25,
        "titleFontWeight": "normal",
        "titlePadding": 10,
    }
    config = {"background": background, "axis": axis, "title": {"color": _INK}, "text": {"color": _INK}}
    spec = drawing.to_dict()
    spec["config"] = {"font": "Arial, Liberation Sans, sans-serif", **config, "view": {"stroke": None}}
    svg_text: str = vl_convert.vegalite_to_svg(spec, vl_version=_VEGA_LITE)
    return _SYMBOL.sub(r"<path\2><title>\1</title></path>", svg_text)


def _points(picture: Chart, *, linked: bool = False) -> alt.LayerChart:
    """Layers of a chart; dots get links only with ``linked``, because relative links do not work in files."""
    label_sides = _label_sides(picture)
    rows = [
        {
            "x": dot.x,
            "y": dot.y,
            "name": printable(dot.name)[:_NAME] if at in label_sides else "",
            "told": printable(dot.tooltip or f"{dot.name}: {dot.x:.4g}, {dot.y:.4g}"),
            "look": dot.look,
            "size": dot.size,
            "left": label_sides.get(at, False),
            **_interval_ends(dot),
            **({"link": dot.link} if linked and safe(dot.link) else {}),
        }
        for at, dot in enumerate(picture.dots)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "x:Q",
            scale=alt.Scale(zero=picture.zero, nice=True, padding=0 if picture.zero else 20),
            axis=alt.Axis(title=picture.across, tickCount=6),
        ),
        y=alt.Y(
            "y:Q", scale=alt.Scale(zero=False, nice=True, padding=20), axis=alt.Axis(title=picture.up, tickCount=6)
        ),
        tooltip=alt.Tooltip("told:N", title=" "),
    )
    layers: list[alt.Chart] = []
    for axis, present in (
        ("x", any(dot.x_ends for dot in picture.dots)),
        ("y", any(dot.y_ends for dot in picture.dots)),
    ):
        if present:
            ends = {axis: alt.X("x_low:Q") if axis == "x" else alt.Y("y_low:Q"), f"{axis}2": f"{axis}_high:Q"}
            whisker = base.transform_filter(f"isValid(datum.{axis}_low)")
            layers.append(whisker.mark_rule(color=_GREY, opacity=0.7, aria=False).encode(**ends))
    if picture.path:
        path = alt.Chart(alt.Data(values=[{"x": x, "y": y} for x, y in sorted(picture.path)]))
        interpolate: Any = "step-after" if picture.stepped else "linear"
        layers.append(
            path.mark_line(color=_GREY, strokeDash=[5, 4], interpolate=interpolate, aria=False).encode(x="x:Q", y="y:Q")
        )
    for level in picture.levels:
        rule = alt.Chart(alt.Data(values=[{"y": level.at, "name": level.name}])).encode(y="y:Q")
        layers.append(rule.mark_rule(color=_ORANGE, strokeDash=[6, 4] if level.dashed else [1, 0], aria=False))
        layers.append(
            rule.mark_text(align="right", dy=-6, aria=False, color=_ORANGE).encode(x=alt.value("width"), text="name:N")
        )
    largest = max((dot.size for dot in picture.dots), default=1)
    smallest = min((dot.size for dot in picture.dots), default=1)
    scale = alt.Scale(domain=[0, largest], range=[30, 500] if largest > smallest else [0, 100])
    for look, style in _DOTS.items():
        if any(dot.look == look for dot in picture.dots):
            dots = base.transform_filter(f"datum.look == '{look}'").encode(description="told:N")
            if any("link" in row for row in rows):
                dots = dots.encode(href="link:N")
            layers.append(dots.mark_point(**style).encode(size=alt.Size("size:Q", scale=scale, legend=None)))
    for left in (False, True):
        label = base.transform_filter(f"datum.name && datum.left == {str(left).lower()}")
        layers.append(
            label.mark_text(align="right" if left else "left", dx=-8 if left else 8, dy=-7, aria=False).encode(
                text="name:N"
            )
        )
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT)


def _interval_ends(dot: Dot) -> dict[str, float]:
    sides = (("x", dot.x_ends), ("y", dot.y_ends))
    return {
        f"{axis}_{end}": value for axis, ends in sides if ends for end, value in zip(("low", "high"), ends, strict=True)
    }


def _label_sides(picture: Chart) -> dict[int, bool]:
    """Indices of the dots whose names fit, and whether the name is left of its dot; the first dots have priority."""
    xs = [end for dot in picture.dots for end in (dot.x, *(dot.x_ends or ()))]
    ys = [end for dot in picture.dots for end in (dot.y, *(dot.y_ends or ()))]
    across, up = (max(xs) - min(xs)) or 1, (max(ys) - min(ys)) or 1
    positions = [(_WIDTH * (dot.x - min(xs)) / across, _HEIGHT * (max(ys) - dot.y) / up) for dot in picture.dots]
    occupied = [(x - 4, x + 4, y) for dot, (x, y) in zip(picture.dots, positions, strict=True) if dot.look != "quiet"]
    sides: dict[int, bool] = {}
    for at, (dot, (x, y)) in enumerate(zip(picture.dots, positions, strict=True)):
        if not dot.name or dot.look == "quiet" or len(sides) == _MOST_NAMED:
            continue
        name_width, centre = _LETTER * min(len(dot.name), _NAME), y - 7
        for left in (False, True) if x < _WIDTH / 2 else (True, False):
            start = x - 8 - name_width if left else x + 8
            fits = all(
                start > end or start + name_width < begin or abs(centre - at_y) > _TALL for begin, end, at_y in occupied
            )
            if fits and -_LETTER < start < _WIDTH + _LETTER - name_width:
                sides[at] = left
                occupied.append((start, start + name_width, centre))
                break
    return sides


def _whiskers(picture: Whiskers) -> alt.LayerChart:
    factor = picture.form.factor
    rows = [
        {
            "name": printable(line.name),
            "value": factor * mark.value,
            "low": None if mark.low is None else factor * mark.low,
            "high": None if mark.high is None else factor * mark.high,
            "look": printable(picture.legend.get(mark.look, mark.look)),
            "told": printable(f"{line.name}: {picture.form.write(mark.value)} {mark.beside}".strip()),
        }
        for line in picture.lines
        for mark in line.marks
    ]
    looks = list(dict.fromkeys(mark.look for line in picture.lines for mark in line.marks))
    meaning = [printable(picture.legend.get(look, look)) for look in looks]
    legend = alt.Legend(title=None, orient="top") if picture.legend else None
    several = any(len(line.marks) > 1 for line in picture.lines)
    x = alt.X(
        "value:Q",
        scale=alt.Scale(zero=picture.zero),
        axis=alt.Axis(title=picture.axis, labelExpr=f"datum.label + '{picture.form.unit}'"),
    )
    y = alt.Y("name:N", sort=[str(row["name"]) for row in rows], axis=alt.Axis(title=None, labelLimit=260, ticks=False))
    colour = alt.Scale(domain=meaning, range=[_COLOURS[look] for look in looks])
    shape = alt.Scale(domain=meaning, range=[_SHAPES[look] for look in looks])
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, y=y, color=alt.Color("look:N", scale=colour, legend=legend))
    if several:
        base = base.encode(yOffset=alt.YOffset("look:N", sort=meaning))
    layers = [
        base.mark_rule(strokeWidth=2, aria=False).encode(x="low:Q", x2="high:Q"),
        base.mark_point(filled=True, size=80, opacity=1).encode(
            shape=alt.Shape("look:N", scale=shape, legend=legend), description="told:N"
        ),
    ]
    return alt.layer(*layers).properties(width=_WIDTH, height=alt.Step(16 if several else 24))


def _matrix(picture: Matrix) -> alt.LayerChart:
    rows = [
        {
            "row": printable(row),
            "column": printable(column),
            "figure": cell.figure,
            "strength": cell.strength,
            "told": printable(cell.tooltip or f"{row}, {column}: {cell.figure}"),
        }
        for (row, column), cell in picture.cells.items()
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("column:N", sort=list(map(printable, picture.columns)), axis=alt.Axis(orient="top", title=None)),
        y=alt.Y("row:N", sort=list(map(printable, picture.rows)), axis=alt.Axis(title=None)),
    )
    layers = [
        base.mark_rect(aria=False).encode(color=alt.Color("strength:Q", scale=_SHADES, legend=None)),
        base.mark_text(fontSize=10, color="#1a1a1a").encode(text="figure:N", description="told:N"),
    ]
    return alt.layer(*layers).properties(width=alt.Step(34), height=alt.Step(26))


def _aligned(picture: Aligned) -> alt.HConcatChart:
    named = {row: f"{position}  {printable(row)[:_NAME]}" for position, row in enumerate(picture.rows, 1)}
    step = _STEP if len(named) <= _MOST_ROOMY else _STEP // 2
    charts = []
    for position, panel in enumerate(picture.panels):
        labels = alt.Axis(title=None, labels=position == 0, ticks=False, domain=False, grid=False, labelLimit=260)
        y = alt.Y("row:N", scale=alt.Scale(domain=list(named.values())), axis=labels)
        layers = _cells(panel, named, y) if isinstance(panel, CellPanel) else _strip(panel, named, y)
        title = alt.Title(
            panel.title,
            subtitle=panel.note if isinstance(panel, Strip) else "",
            anchor="middle",
            fontSize=11,
            subtitleFontSize=9,
            subtitleColor=_INK,
        )
        width: Any = alt.Step(step) if isinstance(panel, CellPanel) else _STRIP
        charts.append(alt.layer(*layers).properties(width=width, height=alt.Step(step), title=title))
    return alt.hconcat(*charts, spacing=16, bounds="flush").resolve_scale(color="independent", x="independent")


def _cells(panel: CellPanel, named: Mapping[str, str], y: alt.Y) -> list[alt.Chart]:
    rows = [
        {
            "row": named[row],
            "column": str(1 + list(named).index(column)),
            "figure": cell.figure,
            "strength": cell.strength,
            "bold": cell.bold,
            "told": printable(cell.tooltip or f"{row}, {column}: {cell.figure}"),
        }
        for (row, column), cell in panel.cells.items()
    ]
    numbers = [str(place) for place in range(1, 1 + len(named))]
    x = alt.X("column:N", scale=alt.Scale(domain=numbers), axis=alt.Axis(title=None, ticks=False, labelAngle=0))
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, y=y)
    text = base.encode(text="figure:N", description="told:N")
    font_size = 10 if len(named) <= _MOST_ROOMY else 6
    return [
        base.mark_rect(aria=False).encode(color=alt.Color("strength:Q", scale=_SHADES, legend=None)),
        text.transform_filter("!datum.bold").mark_text(fontSize=font_size, color="#1a1a1a"),
        text.transform_filter("datum.bold").mark_text(fontSize=font_size, color="#1a1a1a", fontWeight="bold"),
    ]


def _strip(panel: Strip, named: Mapping[str, str], y: alt.Y) -> list[alt.Chart]:
    factor = panel.form.factor
    rows = [
        {
            "row": named[row],
            "value": factor * mark.value,
            "low": None if mark.low is None else factor * mark.low,
            "high": None if mark.high is None else factor * mark.high,
            "look": mark.look,
            "flag": FLAG if mark.flag else "",
            "told": printable(f"{row}: {panel.form.write(mark.value)} {mark.flag}".strip()),
        }
        for row, mark in panel.marks.items()
    ]
    axis = alt.Axis(title=None, tickCount=3, labelExpr=f"datum.label + '{panel.form.unit}'")
    looks = list(_COLOURS)
    colour = alt.Color("look:N", scale=alt.Scale(domain=looks, range=list(_COLOURS.values())), legend=None)
    shape = alt.Shape("look:N", scale=alt.Scale(domain=looks, range=list(_SHAPES.values())), legend=None)
    x = alt.X("value:Q", scale=alt.Scale(zero=False, padding=8), axis=axis)
    base = alt.Chart(alt.Data(values=rows)).encode(y=y, x=x, color=colour)
    return [
        base.mark_rule(strokeWidth=2, aria=False).encode(x="low:Q", x2="high:Q"),
        base.mark_point(filled=True, size=50, opacity=1).encode(shape=shape, description="told:N"),
        base.mark_text(dy=-8, aria=False, fontWeight="bold").encode(text="flag:N"),
    ]
