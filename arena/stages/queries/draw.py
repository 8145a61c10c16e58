"""Draws by hash: seeded, without replacement, and the same whatever the order in which things come in.

Everything that can be drawn has a place of its own, given by the seed and its id alone. A draw takes the first ones, so
that something added or taken away changes a draw only where it stands itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

Item = TypeVar("Item")


def place(seed: int, ident: str) -> str:
    """Where something stands in the order of a draw; ids are told apart exactly."""
    return hashlib.sha256(f"{seed}\0{ident}".encode()).hexdigest()


def drawn(items: Iterable[Item], seed: int, ident: Callable[[Item], str]) -> list[Item]:
    """All items in the order of the draw."""
    return sorted(items, key=lambda item: (place(seed, ident(item)), ident(item)))


def by_quota(items: Iterable[Item], quotas: Mapping[str, int], group: Callable[[Item], str]) -> list[Item]:
    """The first items of each group up to its quota, in their order; all where there are no quotas.

    A group with fewer items than its quota gives them all; what is missing is for the caller to say.
    """
    if not quotas:
        return list(items)
    left = dict(quotas)
    taken = []
    for item in items:
        if left.get(group(item), 0) > 0:
            left[group(item)] -= 1
            taken.append(item)
    return taken
