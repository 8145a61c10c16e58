"""Readers of test collections: topics, and documents of corpora that are too large for memory.

Topics and documents are read from tables, from two columns without a header, or from a data set of ir_datasets, named
``irds:NAME``, which ir_datasets downloads if needed. Topics are also read from XML and from TREC's SGML, whose fields
need no closing tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from html import unescape
from itertools import islice
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec.structs import replace

from judges.errors import DataError, InputError, MissingExtraError
from judges.types import Document, Query
from retrieval_eval.data.conversations import earlier_turns, with_messages, with_turns
from retrieval_eval.data.files import first_line, read_lines
from retrieval_eval.data.rows import Cell, Only, Row, Rows, known_format
from retrieval_eval.data.table_spec import Columns, TableSpec, spellings

TOPICS: Final = TableSpec(
    ("qid", "query", "reference", "messages", "conversation", "turn"),
    ("qid", "query"),
    # A title or a text can only be the query's.
    {"query": ("text", "title", "question", "topic", "query_text", "narrative", *spellings("query"))},
    kept=True,
)
CORPUS: Final = TableSpec(("did", "document"), ("did", "document"), kept=True)
_IRDS = "irds:"


def irds_name(source: Path | str) -> str | None:
    """The name in ``irds:NAME``, which denotes a data set of ir_datasets; ``None`` if ``source`` is a file."""
    return str(source).removeprefix(_IRDS) if str(source).startswith(_IRDS) else None


def irds_rows(
    name: str, part: Literal["queries", "qrels", "docs"], spec: TableSpec, wanted: Set[str] | None = None
) -> Iterator[Row]:
    """Stream queries, labels or documents of an ir_datasets data set; ``wanted`` selects documents by id."""
    try:
        import ir_datasets
    except ImportError as error:
        raise MissingExtraError("ir-datasets", f"'{_IRDS}{name}'") from error
    try:
        dataset = ir_datasets.load(name)
    except KeyError as error:
        raise InputError(f"{_IRDS}{name}: ir_datasets knows no such dataset; check the name") from error
    if not dataset.has(part):
        raise InputError(
            f"{_IRDS}{name}: this dataset of ir_datasets has no {part}; name a dataset that has them, or a file of them"
        )
    try:
        documents = None if wanted is None else dataset.docs_store().get_many_iter(sorted(wanted))
        for number, record in enumerate(
            getattr(dataset, f"{part}_iter")() if documents is None else documents, start=1
        ):
            names = spec.named(record._fields)
            yield Row(
                Path(_IRDS + name), number, {names[key]: _irds_cell(each) for key, each in record._asdict().items()}
            )
    except (OSError, RuntimeError) as error:  # raised by its downloads
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{_IRDS}{name}: ir_datasets cannot download or read it: {first}") from error


def _irds_cell(value: object) -> Cell:
    if value is None or isinstance(value, str | int | float):
        return value
    return [str(part) for part in value] if isinstance(value, Iterable) else str(value)


def read_topics(source: Path | str) -> dict[str, Query]:
    """Read queries by query_id, in the order of the file.

    A table has the columns ``qid`` and ``query``, or other spellings of them. Other files contain TREC topics if they
    begin with ``<``, else lines ``qid<TAB>query``, like a ``.tsv`` without a header. ``irds:NAME`` is a data set of
    ir_datasets. A JSONL file with one record per run and topic may repeat a query; of such a query, only the columns
    that have the same value in all its records are used.
    """
    topics: dict[str, Query] = {}
    rows: dict[str, Row] = {}
    reading = TOPICS.report()
    for row in reading.through(topic_rows(source)):
        query_id, text = row.identifier("qid").strip(), row.text("query").strip()
        if not text:
            raise row.error(f"the text of query {query_id!r} is empty")
        columns = row.others(
            {"qid", "query", *(name for name, cell in row.values.items() if isinstance(cell, list | dict))}
        )
        known, _ = topics.setdefault(query_id, Query.of(query_id, text, columns)), rows.setdefault(query_id, row)
        if known.text != text:
            raise row.error(f"query {query_id!r} has another text further up; give one of them another id", text)
        if known.columns != columns:
            topics[query_id] = Query.of(query_id, text, dict(known.columns.items() & columns.items()))
    reading.say(f"queries: {len(topics):,}")
    return with_turns(topics, earlier_turns(rows))


def topic_rows(source: Path | str | Rows, columns: Columns | None = None, *, ids: bool = True) -> Iterator[Row]:
    """Stream the rows of a source of queries, see ``read_topics``; without ``ids``, a table may lack ``qid``."""
    row = None
    for row in _topic_rows(source, columns, ids=ids):
        yield with_messages(row)
    if row is None:
        raise DataError(str(source), "contains no query; add at least one")


def _topic_rows(source: Path | str | Rows, columns: Columns | None, *, ids: bool) -> Iterator[Row]:
    spec = TOPICS if ids else replace(TOPICS, needed=("query",))
    if isinstance(source, Rows):
        return spec.rows(source, columns)
    path = Path(source)
    is_text_file = irds_name(source) is None and known_format(path) is None
    if is_text_file and first_line(path).lstrip().startswith("<"):
        return _read_markup(path)
    return _rows(source, "queries", spec, columns)


_IDS = ("num", "number", "id", "qid")
_TEXTS = ("title", "query", "question", "text", "description", "")
_NAMES = {"desc": "description", "narr": "narrative"}
_LABELS = {"num": "Number:", "title": "Topic:", "description": "Description:", "narrative": "Narrative:"}
"""Words that SGML topics write before the value of a field; they are removed from the value."""

_START = re.compile(r"<top(?:ic)?[\s>]", re.IGNORECASE)
_SGML_TOPIC = re.compile(r"<top(?:ic)?\b[^>]*>(.*?)</top(?:ic)?>", re.DOTALL | re.IGNORECASE)
_SGML_FIELD = re.compile(r"<([A-Za-z][\w-]*)[^>]*>([^<]*)")
_XML_HEAD = re.compile(r"\A\s*<\?xml[^>]*\?>|<!DOCTYPE[^>\[]*>", re.IGNORECASE)


def _read_markup(path: Path) -> Iterator[Row]:
    """Yields each topic of an SGML or XML file as a row with ``qid``, ``query`` and the topic's other fields."""
    text = "".join(line for _, line in read_lines(path, whole=True)).replace("\r\n", "\n")
    if "<!ENTITY" in text.upper():
        raise DataError(path, "topics may not declare XML entities; remove the declarations")
    lines = [text.count("\n", 0, start.start()) + 1 for start in _START.finditer(text)]
    lower = text.lower()
    topics = _sgml(text) if "<num>" in lower and "</num>" not in lower else _xml(path, text)
    for number, fields in enumerate(topics):
        yield _topic_row(path, lines[number] if number < len(lines) else 1, fields)


