"""How labels agree with people's, for people to read."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from arena.cli.agreement_shapes import agreement_json, agreement_rows, coverage
from arena.cli.console import errors, output, print_json
from arena.cli.figures import FEW_QUERIES, counted, interval, print_read, say, value
from arena.cli.markup import print_csv
from arena.cli.tables import print_table
from retrieval_eval.stats.agreement import LabelAgreement
from retrieval_eval.trec import Qrels


def print_agreement(
    agreements: Mapping[str, LabelAgreement], qrels: Mapping[str, Qrels], settings: Mapping[str, int], form: str
) -> None:
    """Write how labels agree with the first to standard output, as a table, JSON or CSV."""
    if form == "json":
        print_json(agreement_json(agreements, qrels, settings))
        return
    if form == "csv":
        print_csv(agreement_rows(agreements, qrels))
        _print_notes(agreements, qrels, errors)
        return
    _print_coefficients(agreements)
    _print_binarised(agreements)
    if len(agreements) == 1:
        _print_confusion(*agreements.values())
    output.print()
    _print_notes(agreements, qrels, output)


def _print_notes(agreements: Mapping[str, LabelAgreement], qrels: Mapping[str, Qrels], console: Console) -> None:
    reference = next(iter(qrels))
    say(f"against {reference}: {len(qrels[reference]):,} labels; figures are of the pairs that both have", console)
    for name, one in qrels.items():
        own = agreements.get(name)
        if own is not None and own.first_only + own.second_only:
            say(f"{name}: lacks {own.first_only:,} of {reference}'s pairs, has {own.second_only:,} others", console)
        if own is not None and own.queries < FEW_QUERIES:
            common = counted(own.queries, "query", "queries")
            say(f"{name}: {common} in common, so intervals are rough", console)
        print_read(name, one.notes, one.faulty, console)


def _print_coefficients(agreements: Mapping[str, LabelAgreement]) -> None:
    rows = []
    for name, own in agreements.items():
        share = coverage(own)
        cells = [f"{own.n:,}", "-" if share is None else f"{share:.1%}", value(own.agreement), value(own.kappa)]
        cells += [interval(own.kappa), value(own.kappa_linear), value(own.kappa_quadratic)]
        rows.append([name, *cells, value(own.alpha), value(own.alpha_ordinal)])
    headings = ["pairs", "coverage", "same\nlabel", "kappa", "95 %\ninterval", "linear", "quadratic"]
    print_table(["labels"], [*headings, "alpha", "alpha\nordinal"], rows)


def _print_binarised(agreements: Mapping[str, LabelAgreement]) -> None:
    rows = []
    for name, own in agreements.items():
        for one in own.binarised:
            counts = [f"{count:,}" for count in (one.both, one.first_only, one.second_only, one.neither)]
            rows.append([name, f">= {one.threshold}", *counts, value(one.kappa), interval(one.kappa)])
    if rows:
        output.print("\nrelevant or not, from each label on")
        headings = ["both", "first\nonly", "second\nonly", "neither", "kappa", "95 %\ninterval"]
        print_table(["labels", "relevant"], headings, rows)


def _print_confusion(own: LabelAgreement) -> None:
    if own.scale:
        output.print("\nrows: labels of the first; columns: of the second")
        labels = [str(label) for label in own.scale]
        rows = [[label, *(f"{count:,}" for count in row)] for label, row in zip(labels, own.confusion, strict=True)]
        print_table([""], labels, rows)
