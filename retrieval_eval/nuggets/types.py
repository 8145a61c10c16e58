"""What nuggets are and what an answer says of them (Pradeep et al. 2024, *AutoNuggetizer*, section 3)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Importance(StrEnum):
    """Whether a good answer must state the nugget, or is merely better for it."""

    VITAL = "vital"
    OKAY = "okay"


class Support(StrEnum):
    """How much of a nugget an answer states. With two grades there is no ``PARTIAL``."""

    FULL = "support"
    PARTIAL = "partial_support"
    NONE = "not_support"


@dataclass(frozen=True, slots=True)
class Nugget:
    """One fact that an answer to the query may state.

    Attributes:
        nugget_id: ``query_id/md5 of the stripped text``, with ``#2`` where a bank repeats a text.
        importance: ``None`` where nobody has said.
        details: whatever else a file says of it.
    """

    nugget_id: str
    query_id: str
    text: str
    importance: Importance | None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NuggetBank:
    """The nuggets of one query, most important first.

    Attributes:
        query: the query's text.
        details: whatever else a file says of it.
    """

    query_id: str
    query: str
    nuggets: tuple[Nugget, ...]
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one run's answer to one query states of the query's nuggets.

    Attributes:
        labels: one per nugget, in the same order; ``None`` where the judge failed, which is not ``Support.NONE``.
        words: length of the answer in words between white space.
        answer: its text, ``None`` where it is not recorded.
        query: the query's text.
        details: whatever else a file says of the answer.
        label_details: whatever else a file says of each label, one per nugget; empty where it says nothing.
    """

    query_id: str
    run: str
    nuggets: tuple[Nugget, ...]
    labels: tuple[Support | None, ...]
    words: int
    answer: str | None = None
    query: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    label_details: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.nuggets):
            raise ValueError(f"{len(self.labels)} labels for {len(self.nuggets)} nuggets")


def make_nuggets(
    query_id: str,
    texts: Sequence[str],
    importances: Sequence[Importance | None],
    details: Sequence[Mapping[str, Any]] = (),
) -> tuple[Nugget, ...]:
    """Nuggets of one query with their ids.

    Args:
        query_id: the query.
        texts: one per nugget.
        importances: one per nugget.
        details: one per nugget, or none at all.
    """
    seen: Counter[str] = Counter()
    nuggets = []
    for text, importance, own in zip(texts, importances, details or [{}] * len(texts), strict=True):
        digest = hashlib.md5(text.strip().encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
        seen[digest] += 1
        repeated = f"#{seen[digest]}" if seen[digest] > 1 else ""
        nuggets.append(Nugget(f"{query_id}/{digest}{repeated}", query_id, text, importance, own))
    return tuple(nuggets)


def count_words(text: str) -> int:
    """Words between white space: the length that the track's report and its limit of 400 words mean."""
    return len(text.split())


def of_empty_answer(bank: NuggetBank, run: str) -> Assignment:
    """An empty answer states nothing, and no judge need be asked."""
    labels = (Support.NONE,) * len(bank.nuggets)
    return Assignment(bank.query_id, run, bank.nuggets, labels, words=0, answer="", query=bank.query)
