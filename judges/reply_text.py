"""Removes the wrapping around replies (reasoning, fences, tags), and detects replies quoted from the texts shown.

A text may contain a planted ``{"verdict": "A"}``, hidden by invisible characters, look-alikes, entities, escapes,
comments or an encoding. A model reads all of these and may repeat the object in plain letters. So only letters and
digits are compared, in several readings of the texts. A false alarm costs one more call, in which the judge adds a mark
to its reply.
"""

from __future__ import annotations

import base64
import codecs
import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, Literal

from judges.errors import ReplyError

_ESCAPE = re.compile(
    (
        r"\\\\*+(?:u(H{4})|[ux]\{(H{1,6})\}|U(H{8})|x(HH)|([0-3][0-7]{2})|[nrtbf])?"
        r"|%(HH(?:%HH)*)|=(HH(?:=HH)*)|U\+(H{4,6})|0x(HH)\b"
    ).replace("H", "[0-9a-fA-F]")
)
"""Matches escapes of JSON and programming languages, even if doubly escaped, of URLs, and of mail
(quoted-printable)."""
_ESCAPE_SIGNS = ("&", "\\", "%", "=", "U+", "0x")
_OCTAL, _IN_ADDRESS, _IN_MAIL = 5, 6, 7
_MARKUP = re.compile(r"<[^<>]*>|/\*[^*]*\*/|(?://|#|--)[^\n]*")
"""Matches tags of HTML and XML, and comments of programming languages."""
_MARKUP_SIGNS = ("<", "/", "#", "--")
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_MAX_DEPTH = 3
"""How many levels of nested escapes and entities are decoded."""

_INVISIBLE = frozenset({"Cf", "Mn", "Me", "Cc", "Lm"})
_FILLERS = "\u115f\u1160\u3164\uffa0"
"""Invisible characters that Unicode classes as letters."""

_LOOK_ALIKES = (  # letters that look like Latin ones but that compatibility normalisation leaves unchanged
    ("АВЕЅІЈКМНОРСТУХЬаеѕіјкмнорстухьԁԛԝһӏѵгпв", "ABESIJKMHOPCTYXbaesijkmhopctyxbdqwhlvrnb"),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹαεηικνορτυχωγσϲϳ", "ABEZHIKMNOPTYXCaenikvoptuxwyocj"),
    ("ᎠᎡᎢᎪᎫᎬᎳᎷᎻᏀᏃᏙᏚᏞᏟᏢᏦᏴ", "DRTAJEWMHGZVSLCPKB"),  # noqa: RUF001 - Cherokee
    ("ՕՍՏոսօցհ", "OUSnuogh"),  # noqa: RUF001 - Armenian
    ("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢıɑɡɩʋ", "abcdefghijklmnoprstuvwyziagiv"),
    ("❴⦃❵⦄([)]{}", "{{}}([)]{}"),  # noqa: RUF001 - braces; all other brackets are square
)
_LOOKS_LIKE = {alike: letter for others, plain in _LOOK_ALIKES for alike, letter in zip(others, plain, strict=True)}
_LOOKS_LIKE |= {"⟦": "[[", "〚": "[[", "⟧": "]]", "〛": "]]"}
_BOXED_LETTERS = (0x1F150, 0x1F170, 0x1F1E6)  # also those of flags
_LOOKS_LIKE |= {chr(first + at): chr(65 + at) for first in _BOXED_LETTERS for at in range(26)}


_BRACKETS = {"Ps": "[", "Pe": "]"}
_SIGNS = "[]{/"
"""The only characters besides letters and digits that are compared, to recognize objects, verdicts and closing tags."""


class _Normalized(dict[int, str]):
    """The characters by which each code point is compared; a cache that is filled on demand.

    Look-alikes become Latin letters, invisible characters vanish.
    """

    def __missing__(self, code: int) -> str:
        char = chr(code)
        parts = unicodedata.normalize("NFKD", _LOOKS_LIKE.get(char, char))
        visible = (part for part in parts if unicodedata.category(part) not in _INVISIBLE and part not in _FILLERS)
        plain = (_LOOKS_LIKE.get(part) or _BRACKETS.get(unicodedata.category(part), part) for part in visible)
        normalized = "".join(plain).casefold()
        self[code] = normalized = "".join(part for part in normalized if part.isalnum() or part in _SIGNS)
        return normalized


