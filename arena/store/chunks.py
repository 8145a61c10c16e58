"""Long lists for a database in short ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

CHUNK: Final = 500
"""Rows that one statement takes."""
Item = TypeVar("Item")


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of at most ``size``."""
    chunk: list[Item] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
