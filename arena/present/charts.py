"""Draws pictures as SVG without a plotting library: charts for pages, and all kinds of pictures for files."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import product
from typing import Final, NamedTuple

from arena.present.numbers import FIGURE, printable, start_of
from arena.present.picture import (
    SIGNS,
    Aligned,
    CellPanel,
    Chart,
    Dot,
    Look,
    Mark,
    Matrix,
    MatrixCell,
    Picture,
    RankScale,
    Scale,
    Strip,
    Whiskers,
    ends_of,
    rank_words,
    safe,
)
from judges.errors import MissingExtraError

_BLUE, _ORANGE, _GREY = "#1f86c6", "#e07a1f", "#8a8f98"
_COLOURS: Final[Mapping[Look, str]] = {"blue": _BLUE, "orange": _ORANGE}
"""Colours by look; all others are grey."""
_DRAWN: Final[Sequence[Look]] = ("open", "quiet", "grey", "orange", "blue")
"""Looks of dots in drawing order: later ones cover earlier ones."""
_LOW, _EVEN, _HIGH = (239, 188, 143), (244, 244, 242), (143, 194, 226)
"""Colours of matrix cells of strength -1, 0 and 1, as (red, green, blue)."""
_DARK: Final = "#1a1a1a"
_WIDTH, _HEIGHT = 440, 320
_INLINE_WIDTH: Final = 260
_LETTER, _SMALL, _TALL = 6.5, 5.4, 12
"""Width of a letter, and of one of a note, and height of a text line, in pixels."""
_INLINE: Final = 1.25
"""Enlargement of letters in charts on pages; their plots are narrower, so that a phone shows them at full size."""
_MOST_NAMED: Final = 30
_NAME: Final = 40
_STEP: Final = 26
"""Height of a row in pixels, and width of a cell in a panel; ``_NARROW`` with more than ``_MOST_ROOMY`` rows."""
_NARROW: Final = 18
_MOST_ROOMY: Final = 20
_STRIP: Final = 80
"""Width in pixels of a strip; three times as much where there are at most ``_FEW_STRIPS``."""
_FEW_STRIPS: Final = 3
_SLIDE: Final = 1400
"""Width in pixels at which the parts of a picture wrap."""
_GAP: Final = 24
_LONG: Final = 5


class _Drawing(NamedTuple):
    width: float
    height: float
    body: str


class _Axis(NamedTuple):
    scale: Scale
    left: float
    width: float

    def x(self, value: float) -> float:
        return self.left + self.width * self.scale.place(value) / 100

    def drawn(self, top: float, height: float, title: str = "") -> str:
        body = ""
        for place, tick in enumerate(self.scale.ticks):
            x = self.left + self.width * place / (len(self.scale.ticks) - 1)
            body += _line(x, top, x, top + height, stroke_opacity=0.25)
            body += _text(x, top + height + _TALL + 4, tick, text_anchor="middle")
        middle = self.left + self.width / 2
        return body + _text(middle, top + height + 2.75 * _TALL, title, text_anchor="middle")


def svg(*pictures: Picture) -> str:
    rows: list[list[_Drawing]] = []
    for place, picture in enumerate(pictures):
        if place % 2 == 0:
            rows.append([])
        rows[-1].append(_titled(picture))
    second = max(row[0].width for row in rows) + _GAP
    body, y = "", float(_GAP)
    for row in rows:
        for x, drawing in zip((0.0, second), row, strict=False):
            body += _moved(drawing.body, x + _GAP, y)
        y += max(drawing.height for drawing in row) + _GAP
    width = _GAP + max([second + row[1].width for row in rows if len(row) > 1] or [second])
    paper = _element("rect", width=width + _GAP, height=y, fill="white")
    return _root(_Drawing(width + _GAP, y, paper + body))


def png(*pictures: Picture) -> bytes:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("png", "a .png picture (.svg and .html need no extra)") from error

    return vl_convert.svg_to_png(svg(*pictures), scale=2)


def inline_svg(picture: Chart) -> str:
    """SVG element of the chart for an HTML page, in the page's text colour; its dots are links."""
    return _root(_points(picture, linked=True), 11 * _INLINE)


def _root(drawing: _Drawing, font_size: float = 11) -> str:
    size = f'width="{drawing.width:.0f}" height="{drawing.height:.0f}"'
    box = f'viewBox="0 0 {drawing.width:.0f} {drawing.height:.0f}"'
    style = f'font-family="Arial, Liberation Sans, sans-serif" font-size="{font_size:g}" fill="currentColor"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} {style}>{drawing.body}</svg>'


