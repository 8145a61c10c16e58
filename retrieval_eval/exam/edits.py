"""What a person changes of a test bank, and the next version that it makes. Nothing is ever deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from judges.errors import DataError
from retrieval_eval.exam.bank_records import Record, record_items
from retrieval_eval.exam.items import Bank, BankDiff, Item, ItemType


@dataclass(frozen=True, slots=True)
class ItemEdit:
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


def new_item(
    query_id: str,
    text: str,
    *,
    item_type: ItemType = "question",
    facet_id: str | None = None,
    answers: Sequence[str] = (),
    weight: float = 1.0,
    secret: bool = False,
) -> Item:
    """An item as ``read_bank`` reads one: its kind follows from its gold answers.

    Raises:
        DataError: it has no text, or cannot be an item.
    """
    values: dict[str, object] = {"qid": query_id, "facet": facet_id, "type": item_type, "text": text}
    values |= {"answers": list(answers), "weight": weight, "secret": str(secret).lower()}
    record = Record(values, lambda problem, value: DataError("the new item", problem, value=value))
    ((item, _),) = record_items(record, {})
    return item


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
