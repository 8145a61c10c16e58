"""``nuggets create``, ``assign`` and ``edit``: run the stages that they need, and write what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from arena import tournament
from arena.boards.nugget_lists import NuggetEdits
from arena.cli.console import INCOMPLETE, Bars, errors, tell
from arena.cli.tournament import print_summary
from arena.config.whole import Config, load_config
from arena.dataset import Dataset
from arena.nuggets.judging import assignment_of_files, nuggets_of
from arena.nuggets.results import nugget_results, repetitions, unedited_banks
from arena.present.numbers import counted
from arena.runtime.ledger import RunSummary
from arena.store import Store
from judges.errors import DataError, InputError
from judges.types import NUGGET_TASKS, Task
from retrieval_eval.nuggets.editing import Change, changes, edited
from retrieval_eval.nuggets.files import read_banks, write_assignments, write_banks, write_passage_assignments
from retrieval_eval.nuggets.types import Assignment, Importance, NuggetBank


def create_nuggets(path: Path, out: Path, *, for_editing: bool, force: bool, retry_failed: bool, as_json: bool) -> None:
    """Make nuggets and write them to ``out``."""
    config = load_config(path)
    if nuggets_of(config).create is None:
        raise InputError(f"{path}: nuggets.bank gives the nuggets; leave it out to have some made")
    require_free(out, force)
    tasks = [Task.RELEVANCE, Task.NUGGETS] + ([] if for_editing else [Task.IMPORTANCE])
    summary = _run(config, tasks, retry_failed=retry_failed)
    with closing(Store.open(config.store)) as store:
        if for_editing:
            banks, without = unedited_banks(store, config.name)
        else:
            results = nugget_results(store, config.name)
            assert results is not None
            banks, without = list(results.banks.values()), dict(results.without)
        repeated = repetitions(store, config.name)
    write_banks(out, banks)
    counts = Counter(nugget.importance for bank in banks for nugget in bank.nuggets)
    number, vital = counts.total(), counts[Importance.VITAL]
    told = {"file": str(out), "queries": len(banks), "nuggets": number, "vital": vital, "without": without}
    more = f", {vital} of them vital" if vital else ""
    lines = [f"wrote {out}: {number} nuggets for {len(banks)} queries{more}", *_left_out(without)]
    lines += [f"- {query_id}: {' '.join(said)}" for query_id, said in repeated.items()]
    tell(told | {"repeated": repeated}, lines, as_json=as_json)
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
    section = nuggets_of(config)
    for kind, file in zip(("answers", "documents"), out, strict=True):
        if kind in section.assign.texts:
            require_free(file, force)
    tasks = [Task.ASSIGNMENT, Task.PASSAGE_ASSIGNMENT] if section.bank is None else NUGGET_TASKS
    summary = _run(config, tasks, data, retry_failed=retry_failed)
    with closing(Store.open(config.store)) as store:
        results = nugget_results(store, config.name)
    if results is None or not results.banks:
        raise InputError(f"{path}: no query has nuggets yet; 'ragarena nuggets create {path}' makes them")
    told: dict[str, Any] = {}
    lines: list[str] = []
    if "answers" in section.assign.texts:
        write_assignments(out[0], results.assignments)
        told = _written("answers", out[0], results.assignments, lines)
    if "documents" in section.assign.texts:
        passages = list(results.passages.values())
        write_passage_assignments(out[1], passages)
        told["passages"] = _written("documents", out[1], passages, lines)
    lines += _left_out(results.without)
    if "answers" in section.assign.texts:
        lines.append(f"next:  ragarena nuggets score {out[0]}")
    tell(told | {"without": dict(results.without)}, lines, as_json=as_json)
    if not summary.complete or not results.finished:
        raise typer.Exit(INCOMPLETE)


def edit_nuggets(before: Path, after: Path, out: Path, by: str) -> NuggetEdits:
    """Write the edited nuggets with their history.

    Raises:
        DataError: a file cannot be read, or an edited nugget names what was not there.
    """
    old, new = ({bank.query_id: bank for bank in read_banks(path)} for path in (before, after))
    at = datetime.now(UTC).isoformat(timespec="seconds")
    done: dict[str, list[Change]] = {}
    banks = []
    for query_id in {**old, **new}:
        was = old.get(query_id, NuggetBank(query_id, "", ()))
        now = new.get(query_id, was)
        try:
            done[query_id] = changes(was, now)
            banks.append(edited(was, now, by=by, at=at))
        except ValueError as error:
            raise DataError(after, f"query {query_id!r}: {error}") from error
    write_banks(out, banks)
    return NuggetEdits(str(out), done, [query_id for query_id in old if query_id not in new])


def require_free(out: Path, force: bool) -> None:
    """A file that a person may have edited is not written over unasked."""
    if out.exists() and not force:
        raise InputError(f"{out}: is there already; name another file with --out, or say --force")


def _run(config: Config, tasks: Sequence[Task], data: Dataset | None = None, *, retry_failed: bool) -> RunSummary:
    with Bars(shown=errors.is_terminal) as bars:
        summary = tournament.run(config, bars, data=data, only=tasks, retry_failed=retry_failed)
    print_summary(summary)
    return summary


def _written(what: str, file: Path, assignments: Sequence[Assignment], lines: list[str]) -> dict[str, Any]:
    labels = [label for own in assignments for label in own.labels]
    assigned = sum(label is not None for label in labels)
    lines.append(f"wrote {file}: {assigned} of {len(labels)} labels of {len(assignments)} {what}")
    return {"file": str(file), what: len(assignments), "labels": len(labels), "assigned": assigned}


def _left_out(without: Mapping[str, str]) -> Iterator[str]:
    for why, number in Counter(without.values()).items():
        yield f"- {counted(number, 'query', 'queries')} left out: {why}"
