"""``nuggets edit``: what people made of a list of nuggets, before and after, with its history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from arena.cli.console import output, print_json, printable
from arena.cli.tables import print_table
from judges.errors import DataError
from retrieval_eval.nuggets.editing import Change, Kind, changes, edited
from retrieval_eval.nuggets.files import read_banks, write_banks
from retrieval_eval.nuggets.types import NuggetBank


def edit_nuggets(before: Path, after: Path, out: Path, *, by: str, as_json: bool) -> None:
    """Write the edited nuggets with their history, and print what changed.

    Raises:
        DataError: a file cannot be read, or an edited nugget names what was not there.
    """
    old = {bank.query_id: bank for bank in read_banks(before)}
    new = {bank.query_id: bank for bank in read_banks(after)}
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
    untouched = [query_id for query_id in old if query_id not in new]
    if as_json:
        shown = {query_id: [asdict(change) for change in own] for query_id, own in done.items()}
        print_json({"file": str(out), "changes": shown, "not_in_edited_file": untouched})
    else:
        _print(out, done, untouched)


def _print(out: Path, done: dict[str, list[Change]], untouched: Sequence[str]) -> None:
    rows = [
        [query_id, " + ".join(change.before) or "-", change.after or "-", change.kind.value, _importance(change)]
        for query_id, own in done.items()
        for change in own
        if change.kind is not Kind.KEPT
    ]
    if rows:
        print_table(["query", "before", "after"], ["change", "importance"], rows)
        output.print()
    counts = Counter(change.kind for own in done.values() for change in own)
    told = ", ".join(f"{number} {kind.value}" for kind in Kind if (number := counts[kind]))
    output.print(printable(f"wrote {out}: {told or 'no nuggets'}"))
    if untouched:
        output.print(printable(f"- not in the edited file, kept as they were: {', '.join(untouched)}"))


def _importance(change: Change) -> str:
    if change.after is None or not change.before or change.importance is change.importance_before:
        return str(change.importance or change.importance_before or "-")
    return f"{change.importance_before or '-'} -> {change.importance or '-'}"
