"""``exam``: evaluate grades by a test bank: scores, relevance labels, agreement with people, oversight."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from msgspec.structs import replace

from arena.cli.options import Form, GradesFile, K, Llm, MinGrade, OfQueries, PromptName, Runs, given_options
from arena.present.numbers import counted
from judges.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from arena.present.table import Table
    from arena.results.exam_evaluation import Study
    from retrieval_eval.scores.metrics import Labels
    from retrieval_eval.stats.bootstrap import Clusters

_SHOWN, _GRADER, _LABELS = "What to show", "Which grades", "Labels"
_By = Literal["highest", "count"]
View = Literal["scores", "labels", "agreement", "summary", "answers", "grid", "uncovered", "spurious", "influence"]
_OPTIONS_OF: Final = {
    "scores": {"--run", "--official", "--k", "--alpha", "--compat", "--out"},
    "labels": {"--by", "--min-grade", "--map", "--out"},
    "agreement": {"--qrels", "--with", "--by", "--min-grade", "--min-label", "--map"},
}
"""Options of each view; other views take ``_OVERSIGHT_OPTIONS``, and all take ``_COMMON_OPTIONS``."""
_OVERSIGHT_OPTIONS: Final = {"--qrels", "--run", "--query", "--min-grade", "--min-label", "--k", "--out"}
_COMMON_OPTIONS: Final = {"--show", "--bank", "--items", "--llm", "--prompt", "--queries", "--format"}


def exam(
    ctx: typer.Context,
    file: GradesFile,
    show: Annotated[
        View, typer.Option(help="what to show; from 'summary' on: checks before you trust the grades and the bank")
    ] = "scores",
    bank: Annotated[
        Path | None,
        typer.Option(help="the test bank; default: the graded items", rich_help_panel=_GRADER),
    ] = None,
    run: Runs = None,
    qrels: Annotated[
        Path | None,
        typer.Option(help="relevance labels by people; default: the judgments in GRADES", rich_help_panel=_LABELS),
    ] = None,
    other: Annotated[
        Path | None,
        typer.Option("--with", help="compare with these grades of the same passages", rich_help_panel=_LABELS),
    ] = None,
    official: Annotated[Path | None, typer.Option(help="a leaderboard to compare with: agent, rank or score")] = None,
    k: K = 20,
    alpha: Annotated[float, typer.Option(min=0, max=1, help="the parameter alpha of alpha-nDCG")] = 0.5,
    compat: Annotated[
        Literal["workbench"] | None, typer.Option(help="compute scores as the workbench's code does")
    ] = None,
    min_grade: MinGrade = None,
    min_label: Annotated[
        int, typer.Option(help="lowest label by people that counts as relevant", rich_help_panel=_LABELS)
    ] = 1,
    by: Annotated[
        _By,
        typer.Option(
            help="make labels from the highest grade, or from the number of items that reach --min-grade",
            rich_help_panel=_LABELS,
        ),
    ] = "highest",
    grade_map: Annotated[
        str | None,
        typer.Option(
            "--map",
            metavar="MAP",
            help="labels for grades or counts, such as 0:0,1-3:1,4:2,5:3",
            rich_help_panel=_LABELS,
        ),
    ] = None,
    query: Annotated[str | None, typer.Option(help="only this query", rich_help_panel=_GRADER)] = None,
    items: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="only items whose ids match, such as '*-Q*'", rich_help_panel=_GRADER),
    ] = None,
    llm: Llm = None,
    prompt: PromptName = None,
    queries: OfQueries = None,
    out: Annotated[
        Path | None, typer.Option(help="write this table: for scores those of each query, for labels qid 0 did label")
    ] = None,
    form: Form = "table",
) -> None:
    """Score, check and compare grades by a test bank.

    Shows each agent's EXAM-Cover at each level with standard errors, normalised cover, alpha-nDCG, and how well the
    leaderboard agrees with an official one. '--show labels' turns grades into relevance labels, '--show agreement'
    compares them with people's labels or a second grading, and the other views are for oversight.
    """
    from arena.cli.sources import clusters_in
    from arena.results.exam_evaluation import load_labels, load_study
    from retrieval_eval.data.trec import is_qrels

    allowed = _OPTIONS_OF.get(show, _OVERSIGHT_OPTIONS) | _COMMON_OPTIONS
    if misplaced := given_options(ctx) - allowed:
        raise InputError(f"{', '.join(sorted(misplaced))}: does not go with --show {show}")

    def study(path: Path = file) -> Study:
        return replace(
            load_study(path, bank=bank, runs=run or (), qrels=qrels, items=items, llm=llm, prompt=prompt),
            clusters=clusters_in(queries),
        )

    def labels() -> tuple[Labels, Labels] | None:
        return None if llm is None and prompt is None else load_labels(file, llm=llm, prompt=prompt)

    if show == "scores":
        _scores(study(), file, official, k, alpha, compat is not None, out, form)
    elif show == "labels":
        _labels(study, labels(), by, min_grade, grade_map, out)
    elif show == "agreement":
        grader_labels = None if other is not None or is_qrels(file) else labels()
        _agreement(
            study, grader_labels, file, qrels, other, by, min_grade, min_label, grade_map, clusters_in(queries), form
        )
    else:
        _oversight(study(), show, query, min_grade, min_label, k, out, form)


def _scores(
    study: Study, file: Path, official: Path | None, k: int, alpha: float, workbench: bool, out: Path | None, form: str
) -> None:
    from arena.boards.exam import exam_board
    from arena.cli.console import output
    from arena.cli.show import show
    from arena.results.exam_evaluation import exam_scores, read_official

    if not study.rankings:
        raise InputError(f"{file}: does not say which response a passage belongs to; name the runs with --run")
    official_ranks = read_official(official) if official is not None else None
    board = exam_board(exam_scores(study, k=k, alpha=alpha, workbench=workbench, official=official_ranks))
    if out is not None:
        _save(out, board.queries())
    show(board, form)
    if out is not None and form == "table":
        output.print(f"every query's scores are in {out}")


def _labels(
    load: Callable[..., Study],
    grader_labels: tuple[Labels, Labels] | None,
    by: _By,
    min_grade: int | None,
    grade_map: str | None,
    out: Path | None,
) -> None:
    from arena.boards.exam import UNITS
    from arena.cli.console import output
    from retrieval_eval.data.trec import write_qrels
    from retrieval_eval.exam.scores import exam_labels, read_grade_map

    if out is None:
        raise InputError("--out: name the file for the labels")
    grade_to_label = read_grade_map(grade_map) if grade_map is not None else None
    if grader_labels is not None:
        _require_no_label_options(by, min_grade, grade_map)
        write_qrels(out, grader_labels[0])
        output.print(f"{counted(sum(map(len, grader_labels[0].values())), 'label')} written to {out}")
        return
    study = load()
    level, highest = min_grade or study.usual_level, max(study.levels)
    labels = exam_labels(study.grids, by=by, level=level, grade_to_label=grade_to_label, highest=highest)
    write_qrels(out, labels.labels)
    output.print(f"{counted(len(labels), 'label')} of {study.unit} written to {out}")
    if labels.partly:
        output.print(f"{labels.partly} more have no label, since grades are missing that could change it")
    if labels.ungraded:
        output.print(f"{labels.ungraded} {UNITS[study.unit]} have no grade and no label")
    if labels.partly + labels.ungraded:
        output.print("trec_eval counts what has no label as not relevant")


def _require_no_label_options(by: _By, min_grade: int | None, grade_map: str | None) -> None:
    """Refuse options that make labels from grades: this prompt gives labels directly."""
    if by != "highest" or min_grade is not None or grade_map is not None:
        raise InputError("--prompt: this prompt labels passages without items; leave out --by, --min-grade and --map")


def _agreement(
    load: Callable[..., Study],
    grader_labels: tuple[Labels, Labels] | None,
    file: Path,
    qrels: Path | None,
    other: Path | None,
    by: _By,
    min_grade: int | None,
    min_label: int,
    grade_map: str | None,
    clusters: Clusters,
    form: str,
) -> None:
    from arena.boards.exam_oversight import of_grades, of_labels
    from arena.cli.show import show
    from arena.present.files import latex, sentence
    from retrieval_eval.data.trec import is_qrels, read_qrels
    from retrieval_eval.exam.scores import exam_labels, read_grade_map

    if other is not None:
        if qrels is not None or grade_map is not None or by != "highest":
            raise InputError("--with compares grades as they are, without --qrels, --map and --by")
        first, second = load(), load(other)
        board = of_grades(first, second, min_grade)
        if not board.agreement.n:
            raise InputError(f"{file}: has no passage and item in common with {other}; are the ids the same?")
    elif is_qrels(file):
        if qrels is None:
            raise InputError(f"{file}: holds predicted labels; name the labels by people with --qrels")
        board = of_labels(read_qrels(file).labels, read_qrels(qrels).labels, None, min_label, clusters)
    elif grader_labels is not None:
        _require_no_label_options(by, min_grade, grade_map)
        predicted, people = grader_labels
        people = people if qrels is None else read_qrels(qrels).labels
        board = of_labels(predicted, _labels_of(people, file), None, min_label, clusters)
    else:
        study = load()
        _labels_of(study.labels, file)
        grade_to_label = read_grade_map(grade_map) if grade_map is not None else None
        level = min_grade or study.usual_level
        labels = exam_labels(study.grids, by=by, level=level, grade_to_label=grade_to_label, highest=max(study.levels))
        unmapped = grade_to_label is None and by == "highest"
        _ask_for_map(study, unmapped=unmapped)
        board = of_labels(labels.labels, study.labels, level if unmapped else None, min_label, clusters)
    if not board.agreement.n:
        raise InputError(f"{file}: no passage of it has a label by people; are the ids the same?")
    if form == "latex":
        for table in board.tables()[1:]:
            sys.stdout.write(latex(table) + "".join(sentence(note, "latex") for note in table.notes) + "\n")
    else:
        show(board, form)


def _ask_for_map(study: Study, *, unmapped: bool) -> None:
    """Print a note if grades and people's labels have different scales."""
    from arena.cli.console import errors, say

    highest_grade, highest_label = (
        max(study.levels),
        max(label for labels in study.labels.values() for label in labels.values()),
    )
    if unmapped and highest_label != highest_grade:
        say(
            f"note: grades reach to {highest_grade} and people's labels to {highest_label}, so equal numbers may "
            "differ in meaning; give the label of each grade, such as --map 0:0,1-3:1,4:2,5:3",
            errors,
        )


