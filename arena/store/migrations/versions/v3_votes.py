"""Tables for what people say, for runners and for agents' replies; nothing that was there changes."""

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Whoever opens the store makes the new tables."""
