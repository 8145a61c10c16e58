"""Writes tables as CSV, Markdown, HTML and LaTeX, blocks as HTML, and pictures as files; escapes all texts."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
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
from arena.present.markup import STYLE, escaped
from arena.present.numbers import counted, encodable, printable
from arena.present.picture import Picture, Whiskers
from arena.present.table import INTERVAL, TERMS, Column, Table, keys, records, shown
from judges.errors import DataError
from retrieval_eval.data.files import open_replacing

_MARKDOWN: Final = re.compile(r"[\\`*_\[\]()!|~$#]|:(?=\S)|(?<=/)/|(?<=\w)\.(?=[^\W\d])")
"""Matches characters to escape with a backslash: CommonMark and GitHub markup, and starts of automatic links."""
_MARKDOWN_START: Final = re.compile(r"^(\d*)([-+=](?!\d)|(?<=\d)\.(?=\s|$))")
"""Matches the start of a paragraph that Markdown would read as a list, a heading or a rule."""
_ALIVE: Final = re.compile(
    r"(?<=@)(?=\w)(?!(?<=[a-z0-9_)]@)\d{1,3}(?!\.?[\w@/-]))"  # a mention or an address, but not the depth of a measure
    r"|(?<=#)(?=\d)|(?<=\bGH-)(?=\d)"  # an issue
    r"|(?<=:)(?=[\w+-]+:)"  # an emoji
    r"|(?<=//)(?=[^\s/?#]*\.)|(?<=\bwww)(?=\.)",  # a web address
    re.IGNORECASE,
)
"""Matches positions in a text where a code host (GitHub) makes links, mentions or emoji despite Markdown escapes."""
_COMMIT: Final = re.compile(r"(?<![a-z0-9_])[0-9a-f]{7,}(?![a-z0-9_])", re.IGNORECASE)
_NO_COMMIT: Final = 6
"""Code hosts do not read this many hexadecimal digits in a row, or fewer, as a commit hash."""
_BREAK: Final = "\u200b"
"""Zero-width space, inserted to break up links, mentions and hashes; ``printable`` escapes those in the input."""
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
"""First characters of a cell that some spreadsheets run as a formula (OWASP, "CSV Injection")."""
_PLOTS: Final = (".svg", ".png", ".html")
_NUMBERS: Final = re.compile(r"-?[\d.,]+( to -?[\d.,]+)?")
"""Matches a number or an interval, which is not a formula even if it begins with a minus."""


def csv_text(table: Table) -> str:
    rows = (record.values() for record in records(table))
    joined = [[" ".join(map(str, cell)) if isinstance(cell, list) else cell for cell in row] for row in rows]
    return written(keys(table), joined, "\n")


def spreadsheet(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """CSV for spreadsheets; texts that a spreadsheet would run as a formula get a leading apostrophe."""
    return written([*map(_formula_safe, headings)], [[_formula_safe(cell) for cell in row] for row in rows], "\r\n")


def written(headings: Sequence[str], rows: Iterable[Sequence[Any]], end: str) -> str:
    out, line = io.StringIO(), io.StringIO()
    writer = csv.writer(line)  # its line end \r\n makes it quote cells that contain either character
    for row in (headings, *rows):
        length = writer.writerow(row) - len(writer.dialect.lineterminator)
        out.write(line.getvalue()[:length] + end)
        line.seek(0)
        line.truncate()
    return out.getvalue()


def markdown(table: Table) -> str:
    table = shown(table)
    lines = [[_guarded(cell, marked) for cell in cells] for cells in _lines(table)]
    lines.insert(1, ["---:" if column.numeric else "---" for column in table.columns])
    notes = "".join(sentence(note, "md") for note in table.notes)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + notes


def _lines(table: Table) -> list[Sequence[str]]:
    """The headings, then the cells of each row."""
    return [[column.heading for column in table.columns], *zip(*table.cells, strict=True)]


def html_block(block: Block) -> str:
    """HTML of a block for reports and pages, which need the style sheet ``arena.present.markup.STYLE``."""
    return _DRAWN.get(type(block), markup.html)(block)


def _verdict(block: VerdictCard) -> str:
    facts = "".join(f"<li>{escaped(fact)}</li>" for fact in block.facts)
    title = f'<p class="about">{escaped(block.title)}</p>' if block.title else ""
    lists = "".join(
        f"<div><h3>{name}</h3><ul>{''.join(f'<li>{escaped(line)}</li>' for line in lines)}</ul></div>"
        for name, lines in (("Why", block.why), ("Next", block.next))
        if lines
    )
    return (
        f'<div class="verdict {block.standing}">{title}<p class="standing">{escaped(block.label)}</p>'
        f'<h2>{escaped(block.headline)}</h2><p class="sentence">{escaped(block.sentence)}</p>'
        f'{f"<div class=reasons>{lists}</div>" if lists else ""}<ul class="facts">{facts}</ul></div>'
    )


def _thread(block: Thread) -> str:
    texts = ["\n".join(map(escaped, message.text.splitlines())) for message in block.messages]
    messages = [f"<dt>{message.role}</dt><dd>{text}</dd>" for message, text in zip(block.messages, texts, strict=True)]
    if not messages:
        return ""
    folded = max(0, len(messages) - block.open)
    last = f'<dl class="last">{"".join(messages[folded:])}</dl>' if block.open else ""
    name = escaped(f"{block.title}: {counted(folded, 'message')}")
    fold = f"<summary>{name}</summary><dl>{''.join(messages[:folded])}</dl>"
    return (f'<details class="thread">{fold}</details>' if folded else "") + (
        last and f'<div class="thread" tabindex="0">{last}</div>'
    )


def _figure(figure: Figure) -> str:
    interval = f'<dd class="interval">95% interval: {escaped(figure.interval)}</dd>' if figure.interval else ""
    value, meaning = escaped(figure.written), escaped(figure.meaning)
    return f'<div><dt>{escaped(figure.name)}</dt><dd class="value">{value}</dd>{interval}<dd>{meaning}</dd></div>'


def _list_of_checks(checks: Sequence[Check], *, brief: bool = False) -> str:
    return f'<ul class="checks{" brief" * brief}">{"".join(_check(check, brief=brief) for check in checks)}</ul>'


def _check(check: Check, *, brief: bool = False) -> str:
    sign, status = _STATUSES[check.status]
    name, finding = f"<b>{escaped(check.name)}</b>", escaped(check.finding)
    remedy = "" if check.status == "passed" else f"<p><b>What to do:</b> {escaped(check.remedy)}</p>"
    texts = f"<p>{name}: {finding}</p>" if brief else f"<p>{name}</p><p>{finding}</p>{remedy}"
    return f'<li class="{check.status}"><b><span aria-hidden="true">{sign}</span> {status}</b><div>{texts}</div></li>'


def _strip(block: Checks) -> str:
    """HTML of checks in one line: names of failed checks, and counts of the others; a click shows their details."""
    failed = [check for check in block.items if check.status == "failed"]
    parts = [_folded(f"Failed: {check.name[0].lower()}{check.name[1:]}", [check], block.link) for check in failed]
    for status in ("unknown", "passed"):
        if checks := [check for check in block.items if check.status == status]:
            parts.append(_folded(f"{len(checks)} {_STATUSES[status][1].lower()}", checks, block.link))
    link_to_all = markup.linked("All checks", block.link) if block.link else ""
    return f'<div class="trust" role="group" aria-label="Trust checks">{"".join(parts)}{link_to_all}</div>'


def _folded(name: str, checks: Sequence[Check], link: str) -> str:
    status = checks[0].status
    sign = f'<span aria-hidden="true">{_STATUSES[status][0]}</span> {escaped(name)}'
    if link.startswith("#"):
        return f'<a class="{status}" href="{escaped(link)}">{sign}</a>'
    return f'<details class="{status}"><summary>{sign}</summary>{_list_of_checks(checks)}</details>'


def html_table(table: Table, *, sortable: bool = False, meanings: bool = True) -> str:
    table = shown(table)
    columns, entries = table.columns, table.rows
    kinds = ["" if place == 0 or not column.numeric else ' class="number"' for place, column in enumerate(columns)]
    button = "<button type=button>{}</button>" if sortable else "{}"
    titles = [f' title="{escaped(column.explained)}"' if column.explained else "" for column in columns]
    figures = [column.estimates(entries) if column.drawn == "whiskers" else [] for column in columns]
    scales = [markup.scale_of(drawn, column.form) for drawn, column in zip(figures, columns, strict=True)]
    is_drawn = any(scales)
    named = '<span class="who">{}</span>' if is_drawn else "{}"
    plots = [f'<td class="plot" aria-hidden="true">{markup.axis(scale)}</td>' if scale else "" for scale in scales]
    head = "".join(
        f'{plot}<th scope="col"{kind}{title}>{button.format(escaped(column.heading))}</th>'
        for plot, kind, title, column in zip(plots, kinds, titles, columns, strict=True)
    )
    labels = [f' data-label="{escaped(column.heading)}"' * is_drawn for column in columns]
    cells = [_cells(column, texts, entries) for column, texts in zip(columns, table.cells, strict=True)]
    values = [_values(column, entries) if sortable else [""] * len(entries) for column in columns]
    drawings = [
        [f'<td class="plot">{markup.in_cell(figure, scale)}</td>' if scale else "" for figure in drawn]
        or [""] * len(entries)
        for drawn, scale in zip(figures, scales, strict=True)
    ]
    further = (
        [f"{plot}<td{kind}{label}{value}>{cell}</td>" for plot, value, cell in zip(*column, strict=True)]
        for kind, label, *column in list(zip(kinds, labels, drawings, values, cells, strict=True))[1:]
    )
    rows = "".join(
        f'<tr><th scope="row">{named.format(name)}</th>{"".join(row)}</tr>\n'
        for name, *row in zip(_names(table), *further, strict=True)
    )
    title = escaped(table.title)
    caption = f"<caption>{title}</caption>\n" if title else ""
    notes = "".join(f'<p class="note">{escaped(note)}</p>\n' for note in table.notes)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{title or escaped(table.name)}">\n<table>\n'
        f"{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n{notes}"
        f"{_meanings(columns) if meanings else ''}"
    )


_DRAWN: Final[Mapping[type, Callable[[Any], str]]] = {
    Table: html_table,
    Figures: lambda block: f'<dl class="figures">{"".join(map(_figure, block.items))}</dl>',
    Checks: lambda block: _strip(block) if block.folded else _list_of_checks(block.items, brief=block.brief),
    VerdictCard: _verdict,
    Remarks: lambda block: f'<ul class="remarks">{"".join(f"<li>{escaped(one)}</li>" for one in block.items)}</ul>',
    Commands: lambda block: f"<pre>{chr(10).join(map(escaped, block.lines))}</pre>",
    Thread: _thread,
}
"""Functions that render blocks as HTML, by type of block; for pictures, see ``markup.html``."""


def _meanings(columns: Sequence[Column]) -> str:
    if not any(column.explained for column in columns[1:]):
        return ""
    terms = {column.heading: column.explained for column in columns if column.explained}
    meanings = "".join(f"<dt>{escaped(heading)}</dt><dd>{escaped(meaning)}</dd>" for heading, meaning in terms.items())
    return f'<details class="meanings"><summary>Column meanings</summary><dl>{meanings}</dl></details>\n'


def latex(table: Table) -> str:
    table = shown(table)
    head, *rows = (" & ".join(_guarded(cell, _typeset) for cell in cells) + r" \\" for cells in _lines(table))
    rows = ["{}" * row.startswith(("[", "*")) + row for row in rows]  # after \\ these would start an option
    sides = "".join("r" if column.numeric else "l" for column in table.columns)
    return "\n".join(
        [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}", ""]
    )


def document(sections: Iterable[Section], form: str) -> str:
    """The sections' tables, checks and remarks as text to paste into a page; ``form`` is ``md`` or ``html``."""
    parts = []
    for block in (block for section in sections for block in section.blocks):
        if isinstance(block, Remarks | VerdictCard):
            lines = block.items if isinstance(block, Remarks) else block.lines
            parts += [sentence(line, form) for line in lines]
        elif isinstance(block, Checks):
            parts += [sentence(check.sentence, form) for check in block.items]
        elif isinstance(block, Table) and block.rows:
            title = f"\n**{_guarded(block.title, marked)}**\n\n" if block.title else "\n"
            parts.append(title + markdown(block) if form == "md" else html_table(block))
    return "".join(parts).lstrip("\n")


