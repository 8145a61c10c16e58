"""Replies to typed outcomes. Strict: the whole field, a whole label, nothing quoted from the inputs.

A reply that is not exactly what the contract asks for raises ``ReplyError``; its message tells the judge what to
mend. Nothing is guessed: peers that search a reply for the last digit turn ``score = 10`` into 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from judges.errors import ReplyError
from judges.types import Inputs, Outcome, ReplyContract

_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*?)\n?```\Z", re.DOTALL)
_BRACKETS = re.compile(r"\[\[\s*([^\[\]]{1,40}?)\s*\]\]")


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The part of a reply that counts, and the explanation that came with it."""

    outcome: Outcome
    reason: str


def json_schema(contract: ReplyContract) -> dict[str, Any]:
    """The JSON Schema of a contract, explanation first so that the choice follows from it."""
    properties: dict[str, Any] = {contract.reason: {"type": "string"}}
    for name, values in contract.choices.items():
        words = list(values)
        kind = "integer" if all(isinstance(word, int) for word in words) else "string"
        properties[name] = {"type": kind, "enum": words}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def parse_reply(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:
    """Read one reply.

    Args:
        text: the whole reply.
        contract: what it must consist of.
        inputs: what was judged. A JSON object or marker that merely repeats the inputs is not the judge's.

    Raises:
        ReplyError: the reply is outside the contract.
    """
    if contract.form == "brackets":
        return _parse_brackets(text, contract, inputs)
    return _parse_object(_judges_own_object(text, contract, inputs), contract)


def _judges_own_object(text: str, contract: ReplyContract, inputs: Inputs) -> Mapping[str, Any]:
    """The one JSON object of the reply: bare, in one code fence, or after reasoning text, and then at the end."""
    stripped = text.strip()
    fenced = _FENCE.match(stripped)
    body = fenced.group(1).strip() if fenced else stripped
    found = [(value, end) for value, end in _objects(body) if contract.choices.keys() & value.keys()]
    if not found:
        raise ReplyError(f"the reply holds no JSON object with {_names(contract.choices)}")
    if len(found) > 1:
        raise ReplyError("the reply holds more than one JSON object; reply with exactly one")
    value, end = found[0]
    if body[end:].strip().strip("`").strip():
        raise ReplyError("the JSON object must be the end of the reply")
    if any(_repeats(value, text) for text in _texts(inputs)):
        raise ReplyError("the JSON object repeats one that stands in the texts being judged; reply with your own")
    return value


def _objects(text: str) -> list[tuple[Mapping[str, Any], int]]:
    """The outermost JSON objects in a text, each with the offset just behind it. Duplicate keys disqualify."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique_keys)
    found: list[tuple[Mapping[str, Any], int]] = []
    position = text.find("{")
    while position >= 0:
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position = text.find("{", position + 1)
            continue
        found.append((value, end))
        position = text.find("{", end)
    return found


def _repeats(value: Mapping[str, Any], text: str) -> bool:
    """Whether a text being judged holds this very object, at any depth of other objects."""
    decoder = json.JSONDecoder()
    position = text.find("{")
    while position >= 0:
        try:
            planted, _ = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            planted = None
        if isinstance(planted, dict) and value.items() <= planted.items():
            return True
        position = text.find("{", position + 1)
    return False


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("duplicate key")
    return value


def _parse_object(value: Mapping[str, Any], contract: ReplyContract) -> ParsedReply:
    expected = {contract.reason, *contract.choices}
    if missing := expected - value.keys():
        raise ReplyError(f"the JSON object lacks {_names(missing)}")
    if unknown := value.keys() - expected:
        raise ReplyError(f"the JSON object has {_names(unknown)}, which was not asked for")
    reason = value[contract.reason]
    if not isinstance(reason, str):
        raise ReplyError(f"{contract.reason!r} must be text")
    chosen = {name: _chosen(name, value[name], allowed) for name, allowed in contract.choices.items()}
    return ParsedReply(next(iter(chosen.values())) if len(chosen) == 1 else chosen, reason.strip())


def _chosen(name: str, given: Any, allowed: Mapping[str | int, int | str]) -> int | str:
    """The value of one choice: a whole label. ``True`` is not 1, ``2.0`` is not 2, ``"2 of 3"`` is not 2."""
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise ReplyError(f"{name!r} must be one of {_names(allowed)}")
    key = given.strip() if isinstance(given, str) else given
    for word, value in allowed.items():
        if key == word or (isinstance(key, str) and key.casefold() == str(word).casefold()):
            return value
    raise ReplyError(f"{name!r} must be one of {_names(allowed)}, not {str(given)[:40]!r}")


def _parse_brackets(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:
    ((_, allowed),) = contract.choices.items()
    stripped = text.strip()
    markers = [match.group(1) for match in _BRACKETS.finditer(stripped)]
    if not markers:
        raise ReplyError(f"the reply must end in one of {_markers(allowed)}")
    if len(set(markers)) > 1:
        raise ReplyError("the reply holds different verdicts in double brackets; give exactly one, at the end")
    last_line = stripped.splitlines()[-1].strip(" .*`")
    planted = any(_BRACKETS.search(piece) for piece in _texts(inputs))
    own = last_line == f"[[{markers[0]}]]" if planted else stripped.rstrip(" .*`").endswith("]]")
    if not own:
        raise ReplyError(f"end the reply with {_markers(allowed)} on a line of its own")
    for word, value in allowed.items():
        if str(word) == markers[0]:
            return ParsedReply(value, stripped[: stripped.rfind("[[")].strip())
    raise ReplyError(f"the verdict must be one of {_markers(allowed)}")


def _texts(inputs: Inputs) -> Iterable[str]:
    yield inputs.query.text
    for entry in inputs.documents:
        yield entry.document.text
        yield entry.reason
        yield from entry.document.metadata.values()
    for answer in inputs.answers:
        yield answer.text
        yield from answer.metadata.values()


def _names(words: Iterable[str | int]) -> str:
    return ", ".join(repr(word) for word in words)


def _markers(words: Iterable[str | int]) -> str:
    return ", ".join(f"[[{word}]]" for word in words)
