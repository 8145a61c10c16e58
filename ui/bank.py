"""A test bank while somebody edits it: what they changed so far, and what it would change."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from arena.exam.edits import BankFile, effect_of
from arena.exam.study import Study
from retrieval_eval.exam.edits import ItemEdit, edited_bank
from retrieval_eval.exam.influence import EditEffect
from retrieval_eval.exam.items import Bank, Item
from ui import data


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

    def edited(self, item: Item) -> Item:
        """An item as it would be, in its place and under its id."""
        edit = self.edits.get(item.item_id, ItemEdit())
        return replace(
            item,
            text=item.text if edit.text is None else edit.text,
            weight=item.weight if edit.weight is None else edit.weight,
            retired=item.retired if edit.retired is None else edit.retired,
        )

    @property
    def marks(self) -> dict[str, str]:
        """What is new or changed, by the item's id."""
        return dict.fromkeys(self.edits, "changed") | {item.item_id: "new" for item in self.added}

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
