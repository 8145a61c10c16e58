"""Which prompts go through a local model together: those that begin alike, or are alike in length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

Tokens = list[int]


def shared_prefix(prompts: Sequence[Tokens]) -> int:
    """How many tokens all prompts begin with alike; never the whole of one, since a reply needs something to follow."""
    first, last = min(prompts), max(prompts)  # whatever these share lies between them
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
    return min(alike, min(map(len, prompts)) - 1)


def cost(prompts: Sequence[Tokens]) -> int:
    """Tokens that a model works through for one batch: the shared beginning once, all else padded to the longest."""
    shared = shared_prefix(prompts)
    return shared + len(prompts) * (max(map(len, prompts)) - shared)


def arranged(prompts: Sequence[Tokens], size: int) -> list[list[int]]:
    """Batches of at most ``size`` prompts, by their places, in the order that costs least of three.

    As they came, by their tokens (so that neighbours begin alike), and by length (so that little is padded).
    """
    places = range(len(prompts))
    orders = (places, sorted(places, key=prompts.__getitem__), sorted(places, key=lambda at: len(prompts[at])))
    divided = [[list(order[start : start + size]) for start in range(0, len(prompts), size)] for order in orders]
    return min(divided, key=lambda batches: sum(cost([prompts[at] for at in batch]) for batch in batches))
