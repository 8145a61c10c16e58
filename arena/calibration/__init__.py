"""Calibration: compares judges with people and scoring methods with each other, and corrects estimates for judge bias.

A pure core: records and arrays in, frozen results out. Files, the store and the command line are elsewhere.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

EPSILON: Final = 0.1
"""Default of epsilon in the alternative annotator test: by how much a judge may be worse than a person and still pass.
It is the strictest value that the test's authors recommend, for crowd workers."""

ItemKey: TypeAlias = tuple[str, ...]
"""Key of a judged item within its query: for a game, two agents in alphabetical order; for a label, a document; for a
grade, an agent and the judged part of its answer. Values of further columns come first if these names are not enough.
"""


class ItemMeans(Struct, frozen=True):
    """Which mean, such as an agent's, the value of an item belongs to.

    Attributes:
        names: the parts of the item's key that identify the mean, as positions counted from the key's end; the agent's
            comes first. Empty if all items of the tournament have one mean, as documents do. A verdict is an exception:
            it belongs to the means of both agents.
        ends: lowest and highest value of the scale; ``None`` if the scale may differ between tournaments.
    """

    names: tuple[int, ...] = ()
    ends: tuple[float, float] | None = None


class Opinion(NamedTuple):
    """One rater's value of one item.

    Attributes:
        query_id: id of the query; opinions on one query are dependent.
        value: a label or a grade; for a verdict, 1 if the first agent of ``item`` won, -1 if the second did, 0 for a
            tie.
        swapped: for a verdict, whether the second agent of ``item`` was shown first.
        placed: for a verdict, whether it is known which agent was shown first.
        chance: the probability with which the item was drawn for this rater, if known.
    """

    query_id: str
    item: ItemKey
    rater: str
    value: float
    swapped: bool = False
    placed: bool = True
    chance: float | None = None
