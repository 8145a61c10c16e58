"""Stores of earlier versions, brought up to date one version at a time, in the transaction that opens them."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, inspect, text
from sqlmodel import SQLModel

from arena.store.rows import StateRow, WantedRow, table


def bring_up_to_date(connection: Connection) -> None:
    """Change the tables of an earlier version into those of this one; whoever opens the store makes the new ones."""
    if StateRow.__tablename__ not in inspect(connection).get_table_names():
        return
    for version, change in enumerate(_CHANGES, start=1):
        found = connection.execute(text("SELECT schema_version FROM state")).scalar()
        if found == version:
            change(connection)
            connection.execute(text("UPDATE state SET schema_version = :to"), {"to": version + 1})


def _number_the_samples(connection: Connection) -> None:
    """Version 2: a want says which repetition it is."""
    connection.execute(text("ALTER TABLE wanted RENAME TO earlier"))
    connection.execute(text("DROP INDEX IF EXISTS ix_wanted_judgment_id"))
    SQLModel.metadata.create_all(connection, tables=[table(WantedRow)])
    columns = ", ".join(f'"{column.name}"' for column in table(WantedRow).columns if column.name != "sample")
    connection.execute(text(f"INSERT INTO wanted ({columns}, sample) SELECT {columns}, 0 FROM earlier"))  # noqa: S608
    connection.execute(text("DROP TABLE earlier"))


def _only_new_tables(_connection: Connection) -> None:
    """Version 3: nothing that was there changes."""


_CHANGES: list[Callable[[Connection], None]] = [_number_the_samples, _only_new_tables]
