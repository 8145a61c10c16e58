"""Reads and writes test banks: JSON lines (also the Rubric-Grading Workbench's), YAML, CSV, TSV and Parquet.

A record is one item (``qid, question`` or ``qid, nugget``, and optional columns of ``COLUMNS``) or one query with its
``items``, as in the workbench's bank files (001, Figures 2 and 3) and in YAML. Unknown columns become metadata. Invalid
values raise an error.

``.jsonl`` and YAML files are written by query in the workbench's format; the workbench can read them and ignores the
keys that it does not know. Tables have one row per item and do not store the metadata of queries.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml
from msgspec.structs import replace

from judges.errors import DataError
from judges.sections import UniqueKeys, yaml_problem
from retrieval_eval.data.files import open_replacing, read_lines, write_json_lines
from retrieval_eval.data.rows import Cell, Row, cell_text, table_format
from retrieval_eval.data.table_spec import TableSpec, spellings
from retrieval_eval.data.tables import read_rows, write_rows
from retrieval_eval.exam.items import (
    FALSE_WORDS,
    ITEM_TYPES,
    KINDS,
    TRUE_WORDS,
    Bank,
    Item,
    ItemKind,
    ItemType,
    QueryInfo,
    stale_id,
)

Queries: TypeAlias = dict[tuple[str, str | None], QueryInfo]

BANK: Final = TableSpec(
    ("item", "question", "nugget", "answers", "facet", "qid", "query"),
    words={"answers": ("gold_answers", "answer", *spellings("reference"))},
    kept=True,
)
COLUMNS = (
    *("qid", "query", "facet", "item", "type", "text", "kind", "answers", "choices"),
    *("weight", "secret", "retired", "replaces", "metadata"),
)
"""Column names of a test bank in a table format (CSV, TSV, Parquet)."""
_OF_QUERY = frozenset({"qid", "query", "facet", "items", "nuggets", "type"})
_OF_ITEM = frozenset({*COLUMNS, "question", "nugget"})
_YAML: Final = (".yaml", ".yml")
_TRUE, _FALSE = frozenset({"true", "yes", "1"}), frozenset({"", "false", "no", "0"})


def read_bank(path: Path | str) -> Bank:
    """Read a test bank.

    An item's id may be the hash of a different text, because someone edited the text in place. Such an item gets a new
    id by its present text, and ``replaces`` holds the old id. Gold answers are a list, or one cell with ``|`` between
    the answers. Choices are written the same way and lettered from A, or are a mapping from letter to text. Items with
    choices are multiple choice, and questions whose gold answers are true, false, yes or no are true/false, unless the
    column ``kind`` is set.
    """
    path = Path(path)
    items: dict[str, Item] = {}
    queries: Queries = {}
    reading = BANK.report(*_OF_ITEM, *_OF_QUERY)
    for row in BANK.renamed(_yaml_rows(path) if path.name.endswith(_YAML) else read_rows(path)):
        reading.add(row)
        for item, entry in _items(row, queries):
            if item.item_id in items:
                raise entry.error("an earlier item of the bank has the same id", item.item_id)
            items[item.item_id] = item
    reading.say(f"items: {len(items):,}, queries: {len({query_id for query_id, _ in queries}):,}")
    return Bank(tuple(items.values()), queries)


def new_item(
    query_id: str,
    text: str,
    *,
    item_type: ItemType = "question",
    facet_id: str | None = None,
    answers: Sequence[str] = (),
    weight: float = 1.0,
    secret: bool = False,
) -> Item:
    """Make an item of a test bank as if it came from a file; its kind is inferred from its gold answers.

    Raises:
        DataError: the text is empty, or the item is invalid.
    """
    values: dict[str, Any] = {"qid": query_id, "facet": facet_id, "type": item_type, "text": text}
    values |= {"answers": list(answers), "weight": weight, "secret": str(secret).lower()}
    try:
        ((item, _),) = _items(Row(Path(), 0, values), {})
    except DataError as error:
        raise DataError("the new item", error.problem, value=error.value) from error
    return item


def write_bank(path: Path | str, bank: Bank, *, secret: bool = False) -> int:
    """Write a test bank in the format that the file's extension names; ``read_bank`` reads back an equal bank.

    Secret items are written only if ``secret`` is true. Returns the number of items left out.
    """
    path = Path(path)
    shown = bank if secret else bank.without_secrets()
    if path.name.endswith(_YAML):
        with open_replacing(path) as file:
            file.write(yaml.safe_dump(list(_by_query(shown)), sort_keys=False, allow_unicode=True, width=120).encode())
    elif table_format(path) == "jsonl":
        write_json_lines(path, _by_query(shown))
    else:
        write_rows(path, COLUMNS, [_row(item, shown) for item in shown.items])
    return len(bank.items) - len(shown.items)


class _TextDates(UniqueKeys):
    """A YAML loader that reads dates as text."""


_TextDates.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _yaml_rows(path: Path) -> Iterator[Row]:
    text = "".join(line for _, line in read_lines(path, whole=True))
    try:
        loader = _TextDates(text)
        node = loader.get_single_node()
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            raise DataError(path, "is not a list; write a YAML list of items, each with qid and question or nugget")
        for entry in node.value:
            line = entry.start_mark.line + 1
            if not isinstance(entry, yaml.MappingNode):
                raise DataError(path, "the entry has no keys; write it with keys such as qid and question", line=line)
            yield Row(path, line, loader.construct_document(entry))
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else None
        raise DataError(path, yaml_problem(problem), line=line) from problem
    except (yaml.YAMLError, ValueError) as problem:
        raise DataError(path, f"is not YAML: {' '.join(str(problem).split())}; correct it") from problem
    except RecursionError as problem:
        raise DataError(path, "the YAML is nested too deeply to be read; write a plain list of items") from problem


def _text(row: Row, name: str) -> str:
    return row.text(name).strip()


def _items(row: Row, queries: Queries) -> Iterator[tuple[Item, Row]]:
    query_id, facet, text = _text(row, "qid"), _text(row, "facet") or None, _text(row, "query")
    if not query_id:
        raise row.error("the item names no query; give it the query's id as 'qid'")
    nested: Any = row.values.get("items")
    if nested is None:
        _add_query(queries, (query_id, facet), text)
        yield _item(row, query_id, facet), row
        return
    if not isinstance(nested, list):
        raise row.error("'items' must be a list of questions or nuggets", cell_text(nested))
    _add_query(queries, (query_id, facet), text, _metadata(row, _OF_QUERY))
    for entry in nested:
        fields = entry if isinstance(entry, Mapping) else {"text": entry}
        inner = next(BANK.renamed([replace(row, values=fields)]))
        inner = replace(inner, values={"type": _text(row, "type"), **inner.values})
        if (other := _text(inner, "qid") or query_id) != query_id:
            raise row.error(
                f"an item listed under query {query_id!r} names another query; move it to that query", other
            )
        item = _item(inner, query_id, _text(inner, "facet") or facet)
        _add_query(queries, (query_id, item.facet_id), text)
        yield item, inner


def _add_query(
    queries: Queries, key: tuple[str, str | None], text: str, metadata: Mapping[str, Any] | None = None
) -> None:
    known = queries.get(key, QueryInfo())
    queries[key] = QueryInfo(text or known.text, {**known.metadata, **(metadata or {})})


def _item(row: Row, query_id: str, facet: str | None) -> Item:
    item_type, text = _type_and_text(row)
    choices = _choices(row)
    answers = _listed(row, "answers")
    kind = _text(row, "kind") or _inferred_kind(item_type, choices, answers)
    if kind not in KINDS:
        raise row.error(f"the kind of an item must be one of {', '.join(KINDS)}", kind)
    weight = row.number("weight")
    try:
        item = Item(
            query_id=query_id,
            text=text,
            item_type=item_type,
            item_id=_text(row, "item"),
            facet_id=facet,
            answers=tuple(dict.fromkeys(_fitting(kind, answer, choices) for answer in answers)),
            kind=kind,
            choices=choices,
            weight=1.0 if weight is None else weight,
            secret=_flag(row, "secret"),
            retired=_flag(row, "retired"),
            replaces=_text(row, "replaces") or None,
            metadata={**_metadata(row, _OF_ITEM), **_mapping(row, "metadata")},
        )
    except ValueError as error:
        raise row.error(str(error)) from error
    return replace(item, item_id="", replaces=item.item_id) if stale_id(item) else item


def _type_and_text(row: Row) -> tuple[ItemType, str]:
    named = [name for name in ITEM_TYPES if _text(row, name)]
    if len(named) > 1:
        raise row.error("an item is a question or a nugget, not both", _text(row, "nugget"))
    item_type = _text(row, "type") or (named[0] if named else "question")
    if item_type not in ITEM_TYPES:
        raise row.error("the type of an item must be question or nugget", item_type)
    text = _text(row, named[0] if named else "text")
    if not text:
        raise row.error("the item has no text: give it a 'question' or a 'nugget'")
    return item_type, text


def _inferred_kind(item_type: ItemType, choices: Mapping[str, str], answers: tuple[str, ...]) -> ItemKind:
    if choices:
        return "multiple_choice"
    yes_or_no = bool(answers) and {answer.casefold() for answer in answers} <= {"true", "false", "yes", "no"}
    return "true_false" if yes_or_no and item_type == "question" else "free"


def _metadata(row: Row, used: frozenset[str]) -> dict[str, Any]:
    """The record's values in unknown columns, without the workbench's ``info`` and ``test_collection`` if empty."""
    silent: Any = {"info": None, "test_collection": ""}.items()
    return {key: value for key, value in row.values.items() if key not in used and (key, value) not in silent}


def _fitting(kind: ItemKind, answer: str, choices: Mapping[str, str]) -> str:
    """A gold answer in canonical form: true or false for a true/false item, the choice's letter for multiple choice."""
    word = answer.casefold()
    if kind == "true_false":
        return "true" if word in TRUE_WORDS else "false" if word in FALSE_WORDS else answer
    if kind == "multiple_choice" and answer not in choices:
        fitting = (letter for letter, text in choices.items() if word in (letter.casefold(), text.casefold()))
        return next(fitting, answer)
    return answer


