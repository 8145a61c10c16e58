"""``pool``: what several runs give to judge, and what of it has a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arena.cli.formats import Format

if TYPE_CHECKING:
    from retrieval_eval.pool import Pool
    from retrieval_eval.trec import Faulty, Qrels, Run


_SHOWN = 10
"""Faulty lines of one file that are listed for people; the JSON has all."""


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("pool")(pool)


def pool(
    run: Annotated[list[Path], typer.Option(metavar="FILE", help="a TREC run, or a table qid, did, score; repeat")],
    depth: Annotated[int, typer.Option(min=1, help="documents taken of each run and query")],
    qrels: Annotated[
        str | None, typer.Option(metavar="FILE|irds:NAME", help="labels: TREC qrels, or a table qid, did, label")
    ] = None,
    skip_faulty: Annotated[
        bool, typer.Option("--skip-faulty", help="leave out and list lines that are wrong, instead of refusing them")
    ] = False,
    form: Annotated[Format, typer.Option("--format", help="table, json or csv (one row per query)")] = (Format.TABLE),
    as_json: Annotated[bool, typer.Option("--json", help="the same as --format json")] = False,
    out: Annotated[Path | None, typer.Option(help="write the pairs to this table: qid, did, label, rank, runs")] = None,
) -> None:
    """Pool the first documents of several runs.

    Says per run what it adds, per query how much there is, and with --qrels what is left to judge.
    """
    from arena.cli.console import errors, print_json, printable
    from arena.cli.markup import print_csv
    from retrieval_eval.pool import pool_runs
    from retrieval_eval.trec_files import read_qrels, read_runs

    faulty: Faulty = "skip" if skip_faulty else "refuse"
    runs = read_runs(run, faulty=faulty)
    labels = read_qrels(qrels, faulty=faulty) if qrels is not None else None
    pooled = pool_runs(runs, depth)
    sources: list[Run | Qrels] = [*runs, *([labels] if labels is not None else [])]
    for note in _notes(sources, pooled, labels):
        errors.print(printable(note))
    if out is not None:
        _write_pairs(out, pooled, labels)
    if form is Format.JSON or as_json:
        print_json(_shape(sources, pooled, labels))
    elif form is Format.CSV:
        print_csv(_query_rows(pooled, labels))
    else:
        _print_tables(pooled, labels)


def _query_rows(pooled: Pool, labels: Qrels | None) -> list[dict[str, Any]]:
    rows = []
    for query_id, query in pooled.queries.items():
        row: dict[str, Any] = {"qid": query_id, "pairs": len(query.doc_ids)}
        if labels is not None:
            known = labels.labels.get(query_id, {})
            row["labelled"] = sum(doc_id in known for doc_id in query.doc_ids)
            row["unlabelled"] = row["pairs"] - row["labelled"]
        rows.append(row)
    return rows


def _shape(sources: Sequence[Run | Qrels], pooled: Pool, labels: Qrels | None) -> dict[str, Any]:
    return {
        "depth": pooled.depth,
        "pairs": len(pooled),
        "unlabelled": None if labels is None else sum(1 for _ in pooled.unlabelled(labels)),
        "runs": {name: asdict(share) for name, share in pooled.shares(labels).items()},
        "queries": {row.pop("qid"): row for row in _query_rows(pooled, labels)},
        "notes": {source.name: [asdict(note) for note in source.notes] for source in sources},
        "faulty": {source.name: [asdict(line) for line in source.faulty] for source in sources},
    }


def _print_tables(pooled: Pool, labels: Qrels | None) -> None:
    from arena.cli.console import output
    from arena.cli.tables import print_table

    rows = _query_rows(pooled, labels)
    known = f", {sum(row['unlabelled'] for row in rows)} of them without a label" if labels is not None else ""
    output.print(f"pool of depth {pooled.depth}: {len(pooled)} documents for {len(rows)} queries{known}\n")
    shares = [(name, asdict(share)) for name, share in pooled.shares(labels).items()]
    counted = {"queries": "queries", "documents": "documents", "alone": "only in\nthis run", "labelled": "labelled"}
    if labels is None:
        del counted["labelled"]
    rows_of_runs = [[name, *(str(share[count]) for count in counted)] for name, share in shares]
    print_table(["run"], list(counted.values()), rows_of_runs)
    output.print()
    numbers = [name for name in rows[0] if name != "qid"]
    print_table(["query"], numbers, [[str(row[name]) for name in ("qid", *numbers)] for row in rows])


def _notes(sources: Sequence[Run | Qrels], pooled: Pool, labels: Qrels | None) -> list[str]:
    """What a reader of the figures should know, a line each."""
    notes = []
    for source in sources:
        notes += [f"note: {source.name}: {note.text}" for note in source.notes]
        notes += [f"left out: {source.name}: {fault}" for fault in source.faulty[:_SHOWN]]
        if len(source.faulty) > _SHOWN:
            notes.append(f"left out: {source.name}: {len(source.faulty)} lines in all")
    if labels is not None and (unknown := [query_id for query_id in pooled.queries if query_id not in labels.labels]):
        notes.append(f"note: queries of the pool without any label: {len(unknown)}, such as {unknown[0]!r}")
    return notes


def _write_pairs(out: Path, pooled: Pool, labels: Qrels | None) -> None:
    from judges.tables import write_rows

    known = labels.labels if labels is not None else {}
    rows = (
        {
            "qid": query_id,
            "did": doc_id,
            "label": known.get(query_id, {}).get(doc_id),
            "rank": min(ranks.values()),
            "runs": " ".join(sorted(ranks)),
        }
        for query_id in pooled.queries
        for doc_id, ranks in pooled.contributors(query_id)
    )
    write_rows(out, ("qid", "did", "label", "rank", "runs"), rows)
