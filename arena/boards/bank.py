"""Boards of a test bank or of lists of nuggets: the items with their effect on the scores, and the effect of an edit.

The texts of secret items are not shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Final

import numpy as np
from msgspec import Struct

from arena.data.safe_files import Saved
from arena.present.blocks import Block, Board, Figure, Figures, Section
from arena.present.numbers import COUNT, FIGURE, WORDS, NumberForm, counted, listed
from arena.present.table import Column, Table, TableRow, flat, plain, records
from arena.results.exam import Study
from arena.results.nuggets import NuggetResults
from retrieval_eval.exam.items import Bank, Item, diff
from retrieval_eval.exam.oversight import Covers, EditEffect, Influence, exam_covers, left_out
from retrieval_eval.nuggets.types import Importance, Nugget, Support

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


class BankBoard(Board, frozen=True):
    """Items of a test bank, retired items included; ``secret`` shows the texts of secret items."""

    version: str | None
    items: Sequence[Item]
    secret: bool = False

    def sections(self) -> list[Section]:
        active = sum(not item.retired for item in self.items)
        note = f"Version {self.version}: {counted(active, 'item counts', 'items count')}"
        note += f", {counted(len(self.items) - active, 'is', 'are')} retired."
        table = Table("items", "", _ITEMS, list(map(self._row, self.items)), [note])
        return [Section("items", "Items", "What are answers graded against?", [table])]

    def json(self) -> dict[str, Any]:
        return {"version": self.version, "items": records(self.tables()[0])}

    def _row(self, item: Item) -> dict[str, Any]:
        row = {
            **flat(item),
            "qid": item.query_id,
            "facet": item.facet_id,
            "item": item.item_id,
            "type": item.item_type,
            "shown": item.text,
            "marks": _marks(item),
        }
        if item.secret and not self.secret:
            row |= {"item": None, "text": None, "answers": None, "shown": item.open_text}
        return row


class BankEditBoard(Board, frozen=True):
    """Changes from one version of a test bank to another; ``effect`` has the changed labels and places, if known."""

    before: Bank
    after: Bank
    effect: EditEffect | None = None
    secret: bool = False

    def sections(self) -> list[Section]:
        blocks = [self._changes(), *([] if self.effect is None else _effect_blocks(self.effect))]
        return [Section("edit", "What the edit changes", "", blocks)]

    def json(self) -> Any:
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
    note = f"{effect.to_grade:,} pairs have no grade yet; the cover after is over the items that have grades."
    notes = [note] if effect.to_grade else []
    return [
        Figures(figures),
        Table("places", "Places on the leaderboard of the cover", _PLACES, plain(effect.places), notes),
        Table("labels", "Labels that change" if effect.labels else "", _LABELS, plain(effect.labels)),
    ]


def history_table(saves: Sequence[Saved], folder: object) -> Table:
    """Table of a file's earlier versions: who replaced each one and when, and the name of its copy in ``folder``."""
    columns = [Column("at", "When"), Column("by", "Who"), Column("what", "What"), Column("earlier", "Earlier version")]
    note = f"They are in {folder}." if saves else "None: this page has not replaced this file yet."
    return Table("earlier-versions", "", columns, plain(saves), [note])


_NAMED: Final = 4


class ItemEffect(Struct, frozen=True):
    """Effect of one item on the agents' scores; ``influence`` is ``None`` if no agent's mean includes its query.

    ``covering`` is the number of agents that cover the item, ``failing`` has the agents that do not.
    """

    covering: int
    failing: tuple[str, ...]
    influence: Influence | None


def exam_effects(study: Study, level: int, k: int) -> dict[str, ItemEffect]:
    return _effects(*exam_covers(study.grids, study.rankings, level=level, k=k)) if study.rankings else {}


def nugget_effects(results: NuggetResults) -> dict[str, ItemEffect]:
    """Effect of each nugget on the score Vital strict, by nugget id; okay nuggets have a weight of 0 in it."""
    agents = tuple(sorted({assignment.run for assignment in results.assignments}))
    covers = {}
    for query_id, bank in results.banks.items():
        ids = tuple(nugget.nugget_id for nugget in bank.nuggets)
        weights = np.array([float(nugget.importance is Importance.VITAL) for nugget in bank.nuggets])
        covers[query_id] = Covers(ids, weights, np.zeros((len(agents), len(ids))))
    for assignment in results.assignments:
        labels = [np.nan if label is None else float(label is Support.FULL) for label in assignment.labels]
        covers[assignment.query_id].by_agent[agents.index(assignment.run)] = labels
    return _effects(agents, covers)


def _effects(agents: tuple[str, ...], covers: Mapping[str, Covers]) -> dict[str, ItemEffect]:
    influence = {effect.item_id: effect for effect in left_out(agents, covers)} if agents else {}
    return {
        item_id: ItemEffect(
            int((column == 1).sum()),
            tuple(agent for agent, covered in zip(agents, column, strict=True) if covered == 0),
            influence.get(item_id),
        )
        for cover in covers.values()
        for item_id, column in zip(cover.items, cover.by_agent.T, strict=True)
    }


def _marks(item: Item) -> list[str]:
    marks = {"gold": bool(item.answers), "secret": item.secret, "retired": item.retired}
    return [mark for mark, holds in marks.items() if holds]


def item_line(item: Item, marks: Mapping[str, str]) -> TableRow:
    """A row of ``items_table`` for an item of a test bank, without the text of a secret item."""
    line_marks = (*_marks(item), *filter(None, [marks.get(item.item_id)]))
    query = item.query_id if item.facet_id is None else f"{item.query_id}, {item.facet_id}"
    return {"key": item.item_id, "query": query, "item": item.open_text, "weight": item.weight, "marks": line_marks}


def nugget_line(nugget: Nugget) -> TableRow:
    weight = nugget.importance or "not known"
    return {"key": nugget.nugget_id, "query": nugget.query_id, "item": nugget.text, "weight": weight, "marks": ()}


def items_table(
    lines: Sequence[TableRow], effects: Mapping[str, ItemEffect], notes: Iterable[str] = (), links: Iterable[str] = ()
) -> Table:
    """Table with a row for each of ``lines``; ``links`` are the addresses of pages about the first items."""
    words = any(isinstance(line["weight"], str) for line in lines)
    weight: NumberForm = WORDS if words else FIGURE
    columns = [
        Column("query", "Query"),
        Column("item", "Nugget" if words else "Item", link="to"),
        Column("weight", "Importance" if words else "Weight", weight),
        Column("covering", "Covered by", COUNT, "Agents whose answers cover it."),
        Column("moved", "Moves", COUNT, "Agents whose place changes if it is left out."),
        Column("marks", "Marks", meaning="Gold: it has gold answers. Decides: another agent would lead without it."),
        Column("failing", "Failed by", meaning="Agents whose answers do not cover it."),
    ]
    rows = [line | {"to": to} for line, to in zip(lines, chain(links, repeat("")), strict=False)]
    for row in rows:
        if (effect := effects.get(row["key"])) is not None:
            row["covering"] = effect.covering
            row["failing"] = listed(effect.failing, _NAMED) if effect.failing else "nobody" if effect.covering else None
            if effect.influence is not None:
                row["moved"] = effect.influence.moved
                row["marks"] = (*(["decides"] if effect.influence.new_leader else []), *row["marks"])
    return Table("items", "", columns, rows, list(notes))
