"""Batches of requests to hosted models, at half the price and within a day: their types, and the record of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from judges.errors import ProviderError
from judges.types import Completion


class Batch(Struct, frozen=True):
    """A batch in the record.

    Attributes:
        marker: the id that this program gives the batch before it submits the batch.
        made_at: time of its creation, in seconds since 1970.
        requests: number of its requests.
        remote_id: the server's id of the batch; ``None`` until the server's answer to the submission is known.
    """

    marker: str
    made_at: float
    requests: int
    remote_id: str | None = None


class Book(Protocol):
    """The persistent record of batches and their requests. Its methods may be called in any thread."""

    def place(self, batch: Batch, lines: Mapping[str, str]) -> dict[str, Batch]:
        """Record a batch that is about to be submitted, with the requests that are in no other batch.

        Args:
            batch: the new batch.
            lines: judgment ids by request id.

        Returns:
            The batch of each request: the new batch or an earlier batch.
        """
        ...

    def custom_ids(self, marker: str) -> set[str]:
        """Ids of the requests in a batch."""
        ...

    def submitted(self, marker: str, remote_id: str) -> None:
        """Record that the server accepted a batch, with the server's id of the batch."""
        ...

    def free(self, custom_ids: Sequence[str]) -> None:
        """Release requests that got no reply, so that they can go into another batch."""
        ...

    def drop(self, marker: str) -> None:
        """Delete a batch that the server does not have, and release its requests."""
        ...


BatchOutcome: TypeAlias = tuple[str, Completion | ProviderError]
"""A request's id, and its completion or error."""

BatchEnding: TypeAlias = Literal["completed", "cancelled", "expired"]
"""How a batch ended: ``cancelled`` or ``expired`` if any of its requests was left unanswered for that reason."""