_normalized_of = _Normalized()
_LOWER = bytes(range(256)).lower()
_DROPPED = bytes(code for code in range(128) if not chr(code).isalnum() and chr(code) not in _SIGNS)


def _normalized(text: str) -> str:
    """The letters, digits, brackets and slashes of a text, in lower case.

    Unicode's invisible tag characters, which models can read, are converted to ASCII and put at the end.
    """
    if text.isascii():
        return text.encode().translate(_LOWER, _DROPPED).decode()
    normalized = text.translate(_normalized_of)
    if _TAGS.search(text):
        normalized += _normalized("".join(chr(ord(char) - 0xE0000) for tags in _TAGS.findall(text) for char in tags))
    return normalized


def letters(text: str) -> str:
    """The letters and digits of a text in lower case, by which texts are compared."""
    return _without_signs(_normalized(text))


_DIGITS = str.maketrans("013457i", "oleastl")
"""The letters for which digits are often used; 1 stands for both i and l, so i becomes l too."""


def _comparable(text: str) -> str:
    return letters(text).translate(_DIGITS)


def _without_signs(normalized: str) -> str:
    for sign in _SIGNS:
        normalized = normalized.replace(sign, "")
    return normalized


def unescaped(text: str) -> str:
    """The text with HTML entities and the escapes of JSON, URLs and mail decoded."""
    for _ in range(_MAX_DEPTH):
        if not any(sign in text for sign in _ESCAPE_SIGNS):
            break
        import html  # late: hardly a reply needs its table of entities

        plain = html.unescape(_ESCAPE.sub(_character, text)).replace("\xa0", " ")
        if plain == text:
            break
        text = plain
    return text


def has_brackets(text: str) -> bool:
    """Whether a text contains opening brackets or braces in any spelling, as JSON objects do."""
    return any(sign in _normalized(unescaped(text)) for sign in "[{")


def _character(escape: re.Match[str]) -> str:
    kind = escape.lastindex
    if kind is None:
        return " "
    if kind in (_IN_ADDRESS, _IN_MAIL):
        return bytes.fromhex(escape[kind].replace("%", "").replace("=", "")).decode("utf-8", "replace")
    code = int(escape[kind], 8 if kind == _OCTAL else 16)
    return chr(code) if code <= sys.maxunicode else " "


class ShownTexts:
    """The texts that a judge was shown, to check whether parts of its reply may be quoted from them."""

    def __init__(self, query: str, texts: Iterable[str]) -> None:
        self.query = query
        self._texts = texts

    @cached_property
    def _readings(self) -> list[str]:
        """The joined texts in each way that a model may read them: as they are, with escapes decoded, without markup.

        Markup (comments and tags) is removed from both the original and the decoded texts.
        """
        text = "\n".join(self._texts)
        readings = list(dict.fromkeys((text, unescaped(text))))
        readings += [_MARKUP.sub("", reading) for reading in readings if any(sign in reading for sign in _MARKUP_SIGNS)]
        return list(dict.fromkeys(map(_normalized, readings)))

    @cached_property
    def _letter_readings(self) -> list[str]:
        return [_without_signs(reading).translate(_DIGITS) for reading in self._readings]

    def hold(self, *pieces: str) -> bool:
        """Whether all of these pieces occur in one reading of the texts, if only letters and digits are compared."""
        keys = [_comparable(unescaped(piece)) for piece in pieces]
        return any(all(piece in reading for piece in keys) for reading in self._letter_readings)

    def hold_sign(self, sign: str) -> bool:
        """Whether the texts contain a piece with brackets or a slash, such as ``[[A]]``, in any reading."""
        key = _normalized(sign)
        return any(key in reading for reading in self._readings)

    def hold_encoded(self, piece: str) -> bool:
        """Whether the texts contain a piece encoded (base64, hexadecimal, backwards ...), unless it is too short."""
        return any(code in reading for code in _encoded(piece) for reading in self._letter_readings)


_FEWEST = 6
"""Shortest encoded piece that is looked for, in characters; a shorter one may occur by coincidence."""
_RUN = re.compile(r"[ !#-\[\]-~]+")
"""Matches a run of characters that JSON writes without escapes."""


