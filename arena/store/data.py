"""Reads and writes the data of a tournament: queries, documents, retrievals, answers and people's labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import Connection, Table, delete, select

from arena.data.dataset import SHARED, Dataset
from arena.store.bulk import load
from arena.store.rows import decoded, encoded
from arena.store.tables import ANSWER, DOCUMENT, LABEL, QUERY, RETRIEVED
from judges.types import Answer, Document, Query, Retrieved, repeat_of

DATA: Final = (QUERY, DOCUMENT, RETRIEVED, ANSWER, LABEL)


def dataset(connection: Connection, number: int, *queries: str) -> Dataset:
    def rows(kind: Table, order: Sequence[str], *others: str) -> list[Any]:
        statement = select(*(kind.c[name] for name in (*order, *others))).where(kind.c.tournament_id == number)
        if queries:
            statement = statement.where(_of_queries(queries, kind, number))
        # Sorted here, because databases differ in how they order text.
        return sorted(connection.execute(statement), key=itemgetter(*range(len(order))))

    retrieved: dict[str, list[Retrieved]] = {}
    for query_id, agent, rank, doc_id, score in rows(RETRIEVED, ("query_id", "agent", "rank"), "doc_id", "score"):
        retrieved.setdefault(query_id, []).append(Retrieved(query_id, doc_id, agent, rank, score))
    labels: dict[str, dict[str, int]] = {}
    for query_id, doc_id, label in rows(LABEL, ("query_id", "doc_id"), "label"):
        labels.setdefault(query_id, {})[doc_id] = label
    query_rows, document_rows, answer_rows = (
        rows(kind, order, "text", "extra")
        for kind, order in (
            (QUERY, ("position", "query_id")),
            (DOCUMENT, ("doc_id",)),
            (ANSWER, ("query_id", "agent")),
        )
    )
    return Dataset(
        {query_id: Query.of(query_id, text, decoded(extra)) for _, query_id, text, extra in query_rows},
        {doc_id: Document(doc_id, text, decoded(extra)) for doc_id, text, extra in document_rows},
        {
            (query_id, agent): Answer(query_id, agent, text, decoded(extra))
            for query_id, agent, text, extra in answer_rows
        },
        {query_id: tuple(entries) for query_id, entries in retrieved.items()},
        labels,
    )


def queries(connection: Connection, number: int) -> dict[str, Query]:
    columns = QUERY.c
    statement = select(columns.query_id, columns.text, columns.extra).where(columns.tournament_id == number)
    rows = connection.execute(statement.order_by(columns.position))
    return {query_id: Query.of(query_id, text, decoded(extra)) for query_id, text, extra in rows}


def answered(connection: Connection, number: int) -> tuple[frozenset[tuple[str, str]], tuple[str, ...]]:
    answer, retrieved = ANSWER.c, RETRIEVED.c
    rows = connection.execute(select(answer.query_id, answer.agent).where(answer.tournament_id == number))
    answers = frozenset((row.query_id, row.agent) for row in rows)
    agents = select(retrieved.agent).where(retrieved.tournament_id == number).distinct()
    retrieving = connection.execute(agents).scalars()
    names = {*(agent for _, agent in answers), *retrieving} - {SHARED}
    return answers, tuple(sorted({repeat_of(name)[0] for name in names}))


def _of_queries(queries: Sequence[str], kind: Table, number: int) -> Any:
    columns, retrieved = kind.c, RETRIEVED.c
    if kind is not DOCUMENT:
        return columns.query_id.in_(queries)
    in_queries = retrieved.tournament_id == number, retrieved.query_id.in_(queries)
    return columns.doc_id.in_(select(retrieved.doc_id).where(*in_queries))


def replace(connection: Connection, number: int, data: Dataset) -> None:
    for kind in DATA:
        connection.execute(delete(kind).where(kind.c.tournament_id == number))
    rows: dict[Table, Iterable[tuple[Any, ...]]] = {
        QUERY: (
            (number, position, q.query_id, q.text, encoded(q.columns))
            for position, q in enumerate(data.queries.values())
        ),
        DOCUMENT: ((number, d.doc_id, d.text, encoded(d.metadata)) for d in data.documents.values()),
        RETRIEVED: (
            (number, r.query_id, r.agent, r.rank, r.doc_id, r.score)
            for entries in data.retrieved.values()
            for r in entries
        ),
        ANSWER: ((number, a.query_id, a.agent, a.text, encoded(a.metadata)) for a in data.answers.values()),
        LABEL: (
            (number, query_id, doc_id, label)
            for query_id, labels in data.qrels.items()
            for doc_id, label in labels.items()
        ),
    }
    for kind, values in rows.items():
        load(connection, kind, values)


def is_labelled(connection: Connection, number: int) -> bool:
    labels = LABEL.c
    return connection.execute(select(labels.doc_id).where(labels.tournament_id == number).limit(1)).first() is not None
