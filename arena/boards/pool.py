"""What several runs give to judge, and what of it has a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from arena.boards.agreement import remarks_on
from arena.present.blocks import Board, Remarks, Section
from arena.present.numbers import COUNT, counted
from arena.present.plain import flat, plain
from arena.present.table import Column, Table

if TYPE_CHECKING:
    from retrieval_eval.data.runs import Run
    from retrieval_eval.data.trec import Qrels
    from retrieval_eval.pool import Pool

_RUNS: Final = (
    Column("run", "Run"),
    Column("queries", "Queries", COUNT, "On which it retrieved anything."),
    Column("documents", "Documents", COUNT, "Among its first ones."),
    Column("alone", "Only in this run", COUNT),
    Column("labelled", "Labelled", COUNT),
)
_QUERIES: Final = (
    Column("qid", "Query"),
    Column("pairs", "Documents", COUNT),
    Column("labelled", "Labelled", COUNT),
    Column("unlabelled", "Without a label", COUNT),
)


@dataclass(frozen=True, slots=True)
class PoolBoard(Board):
    """A pool of runs, read from ``sources``, and the labels it is held against."""

    pooled: Pool
    runs: Sequence[Run]
    labels: Qrels | None = None

    def sections(self) -> list[Section]:  # noqa: D102
        shares = [{"run": name, **flat(share)} for name, share in self.pooled.shares(self.labels).items()]
        queries = self._queries()
        title = f"Pool of depth {self.pooled.depth}: {len(self.pooled)} documents for "
        title += counted(len(queries.rows), "query", "queries")
        if self.labels is not None:
            title += f", {sum(row['unlabelled'] for row in queries.rows)} of them without a label"
        return [Section("pool", "Pool", "", [Table("runs", title, _RUNS, shares), queries])]

    def tables(self) -> list[Table]:
        """Queries first: the runs have a row for each of a few files."""
        return [self._queries()]

    def notes(self) -> Remarks:
        """What a reader of the figures should know."""
        said = [line for source in self._sources() for line in remarks_on(source.name, source.notes, source.faulty)]
        known = self.pooled.queries if self.labels is None else self.labels.labels
        if unknown := [query_id for query_id in self.pooled.queries if query_id not in known]:
            said.append(f"queries of the pool without any label: {len(unknown)}, such as {unknown[0]!r}")
        return Remarks(said)

    def json(self) -> Any:  # noqa: D102
        shape = {
            "depth": self.pooled.depth,
            "pairs": len(self.pooled),
            "unlabelled": None if self.labels is None else sum(1 for _ in self.pooled.unlabelled(self.labels)),
            "runs": self.pooled.shares(self.labels),
            "queries": {row["qid"]: {key: row[key] for key in row if key != "qid"} for row in self._queries().rows},
            "notes": {source.name: source.notes for source in self._sources()},
            "faulty": {source.name: source.faulty for source in self._sources()},
        }
        return plain(shape)

    def _sources(self) -> list[Run | Qrels]:
        return [*self.runs, *([self.labels] if self.labels is not None else [])]

    def _queries(self) -> Table:
        rows = []
        for query_id, query in self.pooled.queries.items():
            row: dict[str, Any] = {"qid": query_id, "pairs": len(query.doc_ids)}
            if self.labels is not None:
                known = self.labels.labels.get(query_id, {})
                row["labelled"] = sum(doc_id in known for doc_id in query.doc_ids)
                row["unlabelled"] = row["pairs"] - row["labelled"]
            rows.append(row)
        return Table("queries", "", _QUERIES if self.labels is not None else _QUERIES[:2], rows)
