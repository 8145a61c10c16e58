"""Commands ``exam``, to turn grades by a test bank into scores and labels, compare them with people, and check them."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import typer
from msgspec.structs import replace

from arena.boards.exam import (
    GRADED_TEXTS,
    ExamAgreementBoard,
    OversightBoard,
    exam_board,
    items_table,
    of_grades,
    of_labels,
)
from arena.cli.console import errors, output, print_json, say
from arena.cli.options import Form, GradesFile, K, Llm, MinGrade, OfQueries, PromptName, Runs
from arena.cli.show import show, show_parts
from arena.cli.sources import clusters_in
from arena.present.files import latex, sentence
from arena.present.numbers import counted
from arena.present.table import Table, keys, records
from arena.results.exam import Study, exam_scores, load_labels, load_study, read_official
from judges.errors import InputError
from retrieval_eval.data.tables import write_rows
from retrieval_eval.data.trec import is_qrels, read_qrels, write_qrels
from retrieval_eval.exam import scores
from retrieval_eval.scores.metrics import Labels

_grader_option = partial(typer.Option, rich_help_panel="Which grades")
_label_option = partial(typer.Option, rich_help_panel="Labels")
_By: TypeAlias = Literal["highest", "count"]

Bank = Annotated[
    Path | None,
    _grader_option(
        "--bank", help="file of the test bank, by whose items the passages were graded; default: the items in GRADES"
    ),
]
Items = Annotated[
    str | None,
    _grader_option(
        "--items", metavar="PATTERN", help="use only items of the test bank whose ids match PATTERN, such as '*-Q*'"
    ),
]
OneQuery = Annotated[str | None, _grader_option("--query", help="id of a query, to show only its rows")]
PeoplesLabels = Annotated[
    Path | None, _label_option("--qrels", help="file of people's relevance labels; default: those in GRADES")
]
MinLabel = Annotated[int, _label_option("--min-label", help="lowest human label that counts as relevant")]
By = Annotated[
    _By,
    _label_option(
        "--by", help="make a passage's label from its highest grade, or from its number of items that reach --min-grade"
    ),
]
GradeMap = Annotated[
    str | None,
    _label_option(
        "--map", metavar="MAP", help="label for each grade, or for each number of items, such as 0:0,1-3:1,4:2,5:3"
    ),
]
OutTable = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="write the rows to this file instead of showing them: .csv, .tsv, .jsonl or .parquet",
    ),
]
_NOT_OF_LABELS: Final = "--prompt: this prompt labels passages without items; leave out --by, --min-grade and --map"


def exam_score(
    file: GradesFile,
    bank: Bank = None,
    run: Runs = None,
    official: Annotated[
        Path | None, typer.Option(help="table of an official leaderboard to compare with: agent, rank or score")
    ] = None,
    k: K = 20,
    alpha: Annotated[float, typer.Option(min=0, max=1, help="parameter alpha of alpha-nDCG")] = 0.5,
    compat: Annotated[
        Literal["workbench"] | None,
        typer.Option(help="compute scores as the code of the Rubric-Grading Workbench does, to reproduce its figures"),
    ] = None,
    items: Items = None,
    llm: Llm = None,
    prompt: PromptName = None,
    queries: OfQueries = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="also write each query's scores to this table")
    ] = None,
    form: Form = "table",
) -> None:
    """Score the agents by a test bank.

    Shows each agent's EXAM-Cover, the share of items that its passages cover, for each lowest grade that counts as
    covering, with standard errors; also normalised cover, alpha-nDCG, and the agreement with an official leaderboard.
    """
    study = load_study(file, bank=bank, runs=run or (), items=items, llm=llm, prompt=prompt)
    if not study.rankings:
        raise InputError(
            f"{file}: does not say which agents retrieved the passages; name the agents' ranked passages with --run"
        )
    official_ranks = read_official(official) if official is not None else None
    study = replace(study, clusters=clusters_in(queries))
    board = exam_board(exam_scores(study, k=k, alpha=alpha, workbench=compat is not None, official=official_ranks))
    if out is not None:
        _save(out, board.queries())
    show(board, form)
    if out is not None and form == "table":
        output.print(f"every query's scores are in {out}")


def exam_labels(
    file: GradesFile,
    out: Annotated[Path, typer.Option(metavar="FILE", help="file of qrels to write")],
    bank: Bank = None,
    by: By = "highest",
    min_grade: MinGrade = None,
    grade_map: GradeMap = None,
    items: Items = None,
    llm: Llm = None,
    prompt: PromptName = None,
) -> None:
    """Turn grades into relevance labels.

    Writes qrels: a passage's label is its highest grade, or the number of items that it covers (--by count).
    """
    direct = _direct_labels(file, llm, prompt, plain=by == "highest" and min_grade is None and grade_map is None)
    if direct is not None:
        write_qrels(out, direct[0])
        output.print(f"{counted(sum(map(len, direct[0].values())), 'label')} written to {out}")
        return
    study = load_study(file, bank=bank, items=items, llm=llm, prompt=prompt)
    labels = _labels(study, by, min_grade, grade_map)
    write_qrels(out, labels.labels)
    output.print(f"{counted(len(labels), 'label')} of {study.unit} written to {out}")
    if labels.partly:
        output.print(f"{labels.partly} more have no label, since grades are missing that could change it")
    if labels.ungraded:
        output.print(f"{labels.ungraded} {GRADED_TEXTS[study.unit]} have no grade and no label")
    if labels.partly + labels.ungraded:
        output.print("trec_eval counts what has no label as not relevant")


def exam_agreement(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="GRADES",
            help="file of grades: graded jsonl.gz of the Rubric-Grading Workbench, a table, "
            "or qrels of predicted labels",
        ),
    ],
    qrels: PeoplesLabels = None,
    bank: Bank = None,
    by: By = "highest",
    min_grade: MinGrade = None,
    min_label: MinLabel = 1,
    grade_map: GradeMap = None,
    items: Items = None,
    llm: Llm = None,
    prompt: PromptName = None,
    queries: OfQueries = None,
    form: Form = "table",
) -> None:
    """Compare grades with people's labels.

    Grades become relevance labels as in 'exam labels'. If the file holds qrels, these labels are compared unchanged.
    """
    clusters = clusters_in(queries)
    if is_qrels(file):
        if qrels is None:
            raise InputError(
                f"{file}: has only predicted labels; name the file of people's labels to compare with by --qrels"
            )
        board = of_labels(read_qrels(file).labels, read_qrels(qrels).labels, None, min_label, clusters)
    elif direct := _direct_labels(file, llm, prompt, plain=by == "highest" and min_grade is None and grade_map is None):
        people = direct[1] if qrels is None else read_qrels(qrels).labels
        board = of_labels(direct[0], _required(people, file), None, min_label, clusters)
    else:
        study = load_study(file, bank=bank, qrels=qrels, items=items, llm=llm, prompt=prompt)
        people = _required(study.labels, file)
        unmapped = grade_map is None and by == "highest"
        if unmapped:
            _ask_for_map(max(study.levels), people)
        labels = _labels(study, by, min_grade, grade_map)
        level = (min_grade or study.usual_level) if unmapped else None
        board = of_labels(labels.labels, people, level, min_label, clusters)
    if not board.agreement.n:
        raise InputError(
            f"{file}: people labelled none of its passages; check that both files use the same query and passage ids"
        )
    _show_agreement(board, form)


def exam_compare(
    file: GradesFile,
    other: Annotated[
        Path, typer.Argument(metavar="OTHER", help="file with a second grader's grades of the same passages")
    ],
    bank: Bank = None,
    min_grade: MinGrade = None,
    items: Items = None,
    llm: Llm = None,
    prompt: PromptName = None,
    queries: OfQueries = None,
    form: Form = "table",
) -> None:
    """Compare two gradings of the same passages."""
    clusters = clusters_in(queries)
    first, second = (
        replace(load_study(path, bank=bank, items=items, llm=llm, prompt=prompt), clusters=clusters)
        for path in (file, other)
    )
    board = of_grades(first, second, min_grade)
    if not board.agreement.n:
        raise InputError(
            f"{file}: has no grade of the same passage and item as {other}; check that both use the same ids"
        )
    _show_agreement(board, form)


def exam_summary(
    file: GradesFile,
    bank: Bank = None,
    run: Runs = None,
    qrels: PeoplesLabels = None,
    query: OneQuery = None,
    min_grade: MinGrade = None,
    min_label: MinLabel = 1,
    k: K = 20,
    items: Items = None,
    llm: Llm = None,
    prompt: PromptName = None,
    form: Form = "table",
) -> None:
    """Show what to check before you trust grades and bank.

    Shows the first rows of 'exam uncovered', 'exam spurious' and 'exam influence'.
    """
    study = load_study(file, bank=bank, runs=run or (), qrels=qrels, items=items, llm=llm, prompt=prompt)
    show(_oversight(study, query, min_grade, min_label, k), form)


def exam_answers(
    file: GradesFile,
    bank: Bank = None,
    query: OneQuery = None,
    items: Items = None,
    llm: Llm = None,
    prompt: PromptName = None,
    out: OutTable = None,
    form: Form = "table",
) -> None:
    """List grades beside the answers found in passages."""
    study = load_study(file, bank=bank, items=items, llm=llm, prompt=prompt)
    _show_rows(_oversight(study, query).view("answers"), out, form)


def exam_grid(
    file: GradesFile,
    query: Annotated[str, typer.Option(help="id of the query")],
    bank: Bank = None,
    min_grade: MinGrade = None,
    items: Items = None,
    llm: Llm = None,
    prompt: PromptName = None,
    out: OutTable = None,
    form: Form = "table",
) -> None:
    """Show one query's grades as passages by items."""
    board = _oversight(load_study(file, bank=bank, items=items, llm=llm, prompt=prompt), query, min_grade)
    _show_rows(board.view("grid"), out, form, items_table(board.study, query, board.level))