def fragment(blocks: Iterable[Block]) -> str:
    """Blocks as HTML with their style sheet, to embed in another page such as a notebook."""
    return f'<div class="ragleague"><style>{markup.STYLE}</style>{"".join(map(html_block, blocks))}</div>'


def sentence(text: str, form: str) -> str:
    if form == "html":
        return f"<p>{escaped(text)}</p>\n"
    if form == "md":
        words = _guarded(text, marked).lstrip(" ")
        return "\n" + _MARKDOWN_START.sub(r"\1\\\2", words) + "\n"
    return f"\n{_guarded(text, _typeset)}\n"


def save_plot(path: Path, pictures: Sequence[Picture], title: str) -> None:
    """Write pictures to a ``.svg``, ``.png`` or ``.html`` file."""
    pictures = [picture for picture in pictures if not isinstance(picture, Whiskers) or picture.lines]
    kind = path.suffix.lower()
    if kind not in _PLOTS:
        raise DataError(path, f"the name of a plot must end in {', '.join(_PLOTS[:-1])} or {_PLOTS[-1]}")
    if not pictures:
        raise DataError(path, "there is nothing to plot: none of the results has a value yet")
    from arena.present import charts

    if kind == ".png":
        content = charts.png(*pictures)
    else:
        content = (charts.svg(*pictures) if kind == ".svg" else _page(pictures, title)).encode()
    with open_replacing(path) as file:
        file.write(content)


