"""What a person or a judge said of one thing, as every comparison here takes it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["verdicts", "labels", "criteria", "nuggets"]
"""What was judged: two answers to a query, a document, an answer by one criterion, a nugget in an answer."""

Item: TypeAlias = tuple[str, ...]
"""Names one thing among those of its query: two agents in the order of their names, a document, an agent and a
criterion, an agent and a nugget, and further columns where those do not tell things apart."""

Values: TypeAlias = Mapping[str, Mapping[Item, float]]
"""A value for each thing, by query."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """One rater's value of one thing.

    Attributes:
        query_id: the query; what was said on one query depends on each other.
        item: the thing.
        rater: a judge or a person.
        value: a label or a grade; of a verdict 1 where the first agent of ``item`` won, -1 where the second did, and 0
            for a tie.
        swapped: of a verdict, whether the second agent of ``item`` was shown first.
        placed: of a verdict, whether it is known who was shown first.
    """

    query_id: str
    item: Item
    rater: str
    value: float
    swapped: bool = False
    placed: bool = True


def by_rater(opinions: Iterable[Opinion]) -> dict[str, dict[str, dict[Item, float]]]:
    """Each rater's values, by query and thing; where a rater repeats itself the last one stands."""
    found: defaultdict[str, defaultdict[str, dict[Item, float]]] = defaultdict(lambda: defaultdict(dict))
    for one in opinions:
        found[one.rater][one.query_id][one.item] = one.value
    return {rater: dict(values) for rater, values in sorted(found.items())}


def by_item(opinions: Iterable[Opinion]) -> dict[str, dict[Item, list[Opinion]]]:
    """All that was said of each thing, by query."""
    found: defaultdict[str, defaultdict[Item, list[Opinion]]] = defaultdict(lambda: defaultdict(list))
    for one in opinions:
        found[one.query_id][one.item].append(one)
    return {query_id: dict(things) for query_id, things in found.items()}


def paired(first: Values, second: Values) -> list[tuple[str, Item, float, float]]:
    """Query, thing and both values of what is in both, in the order of the first."""
    return [
        (query_id, item, value, second[query_id][item])
        for query_id, things in first.items()
        if query_id in second
        for item, value in things.items()
        if item in second[query_id]
    ]


def size(values: Values) -> int:
    """How many things have a value."""
    return sum(map(len, values.values()))


def whole_numbers(values: Values) -> dict[str, dict[Item, int]] | None:
    """The same as labels, ``None`` where a value is none, such as the mean of several."""
    if any(value != int(value) for things in values.values() for value in things.values()):
        return None
    return {query_id: {item: int(value) for item, value in things.items()} for query_id, things in values.items()}
