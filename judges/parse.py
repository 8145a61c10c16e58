"""Replies to typed outcomes. Strict: the whole field, a whole label, nothing quoted from the inputs.

A reply that is not exactly what the contract asks for raises ``ReplyError``; its message tells the judge what to
mend. Nothing is guessed: peers that search a reply for the last digit turn ``score = 10`` into 0.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judges.errors import ReplyError
from judges.labelled import bare_list, labels_schema, read_labels
from judges.listed import list_schema, read_list
from judges.self_rating import self_rating
from judges.types import LABEL, Inputs, Outcome, ReplyContract, word_per_value

_FENCE = re.compile(r"\A```(?:json|python)?[ \t]*\n(.*?)\n?```\Z", re.DOTALL)
_OBJECT_START = re.compile(r'\{\s*["}]')
_MARKER = re.compile(r"\[\[([^\[\]\n]{1,40})\]\]")
_DECORATION = " \t.*_`>#"
_AROUND_WORD = " \t\r\n.,:;!*_`'\"\u201c\u201d\u2018\u2019#>()"
_ESCAPE = re.compile(r"(?<!\\)\\++(?:u([0-9a-fA-F]{4})|[nrtbf])")
_NOT_LETTERS = re.compile(r"[\W_]+")
_MOST_TRIED = 50


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The part of a reply that counts, and the explanation that came with it; of a list, what was left out."""

    outcome: Outcome
    reason: str


def json_schema(contract: ReplyContract) -> dict[str, Any]:
    """The JSON Schema of a contract, explanation first so that the choice follows from it."""
    if contract.listed is not None:
        return list_schema(contract.listed)
    if contract.form == "labels":
        return labels_schema(contract)
    properties: dict[str, Any] = {name: {"type": "string"} for name in contract.spoken}
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
    quotable = {"brackets": _parse_brackets, "word": _parse_word, "labels": _parse_labels}
    if contract.form in quotable:
        return quotable[contract.form](text, contract, inputs)
    if contract.form == "text":
        return _parse_text(text, contract)
    if contract.form == "rating":
        return ParsedReply(self_rating(text), "")
    value = _judges_own_object(text, contract, inputs)
    if contract.listed is not None:
        return ParsedReply(*read_list(value, contract.listed, map(_letters, _whole(inputs)), _letters))
    return _parse_object(value, contract)


def _body(text: str) -> str:
    """The reply without white space and the one code fence around it."""
    stripped = text.strip()
    fenced = _FENCE.match(stripped)
    return fenced.group(1).strip() if fenced else stripped


def _judges_own_object(text: str, contract: ReplyContract, inputs: Inputs) -> Mapping[str, Any]:
    """The one JSON object of the reply: bare, in one code fence, or after reasoning text, and then at the end."""
    body = _body(text)
    found = [entry for entry in _objects(body) if any(name in entry.value for name in contract.counted)]
    if not found:
        raise ReplyError(f"the reply holds no JSON object with {_names(contract.counted)}")
    judged = _letters_judged(contract, inputs)
    own = [entry for entry in found if not _repeats(entry, judged)]
    if not own:
        raise ReplyError("the JSON object repeats one that stands in the texts being judged; reply with your own")
    if len(own) > 1:
        raise ReplyError("the reply holds more than one JSON object; reply with exactly one")
    (verdict,) = own
    if body[verdict.end :].strip().strip("`").strip():
        raise ReplyError("the JSON object must be the end of the reply")
    return verdict.value


@dataclass(frozen=True, slots=True)
class _Found:
    """A JSON object within a text: what it says, as it is spelled, and the offset just behind it."""

    value: Mapping[str, Any]
    source: str
    end: int


def _objects(text: str) -> Iterator[_Found]:
    """The outermost JSON objects in a text."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeated_keys)
    tried = 0
    start = _OBJECT_START.search(text)
    while start:
        tried += 1
        if tried > _MOST_TRIED:  # each may take as long as the text
            raise ReplyError("the reply holds too many JSON objects or pieces of them; reply with exactly one")
        try:
            value, end = decoder.raw_decode(text, start.start())
            yield _Found(value, text[start.start() : end], end)
        except (ValueError, RecursionError):
            end = start.start() + 1
        start = _OBJECT_START.search(text, end)


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which a key that stands twice has no usable value, where JSON libraries quietly keep the last."""
    value = dict(pairs)
    if len(value) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        value.update({name: None for name, count in counts.items() if count > 1})
    return value


def _repeats(found: _Found, judged: str) -> bool:
    """Whether the texts being judged say the same, in whatever order, nesting, spacing or escapes."""
    if not judged or all(value == [] for value in found.value.values()):  # an empty list has nothing to repeat
        return False
    return _letters(found.source) in judged or all(
        _letters(f"{name} {value}") in judged for name, value in found.value.items()
    )


def _letters_judged(contract: ReplyContract, inputs: Inputs) -> str:
    """Letters and digits of all texts being judged; empty where they cannot hold an object of this contract."""
    texts = "\n".join(_texts(inputs))
    holds_name = any(name in texts for name in contract.counted) or "\\u" in texts
    return _letters(texts) if holds_name and "{" in texts else ""


def _letters(text: str) -> str:
    """Letters and digits only, JSON's escapes undone however often they are escaped again."""
    plain = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else " ", text)
    return _NOT_LETTERS.sub("", plain).casefold()


