"""Test banks: items (questions that a good response answers, nuggets that it states) and versions of a bank."""

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

SECRET_TEXT = "(secret)"  # noqa: S105 - a placeholder for the text of a secret item

_HASHED_ID = re.compile(r"(?:.*/)?[0-9a-f]{32}", re.DOTALL)


_LARGEST_WEIGHT: Final = 1e6
"""Largest weight of an item; larger weights would dominate every sum."""


class Item(Struct, frozen=True):
    """One question or nugget of a query.

    Attributes:
        text: the question, or the key fact.
        item_id: unique in the bank; by default ``item_id_of`` the text.
        facet_id: the subtopic, if the bank has subtopics.
        answers: gold answers, each of which is right; for multiple choice the letters of the right choices.
        kind: how answers are compared with the gold answers.
        choices: texts by letter, for multiple choice.
        weight: weight of the item in scores, above 0; 1 in the papers.
        secret: whether the item is used for grading, but never exported or shown to a system under evaluation.
        retired: whether the item is kept only for its history; it is neither graded nor scored.
        replaces: id of the older item that this item is an edited version of.
        metadata: other values from the item's file.
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
            raise ValueError("an item has no text")
        if not 0 < self.weight <= _LARGEST_WEIGHT:
            raise ValueError(f"a weight must be a number above 0 and at most {_LARGEST_WEIGHT:,.0f}, not {self.weight}")
        if not self.item_id:
            force_setattr(self, "item_id", item_id_of(self.query_id, self.text, self.facet_id))
        _require_fitting_answers(self)

    @property
    def open_text(self) -> str:
        """The item's text, or a placeholder if the item is secret."""
        return SECRET_TEXT if self.secret else self.text


def item_id_of(query_id: str, text: str, facet_id: str | None = None) -> str:
    """Default id of an item: ``query_id[/facet]/md5`` of the stripped text, as in the workbench (001, 4.1)."""
    digest = hashlib.md5(text.strip().encode(), usedforsecurity=False).hexdigest()
    return "/".join(part for part in (query_id, facet_id, digest) if part is not None)


def stale_id(item: Item) -> bool:
    """Whether the item's id is the hash of a different text, because someone edited the text but not the id."""
    fresh_id = item_id_of(item.query_id, item.text, item.facet_id)
    return (
        _HASHED_ID.fullmatch(item.item_id) is not None
        and item.item_id.rpartition("/")[2] != fresh_id.rpartition("/")[2]
    )


class QueryInfo(Struct, frozen=True):
    """Text and metadata of a query or subtopic in a test bank."""

    text: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Bank(Struct, frozen=True, dict=True):
    """A test bank: items with unique ids, in the order of its file.

    Attributes:
        items: all items, secret and retired ones included.
        queries: texts and metadata by (query_id, facet_id), for all queries with items and possibly others.
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
        return Bank(
            tuple(item for item in self.items if item.query_id in query_ids),
            {key: info for key, info in self.queries.items() if key[0] in query_ids},
        )

    @cached_property
    def by_id(self) -> Mapping[str, Item]:
        return {item.item_id: item for item in self.items}

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """The topic set: all queries of the bank, even those without items."""
        return tuple(dict.fromkeys(query_id for query_id, _ in self.queries))

    @cached_property
    def active(self) -> Mapping[str, tuple[Item, ...]]:
        """The items that are not retired, by query_id; a query may have none."""
        grouped: dict[str, list[Item]] = {query_id: [] for query_id in self.query_ids}
        for item in self.items:
            if not item.retired:
                grouped[item.query_id].append(item)
        return {query_id: tuple(items) for query_id, items in grouped.items()}

    @cached_property
    def version(self) -> str:
        """Hash of all fields of items that grades and scores depend on, as twelve hexadecimal digits.

        It does not depend on the order of the items, their metadata, or the ids that they replace.
        """
        lines = sorted(json.dumps(_scored_fields(item), sort_keys=True) for item in self.items)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]

    @cached_property
    def secret_ids(self) -> frozenset[str]:
        return frozenset(item.item_id for item in self.items if item.secret)

    def without_secrets(self) -> Bank:
        return Bank(tuple(item for item in self.items if not item.secret), self.queries)

    def edited(self, item_id: str, text: str) -> Bank:
        """The next version of the bank after an edit: the old item is retired, and a new item has the new text.

        If a retired item has the new text, that item is restored instead.

        Raises:
            KeyError: no item has this id.
            ValueError: the new text is empty or equals that of another item.
        """
        old = self.by_id[item_id]
        new = replace(old, text=text, item_id="", replaces=item_id)
        same_text = self.by_id.get(new.item_id)
        if same_text is not None and not same_text.retired:
            raise ValueError("another item of the query has this text")
        retired = replace(old, retired=True)
        substitutes: dict[str, tuple[Item, ...]] = {item_id: (retired, new)}
        if same_text is not None:
            substitutes = {item_id: (retired,), same_text.item_id: (replace(new, replaces=same_text.replaces),)}
        items = (substitute for item in self.items for substitute in substitutes.get(item.item_id, (item,)))
        return Bank(tuple(items), self.queries)


class BankDiff(Struct, frozen=True):
    """The changes from one version of a test bank to the next. Pairs of items are (before, after).

    Attributes:
        added: active items that were not active before and replace no active item.
        retired: items that were active before, are no longer active, and are not replaced.
        edited: items with a new text, new gold answers or new choices; they must be graded again.
        reweighted: items with a new weight; no grading is needed.
        disclosed: items that became secret or are no longer secret; no grading is needed.
    """

    added: tuple[Item, ...] = ()
    retired: tuple[Item, ...] = ()
    edited: tuple[tuple[Item, Item], ...] = ()
    reweighted: tuple[tuple[Item, Item], ...] = ()
    disclosed: tuple[tuple[Item, Item], ...] = ()

    def __bool__(self) -> bool:
        return any((self.added, self.retired, self.edited, self.reweighted, self.disclosed))


def diff(before: Bank, after: Bank) -> BankDiff:
    """Compare two versions of a test bank; retired items are in the order of ``before``, all others of ``after``."""
    old = {item.item_id: item for item in before.items if not item.retired}
    new = {item.item_id: item for item in after.items if not item.retired}
    pairs = [(old[item_id], item) for item_id, item in new.items() if item_id in old]
    replaced = {item.replaces: item for item in new.values() if item.replaces in old and item.replaces not in new}
    edits = [(old[item.replaces], item) for item in replaced.values() if item.replaces and item.item_id not in old]
    edited_new = {item.item_id for _, item in edits}
    edited_old = {item.item_id for item, _ in edits}
    return BankDiff(
        added=tuple(item for key, item in new.items() if key not in old and key not in edited_new),
        retired=tuple(item for key, item in old.items() if key not in new and key not in edited_old),
        edited=(*(pair for pair in pairs if _graded_fields(pair[0]) != _graded_fields(pair[1])), *edits),
        reweighted=tuple(pair for pair in (*pairs, *edits) if pair[0].weight != pair[1].weight),
        disclosed=tuple(pair for pair in (*pairs, *edits) if pair[0].secret != pair[1].secret),
    )


def _graded_fields(item: Item) -> tuple[object, ...]:
    """The item's fields that a grade depends on."""
    return (item.query_id, item.text.strip(), item.item_type, item.kind, sorted(item.answers), dict(item.choices))


