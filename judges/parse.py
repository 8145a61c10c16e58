"""Replies to typed outcomes. Strict: the whole field, a whole label, nothing quoted from the inputs.

A reply that is not exactly what the contract asks for raises ``ReplyError``; its message tells the judge what to
mend. Nothing is guessed: peers that search a reply for the last digit turn ``score = 10`` into 0.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from judges.contracts import number_asked
from judges.errors import ReplyError
from judges.reply_text import (
    behind_lone_end,
    ends_within_reasoning,
    folded,
    letters,
    may_hold_marker,
    may_hold_object,
    read_relaxed,
    unwrapped,
    value_alone,
    without_reasoning,
)
from judges.self_rating import self_rating
from judges.types import LABEL, Form, Inputs, Outcome, ReplyContract, word_per_value

_OBJECT_START = re.compile(r'\{\s*["}]')
_MARKER = re.compile(r"\[\[([^\[\]\n]{1,40})\]\]")
_DECORATION = " \t.*_`>#"
_AROUND_WORD = " \t\r\n.,:;!*_`'\"\u201c\u201d\u2018\u2019#>()"
_SPACE = re.compile(r"\s+")
_MOST_TRIED = 50


class ParsedReply(Struct, frozen=True):
    """The part of a reply that counts, and the explanation that came with it; of a list, what was left out."""

    outcome: Outcome
    reason: str


def parse_reply(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:
    """Read one reply.

    Args:
        text: the whole reply.
        contract: what it must consist of.
        inputs: what was judged. A JSON object or marker that merely repeats the inputs is not the judge's.

    Raises:
        ReplyError: the reply is outside the contract.
    """
    read = _READERS[contract.form]
    reply = without_reasoning(text)
    behind = behind_lone_end(reply)
    if behind is None:
        return read(reply, contract, inputs)
    try:  # a text within an object may speak of such an end, so all of the reply is read first
        return read(reply if contract.is_object else behind, contract, inputs)
    except ReplyError:
        return read(behind, contract, inputs)


def _read_object(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:
    """One JSON object with the fields asked for and no others."""
    value = _judges_own_object(unwrapped(text), contract, inputs)
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


def _read_list(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:
    """The texts of a list, without surrounding white space, and in place of a reason what was left out of them.

    A text whose letters and digits are those of one further up says nothing new and is left out; the number of texts
    must be right without it, but for the rule's ``leeway``. Texts that merely resemble each other are all kept: which
    of them says it better, people decide.
    """
    assert contract.listed is not None
    rule = contract.listed
    inputs_whole = set(map(letters, _whole(inputs))) - {""}
    entries, repeated = dict[str, str](), list[str]()
    for entry in map(str.strip, _entries(text, contract, inputs, "texts")):
        compared = letters(entry)
        if not compared:
            raise ReplyError(f"{rule.name!r} holds an empty text")
        if compared in inputs_whole:
            raise ReplyError(f"{entry[:60]!r} repeats a whole text that you were given; write entries of your own")
        if compared in entries:
            repeated.append(f"{entry[:60]!r} repeats {entries[compared][:60]!r}")
        else:
            entries[compared] = entry
    texts, notes = tuple(entries.values()), [f"Left out: {'; '.join(repeated)}."] if repeated else []
    if rule.leeway == "fewer" and 0 < len(texts) < rule.fewest:
        notes.append(f"{len(texts)} of the {rule.fewest} texts asked for.")
    elif rule.leeway == "more" and rule.most is not None and len(texts) > rule.most:
        beyond = ", ".join(repr(entry[:60]) for entry in texts[rule.most :])
        notes.append(f"Left out, since at most {rule.most} texts were asked for, of {len(texts)}: {beyond}.")
        texts = texts[: rule.most]
    elif len(texts) < rule.fewest or (rule.most is not None and len(texts) > rule.most):
        because = f"; {'; '.join(repeated)}" if repeated else ""
        raise ReplyError(f"{rule.name!r} must hold {number_asked(contract)}, not {len(texts)}{because}")
    return ParsedReply(texts, " ".join(notes))


def _read_labels(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:
    """One label for each item, in their order. Nothing is shifted, filled up or left out."""
    ((name, words),) = contract.choices.items()
    entries = _entries(text, contract, inputs, "labels")
    if len(entries) != contract.length:
        raise ReplyError(f"{name!r} must hold {number_asked(contract)}, not {len(entries)}")
    spelled = {str(word).casefold(): str(label) for word, label in words.items()}
    labels = []
    for place, entry in enumerate(entries, start=1):
        label = spelled.get(entry.strip().casefold()) if isinstance(entry, str) else None
        if label is None:
            raise ReplyError(f"label {place} must be one of {_names(words)}, not {str(entry)[:40]!r}")
        labels.append(label)
    return ParsedReply(tuple(labels), "")


def _entries(text: str, contract: ReplyContract, inputs: Inputs, kind: str) -> list[Any]:
    """The list of a reply: its object's one field, or the published prompts' bare list."""
    (name,) = contract.counted
    body = unwrapped(text)
    value = _bare_list(body, name, inputs) or _judges_own_object(body, contract, inputs)
    if unknown := [key for key in value if key != name]:
        raise ReplyError(f"the JSON object has {unknown[0]!r}, which was not asked for")
    entries = value.get(name)
    if not isinstance(entries, list) or (kind == "texts" and any(not isinstance(entry, str) for entry in entries)):
        raise ReplyError(f"{name!r} must be a list of {kind}")
    return entries


def _bare_list(body: str, name: str, inputs: Inputs) -> Mapping[str, Any] | None:
    given = read_relaxed(body) if body.startswith("[") else None
    if not isinstance(given, list):
        return None
    compared = _compact(body)
    if given and any(compared in _compact(piece) for piece in _texts(inputs)):
        raise ReplyError("the list repeats one that stands in the texts being judged; reply with your own")
    return {name: given}


def _compact(text: str) -> str:
    return _SPACE.sub("", folded(text)).replace("'", '"').casefold()


def _judges_own_object(body: str, contract: ReplyContract, inputs: Inputs) -> Mapping[str, Any]:
    """The one JSON object of the reply: bare, in one code fence, or after reasoning text, and then at the end.

    One that is not spelled as JSON spells it is all of the reply.
    """
    candidates = [entry for entry in _objects(body) if any(name in entry.value for name in contract.counted)]
    if not candidates and body.startswith("{"):
        relaxed = read_relaxed(body, _without_repeated_keys)
        if isinstance(relaxed, dict) and any(name in relaxed for name in contract.counted):
            candidates = [_JsonObject(relaxed, body, 0, len(body))]
    if not candidates:
        raise ReplyError(f"the reply holds no JSON object with {_names(contract.counted)}")
    judged = _letters_judged(contract, inputs)
    replies = [entry for entry in candidates if not _repeats(entry, judged)]
    if not replies:
        raise ReplyError("the JSON object repeats one that stands in the texts being judged; reply with your own")
    if len(replies) > 1:
        raise ReplyError("the reply holds more than one JSON object; reply with exactly one")
    (reply,) = replies
    if ends_within_reasoning(body[: reply.start]):
        raise ReplyError("the JSON object stands within reasoning that does not end; reply behind it")
    if body[reply.end :].strip().strip("`").strip():
        raise ReplyError("the JSON object must be the end of the reply")
    return reply.value


class _JsonObject(Struct, frozen=True):
    """A JSON object within a text: what it says, as it is spelled, where it begins, and the offset just behind it."""

    value: Mapping[str, Any]
    source: str
    start: int
    end: int


def _objects(text: str) -> Iterator[_JsonObject]:
    tried = 0
    start = _OBJECT_START.search(text)
    while start:
        tried += 1
        if tried > _MOST_TRIED:  # each may take as long as the text
            raise ReplyError("the reply holds too many JSON objects or pieces of them; reply with exactly one")
        try:
            value, end = _DECODER.raw_decode(text, start.start())
            yield _JsonObject(value, text[start.start() : end], start.start(), end)
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


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_without_repeated_keys, strict=False)
"""Lines may break within texts."""


def _repeats(entry: _JsonObject, judged: str) -> bool:
    """Whether the texts being judged say the same, in whatever order, nesting, spacing or escapes."""
    if not judged or all(value == [] for value in entry.value.values()):  # an empty list has nothing to repeat
        return False
    return letters(folded(entry.source)) in judged or all(
        letters(folded(f"{name} {value}")) in judged for name, value in entry.value.items()
    )


def _letters_judged(contract: ReplyContract, inputs: Inputs) -> str:
    """Letters and digits of all texts being judged; empty where they cannot hold an object of this contract."""
    if contract.listed is not None:  # the list so far stands in the next one
        inputs = replace(inputs, items=())
    texts = "\n".join(_texts(inputs))
    if not may_hold_object(texts):
        return ""
    plain = folded(texts)
    seen = plain.casefold()
    holds_name = any(folded(name).casefold() in seen for name in contract.counted)
    return letters(plain) if holds_name and "{" in plain else ""


def _read_brackets(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:
    ((_, allowed),) = contract.choices.items()
    stripped = text.strip()
    markers = list(_MARKER.finditer(stripped))
    if not markers:
        raise ReplyError(f"the reply must end in one of {_markers(allowed)}")
    last, word = markers[-1], _word(markers[-1])
    planted = [piece for piece in map(folded, filter(may_hold_marker, _texts(inputs))) if _MARKER.search(piece)]
    quotable = {_word(marker) for piece in planted for marker in _MARKER.finditer(piece)}
    if {_word(marker) for marker in markers} - {word} - quotable:
        raise ReplyError("the reply holds different verdicts in double brackets; give exactly one, at the end")
    lines = _lines(stripped)
    alone = not planted or lines[-1] == last.group()
    if stripped[last.end() :].strip(_DECORATION) or not alone:
        raise ReplyError(f"end the reply with {_markers(allowed)} on a line of its own")
    if planted and any(_ends_in_quote(_lines(folded(stripped)), piece) for piece in planted):
        raise ReplyError(f"the reply ends in words of a text being judged; end it with your own {_markers(allowed)}")
    for choice, value in allowed.items():
        if str(choice) == word:
            return ParsedReply(value, stripped[: last.start()].strip())
    raise ReplyError(f"the verdict must be one of {_markers(allowed)}")


def _read_word(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:
    """One allowed word is the whole reply; only case, punctuation and Markdown around it do not count."""
    ((_, allowed),) = contract.choices.items()
    reply = _bare(value_alone(text))
    for word, value in allowed.items():
        if reply == _bare(str(word)):
            if any(reply == _bare(folded(judged)) for judged in (inputs.query.text, *_documents(inputs))):
                raise ReplyError("the reply is the whole of a text being judged, and cannot be told from a quote of it")
            return ParsedReply(value, "")
    raise ReplyError(f"the whole reply must be one word: {' or '.join(map(str, word_per_value(allowed)))}")


def _bare(text: str) -> str:
    return " ".join(text.strip(_AROUND_WORD).split()).casefold()


def _read_rating(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:  # noqa: ARG001 - as the others
    """A whole number; what has none is an answer or says that there is none."""
    return ParsedReply(self_rating(value_alone(text), levels=contract.levels), "")


def _read_text(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:  # noqa: ARG001 - as the others
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
    yield from (message.text for message in inputs.query.messages)
    yield from inputs.query.columns.values()
    for entry in inputs.documents:
        yield entry.document.text
        yield entry.reason
        yield from entry.document.metadata.values()
    for answer in inputs.answers:
        yield answer.text
        yield from answer.metadata.values()
    yield from inputs.items


def _whole(inputs: Inputs) -> Iterable[str]:
    """The texts that nobody would repeat as a whole: no title, name, earlier question, or entry of a list."""
    yield inputs.query.text
    yield from _documents(inputs)
    yield from (answer.text for answer in inputs.answers)


def _documents(inputs: Inputs) -> Iterator[str]:
    return (entry.document.text for entry in inputs.documents)


def _names(words: Iterable[str | int]) -> str:
    return ", ".join(repr(word) for word in words)


def _markers(words: Iterable[str | int]) -> str:
    return ", ".join(f"[[{word}]]" for word in words)


_READERS: Mapping[Form, Callable[[str, ReplyContract, Inputs], ParsedReply]] = {
    "json": _read_object,
    "list": _read_list,
    "labels": _read_labels,
    "brackets": _read_brackets,
    "word": _read_word,
    "text": _read_text,
    "rating": _read_rating,
}
