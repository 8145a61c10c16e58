"""Replies that are one label for each of several items: what is asked for, as words and schema, and how it is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from judges.errors import ReplyError
from judges.quotes import folded
from judges.relaxed_json import read_relaxed
from judges.types import ReplyContract, word_per_value

_SPACE = re.compile(r"\s+")
_SHOWN = 40


def read_labels(value: Mapping[str, Any], contract: ReplyContract) -> tuple[str, ...]:
    """The labels of a reply's JSON object, in the order of the items.

    Raises:
        ReplyError: another field, another number of labels, or one that is not a whole allowed word. Nothing is
            shifted, filled up or left out.
    """
    ((name, words),) = contract.choices.items()
    if unknown := [key for key in value if key != name]:
        raise ReplyError(f"the JSON object has {unknown[0]!r}, which was not asked for")
    given = value.get(name)
    if not isinstance(given, list):
        raise ReplyError(f"{name!r} must be a list of labels")
    if len(given) != contract.length:
        raise ReplyError(f"{name!r} must hold {_number(contract)}, not {len(given)}")
    spelled = {str(word).casefold(): str(label) for word, label in words.items()}
    labels = [spelled.get(label.strip().casefold()) if isinstance(label, str) else None for label in given]
    for place, (label, said) in enumerate(zip(labels, given, strict=True), start=1):
        if label is None:
            raise ReplyError(f"label {place} must be one of {', '.join(map(repr, words))}, not {str(said)[:_SHOWN]!r}")
    return tuple(label for label in labels if label is not None)


def bare_list(text: str, name: str, judged: Iterable[str]) -> Mapping[str, Any] | None:
    """A reply that is nothing but the list, in JSON's or Python's spelling, as the object that was asked for.

    Args:
        text: the reply, without a code fence.
        name: the object's one field.
        judged: the texts that the judge was given.

    Returns:
        ``None`` if the reply is something else.

    Raises:
        ReplyError: one of the texts holds the very same list.
    """
    if not text.startswith("["):
        return None
    given = read_relaxed(text)
    if not isinstance(given, list):
        return None
    said = _compact(folded(text))
    if given and any(said in _compact(folded(piece)) for piece in judged):
        raise ReplyError("the list repeats one that stands in the texts being judged; reply with your own")
    return {name: given}


def labels_schema(contract: ReplyContract) -> dict[str, Any]:
    """The JSON Schema; the number is only described, since not every server can be held to one."""
    ((name, words),) = contract.choices.items()
    labels = {
        "type": "array",
        "items": {"type": "string", "enum": word_per_value(words)},
        "description": f"{_number(contract)}, in the order of the items",
    }
    return {"type": "object", "properties": {name: labels}, "required": [name], "additionalProperties": False}


def labels_rule(contract: ReplyContract) -> str:
    """How to reply, in words."""
    ((name, words),) = contract.choices.items()
    allowed = ", ".join(f'"{word}"' for word in word_per_value(words))
    rule = f'Reply with one JSON object and nothing else. Its one key is "{name}", a list of {_number(contract)}'
    return f"{rule}, one for each item and in their order; a label is one of {allowed}."


def _number(contract: ReplyContract) -> str:
    return "exactly 1 label" if contract.length == 1 else f"exactly {contract.length} labels"


def _compact(text: str) -> str:
    return _SPACE.sub("", text).replace("'", '"').casefold()
