"""Reads the documents that agents search and models generate queries from: tables, and files split into passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from arena.config.schema import DataSection
from judges.errors import DataError
from judges.types import Document
from retrieval_eval.data.collections import read_corpus
from retrieval_eval.documents.passages import NearDuplicates, PassagesSection, Twin, passages_of
from retrieval_eval.documents.read import KINDS, files_of, read_documents
from retrieval_eval.documents.types import FileNote, Limits


class CorpusReading(Struct):
    """Counts and notes of reading documents, filled in while ``read_passages`` yields.

    Attributes:
        documents: number of documents read.
        skipped: files and folders that could not be read completely.
        notes: remarks on files and folders: hidden ones, and how a damaged file was read.
        other_files: number of files in unsupported formats, by suffix.
        passages: number of passages yielded.
        twins: passages left out as near-duplicates.
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
    """Yield the passages of all documents, reading one document at a time; counts them in ``reading``.

    Raises:
        InputError: a path cannot be used (``read_documents``).
    """
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
        documents: the documents in the order of the sources, without near-duplicates.
        skipped: files and folders that could not be read completely.
        twins: number of passages left out as near-duplicates.
    """

    documents: tuple[Document, ...]
    skipped: Sequence[FileNote] = ()
    twins: int = 0


def corpus_of(section: DataSection) -> ReadCorpus:
    """Read the documents that ``data.corpus`` names.

    Raises:
        InputError: a source cannot be read, or none has any text.
    """
    tables = tables_of(section.corpus)
    documents = list(read_corpus(tables))
    reading = CorpusReading()
    if folders := [source for source in section.corpus if source not in tables]:
        documents += read_passages(folders, section.passages, section.limits, reading)
    if not documents:
        raise DataError(
            ", ".join(map(str, section.corpus)), "no document with text for agents to search; add one to 'corpus'"
        )
    first = {document.doc_id: document for document in reversed(documents)}
    return ReadCorpus(tuple(reversed(first.values())), reading.skipped, len(reading.twins))


def tables_of(corpus: Sequence[Path]) -> list[Path]:
    """The sources that are tables of documents with ids; a ``.txt`` file is one, with lines ``id<TAB>text``."""
    return [source for source in corpus if not source.is_dir() and KINDS.get(source.suffix.lower(), "plain") == "plain"]
