"""Commands ``metrics``, ``agreement`` and ``pool``: score runs, compare relevance labels, list documents to label."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from arena.boards.metrics import PoolBoard, QrelsAgreement, RunMetrics
from arena.cli.console import INCOMPLETE, errors
from arena.cli.options import Form, OfQueries, RunFiles, Samples, Seed, SkipFaulty
from arena.cli.show import show, show_noted, show_parts
from arena.cli.sources import clusters_in
from arena.data.corpus import spanned_documents
from arena.present import terminal
from arena.present.files import sentence
from arena.present.table import Table
from judges.errors import InputError
from judges.sections import nearest
from retrieval_eval.data.runs import read_runs, with_ids_of
from retrieval_eval.data.tables import write_rows
from retrieval_eval.data.trec import Faulty, Qrels, read_qrels
from retrieval_eval.scores.metrics import DEFAULT_MEASURES, parse_measures
from retrieval_eval.scores.run_comparison import Pool, pool_runs, score_runs
from retrieval_eval.stats.agreement import label_agreement


def metrics(
    run: RunFiles,
    qrels: Annotated[
        list[str],
        typer.Option(
            metavar="FILE|irds:NAME",
            help="file of labels: TREC qrels, or a table qid, did, label; if repeated, all are compared with the first",
        ),
    ],
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE|FOLDER",
            help="documents and chunks, for labels of spans (did#start-end) if the chunks' ids name no place",
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(help="measure by its name in ir_measures, such as nDCG@10 or RR(rel=2)@5; may be repeated"),
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="also show the scores of each query")] = False,
    baseline: Annotated[
        str | None,
        typer.Option(help="name of a run to compare all others with, instead of comparing all pairs of runs"),
    ] = None,
    table: Annotated[
        Literal["scores", "differences", "rankings", "scores-by-query"] | None,
        typer.Option(help="table to write in the formats md, html and latex; default: the first"),
    ] = None,
    digits: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=6,
            help="decimal places of the table 'scores'; default: 3. In it, * marks differences from --baseline",
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
    """
    faulty: Faulty = "skip" if skip_faulty else "refuse"
    names = list(
        parse_measures(measure or DEFAULT_MEASURES)
    )  # first: a wrong name is reported before large files are read
    labels = read_label_sets(qrels, faulty)
    labelled = {query_id for label_set in labels.values() for query_id in label_set.labels}
    runs = {each.name: with_ids_of(each, labelled) for each in read_runs(run, faulty=faulty)}
    spanned = {doc_id for label_set in labels.values() for doc_id in label_set.documents}
    documents = spanned_documents(corpus or (), spanned)
    retrieved = {doc_id for each in runs.values() for ranking in each.rankings.values() for doc_id in ranking.doc_ids}
    labels = {name: label_set.on_chunks(retrieved, documents) for name, label_set in labels.items()}
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
    if form not in {"md", "html", "latex"}:
        raise InputError("--table and --digits: apply only to --format md, html or latex; add one of these formats")
    blocks = [block for section in board.sections() for block in section.blocks if isinstance(block, Table)]
    tables = {block.name: block for block in blocks} | {"scores": board.for_paper(3 if digits is None else digits)}
    if digits is not None and name != "scores":
        raise InputError(f"--digits: applies only to the table 'scores'; leave it out with --table {name}")
    if name not in tables:
        raise InputError(
            f"--table {name}: the output for these runs and labels has no such table{nearest(name, tables)}"
        )
    show_parts([tables[name]], form)
    for note in tables[name].notes:
        sys.stdout.write(sentence(note, form))


def read_label_sets(sources: list[str], faulty: Faulty) -> dict[str, Qrels]:
    """Read files of relevance labels; a set's key is its file's name, or its path if two files have the same name."""
    label_sets = [(source, read_qrels(source, faulty=faulty)) for source in sources]
    stems = [labels.name for _, labels in label_sets]
    by_name = {source if stems.count(labels.name) > 1 else labels.name: labels for source, labels in label_sets}
    if len(by_name) < len(label_sets):
        raise InputError(f"{max(sources, key=sources.count)}: this file of labels is given twice; give it once")
    return by_name


def agreement(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|irds:NAME...",
            help="files of labels to compare with people's: TREC qrels, or tables qid, did, label",
        ),
    ],
    people: Annotated[
        str, typer.Option(metavar="FILE|irds:NAME", help="file of people's labels to compare the others with")
    ],
    queries: OfQueries = None,
    form: Form = "table",
) -> None:
    """Compare sets of relevance labels with people's.

    Shows kappa, alpha, the confusion matrix, and the agreement on what is relevant at each threshold. Faulty lines are
    skipped and listed; the exit status is then 3.
    """
    clusters = clusters_in(queries)
    labels = read_label_sets([people, *files], "skip")
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


def pool(
    run: RunFiles,
    depth: Annotated[
        int, typer.Option(min=1, metavar="DEPTH", help="number of documents to pool from the top of each run")
    ],
    qrels: Annotated[
        str | None,
        typer.Option(metavar="FILE|irds:NAME", help="file of existing labels: TREC qrels, or a table qid, did, label"),
    ] = None,
    skip_faulty: SkipFaulty = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="file to write the pooled documents into, a table: qid, did, label, rank, runs"
        ),
    ] = None,
    form: Form = "table",
) -> None:
    """Pool runs: which documents are left to judge.

    Shows how many documents each run adds to the pool, the pool's size per query and, with --qrels, how many documents
    of the pool have no label.
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
