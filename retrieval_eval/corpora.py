"""Corpora: the documents of a pool, out of files that are too large to be loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from urllib.parse import urlsplit

from judges.types import Document
from retrieval_eval import irds
from retrieval_eval.data.row_filter import Only
from retrieval_eval.data.rows import Row, known_format
from retrieval_eval.data.tables import read_rows
from retrieval_eval.plain_pairs import has_header, read_pairs

ALIASES: Mapping[str, Sequence[str]] = {
    "did": ("_id", "pid", "docid", "doc_id", "document_id", "id"),
    "document": ("segment", "passage", "contents", "text", "body", "document_text"),
}
"""Spellings of the id and the text, best first; ours, those of BEIR, of MS MARCO's two versions, of Pyserini."""


def fetch_documents(sources: Iterable[Path | str], wanted: Set[str]) -> dict[str, Document]:
    """The documents with the wanted ids, streamed out of corpora; reading stops when all are found.

    CSV, TSV, JSONL and Parquet, plain or gzip, with an id and a text as ``ALIASES`` lists; ``.tsv`` without a header
    and files of any other name as ``id<TAB>text``; ``irds:NAME`` for a dataset of ir_datasets. Every other column that
    has a value becomes metadata, and ``website`` is the host of ``url`` where the corpus does not say.

    Returns:
        Documents by doc_id, in the order of the corpora. What no corpus has is not there. Of two documents with one id
        the first counts.

    Raises:
        DataError: a file cannot be read, lacks the columns, or has a line that is broken, as far as it was read: the
            lines of unwanted documents only have to end as they should.
        MissingExtraError: ir_datasets is named and not installed.
    """
    found: dict[str, Document] = {}
    for source in sources:
        left = wanted - found.keys()
        if not left:
            break
        for row in _rows(source, left):
            document = document_of(row)
            if document.doc_id in left:
                found.setdefault(document.doc_id, document)
            if len(found) == len(wanted):
                break
    return found


def read_corpus(sources: Iterable[Path | str]) -> Iterator[Document]:
    """Stream all documents of corpora, in the forms that ``fetch_documents`` reads.

    Raises:
        DataError: as there, for every line.
        MissingExtraError: as there.
    """
    for source in sources:
        yield from map(document_of, _rows(source, None))


def document_of(row: Row) -> Document:
    """The document of a row with ``did`` and ``document``."""
    metadata = {
        name: text
        for name, cell in row.values.items()
        if name not in ALIASES and cell not in ([], {}) and (text := row.text(name))
    }
    if (host := _host(metadata.get("url", ""))) and "website" not in metadata:
        metadata["website"] = host
    return Document(row.identifier("did"), row.text("document"), metadata)


def _rows(source: Path | str, wanted: Set[str] | None) -> Iterator[Row]:
    """The wanted rows, all where nothing is said."""
    if (name := irds.dataset_name(source)) is not None:
        return irds.document_rows(name, wanted, ALIASES)
    path = Path(source)
    kind = known_format(path)
    if kind is None or (kind == "tsv" and not has_header(path, ALIASES)):
        pairs = read_pairs(path, "did", "document")
        return pairs if wanted is None else (row for row in pairs if row.values["did"] in wanted)
    return read_rows(path, ("did", "document"), ALIASES, None if wanted is None else Only("did", wanted))


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:  # not an address
        return ""
