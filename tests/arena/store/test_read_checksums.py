"""Rows that the database puts together itself are those that one finds one by one, whatever is in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arena.store import Store, checksums
from arena.store.bulk import load
from arena.store.checksums import Idents, ToArray, or_none, places
from arena.store.rows import JUDGMENT_ROWS, checksum

SEPARATORS = "\x00\x1e\x1f,\n"
TEXTS = st.just("None") | st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(SEPARATORS), max_size=5)
SECONDS = st.floats(0, 1e9) | st.sampled_from([0.0, 0.1, 1 / 3, 1e-300, 123456.789012345678])
Given = tuple[str | None, str, int, float, float | None]
ROWS = st.lists(st.tuples(TEXTS | st.none(), TEXTS, st.integers(0, 9), SECONDS, SECONDS | st.none()), max_size=9)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    on_file = request.param == "sqlite"
    location = tmp_path_factory.mktemp("scan") / "s.db" if on_file else request.getfixturevalue("postgres").database()
    with closing(Store.create(str(location))) as made:
        yield made


def fingerprints(idents: Sequence[str]) -> Idents:
    return checksums.fingerprints(pa.array([ident.encode() for ident in idents], pa.binary()))


def few(block: ToArray) -> Mapping[str, pa.Array]:
    return {"outcome": or_none(block("outcome")), "reason": block("reason")}


def write(store: Store, rows: Sequence[Given]) -> None:
    """Judgments that differ in what is given."""
    values = []
    for number, (outcome, reason, calls, seconds, cost) in enumerate(rows):
        said = ("pairwise", "p", "m", outcome, None, reason, "", "[]", 1, None, 2)
        row = (f"{number:032x}", *said, calls, seconds, cost)
        values.append((*row, checksum(row)))
    with store.writing(alone=True) as connection:
        connection.exec_driver_sql("DELETE FROM judgment")
        load(connection, JUDGMENT_ROWS, values)


def read(store: Store) -> tuple[list[tuple[str | None, str | None, int]], list[str]]:
    """All rows as they are scanned, in the order of their ids, and the ids of the damaged ones."""
    damaged: list[tuple[str, ...]] = []
    with store.reading() as connection:
        columns, idents = checksums.scan(connection, JUDGMENT_ROWS, few, ["calls"], damaged)  # type: ignore[arg-type]
    texts = ([column.names[code] for code in column.codes] for column in columns.texts.values())
    rows = list(zip(*texts, columns.numbers["calls"].tolist(), strict=True))
    order = places(fingerprints([f"{number:032x}" for number in range(len(rows) + 1)]), idents)
    assert order[-1] == -1
    return [rows[at] for at in order[:-1]], [row[0] for row in damaged]


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_whatever_texts_and_numbers_rows_hold(
    store: Store, rows: list[tuple[str | None, str, int, float, float]]
) -> None:
    assume(
        store._engine.dialect.name == "sqlite" or not any("\x00" in str(text) for row in rows for text in row)
    )  # which no text of PostgreSQL holds
    write(store, rows)
    assert read(store) == ([(None if outcome == "None" else outcome, *said) for outcome, *said, _, _ in rows], [])


def test_usual_rows_are_not_read_one_by_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    write(store, [('"A"', "é ü", 1, 0.12345678901234567, 1e-05), (None, "", 3, 1 / 3, None)] * 9)
    monkeypatch.setattr(checksums, "_BLOCK", 4)
    monkeypatch.delattr(checksums, "_block_of_rows")
    rows, damaged = read(store)
    assert (len(rows), damaged) == (18, [])


def test_what_rows_share_may_end_within_a_block(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Given] = [('"A"', "because", 1, 0.5, None)] * 8 + [('"B"', "because", 1, 0.5, 2.0)] * 3
    given += [(None, "x" * 2 * checksums._MAX_SHARED_CHARS, 3, 0.25, None)] * 8
    write(store, given)
    monkeypatch.setattr(checksums, "_BLOCK", 4)
    monkeypatch.setattr(checksums, "_MAX_BLOCK_ROWS", 4)
    assert read(store) == ([(outcome, reason, calls) for outcome, reason, calls, _, _ in given], [])


def test_a_damaged_row_is_named_among_sound_blocks(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    write(store, [('"A"', "because", 1, 0.5, None)] * 10)
    monkeypatch.setattr(checksums, "_BLOCK", 4)
    with store.writing(alone=True) as connection:
        connection.exec_driver_sql(f"UPDATE judgment SET latency_s = 0.25 WHERE judgment_id = '{5:032x}'")
    rows, damaged = read(store)
    assert (len(rows), damaged) == (10, [f"{5:032x}"])


def test_tables_of_many_pages_are_read_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of them empty, one with a damaged row, one with a text that no block can hold beside others."""
    given: list[Given] = [('"A"', f"because of {number}", number, number / 7, None) for number in range(3000)]
    given[1500] = ('"B"', "x" * 5_000_000, 1, 0.5, 2.0)
    write(store, given)
    monkeypatch.setattr(checksums, "_MAX_BLOCK_CHARS", 100_000)
    with store.writing(alone=True) as connection:
        gone = ", ".join(f"'{number:032x}'" for number in range(2000, 3000))
        connection.exec_driver_sql(f"DELETE FROM judgment WHERE judgment_id IN ({gone})")
        connection.exec_driver_sql(f"UPDATE judgment SET calls = 7 WHERE judgment_id = '{5:032x}'")
    rows, damaged = read(store)
    assert damaged == [f"{5:032x}"]
    assert rows[:5] + rows[6:] == [
        (outcome, reason, calls) for outcome, reason, calls, _, _ in given[:5] + given[6:2000]
    ]


IDS = st.text("ab0", min_size=1, max_size=20)


@given(st.lists(IDS, unique=True, min_size=1), st.lists(IDS, min_size=1), st.booleans())
def test_each_id_is_found_where_it_is(known: list[str], sought: list[str], alike: bool) -> None:
    at = {ident: place for place, ident in enumerate(known)}
    ours, theirs = fingerprints(sought), np.concatenate([fingerprints([ident]) for ident in known])
    if alike:  # in their first half
        ours["first"] = theirs["first"] = 1
    assert places(ours, theirs).tolist() == [at.get(ident, -1) for ident in sought]
