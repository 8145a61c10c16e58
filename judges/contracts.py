"""What a reply must consist of, as it is said to a judge: in words, as a JSON Schema, or as a reply to score."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from judges.self_rating import HIGHEST_RATING
from judges.types import Form, ReplyContract, word_per_value

_OBJECT = "Reply with one JSON object and nothing else."


def reply_rule(contract: ReplyContract) -> str:
    """How to reply, in words, for models that are not held to a schema."""
    return _RULES[contract.form](contract)


def _object_rule(contract: ReplyContract) -> str:
    fields = [f'"{name}", a text' for name in contract.spoken]
    for name, words in contract.choices.items():
        shown = (str(word) if isinstance(word, int) else f'"{word}"' for word in words)
        fields.append(f'"{name}", one of {", ".join(shown)}')
    return f"{_OBJECT} Its keys, in this order: {'; '.join(fields)}."


def _list_rule(contract: ReplyContract) -> str:
    return f'{_OBJECT} Its one key is "{contract.counted[0]}", a list of {number_asked(contract)}.'


def _labels_rule(contract: ReplyContract) -> str:
    ((_, words),) = contract.choices.items()
    allowed = ", ".join(f'"{word}"' for word in word_per_value(words))
    return f"{_list_rule(contract)[:-1]}, one for each item and in their order; a label is one of {allowed}."


def _brackets_rule(contract: ReplyContract) -> str:
    (words,) = contract.choices.values()
    return f"End your reply with one of {', '.join(f'[[{word}]]' for word in words)} on a line of its own."


def _word_rule(contract: ReplyContract) -> str:
    (words,) = contract.choices.values()
    return f"Reply with one word and nothing else: {' or '.join(map(str, word_per_value(words)))}."


def _text_rule(contract: ReplyContract) -> str:
    special = " or ".join(str(word) for words in contract.choices.values() for word in words)
    return f"Reply with the answer and nothing else{f', or with {special} if there is none' if special else ''}."


_RULES: Mapping[Form, Callable[[ReplyContract], str]] = {
    "json": _object_rule,
    "list": _list_rule,
    "labels": _labels_rule,
    "brackets": _brackets_rule,
    "word": _word_rule,
    "text": _text_rule,
    "rating": lambda _: f"Reply with one whole number from 0 to {HIGHEST_RATING} and nothing else.",
}


def json_schema(contract: ReplyContract) -> dict[str, Any]:
    """The JSON Schema of a contract, explanation first so that the choice follows from it.

    The number of a list's entries is only described, since not every server can be held to one.
    """
    properties: dict[str, Any] = {name: {"type": "string"} for name in contract.spoken}
    if contract.listed is not None:
        entries = {"type": "array", "items": {"type": "string"}, "description": number_asked(contract)}
        properties[contract.listed.name] = entries
    for name, words in contract.choices.items():
        if contract.form == "labels":
            label = {"type": "string", "enum": word_per_value(words)}
            number = f"{number_asked(contract)}, in the order of the items"
            properties[name] = {"type": "array", "items": label, "description": number}
        else:
            kind = "integer" if all(isinstance(word, int) for word in words) else "string"
            properties[name] = {"type": kind, "enum": list(words)}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def number_asked(contract: ReplyContract) -> str:
    """How many texts or labels the list of a reply has, in words."""
    rule = contract.listed
    if rule is None:
        return "exactly 1 label" if contract.length == 1 else f"exactly {contract.length} labels"
    if rule.most is None:
        return f"{rule.fewest} or more texts"
    if rule.fewest == rule.most:
        return f"exactly {rule.most} texts"
    return f"at most {rule.most} texts" if rule.fewest <= 1 else f"{rule.fewest} to {rule.most} texts"


def written_reply(
    contract: ReplyContract, chosen: Mapping[str, str | int], reason: str = "", texts: Mapping[str, str] | None = None
) -> str:
    """A reply that chooses these words, as a model would write it.

    Args:
        contract: one with choices.
        chosen: the word of each choice.
        reason: the explanation, where the form has one.
        texts: the further text fields, where they do not repeat the explanation.
    """
    if contract.form in ("word", "rating"):
        return str(next(iter(chosen.values())))
    if contract.form == "brackets":
        return f"{reason}\n[[{next(iter(chosen.values()))}]]".lstrip("\n")
    spoken = {**dict.fromkeys(contract.spoken, reason), **(texts or {})}
    return json.dumps({**spoken, **chosen}, ensure_ascii=False)


def allowed_replies(contract: ReplyContract) -> list[str]:
    """Every reply without an explanation, one for each value of the label; empty where a reply is more than a label."""
    if contract.form == "rating":
        return [str(rating) for rating in range(HIGHEST_RATING + 1)]
    if contract.form not in {"json", "brackets", "word"} or len(contract.choices) != 1 or contract.texts:
        return []
    ((name, words),) = contract.choices.items()
    return [written_reply(contract, {name: word}) for word in word_per_value(words)]
