"""Agreement with people's labels as text, JSON, CSV and LaTeX."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from arena.cli.console import output, print_json, rounded
from arena.cli.figures import interval
from arena.cli.tables import print_table
from arena.exam.study import Study
from retrieval_eval.label_agreement import LabelAgreement, label_agreement
from retrieval_eval.label_tables import LabelTable, binarised_table, graded_table
from retrieval_eval.metrics import Labels
from retrieval_eval.stats.estimate import Estimate


@dataclass(frozen=True)
class AgreementReport:
    """What ``exam agreement`` says.

    Attributes:
        agreement: of the labels as they are, the predicted ones first.
        graded: their table.
        binarised: by lowest predicted label that counts as relevant.
        least_judged: lowest label of people that does.
        units: what has both labels.
        columns: whose labels stand in the columns.
    """

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
    """Put it together; without ``least`` every predicted label above the lowest is tried as the border.

    Raises:
        InputError: the labels reach over more steps than any scale has.
    """
    found = label_agreement(predicted, judged)
    graded = graded_table(found)
    borders = [least] if least is not None else sorted(map(int, graded.rows))[1:]
    tables = {border: binarised_table(found, least_first=border, least_second=least_judged) for border in borders}
    return AgreementReport(found, graded, tables, least_judged)


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
            "queries": found.queries,
            **_with_interval("kappa", found.kappa),
            **_with_interval("kappa_linear", found.kappa_linear),
            **_with_interval("kappa_quadratic", found.kappa_quadratic),
            **_with_interval("alpha", found.alpha_ordinal),
            "alpha_level": "ordinal",
            "confusion": {"labels": found.scale, "counts": found.confusion},
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
            "only_predicted": found.first_only,
            "only_judged": found.second_only,
        }
    )
    return value


def _with_interval(name: str, estimate: Estimate) -> dict[str, float | None]:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _print_text(report: AgreementReport) -> None:
    found = report.agreement
    output.print(f"{found.n} {report.units} with both labels; rows: predicted, columns: {report.columns}\n")
    _print_counts(report.graded)
    linear, quadratic, alpha = found.kappa_linear.value, found.kappa_quadratic.value, found.alpha_ordinal.value
    output.print(
        f"\nkappa {_number(found.kappa.value)}, linear {_number(linear)}, quadratic {_number(quadratic)}, "
        f"Krippendorff's alpha (ordinal) {_number(alpha)}"
    )
    if found.kappa.low is not None:
        output.print(f"95 % interval of kappa over {found.queries} queries: {interval(found.kappa, 3)}")
    for table in report.binarised.values():
        output.print()
        _print_counts(table)
        output.print(f"kappa {_number(table.kappa)}")
    for count, what in (
        (found.first_only, f"no label by {report.columns}"),
        (found.second_only, "no predicted label"),
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
