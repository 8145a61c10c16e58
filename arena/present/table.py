"""Tables with columns of typed values, converted to text cells for people or to records for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

from arena.present.numbers import COUNT, MISSING, WORDS, Number, NumberForm, bracketed, deserved
from retrieval_eval.stats.estimate import PROVENANCE, Coefficient, Estimate

INTERVAL: Final = "95% interval"
"""Usual heading of a column of confidence intervals."""
TableRow: TypeAlias = dict[str, Any]
"""Values of a table row, by column key."""


class Column(Struct, frozen=True):
    """A column of a table.

    Attributes:
        heading: heading for people; empty if only outputs for programs (CSV, JSON) have the column.
        meaning: what the values mean, in one sentence; if empty, the glossary's text for the heading.
        interval: heading of the column with the interval; empty if there is no interval. The ends are the row's
            ``KEY_low`` and ``KEY_high``, or the ends of the value if it is an ``Estimate``.
        programs: whether outputs for programs have the column too.
        link: key of the row's value that holds the address to which the cell links on pages.
        drawn: how pages draw the values: ``whiskers`` on one axis, or as ``bands`` that agents of one group share. A
            column of ``ends`` has the intervals of the values.
    """

    key: str
    heading: str
    form: NumberForm = WORDS
    meaning: str = ""
    interval: str = ""
    programs: bool = True
    link: str = ""
    drawn: Literal["", "whiskers", "bands", "ends"] = ""

    @property
    def explained(self) -> str:
        return self.meaning or TERMS.get(self.heading, "")

    def value(self, row: Mapping[str, Any]) -> Any:
        value = row.get(self.key)
        return value.value if isinstance(value, Estimate) else value

    def ends(self, row: Mapping[str, Any]) -> tuple[Any, Any]:
        value = row.get(self.key)
        if isinstance(value, Estimate):
            return value.low, value.high
        return row.get(f"{self.key}_low"), row.get(f"{self.key}_high")

    @property
    def numeric(self) -> bool:
        """Whether cells align to the right, as numbers do."""
        return self.drawn == "ends" or self.form.numeric

    def cells(self, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        if self.drawn == "ends":
            return [self.form.between(*self.ends(row)) for row in rows]
        if self.drawn == "whiskers":
            return [bracketed(estimate, self.form) for estimate in self.estimates(rows)]
        return [self.form.write(self.value(row)) for row in rows]

    def estimates(self, rows: Iterable[Mapping[str, Any]]) -> list[Estimate]:
        return [Estimate(_number(self.value(row)), *self.ends(row)) for row in rows]

    def numbers(self, rows: Iterable[Mapping[str, Any]]) -> list[float | None]:
        """Numbers by which a page sorts the rows, for intervals their lower ends; empty for texts."""
        if self.drawn == "ends":
            return [_number(self.ends(row)[0]) for row in rows]
        return [_number(self.value(row)) for row in rows] if isinstance(self.form, Number) else []

    def for_spreadsheet(self, rows: Iterable[Mapping[str, Any]]) -> list[str | float]:
        """The cells for a spreadsheet: numbers are rounded, without units or marks."""
        form = self.form
        if self.drawn == "ends" or not isinstance(form, Number):
            return ["" if cell == MISSING else cell for cell in self.cells(rows)]
        numbers = self.numbers(rows)
        return ["" if value is None else round(form.factor * value, form.places(value)) for value in numbers]


class Table(Struct, frozen=True, dict=True):
    """A table; its first column names the rows.

    Attributes:
        name: name in file names and addresses, unique among the tables shown together.
        notes: sentences that every renderer shows with the table.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = ()

    @cached_property
    def cells(self) -> list[list[str]]:
        """Texts of the cells, by column."""
        return [column.cells(self.rows) for column in self.columns]


def first(table: Table, most: int, how: str = "--most") -> Table:
    """The first ``most`` rows of the table, with a note on the number of omitted rows and how to see them."""
    omitted = len(table.rows) - most
    if omitted <= 0:
        return table
    return replace(table, rows=table.rows[:most], notes=[f"... and {omitted:,} more ({how})", *table.notes])


