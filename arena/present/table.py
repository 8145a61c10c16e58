"""A table, defined once: for people as cells of text, for programs as records."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

from arena.present.numbers import COUNT, MISSING, WORDS, Number, NumberForm, bracketed, deserved
from retrieval_eval.stats.estimate import PROVENANCE, Coefficient, Estimate

TableRow: TypeAlias = dict[str, Any]
"""Cells by the names of columns."""


class Column(Struct, frozen=True):
    """A column.

    Attributes:
        key: for programs: the field of a row, of JSON and of CSV.
        heading: for people; empty for a column of programs alone.
        form: how its values are written.
        meaning: one sentence; where it is empty, that of the heading in the glossary.
        interval: heading of its interval, which stands beside it; empty without one. The ends are the row's
            ``KEY_low`` and ``KEY_high``, or those of the ``Estimate`` that is the value.
        programs: whether programs get it as well.
        link: key of a row's field with the address that the cell leads to, on a page.
        drawn: whether value and interval share a cell, which HTML draws.
    """

    key: str
    heading: str
    form: NumberForm = WORDS
    meaning: str = ""
    interval: str = ""
    programs: bool = True
    link: str = ""
    drawn: bool = False

    @property
    def explained(self) -> str:
        """Its meaning."""
        return self.meaning or TERMS.get(self.heading, "")

    def value(self, row: Mapping[str, Any]) -> Any:
        """A row's value."""
        found = row.get(self.key)
        return found.value if isinstance(found, Estimate) else found

    def ends(self, row: Mapping[str, Any]) -> tuple[Any, Any]:
        """Low and high end of a row's interval."""
        found = row.get(self.key)
        if isinstance(found, Estimate):
            return found.low, found.high
        return row.get(f"{self.key}_low"), row.get(f"{self.key}_high")


class Table(Struct, frozen=True):
    """A table whose first column names its rows.

    Attributes:
        name: unique among those shown together: of its file and in the page's address.
        title: for people; may be empty.
        columns: for people and programs; each group in this order.
        rows: values by key of column; texts in them may come from outside.
        notes: sentences that belong to it wherever it is shown.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = ()


def first(table: Table, most: int, how: str = "--most") -> Table:
    """The table with so many rows, and a note on how many it leaves out and how to see them."""
    left = len(table.rows) - most
    if left <= 0:
        return table
    return replace(table, rows=table.rows[:most], notes=[f"... and {left:,} more ({how})", *table.notes])


def for_programs(name: str, keys: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table for programs alone, of rows of values."""
    return Table(name, "", [Column(key, "") for key in keys], [dict(zip(keys, row, strict=True)) for row in rows])


def crossed(
    name: str,
    title: str,
    corner: str,
    names: tuple[Sequence[str], Sequence[str]],
    counts: Iterable[Sequence[int]],
    *,
    notes: Sequence[str] = (),
) -> Table:
    """Counts by the names of rows and of columns, which are unique; ``corner`` says what both are."""
    rows, columns = names
    cells = [{"": row, **dict(zip(columns, line, strict=True))} for row, line in zip(rows, counts, strict=True)]
    return Table(name, title, [Column("", corner), *(Column(own, own, COUNT) for own in columns)], cells, notes)


class ShownColumn(NamedTuple):
    """A column as people see it.

    Attributes:
        heading: above it.
        numeric: whether it holds numbers, which stand to the right.
        meaning: a sentence, or nothing.
        cells: from top to bottom.
        values: by which it is sorted: numbers, or the lower ends of intervals; none of texts.
        form: of a column of numbers, how they are written; ``None`` of intervals and texts.
        links: addresses that the cells lead to; empty without any.
        drawn: of a drawn column its values with their ends.
    """

    heading: str
    numeric: bool
    meaning: str
    cells: Sequence[str]
    values: Sequence[float | None]
    form: Number | None
    links: Sequence[str] = ()
    drawn: Sequence[Estimate] = ()


