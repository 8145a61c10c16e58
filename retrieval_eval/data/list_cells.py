"""Parser of lists in a text cell, as JSON, Python, numpy, pandas and LangChain print them; evaluates no code."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

_STRING = r"""[rRbBuU]?(?:'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")"""
_TOKEN = re.compile(
    rf"\s*+(?:(?P<string>{_STRING})|(?P<number>[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))"
    r"|(?P<more>\.\.\.|\u2026)|(?P<name>[A-Za-z_][\w.]*)|(?P<shown><[^<>'\"]*+(?:'[^']*'|\"[^\"]*\")?[^<>'\"]*+>)"
    r"|(?P<sign>[\[\](){},:=]))",
    re.DOTALL,
)
_CALL = r"(?:[A-Za-z_]\w*\.)*+[A-Za-z_]\w*\("
_LIKE_A_LIST = re.compile(
    rf"""\s*(?:(?:(?:np|numpy)\.)?(?:array|deque)\(\s*[\[(]|\[[\s\[(]*(?:[rRbBuU]?['"]|\{{\s*['"]|{_CALL})"""
    rf"""|\([\s\[(]*(?:{_STRING}\s*,|\{{\s*['"]|{_CALL})|\{{\s*['"])"""
)
"""Matches an opening bracket followed by a quote, an object or a call, which no sentence contains there."""
_CLOSED = re.compile(r"\s*\[[^\[\]]*,[^\[\]]*\]\s*")
"""Matches a list without quotes: a whole cell of words in square brackets, with a comma."""
_WORDS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("None", "null", "NaT", "NA"), None),
    **dict.fromkeys(("nan", "NaN"), math.nan),
    "inf": math.inf,
    "True": True,
    "true": True,
    "False": False,
    "false": False,
}
_ESCAPE = re.compile(
    r"\\(\n|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|U0010[0-9a-fA-F]{4}|[0-7]{1,3}|.)", re.DOTALL
)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": ""}
_MOST_NESTING: Final = 30
_MOST_TOKENS: Final = 200_000
"""Most tokens (names, texts, numbers, brackets) of a cell."""
_CUT: Final = "is cut off; export the whole list, best as JSON"
_UNREADABLE: Final = "cannot be read as one; write it as JSON, or without the bracket"


def list_in(text: str) -> list[Any] | None:
    """The list in a cell (an object gives a list with this object); ``None`` if the cell is plain text.

    Raises:
        ValueError: the text begins like a list but cannot be parsed, or entries were omitted (``...``).
    """
    if not (first := text.lstrip()[:1]) or first not in "[({and":
        return None
    list_like = _LIKE_A_LIST.match(text)
    if first in "[{":
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, list) or (list_like and isinstance(parsed, dict)):
            return parsed if isinstance(parsed, list) else [parsed]
    if list_like is None and first != "[":
        return None
    try:
        return _Parser(text).whole()
    except _NoListError as error:
        if list_like is not None or _CLOSED.fullmatch(text) or error.certain:
            raise ValueError(str(error)) from None
        return None


class _NoListError(ValueError):
    """The text cannot be parsed as a list; ``certain`` if it cannot be a sentence either."""

    certain = False


class _LeftOutError(_NoListError):
    certain = True


