"""Items of a test bank, or nuggets of answers, each beside what it does to the scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from arena.present.numbers import COUNT, FIGURE, WORDS, Form, listed
from arena.present.table import Column, Table
from arena.stages.exam.study import Study
from arena.stages.nuggets.results import NuggetResults
from retrieval_eval.exam.items import Item
from retrieval_eval.exam.oversight import Covers, Influence, exam_covers, left_out
from retrieval_eval.nuggets.types import Importance, Nugget, Support

_NAMED: Final = 4
"""Agents that a cell names."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What one item does to the scores.

    Attributes:
        covering: how many agents cover it.
        failing: agents that do not.
        influence: what the leaderboard would be without it; ``None`` where its query is in no mean.
    """

    covering: int
    failing: tuple[str, ...]
    influence: Influence | None


@dataclass(frozen=True, slots=True)
class Line:
    """An item as it is shown.

    Attributes:
        key: of its effect.
        weight: a number, or a word.
        marks: what else is to be said of it.
    """

    key: str
    query: str
    text: str
    weight: float | str | None
    marks: tuple[str, ...] = ()


def exam_effects(study: Study, level: int, k: int) -> dict[str, Effect]:
    """By id, the effect of every item on the mean cover."""
    return _effects(*exam_covers(study.grids, study.rankings, level=level, k=k)) if study.rankings else {}


def nugget_effects(results: NuggetResults) -> dict[str, Effect]:
    """By id, the effect of every nugget on V strict; one that is not vital has none."""
    agents = tuple(sorted({own.run for own in results.assignments}))
    covers = {}
    for query_id, bank in results.banks.items():
        ids = tuple(nugget.nugget_id for nugget in bank.nuggets)
        weights = np.array([float(nugget.importance is Importance.VITAL) for nugget in bank.nuggets])
        covers[query_id] = Covers(ids, weights, np.zeros((len(agents), len(ids))))
    for own in results.assignments:
        labels = [np.nan if label is None else float(label is Support.FULL) for label in own.labels]
        covers[own.query_id].by_agent[agents.index(own.run)] = labels
    return _effects(agents, covers)


def _effects(agents: tuple[str, ...], covers: Mapping[str, Covers]) -> dict[str, Effect]:
    influence = {one.item_id: one for one in left_out(agents, covers)} if agents else {}
    return {
        item_id: Effect(
            int((column == 1).sum()),
            tuple(agent for agent, covered in zip(agents, column, strict=True) if covered == 0),
            influence.get(item_id),
        )
        for own in covers.values()
        for item_id, column in zip(own.items, own.by_agent.T, strict=True)
    }


def item_line(item: Item, marks: Mapping[str, str]) -> Line:
    """A line of the test bank; of a secret item its text is not shown."""
    said = {"gold": bool(item.answers), "secret": item.secret, "retired": item.retired}
    own = (*(mark for mark, holds in said.items() if holds), *filter(None, [marks.get(item.item_id)]))
    query = item.query_id if item.facet_id is None else f"{item.query_id}, {item.facet_id}"
    return Line(item.item_id, query, item.open_text, item.weight, own)


def nugget_line(nugget: Nugget) -> Line:
    """A line of a list of nuggets."""
    return Line(nugget.nugget_id, nugget.query_id, nugget.text, nugget.importance or "not known")


def items_table(lines: Sequence[Line], effects: Mapping[str, Effect], notes: Iterable[str] = ()) -> Table:
    """A row for each item, in their order."""
    words = any(isinstance(line.weight, str) for line in lines)
    weight: Form = WORDS if words else FIGURE
    columns = [
        Column("query", "Query"),
        Column("item", "Nugget" if words else "Item"),
        Column("weight", "Importance" if words else "Weight", weight),
        Column("covering", "Covered by", COUNT, "Agents whose answers cover it."),
        Column("moved", "Moves", COUNT, "Agents whose place changes if it is left out."),
        Column("marks", "Marks", meaning="Gold: it has gold answers. Decides: another agent would lead without it."),
        Column("failing", "Failed by", meaning="Agents whose answers do not cover it."),
    ]
    return Table("items", "", columns, [_row(line, effects.get(line.key)) for line in lines], list(notes))


def _row(line: Line, effect: Effect | None) -> dict[str, Any]:
    row: dict[str, Any] = {"query": line.query, "item": line.text, "weight": line.weight}
    if effect is None:
        return row | {"marks": line.marks}
    influence = effect.influence
    nobody = "nobody" if effect.covering else None
    decides = ("decides",) if influence is not None and influence.new_leader else ()
    return row | {
        "covering": effect.covering,
        "failing": listed(effect.failing, _NAMED) if effect.failing else nobody,
        "moved": None if influence is None else influence.moved,
        "marks": (*decides, *line.marks),
    }
