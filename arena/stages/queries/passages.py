"""What models are asked about: documents read, cut, without near-duplicates, and a sample of the passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from arena.stages.queries.draw import drawn
from judges.errors import DataError, InputError
from judges.types import Document
from retrieval_eval.documents.passages import NearDuplicates, PassagesSection, Twin, passages_of
from retrieval_eval.documents.read import files_of, read_documents
from retrieval_eval.documents.types import FileNote, Limits


@dataclass
class Reading:
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


def read_passages(paths: Sequence[Path], how: PassagesSection, limits: Limits, reading: Reading) -> Iterator[Document]:
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


def sampled_passages(passages: Iterable[Document], number: int | None, seed: int) -> list[Document]:
    """So many passages, or all of them, in the order of the draw.

    Raises:
        InputError: there is none.
    """
    found = drawn(passages, seed, lambda passage: passage.doc_id)
    if not found:
        raise InputError("no document has any text; 'ragleague documents' lists what was skipped and why")
    return found[:number]


def read_examples(path: Path | None) -> list[str]:
    """The experts' queries.

    Raises:
        DataError: the file cannot be read, or has no query.
    """
    from retrieval_eval.data.collections import topic_rows

    if path is None:
        return []
    texts = [row.text("query").strip() for row in topic_rows(path)]
    if not any(texts):
        raise DataError(path, "has no query with text")
    return list(dict.fromkeys(filter(None, texts)))
