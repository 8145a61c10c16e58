"""A store of which only some queries are read: what is computed of it is of these queries alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from arena.data.dataset import Dataset
from arena.store import Result, Store, Wanted
from arena.store.bulk import RowColumns
from judges.types import Query, Task

Value = TypeVar("Value")


class StoreSubset(Store):
    """Reads of another store, whose connections it shares."""

    only: frozenset[str]

    def __init__(self, store: Store, queries: Collection[str]) -> None:
        super().__init__(store._engine, store.location)
        self.only = frozenset(queries)

    def wanted(self, name: str, task: Task | None = None) -> list[tuple[Wanted, str | None]]:
        return [own for own in super().wanted(name, task) if own[0].query_id in self.only]

    def outcomes(
        self, name: str, task: Task, query_id: str | None = None, among: Collection[str] | None = None
    ) -> list[tuple[Wanted, Result | None]]:
        return [own for own in super().outcomes(name, task, query_id, among) if own[0].query_id in self.only]

    def each_outcome(self, name: str, task: Task) -> Iterator[tuple[Wanted, Result | None]]:
        return (own for own in super().each_outcome(name, task) if own[0].query_id in self.only)

    def of_games(
        self,
        name: str,
        make: Callable[[RowColumns], Value],
        data: Dataset | None = None,  # noqa: ARG002 - a part of them
        also: Sequence[str] = (),
    ) -> Value:
        def made(columns: RowColumns) -> Value:
            columns = columns.among("query", self.only)
            return make(columns)

        return super().of_games(name, made, also=also)

    def dataset(self, name: str, *queries: str) -> Dataset:
        whole = super().dataset(name, *queries)
        return Dataset(
            self._own(whole.queries),
            whole.documents,
            {key: answer for key, answer in whole.answers.items() if key[0] in self.only},
            self._own(whole.retrieved),
            self._own(whole.qrels),
        )

    def queries(self, name: str) -> dict[str, Query]:
        return self._own(super().queries(name))

    def _own(self, by_query: Mapping[str, Value]) -> dict[str, Value]:
        return {query_id: own for query_id, own in by_query.items() if query_id in self.only}
