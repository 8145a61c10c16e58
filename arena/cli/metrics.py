"""``metrics``: score runs by relevance labels."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import typer

from arena.boards.metrics import RunMetrics
from arena.cli.options import Form, OfQueries, RunFiles, Samples, Seed, SkipFaulty
from arena.cli.show import show_noted, show_parts
from arena.cli.sources import clusters_in
from arena.present.files import sentence
from arena.present.table import Table
from judges.errors import InputError
from judges.sections import nearest
from retrieval_eval.data.runs import read_runs, with_ids_of
from retrieval_eval.data.trec import Faulty, Qrels, read_qrels
from retrieval_eval.scores.metrics import DEFAULT_MEASURES, parse_measures
from retrieval_eval.scores.run_comparison import score_runs


def metrics(
    run: RunFiles,
    qrels: Annotated[
        list[str],
        typer.Option(
            metavar="FILE|irds:NAME",
            help="TREC qrels, or a table qid, did, label; further ones are compared with the first",
        ),
    ],
    measure: Annotated[
        list[str] | None, typer.Option(help="a measure by its name in ir_measures, such as nDCG@10 or RR(rel=2)@5")
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="also show the scores of each query")] = False,
    baseline: Annotated[
        str | None, typer.Option(help="compare the others with this run only, instead of all pairs")
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
    """
    faulty: Faulty = "skip" if skip_faulty else "refuse"
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
    """Print one table with its notes, to paste into a page or a paper."""
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
    """Read sets of labels, by file name, or by path if two files have the same name.

    Raises:
        InputError: a file cannot be read, has no labels, or is given twice.
    """
    label_sets = [(source, read_qrels(source, faulty=faulty)) for source in sources]
    stems = [labels.name for _, labels in label_sets]
    by_name = {source if stems.count(labels.name) > 1 else labels.name: labels for source, labels in label_sets}
    if len(by_name) < len(label_sets):
        raise InputError(f"{max(sources, key=sources.count)}: these labels are given twice")
    return by_name
