"""Replies that are lists of texts: what is asked for, in words and as a schema, and how strictly they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from judges.errors import ReplyError
from judges.types import ListRule

_SHOWN = 60


def read_list(
    value: Mapping[str, Any], rule: ListRule, judged: Iterable[str], letters: Callable[[str], str]
) -> tuple[tuple[str, ...], str]:
    """The texts of a reply's JSON object, without surrounding white space, and what was left out of them.

    A text whose letters and digits are those of one further up says nothing new and is left out; the number of texts
    must be right without it, but for the rule's ``leeway``. Texts that merely resemble each other are all kept: which
    of them says it better, people decide.

    Args:
        value: the object.
        rule: the field and how many texts it has.
        judged: the texts that the judge was given, by their letters; a whole one of them is no entry.
        letters: what is compared of two texts.

    Raises:
        ReplyError: another field, another number of texts, one that is empty or repeats a whole input.
    """
    if unknown := [name for name in value if name != rule.name]:
        raise ReplyError(f"the JSON object has {unknown[0]!r}, which was not asked for")
    given = value.get(rule.name)
    if not isinstance(given, list) or any(not isinstance(entry, str) for entry in given):
        raise ReplyError(f"{rule.name!r} must be a list of texts")
    inputs, kept, repeated = set(judged) - {""}, dict[str, str](), list[str]()
    for entry in map(str.strip, given):
        compared = letters(entry)
        if not compared:
            raise ReplyError(f"{rule.name!r} holds an empty text")
        if compared in inputs:
            raise ReplyError(f"{entry[:_SHOWN]!r} repeats a whole text that you were given; write entries of your own")
        if compared in kept:
            repeated.append(f"{entry[:_SHOWN]!r} repeats {kept[compared][:_SHOWN]!r}")
        else:
            kept[compared] = entry
    texts, said = tuple(kept.values()), [f"Left out: {'; '.join(repeated)}."] if repeated else []
    if rule.leeway == "fewer" and 0 < len(texts) < rule.fewest:
        said.append(f"{len(texts)} of the {rule.fewest} texts asked for.")
    elif rule.leeway == "more" and rule.most is not None and len(texts) > rule.most:
        beyond = ", ".join(repr(text[:_SHOWN]) for text in texts[rule.most :])
        said.append(f"Left out, since at most {rule.most} texts were asked for, of {len(texts)}: {beyond}.")
        texts = texts[: rule.most]
    elif len(texts) < rule.fewest or (rule.most is not None and len(texts) > rule.most):
        because = f"; {'; '.join(repeated)}" if repeated else ""
        raise ReplyError(f"{rule.name!r} must hold {_number(rule)}, not {len(texts)}{because}")
    return texts, " ".join(said)


def list_schema(rule: ListRule) -> dict[str, Any]:
    """The JSON Schema; the number is only described, since not every server can be held to one."""
    entries = {"type": "array", "items": {"type": "string"}, "description": _number(rule)}
    return {
        "type": "object",
        "properties": {rule.name: entries},
        "required": [rule.name],
        "additionalProperties": False,
    }


def list_rule(rule: ListRule) -> str:
    """How to reply, in words."""
    return f'Reply with one JSON object and nothing else. Its one key is "{rule.name}", a list of {_number(rule)}.'


def _number(rule: ListRule) -> str:
    if rule.most is None:
        return f"{rule.fewest} or more texts"
    if rule.fewest == rule.most:
        return f"exactly {rule.most} texts"
    return f"at most {rule.most} texts" if rule.fewest <= 1 else f"{rule.fewest} to {rule.most} texts"
