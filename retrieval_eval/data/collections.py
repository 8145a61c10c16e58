"""Test collections: topics, and the documents of corpora that are too large to be loaded.

Both stand in tables, in two columns without a header, or in a data set of ir_datasets, named ``irds:NAME``, which
downloads what it does not have; topics also in TREC's SGML, whose fields need no end, and XML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from html import unescape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from judges.errors import DataError, InputError, MissingExtraError
from judges.types import Document, Query
from retrieval_eval.data.column_report import KEPT, ColumnsRead
from retrieval_eval.data.conversations import earlier_turns, with_messages, with_turns
from retrieval_eval.data.files import read_lines
from retrieval_eval.data.rows import Cell, Only, Row, known_format
from retrieval_eval.data.tables import read_rows
from retrieval_eval.data.vocabulary import TOPIC_NAMES, Columns, canonical_names, names_of

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


_IRDS = "irds:"


def irds_name(source: Path | str) -> str | None:
    """The dataset's name, or ``None`` where a file is named."""
    return str(source).removeprefix(_IRDS) if str(source).startswith(_IRDS) else None


def irds_rows(
    name: str,
    part: Literal["queries", "qrels", "docs"],
    aliases: Mapping[str, Sequence[str]],
    wanted: Set[str] | None = None,
) -> Iterator[Row]:
    """Queries, labels or documents of a data set as rows; columns go by the canonical names of ``aliases``.

    Args:
        name: of the data set.
        part: what to read.
        aliases: other spellings of the columns.
        wanted: ids of documents, which are then looked up in the data set's index; all are read without it.

    Raises:
        MissingExtraError: ir_datasets is not installed.
        InputError: there is no such data set, it has no such part, or it cannot be fetched.
    """
    try:
        import ir_datasets
    except ImportError as error:
        raise MissingExtraError("ir-datasets", f"'{_IRDS}{name}'") from error
    try:
        dataset = ir_datasets.load(name)
    except KeyError as error:
        raise InputError(f"{_IRDS}{name}: ir_datasets knows no such dataset; check the name") from error
    if not dataset.has(part):
        raise InputError(f"{_IRDS}{name}: this dataset of ir_datasets has no {part}")
    try:
        some = None if wanted is None else dataset.docs_store().get_many_iter(sorted(wanted))
        for number, record in enumerate(getattr(dataset, f"{part}_iter")() if some is None else some, start=1):
            names = canonical_names(record._fields, aliases)
            cells = {names[field]: _irds_cell(value) for field, value in record._asdict().items()}
            yield Row(Path(_IRDS + name), number, cells)
    except (OSError, RuntimeError) as error:  # what its downloads raise
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{_IRDS}{name}: ir_datasets cannot get it: {first}") from error


def _irds_cell(value: object) -> Cell:
    if value is None or isinstance(value, str | int | float):
        return value
    return [str(part) for part in value] if isinstance(value, Iterable) else str(value)


def read_topics(source: Path | str) -> dict[str, Query]:
    """Read queries by query_id, in the order of the file.

    A table has ``qid`` and ``query``, or ``TOPIC_NAMES``. Other files hold TREC topics if
    they begin with ``<``, else lines ``qid<TAB>query``, as does a ``.tsv`` without a header. ``irds:NAME`` names a
    dataset of ir_datasets. JSONL with a record per run and topic may repeat a query: what the records agree on is kept.

    Raises:
        DataError: the file cannot be read, has no topic, an id or text is empty, or an id has two texts. Names file,
            line and value.
        MissingExtraError: ir_datasets is named and not installed.
    """
    topics: dict[str, Query] = {}
    rows: dict[str, Row] = {}
    reading = ColumnsRead(TOPIC_NAMES, kept=KEPT)
    for row in reading.through(topic_rows(source)):
        query_id, text = row.identifier("qid").strip(), row.text("query").strip()
        if not text:
            raise row.error(f"the text of query {query_id!r} is empty")
        columns = _columns(row)
        known, _ = topics.setdefault(query_id, Query.of(query_id, text, columns)), rows.setdefault(query_id, row)
        if known.text != text:
            raise row.error(f"query {query_id!r} has another text further up", text)
        if known.columns != columns:
            topics[query_id] = Query.of(query_id, text, dict(known.columns.items() & columns.items()))
    reading.say(f"queries: {len(topics):,}")
    return with_turns(topics, earlier_turns(rows))


