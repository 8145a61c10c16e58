"""Comparisons of nugget scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from arena.boards.nuggets import Row, named
from arena.cli.console import output, print_json, printable
from arena.cli.tables import print_table
from arena.nuggets.comparison import Comparison, NuggetAgreement
from arena.present.numbers import SCORE
from retrieval_eval.clustered_agreement import LabelAgreement
from retrieval_eval.stats.estimate import Coefficient

_DIGITS = 8
"""Significant ones, since p-values are small."""


def print_comparison(comparison: Comparison, column: str, names: tuple[str, str], form: str) -> None:
    """Write a comparison to standard output in one of the formats of ``nuggets correlate --format``."""
    if form == "json":
        print_json(_rounded(_comparison_json(comparison, column, names)))
    else:
        _print_comparison(comparison, column, names)


def _comparison_json(found: Comparison, column: str, names: tuple[str, str]) -> Row:
    of = found.correlation
    shape: Row = {"column": column, "a": names[0], "b": names[1], "n": of.runs, "resampled": of.resampled}
    shape |= _coefficient_json("kendall", of.kendall, "kendall_tau") | _coefficient_json("spearman", of.spearman)
    shape["pairs"] = {"n": of.pairs, **_coefficient_json("kendall", of.pairs_kendall, "kendall_tau")}
    shape["per_topic"] = {
        "n": of.topics,
        **_coefficient_json("kendall", of.topics_kendall, "kendall_tau"),
        "topics": dict(zip(found.topics, of.by_topic, strict=True)),
    }
    shape["nuggets"] = found.nuggets and asdict(found.nuggets)
    shape["points"] = {"runs": [asdict(own) for own in found.runs], "topics": [asdict(own) for own in found.pairs]}
    shape["left_out"] = {
        "runs_a": found.only_a,
        "runs_b": found.only_b,
        "topics_a": found.topics_only_a,
        "topics_b": found.topics_only_b,
    }
    return shape


def _coefficient_json(name: str, found: Coefficient, value: str | None = None) -> Row:
    return {
        value or name: found.value,
        f"{name}_low": found.low,
        f"{name}_high": found.high,
        f"{name}_p": found.p_value,
    }


def _print_comparison(found: Comparison, column: str, names: tuple[str, str]) -> None:
    of = found.correlation
    rows = [
        _coefficient_row("Kendall's tau, runs", of.runs, of.kendall),
        _coefficient_row("Spearman's rho, runs", of.runs, of.spearman),
    ]
    if found.topics:
        rows.append(_coefficient_row("Kendall's tau, all (run, topic) pairs", of.pairs, of.pairs_kendall))
        rows.append(_coefficient_row("Kendall's tau by topic, mean", of.topics, of.topics_kendall))
    output.print(printable(f"{column} of {names[0]} against {names[1]}"), end="\n\n")
    print_table(
        [
            "",
        ],
        ["n", "value", "95 %\ninterval", "p"],
        rows,
    )
    unit = "topics" if of.resampled == "topic" else "runs, since no topics are known"
    output.print(f"\nintervals: bootstrap over {unit}")
    if found.nuggets is not None:
        _print_nuggets(found.nuggets)
    if front := [f"{own.run} ({own.length:.0f} words, {own.a:.4f})" for own in found.runs if own.front]:
        output.print(printable(f"no run is both shorter and better than: {', '.join(front)}"))
    left_out = {
        f"runs in {names[0]} alone": found.only_a,
        f"runs in {names[1]} alone": found.only_b,
        f"topics in {names[0]} alone": found.topics_only_a,
        f"topics in {names[1]} alone": found.topics_only_b,
    }
    for what, own in left_out.items():
        if own:
            output.print(printable(f"left out, {what}: {named(own)}"))


def _print_nuggets(found: NuggetAgreement) -> None:
    output.print(
        f"nuggets in both: {found.shared}; in the first alone {found.only_a}, in the second alone {found.only_b}"
    )
    for name, own in {
        "assignment": found.assignment,
        "assignment, two grades": found.two_grades,
        "importance": found.importance,
    }.items():
        if own.n:
            kappa = f"kappa {_signed(own.kappa)} ({SCORE.between(own.low, own.high)})"
            output.print(f"{name}: {own.share:.1%} of {own.n} labels equal, {kappa}")
    if found.assignment.n:
        _print_confusion(found.assignment)


def _print_confusion(found: LabelAgreement) -> None:
    rows = [[label, *map(str, counts)] for label, counts in zip(found.labels, found.confusion, strict=True)]
    output.print()
    print_table(["first \\ second"], [str(label) for label in found.labels], rows)
    output.print()


def _coefficient_row(name: str, n: int, found: Coefficient) -> list[str]:
    p_value = "-" if found.p_value is None else f"{found.p_value:.2g}"
    return [name, str(n), _signed(found.value), SCORE.between(found.low, found.high), p_value]


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list | tuple) else value
