"""Test banks in files: the workbench's JSON lines, YAML, and tables made by hand (CSV, TSV, JSONL, Parquet).

A record is one item (``qid, question`` or ``qid, nugget``, and what else the columns below say) or one query with its
``items``, as in the workbench's bank files (001, Figures 2 and 3) and in YAML. Unknown columns become metadata.

Writing is by query, in the workbench's own shape, for ``.jsonl`` and YAML; the workbench reads such a file back and
passes over the keys that are ours. Tables have one row an item and no place for what a file said of a query besides its
text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from judges.errors import DataError
from retrieval_eval.data.files import open_replacing
from retrieval_eval.data.rows import Cell, table_format
from retrieval_eval.data.tables import read_rows, write_rows
from retrieval_eval.exam.bank_records import Record, canonical, inferred_kind, record_items
from retrieval_eval.exam.items import Bank, Item, QueryInfo
from retrieval_eval.exam.yaml_records import read_yaml_records

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
    for record in _records(path):
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


def _records(path: Path) -> Iterator[Record]:
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
