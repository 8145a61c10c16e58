"""``exam``: a bank made and graded by a judge; scores, labels, agreement, oversight of grades, and their files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from arena.cli.console import INCOMPLETE
from arena.cli.options import Form, LogJson, RetryFailed
from judges.errors import InputError

if TYPE_CHECKING:
    from arena.present.table import Table


exam = typer.Typer(no_args_is_help=True, help="Exam questions and nuggets: scores, labels, agreement, oversight.")

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="a tournament's YAML file with a section 'exam'")]
GradesFile = Annotated[
    Path, typer.Argument(metavar="GRADES", help="the workbench's graded jsonl.gz, or a table qid, did, item, grade")
]
BankFile = Annotated[
    Path | None, typer.Option("--bank", help="the test bank; without it the graded items stand for it")
]
Runs = Annotated[
    list[Path] | None, typer.Option("--run", help="passages in order, as a run of trec_eval; may be repeated")
]
Qrels = Annotated[Path | None, typer.Option("--qrels", help="relevance by people; else the judgments in GRADES")]
Items = Annotated[str | None, typer.Option("--items", metavar="PATTERN", help="only items with such ids, like '*-Q*'")]
Llm = Annotated[str | None, typer.Option("--llm", help="the grader's model, where there are several graders")]
PromptName = Annotated[str | None, typer.Option("--prompt", help="the grader's prompt, likewise")]
MinGrade = Annotated[
    int | None, typer.Option("--min-grade", min=1, help="grade that counts as covered; 4, or 1 of 0/1")
]
MinLabel = Annotated[int, typer.Option("--min-label", help="label from which people found a passage relevant")]
K = Annotated[int, typer.Option("--k", min=1, help="passages of a response that count")]


By = Annotated[Literal["highest", "count"], typer.Option(help="the highest grade, or how many items reach --min-grade")]
GradeMap = Annotated[
    str | None, typer.Option("--map", metavar="MAP", help="grades or counts to labels, like 0:0,1-3:1,4:2,5:3")
]
View = Literal["summary", "answers", "grid", "uncovered", "spurious", "influence"]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(exam, name="exam")


@exam.command("score")
def score(
    file: GradesFile,
    bank: BankFile = None,
    run: Runs = None,
    official: Annotated[Path | None, typer.Option(help="a leaderboard to compare with: agent, rank or score")] = None,
    k: K = 20,
    alpha: Annotated[float, typer.Option(min=0, max=1, help="of alpha-nDCG")] = 0.5,
    items: Items = None,
    llm: Llm = None,
    prompt: PromptName = None,
    compat: Annotated[Literal["workbench"] | None, typer.Option(help="count as the workbench's code does")] = None,
    out: Annotated[
        Path | None, typer.Option(help="also write every agent's score of every query to this table")
    ] = None,
    form: Form = "table",
) -> None:
    """EXAM-Cover of every agent at every level, with standard errors.

    Also normalised cover, alpha-nDCG, and how the leaderboard agrees with an official one.
    """
    from arena.boards.exam import ExamBoard
    from arena.cli.console import output
    from arena.cli.show import show
    from arena.stages.exam.study import exam_scores, load_study, read_official

    study = load_study(file, bank=bank, runs=run or (), items=items, llm=llm, prompt=prompt)
    if not study.rankings:
        raise InputError(f"{file}: says of no passage whose response it is part of; give the runs with --run")
    known = read_official(official) if official is not None else None
    board = ExamBoard(exam_scores(study, k=k, alpha=alpha, workbench=compat is not None, official=known))
    if out is not None:
        _save(out, board.queries())
    show(board, form)
    if out is not None and form != "json":
        output.print(f"every query's scores are in {out}")


@exam.command("qrels")
def qrels(
    file: GradesFile,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="the file of labels, qid 0 did label")],
    bank: BankFile = None,
    by: By = "highest",
    min_grade: MinGrade = None,
    grade_map: GradeMap = None,
    items: Items = None,
    llm: Llm = None,
    prompt: PromptName = None,
) -> None:
    """Write a relevance label for every graded passage, for trec_eval and every tool that reads its files."""
    from arena.boards.exam import UNITS
    from arena.cli.console import output
    from arena.stages.exam.study import load_study
    from retrieval_eval.data.trec import write_qrels
    from retrieval_eval.exam.scores import exam_labels, read_grade_map

    study = load_study(file, bank=bank, items=items, llm=llm, prompt=prompt)
    steps = read_grade_map(grade_map) if grade_map is not None else None
    labels = exam_labels(study.grids, by=by, level=min_grade or study.usual_level, grade_to_label=steps)
    write_qrels(out, labels.labels)
    output.print(f"{len(labels)} labels of {study.unit} written to {out}")
    if labels.partly:
        output.print(f"{labels.partly} of them may be too low: some items of theirs are not graded")
    if labels.ungraded:
        output.print(f"{labels.ungraded} {UNITS[study.unit]} have no grade and no label")


@exam.command("agreement")
def agreement(
    file: Annotated[Path, typer.Argument(metavar="GRADES", help="grades as for score, or predicted labels as .qrels")],
    qrels: Qrels = None,
    other: Annotated[
        Path | None,
        typer.Option("--with", help="another grading: compare the grades, passage by item, instead"),
    ] = None,
    bank: BankFile = None,
    by: By = "highest",
    min_grade: MinGrade = None,
    min_label: MinLabel = 1,
    grade_map: GradeMap = None,
    items: Items = None,
    llm: Llm = None,
    prompt: PromptName = None,
    form: Form = "table",
) -> None:
    """Agreement of labels made from grades with people's labels: counts, kappa and alpha, graded and binarised.

    With another grading: how far a second judge, or several items in one call, gives the same grades.
    """
    from arena.boards.exam_agreement import of_grades, of_labels
    from arena.cli.show import show
    from arena.present.files import latex, sentence
    from arena.stages.exam.study import load_study
    from retrieval_eval.data.trec import is_qrels, read_qrels
    from retrieval_eval.exam.scores import exam_labels, read_grade_map

    if other is not None:
        if qrels is not None or grade_map is not None or by != "highest":
            raise InputError("--with compares grades as they are, without --qrels, --map and --by")
        first, second = (load_study(path, bank=bank, items=items, llm=llm, prompt=prompt) for path in (file, other))
        board = of_grades(first, second, min_grade)
        if not board.agreement.n:
            raise InputError(f"{file}: has no passage and item in common with {other}; are the ids the same?")
    elif is_qrels(file):
        if qrels is None:
            raise InputError(f"{file}: predicted labels; name the labels by people with --qrels")
        board = of_labels(read_qrels(file).labels, read_qrels(qrels).labels, None, min_label)
    else:
        study = load_study(file, bank=bank, qrels=qrels, items=items, llm=llm, prompt=prompt)
        if not study.labels:
            raise InputError(f"{file}: holds no judgments by people; name their labels with --qrels")
        steps = read_grade_map(grade_map) if grade_map is not None else None
        level = min_grade or study.usual_level
        made = exam_labels(study.grids, by=by, level=level, grade_to_label=steps)
        plain = steps is None and by == "highest"
        board = of_labels(made.labels, study.labels, level if plain else None, min_label)
    if not board.agreement.n:
        raise InputError(f"{file}: no passage of it has a label by people; are the ids the same?")
    if form == "latex":
        for table in board.tables()[1:]:
            sys.stdout.write(latex(table) + "".join(sentence(note, "latex") for note in table.notes) + "\n")
    else:
        show(board, form)


@exam.command("oversight")
def oversight(
    file: GradesFile,
    bank: BankFile = None,
    qrels: Qrels = None,
    run: Runs = None,
    show: Annotated[View, typer.Option(help="what to look at")] = "summary",
    query: Annotated[str | None, typer.Option(help="only this query")] = None,
    min_grade: MinGrade = None,
    min_label: MinLabel = 1,
    k: K = 20,
    items: Items = None,
    llm: Llm = None,
    prompt: PromptName = None,
    out: Annotated[Path | None, typer.Option(help="write the rows to this table instead")] = None,
    form: Form = "table",
) -> None:
    """What to look at before trusting grades and a bank.

    Grades beside extracted answers; the grid of passages and items; relevant passages that no item covers; items that
    passages without relevance cover often; items that the leaderboard hangs on.
    """
    from arena.boards.exam_oversight import OversightBoard, items_table
    from arena.cli.console import output, print_json
    from arena.cli.show import show as show_board
    from arena.present import terminal
    from arena.present.table import records
    from arena.stages.exam.study import load_study

    study = load_study(file, bank=bank, runs=run or (), qrels=qrels, items=items, llm=llm, prompt=prompt)
    if query is not None and query not in study.grids.grids:
        raise InputError(f"--query: no query {query!r}; there are {', '.join(list(study.grids.grids)[:5])} ...")
    level = min_grade or study.usual_level
    board = OversightBoard(study, level, min_label, k, query)
    if show == "summary":
        if out is not None:
            raise InputError("--out goes with one view; say which with --show")
        show_board(board, form)
        return
    table = board.view(show)
    if out is not None:
        _save(out, table)
        output.print(f"{len(table.rows)} rows written to {out}")
    elif form == "json":
        print_json(records(table))
    else:
        numbers = [items_table(study, query, level)] if show == "grid" and query is not None else []
        terminal.show(output, [*numbers, table])


@exam.command("import")
def import_grades(
    file: Annotated[Path, typer.Argument(metavar="GRADED", help="the workbench's graded jsonl.gz")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="a new or empty folder for the tables")],
    bank: Annotated[Path | None, typer.Option(help="its test bank, which says what is secret")] = None,
    secret: Annotated[bool, typer.Option("--secret", help="also write secret items and their grades")] = False,
) -> None:
    """Turn a file of the workbench into tables: documents, grades, labels; with its bank also queries and items."""
    from arena.cli.console import output
    from arena.stages.exam.commands import import_workbench

    for table in import_workbench(file, folder, bank, secret=secret):
        output.print(f"{table.rows:>7}  {table.path}")
        if table.left_out:
            output.print(f"         {table.left_out} rows of secret items left out; --secret writes them")


@exam.command("export")
def export_grades(
    file: GradesFile,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="the workbench's file to write, .jsonl.gz")],
    bank: Annotated[Path | None, typer.Option(help="the test bank, which says what is secret")] = None,
    secret: Annotated[bool, typer.Option("--secret", help="also export what was graded with secret items")] = False,
    onto: Annotated[Path | None, typer.Option(help="a workbench file to add the grades to, byte for byte else")] = None,
    documents: Annotated[Path | None, typer.Option(help="the passages' texts: qid, did, document, agent, rank")] = None,
    min_grade: MinGrade = None,
) -> None:
    """Write grades in the workbench's form, with the passages, or onto a file of it that has them."""
    from arena.cli.console import output
    from arena.stages.exam.commands import export_workbench

    count, left_out = export_workbench(
        file, out, bank=bank, secret=secret, onto=onto, documents=documents, min_grade=min_grade
    )
    output.print(f"{count} queries written to {out}")
    if left_out:
        output.print(f"{left_out} grades of secret items left out")


