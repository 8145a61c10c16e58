"""The prompt caches of OpenAI and Anthropic, as their documentation describes them, for the scripted server."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

LEAST = 1_024
"""Fewest tokens of a prefix that is cached; Anthropic's models differ, from 1,024 to 4,096."""
_STEP = 128
_CHARACTERS = 4
"""Characters of a token."""


class Sent(Struct, frozen=True):
    """Tokens of one prompt; ``fresh`` were neither read from the cache nor written to it."""

    fresh: int
    cached: int
    written: int = 0

    @property
    def all(self) -> int:
        return self.fresh + self.cached + self.written

    def __add__(self, other: Sent) -> Sent:
        return Sent(self.fresh + other.fresh, self.cached + other.cached, self.written + other.written)


class PrefixCache:
    """Counts what of each prompt an earlier one has left in the cache.

    At OpenAI's endpoint prefixes are cached by themselves, from ``LEAST`` tokens in steps of 128; at Anthropic's only
    up to a mark ``cache_control``, and what is written is charged. A prefix can be read once a reply to it has begun.

    Attributes:
        least: fewest tokens of a cached prefix.
        written_usd: price of a token written, as a multiple of a fresh one.
        total: the tokens of all prompts so far.
    """

    written_usd = 1.25

    def __init__(self, least: int = LEAST) -> None:
        self.least = least
        self.total = Sent(0, 0)
        self._begun: dict[str, float] = {}

    def take(self, path: str, body: Mapping[str, Any], at: float, begins: float) -> Sent:
        """Count a prompt that came ``at`` a time, and whose reply begins at ``begins``."""
        whole, marks = _texts(body)
        tokens, model = len(whole) // _CHARACTERS, str(body.get("model"))
        anthropic = path.endswith("/messages")
        ends = [mark // _CHARACTERS for mark in marks] if anthropic else range(tokens // _STEP * _STEP, 0, -_STEP)
        keys = {end: f"{model} {_digest(whole[: end * _CHARACTERS])}" for end in ends if end >= self.least}
        cached = max((end for end, key in keys.items() if self._begun.get(key, begins) <= at), default=0)
        for key in keys.values():
            self._begun[key] = min(begins, self._begun.get(key, begins))
        written = max(keys, default=0) - cached if anthropic else 0
        sent = Sent(tokens - cached - written, cached, written)
        self.total += sent
        return sent


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _texts(body: Mapping[str, Any]) -> tuple[str, list[int]]:
    """The prompt as one text, and where in it a mark of the cache stands, the last first."""
    whole, marks = "", []
    for role, text, marked in _blocks(body):
        whole += f"{role}\n{text}\n"
        if marked:
            marks.append(len(whole))
    return whole, marks[::-1]


def _blocks(body: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    system = [{"role": "system", "content": body["system"]}] if body.get("system") else []
    for message in [*system, *body["messages"]]:
        content = message["content"]
        for block in [{"text": content}] if isinstance(content, str) else content:
            yield message["role"], block["text"], "cache_control" in block
