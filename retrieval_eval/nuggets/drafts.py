"""A list of nuggets while a person edits it, step by step; each nugget remembers with ``from`` what it was made of.

``editing.changes`` and ``editing.edited`` say what came of it. Places count from 0. Every step raises ``ValueError``,
in words for the person, where it would leave an empty text, the same text twice, or no nugget at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from retrieval_eval.nuggets.editing import FROM
from retrieval_eval.nuggets.types import Importance, Nugget, NuggetBank, make_nuggets


def draft_of(bank: NuggetBank) -> NuggetBank:
    """A list to begin with: each nugget is made of itself."""
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