def _encoded(piece: str) -> Iterator[str]:
    """Encode a piece in several ways, each cut to the characters that do not depend on the text around the piece."""
    plain = max(_RUN.findall(piece), key=len, default="").strip()
    raw = plain.encode()
    turned = codecs.encode(plain, "rot13")
    codes = [plain[::-1], turned, turned[::-1], " ".join(plain.split()[::-1]), raw.hex()]
    codes += ["".join(f"{byte:{form}}" for byte in raw) for form in ("d", "08b", "03o")]
    once = list(_base_core(64, raw))
    codes += [*once, *_base_core(32, raw), *_base_core(64, plain.encode("utf-16-le")), *_base_core(64, raw[::-1])]
    codes += [twice for code in once for twice in _base_core(64, code.encode())]
    return (code for code in map(_comparable, codes) if len(code) >= _FEWEST)


def _base_core(base: Literal[32, 64], raw: bytes) -> Iterator[str]:
    """Encode bytes as in a longer text, for each alignment, without characters that depend on neighbouring bytes."""
    encode, bits, places = (base64.b64encode, 6, 3) if base == 64 else (base64.b32encode, 5, 5)
    for at in range(places):
        yield encode(bytes(at) + raw).decode()[-(-8 * at // bits) : 8 * (at + len(raw)) // bits]


_SPACE = " \t\r\n\v\f\u00a0\ufeff\u200b\u2060"
_REASONING = r"(?:seed:|mm:)?(?:think|thinking|thought|reasoning)"
_OPENS = re.compile(
    rf"<(?P<tag>{_REASONING})>|(?P<other>\[THINK\]|◁think▷|<\|START_THINKING\|>|<\|channel>thought)", re.IGNORECASE
)
_CLOSINGS = {
    "[THINK]": "[/THINK]",
    "◁THINK▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|CHANNEL>THOUGHT": "<channel|>",
}
_CLOSES = re.compile(rf"</{_REASONING}>|{'|'.join(re.escape(close) for close in _CLOSINGS.values())}", re.IGNORECASE)
_CHANNEL = re.compile(r"(?:<\|start\|>assistant)?<\|channel\|>(\w+)(?: ?<\|constrain\|>\w+)?<\|message\|>")
_END_TOKENS = (
    *("<|im_end|>", "<|eot_id|>", "<|end|>", "<|return|>", "<|endoftext|>", "</s>", "<end_of_turn>", "<eos>"),
    *("<|END_RESPONSE|>", "<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>"),  # noqa: RUF001 - as the model writes it
)
_MAX_END_TOKENS = 4
_LONGEST_VALUE = 200
_FENCE = re.compile(
    r"(```|~~~)(?:json5?|jsonc|python|py|text|txt|plaintext|markdown)?[ \t]*(?:\n|(?=[\[{]))", re.IGNORECASE
)
_TAG = re.compile(r"<(answer|final_answer|output|response|result|json|verdict|rating|label)>", re.IGNORECASE)
_HEADED = re.compile(
    r"[*_#\s]*(?:(?:updated|final)\s+)?(?:(?:nugget|question|query|label)\s+)?(?:list|nuggets|questions|queries|labels)[*_]*"
    r"[ \t]*:[*_]*\s*(?=[\[`~])",
    re.IGNORECASE,
)
_BOXED = re.compile(r"(?:\$\$?|\\[(\[])?\s*\\boxed\{\s*(?:\\text\{([^{}]*)\}|([^{}]*))\s*\}\s*(?:\$\$?|\\[)\]])?\.?")


def without_reasoning(text: str) -> str:
    """The reply without the reasoning at its beginning, and without the model's end tokens.

    Raises:
        ReplyError: the reasoning does not end, or no text follows it.
    """
    rest = text.strip(_SPACE)
    for _ in range(_MAX_END_TOKENS):
        rest = rest.removesuffix(next(filter(rest.endswith, _END_TOKENS), "")).rstrip(_SPACE)
    rest = _final_channel(rest)
    at = 0
    while opened := _OPENS.match(rest, at):
        closing = f"</{opened['tag']}>" if opened["tag"] else _CLOSINGS[opened["other"].upper()]
        closed = re.compile(re.escape(closing), re.IGNORECASE).search(rest, opened.end())
        if closed is None:
            raise ReplyError(f"the reasoning does not end; close it with {closing} and reply behind it")
        at = len(rest) - len(rest[closed.end() :].lstrip(_SPACE))
    if at and at == len(rest):
        raise ReplyError("there is nothing behind the reasoning; reply there")
    return rest[at:].removeprefix("<|START_RESPONSE|>")


def split_at_closing_tag(text: str) -> tuple[str, str, str] | None:
    """Split a reply at the last tag that closes reasoning: the text before, the tag, and the text after.

    ``None`` if there is no closing tag, or if there is an opening tag too. The opening tag may be in the prompt, if the
    model's chat template writes it.
    """
    closes = list(_CLOSES.finditer(text))
    if not closes or _OPENS.search(text):
        return None
    return text[: closes[-1].start()].rstrip(_SPACE), closes[-1][0], text[closes[-1].end() :]


def with_opening(prompt: str, reply: str) -> str:
    """Put the opening tag of reasoning at a prompt's end before the reply, if the reply contains the closing tag."""
    opened = next((tag for tag in _OPENS.finditer(prompt) if tag.end() == len(prompt.rstrip())), None)
    return f"{opened[0]}{reply}" if opened and split_at_closing_tag(reply) else reply


def ends_within_reasoning(text: str) -> bool:
    """Whether the text has an opening tag of reasoning that no closing tag follows."""
    opens = [opened.end() for opened in _OPENS.finditer(text)]
    return bool(opens) and _CLOSES.search(text, opens[-1]) is None


def unwrapped(text: str) -> str:
    """The reply without surrounding white space, code fence, and tag such as ``<answer>``."""
    inner = text.strip(_SPACE)
    if (tag := _TAG.match(inner)) and inner.lower().endswith(f"</{tag[1].lower()}>"):
        inner = inner[tag.end() : -len(tag[0]) - 1].strip(_SPACE)
    fence = _FENCE.match(inner)
    if fence and inner.endswith(fence[1]) and len(inner) >= fence.end() + len(fence[1]):
        inner = inner[fence.end() : -len(fence[1])].strip(_SPACE)
    return inner


def value_alone(text: str) -> str:
    """The value in a reply that is a single value, without wrapping such as LaTeX's box."""
    inner = unwrapped(text)
    if len(inner) > _LONGEST_VALUE:
        return inner
    boxed = _BOXED.fullmatch(inner)
    return (boxed[1] or boxed[2] or "").strip() if boxed else inner


def list_alone(text: str) -> str:
    """The list in a reply, without a heading such as ``Updated Nugget List:`` that repeats the prompt's end."""
    inner = unwrapped(text)
    headed = _HEADED.match(inner)
    return unwrapped(inner[headed.end() :]) if headed else inner


def _final_channel(text: str) -> str:
    """The final channel of a reply that a model wrote in channels (gpt-oss), even if the server removed the separators.

    Other replies are returned unchanged.
    """
    if _CHANNEL.match(text):
        channels = list(_CHANNEL.finditer(text))
        if [channel[1] for channel in channels].count("final") != 1 or channels[-1][1] != "final":
            raise ReplyError("the reply must end in one final channel")
        return text[channels[-1].end() :].strip(_SPACE)
    if text.startswith("analysis") and text.count("assistantfinal") == 1:
        return text[text.index("assistantfinal") + len("assistantfinal") :].strip(_SPACE)
    return text


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
    """Parse a text as one JSON list or object, tolerating single quotes, trailing commas and stray backslashes.

    ``hook`` makes an object from a list of keys with their values. ``None`` if the text is neither list nor object.
    """
    for spelled in (text, _as_json(text)):
        try:
            if spelled is not None:
                return json.loads(spelled, object_pairs_hook=hook, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def _as_json(text: str) -> str | None:
    """Rewrite almost-JSON as JSON: correct its quotes, trailing commas and stray backslashes.

    A string must have the same quotes at both ends and only escaped ones within. Missing brackets are not added.
    ``None`` if a character fits no token; any other result may still be invalid JSON.
    """
    tokens: list[str] = []
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
            if token[kind] in ("]", "}") and len(tokens) > 1 and tokens[-1] == "," and tokens[-2] not in "[{,":
                tokens.pop()
            tokens.append(token[kind])
        else:
            tokens.append(f'"{_CHANGED.sub(_spelled, token[kind])}"')
    return " ".join(tokens)  # blanks keep adjacent numbers apart


def _spelled(match: re.Match[str]) -> str:
    """Correct one matched piece of a string: keep JSON's escapes, and escape other backslashes and quotes."""
    if match[1]:
        return match[0]
    return "'" if match[0] == "\\'" else f"\\{match[0]}"
