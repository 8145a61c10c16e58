"""Stores of earlier versions, brought up to date by Alembic in the transaction that opens them.

The version of a store is the number in its ``state`` table, which every reader can check with one SELECT; Alembic's own
table follows it. New tables need no revision of their own: whoever opens a store to write makes those that it lacks.
"""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from arena.store.rows import METADATA, SCHEMA_VERSION, STATE_ROWS, has_table


def bring_up_to_date(connection: Connection) -> None:
    """Make the tables that are lacking, after those of an earlier version have become those of this one."""
    from arena.store import agents, batches, cache, runs  # noqa: F401 - their tables

    found = None
    if has_table(connection, STATE_ROWS):
        found = connection.execute(select(STATE_ROWS.c.schema_version)).scalar()
    if found is not None and found < SCHEMA_VERSION:
        _upgrade(connection)
    METADATA.create_all(connection)
    if found is None:
        connection.execute(insert(STATE_ROWS), {"only": 1, "schema_version": SCHEMA_VERSION, "changes": 0})


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "arena.store:migrations")
    command.upgrade(config, "head")