def _sgml(text: str) -> Iterator[dict[str, str]]:
    for topic in _SGML_TOPIC.finditer(text):
        fields: dict[str, str] = {}
        for name, value in _SGML_FIELD.findall(topic[1]):
            _add_field(fields, name, unescape(value))
        yield fields


def _xml(path: Path, text: str) -> Iterator[dict[str, str]]:
    from xml.etree import ElementTree as ET

    body = _XML_HEAD.sub("", text)  # some files have several roots, so one is added around them
    removed_lines = text.count("\n") - body.count("\n")
    try:
        root = ET.fromstring(f"<all>{body}</all>")  # noqa: S314 - entities were refused, expat limits the rest
    except ET.ParseError as error:
        problem = f"neither TREC's SGML topics (<num> without an end) nor XML: {error}"
        raise DataError(path, problem, line=error.position[0] + removed_lines) from error
    for topic in root.iter():
        if topic.tag.lower() in {"top", "topic"}:
            fields = dict(topic.attrib)
            _add_field(fields, "", topic.text or "")
            for field in topic:
                _add_field(fields, field.tag, "".join(field.itertext()))
            yield fields


def _add_field(fields: dict[str, str], tag: str, text: str) -> None:
    """Add the text of a topic's field as one line; if a field is repeated, line breaks separate its texts."""
    name = _NAMES.get(tag.lower(), tag.lower())
    value = " ".join(text.split())
    if (label := _LABELS.get(name, "")) and value.lower().startswith(label.lower()):
        value = value[len(label) :].lstrip()
    if value:
        fields[name] = f"{fields[name]}\n{value}" if name in fields else value