def _parse_object(value: Mapping[str, Any], contract: ReplyContract) -> ParsedReply:
    expected = {*contract.spoken, *contract.choices}
    if missing := expected - value.keys():
        raise ReplyError(f"the JSON object lacks {_names(missing)}")
    if unknown := value.keys() - expected:
        raise ReplyError(f"the JSON object has {_names(unknown)}, which was not asked for")
    reason, *texts = (_text(name, value[name]) for name in contract.spoken) if contract.reason else ("",)
    chosen = {name: _chosen(name, value[name], allowed) for name, allowed in contract.choices.items()}
    if contract.label is not None:
        label = chosen.pop(contract.label)
        return ParsedReply({LABEL: label, **chosen, **dict(zip(contract.texts, texts, strict=True))}, reason)
    return ParsedReply(next(iter(chosen.values())) if len(chosen) == 1 else chosen, reason)


def _text(name: str, given: Any) -> str:
    if not isinstance(given, str):
        raise ReplyError(f"{name!r} must be text")
    return given.strip()


def _chosen(name: str, given: Any, allowed: Mapping[str | int, int | str]) -> int | str:
    """The value of one choice: a whole label. ``True`` is not 1, ``2.0`` is not 2, ``"2 of 3"`` is not 2."""
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise ReplyError(f"{name!r} must be one of {_names(allowed)}")
    if given in allowed:
        return allowed[given]
    for word, value in allowed.items():
        if isinstance(given, str) and given.strip().casefold() == str(word).casefold():
            return value
    raise ReplyError(f"{name!r} must be one of {_names(allowed)}, not {str(given)[:40]!r}")


def _parse_brackets(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:
    ((_, allowed),) = contract.choices.items()
    stripped = text.strip()
    markers = list(_MARKER.finditer(stripped))
    if not markers:
        raise ReplyError(f"the reply must end in one of {_markers(allowed)}")
    last, word = markers[-1], _word(markers[-1])
    planted = [piece for piece in _texts(inputs) if _MARKER.search(piece)]
    quotable = {_word(marker) for piece in planted for marker in _MARKER.finditer(piece)}
    if {_word(marker) for marker in markers} - {word} - quotable:
        raise ReplyError("the reply holds different verdicts in double brackets; give exactly one, at the end")
    lines = _lines(stripped)
    alone = not planted or lines[-1] == last.group()
    if stripped[last.end() :].strip(_DECORATION) or not alone:
        raise ReplyError(f"end the reply with {_markers(allowed)} on a line of its own")
    if any(_ends_in_quote(lines, piece) for piece in planted):
        raise ReplyError(f"the reply ends in words of a text being judged; end it with your own {_markers(allowed)}")
    for choice, value in allowed.items():
        if str(choice) == word:
            return ParsedReply(value, stripped[: last.start()].strip())
    raise ReplyError(f"the verdict must be one of {_markers(allowed)}")


def _parse_word(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:
    """One allowed word is the whole reply; only case, punctuation and Markdown around it do not count."""
    ((_, allowed),) = contract.choices.items()
    said = _bare(text)
    for word, value in allowed.items():
        if said == _bare(str(word)):
            if said in {_bare(judged) for judged in (inputs.query.text, *(e.document.text for e in inputs.documents))}:
                raise ReplyError("the reply is the whole of a text being judged, and cannot be told from a quote of it")
            return ParsedReply(value, "")
    raise ReplyError(f"the whole reply must be one word: {' or '.join(map(str, word_per_value(allowed)))}")


def _bare(text: str) -> str:
    return " ".join(text.strip(_AROUND_WORD).split()).casefold()


def _parse_labels(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:
    """One label per item, as the object that was asked for or as the bare list of the published prompts."""
    bare = bare_list(_body(text), contract, _texts(inputs))
    return ParsedReply(read_labels(bare or _judges_own_object(text, contract, inputs), contract), "")


def _parse_text(text: str, contract: ReplyContract) -> ParsedReply:
    """All of the text is the outcome, unless all of it is one of the contract's words."""
    stripped = text.strip()
    if not stripped:
        raise ReplyError("the reply was empty")
    special = [pair for words in contract.choices.values() for pair in words.items()]
    for word, value in special:
        if stripped.strip(_DECORATION).casefold() == str(word).casefold():
            return ParsedReply(value, "")
    return ParsedReply(stripped, "")


def _word(marker: re.Match[str]) -> str:
    return marker.group(1).strip()


def _lines(text: str) -> list[str]:
    """The lines that say something, without decoration and with single spaces only."""
    return [line for line in (" ".join(raw.split()).strip(_DECORATION) for raw in text.splitlines()) if line]


def _ends_in_quote(lines: Sequence[str], piece: str) -> bool:
    """Whether the last line stands in ``piece`` behind the same line as here.

    Where a line has nothing before it, here or there, it cannot be told from a quote either.
    """
    theirs = _lines(piece)
    return any(
        line == lines[-1] and (at == 0 or len(lines) == 1 or theirs[at - 1] == lines[-2])
        for at, line in enumerate(theirs)
    )


def _texts(inputs: Inputs) -> Iterable[str]:
    yield inputs.query.text
    yield from inputs.query.metadata.values()
    for entry in inputs.documents:
        yield entry.document.text
        yield entry.reason
        yield from entry.document.metadata.values()
    for answer in inputs.answers:
        yield answer.text
        yield from answer.metadata.values()
    yield from inputs.items


def _whole(inputs: Inputs) -> Iterable[str]:
    """The texts that nobody would repeat as a whole: not a title, a name, or an entry of a list to go on with."""
    yield inputs.query.text
    yield from (entry.document.text for entry in inputs.documents)
    yield from (answer.text for answer in inputs.answers)


def _names(words: Iterable[str | int]) -> str:
    return ", ".join(repr(word) for word in words)


def _markers(words: Iterable[str | int]) -> str:
    return ", ".join(f"[[{word}]]" for word in words)
