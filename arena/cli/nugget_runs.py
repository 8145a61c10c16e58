"""``nuggets create`` and ``nuggets assign``: run the stages that they need, and write what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from arena import tournament
from arena.cli.console import INCOMPLETE, Bars, errors, output, print_json, printable
from arena.cli.tournament import print_summary
from arena.config import Config, load_config
from arena.dataset import Dataset
from arena.nuggets.judging import assignment_of_files, nuggets_of
from arena.nuggets.results import NuggetResults, nugget_results, repetitions, unedited_banks
from arena.runtime.ledger import RunSummary
from arena.store import Store
from judges.errors import InputError
from judges.types import NUGGET_TASKS, Task
from retrieval_eval.nuggets.files import write_assignments, write_banks, write_passage_assignments
from retrieval_eval.nuggets.types import Assignment, Importance, NuggetBank


def create_nuggets(path: Path, out: Path, *, for_editing: bool, force: bool, retry_failed: bool, as_json: bool) -> None:
    """Make nuggets and write them to ``out``."""
    config = load_config(path)
    if nuggets_of(config).create is None:
        raise InputError(f"{path}: nuggets.bank gives the nuggets; leave it out to have some made")
    require_free(out, force)
    tasks = [Task.RELEVANCE, Task.NUGGETS] + ([] if for_editing else [Task.IMPORTANCE])
    summary = _run(config, tasks, retry_failed=retry_failed)
    store = Store.open(config.store)
    if for_editing:
        banks, without = unedited_banks(store, config.name)
    else:
        results = _results(store, config)
        banks, without = list(results.banks.values()), dict(results.without)
    repeated = repetitions(store, config.name)
    store.close()
    _write_banks(out, banks, without, repeated, as_json=as_json)
    if not summary.complete:
        raise typer.Exit(INCOMPLETE)


def assign_nuggets(
    path: Path,
    files: tuple[Path | None, Sequence[Path]],
    out: tuple[Path, Path],
    *,
    force: bool,
    retry_failed: bool,
    as_json: bool,
) -> None:
    """Assign nuggets to answers and documents, and write the assignments to ``out``.

    Args:
        path: the configuration.
        files: nuggets and answers in place of the configuration's; both or neither.
        out: where assignments of answers go, and where those of documents go.
        force: write over a file that is there.
        retry_failed: ask again what failed.
        as_json: print a summary for machines.
    """
    config = load_config(path)
    nuggets, answers = files
    if (nuggets is None) is not (not answers):
        raise InputError("--nuggets and --answers go together: nuggets are held against answers to the same queries")
    data = None
    if nuggets is not None:
        config, data = assignment_of_files(config, nuggets, answers)
    for kind, file in zip(("answers", "documents"), out, strict=True):
        if kind in nuggets_of(config).assign.texts:
            require_free(file, force)
    tasks = [Task.ASSIGNMENT, Task.PASSAGE_ASSIGNMENT] if nuggets_of(config).bank is None else NUGGET_TASKS
    summary = _run(config, tasks, data, retry_failed=retry_failed)
    store = Store.open(config.store)
    results = _results(store, config)
    store.close()
    if not results.banks:
        raise InputError(f"{path}: no query has nuggets yet; 'ragarena nuggets create {path}' makes them")
    _write_assignments(out, results, nuggets_of(config).assign.texts, as_json=as_json)
    if not summary.complete or not results.finished:
        raise typer.Exit(INCOMPLETE)


def require_free(out: Path, force: bool) -> None:
    """A file that a person may have edited is not written over unasked."""
    if out.exists() and not force:
        raise InputError(f"{out}: is there already; name another file with --out, or say --force")


def _run(config: Config, tasks: Sequence[Task], data: Dataset | None = None, *, retry_failed: bool) -> RunSummary:
    with Bars(shown=errors.is_terminal) as bars:
        summary = tournament.run(config, bars, data=data, only=tasks, retry_failed=retry_failed)
    print_summary(summary)
    return summary


def _results(store: Store, config: Config) -> NuggetResults:
    results = nugget_results(store, config.name)
    assert results is not None
    return results


def _write_banks(
    out: Path,
    banks: Sequence[NuggetBank],
    without: Mapping[str, str],
    repeated: Mapping[str, Sequence[str]],
    *,
    as_json: bool,
) -> None:
    write_banks(out, banks)
    counts = Counter(nugget.importance for bank in banks for nugget in bank.nuggets)
    told: dict[str, Any] = {"file": str(out), "queries": len(banks), "nuggets": counts.total()}
    told |= {"vital": counts[Importance.VITAL], "without": dict(without), "repeated": dict(repeated)}
    if as_json:
        print_json(told)
        return
    vital = f", {counts[Importance.VITAL]} of them vital" if counts[Importance.VITAL] else ""
    output.print(printable(f"wrote {out}: {counts.total()} nuggets for {len(banks)} queries{vital}"))
    _print_without(without)
    for query_id, said in repeated.items():
        output.print(printable(f"- {query_id}: {' '.join(said)}"))


def _write_assignments(out: tuple[Path, Path], results: NuggetResults, kinds: Sequence[str], *, as_json: bool) -> None:
    told: dict[str, Any] = {}
    if "answers" in kinds:
        write_assignments(out[0], results.assignments)
        told = _counted("answers", out[0], results.assignments)
    if "documents" in kinds:
        passages = list(results.passages.values())
        write_passage_assignments(out[1], passages)
        told["passages"] = _counted("documents", out[1], passages)
    if as_json:
        print_json({**told, "without": dict(results.without)})
        return
    for own in (told, told.get("passages", {})):
        if "file" in own:
            what = "answers" if "answers" in own else "documents"
            counts = f"{own['assigned']} of {own['labels']} labels of {own[what]} {what}"
            output.print(printable(f"wrote {own['file']}: {counts}"))
    _print_without(results.without)
    if "answers" in kinds:
        output.print(printable(f"next:  ragarena nuggets score {out[0]}"))


def _counted(what: str, file: Path, assignments: Sequence[Assignment]) -> dict[str, Any]:
    labels = [label for own in assignments for label in own.labels]
    assigned = sum(label is not None for label in labels)
    return {"file": str(file), what: len(assignments), "labels": len(labels), "assigned": assigned}


def _print_without(without: Mapping[str, str]) -> None:
    for why, number in Counter(without.values()).items():
        output.print(f"- {number} {'query' if number == 1 else 'queries'} left out: {why}")
