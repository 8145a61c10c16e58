"""Lists in a cell of text, as JSON and as Python, numpy, pandas and LangChain print them; nothing is evaluated."""

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
"""Brackets and behind them what no sentence has there: a quote, an object, or a name with a bracket."""
_CLOSED = re.compile(r"\s*\[[^\[\]]*,[^\[\]]*\]\s*")
"""A list without quotes: a cell that holds only words in square brackets."""
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
_DEEPEST: Final = 30
_MOST: Final = 200_000
"""Parts that a cell may have: names, texts, numbers and brackets."""
_CUT: Final = "is cut off; export the whole list, best as JSON"


def list_in(text: str) -> list[Any] | None:
    """The list that stands in a cell, an object alone in a list, or ``None`` where the cell is a text.

    Raises:
        ValueError: it begins like a list and is none, or entries were left out.
    """
    if not (begins := text.lstrip()[:1]) or begins not in "[({and":
        return None
    like = _LIKE_A_LIST.match(text)
    if begins in "[{":
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, list) or (like and isinstance(found, dict)):
            return found if isinstance(found, list) else [found]
    if like is None and begins != "[":
        return None
    try:
        return _Parser(text).whole()
    except _NoListError as error:
        if like is not None or _CLOSED.fullmatch(text) or error.certain:
            raise ValueError(str(error)) from None
        return None


class _NoListError(ValueError):
    """No list; ``certain`` where it can be no sentence either."""

    certain = False


class _LeftOutError(_NoListError):
    certain = True


class _Parser:
    """Reads one value after the other, mark by mark; commas may be missing, as in numpy's lists."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._parts = text, 0, 0
        self._kind, self._mark = "", ""
        self._next()

    def whole(self) -> list[Any]:
        """The list that is the whole text."""
        found = self._value(0)
        if self._kind:
            raise _NoListError("goes on behind its end; write one list, best as JSON")
        if isinstance(found, dict):
            found = [found]
        if not isinstance(found, list):
            raise _NoListError("is none; write one, best as JSON")
        return found

    def _next(self) -> tuple[str, str]:
        """Go on to the next mark; gives the one before."""
        before = self._kind, self._mark
        self._parts += 1
        if self._parts > _MOST:
            raise _LeftOutError(f"has over {_MOST:,} parts; divide it")
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            rest = self._text[self._at :].lstrip()
            if rest:
                raise _NoListError(_CUT if rest[0] in "'\"" else "is none; write it as JSON, or without the bracket")
            self._kind, self._mark = "", ""
        else:
            self._at, self._kind = match.end(), match.lastgroup or ""
            self._mark = match[self._kind]
        return before

    def _value(self, depth: int, *, bare: bool = False) -> Any:
        if depth > _DEEPEST:
            raise _NoListError("is nested too deeply; flatten it")
        kind, mark = self._next()
        if kind == "string":
            return _unescaped(mark)
        if kind == "number":
            return _number(mark)
        if kind == "shown":  # <Kind.NAME: 'value'>
            return mark
        if kind == "name":
            return self._named(mark, depth, bare=bare)
        if mark in ("[", "("):
            return self._several("]" if mark == "[" else ")", depth)[0]
        if mark == "{":
            return self._object(depth)
        if kind == "more":
            raise _LeftOutError("has '...' where entries were left out; export the whole list, best as JSON")
        raise _NoListError("is none; write it as JSON, or without the bracket" if kind else _CUT)

    def _named(self, name: str, depth: int, *, bare: bool) -> Any:
        """A constant, or a call: of a kind of text its text, of an array its entries, of an object its fields."""
        last = name.rpartition(".")[2]
        if self._mark != "(":
            if last not in _WORDS and not bare:  # as in dtype=object
                raise _NoListError("is none; put quotes around its texts, or leave out the bracket")
            return _WORDS.get(last, name)
        start = self._at
        self._next()
        given, fields = self._several(")", depth)
        if last in {"array", "list", "tuple", "deque"}:
            return given[0] if given and isinstance(given[0], list) else given
        if fields and not given:
            kind = last.removesuffix("Message").lower()
            return {"type": kind} | fields if last.endswith("Message") else fields
        if len(given) == 1 and isinstance(given[0], str | int | float):  # np.str_('...'), UUID('...')
            return given[0]
        return f"{name}({self._text[start : self._at]}".rstrip(", ]")

    def _several(self, closing: str, depth: int) -> tuple[list[Any], dict[str, Any]]:
        """What stands up to a closing bracket: entries, and fields with names."""
        found: list[Any] = []
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
                found.append(self._value(depth + 1))
            if self._mark == "," and self._kind == "sign":
                commas += 1
                self._next()
            elif self._kind and (self._mark != closing or self._kind != "sign"):
                blanks += 1
            if commas and blanks:
                raise _NoListError("has a comma behind some of its entries only; write it as JSON")
        self._next()
        return found, fields

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self._mark != "}" or self._kind != "sign":
            key = self._value(depth + 1)
            if self._mark != ":":
                raise _NoListError(_CUT if not self._kind else "holds an object without a colon; write it as JSON")
            self._next()
            found[str(key)] = self._value(depth + 1)
            if self._mark == ",":
                self._next()
            elif self._mark != "}":
                raise _NoListError(_CUT if not self._kind else "holds an object without a comma; write it as JSON")
        self._next()
        return found


def _unescaped(mark: str) -> str:
    raw = mark[0] in "rR"
    inside = mark[1:-1] if mark[0] in "'\"" else mark[2:-1]
    return inside if raw or "\\" not in inside else _ESCAPE.sub(_character, inside)


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