def _page(pictures: Sequence[Picture], title: str) -> str:
    head = f'<meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>{escaped(title)}</title>'
    body, style = "\n".join(map(markup.html, pictures)), f"body {{ font: 16px/1.5 sans-serif; }}{markup.STYLE}"
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}<style>{style}</style></head><body>\n{body}\n</body></html>\n'


def _formula_safe(cell: Any) -> Any:
    if isinstance(cell, str) and cell.lstrip(" ").startswith(_FORMULA) and not _NUMBERS.fullmatch(cell):
        return f"'{cell}"
    return cell


def _guarded(cell: str, guard: Callable[[str], str]) -> str:
    return guard(printable(cell))


def marked(text: str) -> str:
    """Escape a text for Markdown, so that GitHub renders no markup, link, mention, reference or emoji in it."""
    text = _COMMIT.sub(_broken, _ALIVE.sub(_BREAK, text))
    return _MARKDOWN.sub(r"\\\g<0>", html.escape(text, quote=False)).replace(_BREAK, "&#8203;")


def _broken(digits: re.Match[str]) -> str:
    return _BREAK.join(digits[0][start : start + _NO_COMMIT] for start in range(0, len(digits[0]), _NO_COMMIT))


def _typeset(cell: str) -> str:
    return "".join(_LATEX.get(character, character) for character in cell)


