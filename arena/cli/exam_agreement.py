"""Agreement with people's labels as text, JSON, CSV and LaTeX."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from arena.cli.console import output, print_json
from arena.cli.exam_shapes import rounded
from arena.cli.tables import print_table
from arena.exam.study import Study
from retrieval_eval.exam.label_tables import (
    LabelAgreement,
    Labels,
    LabelTable,
    PairedLabels,
    binarised_table,
    graded_table,
    label_agreement,
    pair_labels,
)


@dataclass(frozen=True)
class AgreementReport:
    """What ``exam agreement`` says.

    Attributes:
        pairs: labels of both sides.
        agreement: on the labels as they are.
        graded: their table.
        binarised: by lowest predicted label that counts as relevant.
        least_judged: lowest label of people that does.
        units: what has both labels.
        columns: whose labels stand in the columns.
    """

    pairs: PairedLabels
    agreement: LabelAgreement
    graded: LabelTable
    binarised: dict[int, LabelTable]
    least_judged: int
    units: str = "passages"
    columns: str = "people"


def grades_report(first: Study, second: Study, least: int | None) -> AgreementReport:
    """How far two gradings give the same passage and item the same grade; ``least`` is the lowest that covers."""
    level = least or min(first.usual_level, second.usual_level)
    report = agreement_report(_pair_labels(first), _pair_labels(second), level, level)
    return replace(report, units="pairs of passage and item", columns="the other grading")


def _pair_labels(study: Study) -> Labels:
    labels: dict[str, dict[str, int]] = {}
    for entry in study.grades:
        if entry.grade is not None:
            labels.setdefault(entry.query_id, {})[f"{entry.passage_id}\n{entry.item_id}"] = entry.grade
    return labels


def agreement_report(predicted: Labels, judged: Labels, least: int | None, least_judged: int) -> AgreementReport:
    """Put it together; without ``least`` every predicted label above the lowest is tried as the border."""
    pairs = pair_labels(predicted, judged)
    borders = [least] if least is not None else sorted(set(pairs.predicted))[1:]
    tables = {border: binarised_table(pairs, least_predicted=border, least_judged=least_judged) for border in borders}
    return AgreementReport(pairs, label_agreement(pairs), graded_table(pairs), tables, least_judged)


def print_agreement(report: AgreementReport, form: str) -> None:
    """Write it as ``table``, ``json``, ``csv`` or ``latex``."""
    if form == "json":
        print_json(_json(report))
    elif form == "csv":
        _print_csv(report)
    elif form == "latex":
        print(_latex(report))
    else:
        _print_text(report)


def _json(report: AgreementReport) -> dict[str, Any]:
    found = report.agreement
    value: dict[str, Any] = rounded(
        {
            "n": found.n,
            "kappa": found.kappa,
            "kappa_linear": found.kappa_linear,
            "kappa_quadratic": found.kappa_quadratic,
            "alpha": found.alpha,
            "alpha_level": "ordinal",
            "confusion": {"labels": list(found.labels), "counts": found.confusion.tolist()},
            "binarised": [
                {
                    "min_grade": border,
                    "min_label": report.least_judged,
                    "kappa": table.kappa,
                    "rows": list(table.rows),
                    "columns": list(table.columns),
                    "counts": table.counts.tolist(),
                }
                for border, table in report.binarised.items()
            ],
            "only_predicted": report.pairs.only_predicted,
            "only_judged": report.pairs.only_judged,
        }
    )
    return value


def _print_text(report: AgreementReport) -> None:
    found, pairs = report.agreement, report.pairs
    output.print(f"{found.n} {report.units} with both labels; rows: predicted, columns: {report.columns}\n")
    _print_counts(report.graded)
    output.print(
        f"\nkappa {_number(found.kappa)}, linear {_number(found.kappa_linear)}, quadratic "
        f"{_number(found.kappa_quadratic)}, Krippendorff's alpha (ordinal) {_number(found.alpha)}"
    )
    for table in report.binarised.values():
        output.print()
        _print_counts(table)
        output.print(f"kappa {_number(table.kappa)}")
    for count, what in (
        (pairs.only_predicted, f"no label by {report.columns}"),
        (pairs.only_judged, "no predicted label"),
    ):
        if count:
            output.print(f"\n{count} {report.units} with {what} are left out")


def _print_counts(table: LabelTable) -> None:
    rows = [[name, *map(str, counts), str(sum(counts))] for name, counts in _lines(table)]
    print_table(("predicted",), [*table.columns, "total"], rows)


def _print_csv(report: AgreementReport) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("table", "predicted", "judged", "count", "total", "kappa"))
    for name, table in _named(report):
        for row, counts in _lines(table):
            for column, count in zip(table.columns, counts, strict=True):
                writer.writerow((name, row, column, count, sum(counts), rounded(table.kappa)))


def _latex(report: AgreementReport) -> str:
    """Tables for a paper; names in them are digits and signs of ours, so nothing needs escaping but the comparison."""
    found = []
    for name, table in _named(report):
        head = " & ".join(["Grade", *map(_math, table.columns), "Total", r"Cohen's $\kappa$"])
        lines = [
            " & ".join([_math(row), *map(str, counts), str(sum(counts)), _number(table.kappa) if not at else ""])
            for at, (row, counts) in enumerate(_lines(table))
        ]
        columns = "l" + "r" * (len(table.columns) + 2)
        begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
        found.append("\n".join([f"% {name}", begin, rf"{head} \\ \hline", *(rf"{line} \\" for line in lines), end]))
    return "\n\n".join(found)


def _named(report: AgreementReport) -> list[tuple[str, LabelTable]]:
    return [("graded", report.graded), *((f"min_grade {border}", table) for border, table in report.binarised.items())]


def _lines(table: LabelTable) -> list[tuple[str, Sequence[int]]]:
    return list(zip(table.rows, table.counts.tolist(), strict=True))


def _math(name: str) -> str:
    return name.replace("-", "--") if name[0].isdigit() else f"${name.replace('>=', chr(92) + 'ge ')}$"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