def topic_rows(source: Path | str, columns: Columns | None = None, *, ids: bool = True) -> Iterator[Row]:
    """The records with ``qid`` and ``query``, at least one, otherwise as they stand there; see ``read_topics``.

    Args:
        source: the file or data set.
        columns: which columns of a table the user says they are, see ``canonical_names``.
        ids: whether a table must have ``qid``.
    """
    rows = _topic_rows(source, columns, ids=ids)
    first = next(rows, None)
    if first is None:
        raise DataError(source, "holds no topic")
    yield with_messages(first)
    yield from map(with_messages, rows)


def _topic_rows(source: Path | str, columns: Columns | None, *, ids: bool) -> Iterator[Row]:
    path = Path(source)
    plain = irds_name(source) is None and known_format(path) is None
    if plain and next((line for _, line in read_lines(path) if not line.isspace()), "").lstrip().startswith("<"):
        return _read_markup(path)
    return _rows(source, "queries", ("qid", "query"), TOPIC_NAMES, said=columns, ids=ids)


def _columns(row: Row) -> dict[str, str]:
    plain = (name for name, cell in row.values.items() if not isinstance(cell, list | dict))
    return {name: text for name in plain if name not in {"qid", "query"} and (text := row.text(name))}


_IDS = ("num", "number", "id", "qid")
_TEXTS = ("title", "query", "question", "text", "description", "")
_NAMES = {"desc": "description", "narr": "narrative"}
_LABELS = {"num": "Number:", "title": "Topic:", "description": "Description:", "narrative": "Narrative:"}
"""What SGML topics write before a field's value."""

_START = re.compile(r"<top(?:ic)?[\s>]", re.IGNORECASE)
_SGML_TOPIC = re.compile(r"<top(?:ic)?\b[^>]*>(.*?)</top(?:ic)?>", re.DOTALL | re.IGNORECASE)
_SGML_FIELD = re.compile(r"<([A-Za-z][\w-]*)[^>]*>([^<]*)")
_XML_HEAD = re.compile(r"\A\s*<\?xml[^>]*\?>|<!DOCTYPE[^>\[]*>", re.IGNORECASE)


def _read_markup(path: Path) -> Iterator[Row]:
    """Every topic as a row with ``qid``, ``query`` and its other fields.

    Raises:
        DataError: the file is neither SGML nor XML topics, or declares entities of its own.
    """
    text = "".join(line for _, line in read_lines(path, whole=True)).replace("\r\n", "\n")
    if "<!ENTITY" in text.upper():
        raise DataError(path, "topics that declare entities are not read")
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

    body = _XML_HEAD.sub("", text)  # some files have many roots and some have one: here all have one more
    cut = text.count("\n") - body.count("\n")
    try:
        root = ET.fromstring(f"<all>{body}</all>")  # noqa: S314 - entities were refused, expat bounds the rest
    except ET.ParseError as error:
        problem = f"neither TREC's SGML topics (<num> without an end) nor XML: {error}"
        raise DataError(path, problem, line=error.position[0] + cut) from error
    for topic in root.iter():
        if topic.tag.lower() in {"top", "topic"}:
            yield _xml_fields(topic)


def _xml_fields(topic: Element) -> dict[str, str]:
    fields = dict(topic.attrib)
    _add_field(fields, "", topic.text or "")
    for field in topic:
        _add_field(fields, field.tag, "".join(field.itertext()))
    return fields


def _add_field(fields: dict[str, str], tag: str, text: str) -> None:
    """Keep a field on one line; several of one name stand below each other."""
    name = _NAMES.get(tag.lower(), tag.lower())
    value = " ".join(text.split())
    if (label := _LABELS.get(name, "")) and value.lower().startswith(label.lower()):
        value = value[len(label) :].lstrip()
    if value:
        fields[name] = f"{fields[name]}\n{value}" if name in fields else value


def _topic_row(path: Path, line: int, fields: Mapping[str, str]) -> Row:
    ident = next((name for name in _IDS if name in fields), "")
    text = next((name for name in _TEXTS if name in fields), "")
    others = {name: value for name, value in fields.items() if name not in {ident, text, ""}}
    return Row(path, line, {**others, "qid": fields.get(ident, "") if ident else "", "query": fields.get(text, "")})


_DOCUMENT_NAMES = names_of("did", "document")


