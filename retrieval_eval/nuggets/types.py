"""Nuggets, banks and assignments, the steps that build a list of nuggets, and people's edits of it.

The steps: Pradeep et al. 2024, section 3. The edits and their history: AutoNuggetizer, section 3.2 and table 4.
The field ``from`` of an edited nugget lists the texts of the old nuggets that it comes from. Several texts mean that it
merges them. If several nuggets come from one text, they split it; if only one does, it rewords it. A nugget without
``from`` is the old nugget with the same text, or a new one. An old nugget that no new nugget names is removed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import asdict, replace


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
    """The nuggets of one query, most important first; ``details`` has the other fields of the file's record."""

    query_id: str
    query: str
    nuggets: tuple[Nugget, ...]
    details: Mapping[str, Any] = field(default_factory=dict)


class Assignment(Struct, frozen=True):
    """How far one run's answer supports each nugget of a query.

    Attributes:
        labels: one per nugget, in the same order; ``None`` if the judge failed, which differs from ``Support.NONE``.
        words: number of words of the answer, separated by white space.
        answer: the answer's text; ``None`` if the file has none.
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
    """Make the nuggets of one query; their ids are derived from their texts."""
    seen: Counter[str] = Counter()
    nuggets = []
    for text, importance, nugget_details in zip(texts, importances, details or [{}] * len(texts), strict=True):
        digest = hashlib.md5(text.strip().encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
        seen[digest] += 1
        repeated = f"#{seen[digest]}" if seen[digest] > 1 else ""
        nuggets.append(Nugget(f"{query_id}/{digest}{repeated}", query_id, text, importance, nugget_details))
    return tuple(nuggets)


def of_empty_answer(bank: NuggetBank, run: str) -> Assignment:
    """The assignment for an empty answer: it supports no nugget, so no judge is asked."""
    labels = (Support.NONE,) * len(bank.nuggets)
    return Assignment(bank.query_id, run, bank.nuggets, labels, words=0, answer="", query=bank.query)


Item = TypeVar("Item")

WINDOW = 10
"""Number of documents in one prompt, from which a judge lists nuggets."""
MOST = 30
"""Largest number of nuggets in a list while the judge extends it."""
KEPT = 20
"""Number of a query's nuggets kept after the judge has rated their importance."""
BATCH = 10
"""Number of nuggets that a judge labels in one prompt."""


def windows(
    ranked: Iterable[str], labels: Mapping[str, int], *, from_label: int = 1, size: int = WINDOW
) -> list[tuple[str, ...]]:
    """Divide the relevant documents into windows that a judge reads one by one; the last may have fewer documents.

    ``ranked`` has document ids, best first, and may repeat them. Documents without a label, or with one below
    ``from_label``, are left out.
    """
    relevant = [doc_id for doc_id in dict.fromkeys(ranked) if doc_id in labels and labels[doc_id] >= from_label]
    return batches(relevant, size)


def updated_list(reply: Iterable[str], *, most: int = MOST) -> tuple[str, ...]:
    """The list of nuggets that a judge replied: the first ``most`` texts, without empty and repeated ones.

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
    """The ``keep`` most important nuggets: vital before okay, and in the judge's order within each of the two."""
    labelled = list(zip(texts, importances, strict=True))
    return sorted(labelled, key=lambda entry: entry[1] is not Importance.VITAL)[:keep]


def batches(items: Sequence[Item], size: int = BATCH) -> list[tuple[Item, ...]]:
    if size < 1:
        raise ValueError(f"a batch holds at least one item, not {size}")
    return [tuple(items[start : start + size]) for start in range(0, len(items), size)]


FROM = "from"
"""Field of an edited nugget with the texts of the old nuggets that it replaces."""
HISTORY = "history"
"""Field of a nugget file's record with the edits of the query's nuggets, oldest first."""


class EditKind(StrEnum):
    KEPT = "kept"
    IMPORTANCE = "importance"
    REWORDED = "reworded"
    MERGED = "merged"
    SPLIT = "split"
    ADDED = "added"
    REMOVED = "removed"


