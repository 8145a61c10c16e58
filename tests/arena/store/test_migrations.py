"""Stores of earlier versions come up to date on both kinds of database, and lose nothing on the way."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from msgspec.structs import replace
from sqlalchemy import select

from arena.store import Store, Wanted
from arena.store.check import add, check
from arena.store.rows import METADATA, STATE_ROWS
from judges.errors import StoreError
from judges.types import Task
from tests.support.postgres import PostgresServer
from tests.support.stores import DATA, JUDGMENT, save

WANT = Wanted(Task.PAIRWISE, "j", "q1", "x", "y", "ab")
FIRST_VERSION = """
    ALTER TABLE wanted RENAME TO later;
    DROP INDEX ix_wanted_judgment_id;
    CREATE TABLE wanted (tournament_id INTEGER NOT NULL, task VARCHAR NOT NULL, judge VARCHAR NOT NULL,
        query_id VARCHAR NOT NULL, item VARCHAR NOT NULL, other VARCHAR NOT NULL, "order" VARCHAR NOT NULL,
        position INTEGER NOT NULL, judgment_id VARCHAR,
        PRIMARY KEY (tournament_id, task, judge, query_id, item, other, "order"),
        FOREIGN KEY(tournament_id) REFERENCES tournament (tournament_id));
    CREATE INDEX ix_wanted_judgment_id ON wanted (judgment_id);
    INSERT INTO wanted SELECT tournament_id, task, judge, query_id, item, other, "order", position, judgment_id
        FROM later;
    DROP TABLE later"""
SECOND_VERSION = "DROP TABLE lease; DROP TABLE runner; DROP TABLE label; DROP TABLE annotation; DROP TABLE agent_reply"
THIRD_VERSION = (
    "ALTER TABLE judgment DROP COLUMN checksum; ALTER TABLE wanted DROP COLUMN checksum; DROP TABLE checksum"
)


def made_older(location: str, version: int) -> None:
    """A store as an earlier version wrote it."""
    store = Store.create(location)
    store.begin("t", {}, DATA, [WANT])
    store.assign("t", [(WANT, "1")])
    steps = [THIRD_VERSION, *([SECOND_VERSION] if version < 3 else []), *([FIRST_VERSION] if version == 1 else [])]
    statements = "; ".join(steps)
    with store._engine.begin() as connection:
        for statement in f"{statements}; UPDATE state SET schema_version = {version}".split(";"):
            connection.exec_driver_sql(statement)
    store.close()


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_of_an_earlier_version_is_brought_up_to_date_by_whoever_writes(
    store_location: str, version: int
) -> None:
    made_older(store_location, version)
    with pytest.raises(StoreError, match="earlier version of ragleague; 'ragleague run' brings it up to date"):
        Store.open(store_location)
    Store.create(store_location).close()
    brought = Store.open(store_location)
    assert brought.wanted("t") == [(WANT, "1")]
    assert brought.dataset("t") == replace(DATA, qrels={})
    twice = [WANT, replace(WANT, sample=1)]
    brought.begin("t", {}, DATA, twice)
    assert [want for want, _ in brought.wanted("t")] == twice
    brought.close()


def test_a_store_of_the_version_before_is_read_as_it_is(store_location: str) -> None:
    """Nothing is written to it, its judgments have no checksum, and a run finds them all."""
    store = Store.create(store_location)
    save(store, JUDGMENT)
    store.close()
    made_older(store_location, 3)
    with closing(Store.open(store_location)) as older:
        assert older.results([JUDGMENT.judgment_id]) == {JUDGMENT.judgment_id: JUDGMENT}
        assert older.wanted("t") == [(WANT, "1")]
        older.verify("t")
        found = check(older)
        assert (found.judgments, found.uncovered, found.problems) == (1, 2, ())
        with older.reading() as connection:
            assert connection.execute(select(STATE_ROWS.c.schema_version)).scalar() == 3
    with closing(Store.create(store_location)) as brought:
        assert brought.results([JUDGMENT.judgment_id]) == {JUDGMENT.judgment_id: JUDGMENT}
        add(brought)
        assert check(brought).uncovered == 0
        brought.verify("t")


def test_a_store_of_the_version_before_is_read_from_a_database_that_takes_no_writing(postgres: PostgresServer) -> None:
    location = postgres.database()
    made_older(location, 3)
    with psycopg.connect(location, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    with closing(Store.open(location)) as older:
        assert older.wanted("t") == [(WANT, "1")]
        with pytest.raises(StoreError, match="read-only"):
            older.announce("u")


@pytest.mark.parametrize("version", [1, None], ids=["brought up to date", "new"])
def test_the_tables_are_those_that_the_code_declares(store_location: str, version: int | None) -> None:
    """Alembic itself finds nothing to change, but for its own table."""
    if version is not None:
        made_older(store_location, version)
    store = Store.create(store_location)
    with store.reading() as connection:
        found = compare_metadata(MigrationContext.configure(connection), METADATA)
        key = connection.dialect.get_pk_constraint(connection, "wanted")["constrained_columns"]
    assert found == []
    assert key == [column.name for column in METADATA.tables["wanted"].primary_key]
    store.close()
