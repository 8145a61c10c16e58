"""Pictures as HTML for pages, reports, notebooks and files.

The HTML has no scripts, no style attributes and no external resources, so that a content security policy may forbid all
three; horizontal positions are widths of table cells in percent. All texts are escaped. Colours are mixed with the
background, so that they suit light and dark pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources
from os.path import commonprefix
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from arena.present.numbers import Number, NumberForm, printable
from arena.present.picture import (
    SIGNS,
    Aligned,
    CellPanel,
    Chart,
    Line,
    Look,
    Mark,
    Matrix,
    MatrixCell,
    Picture,
    RankScale,
    Scale,
    Strip,
    Whiskers,
    contended,
    ends_of,
    rank_words,
    safe,
)

if TYPE_CHECKING:
    from retrieval_eval.stats.estimate import Estimate

_DENSE_LINES: Final = 20
_DENSE_MATRIX: Final = 14
"""In a matrix with more rows or columns than this, a cell has room for a figure only."""
_LONG: Final = 5
_LONG_NAME: Final = 240
_MOST_STEPS_OF_CELL: Final = 6.0
_SHADES: Final = 10
_WIDE: Final = 3
"""With at most this many strips side by side, each has room for the ticks of a long axis."""


def html(picture: Picture) -> str:
    if isinstance(picture, Whiskers):
        if not picture.lines:
            return ""
        drawing = _whiskers(picture)
    elif isinstance(picture, Matrix):
        drawing = _matrix(picture)
    elif isinstance(picture, Aligned):
        drawing = _aligned(picture)
    else:
        from arena.present.charts import inline_svg

        drawing = f'<div role="group" aria-label="{escaped(picture.words)}">{inline_svg(picture)}</div>'
    title = f'<p class="title">{escaped(picture.title)}</p>' if picture.title else ""
    caption = f'<figcaption class="note">{escaped(picture.caption)}</figcaption>' if picture.caption else ""
    return f'<figure class="picture{" chart" * isinstance(picture, Chart)}">{title}{drawing}{caption}</figure>'


def _whiskers(picture: Whiskers) -> str:
    ends = ends_of(mark for line in picture.lines for mark in line.marks)
    scale = Scale([0.0, *ends] if picture.zero else ends, picture.form)
    ranked = any(line.rank for line in picture.lines)
    zero = _bar("zero", [(scale.place(0), "")]) if picture.zero else ""
    rows = "".join(_line(line, picture.form, scale, zero, ranked=ranked) for line in picture.lines)
    legend = "".join(
        f"<span>{_bar(look, [(50, 'at')])}{escaped(meaning)}</span>" for look, meaning in picture.legend.items()
    )
    if legend:
        legend = f'<div class="legend" aria-hidden="true">{legend}</div>'
    heads = ""
    if picture.headings:
        rank, name, figure = map(escaped, picture.headings)
        first = f"<span>{rank}</span>" if ranked else ""
        heads = (
            f'<div class="line head" aria-hidden="true">{first}<span>{name}</span><i></i><span>{figure}</span></div>'
        )
    axis = "" if picture.axis.casefold() == picture.title.casefold() else escaped(picture.axis)
    kind = " ".join(
        ["lines", f"ticks-{len(scale.ticks) - 1}"]
        + ["ranked"] * ranked
        + ["dense"] * (len(picture.lines) > _DENSE_LINES)
    )
    return (
        f'{legend}<div class="{kind}" role="list" aria-label="{escaped(picture.words)}">{heads}{rows}'
        f'<div class="foot" aria-hidden="true">{_ticks(scale)}{axis}</div></div>'
    )


def _line(line: Line, form: Number, scale: Scale, zero: str, *, ranked: bool) -> str:
    rank = f'<span class="rank">{escaped(line.rank)}</span>' if ranked else ""
    tag = f' <span class="tag">{escaped(line.tag)}</span>' if line.tag else ""
    bars = "".join(_mark(mark, scale) for mark in line.marks)
    figures = "".join(_figure(mark, form) for mark in line.marks)
    return (
        f'<div class="line" role="listitem">{rank}<span class="who">{clamped(line.name)}{tag}</span>'
        f'<div class="field" aria-hidden="true">{zero}{bars}</div><div class="shown">{figures}</div></div>'
    )


def _mark(mark: Mark, scale: Scale) -> str:
    at = scale.place(mark.value)
    if mark.low is None or mark.high is None:
        return _bar(mark.look, [(at, "at")])
    return _bar(mark.look, [(scale.place(mark.low), ""), (at, "low at"), (scale.place(mark.high), "high")])


def _bar(kind: str, ends: Sequence[tuple[float, str]]) -> str:
    """An HTML table of one row that draws a bar; ``ends`` has each cell's right end, in percent, and its CSS class."""
    cells, start = [], 0.0
    for end, name in ends:
        width = max(end - start, 0.01)  # HTML ignores a width of 0
        cells.append(f'<td width="{width:.2f}%" class="{name}"></td>')
        start = end
    return f'<table role="presentation" class="bar {kind}"><tbody><tr>{"".join(cells)}<td></td></tr></tbody></table>'


