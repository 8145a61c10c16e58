"""``metrics``, ``pool``, ``qrels``: runs against relevance labels, what runs give to judge, label sets compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arena.cli.console import INCOMPLETE, output, printable
from arena.cli.options import Form, ManyValues, Samples, Seed, Source, Tournament
from judges.errors import InputError

if TYPE_CHECKING:
    from retrieval_eval.data.trec import Faulty, Qrels
    from retrieval_eval.runs import Pool

SkipFaulty = Annotated[
    bool, typer.Option("--skip-faulty", help="leave out and list lines that are wrong, instead of refusing them")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("metrics", cls=ManyValues)(metrics)
    app.command("pool")(pool)
    app.add_typer(group)


def metrics(
    qrels: Annotated[
        list[str],
        typer.Option(
            metavar="FILE|irds:NAME",
            help="TREC qrels, or a table qid, did, label; others are held against the first",
        ),
    ],
    run: Annotated[list[Path], typer.Option(metavar="FILE", help="TREC runs, or tables qid, did, score")],
    measure: Annotated[
        list[str] | None, typer.Option(help="by ir_measures' name, such as nDCG@10 or RR(rel=2)@5")
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="also the scores of each query")] = False,
    baseline: Annotated[str | None, typer.Option(help="the run that others are compared with, not all pairs")] = None,
    skip_faulty: SkipFaulty = False,
    samples: Samples = 1000,
    seed: Annotated[int, typer.Option(min=0, help="of the samples and of the permutation test")] = 0,
    form: Form = "table",
) -> None:
    """Score runs by relevance labels.

    A query that a run lacks scores 0. Without --measure: nDCG@10, RR(rel=1)@5, RR(rel=2)@5, AP, P@5, Judged@10.
    """
    from arena.boards.metrics import RunMetrics
    from arena.cli.console import errors
    from arena.cli.show import show
    from arena.present import terminal
    from retrieval_eval.data.runs import read_runs
    from retrieval_eval.metrics import DEFAULT_MEASURES, parse_measures
    from retrieval_eval.runs import score_runs

    names = list(parse_measures(measure or DEFAULT_MEASURES))  # a slip in a name shows before large files are read
    faulty: Faulty = "skip" if skip_faulty else "refuse"
    labels = read_label_sets(qrels, faulty)
    runs = {one.name: one for one in read_runs(run, faulty=faulty)}
    settings: dict[str, Any] = {"baseline": baseline, "samples": samples, "seed": seed}
    scores = score_runs(
        {name: one.labels for name, one in labels.items()},
        {name: one.scores() for name, one in runs.items()},
        names,
        **settings,
    )
    board = RunMetrics(scores, labels, runs, settings, per_query)
    show(board, form)
    if form == "csv":
        terminal.show(errors, [board.notes()])


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


def pool(
    run: Annotated[list[Path], typer.Option(metavar="FILE", help="a TREC run, or a table qid, did, score; repeat")],
    depth: Annotated[int, typer.Option(min=1, help="documents taken of each run and query")],
    qrels: Annotated[
        str | None, typer.Option(metavar="FILE|irds:NAME", help="labels: TREC qrels, or a table qid, did, label")
    ] = None,
    skip_faulty: SkipFaulty = False,
    form: Form = "table",
    out: Annotated[Path | None, typer.Option(help="write the pairs to this table: qid, did, label, rank, runs")] = None,
) -> None:
    """Pool the first documents of several runs.

    Says per run what it adds, per query how much there is, and with --qrels what is left to judge.
    """
    from arena.boards.metrics import PoolBoard
    from arena.cli.console import errors
    from arena.cli.show import show
    from arena.present import terminal
    from retrieval_eval.data.runs import read_runs
    from retrieval_eval.data.trec import read_qrels
    from retrieval_eval.runs import pool_runs

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


group = typer.Typer(
    name="qrels",
    help="Relevance labels: how a judge's agree with people's, and those of a tournament.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@group.command("agreement")
def agreement(
    reference: Annotated[str, typer.Argument(metavar="HUMAN", help="the labels that others are held against")],
    others: Annotated[list[str], typer.Argument(metavar="LLM...", help="one or more other sets of labels")],
    samples: Samples = 1000,
    seed: Seed = 0,
    form: Form = "table",
) -> None:
    """Say how far label sets agree with the first, on the pairs that both have.

    Kappa (plain, linear, quadratic), Krippendorff's alpha, confusion, and agreement at each threshold; intervals by
    bootstrap over queries. Faulty lines are left out and listed, and the exit status is then 3.
    """
    from arena.boards.agreement import QrelsAgreement
    from arena.cli.console import errors
    from arena.cli.show import show
    from arena.present import terminal
    from retrieval_eval.stats.agreement import label_agreement

    labels = read_label_sets([reference, *others], "skip")
    first, *rest = labels
    agreements = {}
    for name in rest:
        try:
            agreements[name] = label_agreement(labels[first].labels, labels[name].labels, samples=samples, seed=seed)
        except InputError as error:
            raise InputError(f"{first} and {name}: {error}") from error
    board = QrelsAgreement(agreements, labels, {"samples": samples, "seed": seed})
    show(board, form)
    if form == "csv":
        terminal.show(errors, [board.notes()])
    if any(one.faulty for one in labels.values()):
        raise typer.Exit(INCOMPLETE)


@group.command("export")
def export(
    source: Source,
    out: Annotated[Path, typer.Option(help="the file to write, as trec_eval reads it; packed if it ends in .gz")],
    judge: Annotated[str | None, typer.Option(help="whose labels; of all judges together when left out")] = None,
    tournament: Tournament = None,
) -> None:
    """Write a tournament's relevance labels as qrels.

    A failed judgment is no label: it is left out and counted, and the exit status is then 3.
    """
    from arena.boards.exports import export_qrels
    from arena.cli.sources import open_tournament

    with open_tournament(source, tournament) as (store, name):
        exported = export_qrels(store, name, out, judge)
    output.print(printable(f"{exported.written:,} labels written to {out}"))
    for cause, count in exported.failed.items():
        output.print(f"{count:,} failed: {cause} ('ragleague failures' lists them)")
    if exported.left:
        output.print(f"{exported.left:,} not judged yet ('ragleague run' goes on)")
    if exported.failed or exported.left:
        raise typer.Exit(INCOMPLETE)
