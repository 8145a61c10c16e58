"""Items of a test bank, questions that a good response answers and nuggets that it mentions; a bank's versions."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

ItemType: TypeAlias = Literal["question", "nugget"]
ItemKind: TypeAlias = Literal["free", "multiple_choice", "true_false"]
ITEM_TYPES: tuple[ItemType, ...] = get_args(ItemType)
KINDS: tuple[ItemKind, ...] = get_args(ItemKind)

TRUE_WORDS = frozenset({"true", "yes", "correct"})
FALSE_WORDS = frozenset({"false", "no", "incorrect", "wrong"})

SECRET_TEXT = "(secret)"  # noqa: S105 - what is shown and kept in place of a secret item's text

_HASHED_ID = re.compile(r"(?:.*/)?[0-9a-f]{32}", re.DOTALL)


_LARGEST_WEIGHT: Final = 1e6
"""Sums of larger ones say nothing of the others."""


class Item(Struct, frozen=True):
    """One question or nugget of a query.

    Attributes:
        query_id: the query it belongs to.
        text: the question, or the key fact.
        item_type: question or nugget.
        item_id: unique in its bank; ``item_id_of`` the text where no other is given.
        facet_id: the subtopic, where the bank has some.
        answers: gold answers; any of them is right. Of multiple choice the letters of the right choices.
        kind: how an answer is checked against them.
        choices: of multiple choice, texts by letter.
        weight: what covering the item is worth, > 0; 1 in the papers.
        secret: graded with, but never exported or shown to a system under evaluation.
        retired: kept for its history, not graded and not counted.
        replaces: the id of the item that this one is an edit of.
        metadata: whatever else its file said.
    """

    query_id: str
    text: str
    item_type: ItemType = "question"
    item_id: str = ""
    facet_id: str | None = None
    answers: tuple[str, ...] = ()
    kind: ItemKind = "free"
    choices: Mapping[str, str] = field(default_factory=dict)
    weight: float = 1.0
    secret: bool = False
    retired: bool = False
    replaces: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ValueError("an item without text")
        if not 0 < self.weight <= _LARGEST_WEIGHT:
            raise ValueError(f"a weight must be a number above 0 and at most {_LARGEST_WEIGHT:,.0f}, not {self.weight}")
        if not self.item_id:
            force_setattr(self, "item_id", item_id_of(self.query_id, self.text, self.facet_id))
        _require_fitting_answers(self)

    @property
    def open_text(self) -> str:
        """The text where anybody may look."""
        return SECRET_TEXT if self.secret else self.text


def item_id_of(query_id: str, text: str, facet_id: str | None = None) -> str:
    """``query_id[/facet]/md5`` of the text without surrounding white space, as the workbench makes ids (001, 4.1)."""
    digest = hashlib.md5(text.strip().encode(), usedforsecurity=False).hexdigest()
    return "/".join(part for part in (query_id, facet_id, digest) if part is not None)


def stale_id(item: Item) -> bool:
    """Whether the id is a hash of a text, but of another one: someone edited the text and left the id."""
    own = item_id_of(item.query_id, item.text, item.facet_id)
    return _HASHED_ID.fullmatch(item.item_id) is not None and item.item_id.rpartition("/")[2] != own.rpartition("/")[2]


class QueryInfo(Struct, frozen=True):
    """What a bank says about a query or one of its subtopics besides the items."""

    text: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Bank(Struct, frozen=True, dict=True):
    """A test bank: items with unique ids, in the order in which they were written.

    Attributes:
        items: all of them, secret and retired ones included.
        queries: by (query_id, facet_id) what is known of it; every one that has an item, and maybe some that have none.
    """

    items: tuple[Item, ...]
    queries: Mapping[tuple[str, str | None], QueryInfo] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for item in self.items:
            if item.item_id in seen:
                raise ValueError(f"two items have the id {item.item_id!r}")
            seen.add(item.item_id)
        named = dict.fromkeys((item.query_id, item.facet_id) for item in self.items)
        force_setattr(self, "queries", {**dict.fromkeys(named, QueryInfo()), **self.queries})

    def of_queries(self, query_ids: Collection[str]) -> Bank:
        """The part of it on these queries."""
        return Bank(
            tuple(item for item in self.items if item.query_id in query_ids),
            {key: own for key, own in self.queries.items() if key[0] in query_ids},
        )

    @cached_property
    def by_id(self) -> Mapping[str, Item]:
        """Every item by its id."""
        return {item.item_id: item for item in self.items}

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """The topic set: queries that have items, and those that ought to have."""
        return tuple(dict.fromkeys(query_id for query_id, _ in self.queries))

    @cached_property
    def active(self) -> Mapping[str, tuple[Item, ...]]:
        """The items that count, by query_id: all that are not retired. A query may have none."""
        grouped: dict[str, list[Item]] = {query_id: [] for query_id in self.query_ids}
        for item in self.items:
            if not item.retired:
                grouped[item.query_id].append(item)
        return {query_id: tuple(items) for query_id, items in grouped.items()}

    @cached_property
    def version(self) -> str:
        """Twelve hexadecimal digits over everything that grading and scores depend on; an equal bank has an equal one.

        The order of the items, what a file said about them besides, and what an edit replaced do not enter.
        """
        lines = sorted(json.dumps(_scored(item), sort_keys=True) for item in self.items)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]

    @cached_property
    def secret_ids(self) -> frozenset[str]:
        """Ids of the items that are secret, retired ones included."""
        return frozenset(item.item_id for item in self.items if item.secret)

    def without_secrets(self) -> Bank:
        """What may be shown to others."""
        return Bank(tuple(item for item in self.items if not item.secret), self.queries)

    def edited(self, item_id: str, text: str) -> Bank:
        """The next version with a new text in the item's place. The old item stays, retired, with its grades.

        A text that a retired item has brings that item back in its own place.

        Raises:
            KeyError: no item has this id.
            ValueError: the new text is empty or that of another item.
        """
        old = self.by_id[item_id]
        new = replace(old, text=text, item_id="", replaces=item_id)
        there = self.by_id.get(new.item_id)
        if there is not None and not there.retired:
            raise ValueError("another item of the query has this text")
        gone = replace(old, retired=True)
        placed: dict[str, tuple[Item, ...]] = {item_id: (gone, new)}
        if there is not None:
            placed = {item_id: (gone,), there.item_id: (replace(new, replaces=there.replaces),)}
        items = (own for item in self.items for own in placed.get(item.item_id, (item,)))
        return Bank(tuple(items), self.queries)


class BankDiff(Struct, frozen=True):
    """What changed from one version of a bank to the next. Pairs are (before, after).

    Attributes:
        added: items that count now and did not, and replace none.
        retired: items that counted and do not any more, and are not replaced.
        edited: another text, other gold answers or choices: must be graded anew.
        reweighted: another weight; needs no grading.
        disclosed: items whose secrecy changed; needs no grading.
    """

    added: tuple[Item, ...] = ()
    retired: tuple[Item, ...] = ()
    edited: tuple[tuple[Item, Item], ...] = ()
    reweighted: tuple[tuple[Item, Item], ...] = ()
    disclosed: tuple[tuple[Item, Item], ...] = ()

    def __bool__(self) -> bool:
        return any((self.added, self.retired, self.edited, self.reweighted, self.disclosed))


def diff(before: Bank, after: Bank) -> BankDiff:
    """What changed between two versions, in the order of ``after`` and, for retired items, of ``before``."""
    old = {item.item_id: item for item in before.items if not item.retired}
    new = {item.item_id: item for item in after.items if not item.retired}
    pairs = [(old[item_id], item) for item_id, item in new.items() if item_id in old]
    replaced = {item.replaces: item for item in new.values() if item.replaces in old and item.replaces not in new}
    edits = [(old[item.replaces], item) for item in replaced.values() if item.replaces and item.item_id not in old]
    came_by_edit = {item.item_id for _, item in edits}
    went_by_edit = {item.item_id for item, _ in edits}
    return BankDiff(
        added=tuple(item for key, item in new.items() if key not in old and key not in came_by_edit),
        retired=tuple(item for key, item in old.items() if key not in new and key not in went_by_edit),
        edited=(*(pair for pair in pairs if _asked(pair[0]) != _asked(pair[1])), *edits),
        reweighted=tuple(pair for pair in (*pairs, *edits) if pair[0].weight != pair[1].weight),
        disclosed=tuple(pair for pair in (*pairs, *edits) if pair[0].secret != pair[1].secret),
    )


def _asked(item: Item) -> tuple[object, ...]:
    """All that a grade depends on."""
    return (item.query_id, item.text.strip(), item.item_type, item.kind, set(item.answers), dict(item.choices))


def _scored(item: Item) -> list[object]:
    asked = [item.query_id, item.text.strip(), item.item_type, item.kind, sorted(item.answers), dict(item.choices)]
    return [item.item_id, *asked, item.weight, item.secret, item.retired]


def _require_fitting_answers(item: Item) -> None:
    if item.kind == "multiple_choice":
        if len(item.choices) < 2:
            raise ValueError("multiple choice needs two choices or more")
        if unknown := [answer for answer in item.answers if answer not in item.choices]:
            raise ValueError(f"the answer {unknown[0]!r} is none of the choices {', '.join(item.choices)}")
    elif item.choices:
        raise ValueError("only multiple choice has choices")
    if item.kind == "true_false" and (wrong := [word for word in item.answers if word not in ("true", "false")]):
        raise ValueError(f"the answer to a true/false item is true or false, not {wrong[0]!r}")


class ItemEdit(Struct, frozen=True):
    """What changes of one item; ``None`` leaves it as it is."""

    text: str | None = None
    weight: float | None = None
    retired: bool | None = None


def edited_bank(bank: Bank, edits: Mapping[str, ItemEdit], added: Sequence[Item] = ()) -> Bank:
    """The next version of a bank.

    An item that gets a new text is retired, and one with an id of its own takes its place and weight (``Bank.edited``).
    The order of the edits does not matter: who retires an item makes way for another that gets its text.

    Args:
        bank: the version before.
        edits: by item_id.
        added: new items, after all others.

    Raises:
        ValueError: an edit cannot be made; says why without the text of any item.
    """
    if unknown := [item_id for item_id in edits if item_id not in bank.by_id]:
        raise ValueError(f"the bank has no item {unknown[0]!r}")
    plain = tuple(_without_text(item, edits.get(item.item_id, ItemEdit())) for item in bank.items)
    found = Bank(plain, bank.queries)
    for item_id, edit in edits.items():
        old = bank.by_id[item_id]
        if edit.text is None or edit.text.strip() == old.text.strip():
            continue
        if found.by_id[item_id].retired:
            raise ValueError("a retired item keeps its text; bring it back first, or add a new item")
        found = found.edited(item_id, edit.text.strip())
    for item in added:
        if item.item_id in found.by_id:
            retired = found.by_id[item.item_id].retired
            raise ValueError(f"the query has this item already{', retired: bring it back instead' if retired else ''}")
        found = Bank((*found.items, item), found.queries)
    return found


def described(changes: BankDiff) -> str:
    """The changes in numbers, for a log: nothing of any text."""
    counts = {
        "edited": changes.edited,
        "added": changes.added,
        "retired": changes.retired,
        "reweighted": changes.reweighted,
        "made secret or open": changes.disclosed,
    }
    return ", ".join(f"{len(found)} {name}" for name, found in counts.items() if found) or "nothing changed"


def _without_text(item: Item, edit: ItemEdit) -> Item:
    weight = item.weight if edit.weight is None else edit.weight
    retired = item.retired if edit.retired is None else edit.retired
    return replace(item, weight=weight, retired=retired)