def _listed(row: Row, name: str) -> tuple[str, ...]:
    listed = row.listed(name)
    parts = row.text(name).split("|") if listed is None else listed
    return tuple(text for part in parts if (text := cell_text(part).strip()))


def _choices(row: Row) -> dict[str, str]:
    value = row.values.get("choices")
    if isinstance(value, Mapping) or (isinstance(value, str) and value.lstrip().startswith("{")):
        return {str(letter): cell_text(text) for letter, text in _mapping(row, "choices").items()}
    return {chr(ord("A") + place): text for place, text in enumerate(_listed(row, "choices"))}


def _mapping(row: Row, name: str) -> Mapping[str, Any]:
    value: Any = row.values.get(name)
    if value is None or value == "":
        return {}
    mapping = value
    if isinstance(value, str):
        mapping = (row.listed(name) or [None])[0] if value.lstrip().startswith("{") else None
    if not isinstance(mapping, Mapping):
        raise row.error(f"{name!r} must be a JSON object", cell_text(value))
    return mapping


def _flag(row: Row, name: str) -> bool:
    text = _text(row, name).casefold()
    if text not in _TRUE | _FALSE:
        raise row.error(f"{name!r} must be true or false", text)
    return text in _TRUE


def _by_query(bank: Bank) -> Iterator[dict[str, Any]]:
    """Yield one record with all items for each query or subtopic of the bank, in the workbench's format."""
    grouped: dict[tuple[str, str | None], list[Item]] = {key: [] for key in bank.queries}
    for item in bank.items:
        grouped[item.query_id, item.facet_id].append(item)
    for (query_id, facet), items in grouped.items():
        info = bank.queries[query_id, facet]
        yield {
            "query_id": query_id,
            "facet_id": facet,
            "test_collection": "",
            "query_text": info.text,
            "info": None,
            **info.metadata,
            "items": [_entry(item) for item in items],
        }


