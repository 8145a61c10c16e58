"""Comparison of two conditions of a nugget evaluation: rank correlations of runs, and agreement of labels."""

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
    """Two conditions compared by one score; ``names`` are the conditions, ``column`` is the score."""

    comparison: ConditionsCompared
    column: str
    names: tuple[str, str]

    def sections(self) -> list[Section]:
        comparison, correlation = self.comparison, self.comparison.correlation
        orders = [
            ("Kendall's tau, runs", correlation.runs, correlation.kendall),
            ("Spearman's rho, runs", correlation.runs, correlation.spearman),
        ]
        if comparison.topics:
            orders.append(("Kendall's tau, all (run, query) pairs", correlation.pairs, correlation.pairs_kendall))
            orders.append(("Kendall's tau by query, mean", correlation.topics, correlation.topics_kendall))
        rows = [{"measure": name, "n": n, "value": tau, "p": tau.p_value} for name, n, tau in orders]
        unit = UNITS[comparison.unit][1] if correlation.resampled == "topic" else "runs, since no queries are known"
        title = f"{self.column} of {self.names[0]} against {self.names[1]}"
        order_notes = [ORDERS] if correlation.resampled == "topic" else []
        notes = [f"Intervals: bootstrap over {unit}.", *order_notes, *self._left_out()]
        blocks: list[Block] = [Table("orders", title, _ORDERS, rows, notes), *self._charts()]
        sections = [Section("orders", "Order of the runs", "", blocks)]
        if comparison.nuggets is not None:
            sections.append(Section("labels", "Labels of nuggets", "", list(_label_tables(comparison.nuggets))))
        front = [f"{run.run} ({run.length:.0f} words, {run.a:.3f})" for run in comparison.runs if run.front]
        if front:
            remark = f"No run is both shorter and better than {listed(front)}."
            sections.append(Section("front", "Front", "", [Remarks([remark])]))
        return sections

    def _charts(self) -> Iterator[Chart]:
        """Both scores, and the first score by length with its front (Pradeep et al. 2024, Figures 6 and 7)."""
        comparison = self.comparison
        points = [*comparison.runs, *comparison.pairs]
        first, second = (f"{self.column}, {name}" for name in self.names)
        tau = with_interval(comparison.correlation.kendall, FIGURE)
        caption = f"Kendall's tau of the runs: {tau}. Runs by name; the small points behind them are single answers."
        dots = [Dot(point.a, point.b, *_name(point)) for point in points]
        yield Chart("scores", f"{first} and {second}", "Two scores of each run", caption, first, second, dots)
        with_length = [(point, point.length) for point in points if point.length is not None]
        if with_length:
            dots = [Dot(length, point.a, *_name(point)) for point, length in with_length]
            path = sorted((run.length, run.a) for run in comparison.runs if run.front and run.length is not None)
            words = "The score of each run by its length"
            front_caption = "Line: no run is both shorter and better."
            yield Chart("length", "Score by length", words, front_caption, "Length in words", first, dots, path)

    def _left_out(self) -> list[str]:
        name = dict(zip("ab", self.names, strict=True))
        nouns = {"runs": "runs", "topics": "queries"}
        return [
            f"Left out, {nouns[key[:-2]]} in {name[key[-1]]} alone: {listed(names, MOST_NAMED)}."
            for key, names in self.comparison.left_out.items()
            if names
        ]

    def json(self) -> Any:
        comparison, correlation = self.comparison, self.comparison.correlation
        shape: TableRow = {
            "column": self.column,
            "a": self.names[0],
            "b": self.names[1],
            "resampled": correlation.resampled,
            **_kendall(correlation.runs, correlation.kendall),
            **flat({"spearman": correlation.spearman}),
            "pairs": _kendall(correlation.pairs, correlation.pairs_kendall),
            "per_topic": _kendall(correlation.topics, correlation.topics_kendall)
            | {"topics": dict(zip(comparison.topics, correlation.by_topic, strict=True))},
            "nuggets": None if comparison.nuggets is None else _nuggets_json(comparison.nuggets),
            "points": {
                "runs": [_without(run, "topic") for run in comparison.runs],
                "topics": [_without(pair, "front") for pair in comparison.pairs],
            },
            "left_out": comparison.left_out,
        }
        return exact(shape)


def _kendall(n: int, tau: Coefficient) -> TableRow:
    figures = flat({"kendall": tau})
    return {"n": n, "kendall_tau": figures.pop("kendall"), **figures}


def _nuggets_json(agreement: NuggetAgreement) -> TableRow:
    shape: TableRow = {name: getattr(agreement, name) for name in ("shared", "only_a", "only_b")}
    for name, labels in SCALES.items():
        labels_agreement: LabelAgreement = getattr(agreement, name)
        kappa = {
            "kappa": labels_agreement.kappa.value,
            "low": labels_agreement.kappa.low,
            "high": labels_agreement.kappa.high,
        }
        counts = {
            "n": labels_agreement.n,
            "labels": labels,
            "confusion": labels_agreement.confusion,
            "share": labels_agreement.agreement.value,
        }
        shape[name] = counts | kappa
    return shape


def _label_tables(agreement: NuggetAgreement) -> Iterator[Table]:
    agreements = {name.replace("_", " "): getattr(agreement, name) for name in SCALES}
    rows = [
        {"labels": name, **flat(labels_agreement)}
        for name, labels_agreement in agreements.items()
        if labels_agreement.n
    ]
    alone = f"in the first alone {agreement.only_a}, in the second alone {agreement.only_b}"
    yield Table(
        "labels", "Labels of the same nuggets", _LABELS, rows, [f"Nuggets in both: {agreement.shared}; {alone}."]
    )
    if agreement.assignment.n:
        yield confusion(agreement.assignment, "Assignments", "First", "second", SCALES["assignment"])


def _without(point: Point, name: str) -> TableRow:
    return {key: value for key, value in asdict(point).items() if key != name}


def _name(point: Point) -> tuple[str, Look, str]:
    figures = f"{FIGURE.write(point.a)}, {FIGURE.write(point.b)}"
    if point.topic:
        return "", "quiet", f"{point.run}, {point.topic}: {figures}"
    return point.run, "blue", f"{point.run}: {figures}"
