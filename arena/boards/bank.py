"""A test bank: its items, what an edit changes, and what that changes on the leaderboard. Secret texts stay out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from arena.data.safe_files import Saved
from arena.present.blocks import Block, Board, Figure, Figures, Section
from arena.present.numbers import COUNT, FIGURE, counted
from arena.present.plain import flat, plain
from arena.present.table import Column, Table, records
from retrieval_eval.exam.items import Bank, Item, diff
from retrieval_eval.exam.oversight import EditEffect

_QUERY: Final = Column("qid", "Query")
_ITEMS: Final = (
    _QUERY,
    Column("facet", "Subtopic"),
    Column("shown", "Item", programs=False),
    Column("type", "Type"),
    Column("kind", "Kind"),
    Column("weight", "Weight", FIGURE),
    Column("marks", "Marks", meaning="Gold: it has gold answers. Retired: not counted.", programs=False),
    *(Column(name, "") for name in ("item", "text", "answers", "secret", "retired")),
)
_PLACES: Final = (
    Column("agent", "Agent"),
    Column("place_before", "Place before", COUNT),
    Column("place_after", "Place after", COUNT),
    Column("before", "Cover before", FIGURE),
    Column("after", "Cover after", FIGURE),
)
_LABELS: Final = (
    Column("query_id", "Query"),
    Column("passage_id", "Passage"),
    Column("before", "Label before", COUNT),
    Column("after", "Label after", COUNT),
)


@dataclass(frozen=True)
class BankBoard(Board):
    """Items of a bank.

    Attributes:
        version: of the whole bank.
        items: all of them.
        secret: whether the texts of secret ones are shown.
    """

    version: str | None
    items: Sequence[Item]
    secret: bool = False

    def sections(self) -> list[Section]:
        """The items."""
        active = sum(not item.retired for item in self.items)
        note = f"Version {self.version}: {counted(active, 'item counts', 'items count')}"
        note += f", {counted(len(self.items) - active, 'is', 'are')} retired."
        table = Table("items", "", _ITEMS, list(map(self._row, self.items)), [note])
        return [Section("items", "Items", "What are answers graded against?", [table])]

    def json(self) -> dict[str, Any]:
        """Version and items."""
        return {"version": self.version, "items": records(self.tables()[0])}

    def _row(self, item: Item) -> dict[str, Any]:
        marks = {"gold": bool(item.answers), "secret": item.secret, "retired": item.retired}
        row = {
            **flat(item),
            "qid": item.query_id,
            "facet": item.facet_id,
            "item": item.item_id,
            "type": item.item_type,
            "shown": item.text,
            "marks": [mark for mark, holds in marks.items() if holds],
        }
        if item.secret and not self.secret:
            row |= {"item": None, "text": None, "answers": None, "shown": item.open_text}
        return row


@dataclass(frozen=True)
class BankEditBoard(Board):
    """What lies between two versions of a bank.

    Attributes:
        before, after: the versions.
        effect: what the edit changes while only the old grades are known; ``None`` without grades.
        secret: whether texts of secret items are shown.
    """

    before: Bank
    after: Bank
    effect: EditEffect | None = None
    secret: bool = False

    def sections(self) -> list[Section]:
        """The changes, then what they do to places and labels."""
        blocks = [self._changes(), *([] if self.effect is None else _effect_blocks(self.effect))]
        return [Section("edit", "What the edit changes", "", blocks)]

    def json(self) -> Any:
        """Items by kind of change, and the effect."""

        def items(some: Sequence[Item]) -> Any:
            return BankBoard(None, some, self.secret).json()["items"]

        changes = diff(self.before, self.after)
        pairs = {name: list(map(items, getattr(changes, name))) for name in ("edited", "reweighted", "disclosed")}
        shape = {"before": self.before.version, "after": self.after.version, **pairs}
        shape |= {"added": items(changes.added), "retired": items(changes.retired)}
        return shape | (plain(self.effect) if self.effect is not None else {})

    def _changes(self) -> Table:
        changes = diff(self.before, self.after)
        note = f"Version {self.before.version} becomes {self.after.version}."
        if not changes:
            note += " Nothing that grades or scores depend on has changed."

        def text(item: Item) -> str:
            return item.text if self.secret else item.open_text

        def row(change: str, item: Item, was: str = "") -> dict[str, str]:
            return {"change": change, "qid": item.query_id, "item": text(item), "was": was}

        rows = [
            *(row("added", item) for item in changes.added),
            *(row("retired", item) for item in changes.retired),
            *(row("edited", new, text(old)) for old, new in changes.edited),
            *(row(f"weight {new.weight:g}", new, f"{old.weight:g}") for old, new in changes.reweighted),
            *(row("secret now" if new.secret else "open now", new) for _, new in changes.disclosed),
        ]
        columns = [Column("change", "Change"), _QUERY, Column("item", "Item"), Column("was", "Before")]
        return Table("changes", "Changes", columns, rows, [note])


def _effect_blocks(effect: EditEffect) -> list[Block]:
    moved = sum(move.place_before != move.place_after for move in effect.places)
    figures = [
        Figure("Labels that change", len(effect.labels), COUNT, "Passages whose highest grade is another one."),
        Figure("Agents that change places", moved, COUNT, "On the leaderboard of the cover."),
        Figure("Pairs to grade", effect.to_grade, COUNT, "Pairs of passage and item without a grade."),
    ]
    note = f"{effect.to_grade:,} pairs have no grade and cover nothing; the cover after is the least that they allow."
    notes = [note] if effect.to_grade else []
    return [
        Figures(figures),
        Table("places", "Places on the leaderboard of the cover", _PLACES, plain(effect.places), notes),
        Table("labels", "Labels that change" if effect.labels else "", _LABELS, plain(effect.labels)),
    ]


def history_table(saves: Sequence[Saved], folder: object) -> Table:
    """Who saved a file when, and which versions were kept in which folder."""
    columns = [Column("at", "When"), Column("by", "Who"), Column("what", "What"), Column("earlier", "Earlier version")]
    note = f"They are in {folder}." if saves else "None: this page has not replaced this file yet."
    return Table("earlier-versions", "", columns, plain(saves), [note])