def _save(path: Path, table: Table) -> None:
    from arena.present.table import keys, records
    from retrieval_eval.data.tables import write_rows

    write_rows(path, keys(table), records(table))


@exam.command("generate")
def generate(
    config: ConfigPath,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="the new bank: .jsonl, .yaml or a table")],
    retry_failed: RetryFailed = False,
    log_json: LogJson = None,
) -> None:
    """Have a judge write the test bank, and save it with its secret items.

    Nothing is asked twice. Exit status 3: something of it failed or is missing, and the output says what.
    """
    from arena.cli.console import output, say
    from arena.cli.parts import print_summary
    from arena.cli.trace import asking
    from arena.config.whole import load_config
    from arena.stages.exam import commands as exam_run
    from arena.stages.exam.bank import shorter_than_asked
    from arena.stages.exam.edits import save_bank
    from judges.errors import InputError

    loaded = load_config(config)
    if out.exists():
        raise InputError(f"{out}: exists and may have been edited; name a new file")
    with asking(log_json) as (bars, trace):
        summary, bank = exam_run.generate(loaded, bars, retry_failed=retry_failed, trace=trace)
    print_summary(summary)
    if bank.items:
        save_bank(out, bank)
    secret = sum(item.secret for item in bank.items)
    output.print(f"{len(bank.items)} items on {len(bank.query_ids)} queries, {secret} of them secret, written to {out}")
    assert loaded.exam is not None
    assert loaded.exam.generate is not None
    for name, number in shorter_than_asked(loaded.exam.generate, bank).items():
        say(f"- {name}: {number} of the {loaded.exam.generate.per_query} asked for")
    if not summary.complete:
        raise typer.Exit(INCOMPLETE)


