"""Tables as CSV, Markdown, HTML and LaTeX, blocks as HTML, pictures as files. Texts from outside stay inert."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast
from xml.etree import ElementTree

from msgspec import Struct

from arena.present import markup
from arena.present.blocks import (
    Block,
    Check,
    Checks,
    Commands,
    Figure,
    Figures,
    Remarks,
    Section,
    Status,
    Thread,
    VerdictCard,
)
from arena.present.numbers import counted, encodable, printable
from arena.present.picture import Picture, Whiskers
from arena.present.table import ShownColumn, Table, keys, records, shown
from judges.errors import DataError
from retrieval_eval.data.files import open_replacing

_MARKDOWN: Final = re.compile(r"[\\`*_\[\]()!|~$#]|:(?=\S)|(?<=/)/|(?<=\w)\.(?=[^\W\d])")
"""What takes a backslash: marks of CommonMark and GitHub, and what makes an address of words."""
_MARKDOWN_START: Final = re.compile(r"^(\d*)([-+=](?!\d)|(?<=\d)\.(?=\s|$))")
"""What else begins a list, a heading or a line across at the beginning of a paragraph."""
_ALIVE: Final = re.compile(
    r"(?<=@)(?=\w)(?!(?<=[a-z0-9_)]@)\d{1,3}(?!\.?[\w@/-]))"  # a person or an address, but not the depth of a measure
    r"|(?<=#)(?=\d)|(?<=\bGH-)(?=\d)"  # an issue
    r"|(?<=:)(?=[\w+-]+:)"  # an emoji
    r"|(?<=//)(?=[^\s/?#]*\.)|(?<=\bwww)(?=\.)",  # a place
    re.IGNORECASE,
)
"""Where a hosting service takes the text of a rendered page for more; no markup keeps it from that."""
_COMMIT: Final = re.compile(r"(?<![a-z0-9_])[0-9a-f]{7,}(?![a-z0-9_])", re.IGNORECASE)
_NO_COMMIT: Final = 6
"""Hexadecimal digits in a row that name no commit."""
_BREAK: Final = "\u200b"
"""Zero width. ``printable`` leaves none in a text."""
_LATEX: Final[Mapping[str, str]] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_STATUSES: Final[Mapping[Status, tuple[str, str]]] = {
    "passed": ("✓", "Passed"),
    "failed": ("✗", "Failed"),
    "unknown": ("?", "Not known"),
}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a cell begins that some spreadsheet takes for a formula (OWASP, "CSV Injection")."""
_PLOTS: Final = (".svg", ".png", ".html")
_NUMBERS: Final = re.compile(r"-?[\d.,]+( to -?[\d.,]+)?")
"""A number or an interval, which may begin with a minus."""


def csv_text(table: Table) -> str:
    """The records as CSV; texts are written as they are, since programs read them back."""
    return written(keys(table), [[_joined(value) for value in record.values()] for record in records(table)], "\n")