def fetch_documents(sources: Iterable[Path | str], wanted: Set[str]) -> dict[str, Document]:
    """The documents with the wanted ids, streamed out of corpora; reading stops when all are found.

    CSV, TSV, JSONL and Parquet, plain or gzip, with an id and a text as ``NAMES`` lists; ``.tsv`` without a
    header and files of any other name as ``id<TAB>text``; ``irds:NAME`` for a dataset of ir_datasets. Every other
    column that has a value becomes metadata, and ``website`` is the host of ``url`` where the corpus does not say.

    Returns:
        Documents by doc_id, in the order of the corpora. What no corpus has is not there. Of two documents with one id
        the first counts.

    Raises:
        DataError: a file cannot be read, lacks the columns, or has a line that is broken, as far as it was read: the
            lines of unwanted documents only have to end as they should.
        MissingExtraError: ir_datasets is named and not installed.
    """
    found: dict[str, Document] = {}
    reading = ColumnsRead({*_DOCUMENT_NAMES, "title"}, kept=KEPT)
    for source in sources:
        left = wanted - found.keys()
        if not left:
            break
        for row in _rows(source, "docs", ("did", "document"), _DOCUMENT_NAMES, wanted=left):
            reading.add(row)
            document = document_of(row)
            if document.doc_id in left:
                found.setdefault(document.doc_id, document)
            if len(found) == len(wanted):
                break
    reading.say(f"documents: {len(found):,} of {len(wanted):,} that are needed")
    return found


def read_corpus(sources: Iterable[Path | str]) -> Iterator[Document]:
    """Stream all documents of corpora, in the forms that ``fetch_documents`` reads.

    Raises:
        DataError: as there, for every line.
        MissingExtraError: as there.
    """
    reading, number = ColumnsRead({*_DOCUMENT_NAMES, "title"}, kept=KEPT), 0
    for source in sources:
        for row in reading.through(_rows(source, "docs", ("did", "document"), _DOCUMENT_NAMES)):
            number += 1
            yield document_of(row)
    if number:  # a folder of files is said by who reads those
        reading.say(f"documents: {number:,}")


def document_of(row: Row) -> Document:
    """The document of a row with ``did`` and ``document``."""
    metadata = {
        name: text
        for name, cell in row.values.items()
        if name not in _DOCUMENT_NAMES and cell not in ([], {}) and (text := row.text(name))
    }
    if (host := _host(metadata.get("url", ""))) and "website" not in metadata:
        metadata["website"] = host
    return Document(row.identifier("did"), row.text("document"), metadata)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:  # not an address
        return ""


def _rows(
    source: Path | str,
    part: Literal["queries", "docs"],
    columns: tuple[str, str],
    aliases: Mapping[str, Sequence[str]],
    *,
    wanted: Set[str] | None = None,
    said: Columns | None = None,
    ids: bool = True,
) -> Iterator[Row]:
    """Rows with an id and a text, of a table, of lines ``id<TAB>text`` or of ir_datasets; the wanted ones alone."""
    if (name := irds_name(source)) is not None:
        return irds_rows(name, part, aliases, wanted)
    path, ident = Path(source), columns[0]
    kind = known_format(path)
    headed = kind in {None, "tsv"} and _has_header(path, aliases)
    if kind is None or (kind == "tsv" and not headed):
        pairs = islice(_read_pairs(path, columns), int(headed), None)
        return pairs if wanted is None else (row for row in pairs if row.values[ident] in wanted)
    required = columns if ids else columns[1:]
    return read_rows(path, required, aliases, None if wanted is None else Only(ident, wanted), said)


def _has_header(path: Path, aliases: Mapping[str, Sequence[str]]) -> bool:
    """Whether the first line of a tab-separated file holds the name of a column, in any spelling of it."""
    names = {name for canonical, spellings in aliases.items() for name in (canonical, *spellings)}
    first = next((line for _, line in read_lines(path)), "")
    return any(field.strip() in names for field in first.split("\t"))


def _read_pairs(path: Path, columns: tuple[str, str]) -> Iterator[Row]:
    """The lines of a file without a header. The text stands as it is: quotes mean nothing."""
    for number, line in read_lines(path):
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) == 2 and not line.isspace():
            yield Row(path, number, dict(zip(columns, fields, strict=True)))
        elif not line.isspace():
            problem = f"without a header, a line is '{'<TAB>'.join(columns)}'; this one has {len(fields)} fields"
            raise DataError(path, problem, line=number, value=line.strip())