def _titled(picture: Picture) -> _Drawing:
    title = picture.title or picture.name
    if isinstance(picture, Chart):
        drawing = _points(picture)
    elif isinstance(picture, Whiskers):
        drawing = _whiskers(picture)
    else:
        drawing = _matrix(picture) if isinstance(picture, Matrix) else _aligned(picture)
    if not title:
        return drawing
    words = _text(0, _TALL, title, font_size=13, font_weight="bold")
    width = max(drawing.width, len(title) * _LETTER * 1.2)
    return _Drawing(width, drawing.height + 2 * _TALL, words + _moved(drawing.body, 0, 2 * _TALL))


def _points(picture: Chart, *, linked: bool = False) -> _Drawing:
    """Draw a scatter chart; ``linked`` turns its dots into links, which do not work in files."""
    dots = picture.dots
    xs = [end for dot in dots for end in (dot.x, *(dot.x_ends or ()))] + [x for x, _ in picture.path]
    ys = [end for dot in dots for end in (dot.y, *(dot.y_ends or ()))] + [y for _, y in picture.path]
    up = Scale([*ys, *(level.at for level in picture.levels)], FIGURE)
    width, letter = (_INLINE_WIDTH, _INLINE * _LETTER) if linked else (_WIDTH, _LETTER)
    left, top = letter * max(map(len, up.ticks)) + 2 * _TALL, float(_TALL)
    across = _Axis(Scale([0.0, *xs] if picture.zero else xs, FIGURE, width / 88), left, width)

    def y(value: float) -> float:
        return top + _HEIGHT * (1 - up.place(value) / 100)

    body = across.drawn(top, _HEIGHT, picture.across) + _upright(up, (left, left + width), top, picture.up)
    positions = [(across.x(dot.x), y(dot.y)) for dot in dots]
    for dot, (at_x, at_y) in zip(dots, positions, strict=True):
        if dot.x_ends:
            body += _line(across.x(dot.x_ends[0]), at_y, across.x(dot.x_ends[1]), at_y, stroke_opacity=0.7)
        if dot.y_ends:
            body += _line(at_x, y(dot.y_ends[0]), at_x, y(dot.y_ends[1]), stroke_opacity=0.7)
    if picture.path:
        body += _path([(across.x(at_x), y(at_y)) for at_x, at_y in sorted(picture.path)], stepped=picture.stepped)
    for level in picture.levels:
        height, dashes = y(level.at), "6 4" if level.dashed else None
        body += _line(left, height, left + width, height, stroke=_ORANGE, stroke_dasharray=dashes)
        body += _text(left + width, height - 6, level.name, text_anchor="end", fill=_ORANGE)
    largest, several = max(dot.size for dot in dots), len({dot.size for dot in dots}) > 1
    for dot, position in sorted(zip(dots, positions, strict=True), key=lambda each: _DRAWN.index(each[0].look)):
        area = 30 + 470 * dot.size / largest if several else 100
        body += _dot(dot, position, math.sqrt(area / math.pi), linked=linked)
    spots = [(at_x - left, at_y - top) for at_x, at_y in positions]
    body += _moved("".join(_labels(dots, spots, width, letter)), left, top)
    return _Drawing(left + width + 2 * _TALL, top + _HEIGHT + 3 * _TALL, body)


def _upright(scale: Scale, ends: tuple[float, float], top: float, title: str) -> str:
    body, left = "", ends[0]
    for place, tick in enumerate(scale.ticks):
        y = top + _HEIGHT * (1 - place / (len(scale.ticks) - 1))
        body += _line(left, y, ends[1], y, stroke_opacity=0.25)
        body += _text(left - 6, y + 4, tick, text_anchor="end")
    middle = top + _HEIGHT / 2
    return body + _text(_TALL, middle, title, text_anchor="middle", transform=f"rotate(-90 {_TALL} {middle:.0f})")


def _dot(dot: Dot, position: tuple[float, float], radius: float, *, linked: bool) -> str:
    style: dict[str, object] = {
        "fill": _COLOURS.get(dot.look, _GREY),
        "fill_opacity": 0.35 if dot.look == "quiet" else 0.85,
    }
    if dot.look == "grey":
        style = {"fill": "none", "stroke": _GREY, "stroke_width": 2, "pointer_events": "all"}
    tooltip = _hint(dot.tooltip or f"{dot.name}: {dot.x:.4g}, {dot.y:.4g}")
    mark = _element("circle", tooltip, cx=position[0], cy=position[1], r=radius, **style)
    return f'<a href="{escape(dot.link)}">{mark}</a>' if linked and safe(dot.link) else mark


