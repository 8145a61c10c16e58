"""Judgments and wants have checksums; those that are there have none until ``store check --add``."""

from alembic import op
from sqlalchemy import BigInteger, Column

revision = "4"
down_revision = "3"


def upgrade() -> None:
    """Two columns more, of which nothing depends."""
    for table in ("judgment", "wanted"):
        op.add_column(table, Column("checksum", BigInteger))