class Change(Struct, frozen=True):
    """How one nugget changed from the old to the new list of a query's nuggets.

    Attributes:
        kind: the kind of change.
        before: the old texts: none for an added nugget, several for a merged one.
        after: the new text; ``None`` for a removed nugget.
        importance_before: importance of the first old nugget.
        importance: importance of the new nugget.
    """

    kind: EditKind
    before: tuple[str, ...]
    after: str | None
    importance_before: Importance | None
    importance: Importance | None


def changes(before: NuggetBank, after: NuggetBank) -> list[Change]:
    """Compare the old and the new list of a query's nuggets, in the order of the new list, removed nuggets last.

    Raises:
        ValueError: a nugget's ``from`` names a text that is not in the old list.
    """
    old = {nugget.text.strip(): nugget for nugget in before.nuggets}
    origins = [_origin(nugget, old) for nugget in after.nuggets]
    parts = Counter(origin[0] for origin in origins if len(origin) == 1)
    parts.subtract(Counter(nugget.text.strip() for nugget in before.nuggets))  # a list may contain a text twice
    nugget_changes = []
    for nugget, origin in zip(after.nuggets, origins, strict=True):
        sources = [old[text] for text in origin]
        texts, importance = tuple(each.text for each in sources), sources[0].importance if sources else None
        nugget_changes.append(Change(_kind(nugget, sources, parts), texts, nugget.text, importance, nugget.importance))
    used = {text for origin in origins for text in origin}
    return nugget_changes + [
        Change(EditKind.REMOVED, (nugget.text,), None, nugget.importance, None)
        for text, nugget in old.items()
        if text not in used
    ]


def edited(before: NuggetBank, after: NuggetBank, *, by: str, at: str) -> NuggetBank:
    """The new list of nuggets with its history: earlier edits, and this edit if anything changed.

    ``by`` is the editor's name and ``at`` the time of the edit.

    Raises:
        ValueError: see ``changes``; or the old list's history is not a list.
    """
    edits = [change for change in changes(before, after) if change.kind is not EditKind.KEPT]
    moved = is_reordered(before, after)
    nuggets = tuple(
        replace(nugget, details={name: value for name, value in nugget.details.items() if name != FROM})
        for nugget in after.nuggets
    )
    past_edits = before.details.get(HISTORY, [])
    if not isinstance(past_edits, list):
        raise ValueError(f"'{HISTORY}' must be a list of edits")
    history = [*past_edits]
    if edits or moved:
        records = [{**asdict(change), "kind": change.kind.value, "before": list(change.before)} for change in edits]
        edit = {"by": by, "at": at, "changes": records}
        history.append({**edit, "reordered": True} if moved else edit)
    details = {**before.details, **after.details, **({HISTORY: history} if history else {})}
    return NuggetBank(before.query_id, after.query or before.query, nuggets, details)


def is_reordered(before: NuggetBank, after: NuggetBank) -> bool:
    """Whether an edit changed the order of the nuggets, apart from added ones."""
    old = {nugget.text.strip(): nugget for nugget in before.nuggets}
    texts = list(old)
    places = [texts.index(origin[0]) for nugget in after.nuggets if (origin := _origin(nugget, old))]
    return places != sorted(places)


def _origin(nugget: Nugget, old: Mapping[str, Nugget]) -> tuple[str, ...]:
    origin = nugget.details.get(FROM)
    if origin is None:
        return (nugget.text.strip(),) if nugget.text.strip() in old else ()
    origins = [origin] if isinstance(origin, str) else origin
    if not isinstance(origins, list) or not all(isinstance(text, str) for text in origins):
        raise ValueError(f"'{FROM}' of {nugget.text!r} must be a text or a list of texts")
    texts = tuple(dict.fromkeys(text.strip() for text in origins))
    if unknown := [text for text in texts if text not in old]:
        raise ValueError(f"'{FROM}' of {nugget.text!r} names {unknown[0]!r}, which is not in the old list")
    return texts


def _kind(nugget: Nugget, old_nuggets: Sequence[Nugget], parts: Mapping[str, int]) -> EditKind:
    if not old_nuggets:
        return EditKind.ADDED
    if len(old_nuggets) > 1:
        return EditKind.MERGED
    if parts[old_nuggets[0].text.strip()] > 0:
        return EditKind.SPLIT
    if old_nuggets[0].text.strip() != nugget.text.strip():
        return EditKind.REWORDED
    return EditKind.KEPT if old_nuggets[0].importance is nugget.importance else EditKind.IMPORTANCE