def _path(points: Sequence[tuple[float, float]], *, stepped: bool) -> str:
    corners = [points[0]]
    for x, y in points[1:]:
        corners += [(x, corners[-1][1]), (x, y)] if stepped else [(x, y)]
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return _element("polyline", points=drawn, fill="none", stroke=_GREY, stroke_dasharray="5 4")


_DOWN: Final = (0, -9, 9, -18, 18)
"""How far below its dot a short label may stand, in pixels."""


def _labels(dots: Sequence[Dot], positions: Sequence[tuple[float, float]], width: float, letter: float) -> list[str]:
    """Names beside their dots, or short labels where names have no room, for all dots with room for either."""
    occupied = [(x - 4, x + 4, y) for dot, (x, y) in zip(dots, positions, strict=True) if dot.look != "quiet"]
    labels: list[str] = []
    for dot, (x, y) in zip(dots, positions, strict=True):
        if not dot.name or dot.look == "quiet" or len(labels) == _MOST_NAMED:
            continue
        sides = (False, True) if x < width / 2 else (True, False)
        places = [*product([_short(dot.name)], (-7, 7), sides), *product([dot.short] * bool(dot.short), _DOWN, sides)]
        for text, down, left in places:
            text_width, centre = letter * len(text), y + down
            start = x - 8 - text_width if left else x + 8
            fits = all(
                start > end or start + text_width < begin or abs(centre - at_y) > 1.4 * letter
                for begin, end, at_y in occupied
            )
            if fits and -letter < start < width + letter - text_width:
                at, anchor = (x - 8, "end") if left else (x + 8, "start")
                labels.append(_text(at, centre + 3, text, text_anchor=anchor))
                occupied.append((start, start + text_width, centre))
                break
    return labels


def _whiskers(picture: Whiskers) -> _Drawing:
    ends = ends_of(mark for line in picture.lines for mark in line.marks)
    left, top = _width_of(line.name for line in picture.lines), 2.0 * _TALL if picture.legend else 0.0
    axis = _Axis(Scale([0.0, *ends] if picture.zero else ends, picture.form), left, _WIDTH)
    legend, x = "", left
    for look, meaning in picture.legend.items():
        legend += _mark(x, _TALL / 2, look) + _text(x + 10, _TALL - 2, meaning)
        x += 2 * _GAP + _LETTER * len(meaning)
    rows, y = "", top
    for line in picture.lines:
        height = max(24, 16 * len(line.marks))
        rows += _text(left - 8, y + height / 2 + 4, _short(line.name), text_anchor="end")
        for place, mark in enumerate(line.marks, 1):
            tooltip = f"{line.name}: {picture.form.write(mark.value)} {mark.beside}".strip()
            rows += _with_interval(mark, axis, y + height * place / (len(line.marks) + 1), tooltip)
        y += height
    body = legend + axis.drawn(top, y - top, picture.axis) + rows
    return _Drawing(max(left + _WIDTH, x) + 2 * _TALL, y + 3 * _TALL, body)


def _with_interval(mark: Mark, axis: _Axis, y: float, tooltip: str) -> str:
    interval = ""
    if mark.low is not None and mark.high is not None:
        interval = _line(
            axis.x(mark.low), y, axis.x(mark.high), y, stroke=_COLOURS.get(mark.look, _GREY), stroke_width=2
        )
    return interval + _mark(axis.x(mark.value), y, mark.look, tooltip)


def _mark(x: float, y: float, look: Look, tooltip: str = "") -> str:
    """Draw a mark as a disc, a square or a triangle, so that looks differ even without colours."""
    hint, style = _hint(tooltip), {"fill": _COLOURS.get(look, _GREY)}
    if look == "band":
        return _element("rect", hint, x=x - 8, y=y - 6, width=16, height=12, fill_opacity=0.25, **style)
    if look == "orange":
        return _element("rect", hint, x=x - 4, y=y - 4, width=8, height=8, **style)
    if look == "grey":
        return _element("path", hint, d=f"M{x - 5:.1f} {y + 4:.1f}h10l-5 -9z", **style)
    if look == "open":
        return _element("circle", hint, cx=x, cy=y, r=4.5, fill="white", stroke=_GREY, stroke_width=2)
    return _element("circle", hint, cx=x, cy=y, r=4.5, **style)


