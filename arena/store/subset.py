"""A view of a store limited to some queries, so that everything computed from it covers these queries only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from arena.data.dataset import Dataset
from arena.store import Result, Store, Wanted
from arena.store.bulk import RowColumns
from judges.types import Query, Task

Value = TypeVar("Value")


class StoreSubset(Store):
    """A view of another store that reads only some queries; both share their connections."""

    only: frozenset[str]

    def __init__(self, store: Store, queries: Collection[str]) -> None:
        super().__init__(store._engine, store.location)
        self.only = frozenset(queries)

    def wanted(self, name: str, task: Task | None = None) -> list[tuple[Wanted, str | None]]:
        return [want for want in super().wanted(name, task) if want[0].query_id in self.only]

    def outcomes(
        self, name: str, task: Task, query_id: str | None = None, among: Collection[str] | None = None
    ) -> list[tuple[Wanted, Result | None]]:
        return [
            outcome for outcome in super().outcomes(name, task, query_id, among) if outcome[0].query_id in self.only
        ]

    def each_outcome(self, name: str, task: Task) -> Iterator[tuple[Wanted, Result | None]]:
        return (outcome for outcome in super().each_outcome(name, task) if outcome[0].query_id in self.only)

    def of_games(
        self,
        name: str,
        make: Callable[[RowColumns], Value],
        data: Dataset | None = None,  # noqa: ARG002 - the caller's data cover only some queries
        also: Sequence[str] = (),
    ) -> Value:
        def make_from_subset(columns: RowColumns) -> Value:
            columns = columns.among("query", self.only)
            return make(columns)

        return super().of_games(name, make_from_subset, also=also)

    def dataset(self, name: str, *queries: str) -> Dataset:
        whole = super().dataset(name, *queries)
        return Dataset(
            self._select(whole.queries),
            whole.documents,
            {key: answer for key, answer in whole.answers.items() if key[0] in self.only},
            self._select(whole.retrieved),
            self._select(whole.qrels),
        )

    def queries(self, name: str) -> dict[str, Query]:
        return self._select(super().queries(name))

    def _select(self, by_query: Mapping[str, Value]) -> dict[str, Value]:
        return {query_id: value for query_id, value in by_query.items() if query_id in self.only}
