"""Documents that agents search and models write queries about: tables as they are, other files cut into passages."""

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
    """What documents came to, counted while their passages are taken.

    Attributes:
        documents: that were read.
        skipped: files and folders that could not be, or in part only.
        notes: what else to know of files and folders: hidden ones, and how a damaged file was read.
        other_files: files of formats that are not read, by their ending.
        passages: that were cut and kept.
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
    """The passages of documents one after another, as each is read.

    Raises:
        InputError: a path cannot be used (``read_documents``).
    """
    others = Counter(
        file.path.suffix.lower() or "none" for file in files_of(paths) if file.kind is None and file.unread is None
    )
    reading.other_files = dict(sorted(others.items()))
    alike = NearDuplicates(how.near_duplicates) if how.near_duplicates is not None else None
    for found in read_documents(paths, limits):
        if isinstance(found, FileNote):
            (reading.notes if found.outcome == "note" else reading.skipped).append(found)
            continue
        reading.documents += 1
        for passage in passages_of(found, how):
            if alike is not None and (twin := alike.twin(passage.doc_id, passage.text)) is not None:
                reading.twins.append(twin)
                continue
            reading.passages += 1
            yield passage


class ReadCorpus(Struct, frozen=True):
    """What agents search.

    Attributes:
        documents: in the order of the sources; passages that repeat an earlier one are left out.
        skipped: files and folders that could not be read, or in part only.
        twins: passages left out.
    """

    documents: tuple[Document, ...]
    skipped: Sequence[FileNote] = ()
    twins: int = 0


def corpus_of(section: DataSection) -> ReadCorpus:
    """Read what ``data.corpus`` names.

    Raises:
        InputError: a source cannot be read, or there is no text in any.
    """
    tables = tables_of(section.corpus)
    documents = list(read_corpus(tables))
    reading = CorpusReading()
    if folders := [source for source in section.corpus if source not in tables]:
        documents += read_passages(folders, section.passages, section.limits, reading)
    if not documents:
        raise DataError(", ".join(map(str, section.corpus)), "no document with text is there for agents to search")
    first = {document.doc_id: document for document in reversed(documents)}
    return ReadCorpus(tuple(reversed(first.values())), reading.skipped, len(reading.twins))


def tables_of(corpus: Sequence[Path]) -> list[Path]:
    """The sources that are tables of documents with their ids. A ``.txt`` file is one, of ``id<TAB>text``."""
    return [source for source in corpus if not source.is_dir() and KINDS.get(source.suffix.lower(), "plain") == "plain"]
