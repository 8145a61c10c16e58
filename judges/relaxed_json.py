"""JSON as models write it where no server holds them to it: Python's quotes, a comma too many, a stray backslash."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

_TOKEN = re.compile(
    r"""\s+
    | (?P<sign>[{}\[\]:,])
    | (?P<number>-?\d+(?:\.\d+)?)
    | "(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"
    | '(?P<single>[^'\\]*(?:\\.[^'\\]*)*)'
    | “(?P<curly>[^“”\\]*)”
    """,
    re.DOTALL | re.VERBOSE,
)
_CHANGED = re.compile(r"\\([bfnrt/\"\\]|u[0-9a-fA-F]{4})|\\'|\\|\"")


def read_relaxed(text: str, hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> object:
    """The value of a text that is one JSON list or object, or would be if it were spelled more strictly.

    Args:
        text: all of it.
        hook: makes an object of its keys and values.

    Returns:
        ``None`` where it is neither.
    """
    for spelled in (text, _as_json(text)):
        try:
            if spelled is not None:
                return json.loads(spelled, object_pairs_hook=hook, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def _as_json(text: str) -> str | None:
    """A text that is one list or object but for its quotes, trailing commas and stray backslashes, as JSON.

    Quotes are the same at both ends of a text and do not stand within it unescaped; nothing is closed or left out.

    Returns:
        ``None`` where a character is not part of such a text. What comes out may still be no JSON.
    """
    written: list[str] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        at = token.end()
        kind = token.lastgroup
        if kind is None:
            continue
        if kind in ("sign", "number"):
            if token[kind] in ("]", "}") and len(written) > 1 and written[-1] == "," and written[-2] not in "[{,":
                written.pop()
            written.append(token[kind])
        else:
            written.append(f'"{_CHANGED.sub(_spelled, token[kind])}"')
    return " ".join(written)  # two numbers side by side are not one


def _spelled(found: re.Match[str]) -> str:
    """An escape of JSON as it is, an apostrophe without its backslash, any other backslash or quote escaped itself."""
    if found[1]:
        return found[0]
    return "'" if found[0] == "\\'" else f"\\{found[0]}"
