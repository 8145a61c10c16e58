"""``nuggets``: facts made of documents and assigned to answers, scores of answers, and two ways of getting them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from arena.cli.options import RetryFailed
from judges.errors import InputError

group = typer.Typer(help="Nugget evaluation: making, assigning, scoring and comparing.", no_args_is_help=True)

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="a tournament's YAML file with a section nuggets")]
Force = Annotated[bool, typer.Option("--force", help="write over a file that is there")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(group, name="nuggets")


@group.command()
def create(
    config: ConfigPath,
    out: Annotated[Path, typer.Option(metavar="FILE", help="where the nuggets go")] = Path("nuggets.jsonl"),
    for_editing: Annotated[
        bool, typer.Option("--for-editing", help="for people to edit: whole lists, without importance")
    ] = False,
    force: Force = False,
    retry_failed: RetryFailed = False,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable summary")] = False,
) -> None:
    """Make each query's nuggets of its relevant documents, and write them as nuggetizer does.

    Labels documents that have no label yet. Run again, it goes on where it stopped. Exit status 3: some query has no
    nuggets because a judgment failed or is missing.
    """
    from arena.cli.nugget_runs import create_nuggets

    create_nuggets(config, out, for_editing=for_editing, force=force, retry_failed=retry_failed, as_json=as_json)


@group.command()
def assign(
    config: ConfigPath,
    nuggets: Annotated[
        Path | None, typer.Option(metavar="FILE", help="these nuggets in place of the configuration's")
    ] = None,
    answers: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="these answers, as a table or as TREC RAG runs; may be repeated"),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="where assignments go")] = Path("assignments.jsonl"),
    documents_out: Annotated[
        Path, typer.Option(metavar="FILE", help="where those of documents go, with 'assign: {texts: documents}'")
    ] = Path("passages.jsonl"),
    force: Force = False,
    retry_failed: RetryFailed = False,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable summary")] = False,
) -> None:
    """Hold answers and documents against nuggets, and write which they state, answers for 'nuggets score'.

    Without --nuggets, those of the configuration's bank or those that 'nuggets create' has made. Exit status 3: some
    label failed or is missing; the file has it as failed.
    """
    from arena.cli.nugget_runs import assign_nuggets

    files = (nuggets, answers or [])
    assign_nuggets(config, files, (out, documents_out), force=force, retry_failed=retry_failed, as_json=as_json)


@group.command()
def edit(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="the nuggets as they were")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="the same file as a person has edited it")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="where the edited nuggets go, with their history")],
    by: Annotated[str, typer.Option(help="who edited them")] = "",
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable changes")] = False,
) -> None:
    """Show what a person added, removed, merged, split or weighed otherwise, and keep it as history.

    A nugget in AFTER may name with "from" the texts of BEFORE that it was made of. Queries that AFTER lacks stay
    as they were.
    """
    from arena.cli.nugget_runs import edit_nuggets, require_free
    from arena.cli.show import show

    require_free(out, force)
    show(edit_nuggets(before, after, out, by), "json" if as_json else "table")


@group.command()
def score(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="assignments as nuggetizer or NIST write them")
    ],
    topics: Annotated[
        Path | None, typer.Option(help="the topic set; without it the topics that any run answered")
    ] = None,
    answers: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="the answers with their citations, for citation precision; with --qrels"),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="labels of the documents cited; with --answers")
    ] = None,
    relevant: Annotated[int, typer.Option(help="the lowest label that counts as relevant")] = 1,
    bootstrap: Annotated[int, typer.Option(min=0, help="bootstrap samples of the intervals")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="of the samples")] = 0,
    form: Annotated[
        Literal["table", "json", "csv", "jsonl", "md", "html", "latex"],
        typer.Option("--format", help="how to write it; jsonl: nuggetizer's metrics by topic"),
    ] = "table",
    as_json: Annotated[bool, typer.Option("--json", help="the same as --format json")] = False,
) -> None:
    """Six scores of each run: vital, weighted and all nuggets, strict or with half credit for partial support.

    A run's score is the mean over the topic set; a topic it did not answer counts 0. Topics with failed labels are
    left out of its means and counted. With --answers and --qrels also which share of the documents cited is relevant.
    """
    import json

    from arena.boards.nuggets import NuggetScores
    from arena.cli.show import show
    from arena.nuggets.board import scored
    from arena.nuggets.citations import read_cited
    from retrieval_eval.citations import citation_scores
    from retrieval_eval.nuggets.files import read_assignments
    from retrieval_eval.nuggets.scores import score_table
    from retrieval_eval.topics import read_topics

    table = score_table(read_assignments(files), None if topics is None else list(read_topics(topics)))
    if topics is not None and not table.answered.any():
        raise InputError(f"{topics}: none of its topics is in {', '.join(map(str, files))}; are the ids the same?")
    if (qrels is None) is not (not answers):
        raise InputError("--answers and --qrels go together: whether a document cited is relevant, a label says")
    cited = {}
    if qrels is not None:
        documents, labels = read_cited(answers or [], qrels, table)
        cited = citation_scores(documents, labels, relevant=relevant, samples=bootstrap, seed=seed)
    board = NuggetScores(scored(table, bootstrap, seed), table, cited)
    if form == "jsonl" and not as_json:
        for line in board.metrics():
            print(json.dumps(line, allow_nan=False))
    else:
        show(board, "json" if as_json else form)


@group.command()
def correlate(
    first: Annotated[Path, typer.Argument(metavar="A", help="scores or assignments of one condition")],
    second: Annotated[Path, typer.Argument(metavar="B", help="those of another, for the same runs")],
    column: Annotated[str, typer.Option(help="the score to compare")] = "v_strict",
    plot: Annotated[Path | None, typer.Option(help="write the scatter plots to this .svg, .png or .html file")] = None,
    bootstrap: Annotated[int, typer.Option(min=0, help="bootstrap samples of the intervals")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="of the samples")] = 0,
    form: Annotated[
        Literal["table", "json", "csv", "md", "html", "latex"], typer.Option("--format", help="how to write it")
    ] = "table",
    as_json: Annotated[bool, typer.Option("--json", help="the same as --format json")] = False,
) -> None:
    """How alike two conditions order the same runs, such as automatic and manual nuggets.

    A and B are assignments, what 'nuggets score' writes, or tables with columns run and the score, by topic where they
    have a column qid.
    """
    from arena.boards.nugget_comparison import NuggetComparison
    from arena.cli.show import show
    from arena.nuggets.comparison import compare_conditions
    from arena.nuggets.conditions import read_condition

    a, b = (read_condition(path, column) for path in (first, second))
    board = NuggetComparison(compare_conditions(a, b, bootstrap, seed), column, (str(first), str(second)))
    if plot is not None:
        from arena.present.charts import save_plot

        save_plot(plot, board.pictures(), f"{column}: {first.name} and {second.name}")
    show(board, "json" if as_json else form)
