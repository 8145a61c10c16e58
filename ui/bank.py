"""A test bank while somebody edits it: what they changed so far, as tables, and what it would change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pandas as pd

from arena.exam.edits import BankFile, effect_of
from arena.exam.study import Study
from retrieval_eval.exam.edits import ItemEdit, edited_bank
from retrieval_eval.exam.influence import EditEffect
from retrieval_eval.exam.items import Bank, BankDiff, Item
from retrieval_eval.exam.passages import origin_of
from ui import data, text

_LONGEST: Final = 2000
"""Characters of a text in a cell, which opens at a double click."""


@dataclass
class Draft:
    """Edits that are not saved.

    Attributes:
        file: the bank that they start from.
        edits: of its items, by id.
        added: new items.
        turn: grows with every change from outside the fields, which then start anew.
        reckoned: what some version of the edits changes, and which.
    """

    file: BankFile
    edits: dict[str, ItemEdit] = field(default_factory=dict)
    added: list[Item] = field(default_factory=list)
    turn: int = 0
    reckoned: tuple[object, EditEffect] | None = None

    def __bool__(self) -> bool:
        return bool(self.edits or self.added)

    @property
    def bank(self) -> Bank:
        """The next version.

        Raises:
            ValueError: the edits cannot be made together.
        """
        return edited_bank(self.file.bank, self.edits, self.added)

    def change(self, item_id: str, edit: ItemEdit | None) -> None:
        """Take an edit of an item in place of an earlier one, or take it back.

        Raises:
            ValueError: it cannot be made; the draft stays as it was.
        """
        edits = {known: own for known, own in self.edits.items() if known != item_id}
        if edit is not None and edit != ItemEdit():
            edits[item_id] = edit
        edited_bank(self.file.bank, edits, self.added)
        self.edits = edits

    def add(self, item: Item) -> None:
        """Take a new item.

        Raises:
            ValueError: the bank has it already; the draft stays as it was.
        """
        edited_bank(self.file.bank, self.edits, [*self.added, item])
        self.added.append(item)

    def clear(self) -> None:
        """Start again from the file."""
        self.edits, self.added = {}, []
        self.turn += 1

    def rebase(self, file: BankFile) -> int:
        """Put the edits on a newer version of the file; returns how many do not fit it and are dropped."""
        edits, added = self.edits, self.added
        self.file = file
        self.clear()
        dropped = 0
        for item_id, edit in edits.items():
            try:
                self.change(item_id, edit)
            except ValueError:
                dropped += 1
        for item in added:
            try:
                self.add(item)
            except ValueError:
                dropped += 1
        return dropped


def items_frame(items: Sequence[Item], draft: Draft | None = None) -> pd.DataFrame:
    """Items as they would be with the draft's edits of them; of secret ones no text and no id."""
    edits = draft.edits if draft is not None else {}
    new = draft.added if draft is not None else []
    rows: list[dict[str, Any]] = []
    for item in items:
        edit = edits.get(item.item_id, ItemEdit())
        shown = item.open_text if edit.text is None else edit.text
        retired = item.retired if edit.retired is None else edit.retired
        change = "new" if item in new else "changed" if item.item_id in edits else ""
        marks = {"gold": bool(item.answers), "secret": item.secret, "retired": retired, change: bool(change)}
        rows.append(
            {
                "Query": item.query_id,
                "Subtopic": item.facet_id or "",
                "Item": text.clipped(shown, _LONGEST),
                "Type": item.item_type,
                "Kind": item.kind.replace("_", " "),
                "Weight": item.weight if edit.weight is None else edit.weight,
                "Marks": ", ".join(mark for mark, holds in marks.items() if holds),
            }
        )
    return pd.DataFrame(rows)


def changes_of(changes: BankDiff) -> list[tuple[str, str]]:
    """What is different, a line each: the kind of change, and the item without the text of a secret one."""
    lines = [("added", f"{item.query_id}: {item.open_text}") for item in changes.added]
    lines += [("retired", f"{item.query_id}: {item.open_text}") for item in changes.retired]
    lines += [("edited", f"{new.query_id}: {old.open_text} → {new.open_text}") for old, new in changes.edited]
    return lines + [
        ("weight", f"{new.query_id}: {new.open_text}: {old.weight:g} → {new.weight:g}")
        for old, new in changes.reweighted
    ]


def effect(source: data.Source, draft: Draft, study: Study, *, k: int) -> EditEffect:
    """What the edits change before anything is graded anew; reckoned once for each version of them."""
    after = draft.bank
    key = source, draft.file.digest, after.version
    if draft.reckoned is None or draft.reckoned[0] != key:
        found = effect_of(
            draft.file.bank, after, data.dataset(source), study.grades, study.rankings, level=study.usual_level, k=k
        )
        draft.reckoned = key, found
    return draft.reckoned[1]


def labels_frame(found: EditEffect) -> pd.DataFrame:
    """Passages whose label an edit changes."""
    origins = [origin_of(change.passage_id) for change in found.labels]
    return pd.DataFrame(
        {
            "Query": [change.query_id for change in found.labels],
            "Agent": ["" if origin is None else origin[1] for origin in origins],
            "Passage": ["" if origin is None else origin[2] for origin in origins],
            "Label before": pd.array([change.before for change in found.labels], dtype="Int64"),
            "after": pd.array([change.after for change in found.labels], dtype="Int64"),
        }
    )


def places_frame(found: EditEffect) -> pd.DataFrame:
    """Every agent's place and cover before and after an edit."""
    return pd.DataFrame(
        {
            "Agent": [move.agent for move in found.places],
            "Place before": [move.place_before for move in found.places],
            "Place after": [move.place_after for move in found.places],
            "Cover before": [round(move.before, 3) for move in found.places],
            "Cover after": [round(move.after, 3) for move in found.places],
        }
    )
