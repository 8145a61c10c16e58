"""Test banks in files: the workbench's JSON lines, YAML, and tables made by hand (CSV, TSV, JSONL, Parquet).

A record is one item (``qid, question`` or ``qid, nugget``, and what else the columns below say) or one query with its
``items``, as in the workbench's bank files (001, Figures 2 and 3) and in YAML. Unknown columns become metadata.

Writing is by query, in the workbench's own shape, for ``.jsonl`` and YAML; the workbench reads such a file back and
passes over the keys that are ours. Tables have one row an item and no place for what a file said of a query besides its
text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from judges.errors import DataError
from judges.sections import UniqueKeys
from retrieval_eval.data.files import open_replacing, read_lines
from retrieval_eval.data.rows import Cell, cell_text, table_format
from retrieval_eval.data.tables import read_rows, write_rows
from retrieval_eval.exam.items import (
    FALSE_WORDS,
    ITEM_TYPES,
    KINDS,
    TRUE_WORDS,
    Bank,
    Item,
    ItemType,
    Kind,
    QueryInfo,
    stale_id,
)


def read_yaml_records(path: Path) -> Iterator[tuple[Mapping[str, Any], int]]:
    """The mappings of a YAML list and their lines from 1.

    Raises:
        DataError: the file cannot be read, is no YAML, or is not a list of mappings; a key stands twice.
    """
    text = "".join(line for _, line in read_lines(path))
    try:
        loader = _TextDates(text)
        node = loader.get_single_node()
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            raise DataError(path, "is not a YAML list of items or queries")
        for entry in node.value:
            line = entry.start_mark.line + 1
            if not isinstance(entry, yaml.MappingNode):
                raise DataError(path, "the entry is not a mapping with keys such as qid and question", line=line)
            yield loader.construct_document(entry), line
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else None
        raise DataError(path, problem.problem or problem.context or "not YAML", line=line) from problem
    except (yaml.YAMLError, ValueError) as problem:
        raise DataError(path, " ".join(str(problem).split())) from problem
    except RecursionError as problem:
        raise DataError(path, "nested too deeply") from problem


class _TextDates(UniqueKeys):
    """Reads dates as the text they are written in."""


_TextDates.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


ALIASES: Mapping[str, tuple[str, ...]] = {
    "qid": ("query_id",),
    "query": ("query_text",),
    "facet": ("facet_id",),
    "item": ("item_id", "question_id", "nugget_id"),
    "question": ("question_text",),
    "nugget": ("nugget_text",),
    "answers": ("gold_answers", "answer", "gold", "gold_answer"),
}
"""Other spellings of the columns; the second ones are the workbench's."""

_TRUE, _FALSE = frozenset({"true", "yes", "1"}), frozenset({"", "false", "no", "0"})


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file by canonical names, and the error that says where it stands."""

    values: Mapping[str, Any]
    error: Callable[[str, str | None], DataError]

    def text(self, name: str) -> str:
        """A value as text without white space around it; ``""`` where it is absent."""
        return cell_text(self.values.get(name)).strip()

    def inner(self, values: Mapping[str, Any]) -> Record:
        """A record within this one."""
        return Record(canonical(values), self.error)


def canonical(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values by canonical names."""
    names = {alias: name for name, spellings in ALIASES.items() for alias in spellings if name not in values}
    return {names.get(key, key): value for key, value in values.items()}


def record_items(record: Record, queries: dict[tuple[str, str | None], QueryInfo]) -> Iterator[tuple[Item, Record]]:
    """The items of a record, each with the one that its errors name; ``queries`` takes what is said of the query."""
    query_id = record.text("qid")
    if not query_id:
        raise record.error("the query's id (qid) is missing", None)
    facet = record.text("facet") or None
    nested = record.values.get("items")
    if nested is None:
        _add_query(queries, (query_id, facet), record.text("query"), {})
        yield _item(record, query_id, facet), record
        return
    if not isinstance(nested, list):
        raise record.error("'items' is not a list", cell_text(nested))
    kept = {"qid", "query", "facet", "items", "type"}
    _add_query(
        queries,
        (query_id, facet),
        record.text("query"),
        _metadata(record, kept),
    )
    for entry in nested:
        inner = record.inner(entry if isinstance(entry, Mapping) else {"text": entry})
        inner = replace(inner, values={"type": record.text("type"), **inner.values})
        if (own := inner.text("qid") or query_id) != query_id:
            raise record.error(f"an item of query {query_id!r} says that it belongs to another one", own)
        item = _item(inner, query_id, inner.text("facet") or facet)
        _add_query(queries, (query_id, item.facet_id), record.text("query"), {})
        yield item, inner


def _add_query(
    queries: dict[tuple[str, str | None], QueryInfo],
    key: tuple[str, str | None],
    text: str,
    metadata: Mapping[str, Any],
) -> None:
    known = queries.get(key, QueryInfo())
    queries[key] = QueryInfo(text or known.text, {**known.metadata, **metadata})