def for_programs(name: str, keys: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table that only outputs for programs show; each row has its values in the order of ``keys``."""
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
    """A table of counts by row and column; ``names`` are the unique names of rows and columns.

    ``corner`` is the heading of the first column and says what the rows and columns are.
    """
    rows, columns = names
    cells = [{"": row, **dict(zip(columns, line, strict=True))} for row, line in zip(rows, counts, strict=True)]
    return Table(
        name, title, [Column("", corner), *(Column(column, column, COUNT) for column in columns)], cells, notes
    )


def shown(table: Table) -> Table:
    """The table that people see: intervals have columns of their own, and columns without any value are left out."""
    columns = []
    for place, declared in enumerate(table.columns):
        if not declared.heading:
            continue
        column = replace(declared, form=deserved(declared.form, map(declared.ends, table.rows)))
        if place == 0 or any(column.form.write(column.value(row)) != MISSING for row in table.rows):
            columns.append(column)
        if column.interval and column.drawn != "whiskers":
            ends = replace(column, heading=column.interval, meaning="", link="", drawn="ends")
            if any(cell != MISSING for cell in ends.cells(table.rows)):
                columns.append(ends)
    return replace(table, columns=columns)


def places_of(table: Table, words: str) -> list[int]:
    needle = words.casefold()
    rows = zip(*shown(table).cells, strict=True)
    return [place for place, cells in enumerate(rows) if any(needle in cell.casefold() for cell in cells)]


def _number(value: Any) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def records(table: Table) -> list[dict[str, Any]]:
    return [dict(_fields(table, row)) for row in table.rows]


def keys(table: Table) -> list[str]:
    """Keys of the dictionaries that ``records`` returns, also for a table without rows."""
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
"""Note shown with every interval of a rank correlation."""
TERMS: Final[Mapping[str, str]] = {
    "95% interval": "Made so that it holds the true figure in 95 of 100 repetitions with other queries.",
    "Agent": "A system under evaluation: what answers the queries.",
    "Agrees with a vote": "How often the judge gives the same verdict as a person, in percent.",
    "Alpha": "Krippendorff's alpha: 1 is full agreement, 0 no more than chance.",
    "Alpha, ordinal": "Krippendorff's alpha of ordered labels: the farther apart two labels are, the more it counts.",
    "Beyond chance": "How a query differs from the others by more than chance: it separates the agents more, or its "
    "games reverse their order. Chance alone marks a query in at most 4 % of tournaments.",
    "Bias": "Mean of the judge's figures minus people's figures.",
    "Coverage": "Share of the wanted results that exist.",
    "Decided": "Share of the games with a winner.",
    "Elo": "Mean Elo rating over many random orders of the same games.",
    "Failed": "The judge gave no usable reply, also when asked again. A failure is never counted as a label.",
    "Games": "Rated games: both orders of a pair on a query count as one; with a position term every verdict is one.",
    "Grade": "How well a passage answers an exam item, as the judge grades it.",
    "Group": "Agents that share a letter cannot be told apart; tests are corrected for the number of pairs.",
    "Judge": "The language model, or other program, that compares answers or labels documents.",
    "Judges differ": "Share of the games judged by several judges on which they disagree.",
    "Kappa": "Cohen's kappa: agreement beyond chance. 1 is full agreement, 0 no more than chance. Each game "
    "counts in both directions, so that the order of the agents' names does not matter.",
    "Kappa, linear": "Cohen's kappa in which a disagreement counts by its distance.",
    "Kappa, quadratic": "Cohen's kappa in which a disagreement counts by the square of its distance.",
    "Kendall's tau": "Whether two rankings put the agents in one order: 1 the same, 0 unrelated, -1 the reverse. "
    f"{ORDERS}",
    "Kendall's tau-b": "Rank correlation of values with ties: 1 the same order, 0 unrelated, -1 the reverse.",
    "Label": "How relevant a document is to a query: 0 is not relevant, higher is more relevant.",
    "Left": "Wanted, but not requested yet.",
    "Lost": "Rated games that the agent lost.",
    "Mean label": "Mean of the labels of the agent's documents, without failed labels.",
    "Nugget": "A fact that a good answer to the query states.",
    "Order noise": "Standard deviation of Elo over the orders of the games. It shows how much the order of play "
    "matters, not how certain the rating is.",
    "Orders": "Whether the verdicts of the two orders differ: each game is judged twice, with the answers exchanged.",
    "Orders agree": "Share of the games judged in both orders with the same outcome in both.",
    "Orders differ": "Share of the games judged in both orders whose verdicts differ.",
    "p, corrected": "Probability of so clear a difference between equally good agents, corrected for all pairs "
    "as the intervals are. A small value is significant.",
    "Pearson": "Pearson's correlation: 1 is a rising line, 0 unrelated, -1 a falling line.",
    "Query": "The question that all agents answered.",
    "Rank": "One more than the number of agents with a higher rating.",
    "Ranks (95%)": "Intervals that contain the true ranks of all agents at the same time, at 95% confidence.",
    "Result": "Outcome of the rated game, both orders together.",
    "Same label": "Share of the documents with both labels in which the two labels are equal.",
    "Separation": "Spread times agreement: how much larger the share of points on this query is for an agent one "
    "standard deviation better on all others. Chance alone puts some queries below 0.",
    "Spearman's rho": "Rank correlation: 1 the same order, 0 unrelated, -1 the reverse.",
    "Spread": "Standard deviation of the agents' shares of points on the query; 0 if all are equal.",
    "Tied": "Rated games without a winner.",
    "Weight": "How much an item counts in the score.",
    "Won": "Rated games that the agent won.",
}
"""Glossary: what a column means, by its heading."""


_DECIMALS = 6
"""Decimals in outputs for programs, few enough that equal figures give equal bytes on every machine."""


class Exact(float):
    """A number that is written with all its digits in outputs for programs, such as a tiny probability."""


def plain(value: Any, decimals: int = _DECIMALS) -> Any:
    """Convert a value to plain JSON types: records to dictionaries, arrays to lists, NaN to ``None``.

    Numbers are rounded to ``decimals``. If these are more than the default, numbers become ``Exact``, so that a later
    call does not round them again.
    """
    if value is None or isinstance(value, bool | str | int | Enum | Exact):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, float):
        rounded = round(value, decimals) + 0.0  # -0.0 becomes 0.0
        return None if math.isnan(value) else Exact(rounded) if decimals > _DECIMALS else rounded
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(inner, decimals) for key, inner in value.items()}
    if isinstance(value, Struct):
        omitted = PROVENANCE if isinstance(value, Estimate) else ()
        return {name: plain(inner, decimals) for name, inner in asdict(value).items() if name not in omitted}
    values = value.tolist() if hasattr(value, "tolist") else value  # numpy arrays and scalars
    if not isinstance(values, Iterable):
        return plain(values, decimals)
    return [plain(inner, decimals) for inner in (sorted(values) if isinstance(values, set | frozenset) else values)]


def fields(record: Any, *names: str) -> TableRow:
    """The named fields of a record as a dictionary; empty if the record is ``None``."""
    return {} if record is None else {name: getattr(record, name) for name in names}


def flat(record: Any) -> dict[str, Any]:
    """The fields of a record or mapping as a dictionary; an estimate becomes ``KEY``, ``KEY_low`` and ``KEY_high``.

    A correlation also gets ``KEY_p``.
    """
    fields: dict[str, Any] = {}
    for name, value in (record if isinstance(record, Mapping) else asdict(record)).items():
        if isinstance(value, Estimate):
            fields |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
            if isinstance(value, Coefficient):
                fields[f"{name}_p"] = value.p_value
        else:
            fields[name] = value
    return fields


def json_text(value: Any) -> str:
    """The value as JSON with sorted keys and ASCII only, so that equal values give equal bytes."""
    return json.dumps(plain(value), indent=2, sort_keys=True, ensure_ascii=True, allow_nan=False)