def _matrix(picture: Matrix) -> _Drawing:
    left = _width_of(picture.rows)
    turned = any(len(name) >= _LONG for name in picture.columns)
    top = _width_of(picture.columns) if turned else 2.0 * _TALL
    body = ""
    for place, name in enumerate(picture.columns):
        x = left + (place + 0.5) * 34
        turn = {"transform": f"rotate(-90 {x + 4:.1f} {top - 8:.1f})"} if turned else {"text_anchor": "middle"}
        body += _text(x + 4 * turned, top - 8, _short(name), **turn)
    for place, name in enumerate(picture.rows):
        body += _text(left - 8, top + _STEP * (place + 0.5) + 4, _short(name), text_anchor="end")
    across = {name: left + 34 * place for place, name in enumerate(picture.columns)}
    down = {name: top + _STEP * place for place, name in enumerate(picture.rows)}
    body += _cells(picture.cells, across, down, (34, _STEP))
    return _Drawing(left + 34 * len(picture.columns), top + _STEP * len(picture.rows), body)


def _cells(
    cells: Mapping[tuple[str, str], MatrixCell],
    across: Mapping[str, float],
    down: Mapping[str, float],
    size: tuple[float, float],
) -> str:
    width, height = size
    font_size = _font_size(height)
    body = ""
    for (row, column), cell in cells.items():
        x, y = across[column], down[row]
        if cell.strength is not None:
            hint = _hint(cell.tooltip or f"{row}, {column}: {cell.figure}")
            body += _element("rect", hint, x=x, y=y, width=width, height=height, fill=_shade(cell.strength))
        style = {"text_anchor": "middle", "fill": _DARK, "pointer_events": "none"}
        weight = "bold" if cell.bold else None
        middle = y + height / 2 + font_size / 3
        body += _text(x + width / 2, middle, cell.figure, font_size=font_size, font_weight=weight, **style)
    return body


def _font_size(step: float) -> int:
    return 10 if step >= _STEP else 8


def _shade(strength: float) -> str:
    end, share = (_HIGH if strength > 0 else _LOW), min(abs(strength), 1)
    return "#" + "".join(f"{round(even + share * (far - even)):02x}" for even, far in zip(_EVEN, end, strict=True))


def _aligned(picture: Aligned) -> _Drawing:
    """Draw the panels' parts side by side, wrapped to the width of a slide, between the legend and the caption."""
    body, x, y, width, tallest = "", 0.0, 0.0, 0.0, 0.0
    for look, meaning in picture.legend.items():
        body += _mark(x + 5, _TALL / 2, look) + _text(x + 16, _TALL - 2, meaning)
        x += 2.5 * _GAP + _LETTER * len(meaning)
        y = 2.0 * _TALL
    width, x, head = (
        x,
        0.0,
        _TALL
        * (5.5 + 1.1 * max((len(strip.notes) for strip in picture.panels if isinstance(strip, Strip)), default=0)),
    )
    for block in picture.blocks:
        drawing = _grid(picture, block, head) if isinstance(block, CellPanel) else _strips(picture, block, head)
        if x and x + drawing.width > _SLIDE:
            x, y, tallest = 0.0, y + tallest + _GAP, 0.0
            drawing = _grid(picture, block, 3.0 * _TALL) if isinstance(block, CellPanel) else drawing
        body += _moved(drawing.body, x, y)
        x, tallest = x + drawing.width + _GAP, max(tallest, drawing.height)
        width = max(width, x)
    y += tallest + _GAP
    for line in textwrap.wrap(picture.caption, int(max(width, _WIDTH) / _LETTER * 1.15)):
        body += _text(0, y, line)
        y += 1.4 * _TALL
    return _Drawing(width, y, body)


def _rows(picture: Aligned, top: float, step: float) -> tuple[float, dict[str, float], str]:
    """The width of the rows' names, the top of each row, and the names."""
    names = {name: f"{number}  {_short(name)}" for number, name in picture.numbered}
    left, down = _width_of(names.values()), {name: top + step * at for at, name in enumerate(picture.rows)}
    words = (_text(left - 8, y + step / 2 + 4, names[name], text_anchor="end") for name, y in down.items())
    return left, down, "".join(words)


