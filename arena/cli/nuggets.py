"""``nuggets``: scores of runs by which nuggets they state, and how alike two conditions order the runs."""

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
        typer.Option(help="the topic set, and its conversations; without it the topics that any run answered"),
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
            "--with", metavar="FILE", help="scores or assignments of the same runs otherwise", rich_help_panel=_OTHER
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
        typer.Option("--format", help="as elsewhere; jsonl: nuggetizer's metrics by topic"),
    ] = "table",
) -> None:
    """Score runs by their nuggets, or compare two conditions.

    Six scores: vital, weighted and all nuggets, strict or with half credit for partial support. A run's score is the
    mean over the topic set; a topic it did not answer counts 0. Topics with failed labels are left out of its means and
    counted. With --answers and --qrels also which share of the documents cited is relevant.

    With --with: how alike two conditions order the same runs, such as automatic and manual nuggets. Both may be
    assignments, what this command writes, or tables with columns run and the score, by topic where they have a column
    qid.
    """
    given = given_options(ctx)
    theirs, ours = {"--score", "--plot"}, {"--answers", "--qrels", "--min-label"}
    if strange := given & (ours if other is not None else theirs):
        raise InputError(f"{', '.join(sorted(strange))}: goes {'without' if other is not None else 'with'} --with")
    if other is None:
        _scores(files, topics, answers, qrels, min_label, form)
    elif len(files) > 1 or form == "jsonl":
        raise InputError("--with: compares two files, and writes no jsonl")
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
    from arena.cli.sources import asked_in, clusters_in
    from arena.results.nuggets import scored
    from arena.stages.nuggets.judging import read_cited
    from retrieval_eval.nuggets.files import read_assignments
    from retrieval_eval.nuggets.scores import score_table
    from retrieval_eval.scores.citations import citation_scores

    asked, clusters = asked_in(topics), clusters_in(topics)
    table = score_table(read_assignments(list(files)), None if asked is None else list(asked))
    if topics is not None and not table.answered.any():
        raise InputError(f"{topics}: none of its topics is in {', '.join(map(str, files))}; are the ids the same?")
    if (qrels is None) is not (not answers):
        raise InputError("--answers and --qrels go together: whether a document cited is relevant, a label says")
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
    from arena.cli.sources import asked_in
    from arena.results.nugget_comparison import compare_conditions, read_condition

    a, b = (read_condition(path, column) for path in (first, second))
    found = compare_conditions(a, b, samples, seed, asked_in(topics))
    board = NuggetComparison(found, column, (str(first), str(second)))
    if plot is not None:
        from arena.present.files import save_plot

        save_plot(plot, board.pictures(), f"{column}: {first.name} and {second.name}")
    show(board, form)