def shown(table: Table) -> list[ShownColumn]:
    """The columns of a table for people; those without any value, and intervals without any, are left out."""
    found = []
    for place, column in enumerate(table.columns):
        if not column.heading:
            continue
        values, ends = [column.value(row) for row in table.rows], [column.ends(row) for row in table.rows]
        written = deserved(column.form, ends)
        cells = list(map(written.write, values))
        if place == 0 or any(cell != MISSING for cell in cells):
            form = written if isinstance(written, Number) else None
            numbers = [] if form is None else list(map(_number, values))
            links = [str(row.get(column.link, "")) for row in table.rows] if column.link else []
            drawn = (
                [Estimate(*own) for own in zip(numbers, *zip(*ends, strict=True), strict=True)] if column.drawn else []
            )
            if column.drawn and form is not None:
                cells = [bracketed(own, form) for own in drawn]
            found.append(
                ShownColumn(column.heading, written.numeric, column.explained, cells, numbers, form, links, drawn)
            )
        if column.interval and not column.drawn:
            cells = [written.between(low, high) for low, high in ends]
            if any(cell != MISSING for cell in cells):
                lows = [_number(low) for low, _ in ends]
                found.append(ShownColumn(column.interval, True, TERMS.get(column.interval, ""), cells, lows, None))
    return found


def places_of(table: Table, words: str) -> list[int]:
    """Places of the rows in which any cell that people see holds the words, in capitals or not."""
    wanted = words.casefold()
    rows = zip(*(column.cells for column in shown(table)), strict=True)
    return [place for place, cells in enumerate(rows) if any(wanted in cell.casefold() for cell in cells)]


def _number(value: Any) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def records(table: Table) -> list[dict[str, Any]]:
    """The rows for programs: plain values by key, numbers with six decimals, the same keys in every row."""
    return [dict(_fields(table, row)) for row in table.rows]


def keys(table: Table) -> list[str]:
    """The keys of ``records``, also of a table without rows."""
    return [key for key, _ in _fields(table, {})]


