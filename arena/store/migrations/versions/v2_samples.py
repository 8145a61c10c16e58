"""A want says which repetition it is, where a judge is asked several times."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, ForeignKey, Integer, String, text

revision = "2"
down_revision = "1"

_KEY = {"tournament_id": Integer, **dict.fromkeys(("task", "judge", "query_id", "item", "other", "order"), String)}


def upgrade() -> None:
    """The key changes, which SQLite cannot do: the table is made anew and filled from the old one."""
    op.rename_table("wanted", "earlier")
    op.drop_index("ix_wanted_judgment_id", "earlier")
    refers = {"tournament_id": [ForeignKey("tournament.tournament_id")]}
    op.create_table(
        "wanted",
        *(
            Column(name, kind, *refers.get(name, ()), primary_key=True, autoincrement=False)
            for name, kind in _KEY.items()
        ),
        Column("sample", Integer, primary_key=True, autoincrement=False),
        Column("position", Integer, nullable=False),
        Column("judgment_id", String),
    )
    op.create_index("ix_wanted_judgment_id", "wanted", ["judgment_id"])
    columns = ", ".join(f'"{name}"' for name in (*_KEY, "position", "judgment_id"))
    op.execute(text(f"INSERT INTO wanted ({columns}, sample) SELECT {columns}, 0 FROM earlier"))  # noqa: S608
    op.drop_table("earlier")
