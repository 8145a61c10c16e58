"""What nuggets are, how a list of them grows, and what an answer says of them (Pradeep et al. 2024, section 3)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct, field


class Importance(StrEnum):
    """Whether a good answer must state the nugget, or is merely better for it."""

    VITAL = "vital"
    OKAY = "okay"


class Support(StrEnum):
    """How much of a nugget an answer states. With two grades there is no ``PARTIAL``."""

    FULL = "support"
    PARTIAL = "partial_support"
    NONE = "not_support"


class Nugget(Struct, frozen=True):
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


class NuggetBank(Struct, frozen=True):
    """The nuggets of one query, most important first.

    Attributes:
        query: the query's text.
        details: whatever else a file says of it.
    """

    query_id: str
    query: str
    nuggets: tuple[Nugget, ...]
    details: Mapping[str, Any] = field(default_factory=dict)


class Assignment(Struct, frozen=True):
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


def of_empty_answer(bank: NuggetBank, run: str) -> Assignment:
    """An empty answer states nothing, and no judge need be asked."""
    labels = (Support.NONE,) * len(bank.nuggets)
    return Assignment(bank.query_id, run, bank.nuggets, labels, words=0, answer="", query=bank.query)


Item = TypeVar("Item")

WINDOW = 10
"""Documents that a judge reads at a time."""
MOST = 30
"""Nuggets that a list holds at most while it grows; what a person is given to edit."""
KEPT = 20
"""Nuggets that are kept once their importance is known."""
BATCH = 10
"""Nuggets that a judge labels at a time."""


def windows(
    ranked: Iterable[str], labels: Mapping[str, int], *, from_label: int = 1, size: int = WINDOW
) -> list[tuple[str, ...]]:
    """The relevant documents in the order they are read, cut into windows; the last one may be shorter.

    Args:
        ranked: document ids, best first; one that comes again is read once.
        labels: relevance of documents; one without a label is not read.
        from_label: the lowest label that counts as relevant.
        size: documents in a window.
    """
    relevant = [doc_id for doc_id in dict.fromkeys(ranked) if doc_id in labels and labels[doc_id] >= from_label]
    return batches(relevant, size)


def updated_list(reply: Iterable[str], *, most: int = MOST) -> tuple[str, ...]:
    """The list of nuggets after a turn: the judge's list without empty texts and repetitions, its first ``most``.

    Texts are the same if they differ only in case and white space.
    """
    nuggets: dict[str, str] = {}
    for text in reply:
        words = " ".join(text.split())
        if words:
            nuggets.setdefault(words.casefold(), words)
    return tuple(nuggets.values())[:most]


def kept_nuggets(
    texts: Sequence[str], importances: Sequence[Importance], *, keep: int = KEPT
) -> list[tuple[str, Importance]]:
    """The first ``keep`` nuggets, vital ones before okay ones, otherwise in the judge's order of importance.

    Raises:
        ValueError: there are more texts than importances, or fewer.
    """
    labelled = list(zip(texts, importances, strict=True))
    return sorted(labelled, key=lambda entry: entry[1] is not Importance.VITAL)[:keep]


def batches(items: Sequence[Item], size: int = BATCH) -> list[tuple[Item, ...]]:
    """The items in order, ``size`` at a time; the last batch may be smaller.

    Raises:
        ValueError: ``size`` is less than 1.
    """
    if size < 1:
        raise ValueError(f"a batch holds at least one item, not {size}")
    return [tuple(items[start : start + size]) for start in range(0, len(items), size)]