def draft_of(bank: NuggetBank) -> NuggetBank:
    """A copy of the bank for editing, in which the ``from`` of each nugget is its own text.

    The functions below edit the draft; positions (``places``) count from 0. They raise ``ValueError``, with a
    message for the user, if the list would have an empty text, a text twice, or no nuggets. ``changes`` and ``edited``
    compare the draft with the bank.
    """
    nuggets = [replace(nugget, details={**nugget.details, FROM: [nugget.text]}) for nugget in bank.nuggets]
    return replace(bank, nuggets=tuple(nuggets))


def added(draft: NuggetBank, text: str, importance: Importance | None) -> NuggetBank:
    return _checked(draft, [*draft.nuggets, _new(draft, text, importance, ())])


def removed(draft: NuggetBank, places: Sequence[int]) -> NuggetBank:
    return _checked(draft, [nugget for place, nugget in enumerate(draft.nuggets) if place not in places])


def merged(draft: NuggetBank, places: Sequence[int], text: str) -> NuggetBank:
    """The draft with several nuggets merged into one, at the position of the first; vital if any of them is vital."""
    if len(places) < 2:
        raise ValueError("choose at least two nuggets to merge")
    parts = [draft.nuggets[place] for place in sorted(places)]
    importance = Importance.VITAL if any(part.importance is Importance.VITAL for part in parts) else parts[0].importance
    union = _new(draft, text, importance, parts)
    return _checked(
        draft,
        [
            union if place == min(places) else nugget
            for place, nugget in enumerate(draft.nuggets)
            if place == min(places) or place not in places
        ],
    )


def worded(draft: NuggetBank, place: int, texts: Sequence[str]) -> NuggetBank:
    """The draft with a nugget reworded, or split into several nuggets if there are several texts."""
    whole = draft.nuggets[place]
    parts = [_new(draft, text, whole.importance, [whole]) for text in texts]
    return _checked(draft, [*draft.nuggets[:place], *parts, *draft.nuggets[place + 1 :]])


def weighed(draft: NuggetBank, places: Sequence[int], importance: Importance | None) -> NuggetBank:
    return _checked(
        draft,
        [
            replace(nugget, importance=importance) if place in places else nugget
            for place, nugget in enumerate(draft.nuggets)
        ],
    )


def moved(draft: NuggetBank, place: int, by: int) -> NuggetBank:
    """The draft with a nugget moved down by ``by`` positions (up if negative), at most to the list's end or start."""
    nuggets = list(draft.nuggets)
    nugget = nuggets.pop(place)
    nuggets.insert(max(0, min(len(nuggets), place + by)), nugget)
    return _checked(draft, nuggets)


def _new(draft: NuggetBank, text: str, importance: Importance | None, old_nuggets: Sequence[Nugget]) -> Nugget:
    origins = [text for nugget in old_nuggets for text in nugget.details.get(FROM, ())]
    details: dict[str, Any] = {**(old_nuggets[0].details if len(old_nuggets) == 1 else {}), FROM: origins}
    return Nugget("", draft.query_id, " ".join(text.split()), importance, details)


def _checked(draft: NuggetBank, nuggets: Sequence[Nugget]) -> NuggetBank:
    """The draft with its nuggets replaced by these; checks their texts and derives their ids."""
    if not nuggets:
        raise ValueError("a query needs at least one nugget")
    texts, before = ([nugget.text.strip() for nugget in side] for side in (nuggets, draft.nuggets))
    if "" in texts:
        raise ValueError("a nugget needs a text")
    if repeated := next((text for text in texts if texts.count(text) > max(1, before.count(text))), None):
        raise ValueError(f"this nugget is already in the list: {repeated}")
    texts = [nugget.text for nugget in nuggets]
    importances, details = [nugget.importance for nugget in nuggets], [nugget.details for nugget in nuggets]
    return replace(draft, nuggets=make_nuggets(draft.query_id, texts, importances, details))