def spreadsheet(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """CSV to be opened by hand: texts that a spreadsheet would run as a formula begin with an apostrophe."""
    return written([*map(_inert, headings)], [[_inert(cell) for cell in row] for row in rows], "\r\n")


def written(headings: Sequence[str], rows: Iterable[Sequence[Any]], end: str) -> str:
    """Headings and rows as CSV whose lines end so."""
    out, line = io.StringIO(), io.StringIO()
    writer = csv.writer(line)  # whose line ends have either character, so that a cell with one of them is quoted
    for row in (headings, *rows):
        length = writer.writerow(row) - len(writer.dialect.lineterminator)
        out.write(line.getvalue()[:length] + end)
        line.seek(0)
        line.truncate()
    return out.getvalue()


def markdown(table: Table) -> str:
    """The table for people, its notes below it."""
    columns = [(one.numeric, [one.heading, *one.cells]) for one in shown(table)]
    lines = [[_guarded(cells[at], _marked) for _, cells in columns] for at in range(len(table.rows) + 1)]
    lines.insert(1, ["---:" if numeric else "---" for numeric, _ in columns])
    said = "".join(sentence(note, "md") for note in table.notes)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + said


def html_block(block: Block) -> str:
    """A block as HTML, for the report and the pages, to be shown with ``arena.present.markup.STYLE``."""
    for kind, draw in _DRAWN:
        if isinstance(block, kind):
            return draw(block)
    return markup.html(cast(Picture, block))


def _figures(block: Figures) -> str:
    return f'<dl class="figures">{"".join(map(_figure, block.items))}</dl>'


def _checks(block: Checks) -> str:
    return _strip(block) if block.folded else f'<ul class="checks">{"".join(map(_check, block.items))}</ul>'


def _verdict(block: VerdictCard) -> str:
    facts = "".join(f"<li>{_escaped(fact)}</li>" for fact in block.facts)
    return (
        f'<div class="verdict {block.standing}"><p class="standing">{_escaped(block.label)}</p>'
        f'<h2>{_escaped(block.headline)}</h2><p class="sentence">{_escaped(block.sentence)}</p>'
        f'<ul class="facts">{facts}</ul></div>'
    )


def _remarks(block: Remarks) -> str:
    return f'<ul class="remarks">{"".join(f"<li>{_escaped(said)}</li>" for said in block.items)}</ul>'


def _commands(block: Commands) -> str:
    return "<pre>{}</pre>".format("\n".join(map(_escaped, block.lines)))


def _thread(block: Thread) -> str:
    """Plain text, as all that comes from outside; nothing where nothing was said."""
    texts = ["\n".join(map(_escaped, each.text.splitlines())) for each in block.messages]
    said = "".join(f"<dt>{each.role}</dt><dd>{text}</dd>" for each, text in zip(block.messages, texts, strict=True))
    name = f"{block.title}: {counted(len(block.messages), 'message')}"
    return f'<details class="thread"><summary>{_escaped(name)}</summary><dl>{said}</dl></details>' if said else ""


def _figure(figure: Figure) -> str:
    interval = f'<dd class="interval">95% interval: {_escaped(figure.interval)}</dd>' if figure.interval else ""
    value, meaning = _escaped(figure.written), _escaped(figure.meaning)
    return f'<div><dt>{_escaped(figure.name)}</dt><dd class="value">{value}</dd>{interval}<dd>{meaning}</dd></div>'


def _check(check: Check) -> str:
    sign, status = _STATUSES[check.status]
    remedy = "" if check.status == "passed" else f"<p><b>What to do:</b> {_escaped(check.remedy)}</p>"
    said = f"<p><b>{_escaped(check.name)}</b></p><p>{_escaped(check.finding)}</p>{remedy}"
    return f'<li class="{check.status}"><b><span aria-hidden="true">{sign}</span> {status}</b><div>{said}</div></li>'


def _strip(block: Checks) -> str:
    """Checks that failed by name, the others counted; each part opens, or leads to where they are on the same page."""
    parts = [_folded(check.name, [check], block.link) for check in block.items if check.status == "failed"]
    for status in ("unknown", "passed"):
        if own := [check for check in block.items if check.status == status]:
            parts.append(_folded(f"{len(own)} {_STATUSES[status][1].lower()}", own, block.link))
    more = markup.linked("All checks", block.link) if block.link else ""
    return f'<div class="trust" role="group" aria-label="Trust checks">{"".join(parts)}{more}</div>'


def _folded(name: str, checks: Sequence[Check], link: str) -> str:
    status = checks[0].status
    sign = f'<span aria-hidden="true">{_STATUSES[status][0]}</span> {_escaped(name)}'
    if link.startswith("#"):
        return f'<a class="{status}" href="{_escaped(link)}">{sign}</a>'
    inside = f'<ul class="checks">{"".join(map(_check, checks))}</ul>'
    return f'<details class="{status}"><summary>{sign}</summary>{inside}</details>'


def html_table(table: Table, *, sortable: bool = False) -> str:
    """The table for people, its notes and what its columns mean below it; it can be scrolled by keyboard.

    Args:
        table: at least one row.
        sortable: the headings are buttons and the numbers have their values, for a page whose script sorts.
    """
    columns = shown(table)
    kinds = ["" if place == 0 or not one.numeric else ' class="number"' for place, one in enumerate(columns)]
    button = "<button type=button>{}</button>" if sortable else "{}"
    head = "".join(
        f'<th scope="col"{kind}{_titled(one.meaning)}>{button.format(_escaped(one.heading))}</th>'
        for kind, one in zip(kinds, columns, strict=True)
    )
    scales = [markup.scale_of(one.drawn, one.form) for one in columns]
    rows = "".join(
        f'<tr><th scope="row">{_name(columns[0], at)}</th>'
        + "".join(
            f"<td{kind}{_value(one, at) if sortable else ''}>{_cell(one, at, scale)}</td>"
            for kind, one, scale in zip(kinds[1:], columns[1:], scales[1:], strict=True)
        )
        + "</tr>\n"
        for at in range(len(table.rows))
    )
    axes = "".join(f"<td>{markup.below_cells(scale)}</td>" for scale in scales) if any(scales) else ""
    foot = f'<tfoot aria-hidden="true"><tr class="axis">{axes}</tr></tfoot>\n' if axes else ""
    title = _escaped(table.title)
    caption = f"<caption>{title}</caption>\n" if title else ""
    notes = "".join(f'<p class="note">{_escaped(note)}</p>\n' for note in table.notes)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{title or _escaped(table.name)}">\n<table>\n'
        f"{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n{foot}</table>\n</div>\n{notes}"
        f"{_meanings(columns)}"
    )


