"""``metrics``: score runs by relevance labels, pool runs for judging, and compare sets of labels."""

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
            help="TREC qrels, or a table qid, did, label; further ones are compared with the first",
        ),
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option(help="a measure by its name in ir_measures, such as nDCG@10 or RR(rel=2)@5")
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="also show the scores of each query")] = False,
    baseline: Annotated[
        str | None, typer.Option(help="compare the others with this run only, instead of all pairs")
    ] = None,
    pool: Annotated[
        int | None,
        typer.Option(
            metavar="DEPTH",
            min=1,
            help="no scores: show what to judge if the first DEPTH documents of each run are pooled",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="with --pool: write its pairs as a table qid, did, label, rank, runs"),
    ] = None,
    table: Annotated[
        Literal["scores", "differences", "rankings", "scores-by-query"] | None,
        typer.Option(help="the table that md, html and latex write; default: the first"),
    ] = None,
    digits: Annotated[
        int | None,
        typer.Option(
            min=1, max=6, help="decimal places of LaTeX scores; default: 3. With --baseline, * marks differences"
        ),
    ] = None,
    skip_faulty: SkipFaulty = False,
    queries: OfQueries = None,
    samples: Samples = 1000,
    seed: Seed = 0,
    form: Form = "table",
) -> None:
    """Score runs by relevance labels.

    A query without results in a run scores 0. Default measures: nDCG@10, RR(rel=1)@5, RR(rel=2)@5, AP, P@5, Judged@10.
    --pool shows what each run adds to the pool, the pool's size per query and, with --qrels, what is left to judge.
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

    names = list(
        parse_measures(measure or DEFAULT_MEASURES)
    )  # first: a wrong name is reported before large files are read
    labels = read_label_sets(qrels, faulty)
    labelled = {query_id for label_set in labels.values() for query_id in label_set.labels}
    runs = {each.name: with_ids_of(each, labelled) for each in read_runs(run, faulty=faulty)}
    clusters = clusters_in(queries)
    settings: dict[str, Any] = {"baseline": baseline, "samples": samples, "seed": seed}
    scores = score_runs(
        {name: label_set.labels for name, label_set in labels.items()},
        {name: each.scores() for name, each in runs.items()},
        names,
        clusters=clusters,
        missing={name: label_set.missing for name, label_set in labels.items()},
        **settings,
    )
    board = RunMetrics(scores, labels, runs, settings, per_query, clusters)
    if table is not None or digits is not None or (form == "latex" and baseline is not None):
        _show_table(board, table or "scores", digits, form)
    else:
        show_noted(board, form)


def _show_table(board: RunMetrics, name: str, digits: int | None, form: str) -> None:
    """Write one table with its notes, for a page or a paper."""
    from arena.cli.show import show_parts
    from arena.present.files import sentence
    from arena.present.table import Table

    if form not in {"md", "html", "latex"}:
        raise InputError("--table and --digits: go with --format md, html or latex")
    blocks = [block for section in board.sections() for block in section.blocks if isinstance(block, Table)]
    tables = {block.name: block for block in blocks} | {"scores": board.for_paper(3 if digits is None else digits)}
    if digits is not None and name != "scores":
        raise InputError(f"--digits: only the table 'scores' takes it; leave it out with --table {name}")
    if name not in tables:
        raise InputError(f"--table {name}: these runs and labels give no such table{nearest(name, tables)}")
    show_parts([tables[name]], form)
    for note in tables[name].notes:
        sys.stdout.write(sentence(note, form))


def read_label_sets(sources: list[str], faulty: Faulty) -> dict[str, Qrels]:
    """Sets of labels by file name; by path if two files have the same name.

    Raises:
        InputError: a file cannot be read, has no labels, or is given twice.
    """
    from retrieval_eval.data.trec import read_qrels

    label_sets = [(source, read_qrels(source, faulty=faulty)) for source in sources]
    stems = [labels.name for _, labels in label_sets]
    by_name = {source if stems.count(labels.name) > 1 else labels.name: labels for source, labels in label_sets}
    if len(by_name) < len(label_sets):
        raise InputError(f"{max(sources, key=sources.count)}: these labels are given twice")
    return by_name


def _pool(run: Sequence[Path], depth: int, qrels: Sequence[str], faulty: Faulty, out: Path | None, form: str) -> None:
    from arena.boards.metrics import PoolBoard
    from arena.cli.console import errors
    from arena.cli.show import show
    from arena.present import terminal
    from retrieval_eval.data.runs import read_runs
    from retrieval_eval.data.trec import read_qrels
    from retrieval_eval.scores.run_comparison import pool_runs

    if len(qrels) > 1:
        raise InputError("--qrels: name only one set of labels with --pool")
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


def compare_label_sets(reference: str, others: Sequence[str], queries: Path | None, form: str) -> None:
    """Compare sets of relevance labels with a reference set and write the agreement, for ``calibrate``.

    Faulty lines are skipped and listed; the exit status is then 3.
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
    if any(label_set.faulty for label_set in labels.values()):
        raise typer.Exit(INCOMPLETE)
