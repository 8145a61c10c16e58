"""A test bank while somebody edits it: what they changed so far, and what it would change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import streamlit as st

from arena.exam.bank import of_queries
from arena.exam.edits import BankFile
from retrieval_eval.exam.edits import ItemEdit, edited_bank
from retrieval_eval.exam.influence import EditEffect, edit_effect
from retrieval_eval.exam.items import Bank, Item
from ui import data, exam

Edits: TypeAlias = Mapping[str, ItemEdit | Item]


@dataclass
class Draft:
    """Edits that are not saved.

    Attributes:
        file: the bank that they start from.
        edits: of its items, by id; and new items, by names of their own.
        turn: grows with every change from outside the fields, which then start anew.
    """

    file: BankFile
    edits: Edits = field(default_factory=dict)
    turn: int = 0

    @property
    def added(self) -> list[Item]:
        """The new items."""
        return [own for own in self.edits.values() if isinstance(own, Item)]

    @property
    def bank(self) -> Bank:
        """The next version."""
        return self._bank(self.edits)

    def _bank(self, edits: Edits) -> Bank:
        changed = {item_id: own for item_id, own in edits.items() if isinstance(own, ItemEdit)}
        return edited_bank(self.file.bank, changed, [own for own in edits.values() if isinstance(own, Item)])

    def edited(self, item: Item) -> Item:
        """An item as it would be, in its place and under its id."""
        edit = self.edits.get(item.item_id)
        if not isinstance(edit, ItemEdit):
            return item
        given: dict[str, Any] = {"text": edit.text, "weight": edit.weight, "retired": edit.retired}
        return replace(item, **{name: value for name, value in given.items() if value is not None})

    @property
    def marks(self) -> dict[str, str]:
        """What is new or changed, by the item's id."""
        return {
            own.item_id if isinstance(own, Item) else item_id: "new" if isinstance(own, Item) else "changed"
            for item_id, own in self.edits.items()
        }

    def take(self, name: str, edit: ItemEdit | Item | None) -> None:
        """Take an edit in place of an earlier one of this name, or take it back.

        Raises:
            ValueError: it cannot be made; the draft stays as it was.
        """
        edits = {known: own for known, own in self.edits.items() if known != name}
        if edit is not None and edit != ItemEdit():
            edits[name] = edit
        self._bank(edits)
        self.edits = edits

    def add(self, item: Item) -> None:
        """Take a new item; raises as ``take`` does."""
        self.take(f"new {id(item)}", item)

    def clear(self) -> None:
        """Start again from the file."""
        self.edits = {}
        self.turn += 1

    def rebase(self, file: BankFile) -> int:
        """Put the edits on a newer version of the file; returns how many do not fit it and are dropped."""
        edits, self.file = self.edits, file
        self.clear()
        for name, edit in edits.items():
            try:
                self.take(name, edit)
            except ValueError:
                continue
        return len(edits) - len(self.edits)


def effect(source: data.Source, draft: Draft) -> EditEffect | None:
    """What the edits change before anything is graded anew; ``None`` before anything is graded."""
    study = exam.study(source)
    if study is None or not study.grades:
        return None
    return _effect(source, draft.file.digest, draft.bank.version, draft)


@st.cache_resource(max_entries=4, show_spinner=False)
def _effect(source: data.Source, digest: str | None, version: str, _draft: Draft) -> EditEffect:  # noqa: ARG001 - keys
    study = exam.study(source)
    assert study is not None
    before, after = (of_queries(bank, data.dataset(source)) for bank in (_draft.file.bank, _draft.bank))
    return edit_effect(before, after, study.grades, study.rankings, level=study.usual_level, k=exam.depth(source))
