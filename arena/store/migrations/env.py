"""Run by Alembic: one revision after the other on the connection that it is given, in that one's transaction."""

from __future__ import annotations

from typing import Any

from alembic import context
from sqlalchemy import Connection, text

connection: Connection = context.config.attributes["connection"]


def note(ctx: object, step: Any, heads: object, run_args: object) -> None:  # noqa: ARG001 - Alembic names them
    """A revision is done: the store is of that version from now on."""
    connection.execute(text("UPDATE state SET schema_version = :to"), {"to": int(step.up_revision_id)})


context.configure(connection=connection, on_version_apply=note)
found = connection.execute(text("SELECT schema_version FROM state")).scalar_one()
context.get_context().stamp(context.script, str(found))
context.run_migrations()