class _Parser:
    """Recursive-descent parser of lists; commas may be missing, as in numpy's lists."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._parts = text, 0, 0
        self._kind, self._mark = "", ""
        self._next()

    def whole(self) -> list[Any]:
        """The list that the whole text represents."""
        parsed = self._value(0)
        if self._kind:
            raise _NoListError("goes on after its end; write one list, best as JSON")
        if isinstance(parsed, dict):
            parsed = [parsed]
        if not isinstance(parsed, list):
            raise _NoListError("is not one; write a list, best as JSON")
        return parsed

    def _next(self) -> tuple[str, str]:
        """Advance to the next token; returns the token before it."""
        before = self._kind, self._mark
        self._parts += 1
        if self._parts > _MOST_TOKENS:
            raise _LeftOutError(f"has over {_MOST_TOKENS:,} parts; divide it")
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            rest = self._text[self._at :].lstrip()
            if rest:
                raise _NoListError(_CUT if rest[0] in "'\"" else _UNREADABLE)
            self._kind, self._mark = "", ""
        else:
            self._at, self._kind = match.end(), match.lastgroup or ""
            self._mark = match[self._kind]
        return before

    def _value(self, depth: int, *, bare: bool = False) -> Any:
        if depth > _MOST_NESTING:
            raise _NoListError("is nested too deeply; flatten it")
        kind, mark = self._next()
        if kind == "string":
            return _unescaped(mark)
        if kind == "number":
            return _number(mark)
        if kind == "shown":  # <Kind.NAME: 'value'>
            return mark
        if kind == "name":
            return self._name_or_call(mark, depth, bare=bare)
        if mark in ("[", "("):
            return self._items("]" if mark == "[" else ")", depth)[0]
        if mark == "{":
            return self._object(depth)
        if kind == "more":
            raise _LeftOutError("has '...' where entries were left out; export the whole list, best as JSON")
        raise _NoListError(_UNREADABLE if kind else _CUT)

    def _name_or_call(self, name: str, depth: int, *, bare: bool) -> Any:
        """The value of a constant or a call: for a text type its text, an array its entries, an object its fields."""
        short_name = name.rpartition(".")[2]
        if self._mark != "(":
            if short_name not in _WORDS and not bare:  # as in dtype=object
                raise _NoListError("has texts without quotes; put quotes around them, or remove the bracket")
            return _WORDS.get(short_name, name)
        start = self._at
        self._next()
        entries, fields = self._items(")", depth)
        if short_name in {"array", "list", "tuple", "deque"}:
            return entries[0] if entries and isinstance(entries[0], list) else entries
        if fields and not entries:
            kind = short_name.removesuffix("Message").lower()
            return {"type": kind} | fields if short_name.endswith("Message") else fields
        if len(entries) == 1 and isinstance(entries[0], str | int | float):  # np.str_('...'), UUID('...')
            return entries[0]
        return f"{name}({self._text[start : self._at]}".rstrip(", ]")

    def _items(self, closing: str, depth: int) -> tuple[list[Any], dict[str, Any]]:
        """The entries and named fields up to a closing bracket."""
        entries: list[Any] = []
        fields: dict[str, Any] = {}
        commas = blanks = 0
        while self._mark != closing or self._kind != "sign":
            if not self._kind:
                raise _NoListError(_CUT)
            if self._kind == "name" and self._text[self._at : self._at + 1] == "=" and closing == ")":
                _, name = self._next()
                self._next()
                fields[name] = self._value(depth + 1, bare=True)
            else:
                entries.append(self._value(depth + 1))
            if self._mark == "," and self._kind == "sign":
                commas += 1
                self._next()
            elif self._kind and (self._mark != closing or self._kind != "sign"):
                blanks += 1
            if commas and blanks:
                raise _NoListError("has commas between some of its entries only; write it as JSON")
        self._next()
        return entries, fields

    def _object(self, depth: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        while self._mark != "}" or self._kind != "sign":
            key = self._value(depth + 1)
            if self._mark != ":":
                raise _NoListError(_CUT if not self._kind else "holds an object without a colon; write it as JSON")
            self._next()
            fields[str(key)] = self._value(depth + 1)
            if self._mark == ",":
                self._next()
            elif self._mark != "}":
                raise _NoListError(_CUT if not self._kind else "holds an object without a comma; write it as JSON")
        self._next()
        return fields


def _unescaped(mark: str) -> str:
    raw = mark[0] in "rR"
    content = mark[1:-1] if mark[0] in "'\"" else mark[2:-1]
    return content if raw or "\\" not in content else _ESCAPE.sub(_character, content)


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    if code[0] in "xuU" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _ESCAPED.get(code, code if code in "\\'\"" else escape[0])


def _number(mark: str) -> int | float:
    try:
        return int(mark)
    except ValueError:
        return float(mark.replace("_", ""))
