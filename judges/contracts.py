"""Writes a reply contract (rules for a judge's reply) as instructions, as a JSON Schema, or as a list of replies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from judges.reply_text import letters
from judges.self_rating import HIGHEST_RATING
from judges.types import Prompt, ReplyContract, word_per_value

_MARK_LETTERS = 8
_OBJECT = "Reply with one JSON object and nothing else."


def reply_rule(contract: ReplyContract) -> str:
    """Instructions on the format of a reply, for prompts to models that are not bound to a JSON schema."""
    words = next(iter(contract.choices.values()), {})
    nothing_else = f"the letters {contract.mark} behind it" if contract.mark else "nothing else"
    match contract.form:
        case "json":
            fields = [f'"{name}", a text' for name in contract.text_fields]
            for name, choice in contract.choices.items():
                shown = (str(word) if isinstance(word, int) else f'"{word}"' for word in choice)
                fields.append(f'"{name}", one of {", ".join(shown)}')
            fields += [f'"{name}", the text "{mark}"' for name, mark in contract.mark_field.items()]
            rule = f"{_OBJECT} Its keys, in this order: {'; '.join(fields)}."
        case "list":
            rule = f"{_list_rule(contract)}."
        case "labels":
            allowed = ", ".join(f'"{word}"' for word in word_per_value(words))
            rule = f"{_list_rule(contract)}, one for each item and in their order; a label is one of {allowed}."
        case "brackets":
            rule = f"End your reply with one of {endings(contract)} on a line of its own."
        case "word":
            rule = f"Reply with one word and {nothing_else}: {' or '.join(map(str, word_per_value(words)))}."
        case "rating":
            rule = f"Reply with one whole number from 0 to {HIGHEST_RATING} and {nothing_else}."
        case "text":
            special = f", or with {' or '.join(map(str, words))} if there is none" if words else ""
            rule = f"Reply with the answer and nothing else{special}."
    return rule


def _list_rule(contract: ReplyContract) -> str:
    (name,), number = contract.outcome_fields, number_asked(contract)
    if not contract.mark:
        return f'{_OBJECT} Its one key is "{name}", a list of {number}'
    ((key, mark),) = contract.mark_field.items()
    return f'{_OBJECT} Its keys: "{key}", the text "{mark}"; "{name}", a list of {number}'


def endings(contract: ReplyContract) -> str:
    """The verdicts with which a reply may end, each in double brackets, such as ``[[A]], [[B]]``."""
    (words,) = contract.choices.values()
    return ", ".join(f"[[{word}]] {contract.mark}".rstrip() for word in words)


def json_schema(contract: ReplyContract) -> dict[str, Any]:
    """The JSON Schema of a reply contract. The explanation comes first, so that the judge explains before it chooses.

    The required number of a list's entries is only in a description, since not every server can enforce it.
    """
    properties: dict[str, Any] = {name: {"type": "string"} for name in contract.text_fields}
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
    for name, mark in contract.mark_field.items():  # no constant: a mark that the server enforces proves nothing
        properties[name] = {"type": "string", "description": f"the text {mark}"}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def number_asked(contract: ReplyContract) -> str:
    """How many texts or labels the list in a reply must have, in words."""
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
    """Write a reply in the format of the contract, with ``chosen`` as the word of each choice (verdict or label).

    ``texts`` are the other text fields besides the reason; by default each of them repeats the reason.
    """
    if contract.form in ("word", "rating"):
        return f"{next(iter(chosen.values()))} {contract.mark}".rstrip()
    if contract.form == "brackets":
        return f"{reason}\n[[{next(iter(chosen.values()))}]] {contract.mark}".strip()
    text_fields = {**dict.fromkeys(contract.text_fields, reason), **(texts or {})}
    return json.dumps({**text_fields, **chosen, **contract.mark_field}, ensure_ascii=False)


def unused_mark(prompt: Prompt) -> str:
    """A mark by which a reply shows that it is no quotation: letters that do not occur in the prompt.

    The same prompt always gets the same mark.
    """
    shown = "\n".join(prompt.texts)
    digest = hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()
    while (mark := "".join(chr(ord("a") + int(digit, 16)) for digit in digest[:_MARK_LETTERS])) in letters(shown):
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return mark


def allowed_replies(contract: ReplyContract) -> list[str]:
    """All replies that the contract allows, one per label; empty if a reply may have free text or several labels."""
    if contract.form == "rating":
        return [str(rating) for rating in range(HIGHEST_RATING + 1)]
    if contract.form not in {"json", "brackets", "word"} or len(contract.choices) != 1 or contract.texts:
        return []
    ((name, words),) = contract.choices.items()
    return [written_reply(contract, {name: word}) for word in word_per_value(words)]