def _names(table: Table) -> Iterator[str]:
    for column, texts in zip(table.columns[:1], table.cells[:1], strict=True):
        for row, text in zip(table.rows, texts, strict=True):
            cell = _cell(column, row, text)
            yield cell if column.link else markup.clamped(text, cell)


def _cells(column: Column, texts: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    if column.drawn == "bands":
        return markup.bands(texts)
    return [_cell(column, row, text) for row, text in zip(rows, texts, strict=True)]


def _cell(column: Column, row: Mapping[str, Any], text: str) -> str:
    cell = "<br>".join(map(escaped, text.replace("\r\n", "\n").split("\n")))
    return markup.linked(markup.clamped(text, cell), str(row.get(column.link, ""))) if column.link else cell


def _values(column: Column, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    numbers = column.numbers(rows) or [None] * len(rows)
    return ["" if value is None else f' data-value="{value:g}"' for value in numbers]


CaseKind: TypeAlias = Literal["", "failure", "error"]


class Case(Struct, frozen=True):
    """A test case of a JUnit file; ``kind`` is empty if the test passed."""

    name: str
    message: str
    text: str
    kind: CaseKind = ""


def junit(suite: str, cases: Sequence[Case]) -> str:
    counts = {f"{kind}s": str(sum(case.kind == kind for case in cases)) for kind in ("failure", "error")}
    root = ElementTree.Element("testsuite", {"name": suite, "tests": str(len(cases)), **counts})
    for case in cases:
        element = ElementTree.SubElement(root, "testcase", classname=_plain(suite), name=_plain(case.name))
        if case.kind:
            ElementTree.SubElement(element, case.kind, message=_plain(case.message)).text = _plain(case.text)
        else:
            ElementTree.SubElement(element, "system-out").text = _plain(case.text)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _plain(text: str) -> str:
    return "".join(character if character == "\n" or character.isprintable() else "�" for character in encodable(text))


MARK: Final = "<!doctype html>\n<!-- ragleague report -->\n"
"""First lines of every report file; commands that write reports overwrite an existing file only if it has them."""


class Report(Struct, frozen=True):
    """Contents of a report page.

    Attributes:
        opening: blocks at the top of the page, beginning with the verdict card.
        made: text with the time at which the report was written and the version of ragleague.
        style: address of the style sheet; if empty, the page contains the style sheet.
        appendix: sections that the page folds below the others, with a table of contents and one list of terms. Printed
            only if the reader has unfolded them.
    """

    name: str
    opening: Sequence[Block]
    sections: Sequence[Section]
    made: str
    pages: Sequence[tuple[str, str]] = ()
    style: str = ""
    appendix: Sequence[Section] = ()

    @property
    def title(self) -> str:
        """Title of the HTML page: the report's name and the headline of its verdict card."""
        return ": ".join([self.name, *(block.headline for block in self.opening if isinstance(block, VerdictCard))])

    @property
    def key(self) -> Mapping[tuple[str, str], str]:
        """Headings and meanings of the columns of the opening's tables, if an appendix explains those of all others."""
        return dict.fromkeys(_terms(self.opening), "") if self.appendix else {}

    @property
    def terms(self) -> Mapping[tuple[str, str], str]:
        """Section by heading and meaning of a column, each once, by heading; without a section if it is a common term.

        Terms that the opening's key explains are left out.
        """
        sections = reversed([*self.sections, *self.appendix] if self.appendix else [])
        terms = {term: section.title for section in sections for term in _terms(section.blocks)}
        kept = {term: "" if term in TERMS.items() else where for term, where in terms.items() if term not in self.key}
        return dict(sorted(kept.items(), key=lambda entry: entry[0][0].casefold()))

    def drawn(self, block: Block) -> Markup:
        html_text = (
            html_table(block, meanings=False) if isinstance(block, Table) and self.appendix else html_block(block)
        )
        return Markup(html_text)  # noqa: S704 - its texts are escaped


def _terms(blocks: Sequence[Block]) -> Iterator[tuple[str, str]]:
    for column in (column for block in blocks if isinstance(block, Table) for column in shown(block).columns):
        if column.explained:
            yield column.heading, column.explained
        if column.drawn == "whiskers":
            yield INTERVAL, TERMS[INTERVAL]


def style_sheet() -> str:
    return resources.files("arena.present").joinpath("report.css").read_text(encoding="utf-8") + STYLE


def render(report: Report) -> str:
    """The report as an HTML page.

    Its content security policy forbids scripts, images, frames, fonts, forms and connections. It allows one style
    sheet: the embedded one by its hash, or one from the same origin.
    """
    style = "" if report.style else style_sheet()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return MARK + _environment().get_template("report.html").render(
        report=report,
        style=Markup(style),  # noqa: S704 - our own file
        style_source="'self'" if report.style else f"'sha256-{digest}'",
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("arena.present", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )


def _visible(value: Any) -> Any:
    """Escape control and direction characters in a template's value, if it is a string but not ``Markup``."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
