"""The three tables that a tournament starts from, read and written, and the TREC runs beside them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from arena.data.dataset import SHARED, Dataset
from judges.errors import DataError
from judges.types import Answer, Document, Query, Retrieved
from retrieval_eval.data.collections import fetch_documents, topic_rows
from retrieval_eval.data.rows import Cell, Row
from retrieval_eval.data.runs import Run, read_runs
from retrieval_eval.data.tables import read_rows, write_rows
from retrieval_eval.data.trec_answers import is_trec_answers, trec_answer_rows

Files: TypeAlias = Path | str | Sequence[Path | str]
"""One file, or several that are read as one table."""

ALIASES: Mapping[str, Sequence[str]] = {
    "qid": ("query_id", "question_id"),
    "did": ("doc_id", "docid", "document_id"),
    "document": ("document_text", "passage", "text"),
    "agent": ("system", "run_id", "model"),
    "answer": ("response", "answer_text"),
}
"""Other spellings of the columns of documents and answers, accepted where the column itself is absent."""


def load_dataset(queries: Files, documents: Files = (), answers: Files = ()) -> Dataset:
    """Read a dataset: queries by ``read_topics``, the rest from CSV, TSV, JSONL or Parquet files.

    Answers may also be runs of the TREC RAG track, see ``retrieval_eval.data.trec_answers``.

    Columns: queries ``qid, query`` and optionally ``reference``, the gold answer; documents ``qid, did, document`` and
    optionally ``agent, rank, score``; answers ``qid, agent, answer``. ``ALIASES`` lists the other spellings understood.
    Every further column (``title``, ``website``, ``publish_time``, ...) that has a value becomes metadata. Without a
    ``rank`` column documents are ranked in the order of the file.

    Raises:
        DataError: a file cannot be read (see ``retrieval_eval.data.tables``), an id is empty or repeated, a document's
            rows differ, a rank or score is not one, an answer or document belongs to no query, or an agent retrieved
            documents but answered nothing. Names the file, the line, and where two lines clash also the other one.
    """
    asked = _read_queries(_paths(queries))
    answered = _read_answers(_paths(answers), asked)
    reader = _DocumentReader(asked)
    for row in _rows(_paths(documents), ("qid", "did", "document")):
        reader.add(row)
    if answered:
        reader.require_answers({agent for _, agent in answered})
    return Dataset(asked, reader.documents, answered, reader.retrieved())


def save_dataset(dataset: Dataset, folder: Path | str) -> list[Path]:
    """Write a dataset as ``queries.csv``, ``documents.csv`` and ``answers.csv``; ``load_dataset`` gives it back equal.

    Returns:
        The files written; a table without rows is not.

    Raises:
        DataError: a file cannot be written.
        ValueError: a document was retrieved for no query, so that the table of documents has no place for it.
    """
    retrieved = [entry for entries in dataset.retrieved.values() for entry in entries]
    if unused := dataset.documents.keys() - {entry.doc_id for entry in retrieved}:
        raise ValueError(f"documents retrieved for no query cannot be written: {sorted(unused)[:5]}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    agent = () if all(entry.agent == SHARED for entry in retrieved) else ("agent",)
    tables: dict[str, tuple[Sequence[str], list[dict[str, Cell]]]] = {
        "queries.csv": (
            ("qid", "query"),
            [{**query.columns, "qid": query.query_id, "query": query.text} for query in dataset.queries.values()],
        ),
        "documents.csv": (
            ("qid", "did", "document", *agent, "rank", "score"),
            [_document_row(entry, dataset.documents[entry.doc_id]) for entry in retrieved],
        ),
        "answers.csv": (
            ("qid", "agent", "answer"),
            [
                {**answer.metadata, "qid": answer.query_id, "agent": answer.agent, "answer": answer.text}
                for answer in dataset.answers.values()
            ],
        ),
    }
    written = []
    for name, (columns, rows) in tables.items():
        if rows:
            extra = sorted({column for row in rows for column in row} - set(columns))
            write_rows(folder / name, [*columns, *extra], rows)
            written.append(folder / name)
    return written


class _DocumentReader:
    """Gathers the rows of document tables: one row is one retrieval, several rows may share one document."""

    def __init__(self, queries: Mapping[str, Query]) -> None:
        self.documents: dict[str, Document] = {}
        self._queries = queries
        self._entries: dict[tuple[str, str, str], Retrieved] = {}
        self._places: dict[tuple[str, ...], str] = {}
        self._length: Counter[tuple[str, str]] = Counter()
        self._agents: dict[str, Row] = {}

    def add(self, row: Row) -> None:
        query_id, doc_id = _query_of(row, self._queries), row.identifier("did")
        agent = row.identifier("agent") if "agent" in row.values else SHARED
        if agent not in self._agents:
            self._agents[agent] = row
            if SHARED in self._agents and len(self._agents) > 1:
                other = next(iter(self._agents.values()))
                raise row.error(f"either all documents name their agent or none does, unlike {other.place}")
        self._add_document(row, doc_id)
        self._length[query_id, agent] += 1
        rank = _rank(row) if "rank" in row.values else self._length[query_id, agent]
        group = f"for query {query_id!r}" + (f" by {agent!r}" if agent else "")
        key = (query_id, agent)
        self._require_first(row, ("retrieved", *key, doc_id), f"document {doc_id!r} was retrieved twice {group}")
        self._require_first(row, ("rank", *key, str(rank)), f"two documents have rank {rank} {group}")
        self._entries[query_id, doc_id, agent] = Retrieved(query_id, doc_id, agent, rank, _score(row))

    def require_answers(self, answering: set[str]) -> None:
        for agent, row in self._agents.items():
            if agent != SHARED and agent not in answering:
                raise row.error("this agent retrieved documents but answered no query", agent)

    def retrieved(self) -> dict[str, tuple[Retrieved, ...]]:
        by_query: defaultdict[str, list[Retrieved]] = defaultdict(list)
        for entry in sorted(self._entries.values(), key=lambda entry: (entry.agent, entry.rank)):
            by_query[entry.query_id].append(entry)
        return {query_id: tuple(by_query[query_id]) for query_id in self._queries if query_id in by_query}

    def _add_document(self, row: Row, doc_id: str) -> None:
        text, metadata = row.text("document"), _metadata(row, {"qid", "did", "document", "agent", "rank", "score"})
        place = self._places.setdefault(("document", doc_id), row.place)
        known = self.documents.get(doc_id, Document(doc_id, text, metadata))
        if known.text != text:
            raise row.error(f"document {doc_id!r} has another text in {place}")
        for name, value in metadata.items():
            if known.metadata.get(name, value) != value:
                raise row.error(f"document {doc_id!r} has another {name!r} in {place} or later", value)
        self.documents[doc_id] = Document(doc_id, text, {**known.metadata, **metadata})

    def _require_first(self, row: Row, key: tuple[str, ...], problem: str) -> None:
        if key in self._places:
            raise row.error(f"{problem}, see {self._places[key]}")
        self._places[key] = row.place


def _read_queries(paths: Sequence[Path]) -> dict[str, Query]:
    queries: dict[str, Query] = {}
    places: dict[str, str] = {}
    for row in (row for path in paths for row in topic_rows(path)):
        query_id, text = row.identifier("qid"), row.text("query")
        if query_id in queries:
            raise row.error(f"this query id stands in {places[query_id]} already", query_id)
        if not text or text.isspace():
            raise row.error(f"the text of query {query_id!r} is empty")
        queries[query_id], places[query_id] = Query.of(query_id, text, _metadata(row, {"qid", "query"})), row.place
    return queries


def _read_answers(paths: Sequence[Path], queries: Mapping[str, Query]) -> dict[tuple[str, str], Answer]:
    answers: dict[tuple[str, str], Answer] = {}
    places: dict[tuple[str, str], str] = {}
    for row, answer in (entry for path in paths for entry in read_answers(path)):
        key = query_id, agent = answer.query_id, answer.agent
        if query_id not in queries:
            raise row.error("no query has this id", query_id)
        if key in answers:
            raise row.error(f"agent {agent!r} answered query {query_id!r} in {places[key]} already")
        answers[key], places[key] = answer, row.place
    return answers


def read_answers(path: Path) -> Iterator[tuple[Row, Answer]]:
    """The answers of a table, or of runs as participants of the TREC RAG track hand them in, each with its row.

    Raises:
        DataError: the file cannot be read, or an answer is malformed; names file, line and value.
    """
    if is_trec_answers(path):
        yield from trec_answer_rows(path)
        return
    for row in _rows([path], ("qid", "agent", "answer")):
        metadata = _metadata(row, {"qid", "agent", "answer"})
        yield row, Answer(row.identifier("qid"), row.identifier("agent"), row.text("answer"), metadata)


def _paths(files: Files) -> list[Path]:
    return [Path(files)] if isinstance(files, str | Path) else [Path(file) for file in files]


def _rows(paths: Sequence[Path], required: Sequence[str]) -> Iterator[Row]:
    wanted = (*required, "agent") if "did" in required else required
    aliases = {column: ALIASES[column] for column in wanted}
    for path in paths:
        yield from read_rows(path, required, aliases)


def _query_of(row: Row, queries: Mapping[str, Query]) -> str:
    query_id = row.identifier("qid")
    if query_id not in queries:
        raise row.error("no query has this id", query_id)
    return query_id


def _metadata(row: Row, columns: set[str]) -> dict[str, str]:
    # CSV cannot tell an empty cell from an absent one, so neither is metadata.
    return {name: text for name in row.values if name not in columns and (text := row.text(name))}


def _rank(row: Row) -> int:
    number = _number(row, "rank")
    if number is None or number < 1 or number != int(number):
        raise row.error("'rank' must be a whole number that counts from 1", row.text("rank"))
    return int(number)


def _score(row: Row) -> float | None:
    return _number(row, "score")


def _number(row: Row, column: str) -> float | None:
    text = row.text(column).strip()
    try:
        number = float(text) if text else None
    except ValueError:
        number = math.nan
    if number is not None and not math.isfinite(number):
        raise row.error(f"{column!r} must be a number", text)
    return number


def _document_row(entry: Retrieved, document: Document) -> dict[str, Cell]:
    row: dict[str, Cell] = {**document.metadata, "qid": entry.query_id, "did": entry.doc_id, "document": document.text}
    agent: dict[str, Cell] = {} if entry.agent == SHARED else {"agent": entry.agent}
    return row | agent | {"rank": entry.rank, "score": entry.score}


def with_qrels(data: Dataset, sources: Sequence[Path]) -> Dataset:
    """The dataset with labels of people; those of queries that it has not are left out.

    Args:
        data: queries and the rest.
        sources: see ``retrieval_eval.data.trec.read_qrels``; several are read as one.

    Raises:
        DataError: one cannot be read or has labels for none of the queries, or two give a pair different labels.
    """
    from retrieval_eval.data.trec import read_qrels

    labels: dict[str, dict[str, int]] = {}
    for source in sources:
        read = read_qrels(source).labels
        if read.keys().isdisjoint(data.queries):
            raise DataError(source, "has labels for none of the queries, but for others", value=next(iter(read)))
        for query_id in read.keys() & data.queries.keys():
            known = labels.setdefault(query_id, {})
            for doc_id, label in read[query_id].items():
                if known.setdefault(doc_id, label) != label:
                    problem = f"query {query_id!r}, document {doc_id!r} has the label {known[doc_id]} in another file"
                    raise DataError(source, problem, value=str(label))
    return replace(data, qrels={query_id: labels[query_id] for query_id in data.queries if query_id in labels})


def with_runs(data: Dataset, paths: Sequence[Path], corpora: Sequence[Path], depth: int | None) -> Dataset:
    """The dataset with runs beside it; a run's name is its agent's.

    Args:
        data: queries, and the answers and documents that tables give. Queries that only a run has are left out.
        paths: TREC runs, see ``retrieval_eval.data.runs.read_runs``.
        corpora: where the texts are of documents that ``data`` has not, see ``retrieval_eval.data.collections``.
        depth: documents taken of each run and query; all when ``None``.

    Raises:
        DataError: a file cannot be read, a run has nothing for any query, its agent answered nothing or has retrieved
            documents in ``data`` already, or a document is in no corpus.
    """
    runs = dict(zip(paths, read_runs(paths), strict=True))
    for path, run in runs.items():
        _require_fit(data, path, run)
    new = [entry for run in runs.values() for entry in _entries(data, run, depth)]
    wanted = {entry.doc_id for entry in new} - data.documents.keys()
    documents = {**data.documents, **fetch_documents(corpora, wanted)}
    _require_found(new, documents, corpora or paths)
    by_query: dict[str, list[Retrieved]] = {
        query_id: list(data.retrieved.get(query_id, ())) for query_id in data.queries
    }
    for entry in new:
        by_query[entry.query_id].append(entry)
    retrieved = {
        query_id: tuple(sorted(entries, key=lambda entry: (entry.agent, entry.rank)))
        for query_id, entries in by_query.items()
        if entries
    }
    return replace(data, documents=documents, retrieved=retrieved)


def _require_fit(data: Dataset, path: Path, run: Run) -> None:
    retrieving = {entry.agent for entries in data.retrieved.values() for entry in entries}
    answering = {agent for _, agent in data.answers}
    if run.rankings.keys().isdisjoint(data.queries):
        raise DataError(
            path, "this run retrieved for none of the queries, but for others", value=next(iter(run.rankings))
        )
    if SHARED in retrieving:
        raise DataError(path, "a run goes with documents that name their agent, and the table of documents names none")
    if run.name in retrieving:
        raise DataError(path, "the table of documents has what this agent retrieved already", value=run.name)
    if answering and run.name not in answering:
        raise DataError(path, "no agent that answered is called like this run's tag", value=run.name)


def _entries(data: Dataset, run: Run, depth: int | None) -> list[Retrieved]:
    return [
        Retrieved(query_id, doc_id, run.name, rank, score)
        for query_id, ranking in run.rankings.items()
        if query_id in data.queries
        for rank, (doc_id, score) in enumerate(
            zip(ranking.doc_ids[:depth], ranking.scores[:depth], strict=True), start=1
        )
    ]


def _require_found(entries: Sequence[Retrieved], documents: Mapping[str, Document], searched: Sequence[Path]) -> None:
    missing = {entry.doc_id: entry for entry in entries if entry.doc_id not in documents}
    if missing:
        entry = next(iter(missing.values()))
        problem = (
            f"documents of the runs that no corpus has: {len(missing)}, such as the one that {entry.agent!r} retrieved"
            f" for query {entry.query_id!r}"
        )
        raise DataError(", ".join(map(str, searched)), problem, value=entry.doc_id)