def _item(record: Record, query_id: str, facet: str | None) -> Item:
    item_type, text = _text(record)
    choices = _choices(record)
    answers = _listed(record, "answers")
    kind = _kind(record, item_type, choices, answers)
    used = {*("qid", "query", "facet", "item", "type", "text", item_type, "kind", "answers", "choices"), "weight"}
    used |= {"secret", "retired", "replaces", "metadata", "question", "nugget"}
    try:
        item = Item(
            query_id=query_id,
            text=text,
            item_type=item_type,
            item_id=record.text("item"),
            facet_id=facet,
            answers=tuple(dict.fromkeys(_fitting(kind, answer, choices) for answer in answers)),
            kind=kind,
            choices=choices,
            weight=_weight(record),
            secret=_flag(record, "secret"),
            retired=_flag(record, "retired"),
            replaces=record.text("replaces") or None,
            metadata={**_metadata(record, used), **_mapping(record, "metadata")},
        )
    except ValueError as error:
        raise record.error(str(error), None) from error
    return replace(item, item_id="", replaces=item.item_id) if stale_id(item) else item


def _text(record: Record) -> tuple[ItemType, str]:
    named = [name for name in ITEM_TYPES if record.text(name)]
    if len(named) > 1:
        raise record.error("an item is a question or a nugget, not both", record.text("nugget"))
    said = record.text("type") or (named[0] if named else "question")
    if said not in ITEM_TYPES:
        raise record.error("the type of an item is question or nugget", said)
    text = record.text(named[0] if named else "text")
    if not text:
        raise record.error("the item has no text: give it a 'question' or a 'nugget'", None)
    return said, text


def _kind(record: Record, item_type: ItemType, choices: Mapping[str, str], answers: tuple[str, ...]) -> Kind:
    said = record.text("kind")
    if said and said not in KINDS:
        raise record.error(f"the kind of an item is one of {', '.join(KINDS)}", said)
    if said:
        return said
    return inferred_kind(item_type, choices, answers)


def inferred_kind(item_type: ItemType, choices: Mapping[str, str], answers: tuple[str, ...]) -> Kind:
    """The kind of an item of which nobody says it."""
    if choices:
        return "multiple_choice"
    yes_or_no = bool(answers) and {answer.casefold() for answer in answers} <= {"true", "false", "yes", "no"}
    return "true_false" if yes_or_no and item_type == "question" else "free"


def _metadata(record: Record, used: set[str]) -> dict[str, Any]:
    """All else that the record says; the workbench's keys that say nothing are written again anyway."""
    silent = {"info": None, "test_collection": ""}
    return {
        key: value for key, value in record.values.items() if key not in used and (key, value) not in silent.items()
    }


def _fitting(kind: Kind, answer: str, choices: Mapping[str, str]) -> str:
    """A gold answer in the form that its kind keeps: true or false; the letter of a choice."""
    word = answer.casefold()
    if kind == "true_false":
        return "true" if word in TRUE_WORDS else "false" if word in FALSE_WORDS else answer
    if kind == "multiple_choice" and answer not in choices:
        return next(
            (letter for letter, text in choices.items() if word in (letter.casefold(), text.casefold())), answer
        )
    return answer


def _listed(record: Record, name: str) -> tuple[str, ...]:
    value = record.values.get(name)
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise record.error(f"{name!r} begins like a JSON list and is none", value) from error
    parts = value if isinstance(value, list) else cell_text(value).split("|")
    return tuple(text for part in parts if (text := cell_text(part).strip()))


def _choices(record: Record) -> dict[str, str]:
    value = record.values.get("choices")
    if isinstance(value, Mapping) or (isinstance(value, str) and value.lstrip().startswith("{")):
        return {str(letter): cell_text(text) for letter, text in _mapping(record, "choices").items()}
    return {chr(ord("A") + place): text for place, text in enumerate(_listed(record, "choices"))}


def _mapping(record: Record, name: str) -> Mapping[str, Any]:
    value = record.values.get(name)
    if value is None or value == "":
        return {}
    try:
        value = json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise record.error(f"{name!r} is not a JSON object", cell_text(value)) from error
    if not isinstance(value, Mapping):
        raise record.error(f"{name!r} is not a JSON object", cell_text(value))
    return value


def _weight(record: Record) -> float:
    given = record.text("weight")
    try:
        return float(given) if given else 1.0
    except ValueError as error:
        raise record.error("the weight is not a number", given) from error


def _flag(record: Record, name: str) -> bool:
    given = record.text(name).casefold()
    if given not in _TRUE | _FALSE:
        raise record.error(f"{name!r} is true or false", given)
    return given in _TRUE


