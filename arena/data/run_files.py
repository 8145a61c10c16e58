"""TREC runs as what agents retrieved, with the texts of their documents out of a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from arena.data.dataset import SHARED, Dataset
from judges.errors import DataError
from judges.types import Document, Retrieved
from retrieval_eval.corpora import fetch_documents
from retrieval_eval.trec import Run
from retrieval_eval.trec_files import read_runs


def with_runs(data: Dataset, paths: Sequence[Path], corpora: Sequence[Path], depth: int | None) -> Dataset:
    """The dataset with runs beside it; a run's name is its agent's.

    Args:
        data: queries, and the answers and documents that tables give. Queries that only a run has are left out.
        paths: TREC runs, see ``retrieval_eval.trec_files.read_runs``.
        corpora: where the texts are of documents that ``data`` has not, see ``retrieval_eval.corpora``.
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
