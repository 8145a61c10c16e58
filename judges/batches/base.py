"""What a batch is to the desk that follows it, to the book that remembers it and to the server that works it off."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from judges.errors import ProviderError
from judges.providers.base import Provider
from judges.providers.endpoint import HttpAnswer
from judges.types import Completion, Prompt


@dataclass(frozen=True, slots=True)
class Batch:
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


Outcome: TypeAlias = tuple[str, Completion | ProviderError]
"""What became of one request, by its id."""

Ending: TypeAlias = Literal["completed", "cancelled", "expired"]
"""How a batch ended: cancelled or expired if a request was not answered for that reason."""


class BatchServer(Protocol):
    """One vendor's batch API. What it raises is a ``ProviderError``: transient where asking again may help.

    Attributes:
        most_requests: that one batch may hold.
        most_bytes: that all its lines may take together.
    """

    most_requests: int
    most_bytes: int

    def line(self, custom_id: str, body: Mapping[str, Any]) -> bytes:
        """One request as JSON on one line."""
        ...

    async def submit(self, marker: str, lines: Sequence[bytes]) -> str:
        """Hand in a batch; returns the server's name for it. After a transient error the server may have it or not."""
        ...

    async def find(self, batch: Batch, custom_ids: Collection[str]) -> str | None:
        """The server's name for a batch that was handed in without its answer having come; ``None`` if it has none.

        Raises:
            UndecidedError: it cannot be told yet.
        """
        ...

    async def look(self, remote_id: str) -> Ending | ProviderError | None:
        """How a batch has ended; ``None`` while it has not, an error if it was refused as a whole."""
        ...

    async def cancel(self, remote_id: str) -> None:
        """Ask the server to answer no more requests of a batch. Those that were answered are among its outcomes."""
        ...

    async def delete_files(self, remote_id: str) -> None:
        """Delete what was uploaded for a batch that has ended, and what came of it; nobody will read it again."""
        ...

    def outcomes(self, remote_id: str) -> AsyncIterator[Outcome]:
        """What became of its requests, in any order, once it has ended."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class HostedProvider(Provider, Protocol):
    """A provider whose requests can also be put into a batch."""

    def request(self, prompt: Prompt) -> dict[str, Any]:
        """The body that asks for a reply."""
        ...

    def read(self, answer: HttpAnswer) -> Completion:
        """The reply that an answer holds, or ``TransientError``."""
        ...
