"""The steps of making nuggets that need no judge (Pradeep et al. 2024, section 3.1 and 3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from retrieval_eval.nuggets.types import Importance

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
