"""Nuggets before and after people have edited them, and the history of that (AutoNuggetizer, section 3.2 and table 4).

A nugget of the edited list may say with ``from`` which texts of the old list it was made of: of several it merges them;
several nuggets of one split it; one of one words it anew. Without ``from`` a nugget is the old one of the same text, or
new. What is in the old list and in nothing of the new one is removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from retrieval_eval.nuggets.types import Importance, Nugget, NuggetBank, make_nuggets

FROM = "from"
"""The field of an edited nugget that names what it was made of."""
HISTORY = "history"
"""The field of a bank that lists its edits, oldest first."""


class EditKind(StrEnum):
    """What became of a nugget."""

    KEPT = "kept"
    IMPORTANCE = "importance"
    REWORDED = "reworded"
    MERGED = "merged"
    SPLIT = "split"
    ADDED = "added"
    REMOVED = "removed"


class Change(Struct, frozen=True):
    """One edit.

    Attributes:
        kind: what was done.
        before: the old texts, none of an added nugget, several of a merged one.
        after: the new text, ``None`` of a removed nugget.
        importance_before: of the first old text.
        importance: of the new one.
    """

    kind: EditKind
    before: tuple[str, ...]
    after: str | None
    importance_before: Importance | None
    importance: Importance | None


def changes(before: NuggetBank, after: NuggetBank) -> list[Change]:
    """What was done to the list, in the order of the new one; what was removed comes last.

    Raises:
        ValueError: a nugget names with ``from`` what the old list does not have.
    """
    old = {nugget.text.strip(): nugget for nugget in before.nuggets}
    origins = [_origin(nugget, old) for nugget in after.nuggets]
    parts = Counter(origin[0] for origin in origins if len(origin) == 1)
    parts.subtract(Counter(nugget.text.strip() for nugget in before.nuggets))  # a list may hold a text twice
    done = [
        _change(nugget, [old[text] for text in origin], parts)
        for nugget, origin in zip(after.nuggets, origins, strict=True)
    ]
    used = {text for origin in origins for text in origin}
    removed = [nugget for text, nugget in old.items() if text not in used]
    return [*done, *(Change(EditKind.REMOVED, (nugget.text,), None, nugget.importance, None) for nugget in removed)]


def edited(before: NuggetBank, after: NuggetBank, *, by: str, at: str) -> NuggetBank:
    """The new list with the old one's history and this edit, if it changes anything.

    Args:
        before: the old list.
        after: the new one.
        by: who edited.
        at: when.

    Raises:
        ValueError: see ``changes``; or the old list's history is none.
    """
    done = [change for change in changes(before, after) if change.kind is not EditKind.KEPT]
    moved = is_reordered(before, after)
    nuggets = tuple(replace(nugget, details=_without_origin(nugget.details)) for nugget in after.nuggets)
    told = before.details.get(HISTORY, [])
    if not isinstance(told, list):
        raise ValueError(f"'{HISTORY}' must be a list of edits")
    history = [*told]
    if done or moved:
        edit = {"by": by, "at": at, "changes": [_record(change) for change in done]}
        history.append({**edit, "reordered": True} if moved else edit)
    details = {**before.details, **after.details, **({HISTORY: history} if history else {})}
    return NuggetBank(before.query_id, after.query or before.query, nuggets, details)


def is_reordered(before: NuggetBank, after: NuggetBank) -> bool:
    """Whether nuggets stand in another order than those that they were made of.

    Raises:
        ValueError: see ``changes``.
    """
    old = {nugget.text.strip(): nugget for nugget in before.nuggets}
    texts = list(old)
    places = [texts.index(origin[0]) for nugget in after.nuggets if (origin := _origin(nugget, old))]
    return places != sorted(places)


def _origin(nugget: Nugget, old: Mapping[str, Nugget]) -> tuple[str, ...]:
    """The old texts that a nugget was made of."""
    given = nugget.details.get(FROM)
    if given is None:
        return (nugget.text.strip(),) if nugget.text.strip() in old else ()
    named = [given] if isinstance(given, str) else given
    if not isinstance(named, list) or not all(isinstance(text, str) for text in named):
        raise ValueError(f"'{FROM}' of {nugget.text!r} must be a text or a list of texts")
    texts = tuple(dict.fromkeys(text.strip() for text in named))
    if unknown := [text for text in texts if text not in old]:
        raise ValueError(f"'{FROM}' of {nugget.text!r} names {unknown[0]!r}, which the list before does not have")
    return texts


def _change(nugget: Nugget, made_of: Sequence[Nugget], parts: Mapping[str, int]) -> Change:
    first = made_of[0] if made_of else None
    importance = None if first is None else first.importance
    return Change(
        _kind(nugget, made_of, parts), tuple(each.text for each in made_of), nugget.text, importance, nugget.importance
    )


def _kind(nugget: Nugget, made_of: Sequence[Nugget], parts: Mapping[str, int]) -> EditKind:
    if not made_of:
        return EditKind.ADDED
    if len(made_of) > 1:
        return EditKind.MERGED
    if parts[made_of[0].text.strip()] > 0:
        return EditKind.SPLIT
    if made_of[0].text.strip() != nugget.text.strip():
        return EditKind.REWORDED
    return EditKind.KEPT if made_of[0].importance is nugget.importance else EditKind.IMPORTANCE


def _without_origin(details: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if name != FROM}


def _record(change: Change) -> dict[str, Any]:
    return {**asdict(change), "kind": change.kind.value, "before": list(change.before)}


def draft_of(bank: NuggetBank) -> NuggetBank:
    """A list to begin with: each nugget is made of itself.

    The steps below edit it; places count from 0. Each raises ``ValueError``, in words for the person, where it would
    leave an empty text, the same text twice, or no nugget at all. ``changes`` and ``edited`` say what came of it.
    """
    made = [replace(own, details={**own.details, FROM: [own.text]}) for own in bank.nuggets]
    return replace(bank, nuggets=tuple(made))


def added(draft: NuggetBank, text: str, importance: Importance | None) -> NuggetBank:
    """With a new nugget at the end."""
    return _checked(draft, [*draft.nuggets, _new(draft, text, importance, ())])


def removed(draft: NuggetBank, places: Sequence[int]) -> NuggetBank:
    """Without the nuggets at these places."""
    return _checked(draft, [own for place, own in enumerate(draft.nuggets) if place not in places])


def merged(draft: NuggetBank, places: Sequence[int], text: str) -> NuggetBank:
    """With one nugget in the place of several, where the first of them was; vital if one of them was."""
    if len(places) < 2:
        raise ValueError("two nuggets at least are merged")
    parts = [draft.nuggets[place] for place in sorted(places)]
    importance = Importance.VITAL if any(own.importance is Importance.VITAL for own in parts) else parts[0].importance
    one = _new(draft, text, importance, parts)
    return _checked(
        draft,
        [
            one if place == min(places) else own
            for place, own in enumerate(draft.nuggets)
            if place == min(places) or place not in places
        ],
    )


def worded(draft: NuggetBank, place: int, texts: Sequence[str]) -> NuggetBank:
    """With other words for a nugget; several texts split it."""
    whole = draft.nuggets[place]
    parts = [_new(draft, text, whole.importance, [whole]) for text in texts]
    return _checked(draft, [*draft.nuggets[:place], *parts, *draft.nuggets[place + 1 :]])


def weighed(draft: NuggetBank, places: Sequence[int], importance: Importance | None) -> NuggetBank:
    """With this importance for the nuggets at these places."""
    return _checked(
        draft,
        [replace(own, importance=importance) if place in places else own for place, own in enumerate(draft.nuggets)],
    )


def moved(draft: NuggetBank, place: int, by: int) -> NuggetBank:
    """With a nugget further up (``by`` less than 0) or down, at most to an end."""
    nuggets = list(draft.nuggets)
    own = nuggets.pop(place)
    nuggets.insert(max(0, min(len(nuggets), place + by)), own)
    return _checked(draft, nuggets)


def _new(draft: NuggetBank, text: str, importance: Importance | None, made_of: Sequence[Nugget]) -> Nugget:
    origins = [text for own in made_of for text in own.details.get(FROM, ())]
    details: dict[str, Any] = {**(made_of[0].details if len(made_of) == 1 else {}), FROM: origins}
    return Nugget("", draft.query_id, " ".join(text.split()), importance, details)


def _checked(draft: NuggetBank, nuggets: Sequence[Nugget]) -> NuggetBank:
    """The list with ids anew."""
    if not nuggets:
        raise ValueError("a query keeps one nugget at least")
    texts, before = ([own.text.strip() for own in one] for one in (nuggets, draft.nuggets))
    if "" in texts:
        raise ValueError("a nugget needs a text")
    if again := next((text for text in texts if texts.count(text) > max(1, before.count(text))), None):
        raise ValueError(f"the list has this nugget already: {again}")
    texts = [own.text for own in nuggets]
    made = make_nuggets(draft.query_id, texts, [own.importance for own in nuggets], [own.details for own in nuggets])
    return replace(draft, nuggets=made)
