"""Nugget scores and comparisons as tables for people and as JSON, CSV and JSONL for programs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from arena.cli.citation_output import citations_json, print_citations
from arena.cli.console import output, print_json, printable
from arena.cli.markup import print_csv
from arena.cli.nugget_shapes import Row, run_json
from arena.cli.tables import print_table
from arena.nuggets.board import NuggetBoard, Scored
from arena.nuggets.comparison import Comparison, NuggetAgreement
from arena.nuggets.notes import interval, named, score_notes
from retrieval_eval.citations import CitationScores
from retrieval_eval.clustered_agreement import LabelAgreement
from retrieval_eval.nuggets.run_scores import RunScores
from retrieval_eval.nuggets.scores import COLUMNS, ScoreTable
from retrieval_eval.stats.estimate import Coefficient

_METRIC = {
    "v_strict": "strict_vital_score",
    "v": "vital_score",
    "w_strict": "strict_weighted_score",
    "w": "weighted_score",
    "a_strict": "strict_all_score",
    "a": "all_score",
}
"""nuggetizer's names; it writes neither of the weighted scores."""
_DIGITS = 8
"""Significant ones, since p-values are small."""


def print_scores(
    table: ScoreTable, scored: Sequence[RunScores], cited: Mapping[str, CitationScores], form: str
) -> None:
    """Write scores, and citations where they were asked for, in one of the formats of ``nuggets score --format``."""
    citations = citations_json(cited)
    if form == "json":
        runs = {own.run: run_json(own) | ({"citations": citations.get(own.run)} if cited else {}) for own in scored}
        print_json(_rounded({"runs": runs, "notes": score_notes(table, scored)}))
    elif form == "csv":
        columns = {f"citation_{name}": None for own in citations.values() for name in own}
        flat = {run: {f"citation_{name}": value for name, value in own.items()} for run, own in citations.items()}
        print_csv([_rounded({"run": own.run, **run_json(own), **columns, **flat.get(own.run, {})}) for own in scored])
    elif form == "jsonl":
        for record in _metric_records(table, scored):
            print(json.dumps(_rounded(record), allow_nan=False))
    else:
        _print_score_table(table, scored)
        if cited:
            output.print()
            print_citations(cited, [own.run for own in scored])


def print_nugget_board(board: NuggetBoard, order: Sequence[str]) -> None:
    """Write the nugget scores of a leaderboard as tables, its agents in this order and then by score."""
    if board.answers.runs:
        _print_scored("nuggets", board.answers, order)
    if board.documents.runs:
        _print_scored(f"nuggets of the first {board.depth} documents", board.documents, order)
    output.print(f"nuggets: means over {len(board.answers.table.topics)} queries")
    for why, number in Counter(board.without.values()).items():
        output.print(f"nuggets: {number} {'query' if number == 1 else 'queries'} left out: {why}")
    for what, scored in (("nuggets", board.answers), ("nuggets of documents", board.documents)):
        for note in score_notes(scored.table, scored.runs) if scored.runs else ():
            output.print(printable(f"{what}: {note}"))


def _print_scored(title: str, scored: Scored, order: Sequence[str]) -> None:
    place = {agent: at for at, agent in enumerate(order)}
    rows = []
    for own in sorted(scored.runs, key=lambda own: place.get(own.run, len(place))):
        cells = []
        for column in ("v_strict", "a"):
            mean = own.means[column]
            cells += [_number(mean.value), interval(mean.low, mean.high)]
        length = "-" if own.length is None else f"{own.length:.1f}"
        rows.append([own.run, *cells, length, f"{own.coverage:.1%}"])
    bounds = "95 %\ninterval"
    print_table([title], ["V\nstrict", bounds, "All", bounds, "length", "labels"], rows)


def print_comparison(comparison: Comparison, column: str, names: tuple[str, str], form: str) -> None:
    """Write a comparison to standard output in one of the formats of ``nuggets correlate --format``."""
    if form == "json":
        print_json(_rounded(_comparison_json(comparison, column, names)))
    else:
        _print_comparison(comparison, column, names)


def _metric_records(table: ScoreTable, scored: Sequence[RunScores]) -> Iterator[Row]:
    """Lines of nuggetizer's metrics file: each run's topics, then its means as topic ``all``."""
    place = {run: at for at, run in enumerate(table.runs)}
    for own in scored:
        at = place[own.run]
        for topic, values, answered, words in zip(
            table.topics, table.values[at].tolist(), table.answered[at].tolist(), table.words[at].tolist(), strict=True
        ):
            scores = {_METRIC[column]: value for column, value in zip(COLUMNS, values, strict=True)}
            yield {"run_id": own.run, "qid": topic, **scores, "response_length": words, "answered": answered}
        means = {_METRIC[column]: mean.value for column, mean in own.means.items()}
        yield {"run_id": own.run, "qid": "all", **means, "response_length": own.length}


def _print_score_table(table: ScoreTable, scored: Sequence[RunScores]) -> None:
    headings = ["V\nstrict", "95 %\ninterval", "V", "W\nstrict", "W", "A\nstrict", "A", "length", "missing", "failed"]
    rows = []
    for own in scored:
        shown = {column: _number(mean.value) for column, mean in own.means.items()}
        first = own.means["v_strict"]
        length = "-" if own.length is None else f"{own.length:.2f}"
        numbers = [shown["v_strict"], interval(first.low, first.high), *(shown[column] for column in COLUMNS[1:])]
        rows.append([own.run, *numbers, length, str(own.missing), str(own.failed)])
    print_table(["run"], headings, rows)
    output.print(f"\n{len(scored)} runs, means over {len(table.topics)} topics")
    for note in score_notes(table, scored):
        output.print(printable(f"- {note}"))


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
            kappa = f"kappa {_signed(own.kappa)} ({interval(own.low, own.high)})"
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
    return [name, str(n), _signed(found.value), interval(found.low, found.high), p_value]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list | tuple) else value
