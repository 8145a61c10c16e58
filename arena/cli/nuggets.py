"""``nuggets``: scores of answers by the facts they state, and two ways of getting them held against each other."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from judges.errors import InputError

group = typer.Typer(help="Nugget evaluation: scores, and conditions against each other.", no_args_is_help=True)


class ScoreFormat(StrEnum):
    """How scores are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    JSONL = "jsonl"


class CompareFormat(StrEnum):
    """How a comparison is written."""

    TABLE = "table"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(group, name="nuggets")


@group.command()
def score(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="assignments as nuggetizer or NIST write them")
    ],
    topics: Annotated[
        Path | None, typer.Option(help="the topic set; without it the topics that any run answered")
    ] = None,
    bootstrap: Annotated[int, typer.Option(min=0, help="bootstrap samples of the intervals")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="of the samples")] = 0,
    form: Annotated[
        ScoreFormat, typer.Option("--format", help="table, json, csv, or jsonl: nuggetizer's metrics by topic")
    ] = ScoreFormat.TABLE,
    as_json: Annotated[bool, typer.Option("--json", help="the same as --format json")] = False,
) -> None:
    """Six scores of each run: vital, weighted and all nuggets, strict or with half credit for partial support.

    A run's score is the mean over the topic set; a topic it did not answer counts 0. Topics with failed labels are
    left out of its means and counted.
    """
    from arena.cli.nugget_output import print_scores
    from retrieval_eval.nuggets.files import read_assignments
    from retrieval_eval.nuggets.run_scores import score_runs
    from retrieval_eval.nuggets.scores import score_table
    from retrieval_eval.nuggets.topics import read_topic_ids

    table = score_table(read_assignments(files), None if topics is None else read_topic_ids(topics))
    if topics is not None and not table.answered.any():
        raise InputError(f"{topics}: none of its topics is in {', '.join(map(str, files))}; are the ids the same?")
    print_scores(table, score_runs(table, bootstrap, seed), "json" if as_json else form.value)


@group.command()
def correlate(
    first: Annotated[Path, typer.Argument(metavar="A", help="scores or assignments of one condition")],
    second: Annotated[Path, typer.Argument(metavar="B", help="those of another, for the same runs")],
    column: Annotated[str, typer.Option(help="the score to compare")] = "v_strict",
    plot: Annotated[Path | None, typer.Option(help="write the scatter plots to this .svg or .html file")] = None,
    bootstrap: Annotated[int, typer.Option(min=0, help="bootstrap samples of the intervals")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="of the samples")] = 0,
    form: Annotated[CompareFormat, typer.Option("--format", help="table or json")] = CompareFormat.TABLE,
    as_json: Annotated[bool, typer.Option("--json", help="the same as --format json")] = False,
) -> None:
    """How alike two conditions order the same runs, such as automatic and manual nuggets.

    A and B are assignments, what 'nuggets score' writes, or tables with columns run and the score, by topic where they
    have a column qid.
    """
    from arena.cli.nugget_output import print_comparison
    from arena.nugget_comparison import compare_conditions
    from arena.nugget_conditions import read_condition
    from arena.nugget_plot import write_plot

    a, b = (read_condition(path, column) for path in (first, second))
    comparison = compare_conditions(a, b, bootstrap, seed)
    if plot is not None:
        write_plot(plot, comparison, (first.name, second.name), column)
    print_comparison(comparison, column, (str(first), str(second)), "json" if as_json else form.value)
