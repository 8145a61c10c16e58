"""Replies to typed outcomes. Strict: the whole field, a whole label, nothing quoted from the inputs.

A reply that is not exactly what the contract asks for raises ``ReplyError``; its message tells the judge what to
mend. Nothing is guessed: peers that search a reply for the last digit turn ``score = 10`` into 0.

A reply that is nothing but labels is the judge's, whatever the texts hold. One with words of its own may be a quotation
of them: where the texts hold as much, ``UnclearReplyError`` has the judge asked for the same with a mark
(``ReplyContract.mark``). A reply with its mark is the judge's, again whatever the texts hold.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from judges.contracts import number_asked
from judges.errors import ReplyError, UnclearReplyError
from judges.reply_text import (
    ShownTexts,
    ends_within_reasoning,
    has_brackets,
    letters,
    list_alone,
    lone_end,
    read_relaxed,
    unwrapped,
    value_alone,
    without_reasoning,
)
from judges.self_rating import NAMED, self_rating
from judges.types import LABEL, Form, Inputs, Outcome, ReplyContract, word_per_value

_OBJECT_START = re.compile(r'\{\s*["}]')
_MARKER = re.compile(r"\[\[([^\[\]\n]{1,40})\]\]")
_DECORATION = " \t.*_`>#"
_AROUND_WORD = " \t\r\n.,:;!*_`'\"\u201c\u201d\u2018\u2019#>()"
_NUMBER = re.compile(r"[*_`]*(\d+)[*_`]*\.?[*_`]*")
_NAME = re.compile(NAMED + r"[ \t*_]*", re.IGNORECASE)
_SENTENCE_ENDS = (".", "!", "?", "\u3002", "\uff01", "\uff1f")
_QUOTED_WORDS = 3
"""Words before a verdict that tell a quotation of it from one's own."""
_MOST_TRIED = 50
_SHORT = 6
"""Characters below which a reason cannot be searched in an encoding, and the field's name is."""
_LONG = 12
"""Characters from which on a list does not stand in a text by chance."""


class ParsedReply(Struct, frozen=True):
    """The part of a reply that counts, and the explanation that came with it; of a list, what was left out."""

    outcome: Outcome
    reason: str


