"""What is wrong with the values of a YAML file or of options, in plain words.

The library that checks them has words of its own, for programmers; none of them reaches a user.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from judges.masking import one_line

Place: TypeAlias = tuple[int | str, ...]
"""Keys and places in lists that lead to a value."""

_SHOWN: Final = 60
"""Characters of a value that a message repeats."""

_KEYS: Final = "a section, such as {key: value}"
_ASKED_FOR: Final[Mapping[str, str]] = {
    **dict.fromkeys(("string_type", "callable_type"), "a text in quotes"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list, such as [a, b]"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), _KEYS),
    "finite_number": "a finite number",
    "path_type": "the path of a file",
}
"""By the library's name of the mistake."""
_BOUNDS: Final = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def mistake(words: str, *at: int | str) -> PydanticCustomError:
    """An error for a validator to raise; ``at`` leads from the section that is checked to the value."""
    return PydanticCustomError("mistake", "{words}", {"words": words, "at": at})


def nearest(given: object, known: Any) -> str:
    """``; did you mean 'x'?`` for the known name most like ``given``, else the list of what is known."""
    names = [str(name) for name in known]
    close = difflib.get_close_matches(str(given), names, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(names))}"


def describe(problem: ValidationError, line_of: Callable[[Place], int | None] = lambda _: None) -> str:
    """The first thing wrong, as ``key.key: what is asked for, not 'value'``.

    Args:
        problem: what the library found.
        line_of: the line of a value, where the values come from a file; it stands in front then, as in ``:4: key``.
    """
    mistakes = problem.errors(include_url=False)
    own = [each for each in mistakes if each["type"] == "mistake"]
    # A misspelt key is missing as well: what was written comes first. Of a value that may be of several kinds, what is
    # wrong deepest within it says most.
    first = own[0] if own else max(_of_one_value(mistakes[0], mistakes), key=lambda each: len(_keys(each)))
    where = _keys(first)
    line = line_of((*where, *first.get("ctx", {}).get("at", ())))
    more = len({_value_of(each) for each in mistakes}) - 1
    key = ".".join(map(str, where))
    said = f"{key + ': ' if key else ''}{_words(first, mistakes)}{f' (and {more} more)' if more else ''}"
    return f":{line}: {said}" if line is not None else said


def line_in(text: str) -> Callable[[Place], int | None]:
    """Finds the line of a value in a YAML text: its key's, or that of the nearest section around it."""

    def line_of(place: Place) -> int | None:
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except (yaml.YAMLError, ValueError, RecursionError):
            return None
        line = None
        for part in place:
            found = _below(node, part)
            if found is None:
                break
            line, node = found
        return line

    return line_of


def _below(node: yaml.Node | None, part: int | str) -> tuple[int, yaml.Node] | None:
    """The line of a key, or of a member of a list, and its value."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if str(key.value) == str(part):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        member = node.value[part]
        return member.start_mark.line + 1, member
    return None


_KIND: Final = re.compile(r"[\[\](){}]|^(?:str|int|float|bool|dict|callable|[A-Z]\w+Section)$")
"""How the library names the kinds that a value may have, among the keys that lead to it."""


def _keys(each: ErrorDetails) -> Place:
    """The keys that lead to what is wrong."""
    return tuple(part for part in each["loc"] if not (isinstance(part, str) and _KIND.search(part)))


def _value_of(each: ErrorDetails) -> Place:
    """The keys that lead to the value, above the kinds that it may have."""
    kinds = [number for number, part in enumerate(each["loc"]) if isinstance(part, str) and _KIND.search(part)]
    return each["loc"][: kinds[0]] if kinds else each["loc"]


def _of_one_value(first: ErrorDetails, mistakes: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """All that is said of the value that ``first`` is about, for each kind that it may have."""
    return [each for each in mistakes if _value_of(each) == _value_of(first)]


def _words(first: ErrorDetails, mistakes: Sequence[ErrorDetails]) -> str:
    kind, given, told = first["type"], first.get("input"), first.get("ctx", {})
    if kind in {"mistake", "value_error"}:
        return str(told.get("words") or told.get("error") or first["msg"])
    if kind in {"too_short", "too_long"}:
        number = told["min_length" if kind == "too_short" else "max_length"]
        return f"must have {number} entries, not {told['actual_length']}" if number > 1 else "must not be empty"
    if given is None and not first["loc"]:
        return "the file is empty; it must have lines such as 'key: value'"
    alike = [each for each in _of_one_value(first, mistakes) if _keys(each) == _keys(first)]
    known = list(dict.fromkeys(name for each in alike for name in _asked_for(each)))
    names = f"{', '.join(known[:-1])} or {known[-1]}" if known[1:] else "".join(known)
    close = difflib.get_close_matches(str(given), known, n=1, cutoff=0.6)
    if kind == "missing":
        return "is missing; add it"
    return f"must be {names}, not {_shown(given)}{f'; did you mean {close[0]!r}?' if close else ''}"


def _asked_for(each: ErrorDetails) -> list[str]:
    """What may stand there."""
    if each["type"] in {"literal_error", "enum"}:
        return [text or number for text, number in re.findall(r"'([^']*)'|(\d+)", str(each["ctx"]["expected"]))]
    if each["type"] in _BOUNDS:
        words, name = _BOUNDS[each["type"]]
        return [f"{words} {each['ctx'][name]:g}"]
    return [_ASKED_FOR.get(each["type"], "something else")]


def _shown(given: object) -> str:
    """A value as a message repeats it."""
    if given is None:
        return "nothing"
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, Mapping):
        return "keys with values" if given else "{}"
    if isinstance(given, list | tuple) and not given:
        return "[]"
    text = one_line(repr(given))
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