def _fields(table: Table, row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for column in table.columns:
        if column.programs:
            yield column.key, plain(column.value(row))
            if column.interval:
                low, high = column.ends(row)
                yield f"{column.key}_low", plain(low)
                yield f"{column.key}_high", plain(high)


ORDERS: Final = (
    "The interval of a correlation of two orders is what as many other queries would give. Chance in the scores makes "
    "orders differ, so the correlation of the true orders is likely higher."
)
"""What such an interval is for: to be said wherever one is shown."""
TERMS: Final[Mapping[str, str]] = {
    "95% interval": "Made so that it holds the true figure in 95 of 100 repetitions with other queries.",
    "Agent": "A system under evaluation: what answers the queries.",
    "Agrees with a vote": "How often the judge says what a person said, in percent.",
    "Alpha": "Krippendorff's alpha: 1 is full agreement, 0 no more than chance.",
    "Alpha, ordinal": "Krippendorff's alpha of labels with an order: the farther apart two are, the more it counts.",
    "Bradley-Terry": "Strength in points that best explains all games at once. 100 points more is 64 % of the decided "
    "games; 400 more is 10 to 1.",
    "Beyond chance": "How a query stands out from queries that are alike: it separates the agents more, or its games "
    "are reversed, against the order of the others. Marked by chance in at most 4 % of tournaments.",
    "Bias": "Mean of the judge's figures less people's.",
    "Coverage": "Share of what was wanted that is there.",
    "Decided": "Share of the games with a winner.",
    "Elo": "Mean Elo rating over many random orders of the same games.",
    "Failed": "The judge gave no usable reply, also when asked again. A failure is never counted as a label.",
    "Games": "Rated games: both orders of a pair on a query count as one; with a position term every verdict is one.",
    "Grade": "How well a passage answers an exam item, as the judge grades it.",
    "Group": "Agents that share a letter cannot be told apart; tests are corrected for the number of pairs.",
    "Judge": "The language model, or other program, that compares answers or labels documents.",
    "Judges differ": "Share of the games of several judges on which they do not agree.",
    "Kappa": "Cohen's kappa: agreement beyond chance. 1 is full agreement, 0 no more than chance. Of games each "
    "counts in both directions, so that it changes nothing which agent is named first.",
    "Kappa, linear": "Cohen's kappa in which a disagreement counts by its distance.",
    "Kappa, quadratic": "Cohen's kappa in which a disagreement counts by the square of its distance.",
    "Kendall's tau": "Whether two rankings put the agents in one order: 1 the same, 0 unrelated, -1 the reverse. "
    f"{ORDERS}",
    "Kendall's tau-b": "Rank correlation of values with ties: 1 the same order, 0 unrelated, -1 the reverse.",
    "Label": "How relevant a document is to a query: 0 is not relevant, higher is more relevant.",
    "Left": "Wanted, and not asked for yet.",
    "Lost": "Rated games that the agent lost.",
    "Mean label": "Mean of the labels of the agent's documents; failed ones are left out.",
    "Nugget": "A fact that a good answer to the query states.",
    "Order noise": "Standard deviation of Elo over the orders of the games. It says how much the order of play "
    "matters, not how sure the rating is: it is no confidence interval.",
    "Orders": "Whether the verdicts of the two orders differ: each game is judged twice, with the answers exchanged.",
    "Orders agree": "Share of the games judged in both orders that ended alike in both.",
    "Orders differ": "Share of the games judged in both orders whose verdicts differ.",
    "p, corrected": "How likely so clear a difference would be between equals, corrected for all pairs as "
    "their intervals are. Small is significant.",
    "Pearson": "Pearson's correlation: 1 is a rising line, 0 unrelated, -1 a falling line.",
    "Percent": "Share of its games against the other agent that the agent took, in percent.",
    "Query": "The question that all agents answered.",
    "Rank": "One more than the number of agents with a higher rating.",
    "Ranks (95%)": "All agents' true ranks lie in these at once, at 95% confidence.",
    "Result": "How the rated game ended, both orders together.",
    "Same label": "Share of the documents with both labels where the two are equal.",
    "Separation": "Spread times agreement: how much more of the points on this query goes to an agent that is one "
    "standard deviation better on all others. Chance alone puts some queries below 0.",
    "Spearman": "Spearman's rank correlation: 1 the same order, 0 unrelated, -1 the reverse.",
    "Spearman's rho": "Rank correlation: 1 the same order, 0 unrelated, -1 the reverse.",
    "Spread": "Standard deviation of the agents' shares of points on the query; 0 where all are alike.",
    "Tied": "Rated games without a winner.",
    "Weight": "How much an item counts in the score.",
    "Won": "Rated games that the agent won.",
}
"""By heading."""


_DECIMALS = 6
"""Fewer than floating point has, so that equal figures are equal bytes on every machine."""


class Exact(float):
    """A number written with all digits that it has, such as a tiny probability."""


def plain(value: Any, decimals: int = _DECIMALS) -> Any:
    """A value without our own types: fields of records by name, arrays as lists, NaN as nothing.

    Numbers that shall have more ``decimals`` than others keep them from then on.
    """
    if value is None or isinstance(value, bool | str | int | Enum | Exact):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, float):
        shown = round(value, decimals) + 0.0  # -0.0 becomes 0.0
        return None if math.isnan(value) else Exact(shown) if decimals > _DECIMALS else shown
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(inner, decimals) for key, inner in value.items()}
    if isinstance(value, Struct):
        left_out = PROVENANCE if isinstance(value, Estimate) else ()
        return {name: plain(own, decimals) for name, own in asdict(value).items() if name not in left_out}
    values = value.tolist() if hasattr(value, "tolist") else value  # of numpy
    if not isinstance(values, Iterable):
        return plain(values, decimals)
    return [plain(inner, decimals) for inner in (sorted(values) if isinstance(values, set | frozenset) else values)]


def flat(record: Any) -> dict[str, Any]:
    """The fields of a record or mapping, where an estimate becomes ``KEY``, ``KEY_low`` and ``KEY_high``.

    A correlation has ``KEY_p`` as well.
    """
    found: dict[str, Any] = {}
    for name, value in (record if isinstance(record, Mapping) else asdict(record)).items():
        if isinstance(value, Estimate):
            found |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
            if isinstance(value, Coefficient):
                found[f"{name}_p"] = value.p_value
        else:
            found[name] = value
    return found


def json_text(value: Any) -> str:
    """Machine output: sorted keys and plain ASCII, so that equal values are equal bytes."""
    return json.dumps(plain(value), indent=2, sort_keys=True, ensure_ascii=True, allow_nan=False)