def parse_reply(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:
    """Read one reply.

    Args:
        text: the whole reply.
        contract: what it must consist of.
        inputs: what was judged.

    Raises:
        UnclearReplyError: the reply may be a quotation of the inputs; the next one must carry a mark.
        ReplyError: the reply is outside the contract.
    """
    reply = without_reasoning(text)
    shown = ShownTexts(
        inputs.query.text, _texts(inputs if contract.listed is None else _without_list_so_far(inputs, reply))
    )

    def read(part: str) -> ParsedReply:
        return _READERS[contract.form](part, contract, shown)

    if (ended := lone_end(reply)) is None:
        return read(reply)
    if contract.is_object:  # a text within an object may speak of such an end
        with suppress(ReplyError):
            return read(reply)
    before, tag, behind = ended
    if contract.mark or not (shown.hold_sign(tag) or _breaks_off(before, behind) or _is_reply(before, contract, read)):
        return read(behind)
    try:
        return read(reply)
    except ReplyError as error:
        raise UnclearReplyError(f"{tag} may be a quotation, so that it ends no reasoning; {error}") from None


def _without_list_so_far(inputs: Inputs, reply: str) -> Inputs:
    """The inputs without items that the reply has again, as a list does that goes on from them; an object is none."""
    again = letters(reply)
    others = [item for item in inputs.items if has_brackets(item) or letters(item) not in again]
    return replace(inputs, items=tuple(others))


def _breaks_off(before: str, behind: str) -> bool:
    """Whether a tag stands within a line, and no sentence ends before it."""
    return not _ends_sentence(before) and not behind.startswith(("\n", "\r"))


def _ends_sentence(text: str) -> bool:
    return not text or text.rstrip(" \n*_`)").endswith(_SENTENCE_ENDS)


def _is_reply(before: str, contract: ReplyContract, read: Callable[[str], ParsedReply]) -> bool:
    """Whether what stands before a tag is a reply by itself, where not any words are one."""
    if contract.form == "text" or (contract.form == "rating" and not re.search(r"\d", before)):
        return False
    try:
        read(before)
    except UnclearReplyError:
        return True
    except ReplyError:
        return False
    return True


def _read_object(text: str, contract: ReplyContract, shown: ShownTexts) -> ParsedReply:
    """One JSON object with the fields asked for and no others; where one number is asked for, that number alone."""
    body = unwrapped(text)
    if (number := _number_alone(body, contract)) is not None:
        return ParsedReply(number, "")
    value = _judges_object(body, contract, shown)
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


def _number_alone(body: str, contract: ReplyContract) -> int | str | None:
    """The label of a reply such as ``2``, which prompts with a scale of whole numbers ask for as published."""
    if contract.mark or contract.texts or len(contract.choices) != 1:
        return None
    ((_, words),) = contract.choices.items()
    written = {str(word): value for word, value in words.items() if isinstance(word, int)}
    return written.get(_whole_number(_value_named(body)))


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


def _read_list(text: str, contract: ReplyContract, shown: ShownTexts) -> ParsedReply:
    """The texts of a list, without surrounding white space, and in place of a reason what was left out of them.

    A text whose letters and digits are those of one further up, or of the query, says nothing new and is left out; the
    number of texts must be right without it, but for the rule's ``leeway``. Texts that merely resemble each other are
    all kept: which of them says it better, people decide.
    """
    assert contract.listed is not None
    rule = contract.listed
    entries, repeated = dict[str, str](), list[str]()
    query = letters(shown.query)
    for entry in map(str.strip, _entries(text, contract, shown, "texts")):
        compared = letters(entry)
        if not compared:
            raise ReplyError(f"{rule.name!r} holds an empty text")
        if compared == query:
            repeated.append(f"{entry[:60]!r} repeats the query")
        elif compared in entries:
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


def _read_labels(text: str, contract: ReplyContract, shown: ShownTexts) -> ParsedReply:
    """One label for each item, in their order. Nothing is shifted, filled up or left out."""
    ((name, words),) = contract.choices.items()
    entries = _entries(text, contract, shown, "labels")
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


def _entries(text: str, contract: ReplyContract, shown: ShownTexts, kind: str) -> list[Any]:
    """The list of a reply: its object's one field, or the published prompts' bare list."""
    (name,) = contract.counted
    body = list_alone(text)
    bare = read_relaxed(body) if body.startswith("[") and not contract.mark else None
    if isinstance(bare, list):
        value: Mapping[str, Any] = {name: bare}
        if _may_be_quoted(value, contract, shown):
            raise _unclear("the list")
    else:
        value = _judges_object(body, contract, shown)
    if unknown := [key for key in value if key != name]:
        raise ReplyError(f"the JSON object has {unknown[0]!r}, which was not asked for")
    entries = value.get(name)
    if not isinstance(entries, list) or (kind == "texts" and any(not isinstance(entry, str) for entry in entries)):
        raise ReplyError(f"{name!r} must be a list of {kind}")
    return entries


def _unclear(what: str) -> UnclearReplyError:
    return UnclearReplyError(f"{what} repeats one that stands in the texts being judged; reply with your own")


def _judges_object(body: str, contract: ReplyContract, shown: ShownTexts) -> Mapping[str, Any]:
    """The judge's JSON object, without its mark: the last of the reply, and nothing behind it.

    One that is not spelled as JSON spells it is all of the reply.
    """
    candidates = [entry for entry in _objects(body) if any(name in entry.value for name in contract.counted)]
    if not candidates and body.startswith("{"):
        relaxed = read_relaxed(body, _without_repeated_keys)
        if isinstance(relaxed, dict) and any(name in relaxed for name in contract.counted):
            candidates = [_JsonObject(relaxed, 0, len(body))]
    if not candidates:
        raise ReplyError(f"the reply holds no JSON object with {_names(contract.counted)}")
    *others, reply = candidates
    if contract.mark:
        ((name, mark),) = contract.marking.items()
        marked = [entry for entry in candidates if letters(str(entry.value.get(name))) == mark]
        if marked != [reply]:
            raise ReplyError(f"the one JSON object with {mark!r} as {name!r} must be the end of the reply")
    else:
        alone = reply.start == 0 and reply.end == len(body)
        if _may_be_quoted(reply.value, contract, shown, alone=alone):
            raise _unclear("the JSON object")
        if any(not _may_be_quoted(other.value, contract, shown, alone=False) for other in others):
            raise UnclearReplyError("the reply holds more than one JSON object; reply with exactly one")
        if ends_within_reasoning(body[: reply.start]):
            raise UnclearReplyError("the JSON object stands within reasoning that does not end; reply behind it")
    if body[reply.end :].strip().strip("`").strip():
        raise ReplyError("the JSON object must be the end of the reply")
    return {name: value for name, value in reply.value.items() if name not in contract.marking}


def _may_be_quoted(value: Mapping[str, Any], contract: ReplyContract, shown: ShownTexts, *, alone: bool = True) -> bool:
    """Whether the texts hold what an object says in words, beside the name of a field; without words, its labels.

    A judge may well explain itself in words of a text. Labels ``alone`` are no quotation.
    """
    given = [value[name] for name in contract.spoken if name in value]
    given += value.get(contract.counted[0], ()) if contract.form == "list" else ()
    words = [text for text in given if isinstance(text, str) and letters(text)]
    if not words:
        labels = [f"{name} {value[name]}" for name in contract.counted if name in value]
        if alone and not contract.spoken:
            return False
        return shown.hold(*labels) or shown.hold_encoded(contract.counted[0])
    if shown.hold(*words):
        together = "".join(words) if contract.form == "list" else ""
        if together and shown.hold_sign(f"[{together}"):
            return True
        names = [*contract.spoken, *contract.counted]
        if any(shown.hold(f"{name} {word}") or shown.hold(f"{word} {name}") for name in names for word in words):
            return True
        if len(words) > 1 and len(together) >= _LONG and shown.hold(together):
            return True
    longest = max(words, key=len)
    return shown.hold_encoded(longest if len(longest) >= _SHORT else contract.counted[0])


class _JsonObject(Struct, frozen=True):
    """A JSON object within a text: what it says, where it begins, and the offset just behind it."""

    value: Mapping[str, Any]
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
            yield _JsonObject(value, start.start(), end)
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


def _read_brackets(text: str, contract: ReplyContract, shown: ShownTexts) -> ParsedReply:
    """A verdict in double brackets at the end, alone or behind an explanation."""
    ((_, allowed),) = contract.choices.items()
    stripped = unwrapped(text)
    markers = list(_MARKER.finditer(stripped))
    if not markers:
        raise ReplyError(f"the reply must end in one of {_markers(contract)}")
    last, word = markers[-1], _word(markers[-1])
    before, behind = stripped[: last.start()].lstrip(), stripped[last.end() :].strip(_DECORATION)
    others = {_word(marker) for marker in markers} - {word}
    if any(not shown.hold_sign(f"[[{other}]]") for other in others) and not contract.mark:
        raise UnclearReplyError("the reply holds different verdicts in double brackets; give exactly one, at the end")
    if behind.casefold() != contract.mark:
        raise ReplyError(f"end the reply with {_markers(contract)} on a line of its own")
    if not contract.mark and _words(before) and _ends_in_quote(before, word, shown):
        own = _markers(contract)
        raise UnclearReplyError(f"the reply ends in words of a text being judged; end it with your own {own}")
    for choice, value in allowed.items():
        if str(choice) == word:
            return ParsedReply(value, before.rstrip())
    raise ReplyError(f"the verdict must be one of {_markers(contract)}")


def _words(text: str) -> bool:
    """Whether there is more than decoration; Markdown's mark of a quotation is more."""
    return ">" in text or bool(letters(text))


def _ends_in_quote(before: str, word: str, shown: ShownTexts) -> bool:
    """Whether the verdict may be quoted: the texts have it behind the same words, or as it is here.

    Where they have it in brackets, one's own stands on a line of its own behind a whole sentence.
    """
    words = before.split()[-_QUOTED_WORDS:]
    if shown.hold(" ".join([*words, word])) or shown.hold_encoded(" ".join(words)):
        return True
    marker = f"[[{word}]]"
    held = shown.hold_sign(marker) or shown.hold_encoded(marker)
    return held and (_words(before.rpartition("\n")[2]) or not _ends_sentence(before))


def _read_word(text: str, contract: ReplyContract, shown: ShownTexts) -> ParsedReply:  # noqa: ARG001 - as the others
    """One allowed word, or the number that it stands for, is the whole reply.

    Only case, punctuation and Markdown around it do not count, nor a name in front (``Answer: Yes``).
    """
    ((_, allowed),) = contract.choices.items()
    reply = _without_mark(_value_named(text), contract)
    for word, value in allowed.items():
        if _bare(reply) == _bare(str(word)) or _whole_number(reply) == str(value):
            return ParsedReply(value, "")
    raise ReplyError(f"the whole reply must be one word: {' or '.join(map(str, word_per_value(allowed)))}")


def _value_named(text: str) -> str:
    return value_alone(_NAME.sub("", unwrapped(text), count=1))


def _whole_number(text: str) -> str:
    """The number that a reply is, but for bold letters and a full stop: ``.1`` and ``No. 1`` are none."""
    number = _NUMBER.fullmatch(text)
    return number[1] if number else ""


def _bare(text: str) -> str:
    return " ".join(text.strip(_AROUND_WORD).split()).casefold()


def _without_mark(text: str, contract: ReplyContract) -> str:
    """What stands before the mark.

    Raises:
        ReplyError: the reply does not end in it.
    """
    if not contract.mark:
        return text
    value, mark, behind = text.rpartition(contract.mark)
    if not mark or letters(behind):
        raise ReplyError(f"the reply must end in {contract.mark}")
    return value.strip(_AROUND_WORD)


def _read_rating(text: str, contract: ReplyContract, shown: ShownTexts) -> ParsedReply:
    """A whole number; what has none is an answer or says that there is none."""
    reply = value_alone(text)
    if contract.mark:
        reply = _without_mark(reply, contract)
        if not re.search(r"\d", reply):
            raise ReplyError(f"reply with one whole number and {contract.mark} behind it")
    rating = self_rating(reply, levels=contract.levels)
    words = re.sub(r"^\W*\d", "", reply)
    free = words != reply and letters(words) not in ("", letters(contract.levels.get(rating, "")))
    if free and not contract.mark and (shown.hold(f"{rating} {words}") or shown.hold_encoded(words)):
        raise _unclear("the rating")
    return ParsedReply(rating, "")


def _read_text(text: str, contract: ReplyContract, shown: ShownTexts) -> ParsedReply:  # noqa: ARG001 - as the others
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


def _texts(inputs: Inputs) -> Iterable[str]:
    yield inputs.query.text
    yield from (message.text for message in inputs.query.messages)
    yield from inputs.query.metadata.values()
    yield inputs.query.reference or ""
    for entry in inputs.documents:
        yield entry.document.text
        yield entry.reason
        yield from entry.document.metadata.values()
    for answer in inputs.answers:
        yield answer.text
        yield from answer.metadata.values()
    yield from inputs.items


def _names(words: Iterable[str | int]) -> str:
    return ", ".join(repr(word) for word in words)


def _markers(contract: ReplyContract) -> str:
    ((_, words),) = contract.choices.items()
    return ", ".join(f"[[{word}]] {contract.mark}".rstrip() for word in words)


_READERS: Mapping[Form, Callable[[str, ReplyContract, ShownTexts], ParsedReply]] = {
    "json": _read_object,
    "list": _read_list,
    "labels": _read_labels,
    "brackets": _read_brackets,
    "word": _read_word,
    "text": _read_text,
    "rating": _read_rating,
}