@exam.command("grade")
def grade(
    config: ConfigPath,
    out: Annotated[
        Path | None, typer.Option(help="also write the grades: a table, or .jsonl.gz for the workbench's form")
    ] = None,
    secret: Annotated[bool, typer.Option("--secret", help="also write the grades of secret items")] = False,
    retry_failed: RetryFailed = False,
    log_json: LogJson = None,
    form: Form = "table",
) -> None:
    """Grade passages of all answers, or retrieved documents, by the test bank, and print EXAM-Cover of every agent.

    Only what is new is asked: after an edit of the bank, the new items. Exit status 3: something failed or is missing.
    """
    from arena.boards.exam import ExamBoard
    from arena.cli.console import errors, output, print_json
    from arena.cli.parts import print_summary
    from arena.cli.show import show
    from arena.cli.trace import asking
    from arena.config.whole import load_config
    from arena.stages.exam import commands as exam_run

    loaded = load_config(config)
    with asking(log_json) as (bars, trace):
        graded = exam_run.grade(loaded, bars, retry_failed=retry_failed, trace=trace)
    print_summary(graded.summary)
    if graded.scores is not None:
        show(ExamBoard(graded.scores), form)
    elif form == "json":
        print_json(None)
    if out is not None:
        left_out = exam_run.save_grades(out, graded.study, secret=secret)
        if form != "json":
            output.print(f"grades written to {out}")
        if left_out:
            errors.print(f"{left_out} grades of secret items left out; --secret writes them")
    if not graded.summary.complete:
        raise typer.Exit(INCOMPLETE)
