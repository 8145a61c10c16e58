"""``pool``: pool the documents that runs rank first, and show which of them people still have to judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.boards.metrics import PoolBoard
from arena.cli.console import errors
from arena.cli.options import Form, RunFiles, SkipFaulty
from arena.cli.show import show
from arena.present import terminal
from retrieval_eval.data.runs import read_runs
from retrieval_eval.data.tables import write_rows
from retrieval_eval.data.trec import Faulty, Qrels, read_qrels
from retrieval_eval.scores.run_comparison import Pool, pool_runs


def pool(
    run: RunFiles,
    depth: Annotated[int, typer.Option(min=1, metavar="DEPTH", help="pool the first DEPTH documents of each run")],
    qrels: Annotated[
        str | None,
        typer.Option(metavar="FILE|irds:NAME", help="labels that there are already: TREC qrels, or a table"),
    ] = None,
    skip_faulty: SkipFaulty = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write the pairs as a table qid, did, label, rank, runs")
    ] = None,
    form: Form = "table",
) -> None:
    """Pool runs: which documents are left to judge.

    Shows what each run adds to the pool, the pool's size per query and, with --qrels, what is left to judge.
    """
    faulty: Faulty = "skip" if skip_faulty else "refuse"
    runs = read_runs(run, faulty=faulty)
    labels = read_qrels(qrels, faulty=faulty) if qrels is not None else None
    pooled = pool_runs(runs, depth)
    board = PoolBoard(pooled, runs, labels)
    terminal.show(errors, [board.notes()])
    if out is not None:
        _write_pairs(out, pooled, labels)
    show(board, form)


def _write_pairs(out: Path, pooled: Pool, labels: Qrels | None) -> None:
    labels_by_query = labels.labels if labels is not None else {}
    rows = (
        {
            "qid": query_id,
            "did": doc_id,
            "label": labels_by_query.get(query_id, {}).get(doc_id),
            "rank": min(ranks.values()),
            "runs": " ".join(sorted(ranks)),
        }
        for query_id in pooled.queries
        for doc_id, ranks in pooled.contributors(query_id)
    )
    write_rows(out, ("qid", "did", "label", "rank", "runs"), rows)
