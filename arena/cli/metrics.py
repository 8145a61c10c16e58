"""``metrics``: runs against relevance labels, what runs give to judge; sets of labels compared."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from arena.cli.console import INCOMPLETE
from arena.cli.options import Form, OfQueries, Samples, Seed, SkipFaulty, require_unused
from judges.errors import InputError
from judges.sections import nearest

if TYPE_CHECKING:
    from arena.boards.metrics import RunMetrics
    from retrieval_eval.data.trec import Faulty, Qrels
    from retrieval_eval.scores.run_comparison import Pool


def metrics(
    run: Annotated[list[Path], typer.Option(metavar="FILE", help="TREC runs, or tables qid, did, score")],
    qrels: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|irds:NAME",
            help="TREC qrels, or a table qid, did, label; others are held against the first",
        ),
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option(help="by ir_measures' name, such as nDCG@10 or RR(rel=2)@5")
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="also the scores of each query")] = False,
    baseline: Annotated[str | None, typer.Option(help="the run that others are compared with, not all pairs")] = None,
    pool: Annotated[
        int | None,
        typer.Option(
            metavar="DEPTH", min=1, help="no scores: what the first DEPTH documents of each run give to judge"
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="of a pool, its pairs as a table: qid, did, label, rank, runs")
    ] = None,
    table: Annotated[
        Literal["scores", "differences", "rankings", "scores-by-query"] | None,
        typer.Option(help="the table of md, html and latex, in place of the first"),
    ] = None,
    digits: Annotated[
        int | None,
        typer.Option(min=1, max=6, help="of latex's scores; else three. With --baseline, * marks differences"),
    ] = None,
    skip_faulty: SkipFaulty = False,
    queries: OfQueries = None,
    samples: Samples = 1000,
    seed: Seed = 0,
    form: Form = "table",
) -> None:
    """Score runs by relevance labels.

    A query that a run lacks scores 0. Without --measure: nDCG@10, RR(rel=1)@5, RR(rel=2)@5, AP, P@5, Judged@10.
    With --pool: what each run adds to the pool, how much there is per query, and with --qrels what is left to judge.
    """
    faulty: Faulty = "skip" if skip_faulty else "refuse"
    if pool is not None:
        require_unused(
            "--pool",
            {
                "--measure": measure,
                "--per-query": per_query,
                "--baseline": baseline,
                "--queries": queries,
                "--table": table,
                "--digits": digits,
            },
        )
        _pool(run, pool, qrels or [], faulty, out, form)
        return
    require_unused("scores", {"--out": out})
    if not qrels:
        raise InputError("--qrels: name the relevance labels that the runs are scored by")
    from arena.boards.metrics import RunMetrics
    from arena.cli.show import show_noted
    from arena.cli.sources import clusters_in
    from retrieval_eval.data.runs import read_runs, with_ids_of
    from retrieval_eval.scores.metrics import DEFAULT_MEASURES, parse_measures
    from retrieval_eval.scores.run_comparison import score_runs

    names = list(parse_measures(measure or DEFAULT_MEASURES))  # a slip in a name shows before large files are read
    labels = read_label_sets(qrels, faulty)
    labelled = {query_id for one in labels.values() for query_id in one.labels}
    runs = {one.name: with_ids_of(one, labelled) for one in read_runs(run, faulty=faulty)}
    clusters = clusters_in(queries)
    settings: dict[str, Any] = {"baseline": baseline, "samples": samples, "seed": seed}
    scores = score_runs(
        {name: one.labels for name, one in labels.items()},
        {name: one.scores() for name, one in runs.items()},
        names,
        clusters=clusters,
        missing={name: one.missing for name, one in labels.items()},
        **settings,
    )
    board = RunMetrics(scores, labels, runs, settings, per_query, clusters)
    if table is not None or digits is not None or (form == "latex" and baseline is not None):
        _show_one(board, table or "scores", digits, form)
    else:
        show_noted(board, form)


def _show_one(board: RunMetrics, name: str, digits: int | None, form: str) -> None:
    """Write one table with its notes, for a page or a paper."""
    from arena.cli.show import show_parts
    from arena.present.files import sentence
    from arena.present.table import Table

    if form not in {"md", "html", "latex"}:
        raise InputError("--table and --digits: go with --format md, html or latex")
    blocks = [block for section in board.sections() for block in section.blocks if isinstance(block, Table)]
    named = {block.name: block for block in blocks} | {"scores": board.for_paper(3 if digits is None else digits)}
    if digits is not None and name != "scores":
        raise InputError(f"--digits: only the table 'scores' takes it; leave it out with --table {name}")
    if name not in named:
        raise InputError(f"--table {name}: these runs and labels give no such table{nearest(name, named)}")
    show_parts([named[name]], form)
    for note in named[name].notes:
        sys.stdout.write(sentence(note, form))


def read_label_sets(sources: list[str], faulty: Faulty) -> dict[str, Qrels]:
    """Labels by the file's name, by its path where two have the same.

    Raises:
        InputError: a file cannot be read, holds no labels, or is given twice.
    """
    from retrieval_eval.data.trec import read_qrels

    read = [(source, read_qrels(source, faulty=faulty)) for source in sources]
    stems = [one.name for _, one in read]
    named = {source if stems.count(one.name) > 1 else one.name: one for source, one in read}
    if len(named) < len(read):
        raise InputError(f"{max(sources, key=sources.count)}: these labels are given twice")
    return named


def _pool(run: Sequence[Path], depth: int, qrels: Sequence[str], faulty: Faulty, out: Path | None, form: str) -> None:
    from arena.boards.metrics import PoolBoard
    from arena.cli.console import errors
    from arena.cli.show import show
    from arena.present import terminal
    from retrieval_eval.data.runs import read_runs
    from retrieval_eval.data.trec import read_qrels
    from retrieval_eval.scores.run_comparison import pool_runs

    if len(qrels) > 1:
        raise InputError("--qrels: one set of labels with --pool")
    runs = read_runs(run, faulty=faulty)
    labels = read_qrels(qrels[0], faulty=faulty) if qrels else None
    pooled = pool_runs(runs, depth)
    board = PoolBoard(pooled, runs, labels)
    terminal.show(errors, [board.notes()])
    if out is not None:
        _write_pairs(out, pooled, labels)
    show(board, form)


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


def compare_label_sets(reference: str, others: Sequence[str], queries: Path | None, form: str) -> None:
    """How far sets of relevance labels agree with a first one, for ``calibrate``.

    Faulty lines are left out and listed, and the exit status is then 3.
    """
    from arena.boards.agreement import QrelsAgreement
    from arena.cli.show import show_noted
    from arena.cli.sources import clusters_in
    from retrieval_eval.stats.agreement import label_agreement

    clusters = clusters_in(queries)
    labels = read_label_sets([reference, *others], "skip")
    first, *rest = labels
    agreements = {}
    for name in rest:
        try:
            agreements[name] = label_agreement(labels[first].labels, labels[name].labels, clusters=clusters)
        except InputError as error:
            raise InputError(f"{first} and {name}: {error}") from error
    show_noted(QrelsAgreement(agreements, labels, clusters), form)
    if any(one.faulty for one in labels.values()):
        raise typer.Exit(INCOMPLETE)