def _figure(mark: Mark, form: Number) -> str:
    return f"<span><b>{form.write(mark.value)}</b>{_interval(mark, form)} {escaped(mark.beside)}</span>"


def _interval(mark: Mark, form: Number) -> str:
    return f" {form.between(mark.low, mark.high)}" if mark.low is not None and mark.high is not None else ""


def _matrix(picture: Matrix) -> str:
    dense = len(picture.columns) > _DENSE_MATRIX
    kind = "cells" + " dense" * dense + " turned" * any(len(name) >= _LONG for name in picture.columns)
    names = {name: linked(clamped(name), picture.links.get(name, "")) for name in (*picture.rows, *picture.columns)}
    across = "".join(f'<th scope="col"><span>{names[name]}</span></th>' for name in picture.columns)
    rows = ""
    for row in picture.rows:
        attribute, cells = _in_row([picture.cells.get((row, column)) for column in picture.columns], dense=dense)
        rows += f'<tr{attribute}><th scope="row">{names[row]}</th>{cells}</tr>'
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escaped(picture.words)}"><table class="{kind}">'
        f'<thead><tr><th scope="col" class="corner">{escaped(picture.corner)}</th>{across}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _in_row(cells: Sequence[MatrixCell | None], *, dense: bool) -> tuple[str, str]:
    """HTML of one row of a matrix: the row's ``data-cells`` attribute, which may be empty, and its cells.

    A browser is slow with thousands of attributes and links. So in a dense matrix with links, one attribute of the row
    has the addresses and tooltips of all its cells: two lines with the common prefixes, then one line per cell. The
    page's script turns the cell under the pointer into a link.
    """
    known = [cell for cell in cells if cell is not None]
    if not (dense and known and all(safe(cell.link) for cell in known)):
        return "", "".join(_cell(cell, dense=dense) for cell in cells)
    columns = zip(*((cell.link, printable(cell.tooltip)) for cell in known), strict=True)
    link, tooltip = map(commonprefix, columns)
    lines = [
        cell and f"{cell.link.removeprefix(link)} {printable(cell.tooltip).removeprefix(tooltip)}" for cell in cells
    ]
    attribute = escape("\n".join([link, tooltip, *(line or "" for line in lines)]))
    bare = (cell and replace(cell, tooltip="", link="") for cell in cells)
    return f' data-cells="{attribute}"', "".join(_cell(cell, dense=True) for cell in bare)


def _cell(cell: MatrixCell | None, *, dense: bool) -> str:
    if cell is None:
        return "<td></td>"
    shade = round(_SHADES * (cell.strength or 0))
    kinds = [] if cell.strength is None else [f"{'more' if shade > 0 else 'less'}-{abs(shade)}"]
    kind = f' class="{" ".join([*kinds, *["apart"] * cell.bold])}"' if kinds or cell.bold else ""
    title = f' title="{escaped(cell.tooltip)}"' if cell.tooltip else ""
    figure = escaped(cell.figure)
    if dense:
        return f"<td{kind}{title}>{figure}</td>"
    small = f"<small>{escaped(cell.below)}</small>" if cell.below else ""
    return f"<td{kind}{title}>{linked(figure, cell.link)}{small}</td>"


def _aligned(picture: Aligned) -> str:
    legend = "".join(
        f"<span>{_bar(look, [(0, ''), (100, 'in')] if look == 'band' else [(50, 'at')])}{escaped(meaning)}</span>"
        for look, meaning in picture.legend.items()
    )
    tables = "".join(
        f'<div class="scroll{kind}" role="region" tabindex="0" aria-label="{escaped(words)}">{table}</div>'
        for kind, words, table in (
            ("", block.title, _grid(picture, block))
            if isinstance(block, CellPanel)
            else (f" strips-{len(block)}", picture.words, _strips(picture, block))
            for block in picture.blocks
        )
    )
    return (f'<div class="legend">{legend}</div>' if legend else "") + f'<div class="beside">{tables}</div>'