def exam_uncovered(
    file: GradesFile,
    bank: Bank = None,
    qrels: PeoplesLabels = None,
    query: OneQuery = None,
    min_grade: MinGrade = None,
    min_label: MinLabel = 1,
    items: Items = None,
    llm: Llm = None,
    prompt: PromptName = None,
    out: OutTable = None,
    form: Form = "table",
) -> None:
    """List relevant passages that cover no item."""
    study = load_study(file, bank=bank, qrels=qrels, items=items, llm=llm, prompt=prompt)
    _show_rows(_oversight(study, query, min_grade, min_label).view("uncovered"), out, form)


def exam_spurious(
    file: GradesFile,
    bank: Bank = None,
    qrels: PeoplesLabels = None,
    query: OneQuery = None,
    min_grade: MinGrade = None,
    min_label: MinLabel = 1,
    items: Items = None,
    llm: Llm = None,
    prompt: PromptName = None,
    out: OutTable = None,
    form: Form = "table",
) -> None:
    """List items that irrelevant passages cover."""
    study = load_study(file, bank=bank, qrels=qrels, items=items, llm=llm, prompt=prompt)
    _show_rows(_oversight(study, query, min_grade, min_label).view("spurious"), out, form)


def exam_influence(
    file: GradesFile,
    bank: Bank = None,
    run: Runs = None,
    query: OneQuery = None,
    min_grade: MinGrade = None,
    k: K = 20,
    items: Items = None,
    llm: Llm = None,
    prompt: PromptName = None,
    out: OutTable = None,
    form: Form = "table",
) -> None:
    """List items whose removal changes the leaderboard."""
    study = load_study(file, bank=bank, runs=run or (), items=items, llm=llm, prompt=prompt)
    _show_rows(_oversight(study, query, min_grade, k=k).view("influence"), out, form)


