"""Labels by character spans of documents (``DOCUMENT#START-END``), mapped onto the chunks that systems retrieve.

A span outlives a cut: its positions count the document's characters from 0, without the one at ``END``. A chunk gets
the label of each span with which it shares at least half (``MIN_SHARE``) of the shorter of the two, of several labels
the highest. So a chunk within a long span counts, and one that holds a short span, but not one that only touches it; a
span that a cut divides in two keeps at least one half. If the document's text is known, only letters and digits count,
so that chunks whose white space, quotes or markup were changed keep their labels.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final, NamedTuple, TypeVar

from judges.types import Document
from retrieval_eval.data.table_spec import READ

MIN_SHARE: Final = 0.5
_SPAN: Final = re.compile(r"(.+)#([0-9]{1,12})-([0-9]{1,12})", re.DOTALL)
_POSITION: Final = re.compile(r"([0-9]{1,12})(?:\.0+)?")
_BREAK: Final = re.compile(r"[\W_]")
_STARTS: Final = ("start", "start_index", "start_char_idx", "split_idx_start", "start_offset", "start_char")
_ENDS: Final = ("end", "end_index", "end_char_idx", "end_offset", "end_char")
_SOURCES: Final = ("source", "source_id", "parent", "parent_id", "ref_doc_id", "parent_doc_id")
"""Columns of tables of chunks: names by LangChain, LlamaIndex and Haystack among them."""
_REST: Final = 10**12

Key = TypeVar("Key", bound=Hashable)


class DocumentSpan(NamedTuple):
    doc_id: str
    start: int
    end: int


def span_of(ident: str) -> DocumentSpan | None:
    """The span that an id names, such as ``manual.txt#120-480``; ``None`` if it is an ordinary id."""
    match = _SPAN.fullmatch(ident)
    span = DocumentSpan(match[1], int(match[2]), int(match[3])) if match else None
    return span if span is not None and span.start < span.end else None


def position_of(text: str) -> int | None:
    """The position in a cell, also one that pandas wrote as a float; ``None`` if there is none."""
    return int(match[1]) if (match := _POSITION.fullmatch(text.strip())) else None


def source_of(ident: str, sources: set[str]) -> str | None:
    """The document that a chunk's id begins with, such as ``d7`` in ``d7#3`` or ``d7_chunk_3``; the longest one."""
    if ident in sources:
        return ident
    breaks = [match.start() for match in _BREAK.finditer(ident)]
    return next((ident[:at] for at in reversed(breaks) if ident[:at] in sources), None)


class SpanLabels:
    """Maps labels of spans onto chunks.

    Args:
        name: the file of labels, for the log.
        labelled: all ids in it.
        chunks: ids of the retrieved chunks.
        documents: chunks and whole documents with known texts.
    """

    def __init__(
        self, name: str, labelled: Iterable[str], chunks: Iterable[str], documents: Mapping[str, Document]
    ) -> None:
        spans = {ident: span for ident in labelled if (span := span_of(ident)) is not None}
        self.chunks: dict[str, tuple[str, ...]] = {}
        """For each span the chunks that have its label; the span itself if there are none, so that it counts as missed.
        Empty if every span is a chunk's id."""
        self._known = {*chunks}
        if spans.keys() <= self._known:
            return
        sources = {span.doc_id for span in spans.values()}
        self._texts = {doc_id: _Text(documents[doc_id].text) for doc_id in sources & documents.keys()}
        self._known |= documents.keys() - sources
        places: dict[str, list[tuple[int, int, str]]] = {}
        unplaced = 0
        for chunk in sorted(self._known):
            if (source := self._source(chunk, documents.get(chunk), sources)) is not None:
                chunk_spans = list(self._places(chunk, documents.get(chunk), source))
                unplaced += not chunk_spans
                for start, end in chunk_spans:
                    places.setdefault(source, []).append((start, end, chunk))
        for ident, span in spans.items():
            start, end = self._counted(span)
            self.chunks[ident] = tuple(
                dict.fromkeys(
                    chunk
                    for first, last, chunk in places.get(span.doc_id, ())
                    if min(end, last) - max(start, first) >= MIN_SHARE * max(1, min(end - start, last - first))
                )
            ) or (ident,)
        missed = sum(chunks == (ident,) and ident not in self._known for ident, chunks in self.chunks.items())
        mapped = len(
            {chunk for chunks in self.chunks.values() for chunk in chunks} - (self.chunks.keys() - self._known)
        )
        on_chunks = f"spans on chunks: {len(spans) - missed:,} of {len(spans):,} (chunks: {mapped:,})"
        unknown = f"chunks of these documents whose place is unknown: {unplaced:,}"
        READ.info("%s", f"{name}: {on_chunks}; the others count as missed; {unknown}")

    def labels(self, labels: Mapping[Key, Mapping[str, int]]) -> Mapping[Key, Mapping[str, int]]:
        """The labels of chunks; a chunk that is labelled by its own id keeps that label."""
        if not self.chunks:
            return labels
        mapped: dict[Key, dict[str, int]] = {}
        for key, labelled in labels.items():
            of_chunks = mapped.setdefault(key, {})
            for ident, label in labelled.items():
                for chunk in self.chunks.get(ident, (ident,)):
                    of_chunks[chunk] = max(label, of_chunks.get(chunk, label))
            of_chunks |= {ident: label for ident, label in labelled.items() if ident in self._known}
        return mapped

    def _source(self, chunk: str, document: Document | None, sources: set[str]) -> str | None:
        metadata = document.metadata if document is not None else {}
        return next((metadata[name] for name in _SOURCES if metadata.get(name) in sources), source_of(chunk, sources))

    def _places(self, chunk: str, document: Document | None, source: str) -> Iterator[tuple[int, int]]:
        """Where a chunk stands in its document: by its columns, by its id, or wherever its text occurs."""
        text = self._texts.get(source)
        metadata = document.metadata if document is not None else {}
        start, end = (next((metadata[name] for name in names if name in metadata), "") for names in (_STARTS, _ENDS))
        if chunk == source:
            yield self._counted(DocumentSpan(source, 0, _REST))
        elif document is not None and (first := position_of(start)) is not None:
            last = position_of(end)
            yield self._counted(DocumentSpan(source, first, first + len(document.text) if last is None else last))
        elif (span := span_of(chunk)) is not None and span.doc_id == source:
            yield self._counted(span)
        elif text is not None and document is not None:
            yield from text.places(document.text)

    def _counted(self, span: DocumentSpan) -> tuple[int, int]:
        text = self._texts.get(span.doc_id)
        return (span.start, span.end) if text is None else (text.counted(span.start), text.counted(span.end))


class _Text:
    """A document's letters and digits, and how many of them stand before each position."""

    def __init__(self, text: str) -> None:
        self._bare = _bare(text)
        self._before = list(accumulate(map(str.isalnum, text), initial=0))

    def counted(self, position: int) -> int:
        return self._before[min(position, len(self._before) - 1)]

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        bare, at = _bare(text), -1
        while bare and (at := self._bare.find(bare, at + 1)) >= 0:
            yield at, at + len(bare)


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text))
