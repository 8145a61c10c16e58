"""Reads the figures out of what the product writes, whoever wrote it: pages, reports, terminal, CSV and JSON."""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import unescape
from itertools import combinations, pairwise, takewhile
from typing import Any, NamedTuple

from lxml import html

from arena.boards.quantities import QUANTITIES, quantity
from arena.present.blocks import Figures, Section
from arena.present.files import html_block
from arena.present.picture import Aligned
from arena.present.table import Table

_NUMBER = r"[+-]?\$?[\d,]*\.?\d+(?:e-?\d+)?"
_TO = re.compile(rf"({_NUMBER}) to ({_NUMBER})(%?)")
_ONE = re.compile(rf"({_NUMBER})(%?)")
_PLACE = re.compile(r"\d+ \((.*)\)")
"""A place with its score in brackets."""
_DRAWN = re.compile(rf"({_NUMBER}%?) \(({_NUMBER} to {_NUMBER}%?)\)")
"""A figure with its interval in brackets."""
_MOST_WORDS = 2
_FEWEST = 4
"""Fewer figures that are alike in two columns may be chance."""
_INTERVALS = ("95% interval", "Interval")


OF_JUDGES = {
    *("Kendall's tau", "Spearman's rho", "Kappa", "Same label", "Agrees with a vote", "Two people agree"),
    *("Judge minus two people", "Bias", "Alpha", "Orders agree", "First shown wins"),
}
"""Figures of judges, people and orders."""


class Reading(NamedTuple):
    """A figure as one output has it.

    Attributes:
        where: the output, and the table or picture in it.
        name: heading or key that the output gives to the figure.
        of: whose it is: an agent, two ways of scoring, a judge and what it judged.
        value: what is written; for programs all its digits.
        interval: what is written of its interval; empty without one.
    """

    where: str
    name: str
    of: str
    value: str
    interval: str = ""

    @property
    def unit(self) -> str:
        return "%" if self.value.endswith("%") else ""

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """What the figure and the ends of its interval may be before rounding."""
        ends = _TO.fullmatch(self.interval)
        texts = [self.value, *([f"{ends[1]}{ends[3]}", f"{ends[2]}{ends[3]}"] if ends else [])]
        return [_rounded(text) for text in texts]


class Fault(NamedTuple):
    kind: str
    first: Reading
    second: Reading


def faults(readings: Iterable[Reading], known: Iterable[Reading]) -> list[Fault]:
    """What is said of one thing in two ways: two figures, intervals, or units under one name, or two names.

    ``known`` has every figure of the agents by its right name, with all digits.
    """
    readings, known = [*readings], [*known]
    found = []
    by_name: defaultdict[tuple[str, str], list[Reading]] = defaultdict(list)
    for reading in (*known, *readings):
        by_name[reading.name, reading.of].append(reading)
    names = {reading.name for reading in known} | OF_JUDGES
    for (name, _), alike in by_name.items():
        if name not in names:
            continue
        for first, second in combinations(alike, 2):
            if not _close(first.ranges[:1], second.ranges[:1]):
                found.append(Fault("two figures", first, second))
            elif first.interval and second.interval and not _close(first.ranges, second.ranges):
                found.append(Fault("two intervals", first, second))
        of_people = [reading for reading in alike if reading.where not in ("known", "json", "csv")]
        for first, second in pairwise(of_people):
            if first.unit != second.unit:
                found.append(Fault("two units", first, second))
    return found + _other_names(readings, known)


def _other_names(readings: Sequence[Reading], known: Sequence[Reading]) -> Iterator[Fault] | list[Fault]:
    """Columns that hold a figure of every agent and are headed by another name."""
    right: defaultdict[str, dict[str, Reading]] = defaultdict(dict)
    for reading in known:
        right[reading.name][reading.of] = reading
    columns: defaultdict[tuple[str, str], dict[str, Reading]] = defaultdict(dict)
    for reading in readings:
        columns[reading.where, reading.name][reading.of] = reading
    found = []
    for (where, name), column in columns.items():
        if name in right:
            continue
        for title, figures in right.items():
            common = [of for of in column if of in figures]
            different = {column[of].value for of in common}
            if len(common) < _FEWEST or len(common) < len(column) or len(different) < _FEWEST:
                continue
            named = title.casefold() in f"{where} {name}".casefold()
            if not named and all(_close(column[of].ranges[:1], figures[of].ranges[:1]) for of in common):
                of = common[0]
                found.append(Fault("two names", figures[of], column[of]))
    return found


def _rounded(text: str) -> tuple[float, float]:
    match = _ONE.fullmatch(text.strip())
    if match is None:
        return (float("nan"), float("nan"))
    digits = match[1].replace(",", "").replace("$", "")
    decimals = len(digits.partition(".")[2])
    factor = 0.01 if match[2] else 1.0
    half = 0.5000001 * factor * 10.0 ** -(decimals if "e" not in digits else 9)
    value = factor * float(digits)
    return value - half, value + half


def _close(first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]]) -> bool:
    return all(low <= top and bottom <= high for (low, high), (bottom, top) in zip(first, second, strict=False))


