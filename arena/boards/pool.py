"""What several runs give to judge, and what of it has a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from arena.present.blocks import Board, Section
from arena.present.numbers import COUNT, counted
from arena.present.plain import plain
from arena.present.table import Column, Table
from retrieval_eval.pool import Pool
from retrieval_eval.trec import Qrels, Run

_SHOWN: Final = 10
"""Faulty lines of one file that are listed for people; the JSON has all."""
_RUNS: Final = (
    Column("run", "Run"),
    Column("queries", "Queries", COUNT, "On which it retrieved anything."),
    Column("documents", "Documents", COUNT, "Among its first ones."),
    Column("alone", "Only in this run", COUNT),
    Column("labelled", "Labelled", COUNT),
)


@dataclass(frozen=True, slots=True)
class PoolBoard(Board):
    """A pool of runs, read from ``sources``, and the labels it is held against."""

    pooled: Pool
    runs: Sequence[Run]
    labels: Qrels | None = None

    def sections(self) -> list[Section]:  # noqa: D102
        shares = [{"run": name, **asdict(share)} for name, share in self.pooled.shares(self.labels).items()]
        queries = self._queries()
        known = ""
        if self.labels is not None:
            known = f", {sum(row['unlabelled'] for row in queries.rows)} of them without a label"
        title = f"Pool of depth {self.pooled.depth}: {len(self.pooled)} documents for "
        title += f"{counted(len(queries.rows), 'query', 'queries')}{known}"
        return [Section("pool", "Pool", "", [Table("runs", title, _RUNS, shares), queries])]

    def tables(self) -> list[Table]:
        """Queries first: the runs have a row for each of a few files."""
        return [self._queries()]

    def notes(self) -> list[str]:
        """What a reader of the figures should know, a line each."""
        notes = []
        for source in self._sources():
            notes += [f"note: {source.name}: {note.text}" for note in source.notes]
            notes += [f"left out: {source.name}: {fault}" for fault in source.faulty[:_SHOWN]]
            if len(source.faulty) > _SHOWN:
                notes.append(f"left out: {source.name}: {len(source.faulty)} lines in all")
        known = self.pooled.queries if self.labels is None else self.labels.labels
        if unknown := [query_id for query_id in self.pooled.queries if query_id not in known]:
            notes.append(f"note: queries of the pool without any label: {len(unknown)}, such as {unknown[0]!r}")
        return notes

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
        named = {"pairs": "Documents", "labelled": "Labelled", "unlabelled": "Without a label"}
        keys = list(named)[: 1 if self.labels is None else 3]
        columns = [Column("qid", "Query"), *(Column(key, named[key], COUNT) for key in keys)]
        return Table("queries", "", columns, rows)