_DRAWN: Final[Sequence[tuple[type, Callable[[Any], str]]]] = (
    (Table, html_table),
    (Figures, _figures),
    (Checks, _checks),
    (VerdictCard, _verdict),
    (Remarks, _remarks),
    (Commands, _commands),
    (Thread, _thread),
)
"""What draws each kind of block but pictures."""


def _meanings(columns: Sequence[ShownColumn]) -> str:
    """What the columns mean, for those who have no pointer to rest on a heading; not where only the first has one."""
    if not any(one.meaning for one in columns[1:]):
        return ""
    terms = {one.heading: one.meaning for one in columns if one.meaning}
    told = "".join(f"<dt>{_escaped(heading)}</dt><dd>{_escaped(meaning)}</dd>" for heading, meaning in terms.items())
    return f'<details class="meanings"><summary>Column meanings</summary><dl>{told}</dl></details>\n'


def latex(table: Table) -> str:
    """The table for people as a ``tabular`` of the package booktabs."""
    columns = [(one.numeric, [one.heading, *one.cells]) for one in shown(table)]
    head, *rows = (
        " & ".join(_guarded(cells[at], _typeset) for _, cells in columns) + r" \\" for at in range(len(table.rows) + 1)
    )
    rows = ["{}" * row.startswith(("[", "*")) + row for row in rows]  # behind \\ they would be an option of it
    sides = "".join("r" if numeric else "l" for numeric, _ in columns)
    return "\n".join(
        [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}", ""]
    )


def document(sections: Iterable[Section], form: str) -> str:
    """The tables, checks and remarks of sections, to be pasted into a page; ``form`` is ``md`` or ``html``."""
    found = []
    for block in (block for section in sections for block in section.blocks):
        if isinstance(block, Remarks):
            found += [sentence(said, form) for said in block.items]
        elif isinstance(block, Checks):
            found += [sentence(check.sentence, form) for check in block.items]
        elif isinstance(block, Table) and block.rows:
            title = f"\n**{_guarded(block.title, _marked)}**\n\n" if block.title else "\n"
            found.append(title + markdown(block) if form == "md" else html_table(block))
    return "".join(found).lstrip("\n")


def fragment(blocks: Iterable[Block]) -> str:
    """Blocks to be shown in somebody else's page, such as a notebook, with the style they need."""
    return f'<div class="ragleague"><style>{markup.STYLE}</style>{"".join(map(html_block, blocks))}</div>'


def sentence(said: str, form: str) -> str:
    """A sentence below a table in the same form: ``md``, ``html`` or ``latex``."""
    if form == "html":
        return f"<p>{_escaped(said)}</p>\n"
    if form == "md":
        words = _guarded(said, _marked).lstrip(" ")
        return "\n" + _MARKDOWN_START.sub(r"\1\\\2", words) + "\n"
    return f"\n{_guarded(said, _typeset)}\n"