def _scored_fields(item: Item) -> list[object]:
    return [item.item_id, *_graded_fields(item), item.weight, item.secret, item.retired]


def _require_fitting_answers(item: Item) -> None:
    if item.kind == "multiple_choice":
        if len(item.choices) < 2:
            raise ValueError("a multiple-choice item needs at least two choices")
        if unknown := [answer for answer in item.answers if answer not in item.choices]:
            raise ValueError(f"the answer {unknown[0]!r} is not one of the choices {', '.join(item.choices)}")
    elif item.choices:
        raise ValueError("only a multiple-choice item can have choices")
    if item.kind == "true_false" and (wrong := [word for word in item.answers if word not in ("true", "false")]):
        raise ValueError(f"the answer to a true/false item is true or false, not {wrong[0]!r}")


class ItemEdit(Struct, frozen=True):
    """An edit of one item; a field that is ``None`` leaves the item's value unchanged."""

    text: str | None = None
    weight: float | None = None
    retired: bool | None = None


def edited_bank(bank: Bank, edits: Mapping[str, ItemEdit], added: Sequence[Item] = ()) -> Bank:
    """Make the next version of a test bank; ``edits`` are by item_id, and ``added`` items come at the end.

    An item with a new text is retired, and a new item with another id takes its place and weight (``Bank.edited``). The
    order of the edits does not matter: items are retired first, so that another item can take their text.

    Raises:
        ValueError: an edit is invalid; the message does not quote the text of any item.
    """
    if unknown := [item_id for item_id in edits if item_id not in bank.by_id]:
        raise ValueError(f"the bank has no item {unknown[0]!r}")
    items = []
    for item in bank.items:
        edit = edits.get(item.item_id, ItemEdit())
        changed = {"weight": edit.weight, "retired": edit.retired}
        items.append(replace(item, **{name: value for name, value in changed.items() if value is not None}))
    version = Bank(tuple(items), bank.queries)
    for item_id, edit in edits.items():
        old = bank.by_id[item_id]
        if edit.text is None or edit.text.strip() == old.text.strip():
            continue
        if version.by_id[item_id].retired:
            raise ValueError("the text of a retired item cannot change; restore the item first, or add a new one")
        version = version.edited(item_id, edit.text.strip())
    for item in added:
        if item.item_id in version.by_id:
            retired = version.by_id[item.item_id].retired
            raise ValueError(f"the query already has this item{', but retired: restore it instead' if retired else ''}")
        version = Bank((*version.items, item), version.queries)
    return version


def described(changes: BankDiff) -> str:
    """A sentence for a log with the number of changes of each kind; it quotes no item."""
    counts = {
        "edited": changes.edited,
        "added": changes.added,
        "retired": changes.retired,
        "reweighted": changes.reweighted,
        "made secret or open": changes.disclosed,
    }
    return ", ".join(f"{len(items)} {name}" for name, items in counts.items() if items) or "nothing changed"