def _strips(picture: Aligned, panels: Sequence[Strip]) -> str:
    scales = [RankScale(panel.ranks, 3 if len(panels) > _WIDE else 7) for panel in panels]
    heads = "".join(f'<th scope="col" class="strip">{_head(panel)}</th>' for panel in panels)
    feet = "".join(f'<td class="strip">{_ticks(scale)}</td>' for scale in scales)
    rows = ""
    for number, row in picture.numbered:
        cells = "".join(_in_strip(panel, row, scale) for panel, scale in zip(panels, scales, strict=True))
        rows += f"<tr>{_row_head(picture, number, row, _ticks(scales[0]))}{cells}</tr>"
    return (
        f'<table class="{_kind(picture, "aligned")}">'
        f'<thead><tr><th scope="col" class="corner">{escaped(picture.corner)}</th>{heads}</tr>'
        f'<tr class="axes" aria-hidden="true"><td class="corner"></td>{feet}</tr></thead><tbody>{rows}</tbody></table>'
    )


def _head(panel: Strip) -> str:
    verdict, bar = "", ""
    if panel.verdict is not None:
        look, word = panel.verdict
        verdict = f'<span class="said {look}">{_sign(look)}{escaped(word)}</span>'
    if total := sum(share.count for share in panel.shares):
        widths = "".join(
            f'<td width="{100 * share.count / total:.2f}%" class="{share.look}{" faint" * share.faint}"></td>'
            for share in panel.shares
            if share.count
        )
        words = ", ".join(f"{share.count} {share.name}" for share in panel.shares)
        bar = (
            f'<div role="img" aria-label="{escaped(words)}" title="{escaped(words)}"><table role="presentation" '
            f'class="shares"><tbody><tr>{widths}</tr></tbody></table></div>'
        )
    notes = "".join(f"<small>{escaped(note)}</small>" for note in panel.notes)
    meaning = f' title="{escaped(panel.meaning)}"' if panel.meaning else ""
    return f"<b{meaning}>{escaped(panel.title)}</b>{verdict}{bar}{notes}"


