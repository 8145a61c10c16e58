"""One record of a bank's file, an item or a query with its items, to items. Strict: what is wrong is an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from judges.errors import DataError
from retrieval_eval.data.rows import cell_text
from retrieval_eval.exam.items import (
    FALSE_WORDS,
    ITEM_TYPES,
    KINDS,
    TRUE_WORDS,
    Item,
    ItemType,
    Kind,
    QueryInfo,
    stale_id,
)

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