def _direct_labels(file: Path, llm: str | None, prompt: str | None, *, plain: bool) -> tuple[Labels, Labels] | None:
    """Read relevance labels that the grader gave to passages without items of a test bank, and people's labels.

    ``llm`` and ``prompt`` name the grader. ``None`` if it graded by items. ``plain`` says that no option was given that
    turns grades into labels.
    """
    direct = None if llm is None and prompt is None else load_labels(file, llm=llm, prompt=prompt)
    if direct is not None and not plain:
        raise InputError(_NOT_OF_LABELS)
    return direct


def _labels(study: Study, by: _By, min_grade: int | None, grade_map: str | None) -> scores.ExamLabels:
    return scores.exam_labels(
        study.grids,
        by=by,
        level=min_grade or study.usual_level,
        grade_to_label=scores.read_grade_map(grade_map) if grade_map is not None else None,
        highest=max(study.levels),
    )


def _required(people: Labels, file: Path) -> Labels:
    if not people:
        raise InputError(f"{file}: has no relevance labels by people; name a file of them with --qrels")
    return people


def _ask_for_map(highest_grade: int, people: Labels) -> None:
    """Print a note that asks for the option ``--map`` if grades and people's labels have different scales."""
    highest_label = max(label for labels in people.values() for label in labels.values())
    if highest_label != highest_grade:
        say(
            f"note: grades reach to {highest_grade} and people's labels to {highest_label}, so equal numbers may "
            "differ in meaning; give the label of each grade, such as --map 0:0,1-3:1,4:2,5:3",
            errors,
        )


def _show_agreement(board: ExamAgreementBoard, form: str) -> None:
    if form == "latex":
        for table in board.tables()[1:]:
            sys.stdout.write(latex(table) + "".join(sentence(note, "latex") for note in table.notes) + "\n")
    else:
        show(board, form)


def _oversight(
    study: Study, query: str | None, min_grade: int | None = None, min_label: int = 1, k: int = 20
) -> OversightBoard:
    if query is not None and query not in study.grids.grids:
        raise InputError(
            f"--query: no grade is on query {query!r}; graded queries: {', '.join(list(study.grids.grids)[:5])} ..."
        )
    return OversightBoard(study, min_grade or study.usual_level, min_label, k, query)


def _show_rows(table: Table, out: Path | None, form: str, *before: Table) -> None:
    """Write a table's rows to the file ``out``; without one, print the tables ``before`` and then the table."""
    if out is not None:
        _save(out, table)
        output.print(f"{counted(len(table.rows), 'row')} written to {out}")
    elif form == "json":
        print_json(records(table))
    else:
        show_parts([*before, table] if form == "table" else [table], form)


def _save(path: Path, table: Table) -> None:
    write_rows(path, keys(table), records(table))