def _grid(picture: Aligned, panel: CellPanel) -> str:
    numbers = "".join(f'<th scope="col" title="{escaped(name)}">{number}</th>' for number, name in picture.numbered)
    rows, dense = "", len(picture.rows) > _DENSE_MATRIX
    for number, row in picture.numbered:
        attribute, cells = _in_row([panel.cells.get((row, column)) for column in picture.rows], dense=dense)
        rows += f"<tr{attribute}>{_row_head(picture, number, row)}{cells}</tr>"
    return (
        f'<table class="{_kind(picture, "aligned grid")}"><thead><tr><td class="corner"></td>'
        f'<th scope="colgroup" colspan="{len(picture.rows)}">{escaped(panel.title)}</th></tr>'
        f'<tr class="axes"><th scope="col" class="corner">{escaped(picture.corner)}</th>{numbers}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _kind(picture: Aligned, kind: str) -> str:
    return f"cells {kind}" + " dense" * (len(picture.rows) > _DENSE_MATRIX)


def _row_head(picture: Aligned, number: int, row: str, ticks: str = "") -> str:
    """The head of a row; ``ticks`` are the row's axis where it stands alone, as a card on a phone."""
    name = linked(clamped(row), picture.links.get(row, ""))
    axis = f'<span class="axis" aria-hidden="true">{ticks}</span>' if ticks else ""
    head = f'<span class="rank">{number}</span> <span class="who">{name}</span>{axis}'
    return f'<th scope="row" title="{escaped(row)}">{head}</th>'


def _in_strip(panel: Strip, row: str, scale: Scale) -> str:
    label = escaped(panel.title)
    if (mark := panel.marks.get(row)) is None:
        return f'<td class="strip" data-score="{label}"></td>'
    band = "" if mark.band is None else _band(mark.band, scale)
    field = f'<div class="field ticks-{len(scale.ticks) - 1}" aria-hidden="true">{band}{_mark(mark, scale)}</div>'
    title = f' title="{escaped(mark.tooltip)}"' if mark.tooltip else ""
    figures = linked(f"{_sign(mark.look)}{rank_words(mark)}", mark.link)
    return f'<td class="strip" data-score="{label}"{title}><div>{field}<small>{figures}</small></div></td>'


def _band(ends: tuple[float, float], scale: Scale) -> str:
    """A pale bar behind a mark; CSS widens a single rank so that it shows."""
    return _bar("band", [(scale.place(ends[0]), ""), (scale.place(ends[1]), "in" + " one" * (ends[0] == ends[1]))])


def _sign(look: Look) -> str:
    return f"{SIGNS[look]} " if look in SIGNS else ""


def scale_of(figures: Sequence[Estimate], form: NumberForm) -> Scale | None:
    """The axis on which a table column draws differences; ``None`` if no difference has a value."""
    if not isinstance(form, Number) or all(figure.value is None for figure in figures):
        return None
    return Scale(contended(figures), form, _MOST_STEPS_OF_CELL)


def in_cell(figure: Estimate, scale: Scale | None) -> str:
    """Drawing of a difference and its interval for a table cell; empty without a value or an axis.

    A difference whose interval leaves out 0 is grey. What lies beyond the axis is cut, and an arrow marks the cut.
    """
    if figure.value is None or scale is None:
        return ""
    low, value, high = figure.low, figure.value, figure.high
    if low is None or high is None:
        low = high = value
    (left, starts), (at, inside), (right, stops) = (scale.clipped(end) for end in (low, value, high))
    ends = [(left, ""), *([(at, "low at" if left < at else "at")] if inside else []), (right, "high")]
    if right <= at:
        del ends[-1]
    cut = " cut-low" * (not starts) + " cut-high" * (not stops)
    look = "quiet" if high < 0 or low > 0 else "blue"
    zero = _bar("zero", [(scale.place(0), "")])
    return (
        f'<div class="picture drawn"><div class="field ticks-{len(scale.ticks) - 1} {look}{cut}" aria-hidden="true">'
        f"{zero}{_bar(look, ends)}</div></div>"
    )


def axis(scale: Scale) -> str:
    """The axis of a table column's drawings, for its head."""
    return f'<div class="picture drawn">{_ticks(scale)}</div>'


def bands(groups: Sequence[str]) -> list[str]:
    """Drawing of each row's groups, such as ``A`` or ``B-D``, as lines that run through all rows of a group."""
    ends = [group.split("-") for group in groups]
    letters = sorted({end for own in ends for end in own}, key=lambda letter: (len(letter), letter))
    members = [range(letters.index(own[0]), letters.index(own[-1]) + 1) for own in ends]
    lanes = max(map(len, members), default=0)

    def line(row: int, lane: int) -> str:
        group = next((number for number in members[row] if number % lanes == lane), None)
        if group is None:
            return "<i></i>"
        first = row == 0 or group not in members[row - 1]
        last = row + 1 == len(members) or group not in members[row + 1]
        kind = "on" + " lead" * (group == 0) + " first" * first + " last" * last
        return f'<i class="{kind}"></i>'

    return [
        f'<span class="bands">{"".join(line(row, lane) for lane in range(lanes))}<b>{escaped(group)}</b></span>'
        for row, group in enumerate(groups)
    ]


def _ticks(scale: Scale) -> str:
    is_odd = "0" in scale.ticks and scale.ticks.index("0") % 2  # a narrow axis drops every second tick, and never 0
    return f'<div class="ticks{" odd" * is_odd}">{"".join(f"<i>{tick}</i>" for tick in scale.ticks)}</div>'


def linked(markup: str, link: str) -> str:
    """Wrap HTML in a link if the address is ``safe``; otherwise return it unchanged."""
    return f'<a href="{escape(link)}">{markup}</a>' if safe(link) else markup


def clamped(name: str, cell: str = "") -> str:
    """HTML of a name, or ``cell`` in its place; CSS cuts a very long name, and a tooltip has all of it."""
    cell = cell or escaped(name)
    return f'<span class="clamped" title="{escaped(name)}">{cell}</span>' if len(name) > _LONG_NAME else cell


def escaped(text: str) -> str:
    """Escape a text for HTML and make its control characters visible."""
    return escape(printable(text))


def _shades() -> str:
    return "".join(
        f".cells .{side}-{shade} {{ background: color-mix(in srgb, {colour} {5 * shade + 4}%, transparent); }}\n"
        for side, colour in (("more", "var(--blue, #1f86c6)"), ("less", "var(--orange, #e07a1f)"))
        for shade in range(_SHADES + 1)
    )


def _grids() -> str:
    return "".join(
        f":is(.ticks-{n} .field, .field.ticks-{n}) {{ background-size: calc(100% / {n}) 100%; }}\n"
        for n in range(1, 10)
    )


def _widths() -> str:
    """Room that strips side by side want; with less beside them, the next part of the picture goes below."""
    return "".join(f".beside > .strips-{n} {{ flex: 1 1 {12 + 11 * n}rem; }}\n" for n in range(1, 7))


_PARTS: Final = (_grids(), _widths(), _shades())
STYLE: Final = resources.files("arena.present").joinpath("picture.css").read_text("utf-8") + "".join(_PARTS)


def in_notebook(picture: Picture) -> str:
    return f"<style>{STYLE}</style>{html(picture)}"
