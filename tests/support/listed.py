"""Requests that nobody has to wait for."""

from __future__ import annotations

from collections.abc import Iterator

from judges.judge import Request, RequestSource


class Listed(RequestSource):
    """A source over an iterator that never has to be waited for."""

    def __init__(self, requests: Iterator[Request]) -> None:
        self._requests = requests
        self._ended = False

    def take(self) -> Request | None:
        """The next one."""
        request = next(self._requests, None)
        self._ended = request is None
        return request

    async def more(self) -> bool:
        """Whether the iterator may have more."""
        return not self._ended

    def put_back(self, request: Request) -> None:
        """Nobody else waits for it."""

    def end(self) -> None:
        """Nothing to release."""