def _labels_of(people: Labels, file: Path) -> Labels:
    if not people:
        raise InputError(f"{file}: holds no judgments by people; name their labels with --qrels")
    return people


def _oversight(
    study: Study,
    view: str,
    query: str | None,
    min_grade: int | None,
    min_label: int,
    k: int,
    out: Path | None,
    form: str,
) -> None:
    from arena.boards.exam_oversight import OversightBoard, items_table
    from arena.cli.console import output, print_json
    from arena.cli.show import show, show_parts
    from arena.present.table import records

    if query is not None and query not in study.grids.grids:
        raise InputError(f"--query: no query {query!r}; there are {', '.join(list(study.grids.grids)[:5])} ...")
    level = min_grade or study.usual_level
    board = OversightBoard(study, level, min_label, k, query)
    if view == "summary":
        if out is not None:
            raise InputError("--out: writes one view; name it with --show")
        show(board, form)
        return
    table = board.view(view)
    if out is not None:
        _save(out, table)
        output.print(f"{counted(len(table.rows), 'row')} written to {out}")
    elif form == "json":
        print_json(records(table))
    else:
        numbers = [items_table(study, query, level)] if view == "grid" and query is not None else []
        show_parts([*numbers, table] if form == "table" else [table], form)


def _save(path: Path, table: Table) -> None:
    from arena.present.table import keys, records
    from retrieval_eval.data.tables import write_rows

    write_rows(path, keys(table), records(table))
