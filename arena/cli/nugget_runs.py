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
from judges.types import Task
from retrieval_eval.nuggets.files import write_assignments, write_banks
from retrieval_eval.nuggets.types import Importance, NuggetBank


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
    out: Path,
    *,
    force: bool,
    retry_failed: bool,
    as_json: bool,
) -> None:
    """Assign nuggets to answers and write the assignments to ``out``.

    Args:
        path: the configuration.
        files: nuggets and answers in place of the configuration's; both or neither.
        out: where assignments go.
        force: write over a file that is there.
        retry_failed: ask again what failed.
        as_json: print a summary for machines.
    """
    config = load_config(path)
    nuggets, answers = files
    if (nuggets is None) is not (not answers):
        raise InputError("--nuggets and --answers go together: nuggets are held against answers to the same queries")
    nuggets_of(config)
    require_free(out, force)
    data = None
    if nuggets is not None:
        config, data = assignment_of_files(config, nuggets, answers)
    tasks = [Task.ASSIGNMENT] if nuggets_of(config).bank is None else [Task.NUGGETS, Task.IMPORTANCE, Task.ASSIGNMENT]
    summary = _run(config, tasks, data, retry_failed=retry_failed)
    store = Store.open(config.store)
    results = _results(store, config)
    store.close()
    if not results.assignments:
        raise InputError(f"{path}: no query has nuggets yet; 'ragarena nuggets create {path}' makes them")
    _write_assignments(out, results, as_json=as_json)
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


def _write_assignments(out: Path, results: NuggetResults, *, as_json: bool) -> None:
    write_assignments(out, results.assignments)
    labels = [label for own in results.assignments for label in own.labels]
    assigned = sum(label is not None for label in labels)
    told: dict[str, Any] = {"file": str(out), "answers": len(results.assignments), "labels": len(labels)}
    told |= {"assigned": assigned, "without": dict(results.without)}
    if as_json:
        print_json(told)
        return
    answers = len(results.assignments)
    output.print(printable(f"wrote {out}: {assigned} of {len(labels)} labels of {answers} answers"))
    _print_without(results.without)
    output.print(printable(f"next:  ragarena nuggets score {out}"))


def _print_without(without: Mapping[str, str]) -> None:
    for why, number in Counter(without.values()).items():
        output.print(f"- {number} {'query' if number == 1 else 'queries'} left out: {why}")
