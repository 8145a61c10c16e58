"""``nuggets``: score runs by the nuggets they state, and compare how two conditions rank the runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from arena.cli.options import Samples, Seed, given_options
from judges.errors import InputError

_CITED, _OTHER = "Documents cited", "Another condition"


def nuggets(
    ctx: typer.Context,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="assignments as nuggetizer or NIST write them")
    ],
    topics: Annotated[
        Path | None,
        typer.Option(help="the topics, with their conversations; default: every topic that a run answered"),
    ] = None,
    answers: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="the answers with their citations, for citation precision; with --qrels",
            rich_help_panel=_CITED,
        ),
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="labels of the documents cited; with --answers", rich_help_panel=_CITED),
    ] = None,
    min_label: Annotated[
        int, typer.Option(help="the lowest label that counts as relevant", rich_help_panel=_CITED)
    ] = 1,
    other: Annotated[
        Path | None,
        typer.Option(
            "--with",
            metavar="FILE",
            help="scores or assignments of the same runs in another condition",
            rich_help_panel=_OTHER,
        ),
    ] = None,
    score: Annotated[str, typer.Option(help="the score to compare", rich_help_panel=_OTHER)] = "v_strict",
    plot: Annotated[
        Path | None,
        typer.Option(help="write the scatter plots to this .svg, .png or .html file", rich_help_panel=_OTHER),
    ] = None,
    samples: Samples = 1000,
    seed: Seed = 0,
    form: Annotated[
        Literal["table", "json", "csv", "md", "html", "latex", "jsonl"],
        typer.Option("--format", help="as in other commands; jsonl: nuggetizer's metrics by topic"),
    ] = "table",
) -> None:
    """Score runs by their nuggets, or compare two conditions.

    Six scores: vital, weighted and all nuggets, strict or with half credit for partial support. A run's score is the
    mean over the topics; a topic that it did not answer counts 0. Topics with failed labels are left out of the means,
    and their number is shown. --answers and --qrels add the share of cited documents that are relevant.

    --with compares how two conditions rank the same runs, such as automatic and manual nuggets. Each may be
    assignments, output of this command, or a table with columns run and the score; with a column qid it is by topic.
    """
    options = given_options(ctx)
    comparison_options, score_options = {"--score", "--plot"}, {"--answers", "--qrels", "--min-label"}
    if misplaced := options & (score_options if other is not None else comparison_options):
        raise InputError(f"{', '.join(sorted(misplaced))}: goes {'without' if other is not None else 'with'} --with")
    if other is None:
        _scores(files, topics, answers, qrels, min_label, form)
    elif len(files) > 1 or form == "jsonl":
        raise InputError("--with: compares two files; name one FILE, and leave out --format jsonl")
    else:
        _compare(files[0], other, topics, score, plot, samples, seed, form)


def _scores(
    files: Sequence[Path],
    topics: Path | None,
    answers: Sequence[Path] | None,
    qrels: Path | None,
    min_label: int,
    form: str,
) -> None:
    import json

    from arena.boards.nuggets import NuggetScores
    from arena.cli.show import show
    from arena.cli.sources import clusters_in, queries_in
    from arena.results.nuggets import scored
    from arena.stages.nuggets.judging import read_cited
    from retrieval_eval.nuggets.files import read_assignments
    from retrieval_eval.nuggets.scores import score_table
    from retrieval_eval.scores.citations import citation_scores

    queries, clusters = queries_in(topics), clusters_in(topics)
    table = score_table(read_assignments(list(files)), None if queries is None else list(queries))
    if topics is not None and not table.answered.any():
        raise InputError(f"{topics}: none of its topics is in {', '.join(map(str, files))}; are the ids the same?")
    if (qrels is None) is not (not answers):
        raise InputError("--answers and --qrels go together: the labels say which cited documents are relevant")
    cited = {}
    if qrels is not None:
        documents, labels = read_cited(answers or [], qrels, table)
        cited = citation_scores(documents, labels, relevant=min_label, clusters=clusters)
    board = NuggetScores(scored(table, clusters), table, cited)
    if form == "jsonl":
        for line in board.metrics():
            print(json.dumps(line, allow_nan=False))
    else:
        show(board, form)


def _compare(
    first: Path,
    second: Path,
    topics: Path | None,
    column: str,
    plot: Path | None,
    samples: int,
    seed: int,
    form: str,
) -> None:
    from arena.boards.nugget_comparison import NuggetComparison
    from arena.cli.show import show
    from arena.cli.sources import queries_in
    from arena.results.nugget_comparison import compare_conditions, read_condition

    a, b = (read_condition(path, column) for path in (first, second))
    comparison = compare_conditions(a, b, samples, seed, queries_in(topics))
    board = NuggetComparison(comparison, column, (str(first), str(second)))
    if plot is not None:
        from arena.present.files import save_plot

        save_plot(plot, board.pictures(), f"{column}: {first.name} and {second.name}")
    show(board, form)
