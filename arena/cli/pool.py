"""``pool``: what several runs give to judge, and what of it has a label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from retrieval_eval.data.trec import Faulty, Qrels
    from retrieval_eval.pool import Pool


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
    form: Annotated[
        Literal["table", "json", "csv"], typer.Option("--format", help="table, json or csv (one row per query)")
    ] = "table",
    as_json: Annotated[bool, typer.Option("--json", help="the same as --format json")] = False,
    out: Annotated[Path | None, typer.Option(help="write the pairs to this table: qid, did, label, rank, runs")] = None,
) -> None:
    """Pool the first documents of several runs.

    Says per run what it adds, per query how much there is, and with --qrels what is left to judge.
    """
    from arena.boards.pool import PoolBoard
    from arena.cli.console import errors
    from arena.cli.show import show
    from arena.present import terminal
    from retrieval_eval.data.runs import read_runs
    from retrieval_eval.data.trec import read_qrels
    from retrieval_eval.pool import pool_runs

    faulty: Faulty = "skip" if skip_faulty else "refuse"
    runs = read_runs(run, faulty=faulty)
    labels = read_qrels(qrels, faulty=faulty) if qrels is not None else None
    pooled = pool_runs(runs, depth)
    board = PoolBoard(pooled, runs, labels)
    terminal.show(errors, [board.notes()])
    if out is not None:
        _write_pairs(out, pooled, labels)
    show(board, "json" if as_json else form)


def _write_pairs(out: Path, pooled: Pool, labels: Qrels | None) -> None:
    from retrieval_eval.data.tables import write_rows

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
