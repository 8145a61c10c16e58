"""``nuggets edit``: what people made of a list of nuggets, before and after, with its history."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from arena.boards.nugget_lists import NuggetEdits
from judges.errors import DataError
from retrieval_eval.nuggets.editing import Change, changes, edited
from retrieval_eval.nuggets.files import read_banks, write_banks
from retrieval_eval.nuggets.types import NuggetBank


def edit_nuggets(before: Path, after: Path, out: Path, by: str) -> NuggetEdits:
    """Write the edited nuggets with their history.

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
    return NuggetEdits(out, done, [query_id for query_id in old if query_id not in new])
