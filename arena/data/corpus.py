"""Reads the documents that agents search or queries are generated from; adds TREC runs and qrels to a dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from arena.config.schema import DataSection
from arena.data.dataset import SHARED, Dataset
from arena.data.files import similar_name
from judges.errors import DataError
from judges.types import Document, Retrieved
from retrieval_eval.data.collections import fetch_documents, read_corpus
from retrieval_eval.data.spans import source_of
from retrieval_eval.data.trec import read_qrels
from retrieval_eval.documents.passages import NearDuplicates, PassagesSection, Twin, passage_id, passages_of
from retrieval_eval.documents.read import KINDS, files_of, read_documents
from retrieval_eval.documents.text import decoded
from retrieval_eval.documents.types import FileNote, Limits, UnreadableError

if TYPE_CHECKING:
    from retrieval_eval.data.runs import Run


class CorpusReading(Struct):
    """Counts and notes on the documents that ``read_passages`` reads; complete once its iterator ends.

    Attributes:
        documents: number of documents that were read.
        skipped: files and folders that could not be read completely.
        notes: remarks on files and folders, such as hidden folders, or how a damaged file was read.
        other_files: number of files in unsupported formats, by file extension.
        passages: number of passages in these documents.
        twins: passages that were left out because they nearly repeat another passage.
    """

    documents: int = 0
    skipped: list[FileNote] = field(default_factory=list)
    notes: list[FileNote] = field(default_factory=list)
    other_files: Mapping[str, int] = field(default_factory=dict)
    passages: int = 0
    twins: list[Twin] = field(default_factory=list)


def read_passages(
    paths: Sequence[Path], how: PassagesSection, limits: Limits, reading: CorpusReading
) -> Iterator[Document]:
    """Read the documents in files and folders one at a time, and yield their passages; counts both in ``reading``."""
    others = Counter(
        file.path.suffix.lower() or "none" for file in files_of(paths) if file.kind is None and file.unread is None
    )
    reading.other_files = dict(sorted(others.items()))
    near_duplicates = NearDuplicates(how.near_duplicates) if how.near_duplicates is not None else None
    for document in read_documents(paths, limits):
        if isinstance(document, FileNote):
            (reading.notes if document.outcome == "note" else reading.skipped).append(document)
            continue
        reading.documents += 1
        for passage in passages_of(document, how):
            if near_duplicates is not None and (twin := near_duplicates.twin(passage.doc_id, passage.text)) is not None:
                reading.twins.append(twin)
                continue
            reading.passages += 1
            yield passage


class ReadCorpus(Struct, frozen=True):
    """The documents that agents search.

    Attributes:
        documents: the documents, in the order of the files.
        skipped: files and folders that could not be read completely.
        twins: number of passages left out because they nearly repeat another passage.
    """

    documents: tuple[Document, ...]
    skipped: Sequence[FileNote] = ()
    twins: int = 0


def corpus_of(section: DataSection) -> ReadCorpus:
    tables = tables_of(section.corpus)
    documents = list(read_corpus(tables))
    reading = CorpusReading()
    if folders := [source for source in section.corpus if source not in tables]:
        documents += read_passages(folders, section.passages, section.limits, reading)
    if not documents:
        raise DataError(
            ", ".join(map(str, section.corpus)), "has no document with text that agents can search; add one to 'corpus'"
        )
    first = {document.doc_id: document for document in reversed(documents)}
    return ReadCorpus(tuple(reversed(first.values())), reading.skipped, len(reading.twins))


def tables_of(corpus: Sequence[Path]) -> list[Path]:
    """Select the sources that are tables of documents with ids, such as a ``.txt`` file with lines ``id<TAB>text``."""
    return [source for source in corpus if not source.is_dir() and KINDS.get(source.suffix.lower(), "plain") == "plain"]


def spanned_documents(corpus: Sequence[Path], wanted: set[str]) -> dict[str, Document]:
    """Read documents by id, whole and as chunks, for labels of their spans; ``corpus`` holds tables and text files.

    A file of a folder is called as in the ids of its passages, and its positions count its characters as they stand.
    """
    if not wanted:
        return {}
    tables = tables_of(corpus)
    documents = {
        each.doc_id: each
        for each in read_corpus(tables)
        if source_of(each.doc_id, wanted) is not None or not wanted.isdisjoint(each.metadata.values())
    }
    for file in files_of([source for source in corpus if source not in tables]):
        name = passage_id(file.source, "")[:-1]
        if file.kind in {"plain", "markdown"} and name in wanted:
            try:
                documents[name] = Document(name, decoded(file.path.read_bytes()))
            except UnreadableError as error:
                raise DataError(file.path, f"labels name spans of this file, but it {error}") from error
    return documents


def with_qrels(data: Dataset, sources: Sequence[Path], corpus: Sequence[Path] = ()) -> Dataset:
    """Return the dataset with the labels in qrels files added; labels for queries not in the dataset are left out.

    ``corpus`` may hold the documents of which spans are labelled.
    """
    labels: dict[str, dict[str, int]] = {}
    for source in sources:
        whole = read_qrels(source)
        documents = {**spanned_documents(corpus, whole.documents), **data.documents}
        read = whole.on_chunks(data.documents, documents).labels
        if read.keys().isdisjoint(data.queries):
            raise DataError(
                source,
                "no query id of these qrels is in the data; check that both belong together",
                value=next(iter(read)),
            )
        for query_id in read.keys() & data.queries.keys():
            known = labels.setdefault(query_id, {})
            for doc_id, label in read[query_id].items():
                if known.setdefault(doc_id, label) != label:
                    problem = f"query {query_id!r}, document {doc_id!r} has the label {known[doc_id]} in another file"
                    raise DataError(source, problem, value=str(label))
    return replace(data, qrels={query_id: labels[query_id] for query_id in data.queries if query_id in labels})


def with_runs(data: Dataset, paths: Sequence[Path], corpora: Sequence[Path], depth: int | None) -> Dataset:
    """Return the dataset with the first ``depth`` documents for each query of TREC runs added as retrieved.

    A run's tag is the name of its agent; a single run may apply to all agents. Queries that are only in a run are
    ignored. Texts of documents that are missing from ``data`` are read from ``corpora``.
    """
    from retrieval_eval.data.runs import read_runs  # late, because it imports numpy

    runs = dict(zip(paths, read_runs(paths), strict=True))
    agents = {path: _agent_of(data, path, run, alone=len(runs) == 1) for path, run in runs.items()}
    new = [entry for path, run in runs.items() for entry in _entries(data, run, agents[path], depth)]
    notes = [
        f"{path}: no agent is called {runs[path].name!r}, so every agent was given its documents"
        for path, agent in agents.items()
        if agent == SHARED
    ]
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
    return replace(data, documents=documents, retrieved=retrieved, notes=(*data.notes, *notes))


def with_references(data: Dataset, corpora: Sequence[Path], *, taken: bool) -> Dataset:
    """Return the dataset with the documents added that answers of the TREC RAG track list as references.

    The documents are read from ``corpora``. If none is found there, the corpora are unused: raises ``DataError``,
    unless runs or agents use them (``taken``).
    """
    from retrieval_eval.scores.citations import references

    wanted = {doc_id for answer in data.answers.values() for doc_id in references(answer)} - data.documents.keys()
    documents = fetch_documents(corpora, wanted) if wanted else {}
    if not (taken or documents):
        raise DataError(
            ", ".join(map(str, corpora)),
            "its documents are used by no run, agent or answer; remove 'corpus'",
        )
    return replace(data, documents={**data.documents, **documents})


def _agent_of(data: Dataset, path: Path, run: Run, *, alone: bool) -> str:
    """Name of a run's agent: the run's tag; ``SHARED`` if it is the only run and its tag resembles no agent's name."""
    retrieving = {entry.agent for entries in data.retrieved.values() for entry in entries}
    answering = {agent for _, agent in data.answers}
    if run.rankings.keys().isdisjoint(data.queries):
        raise DataError(
            path,
            "no query id of this run is in the data; check that both belong together",
            value=next(iter(run.rankings)),
        )
    if SHARED in retrieving:
        raise DataError(
            path, "the table of documents must name the agents if there are runs; add a column 'agent' to it"
        )
    if run.name in retrieving:
        raise DataError(
            path,
            "the table of documents has documents of the agent in this run's tag; remove them or the run",
            value=run.name,
        )
    if not answering or run.name in answering:
        return run.name
    near = similar_name(run.name, answering)
    if alone and not near and not retrieving:
        return SHARED
    raise DataError(
        path, f"this run's tag names no agent with answers; change the tag to an agent's name{near}", value=run.name
    )


def _entries(data: Dataset, run: Run, agent: str, depth: int | None) -> list[Retrieved]:
    return [
        Retrieved(query_id, doc_id, agent, rank, score)
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
            f"documents of runs that are not in the corpus: {len(missing)}, such as one that {entry.agent!r} retrieved "
            f"for query {entry.query_id!r}; add them to 'corpus'"
        )
        raise DataError(", ".join(map(str, searched)), problem, value=entry.doc_id)
