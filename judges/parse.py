"""Parses replies into typed outcomes, strictly: whole fields, whole labels, nothing quoted from the inputs.

A reply that does not match its contract exactly raises ``ReplyError``; the message tells the judge what to correct.
Nothing is guessed: other tools search a reply for its last digit, and turn ``score = 10`` into 0.

A reply of labels alone always counts as the judge's. A reply with text may be quoted from the inputs: if they contain
that text, ``UnclearReplyError`` makes the caller ask again for a reply with a mark (``ReplyContract.mark``). A reply
with its mark always counts as the judge's.
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

from judges.contracts import endings, number_asked
from judges.errors import ReplyError, UnclearReplyError
from judges.reply_text import (
    ShownTexts,
    ends_within_reasoning,
    has_brackets,
    letters,
    list_alone,
    read_relaxed,
    split_at_closing_tag,
    unwrapped,
    value_alone,
    without_reasoning,
)
from judges.self_rating import NAMED, self_rating
from judges.types import LABEL, Inputs, Outcome, ReplyContract, word_per_value

_OBJECT_START = re.compile(r'\{\s*["}]')
_MARKER = re.compile(r"\[\[([^\[\]\n]{1,40})\]\]")
_DECORATION = " \t.*_`>#"
_AROUND_WORD = " \t\r\n.,:;!*_`'\"\u201c\u201d\u2018\u2019#>()"
_NUMBER = re.compile(r"[*_`]*(\d+)[*_`]*\.?[*_`]*")
_NAME = re.compile(NAMED + r"[ \t*_]*", re.IGNORECASE)
_SENTENCE_ENDS = (".", "!", "?", "\u3002", "\uff01", "\uff1f")
_QUOTED_WORDS = 3
"""How many words before a verdict are looked up in the inputs, to see whether the verdict may be quoted from them."""
_MAX_OBJECTS = 50
_SHORT = 6
"""A reply's text shorter than this is not searched for in encoded form; the name of the reply's field is searched for
instead."""
_LONG = 12
"""A list in a reply counts as quoted if an input contains it and it has this many letters and digits: shorter matches
may be coincidence."""


class ParsedReply(Struct, frozen=True):
    """The outcome parsed from a reply, and the explanation; for a list, a note on the entries that were left out."""

    outcome: Outcome
    reason: str


def parse_reply(text: str, contract: ReplyContract, inputs: Inputs) -> ParsedReply:
    """Parse one reply by its contract; ``inputs`` are the texts that the judge was shown and may have quoted.

    Raises:
        UnclearReplyError: the reply may be quoted from the inputs; the next one must carry a mark.
        ReplyError: the reply is outside the contract.
    """
    reply = without_reasoning(text)
    reader = _Reader(contract, inputs if contract.listed is None else _without_list_so_far(inputs, reply))
    if (ending := split_at_closing_tag(reply)) is None:
        return reader.read(reply)
    if contract.is_object:  # a text within the object may mention the tag
        with suppress(ReplyError):
            return reader.read(reply)
    before, tag, after = ending
    if contract.mark or not (reader.hold_sign(tag) or _breaks_off(before, after) or reader.is_reply(before)):
        return reader.read(after)
    try:
        return reader.read(reply)
    except ReplyError as error:
        raise UnclearReplyError(f"{tag} may be a quotation, so that it ends no reasoning; {error}") from None


def _without_list_so_far(inputs: Inputs, reply: str) -> Inputs:
    """Remove from the inputs those items that a reply repeats to continue their list; items with brackets stay."""
    reply_letters = letters(reply)
    new_items = [item for item in inputs.items if has_brackets(item) or letters(item) not in reply_letters]
    return replace(inputs, items=tuple(new_items))


def _breaks_off(before: str, after: str) -> bool:
    """Whether a tag that closes reasoning, such as ``</think>``, stands within a sentence, with text after it."""
    return not _ends_sentence(before) and not after.startswith(("\n", "\r"))


def _ends_sentence(text: str) -> bool:
    return not text or text.rstrip(" \n*_`)").endswith(_SENTENCE_ENDS)


class _Reader(ShownTexts):
    """Reads a reply, or a part of it, by its contract; knows the texts that the judge was shown, to find quotations."""

    def __init__(self, contract: ReplyContract, inputs: Inputs) -> None:
        super().__init__(inputs.query.text, _texts(inputs))
        self.contract = contract

    def read(self, text: str) -> ParsedReply:
        read: Callable[[str], ParsedReply] = getattr(self, f"_read_{self.contract.form}")
        return read(text)

    def is_reply(self, before: str) -> bool:
        """Whether the text before a tag that closes reasoning is a reply, so that the tag is doubtful.

        Always false if the reply may be any text, and for a rating without a digit.
        """
        if self.contract.form == "text" or (self.contract.form == "rating" and not re.search(r"\d", before)):
            return False
        try:
            self.read(before)
        except UnclearReplyError:
            return True
        except ReplyError:
            return False
        return True

    def _read_json(self, text: str) -> ParsedReply:
        """Read a JSON object with exactly the required fields, or a bare number if one number is required."""
        body = unwrapped(text)
        if (number := self._number_alone(body)) is not None:
            return ParsedReply(number, "")
        value = self._judges_object(body)
        expected = {*self.contract.text_fields, *self.contract.choices}
        if missing := expected - value.keys():
            raise ReplyError(f"the JSON object lacks {_quoted(missing)}")
        if unknown := value.keys() - expected:
            raise ReplyError(f"the JSON object has {_quoted(unknown)}, which was not asked for")
        if wrong := next((name for name in self.contract.text_fields if not isinstance(value[name], str)), None):
            raise ReplyError(f"{wrong!r} must be text")
        reason, *texts = (value[name].strip() for name in self.contract.text_fields) if self.contract.reason else ("",)
        chosen = {name: _chosen(name, value[name], allowed) for name, allowed in self.contract.choices.items()}
        if self.contract.label is not None:
            label = chosen.pop(self.contract.label)
            return ParsedReply({LABEL: label, **chosen, **dict(zip(self.contract.texts, texts, strict=True))}, reason)
        return ParsedReply(next(iter(chosen.values())) if len(chosen) == 1 else chosen, reason)

    def _number_alone(self, body: str) -> int | str | None:
        """The label of a reply that is only a number, such as ``2``, as some published prompts ask; else ``None``."""
        if self.contract.mark or self.contract.texts or len(self.contract.choices) != 1:
            return None
        ((_, words),) = self.contract.choices.items()
        written = {str(word): value for word, value in words.items() if isinstance(word, int)}
        return written.get(_whole_number(_value_named(body)))

    def _read_list(self, text: str) -> ParsedReply:
        """Read a list of texts; the explanation notes which entries were left out.

        Entries that have the letters and digits of an earlier entry, or of the query, are left out. The number of
        remaining entries must match the contract's rule, within its ``leeway``. Similar but different entries are all
        kept, for people to choose.
        """
        assert self.contract.listed is not None
        rule = self.contract.listed
        entries, repeated = dict[str, str](), list[str]()
        query = letters(self.query)
        for entry in map(str.strip, self._entries(text, "texts")):
            key = letters(entry)
            if not key:
                raise ReplyError(f"{rule.name!r} holds an empty text")
            if key == query:
                repeated.append(f"{entry[:60]!r} repeats the query")
            elif key in entries:
                repeated.append(f"{entry[:60]!r} repeats {entries[key][:60]!r}")
            else:
                entries[key] = entry
        texts, notes = tuple(entries.values()), [f"Left out: {'; '.join(repeated)}."] if repeated else []
        if rule.leeway == "fewer" and 0 < len(texts) < rule.fewest:
            notes.append(f"{len(texts)} of the {rule.fewest} texts asked for.")
        elif rule.leeway == "more" and rule.most is not None and len(texts) > rule.most:
            surplus = ", ".join(repr(entry[:60]) for entry in texts[rule.most :])
            notes.append(f"Left out, since at most {rule.most} texts were asked for, of {len(texts)}: {surplus}.")
            texts = texts[: rule.most]
        elif len(texts) < rule.fewest or (rule.most is not None and len(texts) > rule.most):
            note = f"; {'; '.join(repeated)}" if repeated else ""
            raise ReplyError(f"{rule.name!r} must hold {number_asked(self.contract)}, not {len(texts)}{note}")
        return ParsedReply(texts, " ".join(notes))

    def _read_labels(self, text: str) -> ParsedReply:
        """Read one label for each item (nugget or question) in the prompt, in its order; the number must be exact."""
        ((name, words),) = self.contract.choices.items()
        entries = self._entries(text, "labels")
        if len(entries) != self.contract.length:
            raise ReplyError(f"{name!r} must hold {number_asked(self.contract)}, not {len(entries)}")
        spelled = {str(word).casefold(): str(label) for word, label in words.items()}
        labels = []
        for place, entry in enumerate(entries, start=1):
            label = spelled.get(entry.strip().casefold()) if isinstance(entry, str) else None
            if label is None:
                raise ReplyError(f"label {place} must be one of {_quoted(words)}, not {str(entry)[:40]!r}")
            labels.append(label)
        return ParsedReply(tuple(labels), "")

    def _entries(self, text: str, kind: str) -> list[Any]:
        """The entries of a reply's list: a JSON object's only field, or a bare list, as published prompts ask for."""
        (name,) = self.contract.outcome_fields
        body = list_alone(text)
        bare = read_relaxed(body) if body.startswith("[") and not self.contract.mark else None
        if isinstance(bare, list):
            value: Mapping[str, Any] = {name: bare}
            if self._may_be_quoted(value):
                raise _unclear("the list")
        else:
            value = self._judges_object(body)
        if unknown := [key for key in value if key != name]:
            raise ReplyError(f"the JSON object has {unknown[0]!r}, which was not asked for")
        entries = value.get(name)
        if not isinstance(entries, list) or (kind == "texts" and any(not isinstance(entry, str) for entry in entries)):
            raise ReplyError(f"{name!r} must be a list of {kind}")
        return entries

    def _judges_object(self, body: str) -> Mapping[str, Any]:
        """Return the judge's JSON object in a reply, without its mark. No text may follow the object.

        It is the last object in the reply. An object with errors of spelling, such as single quotes, must be the whole
        reply.
        """
        candidates = [
            entry for entry in _objects(body) if any(name in entry.value for name in self.contract.outcome_fields)
        ]
        if not candidates and body.startswith("{"):
            relaxed = read_relaxed(body, _without_repeated_keys)
            if isinstance(relaxed, dict) and any(name in relaxed for name in self.contract.outcome_fields):
                candidates = [_JsonObject(relaxed, 0, len(body))]
        if not candidates:
            raise ReplyError(f"the reply holds no JSON object with {_quoted(self.contract.outcome_fields)}")
        *others, reply = candidates
        if self.contract.mark:
            ((name, mark),) = self.contract.mark_field.items()
            marked = [entry for entry in candidates if letters(str(entry.value.get(name))) == mark]
            if marked != [reply]:
                raise ReplyError(f"the one JSON object with {mark!r} as {name!r} must be the end of the reply")
        else:
            is_whole_reply = reply.start == 0 and reply.end == len(body)
            if self._may_be_quoted(reply.value, alone=is_whole_reply):
                raise _unclear("the JSON object")
            if any(not self._may_be_quoted(other.value, alone=False) for other in others):
                raise UnclearReplyError("the reply holds more than one JSON object; reply with exactly one")
            if ends_within_reasoning(body[: reply.start]):
                raise UnclearReplyError("the JSON object stands within reasoning that does not end; reply behind it")
        if body[reply.end :].strip().strip("`").strip():
            raise ReplyError("the JSON object must be the end of the reply")
        return {name: value for name, value in reply.value.items() if name not in self.contract.mark_field}

    def _may_be_quoted(self, value: Mapping[str, Any], *, alone: bool = True) -> bool:
        """Whether a JSON object in a reply may be quoted from the texts that the judge was shown.

        The object's texts must occur there next to a field's name, since a judge may explain itself in a text's words.
        An object without text is compared by its labels, unless it is the whole reply (``alone``) to a contract without
        text.
        """
        values = [value[name] for name in self.contract.text_fields if name in value]
        values += value.get(self.contract.outcome_fields[0], ()) if self.contract.form == "list" else ()
        texts = [text for text in values if isinstance(text, str) and letters(text)]
        if not texts:
            labels = [f"{name} {value[name]}" for name in self.contract.outcome_fields if name in value]
            if alone and not self.contract.text_fields:
                return False
            return self.hold(*labels) or self.hold_encoded(self.contract.outcome_fields[0])
        if self.hold(*texts):
            together = "".join(texts) if self.contract.form == "list" else ""
            if together and self.hold_sign(f"[{together}"):
                return True
            names = [*self.contract.text_fields, *self.contract.outcome_fields]
            if any(self.hold(f"{name} {word}") or self.hold(f"{word} {name}") for name in names for word in texts):
                return True
            if len(texts) > 1 and len(together) >= _LONG and self.hold(together):
                return True
        longest = max(texts, key=len)
        return self.hold_encoded(longest if len(longest) >= _SHORT else self.contract.outcome_fields[0])

    def _read_brackets(self, text: str) -> ParsedReply:
        """Read a verdict in double brackets at the end of the reply, with or without an explanation before it."""
        ((_, allowed),) = self.contract.choices.items()
        stripped = unwrapped(text)
        markers = list(_MARKER.finditer(stripped))
        if not markers:
            raise ReplyError(f"the reply must end in one of {endings(self.contract)}")
        last, word = markers[-1], markers[-1][1].strip()
        before, after = stripped[: last.start()].lstrip(), stripped[last.end() :].strip(_DECORATION)
        others = {marker[1].strip() for marker in markers} - {word}
        if any(not self.hold_sign(f"[[{other}]]") for other in others) and not self.contract.mark:
            raise UnclearReplyError(
                "the reply holds different verdicts in double brackets; give exactly one, at the end"
            )
        if after.casefold() != self.contract.mark:
            raise ReplyError(f"end the reply with {endings(self.contract)} on a line of its own")
        if not self.contract.mark and _words(before) and self._ends_in_quote(before, word):
            verdicts = endings(self.contract)
            raise UnclearReplyError(f"the reply ends in words of a text being judged; end it with your own {verdicts}")
        known = {str(choice): value for choice, value in allowed.items()}
        if word not in known:
            raise ReplyError(f"the verdict must be one of {endings(self.contract)}")
        return ParsedReply(known[word], before.rstrip())

    def _ends_in_quote(self, before: str, word: str) -> bool:
        """Whether the end of a reply, with its verdict, may be quoted from the texts that the judge was shown.

        It may be if the texts contain the verdict after the same words. It may also be if they contain the verdict in
        brackets, unless the reply writes it on a line of its own after a complete sentence.
        """
        words = before.split()[-_QUOTED_WORDS:]
        if self.hold(" ".join([*words, word])) or self.hold_encoded(" ".join(words)):
            return True
        marker = f"[[{word}]]"
        occurs = self.hold_sign(marker) or self.hold_encoded(marker)
        return occurs and (_words(before.rpartition("\n")[2]) or not _ends_sentence(before))

    def _read_word(self, text: str) -> ParsedReply:
        """Read a reply that is one allowed word, or the number that the word stands for.

        Case, surrounding punctuation and Markdown, and a name in front (``Answer: Yes``) are ignored.
        """
        ((_, allowed),) = self.contract.choices.items()
        reply = self._without_mark(_value_named(text))
        for word, value in allowed.items():
            if _normalized(reply) == _normalized(str(word)) or _whole_number(reply) == str(value):
                return ParsedReply(value, "")
        raise ReplyError(f"the whole reply must be one word: {' or '.join(map(str, word_per_value(allowed)))}")

    def _without_mark(self, text: str) -> str:
        """The part of a reply before the mark that must end it; the whole reply if the contract requires no mark."""
        if not self.contract.mark:
            return text
        value, mark, after = text.rpartition(self.contract.mark)
        if not mark or letters(after):
            raise ReplyError(f"the reply must end in {self.contract.mark}")
        return value.strip(_AROUND_WORD)

    def _read_rating(self, text: str) -> ParsedReply:
        """Read a reply that is a whole number; a reply without a number is graded by ``self_rating``."""
        reply = value_alone(text)
        if self.contract.mark:
            reply = self._without_mark(reply)
            if not re.search(r"\d", reply):
                raise ReplyError(f"reply with one whole number and {self.contract.mark} behind it")
        rating = self_rating(reply, levels=self.contract.levels)
        explanation = re.sub(r"^\W*\d", "", reply)
        meaning = letters(self.contract.levels.get(rating, ""))
        is_explained = explanation != reply and letters(explanation) not in ("", meaning)
        if not is_explained or self.contract.mark:
            return ParsedReply(rating, "")
        if self.hold(f"{rating} {explanation}") or self.hold_encoded(explanation):
            raise _unclear("the rating")
        return ParsedReply(rating, "")

    def _read_text(self, text: str) -> ParsedReply:
        """Read the whole reply as the outcome; one of the contract's words becomes that word's value."""
        stripped = text.strip()
        if not stripped:
            raise ReplyError("the reply was empty")
        words = {
            str(word).casefold(): value for words in self.contract.choices.values() for word, value in words.items()
        }
        return ParsedReply(words.get(stripped.strip(_DECORATION).casefold(), stripped), "")


def _chosen(name: str, field: Any, allowed: Mapping[str | int, int | str]) -> int | str:
    """The value of the label in a JSON field. Only a whole label counts: ``True`` is not 1, nor is ``"2 of 3"`` 2."""
    if isinstance(field, bool) or not isinstance(field, str | int):
        raise ReplyError(f"{name!r} must be one of {_quoted(allowed)}")
    if field in allowed:
        return allowed[field]
    spelled = {str(word).casefold(): value for word, value in allowed.items()}
    if isinstance(field, str) and (word := field.strip().casefold()) in spelled:
        return spelled[word]
    raise ReplyError(f"{name!r} must be one of {_quoted(allowed)}, not {str(field)[:40]!r}")


def _unclear(what: str) -> UnclearReplyError:
    return UnclearReplyError(f"{what} repeats one that stands in the texts being judged; reply with your own")


class _JsonObject(Struct, frozen=True):
    value: Mapping[str, Any]
    start: int
    end: int


def _objects(text: str) -> Iterator[_JsonObject]:
    tries = 0
    match = _OBJECT_START.search(text)
    while match:
        tries += 1
        if tries > _MAX_OBJECTS:  # each try may take time linear in the text's length
            raise ReplyError("the reply holds too many JSON objects or pieces of them; reply with exactly one")
        try:
            value, end = _DECODER.raw_decode(text, match.start())
            yield _JsonObject(value, match.start(), end)
        except (ValueError, RecursionError):
            end = match.start() + 1
        match = _OBJECT_START.search(text, end)


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dictionary in which a repeated key has the value ``None``; JSON libraries silently take the last value."""
    value = dict(pairs)
    if len(value) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        value.update({name: None for name, count in counts.items() if count > 1})
    return value


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_without_repeated_keys, strict=False)
"""A JSON decoder that accepts line breaks within strings."""


def _words(text: str) -> bool:
    """Whether a text has letters, digits, or the sign ``>``, by which Markdown marks quotations."""
    return ">" in text or bool(letters(text))


def _value_named(text: str) -> str:
    return value_alone(_NAME.sub("", unwrapped(text), count=1))


def _whole_number(text: str) -> str:
    """The digits of a text that is a whole number apart from Markdown and a full stop; empty for any other text."""
    number = _NUMBER.fullmatch(text)
    return number[1] if number else ""


def _normalized(text: str) -> str:
    return " ".join(text.strip(_AROUND_WORD).split()).casefold()


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


def _quoted(words: Iterable[str | int]) -> str:
    return ", ".join(repr(word) for word in words)
