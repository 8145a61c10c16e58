"""Two conditions of a nugget evaluation: how alike they order runs, and where their labels agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import asdict

from arena.boards.agreement import COEFFICIENTS, confusion
from arena.boards.nuggets import MOST_NAMED, exact
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, FIGURE, P_VALUE, listed, with_interval
from arena.present.picture import Chart, Dot, Look
from arena.present.table import ORDERS, Column, Table, TableRow, flat
from arena.ratings.results import UNITS
from arena.results.nugget_comparison import SCALES, ConditionsCompared, NuggetAgreement, Point
from retrieval_eval.stats.agreement import LabelAgreement
from retrieval_eval.stats.estimate import Coefficient

_ORDERS: Final = (
    Column("measure", "Correlation"),
    Column("n", "n", COUNT, "Runs, pairs of a run and a query, or queries."),
    Column("value", "Value", FIGURE, "1 is the same order, 0 unrelated, -1 the reverse.", interval="95% interval"),
    Column("p", "p", P_VALUE, "How likely so clear a correlation would be between unrelated orders."),
)
_LABELS: Final = (Column("labels", "Labels"), Column("n", "Labels in both", COUNT), *COEFFICIENTS[:2])


class NuggetComparison(Board, frozen=True):
    """Two conditions by their names, and the score of them that is compared."""

    comparison: ConditionsCompared
    column: str
    names: tuple[str, str]

    def sections(self) -> list[Section]:
        said, of = self.comparison, self.comparison.correlation
        orders = [("Kendall's tau, runs", of.runs, of.kendall), ("Spearman's rho, runs", of.runs, of.spearman)]
        if said.topics:
            orders.append(("Kendall's tau, all (run, query) pairs", of.pairs, of.pairs_kendall))
            orders.append(("Kendall's tau by query, mean", of.topics, of.topics_kendall))
        rows = [{"measure": name, "n": n, "value": tau, "p": tau.p_value} for name, n, tau in orders]
        unit = UNITS[said.unit][1] if of.resampled == "topic" else "runs, since no queries are known"
        title = f"{self.column} of {self.names[0]} against {self.names[1]}"
        of_orders = [ORDERS] if of.resampled == "topic" else []
        notes = [f"Intervals: bootstrap over {unit}.", *of_orders, *self._left_out()]
        blocks: list[Block] = [Table("orders", title, _ORDERS, rows, notes), *self._charts()]
        found = [Section("orders", "Order of the runs", "", blocks)]
        if said.nuggets is not None:
            found.append(Section("labels", "Labels of nuggets", "", list(_label_tables(said.nuggets))))
        front = [f"{own.run} ({own.length:.0f} words, {own.a:.3f})" for own in said.runs if own.front]
        if front:
            remark = f"No run is both shorter and better than {listed(front)}."
            found.append(Section("front", "Front", "", [Remarks([remark])]))
        return found

    def _charts(self) -> Iterator[Chart]:
        """Both scores, and the first one against length with its front (Pradeep et al. 2024, Figures 6 and 7)."""
        said = self.comparison
        points = [*said.runs, *said.pairs]
        first, second = (f"{self.column}, {name}" for name in self.names)
        tau = with_interval(said.correlation.kendall, FIGURE)
        caption = f"Kendall's tau of the runs: {tau}. Runs by name; the small points behind them are single answers."
        dots = [Dot(own.a, own.b, *_name(own)) for own in points]
        yield Chart("scores", f"{first} and {second}", "Two scores of each run", caption, first, second, dots)
        known = [(own, own.length) for own in points if own.length is not None]
        if known:
            dots = [Dot(length, own.a, *_name(own)) for own, length in known]
            path = sorted((own.length, own.a) for own in said.runs if own.front and own.length is not None)
            words = "The score of each run by its length"
            said_of = "Line: no run is both shorter and better."
            yield Chart("length", "Score by length", words, said_of, "Length in words", first, dots, path)

    def _left_out(self) -> list[str]:
        name = dict(zip("ab", self.names, strict=True))
        what = {"runs": "runs", "topics": "queries"}
        return [
            f"Left out, {what[key[:-2]]} in {name[key[-1]]} alone: {listed(names, MOST_NAMED)}."
            for key, names in self.comparison.left_out.items()
            if names
        ]

    def json(self) -> Any:
        said, of = self.comparison, self.comparison.correlation
        shape: TableRow = {
            "column": self.column,
            "a": self.names[0],
            "b": self.names[1],
            "resampled": of.resampled,
            **_kendall(of.runs, of.kendall),
            **flat({"spearman": of.spearman}),
            "pairs": _kendall(of.pairs, of.pairs_kendall),
            "per_topic": _kendall(of.topics, of.topics_kendall)
            | {"topics": dict(zip(said.topics, of.by_topic, strict=True))},
            "nuggets": None if said.nuggets is None else _nuggets_json(said.nuggets),
            "points": {
                "runs": [_without(run, "topic") for run in said.runs],
                "topics": [_without(pair, "front") for pair in said.pairs],
            },
            "left_out": said.left_out,
        }
        return exact(shape)


def _kendall(n: int, tau: Coefficient) -> TableRow:
    figures = flat({"kendall": tau})
    return {"n": n, "kendall_tau": figures.pop("kendall"), **figures}


def _nuggets_json(found: NuggetAgreement) -> TableRow:
    shape: TableRow = {name: getattr(found, name) for name in ("shared", "only_a", "only_b")}
    for name, labels in SCALES.items():
        own: LabelAgreement = getattr(found, name)
        kappa = {"kappa": own.kappa.value, "low": own.kappa.low, "high": own.kappa.high}
        counts = {"n": own.n, "labels": labels, "confusion": own.confusion, "share": own.agreement.value}
        shape[name] = counts | kappa
    return shape


def _label_tables(found: NuggetAgreement) -> Iterator[Table]:
    compared = {name.replace("_", " "): getattr(found, name) for name in SCALES}
    rows = [{"labels": name, **flat(own)} for name, own in compared.items() if own.n]
    alone = f"in the first alone {found.only_a}, in the second alone {found.only_b}"
    yield Table("labels", "Labels of the same nuggets", _LABELS, rows, [f"Nuggets in both: {found.shared}; {alone}."])
    if found.assignment.n:
        yield confusion(found.assignment, "Assignments", "First", "second", SCALES["assignment"])


def _without(point: Point, name: str) -> TableRow:
    return {key: value for key, value in asdict(point).items() if key != name}


def _name(point: Point) -> tuple[str, Look, str]:
    figures = f"{FIGURE.write(point.a)}, {FIGURE.write(point.b)}"
    if point.topic:
        return "", "quiet", f"{point.run}, {point.topic}: {figures}"
    return point.run, "blue", f"{point.run}: {figures}"