def save_plot(path: Path, pictures: Sequence[Picture], title: str) -> None:
    """Write pictures to a ``.svg``, ``.png`` or ``.html`` file.

    Raises:
        DataError: the name ends otherwise, nothing can be drawn, or the file cannot be written.
    """
    pictures = [one for one in pictures if not isinstance(one, Whiskers) or one.lines]
    kind = path.suffix.lower()
    if kind not in _PLOTS:
        raise DataError(path, f"a plot is written as {', '.join(_PLOTS[:-1])} or {_PLOTS[-1]}")
    if not pictures:
        raise DataError(path, "there is nothing to plot")
    from arena.present import charts

    if kind == ".png":
        drawn = charts.png(*pictures)
    else:
        drawn = (charts.svg(*pictures) if kind == ".svg" else _page(pictures, title)).encode()
    with open_replacing(path) as raw:
        raw.write(drawn)


def _page(pictures: Sequence[Picture], title: str) -> str:
    head = f'<meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>{_escaped(title)}</title>'
    body, style = "\n".join(map(markup.html, pictures)), f"body {{ font: 16px/1.5 sans-serif; }}{markup.STYLE}"
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}<style>{style}</style></head><body>\n{body}\n</body></html>\n'


def _joined(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _inert(cell: Any) -> Any:
    if isinstance(cell, str) and cell.lstrip(" ").startswith(_FORMULA) and not _NUMBERS.fullmatch(cell):
        return f"'{cell}"
    return cell


def _guarded(cell: str, guard: Callable[[str], str]) -> str:
    return guard(printable(cell))


def _marked(text: str) -> str:
    """A text from outside in Markdown: no markup, link, mention, reference or emoji, also as GitHub shows it."""
    text = _COMMIT.sub(_broken, _ALIVE.sub(_BREAK, text))
    return _MARKDOWN.sub(r"\\\g<0>", html.escape(text, quote=False)).replace(_BREAK, "&#8203;")


def _broken(digits: re.Match[str]) -> str:
    return _BREAK.join(digits[0][start : start + _NO_COMMIT] for start in range(0, len(digits[0]), _NO_COMMIT))


def _typeset(cell: str) -> str:
    return "".join(_LATEX.get(character, character) for character in cell)


def _escaped(text: str) -> str:
    return html.escape(printable(text))


def _cut(name: str, cell: str) -> str:
    """A cell that is cut after a few lines where it holds a long name, which is whole where the pointer rests."""
    return f'<span class="clamped" title="{_escaped(name)}">{cell}</span>' if len(name) > markup.LONG else cell


def _name(column: ShownColumn, row: int) -> str:
    cell = _cell(column, row, None)
    return cell if column.links else _cut(column.cells[row], cell)


def _cell(column: ShownColumn, row: int, scale: markup.Scale | None) -> str:
    cell = "<br>".join(map(_escaped, column.cells[row].replace("\r\n", "\n").split("\n")))
    if column.links:
        cell = markup.linked(_cut(column.cells[row], cell), column.links[row])
    return f"{markup.in_cell(column.drawn[row], scale)}{cell}" if column.drawn else cell


def _value(column: ShownColumn, row: int) -> str:
    value = column.values[row] if column.values else None
    return "" if value is None else f' data-value="{value:g}"'


def _titled(meaning: str) -> str:
    return f' title="{_escaped(meaning)}"' if meaning else ""


CaseKind: TypeAlias = Literal["", "failure", "error"]


class Case(Struct, frozen=True):
    """A test case.

    Attributes:
        name, message, text: what was tested, what came of it in a few words, and in full.
        kind: empty where it passed.
    """

    name: str
    message: str
    text: str
    kind: CaseKind = ""


def junit(suite: str, cases: Sequence[Case]) -> str:
    """A test suite as a file."""
    counts = {f"{kind}s": str(sum(case.kind == kind for case in cases)) for kind in ("failure", "error")}
    root = ElementTree.Element("testsuite", {"name": suite, "tests": str(len(cases)), **counts})
    for case in cases:
        own = ElementTree.SubElement(root, "testcase", classname=_plain(suite), name=_plain(case.name))
        if case.kind:
            ElementTree.SubElement(own, case.kind, message=_plain(case.message)).text = _plain(case.text)
        else:
            ElementTree.SubElement(own, "system-out").text = _plain(case.text)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _plain(text: str) -> str:
    return "".join(one if one == "\n" or one.isprintable() else "�" for one in encodable(text))
