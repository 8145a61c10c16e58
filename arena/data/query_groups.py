"""Groups of queries: what a column of their table has few values of."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from judges.types import Query

_MOST: Final = 30
"""A column with more values, or with more than half as many as there are queries, does not group them."""


def groupings(queries: Collection[Query]) -> dict[str, tuple[str, ...]]:
    """The columns that put queries into groups, each with its values in order; a query may lack a column."""
    values: dict[str, set[str]] = {}
    for query in queries:
        for name, value in query.metadata.items():
            values.setdefault(name, set()).add(value)
    return {name: tuple(sorted(own)) for name, own in values.items() if 1 < len(own) <= min(_MOST, len(queries) / 2)}
