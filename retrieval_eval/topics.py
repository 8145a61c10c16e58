"""Topics, the queries of a collection: tables, two columns without a header, TREC's SGML and XML, ir_datasets.

Of a topic with several fields the title is the query; the others are metadata that prompts can use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from judges.errors import DataError
from judges.types import Query
from retrieval_eval import irds
from retrieval_eval.data.files import read_lines
from retrieval_eval.data.rows import Row, known_format
from retrieval_eval.data.tables import read_rows
from retrieval_eval.plain_pairs import has_header, read_pairs
from retrieval_eval.topic_markup import read_markup

ALIASES: Mapping[str, Sequence[str]] = {
    "qid": ("query_id", "_id", "topic_id", "narrative_id", "question_id", "number", "id"),
    "query": ("text", "title", "question", "topic", "query_text", "narrative"),
}
"""Other spellings of the columns and keys, best first."""


def read_topics(source: Path | str) -> dict[str, Query]:
    """Read queries by query_id, in the order of the file.

    A table (CSV, TSV, JSONL, Parquet) has ``qid`` and ``query``, or ``ALIASES``. Other files hold TREC topics if they
    begin with ``<``, else lines ``qid<TAB>query``, as does a ``.tsv`` without a header. ``irds:NAME`` names a dataset
    of ir_datasets. JSONL with a record per run and topic may repeat a query: what the records agree on is kept.

    Raises:
        DataError: the file cannot be read, has no topic, an id or text is empty, or an id has two texts. Names file,
            line and value.
        MissingExtraError: ir_datasets is named and not installed.
    """
    topics: dict[str, Query] = {}
    for row in topic_rows(source):
        query_id, text = row.identifier("qid").strip(), row.text("query").strip()
        if not text:
            raise row.error(f"the text of query {query_id!r} is empty")
        metadata = _metadata(row)
        known = topics.setdefault(query_id, Query(query_id, text, metadata))
        if known.text != text:
            raise row.error(f"query {query_id!r} has another text further up", text)
        if known.metadata != metadata:
            topics[query_id] = Query(query_id, text, dict(known.metadata.items() & metadata.items()))
    return topics


def topic_rows(source: Path | str) -> Iterator[Row]:
    """The records with ``qid`` and ``query``, at least one, otherwise as they stand there; see ``read_topics``."""
    rows = _rows(source)
    first = next(rows, None)
    if first is None:
        raise DataError(source, "holds no topic")
    yield first
    yield from rows


def _rows(source: Path | str) -> Iterator[Row]:
    if (name := irds.dataset_name(source)) is not None:
        return irds.topic_rows(name, ALIASES)
    path = Path(source)
    kind = known_format(path)
    if kind is None:
        marked_up = next((line for _, line in read_lines(path) if not line.isspace()), "").lstrip().startswith("<")
        return read_markup(path) if marked_up else islice(_pairs(path), int(has_header(path, ALIASES)), None)
    if kind == "tsv" and not has_header(path, ALIASES):
        return _pairs(path)
    return read_rows(path, ("qid", "query"), ALIASES)


def _pairs(path: Path) -> Iterator[Row]:
    return read_pairs(path, "qid", "query")


def _metadata(row: Row) -> dict[str, str]:
    plain = (name for name, cell in row.values.items() if not isinstance(cell, list | dict))
    return {name: text for name in plain if name not in {"qid", "query"} and (text := row.text(name))}