def of_html(where: str, markup: str) -> Iterator[Reading]:
    """Figures in tables and aligned pictures of a page."""
    if not markup.strip():
        return
    for table in html.fromstring(f"<div>{markup}</div>").iter("table"):
        if "aligned" in (table.get("class") or ""):
            yield from _aligned(f"{where}: picture", table)
        elif table.get("role") != "presentation" and "cells" not in (table.get("class") or ""):
            yield from _of_table(where, table)


def of_figures(where: str, agent: str, markup: str) -> Iterator[Reading]:
    """Single figures on the page of an agent."""
    for name, value, rest in re.findall(r'<dt>(.*?)</dt><dd class="value">(.*?)</dd>(.*?)</div>', markup):
        interval = re.search(r"95% interval: ([^<]*)", rest)
        yield Reading(where, unescape(name), agent, value, interval[1] if interval else "")


def _of_table(where: str, table: Any) -> Iterator[Reading]:
    caption = " ".join(_text(own) for own in table.findall("caption"))
    names = [_text(cell) for cell in table.findall("thead/tr/th")]
    for row in table.findall("tbody/tr"):
        cells = [_text(cell) for cell in row if cell.get("class") != "plot"]
        if len(cells) == len(names):
            yield from of_row(f"{where}: {caption}", names, cells)


def _aligned(where: str, table: Any) -> Iterator[Reading]:
    heads = table.findall("thead/tr/th")
    names = [(cell.text or "").strip() for cell in heads if cell.get("class") == "strip"]
    for row in table.findall("tbody/tr"):
        agent = _text(row.find("th")).partition(" ")[2]
        strips = [cell for cell in row.findall("td") if (cell.get("class") or "").startswith("strip")]
        for name, cell in zip(names, strips, strict=True):
            written = re.match(rf"({_NUMBER}%?) ?({_NUMBER} to {_NUMBER}%?)?", cell.get("title") or "")
            if written:
                yield Reading(where, name, agent, written[1], written[2] or "")


def of_row(where: str, names: Sequence[str], cells: Sequence[str]) -> Iterator[Reading]:
    """Figures of a row; its first words name whose they are. Of a query or an opponent alone they are others."""
    if names[0] in ("Against", "Query"):
        return
    start = names.index("Agent") if "Agent" in names else 0
    words = [*takewhile(lambda cell: not (_ONE.fullmatch(cell) or _TO.fullmatch(cell) or cell == "-"), cells[start:])]
    words = [
        word
        for word in words[: 1 if "Group" in names else _MOST_WORDS]
        if not _PLACE.fullmatch(word) and not _DRAWN.fullmatch(word)
    ]
    labels = words.pop() if names[1:2] == ["Labels of"] else ""
    of = " | ".join(words)
    for at, (heading, cell) in enumerate(zip(names, cells, strict=True)):
        drawn, placed = _DRAWN.fullmatch(cell), _PLACE.fullmatch(cell)
        name = f"{heading} by people" if labels == "people" else heading
        if not at or (names.count(heading) > 1 and heading not in _INTERVALS):
            continue
        if drawn:
            yield Reading(where, name, of, drawn[1], drawn[2])
        elif placed or _ONE.fullmatch(cell):
            after = cells[at + 1] if at + 1 < len(cells) and names[at + 1] in _INTERVALS else ""
            yield Reading(where, name, of, placed[1] if placed else cell, after)


def of_terminal(where: str, text: str) -> Iterator[Reading]:
    """Figures in tables of a text that is as wide as it needs to be."""
    title, names = "", list[str]()
    for line in text.splitlines():
        cells = re.split(r" {2,}", line.strip())
        if len(cells) < 2:
            title, names = line.strip(), []
        elif not names:
            names = cells
        elif len(cells) == len(names):
            yield from of_row(f"{where}: {title}", names, cells)


def of_csv(text: str) -> Iterator[Reading]:
    """Figures of the leaderboard's CSV, by the names of their keys."""
    titles = {own.key: own.title for own in QUANTITIES.values() if own.key}
    for row in csv.DictReader(io.StringIO(text)):
        for key, value in row.items():
            name = re.sub("^retrieval_people_(.*)$", r"\1 by people", key)
            name = titles.get(key) or re.sub("^(retrieval|criteria)_", "", name)
            if value and _ONE.fullmatch(value):
                low, high = (row.get(f"{key}_{end}") for end in ("low", "high"))
                yield Reading("csv", name, row["agent"], value, f"{low} to {high}" if low else "")


def of_ways(ways: Mapping[str, Any]) -> Iterator[Reading]:
    """Figures of Compare's JSON."""
    for name, way in ways.items():
        for agent, score in way["scores"].items():
            yield figure("json", quantity(name).title, agent, score["value"], score["low"], score["high"])


def figure(
    where: str, name: str, of: str, value: float | None, low: float | None = None, high: float | None = None
) -> Reading:
    ends = "" if low is None or high is None else f"{low:.6f} to {high:.6f}"
    return Reading(where, name, of, "-" if value is None else f"{value:.6f}", ends)


def of_sections(where: str, sections: Sequence[Section]) -> Iterator[Reading]:
    for section in sections:
        for block in section.blocks:
            if isinstance(block, Table | Aligned | Figures):
                yield from of_html(where, html_block(block))


def _text(element: Any) -> str:
    """The words of a cell, without what is drawn in it."""
    for drawn in element.xpath('.//div[contains(@class, "drawn")]'):
        drawn.drop_tree()
    return " ".join(element.text_content().split())
