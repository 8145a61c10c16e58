"""The first version of a store."""

revision = "1"
down_revision = None


def upgrade() -> None:
    """No store is older."""
