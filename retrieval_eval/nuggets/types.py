"""Nuggets, banks and assignments, and the steps that build a list of nuggets (Pradeep et al. 2024, section 3)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct, field


class Importance(StrEnum):
    """Whether a good answer must state the nugget (vital), or may omit it but is better with it (okay)."""

    VITAL = "vital"
    OKAY = "okay"


class Support(StrEnum):
    """How much of a nugget an answer states; a judge with two grades does not use ``PARTIAL``."""

    FULL = "support"
    PARTIAL = "partial_support"
    NONE = "not_support"


class Nugget(Struct, frozen=True):
    """One fact that an answer to the query may state.

    Attributes:
        nugget_id: ``query_id/md5 of the stripped text``, with ``#2`` where a bank repeats a text.
        importance: ``None`` if unknown.
        details: other fields of the nugget in its file.
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
        details: other fields of the bank in its file.
    """

    query_id: str
    query: str
    nuggets: tuple[Nugget, ...]
    details: Mapping[str, Any] = field(default_factory=dict)


class Assignment(Struct, frozen=True):
    """Support of a query's nuggets by one run's answer.

    Attributes:
        labels: one per nugget, in the same order; ``None`` if the judge failed, which differs from ``Support.NONE``.
        words: number of words of the answer, separated by white space.
        answer: the answer's text; ``None`` if the file has none.
        query: the query's text.
        details: other fields of the answer in its file.
        label_details: other fields of each label in the file, one per nugget; empty if there are none.
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
    """Make the nuggets of one query, with ids.

    Args:
        query_id: id of the query.
        texts: the text of each nugget.
        importances: the importance of each nugget; ``None`` if unknown.
        details: other fields of each nugget; may be empty.
    """
    seen: Counter[str] = Counter()
    nuggets = []
    for text, importance, nugget_details in zip(texts, importances, details or [{}] * len(texts), strict=True):
        digest = hashlib.md5(text.strip().encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
        seen[digest] += 1
        repeated = f"#{seen[digest]}" if seen[digest] > 1 else ""
        nuggets.append(Nugget(f"{query_id}/{digest}{repeated}", query_id, text, importance, nugget_details))
    return tuple(nuggets)


def of_empty_answer(bank: NuggetBank, run: str) -> Assignment:
    """The assignment of an empty answer, which supports no nugget; needs no judge."""
    labels = (Support.NONE,) * len(bank.nuggets)
    return Assignment(bank.query_id, run, bank.nuggets, labels, words=0, answer="", query=bank.query)


Item = TypeVar("Item")

WINDOW = 10
"""Number of documents that a judge reads at once."""
MOST = 30
"""Largest length of a list while the judge extends it; also the list that a person edits."""
KEPT = 20
"""Number of nuggets kept after the judge has rated their importance."""
BATCH = 10
"""Number of nuggets that a judge labels at once."""


def windows(
    ranked: Iterable[str], labels: Mapping[str, int], *, from_label: int = 1, size: int = WINDOW
) -> list[tuple[str, ...]]:
    """The relevant documents in reading order, divided into windows; the last window may be shorter.

    Args:
        ranked: document ids, best first; repeated ids are ignored.
        labels: relevance labels; documents without a label are left out.
        from_label: the lowest label that counts as relevant.
        size: number of documents in a window.
    """
    relevant = [doc_id for doc_id in dict.fromkeys(ranked) if doc_id in labels and labels[doc_id] >= from_label]
    return batches(relevant, size)


def updated_list(reply: Iterable[str], *, most: int = MOST) -> tuple[str, ...]:
    """The list of nuggets after a judge's reply: its first ``most`` texts without empty and repeated ones.

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
    """The first ``keep`` nuggets, vital before okay, each group in the judge's order.

    Raises:
        ValueError: the numbers of texts and importances differ.
    """
    labelled = list(zip(texts, importances, strict=True))
    return sorted(labelled, key=lambda entry: entry[1] is not Importance.VITAL)[:keep]


def batches(items: Sequence[Item], size: int = BATCH) -> list[tuple[Item, ...]]:
    """Divide the items into batches of ``size``, in order; the last batch may be smaller.

    Raises:
        ValueError: ``size`` is less than 1.
    """
    if size < 1:
        raise ValueError(f"a batch holds at least one item, not {size}")
    return [tuple(items[start : start + size]) for start in range(0, len(items), size)]