def _entry(item: Item) -> dict[str, Any]:
    name = item.item_type
    inferred = _inferred_kind(name, item.choices, item.answers)
    optional: dict[str, tuple[Any, Any]] = {
        "kind": (item.kind, inferred),
        "choices": (dict(item.choices), {}),
        "weight": (item.weight, 1.0),
        "secret": (item.secret, False),
        "retired": (item.retired, False),
        "replaces": (item.replaces, None),
    }
    return {
        "query_id": item.query_id,
        "facet_id": item.facet_id,
        "info": None,
        **item.metadata,
        f"{name}_id": item.item_id,
        f"{name}_text": item.text,
        "gold_answers": [item.choices.get(answer, answer) for answer in item.answers] or None,
        **{key: value for key, (value, default) in optional.items() if value != default},
    }


def _row(item: Item, bank: Bank) -> dict[str, Cell]:
    values = (
        *(item.query_id, bank.queries[item.query_id, item.facet_id].text, item.facet_id, item.item_id),
        *(item.item_type, item.text, item.kind, _json(item.answers), _json(item.choices), item.weight),
        *(str(item.secret).lower(), str(item.retired).lower(), item.replaces, _json(item.metadata)),
    )
    return dict(zip(COLUMNS, values, strict=True))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if value else ""