def _grid(picture: Aligned, panel: CellPanel, top: float) -> _Drawing:
    step = _step(picture)
    left, down, body = _rows(picture, top, step)
    across = {name: left + step * at for at, name in enumerate(picture.rows)}
    width = step * len(across)
    body += _text(left, top - 2 * _TALL, panel.title, font_weight="bold")
    for number, name in picture.numbered:
        body += _text(across[name] + step / 2, top - 6, str(number), text_anchor="middle", font_size=_font_size(step))
    shown = {place: cell for place, cell in panel.cells.items() if down.keys() >= {*place}}
    body += _cells(shown, across, down, (step, step))
    return _Drawing(left + max(width, _LETTER * len(panel.title)), top + step * len(down) + _TALL, body)


def _strips(picture: Aligned, panels: Sequence[Strip], top: float) -> _Drawing:
    step = _step(picture)
    x, down, body = _rows(picture, top, step)
    width, parts = (_STRIP, 3) if len(panels) > _FEW_STRIPS else (3 * _STRIP, 7)
    middles = {name: y + step / 2 for name, y in down.items()}
    for panel in panels:
        figures = {row: rank_words(panel.marks[row]) for row in middles if row in panel.marks}
        beside = width + 2.5 * _TALL + _SMALL * max(map(len, figures.values()), default=0)
        verdict = _LETTER * len(panel.verdict[1]) + 14 if panel.verdict is not None else 0
        room = max(beside, _LETTER * len(panel.title), verdict, *(_SMALL * len(note) for note in panel.notes))
        body += _moved(_head(panel, room), x, 0)
        axis = _Axis(RankScale(panel.ranks, parts), x + 6, width)
        body += axis.drawn(top, step * len(down))
        for row, words in figures.items():
            body += _in_strip(panel.marks[row], axis, middles[row], words)
        x += room + _GAP
    return _Drawing(x - _GAP, top + step * len(down) + 2 * _TALL, body)


def _head(panel: Strip, width: float) -> str:
    body = _text(0, _TALL, panel.title, font_weight="bold", font_size=12)
    y = 2.3 * _TALL
    if panel.verdict is not None:
        look, word = panel.verdict
        body += _signed(0, y, look, word, font_weight="bold")
        y += 0.4 * _TALL
    total, x = sum(share.count for share in panel.shares), 0.0
    for share in panel.shares:
        part = width * share.count / (total or 1)
        style = {"fill": _COLOURS.get(share.look, _GREY), "fill_opacity": 0.35 if share.faint else None}
        body += _element("rect", _hint(f"{share.count} {share.name}"), x=x, y=y, width=part, height=8, **style)
        x += part
    y += 8 + 1.1 * _TALL if total else 0
    for note in panel.notes:
        body += _text(0, y, note, font_size=10)
        y += 1.1 * _TALL
    return body


def _in_strip(mark: Mark, axis: _Axis, y: float, words: str) -> str:
    band = ""
    if mark.band is not None:
        low, high = map(axis.x, mark.band)
        more = 6 * (low == high)  # a single rank shows too
        band = _element(
            "rect", x=low - more, y=y - 7, width=high - low + 2 * more, height=14, fill=_GREY, fill_opacity=0.25
        )
    figure = _signed(axis.left + axis.width + _TALL, y + 4, mark.look, words, font_size=10)
    return band + _with_interval(mark, axis, y, mark.tooltip) + figure


def _signed(x: float, y: float, look: Look, words: str, **style: object) -> str:
    """Words after the sign of a look, which is a text of its own: many fonts lack it, and another font replaces it."""
    sign = SIGNS.get(look, "")
    return _text(x, y, sign, **style) + _text(x + 14 * bool(sign), y, words, **style)


def _step(picture: Aligned) -> float:
    return float(_STEP if len(picture.rows) <= _MOST_ROOMY else _NARROW)


def _width_of(names: Iterable[str]) -> float:
    return 16 + _LETTER * min(max(map(len, names), default=0), _NAME)


def _line(x1: float, y1: float, x2: float, y2: float, *, stroke: str = _GREY, **style: object) -> str:
    return _element("line", "", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, **style)


def _text(x: float, y: float, words: str, **style: object) -> str:
    return _element("text", escape(printable(words)), x=x, y=y, **style) if words else ""


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{start_of(name, _NAME)}…"


def _hint(tooltip: str) -> str:
    return f"<title>{escape(printable(tooltip))}</title>" if tooltip else ""


def _moved(body: str, x: float, y: float) -> str:
    return _element("g", body, transform=f"translate({x:.0f} {y:.0f})")


def _element(tag: str, content: str = "", **attributes: object) -> str:
    words = "".join(
        f' {name.replace("_", "-")}="{round(value, 2) if isinstance(value, float) else value}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{words}>{content}</{tag}>"
