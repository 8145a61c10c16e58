"""``metrics``: runs against relevance labels of people and of judges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.cli.options import Form, ManyValues
from judges.errors import InputError

if TYPE_CHECKING:
    from retrieval_eval.data.trec import Faulty, Qrels


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("metrics", cls=ManyValues)(metrics)


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
    skip_faulty: Annotated[
        bool, typer.Option("--skip-faulty", help="leave out and list lines that are wrong, instead of refusing them")
    ] = False,
    samples: Annotated[int, typer.Option(min=0, help="bootstrap samples of the intervals")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="of the samples and of the permutation test")] = 0,
    form: Form = "table",
    as_json: Annotated[bool, typer.Option("--json", help="the same as --format json")] = False,
) -> None:
    """Score runs by relevance labels: no store, no configuration.

    A query that a run lacks scores 0. Without --measure: nDCG@10, RR(rel=1)@5, RR(rel=2)@5, AP, P@5, Judged@10.
    """
    from arena.boards.metrics import RunMetrics
    from arena.cli.console import errors
    from arena.cli.show import show
    from arena.present import terminal
    from retrieval_eval.data.runs import read_runs
    from retrieval_eval.metrics import DEFAULT_MEASURES, parse_measures
    from retrieval_eval.run_scores import ScoreSettings, score_runs

    names = list(parse_measures(measure or DEFAULT_MEASURES))  # a slip in a name shows before large files are read
    faulty: Faulty = "skip" if skip_faulty else "refuse"
    labels = read_label_sets(qrels, faulty)
    runs = {one.name: one for one in read_runs(run, faulty=faulty)}
    scores = score_runs(
        {name: one.labels for name, one in labels.items()},
        {name: one.scores() for name, one in runs.items()},
        names,
        ScoreSettings(baseline, samples, seed),
    )
    board = RunMetrics(scores, labels, runs, per_query)
    show(board, "json" if as_json else form)
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
