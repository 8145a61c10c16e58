"""The data of a tournament: queries, documents, retrievals, answers and people's labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import Connection, Table, delete, select

from arena.data.dataset import SHARED, Dataset
from arena.store.bulk import load
from arena.store.rows import (
    ANSWER_ROWS,
    DOCUMENT_ROWS,
    LABEL_ROWS,
    QUERY_ROWS,
    RETRIEVED_ROWS,
    decoded,
    encoded,
    has_table,
)
from judges.types import Answer, Document, Query, Retrieved

DATA: Final = (QUERY_ROWS, DOCUMENT_ROWS, RETRIEVED_ROWS, ANSWER_ROWS, LABEL_ROWS)


def dataset(connection: Connection, number: int, *queries: str) -> Dataset:
    """The data that a tournament was last begun with; or of some queries, with the documents found for them."""

    def rows(kind: Table, order: Sequence[str], *others: str) -> list[Any]:
        chosen = select(*(kind.c[name] for name in (*order, *others))).where(kind.c.tournament_id == number)
        if queries:
            chosen = chosen.where(_of(queries, kind, number))
        # Databases differ in how they order text.
        return sorted(connection.execute(chosen), key=itemgetter(*range(len(order))))

    retrieved: dict[str, list[Retrieved]] = {}
    for query_id, agent, rank, doc_id, score in rows(RETRIEVED_ROWS, ("query_id", "agent", "rank"), "doc_id", "score"):
        retrieved.setdefault(query_id, []).append(Retrieved(query_id, doc_id, agent, rank, score))
    labels: dict[str, dict[str, int]] = {}
    for query_id, doc_id, label in rows(LABEL_ROWS, ("query_id", "doc_id"), "label"):
        labels.setdefault(query_id, {})[doc_id] = label
    asked, found, answered = (
        rows(kind, order, "text", "extra")
        for kind, order in (
            (QUERY_ROWS, ("position", "query_id")),
            (DOCUMENT_ROWS, ("doc_id",)),
            (ANSWER_ROWS, ("query_id", "agent")),
        )
    )
    return Dataset(
        {query_id: Query.of(query_id, text, decoded(extra)) for _, query_id, text, extra in asked},
        {doc_id: Document(doc_id, text, decoded(extra)) for doc_id, text, extra in found},
        {(query_id, agent): Answer(query_id, agent, text, decoded(extra)) for query_id, agent, text, extra in answered},
        {query_id: tuple(entries) for query_id, entries in retrieved.items()},
        labels,
    )


def queries(connection: Connection, number: int) -> dict[str, Query]:
    """The queries alone, in their order."""
    here = QUERY_ROWS.c
    chosen = select(here.query_id, here.text, here.extra).where(here.tournament_id == number)
    rows = connection.execute(chosen.order_by(here.position))
    return {query_id: Query.of(query_id, text, decoded(extra)) for query_id, text, extra in rows}


def answered(connection: Connection, number: int) -> tuple[frozenset[tuple[str, str]], tuple[str, ...]]:
    """Query and agent of every answer; and all agents, sorted, also those that only retrieved."""
    here, found = ANSWER_ROWS.c, RETRIEVED_ROWS.c
    rows = connection.execute(select(here.query_id, here.agent).where(here.tournament_id == number))
    answers = frozenset((row.query_id, row.agent) for row in rows)
    retrieving = connection.execute(select(found.agent).where(found.tournament_id == number).distinct()).scalars()
    return answers, tuple(sorted({*(agent for _, agent in answers), *retrieving} - {SHARED}))


def _of(queries: Sequence[str], kind: Table, number: int) -> Any:
    here, found = kind.c, RETRIEVED_ROWS.c
    if kind is not DOCUMENT_ROWS:
        return here.query_id.in_(queries)
    return here.doc_id.in_(select(found.doc_id).where(found.tournament_id == number, found.query_id.in_(queries)))


def replace(connection: Connection, number: int, data: Dataset) -> None:
    """Put these data in place of those that are there."""
    for kind in DATA:
        connection.execute(delete(kind).where(kind.c.tournament_id == number))
    rows: dict[Table, Iterable[tuple[Any, ...]]] = {
        QUERY_ROWS: (
            (number, position, q.query_id, q.text, encoded(q.columns))
            for position, q in enumerate(data.queries.values())
        ),
        DOCUMENT_ROWS: ((number, d.doc_id, d.text, encoded(d.metadata)) for d in data.documents.values()),
        RETRIEVED_ROWS: (
            (number, r.query_id, r.agent, r.rank, r.doc_id, r.score)
            for entries in data.retrieved.values()
            for r in entries
        ),
        ANSWER_ROWS: ((number, a.query_id, a.agent, a.text, encoded(a.metadata)) for a in data.answers.values()),
        LABEL_ROWS: (
            (number, query_id, doc_id, label)
            for query_id, labels in data.qrels.items()
            for doc_id, label in labels.items()
        ),
    }
    for kind, values in rows.items():
        load(connection, kind, values)


def is_labelled(connection: Connection, number: int) -> bool:
    """Whether any person's label came with the data."""
    here = LABEL_ROWS
    if not has_table(connection, LABEL_ROWS):
        return False
    return connection.execute(select(here.c.doc_id).where(here.c.tournament_id == number).limit(1)).first() is not None
