"""``make nuggets`` and ``make assignments``: a judge writes nuggets, and decides which ones the answers state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from arena.cli.console import INCOMPLETE, tell
from arena.cli.options import Config, Force, JsonForm, RetryFailed, require_free
from arena.cli.run_lines import print_summary
from arena.cli.trace import asking
from arena.config import schema
from arena.config.schema import load_config
from arena.data.dataset import Dataset
from arena.present.numbers import counted
from arena.results.nuggets import nugget_results, repetitions, unedited_banks
from arena.run import judging
from arena.run.ledger import RunSummary
from arena.stages.nuggets import assignment_of_files, nuggets_of
from arena.store import Store
from judges.errors import InputError
from judges.types import NUGGET_TASKS, Task
from retrieval_eval.nuggets.files import write_assignments, write_banks, write_passage_assignments
from retrieval_eval.nuggets.types import Assignment, Importance


def make_nuggets(
    config: Config,
    out: Annotated[Path, typer.Option(metavar="FILE", help="the nuggets, in nuggetizer's format")] = Path(
        "nuggets.jsonl"
    ),
    for_editing: Annotated[
        bool, typer.Option("--for-editing", help="write whole lists without importance, for people to edit")
    ] = False,
    force: Force = False,
    retry_failed: RetryFailed = False,
    form: JsonForm = "table",
) -> None:
    """Have a judge write nuggets from relevant documents.

    No call is made twice: run the command again to go on. Exit status 3: something failed or is missing; the output
    says what.
    """
    loaded = load_config(config)
    if nuggets_of(loaded).create is None:
        raise InputError(f"{config}: nuggets.bank names existing nuggets; leave it out to make new ones")
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
        Path | None, typer.Option(metavar="FILE", help="use these nuggets instead of the configuration's")
    ] = None,
    answers: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="assign the nuggets to these answers: a table or TREC RAG runs; may be repeated"
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="the file for assignments to answers")] = Path(
        "assignments.jsonl"
    ),
    documents_out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="the file for assignments to documents, with 'assign: {texts: documents}'"),
    ] = Path("passages.jsonl"),
    force: Force = False,
    retry_failed: RetryFailed = False,
    form: JsonForm = "table",
) -> None:
    """Have a judge decide which nuggets the answers state.

    Writes assignments for 'nuggets score'. No call is made twice: run the command again to go on. Exit status 3:
    something failed or is missing; the output says what.
    """
    loaded = load_config(config)
    if (nuggets is None) is not (not answers):
        raise InputError("--nuggets and --answers go together: nuggets are assigned to answers to the same queries")
    data = None
    if nuggets is not None:
        loaded, data = assignment_of_files(loaded, nuggets, answers or [])
    section = nuggets_of(loaded)
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
    """Make the missing judgments and print a summary; the caller writes its file even if some judgments failed."""
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