def _topic_row(path: Path, line: int, fields: Mapping[str, str]) -> Row:
    id_field = next((name for name in _IDS if name in fields), "")
    text_field = next((name for name in _TEXTS if name in fields), "")
    others = {name: value for name, value in fields.items() if name not in {id_field, text_field, ""}}
    return Row(
        path, line, {**others, "qid": fields.get(id_field, "") if id_field else "", "query": fields.get(text_field, "")}
    )


def fetch_documents(sources: Iterable[Path | str], wanted: Set[str]) -> dict[str, Document]:
    """Look up documents by id, streaming the corpora; stops once all wanted documents are found.

    Corpora are CSV, TSV, JSONL and Parquet, plain or gzip, with columns for id and text, whose names are listed in
    ``VOCABULARY``; a ``.tsv`` without a header and files with other extensions contain ``id<TAB>text``; ``irds:NAME``
    is a data set of ir_datasets. Every other non-empty column becomes metadata; ``website`` is the host of ``url``
    unless the corpus has that column. The documents are returned in the order of the corpora; if an id is repeated, its
    first document is used.
    """
    documents: dict[str, Document] = {}
    reading = CORPUS.report("title")
    for source in sources:
        missing = wanted - documents.keys()
        if not missing:
            break
        for row in _rows(source, "docs", CORPUS, wanted=missing):
            reading.add(row)
            document = document_of(row)
            if document.doc_id in missing:
                documents.setdefault(document.doc_id, document)
            if len(documents) == len(wanted):
                break
    reading.say(f"documents: {len(documents):,} of {len(wanted):,} that are needed")
    return documents


def read_corpus(sources: Iterable[Path | str]) -> Iterator[Document]:
    reading, number = CORPUS.report("title"), 0
    for source in sources:
        for row in reading.through(_rows(source, "docs", CORPUS)):
            number += 1
            yield document_of(row)
    if number:  # reading a folder of documents is reported elsewhere
        reading.say(f"documents: {number:,}")


def document_of(row: Row) -> Document:
    """The document in a row with the columns ``did`` and ``document``; other columns become metadata."""
    metadata = row.others({*CORPUS.columns, *(name for name, cell in row.values.items() if cell in ([], {}))})
    with suppress(ValueError):  # not a URL
        if host := urlsplit(metadata.get("url", "")).hostname:
            metadata.setdefault("website", host)
    return Document(row.identifier("did"), row.text("document"), metadata)


def _rows(
    source: Path | str,
    part: Literal["queries", "docs"],
    spec: TableSpec,
    columns: Columns | None = None,
    wanted: Set[str] | None = None,
) -> Iterator[Row]:
    """Stream rows with id and text from a table, ``id<TAB>text`` lines or ir_datasets; ``wanted`` selects ids."""
    if (name := irds_name(source)) is not None:
        return irds_rows(name, part, spec, wanted)
    path, pair = Path(source), spec.columns[:2]
    kind = known_format(path)
    spelt = {name for column in spec.columns for name in (column, *spec.spellings(column))}
    has_header = kind in {None, "tsv"} and any(field.strip() in spelt for field in first_line(path).split("\t"))
    if kind is None or (kind == "tsv" and not has_header):
        pairs = islice(_read_pairs(path, pair), int(has_header), None)
        return pairs if wanted is None else (row for row in pairs if row.values[pair[0]] in wanted)
    return spec.rows(path, columns, None if wanted is None else Only(pair[0], wanted))


def _read_pairs(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of an ``id<TAB>text`` file without a header; quotes in the text have no special meaning."""
    for number, line in read_lines(path):
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) == 2 and not line.isspace():
            yield Row(path, number, dict(zip(columns, fields, strict=True)))
        elif not line.isspace():
            problem = f"without a header, a line is '{'<TAB>'.join(columns)}'; this one has {len(fields)} fields"
            raise DataError(path, problem, line=number, value=line.strip())
