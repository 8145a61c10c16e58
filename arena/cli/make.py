"""Commands ``make``, which have models write queries, answers, test banks, grades, nuggets and assignments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from arena.boards.exam import exam_board
from arena.boards.synth import SynthBoard
from arena.cli.console import INCOMPLETE, errors, output, print_json, say, tell
from arena.cli.options import Config, Force, Form, JsonForm, LogJson, RetryFailed, require_free
from arena.cli.progress import asking, print_part, print_summary, quota_lines, watching
from arena.cli.show import print_unread, show
from arena.config import schema
from arena.config.judging import NuggetsSection
from arena.config.schema import load_config
from arena.data.dataset import Dataset
from arena.data.files import read_answers, save_dataset
from arena.data.safe_files import digest, save_bank
from arena.present.numbers import counted
from arena.present.table import plain
from arena.results.nuggets import nugget_results, repetitions, unedited_banks
from arena.run import exam as exam_run
from arena.run import judging
from arena.run.answers import run_agents
from arena.run.judging import load_data
from arena.run.ledger import RunSummary
from arena.run.queries import synthesise
from arena.stages.exam import shorter_than_asked
from arena.stages.queries_config import load_synth_config
from arena.store import Store
from judges.errors import ConfigError, InputError
from judges.types import NUGGET_TASKS, Answer, Query, Task
from retrieval_eval.nuggets.files import read_banks, write_assignments, write_banks, write_passage_assignments
from retrieval_eval.nuggets.types import Assignment, Importance, NuggetBank


def make_queries(
    config: Config,
    reviewed: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="draw queries from this review file, in which people have accepted or rejected queries",
        ),
    ] = None,
    retry_failed: RetryFailed = False,
    log_json: LogJson = None,
    form: Form = "table",
) -> None:
    """Have models write queries about your documents.

    Models write queries about passages of your documents. The queries are filtered, and a test set is drawn from them
    by quotas. The configuration names the documents and the files to write.

    No call is made twice: run the command again to go on. Exit status 3: something failed or is missing; the output
    says what.
    """
    loaded = load_synth_config(config)
    if reviewed is not None:
        loaded = loaded.model_copy(update={"synth": loaded.synth.model_copy(update={"reviewed": reviewed})})
    with asking(log_json) as (bars, trace):
        report = synthesise(loaded, bars, retry_failed=retry_failed, trace=trace)
    if report.summary is not None:
        print_summary(report.summary)
    show(SynthBoard(report, loaded.synth), form)
    if form == "table":
        print_unread(report)
        if report.undecided:
            errors.print(f"{report.undecided} queries have no decision and were not used")
        for line in quota_lines(report):
            say(line, errors)
    if not report.complete:
        raise typer.Exit(INCOMPLETE)


def make_answers(
    config: Config,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="also write queries, documents and answers into this folder")
    ] = None,
    retry_failed: RetryFailed = False,
    form: JsonForm = "table",
) -> None:
    """Ask the agents for the answers that are missing.

    The answers are written into the store; nothing is judged. Run the command again to go on. Exit status 3: something
    failed or is missing; the output says what.
    """
    loaded = load_config(config)
    with watching() as bars:
        agents_run = run_agents(loaded, bars, retry_failed=retry_failed)
    print_part(agents_run)
    if out is not None:
        files = save_dataset(load_data(loaded, agents_run.declared), out)
        for file in () if form == "json" else files:
            say(f"wrote {file}")
    if form == "json":
        agents = {
            name: {**plain(summary), "failed": summary.failed, "left": summary.left}
            for name, summary in agents_run.agents.items()
        }
        print_json({"agents": agents, "complete": agents_run.complete})
    if not agents_run.complete:
        raise typer.Exit(INCOMPLETE)


def make_bank(
    config: Config,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="output file for the test bank: .yaml, .csv, .tsv, .jsonl or .parquet")
    ],
    force: Force = False,
    retry_failed: RetryFailed = False,
    log_json: LogJson = None,
) -> None:
    """Have a judge write a test bank, with its secret items.

    The items are exam questions by which passages can be graded. No call is made twice: run the command again to go on.
    Exit status 3: something failed or is missing; the output says what.
    """
    loaded = load_config(config)
    require_free(out, force)
    digest_before = digest(out) if out.exists() else None
    with asking(log_json) as (bars, trace):
        summary, bank = exam_run.generate(loaded, bars, retry_failed=retry_failed, trace=trace)
    print_summary(summary, "--force" if bank.items else "")
    if bank.items:
        save_bank(out, bank, seen=digest_before)
    secret = sum(item.secret for item in bank.items)
    size = f"{counted(len(bank.items), 'item')} on {counted(len(bank.query_ids), 'query', 'queries')}"
    output.print(f"{size}, {secret} of them secret{f', written to {out}' if bank.items else '; nothing is written'}")
    assert loaded.exam is not None
    assert loaded.exam.generate is not None
    for name, number in shorter_than_asked(loaded.exam.generate, bank).items():
        say(f"- {name}: {number} of the {loaded.exam.generate.per_query} asked for")
    if not summary.complete:
        raise typer.Exit(INCOMPLETE)


def make_grades(
    config: Config,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="also write the grades to this file: a .csv, or the Rubric-Grading Workbench's .jsonl.gz",
        ),
    ] = None,
    secret: Annotated[
        bool, typer.Option("--secret", help="also write the grades by secret items of the test bank")
    ] = False,
    retry_failed: RetryFailed = False,
    log_json: LogJson = None,
    form: Form = "table",
) -> None:
    """Have a judge grade passages by a test bank.

    Then shows the same scores as 'exam score'. No call is made twice: run the command again to go on. Exit status 3:
    something failed or is missing; the output says what.
    """
    loaded = load_config(config)
    with asking(log_json) as (bars, trace):
        graded = exam_run.grade(loaded, bars, retry_failed=retry_failed, trace=trace)
    print_summary(graded.summary)
    if graded.scores is not None:
        show(exam_board(graded.scores), form)
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


def make_nuggets(
    config: Config,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="file to write the nuggets into, in nuggetizer's format")
    ] = Path("nuggets.jsonl"),
    for_editing: Annotated[
        bool,
        typer.Option(
            "--for-editing", help="write all nuggets for people to edit, before a judge decides which are vital"
        ),
    ] = False,
    force: Force = False,
    retry_failed: RetryFailed = False,
    form: JsonForm = "table",
) -> None:
    """Have a judge write nuggets from relevant documents.

    Nuggets are the facts that a good answer to a query states. No call is made twice: run the command again to go on.
    Exit status 3: something failed or is missing; the output says what.
    """
    loaded = load_config(config)
    if _nuggets_of(loaded).create is None:
        raise InputError(f"{config}: nuggets.bank names a file of existing nuggets; leave the key out to make new ones")
    require_free(out, force)
    tasks = [Task.RELEVANCE, Task.NUGGETS] + ([] if for_editing else [Task.IMPORTANCE])
    summary = _run(loaded, tasks, retry_failed=retry_failed)
    with closing(Store.open(loaded.store)) as store:
        if for_editing:
            banks, without = unedited_banks(store, loaded.name)
        else:
            results = nugget_results(store, loaded.name)
            assert results is not None
            banks, without = list(results.banks.values()), dict(results.without)
        repeated = repetitions(store, loaded.name)
    if banks:
        write_banks(out, banks)
    counts = Counter(nugget.importance for bank in banks for nugget in bank.nuggets)
    total, vital = counts.total(), counts[Importance.VITAL]
    record = {"file": str(out), "queries": len(banks), "nuggets": total, "vital": vital, "without": without}
    vital_words = f", {vital} of them vital" if vital else ""
    lines = [
        f"{f'wrote {out}' if banks else 'nothing is written'}: {counted(total, 'nugget')} for "
        f"{counted(len(banks), 'query', 'queries')}{vital_words}",
        *_left_out(without),
    ]
    lines += [f"- {query_id}: {' '.join(texts)}" for query_id, texts in repeated.items()]
    tell(record | {"repeated": repeated}, lines, form)
    if not summary.complete:
        raise typer.Exit(INCOMPLETE)


def make_assignments(
    config: Config,
    nuggets: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="file of nuggets to look for, instead of the configuration's; needs --answers"
        ),
    ] = None,
    answers: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="file of answers to look for nuggets in: a table or TREC RAG runs; may be repeated"
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="output file for the nuggets that each answer states")
    ] = Path("assignments.jsonl"),
    documents_out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="output file for the nuggets that each document states; needs 'assign: {texts: documents}' in CONFIG",
        ),
    ] = Path("passages.jsonl"),
    force: Force = False,
    retry_failed: RetryFailed = False,
    form: JsonForm = "table",
) -> None:
    """Have a judge decide which nuggets the answers state.

    Writes files of assignments, which 'nuggets score' reads. No call is made twice: run the command again to go on.
    Exit status 3: something failed or is missing; the output says what.
    """
    loaded = load_config(config)
    if (nuggets is None) is not (not answers):
        raise InputError(
            "--nuggets and --answers go together: give both files, with nuggets and answers for the same queries"
        )
    data = None
    if nuggets is not None:
        loaded, data = _assignment_of_files(loaded, nuggets, answers or [])
    section = _nuggets_of(loaded)
    for kind, file in (("answers", out), ("documents", documents_out)):
        if kind in section.assign.texts:
            require_free(file, force)
    tasks = [Task.ASSIGNMENT, Task.PASSAGE_ASSIGNMENT] if section.bank is None else NUGGET_TASKS
    summary = _run(loaded, tasks, data, retry_failed=retry_failed)
    with closing(Store.open(loaded.store)) as store:
        results = nugget_results(store, loaded.name)
    if results is None or not results.banks:
        raise InputError(f"{config}: no query has nuggets yet; 'ragleague make nuggets {config}' makes them")
    record: dict[str, Any] = {}
    lines: list[str] = []
    if "answers" in section.assign.texts:
        write_assignments(out, results.assignments)
        record = _add_line("answers", out, results.assignments, lines)
    if "documents" in section.assign.texts:
        passages = list(results.passages.values())
        write_passage_assignments(documents_out, passages)
        record["passages"] = _add_line("documents", documents_out, passages, lines)
    lines += _left_out(results.without)
    if "answers" in section.assign.texts:
        lines.append(f"next:  ragleague nuggets score {out}")
    tell(record | {"without": dict(results.without)}, lines, form)
    if not summary.complete or not results.finished:
        raise typer.Exit(INCOMPLETE)


def _run(
    config: schema.Config, tasks: Sequence[Task], data: Dataset | None = None, *, retry_failed: bool
) -> RunSummary:
    """Make the missing judgments of the tasks and print a summary of the run."""
    with asking() as (bars, _):
        summary = judging.run(config, bars, data=data, only=tasks, retry_failed=retry_failed)
    print_summary(summary, "--force")
    return summary


def _add_line(what: str, file: Path, assignments: Sequence[Assignment], lines: list[str]) -> dict[str, Any]:
    labels = [label for assignment in assignments for label in assignment.labels]
    assigned = sum(label is not None for label in labels)
    lines.append(f"wrote {file}: {assigned} of {len(labels)} labels of {len(assignments)} {what}")
    return {"file": str(file), what: len(assignments), "labels": len(labels), "assigned": assigned}


def _left_out(without: Mapping[str, str]) -> Iterator[str]:
    for why, number in Counter(without.values()).items():
        yield f"- {counted(number, 'query', 'queries')} left out: {why}"


_NOT_IN_NAMES = re.compile(r"[^\w .-]+")


def _nuggets_of(config: schema.Config) -> NuggetsSection:
    """The section ``nuggets`` of the configuration, which names the judge.

    Raises:
        ConfigError: the configuration has no section ``nuggets``.
    """
    if config.nuggets is None:
        raise ConfigError("the configuration has no section 'nuggets'; add it, and name the judge in it")
    return config.nuggets


def _assignment_of_files(
    config: schema.Config, nuggets: Path, answers: Sequence[Path]
) -> tuple[schema.Config, Dataset]:
    """Make configuration and dataset of a separate tournament that assigns nuggets to answers, both read from files.

    Args:
        config: the configuration that supplies judge, store and settings; its data and other stages are not used.
        nuggets: a file of nuggets; only answers to its queries are judged.
        answers: tables of answers, or answers in the format of the TREC RAG track.

    Raises:
        InputError: a file cannot be read, an answer occurs twice, or no answer is to a query with nuggets.
    """
    section = _nuggets_of(config)
    banks = {bank.query_id: bank for bank in read_banks(nuggets)}
    data = _dataset(banks, answers)
    if not data.answers:
        raise InputError(
            f"{', '.join(map(str, answers))}: no answer to a query of {nuggets}; check that both use the same query ids"
        )
    name = _NOT_IN_NAMES.sub("-", f"{config.name} {nuggets.name}")[:80]
    to_answers = section.assign.model_copy(update={"texts": ["answers"], "depth": None, "passage_prompt": None})
    chosen = NuggetsSection(judge=section.judge, bank=nuggets, assign=to_answers)
    others = dict.fromkeys(("synth", "retrieval", "pairwise", "criteria", "exam"))
    return config.model_copy(update={**others, "agents": {}, "further": {}, "name": name, "nuggets": chosen}), data


def _dataset(banks: dict[str, NuggetBank], paths: Sequence[Path]) -> Dataset:
    answers: dict[tuple[str, str], Answer] = {}
    for path in paths:
        for _, answer in read_answers(path):
            key = answer.query_id, answer.agent
            if key in answers:
                raise InputError(
                    f"{path}: a second answer of {answer.agent!r} to query {answer.query_id!r}; keep one of them"
                )
            if answer.query_id in banks:
                answers[key] = answer
    return Dataset({query_id: Query(query_id, bank.query) for query_id, bank in banks.items()}, answers=answers)
