"""Two conditions of a nugget evaluation: how alike they order runs, and where their labels agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

from arena.boards.nuggets import exact, named
from arena.nuggets.comparison import SCALES, Comparison, NuggetAgreement, PairPoint, RunPoint
from arena.present.blocks import Board, Remarks, Section
from arena.present.numbers import COUNT, P_VALUE, PERCENT_1, SCORE, listed, with_interval
from arena.present.picture import Chart, Dot, Look
from arena.present.table import Column, Table
from retrieval_eval.stats.agreement import LabelAgreement
from retrieval_eval.stats.estimate import Coefficient

Row: TypeAlias = dict[str, Any]

_ORDERS: Final = (
    Column("measure", "Correlation"),
    Column("n", "n", COUNT, "Runs, pairs of a run and a query, or queries."),
    Column("value", "Value", SCORE, "1 is the same order, 0 unrelated, -1 the reverse.", interval="95% interval"),
    Column("p", "p", P_VALUE, "How likely so clear a correlation would be between unrelated orders."),
)
_LABELS: Final = (
    Column("labels", "Labels"),
    Column("n", "Labels in both", COUNT),
    Column("share", "Equal", PERCENT_1, "Share of the labels that are equal."),
    Column("kappa", "Kappa", SCORE, interval="95% interval"),
)


@dataclass(frozen=True, slots=True)
class NuggetComparison(Board):
    """Two conditions by their names, and the score of them that is compared."""

    comparison: Comparison
    column: str
    names: tuple[str, str]

    def sections(self) -> list[Section]:  # noqa: D102
        said, of = self.comparison, self.comparison.correlation
        rows = [
            _order("Kendall's tau, runs", of.runs, of.kendall),
            _order("Spearman's rho, runs", of.runs, of.spearman),
        ]
        if said.topics:
            rows.append(_order("Kendall's tau, all (run, query) pairs", of.pairs, of.pairs_kendall))
            rows.append(_order("Kendall's tau by query, mean", of.topics, of.topics_kendall))
        unit = "queries" if of.resampled == "topic" else "runs, since no queries are known"
        title = f"{self.column} of {self.names[0]} against {self.names[1]}"
        notes = [f"Intervals: bootstrap over {unit}.", *self._left_out()]
        orders = Table("orders", title, _ORDERS, rows, notes)
        found = [Section("orders", "Order of the runs", "", [orders, *self._charts()])]
        if said.nuggets is not None:
            found.append(Section("labels", "Labels of nuggets", "", list(_label_tables(said.nuggets))))
        front = [f"{own.run} ({own.length:.0f} words, {own.a:.3f})" for own in said.runs if own.front]
        if front:
            found.append(
                Section("front", "Front", "", [Remarks([f"No run is both shorter and better than {listed(front)}."])])
            )
        return found

    def _charts(self) -> Iterator[Chart]:
        """Both scores, and the first one against length with its front (Pradeep et al. 2024, Figures 6 and 7)."""
        said = self.comparison
        points: list[RunPoint | PairPoint] = [*said.runs, *said.pairs]
        first, second = (f"{self.column}, {name}" for name in self.names)
        tau = with_interval(said.correlation.kendall, SCORE)
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
            f"Left out, {what[key[:-2]]} in {name[key[-1]]} alone: {named(names)}."
            for key, names in self.comparison.left_out.items()
            if names
        ]

    def json(self) -> Any:  # noqa: D102
        said, of = self.comparison, self.comparison.correlation
        shape: Row = {
            "column": self.column,
            "a": self.names[0],
            "b": self.names[1],
            "n": of.runs,
            "resampled": of.resampled,
            **_coefficient("kendall", of.kendall, "kendall_tau"),
            **_coefficient("spearman", of.spearman),
            "pairs": {"n": of.pairs, **_coefficient("kendall", of.pairs_kendall, "kendall_tau")},
            "per_topic": {
                "n": of.topics,
                **_coefficient("kendall", of.topics_kendall, "kendall_tau"),
                "topics": dict(zip(said.topics, of.by_topic, strict=True)),
            },
            "nuggets": None if said.nuggets is None else _nuggets_json(said.nuggets),
            "points": {"runs": [asdict(own) for own in said.runs], "topics": [asdict(own) for own in said.pairs]},
            "left_out": said.left_out,
        }
        return exact(shape)


def _nuggets_json(found: NuggetAgreement) -> Row:
    counts = {name: getattr(found, name) for name in ("shared", "only_a", "only_b")}
    return counts | {name: _labels_json(getattr(found, name), labels) for name, labels in SCALES.items()}


def _labels_json(own: LabelAgreement, names: Sequence[str]) -> Row:
    kappa = {"kappa": own.kappa.value, "low": own.kappa.low, "high": own.kappa.high}
    return {"n": own.n, "labels": names, "confusion": own.confusion, "share": own.agreement.value, **kappa}


def _label_tables(found: NuggetAgreement) -> Iterator[Table]:
    compared: dict[str, LabelAgreement] = {name.replace("_", " "): getattr(found, name) for name in SCALES}
    rows: list[Row] = [
        {"labels": name, "n": own.n, "share": own.agreement.value, "kappa": own.kappa}
        for name, own in compared.items()
        if own.n
    ]
    alone = f"in the first alone {found.only_a}, in the second alone {found.only_b}"
    yield Table("labels", "Labels of the same nuggets", _LABELS, rows, [f"Nuggets in both: {found.shared}; {alone}."])
    if found.assignment.n:
        labels = SCALES["assignment"]
        columns = [Column("label", "First, second across"), *(Column(label, label, COUNT) for label in labels)]
        counts = zip(labels, found.assignment.confusion, strict=True)
        rows = [{"label": label, **dict(zip(labels, row, strict=True))} for label, row in counts]
        yield Table("confusion", "Assignments", columns, rows)


def _name(point: RunPoint | PairPoint) -> tuple[str, Look, str]:
    """Name, look and words of a point."""
    figures = f"{SCORE.write(point.a)}, {SCORE.write(point.b)}"
    if isinstance(point, RunPoint):
        return point.run, "blue", f"{point.run}: {figures}"
    return "", "quiet", f"{point.run}, {point.topic}: {figures}"


def _order(name: str, n: int, found: Coefficient) -> Row:
    return {"measure": name, "n": n, "value": found, "p": found.p_value}


def _coefficient(name: str, found: Coefficient, value: str = "") -> Row:
    ends = {f"{name}_low": found.low, f"{name}_high": found.high, f"{name}_p": found.p_value}
    return {value or name: found.value, **ends}
