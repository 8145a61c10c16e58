"""The documents that agents search: tables as they are, folders and files that people read cut into passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arena.config.data import DataSection
from judges.errors import DataError
from judges.types import Document
from retrieval_eval.data.collections import read_corpus
from retrieval_eval.documents.passages import NearDuplicates, passages_of
from retrieval_eval.documents.read import KINDS, read_documents
from retrieval_eval.documents.types import FileNote, SourceDocument


@dataclass(frozen=True, slots=True)
class ReadCorpus:
    """What agents search.

    Attributes:
        documents: in the order of the sources; passages that repeat an earlier one are left out.
        skipped: files and folders that could not be read, or in part only.
        twins: passages left out.
    """

    documents: tuple[Document, ...]
    skipped: tuple[FileNote, ...] = ()
    twins: int = 0


def corpus_of(section: DataSection) -> ReadCorpus:
    """Read what ``data.corpus`` names.

    Raises:
        InputError: a source cannot be read, or there is no text in any.
    """
    documents = list(read_corpus(tables_of(section.corpus)))
    folders = [source for source in section.corpus if source not in tables_of(section.corpus)]
    read = list(read_documents(folders, section.limits)) if folders else []
    passages = [
        passage
        for document in read
        if isinstance(document, SourceDocument)
        for passage in passages_of(document, section.passages)
    ]
    kept = _without_twins(passages, section.passages.near_duplicates)
    found = {document.doc_id: document for document in reversed([*documents, *kept])}
    if not found:
        raise DataError(", ".join(map(str, section.corpus)), "no document with text is there for agents to search")
    skipped = tuple(each for each in read if isinstance(each, FileNote) and each.outcome != "note")
    return ReadCorpus(tuple(reversed(found.values())), skipped, len(passages) - len(kept))


def tables_of(corpus: Sequence[Path]) -> list[Path]:
    """The sources that are tables of documents with their ids. A ``.txt`` file is one, of ``id<TAB>text``."""
    return [source for source in corpus if not source.is_dir() and KINDS.get(source.suffix.lower(), "plain") == "plain"]


def _without_twins(passages: Sequence[Document], threshold: float | None) -> list[Document]:
    if threshold is None:
        return list(passages)
    seen = NearDuplicates(threshold)
    return [passage for passage in passages if seen.twin(passage.doc_id, passage.text) is None]