COLUMNS = (
    *("qid", "query", "facet", "item", "type", "text", "kind", "answers", "choices"),
    *("weight", "secret", "retired", "replaces", "metadata"),
)
"""Of a bank as a table."""


def read_bank(path: Path | str) -> Bank:
    """Read a test bank.

    An item whose id is the hash of another text was edited in place: it gets the id of its own text and ``replaces``
    the old one. Gold answers stand in a list, or in one cell with ``|`` between them; choices likewise, lettered from
    A, or as a mapping from letter to text. Items with choices are multiple choice, and questions whose gold answers are
    true, false, yes or no are true/false, unless ``kind`` says otherwise.

    Raises:
        DataError: the file cannot be read, or an item is wrong; names the file, the line and the value.
    """
    path = Path(path)
    items: dict[str, Item] = {}
    queries: dict[tuple[str, str | None], QueryInfo] = {}
    for record in _bank_records(path):
        for item, entry in record_items(record, queries):
            if item.item_id in items:
                raise entry.error("an item with this id stands earlier in the bank", item.item_id)
            items[item.item_id] = item
    return Bank(tuple(items.values()), queries)


def write_bank(path: Path | str, bank: Bank, *, secret: bool = False) -> int:
    """Write a bank in the form that the file's extension names; ``read_bank`` gives it back equal.

    Args:
        path: ``.jsonl`` (the workbench reads ``.jsonl.gz``), ``.yaml``, or a table.
        bank: what to write, retired items included.
        secret: also write the secret items; without it they are left out.

    Returns:
        How many secret items were left out.

    Raises:
        DataError: the file cannot be written.
    """
    path = Path(path)
    shown = bank if secret else bank.without_secrets()
    if _is_yaml(path):
        import yaml

        with open_replacing(path) as file:
            file.write(yaml.safe_dump(list(_by_query(shown)), sort_keys=False, allow_unicode=True, width=120).encode())
    elif table_format(path) == "jsonl":
        with open_replacing(path) as file:
            file.writelines((json.dumps(record, ensure_ascii=False) + "\n").encode() for record in _by_query(shown))
    else:
        write_rows(path, COLUMNS, [_row(item, shown) for item in shown.items])
    return len(bank.items) - len(shown.items)


def _bank_records(path: Path) -> Iterator[Record]:
    if _is_yaml(path):
        for values, line in read_yaml_records(path):
            yield Record(canonical(values), _at_line(path, line))
        return
    for row in read_rows(path):
        yield Record(canonical(row.values), row.error)


def _at_line(path: Path, line: int) -> Callable[[str, str | None], DataError]:
    def error(problem: str, value: str | None) -> DataError:
        return DataError(path, problem, line=line, value=value)

    return error


def _is_yaml(path: Path) -> bool:
    return path.name.endswith((".yaml", ".yml"))


def _by_query(bank: Bank) -> Iterator[dict[str, Any]]:
    """The workbench's records, one a query or subtopic."""
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
    ours: dict[str, Any] = {"kind": item.kind, "choices": dict(item.choices), "weight": item.weight}
    ours |= {"secret": item.secret, "retired": item.retired, "replaces": item.replaces}
    implied: dict[str, Any] = {"kind": inferred_kind(name, item.choices, item.answers), "choices": {}, "weight": 1.0}
    implied |= {"secret": False, "retired": False, "replaces": None}
    return {
        "query_id": item.query_id,
        "facet_id": item.facet_id,
        "info": None,
        **item.metadata,
        f"{name}_id": item.item_id,
        f"{name}_text": item.text,
        "gold_answers": [item.choices.get(answer, answer) for answer in item.answers] or None,
        **{key: value for key, value in ours.items() if value != implied[key]},
    }


def _row(item: Item, bank: Bank) -> dict[str, Cell]:
    return {
        "qid": item.query_id,
        "query": bank.queries[item.query_id, item.facet_id].text,
        "facet": item.facet_id,
        "item": item.item_id,
        "type": item.item_type,
        "text": item.text,
        "kind": item.kind,
        "answers": json.dumps(item.answers, ensure_ascii=False) if item.answers else "",
        "choices": json.dumps(item.choices, ensure_ascii=False) if item.choices else "",
        "weight": item.weight,
        "secret": str(item.secret).lower(),
        "retired": str(item.retired).lower(),
        "replaces": item.replaces,
        "metadata": json.dumps(item.metadata, ensure_ascii=False) if item.metadata else "",
    }


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
    """An item as ``read_bank`` reads one: its kind follows from its gold answers.

    Raises:
        DataError: it has no text, or cannot be an item.
    """
    values: dict[str, object] = {"qid": query_id, "facet": facet_id, "type": item_type, "text": text}
    values |= {"answers": list(answers), "weight": weight, "secret": str(secret).lower()}
    record = Record(values, lambda problem, value: DataError("the new item", problem, value=value))
    ((item, _),) = record_items(record, {})
    return item
