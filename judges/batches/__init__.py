"""Asking a hosted model in batches, for half the price and within a day: what a batch is, and who remembers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from judges.errors import ProviderError
from judges.types import Completion


class Batch(Struct, frozen=True):
    """A batch as it is remembered.

    Attributes:
        marker: names it on our side, before the server has heard of it.
        made_at: seconds since 1970.
        requests: how many it holds.
        remote_id: the server's name for it; ``None`` until the server has told it, whether it came there or not.
    """

    marker: str
    made_at: float
    requests: int
    remote_id: str | None = None


class Book(Protocol):
    """Remembers which request is in which batch, beyond the end of this process. Works in any thread."""

    def place(self, batch: Batch, lines: Mapping[str, str]) -> dict[str, Batch]:
        """Remember a batch that is about to be submitted, with those of its requests that are in no other one.

        Args:
            batch: new.
            lines: the judgment's id of each request by the request's own.

        Returns:
            The batch that each request is in, the new one or an earlier one.
        """
        ...

    def custom_ids(self, marker: str) -> set[str]:
        """The requests of a batch."""
        ...

    def submitted(self, marker: str, remote_id: str) -> None:
        """The server has taken a batch."""
        ...

    def free(self, custom_ids: Sequence[str]) -> None:
        """These requests brought no reply, and may go into another batch."""
        ...

    def drop(self, marker: str) -> None:
        """The server does not have this batch, so that its requests are free."""
        ...


BatchOutcome: TypeAlias = tuple[str, Completion | ProviderError]
"""What became of one request, by its id."""

BatchEnding: TypeAlias = Literal["completed", "cancelled", "expired"]
"""How a batch ended: cancelled or expired if a request was not answered for that reason."""
