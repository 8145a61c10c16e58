"""Replies without what models put around them, and whether what is left stands in the texts that a judge was shown.

A planted ``{"verdict": "A"}`` may hide behind characters that are not seen, behind others of the same look, behind
entities, escapes, comments or an encoding. A model reads through all of them and may repeat the object in plain
letters. So only letters and digits are compared, in several readings of the texts. Where that takes too much for a
quotation, it costs one more call, in which the judge marks its reply.
"""

from __future__ import annotations

import base64
import codecs
import html
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
"""Escapes of JSON and of programs, however often escaped again, of addresses, and of mail (quoted-printable)."""
_OF_ESCAPES = ("&", "\\", "%", "=", "U+", "0x")
_OCTAL, _IN_ADDRESS, _IN_MAIL = 5, 6, 7
_MARKUP = re.compile(r"<[^<>]*>|/\*[^*]*\*/|(?://|#|--)[^\n]*")
"""Tags and comments."""
_OF_MARKUP = ("<", "/", "#", "--")
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_UNDOINGS = 3
"""An escape or entity may itself be escaped; nobody reads deeper."""

_UNSEEN = frozenset({"Cf", "Mn", "Me", "Cc", "Lm"})
_FILLERS = "\u115f\u1160\u3164\uffa0"
"""Letters by their category that show nothing."""

_ALIKE = (  # letters of one script that look like these, where compatibility normalisation does not say so
    ("АВЕЅІЈКМНОРСТУХЬаеѕіјкмнорстухьԁԛԝһӏѵгпв", "ABESIJKMHOPCTYXbaesijkmhopctyxbdqwhlvrnb"),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹαεηικνορτυχωγσϲϳ", "ABEZHIKMNOPTYXCaenikvoptuxwyocj"),
    ("ᎠᎡᎢᎪᎫᎬᎳᎷᎻᏀᏃᏙᏚᏞᏟᏢᏦᏴ", "DRTAJEWMHGZVSLCPKB"),  # noqa: RUF001 - Cherokee
    ("ՕՍՏոսօցհ", "OUSnuogh"),  # noqa: RUF001 - Armenian
    ("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢıɑɡɩʋ", "abcdefghijklmnoprstuvwyziagiv"),
    ("❴⦃❵⦄([)]{}", "{{}}([)]{}"),  # noqa: RUF001 - braces; all other brackets are square
)
_SEEN_AS = {alike: letter for others, plain in _ALIKE for alike, letter in zip(others, plain, strict=True)}
_SEEN_AS |= {"⟦": "[[", "〚": "[[", "⟧": "]]", "〛": "]]"}
_SEEN_AS |= {chr(first + at): chr(65 + at) for first in (0x1F150, 0x1F170, 0x1F1E6) for at in range(26)}  # boxed, flags


_BRACKETS = {"Ps": "[", "Pe": "]"}
_SIGNS = "[]{/"
"""Beside letters and digits, by which objects, markers and closing tags are known."""


class _Kept(dict[int, str]):
    """What of a character is compared, worked out when it first comes up: letters as they look, digits, signs."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        parts = unicodedata.normalize("NFKD", _SEEN_AS.get(char, char))
        seen = (part for part in parts if unicodedata.category(part) not in _UNSEEN and part not in _FILLERS)
        plain = (_SEEN_AS.get(part) or _BRACKETS.get(unicodedata.category(part), part) for part in seen)
        kept = "".join(plain).casefold()
        self[code] = kept = "".join(part for part in kept if part.isalnum() or part in _SIGNS)
        return kept


_kept_of = _Kept()
_LOWER = bytes(range(256)).lower()
_DROPPED = bytes(code for code in range(128) if not chr(code).isalnum() and chr(code) not in _SIGNS)


def _kept(text: str) -> str:
    """Letters and digits, and the signs. What tag characters spell is put at the end, since a model may read them."""
    if text.isascii():
        return text.encode().translate(_LOWER, _DROPPED).decode()
    kept = text.translate(_kept_of)
    if _TAGS.search(text):
        kept += _kept("".join(chr(ord(char) - 0xE0000) for tags in _TAGS.findall(text) for char in tags))
    return kept


def letters(text: str) -> str:
    """Letters and digits alone, in lower case: what two texts are compared by, however they are spelled."""
    return _without_signs(_kept(text))


_DIGITS = str.maketrans("013457i", "oleastl")
"""Digits that stand for letters, and the two letters that one of them stands for."""


def _compared(text: str) -> str:
    return letters(text).translate(_DIGITS)


def _without_signs(kept: str) -> str:
    for sign in _SIGNS:
        kept = kept.replace(sign, "")
    return kept


def undone(text: str) -> str:
    """``text`` with entities and escapes undone."""
    for _ in range(_UNDOINGS):
        if not any(sign in text for sign in _OF_ESCAPES):
            break
        plain = html.unescape(_ESCAPE.sub(_unescaped, text)).replace("\xa0", " ")
        if plain == text:
            break
        text = plain
    return text


def has_brackets(text: str) -> bool:
    """Whether a text has brackets or braces, however they are spelled, as an object has."""
    return any(sign in _kept(undone(text)) for sign in "[{")


def _unescaped(escape: re.Match[str]) -> str:
    kind = escape.lastindex
    if kind is None:
        return " "
    if kind in (_IN_ADDRESS, _IN_MAIL):
        return bytes.fromhex(escape[kind].replace("%", "").replace("=", "")).decode("utf-8", "replace")
    code = int(escape[kind], 8 if kind == _OCTAL else 16)
    return chr(code) if code <= sys.maxunicode else " "


class ShownTexts:
    """The texts that a judge was shown, and whether a piece of its reply may be quoted from them."""

    def __init__(self, query: str, texts: Iterable[str]) -> None:
        self.query = query
        self._texts = texts

    @cached_property
    def _kept(self) -> list[str]:
        """All texts one behind another in each reading: as they are, with escapes undone, without comments and tags."""
        text = "\n".join(self._texts)
        readings = list(dict.fromkeys((text, undone(text))))
        readings += [_MARKUP.sub("", reading) for reading in readings if any(sign in reading for sign in _OF_MARKUP)]
        return list(dict.fromkeys(map(_kept, readings)))

    @cached_property
    def _letters(self) -> list[str]:
        return [_without_signs(kept).translate(_DIGITS) for kept in self._kept]

    def hold(self, *pieces: str) -> bool:
        """Whether one reading has all of these pieces, whatever stands between their letters."""
        wanted = [_compared(undone(piece)) for piece in pieces]
        return any(all(piece in reading for piece in wanted) for reading in self._letters)

    def hold_sign(self, sign: str) -> bool:
        """Whether the texts have a piece with brackets or a slash, such as ``[[A]]``."""
        wanted = _kept(sign)
        return any(wanted in reading for reading in self._kept)

    def hold_encoded(self, piece: str) -> bool:
        """Whether the texts have a piece of some length in base64, in hexadecimal, backwards and the like."""
        return any(code in reading for code in _encoded(piece) for reading in self._letters)


_FEWEST = 6
"""Characters from which on an encoded piece is not met by chance."""
_RUN = re.compile(r"[ !#-\[\]-~]+")
"""Characters that JSON writes as they are."""


def _encoded(piece: str) -> Iterator[str]:
    """What of a piece is the same in every longer text that is encoded with it."""
    plain = max(_RUN.findall(piece), key=len, default="").strip()
    raw = plain.encode()
    turned = codecs.encode(plain, "rot13")
    codes = [plain[::-1], turned, turned[::-1], " ".join(plain.split()[::-1]), raw.hex()]
    codes += ["".join(f"{byte:{form}}" for byte in raw) for form in ("d", "08b", "03o")]
    once = list(_in_base(64, raw))
    codes += [*once, *_in_base(32, raw), *_in_base(64, plain.encode("utf-16-le")), *_in_base(64, raw[::-1])]
    codes += [twice for code in once for twice in _in_base(64, code.encode())]
    return (code for code in map(_compared, codes) if len(code) >= _FEWEST)


def _in_base(base: Literal[32, 64], raw: bytes) -> Iterator[str]:
    """The characters that stand for these bytes alone, wherever in a longer run of bytes they begin."""
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
_ENDS = (
    *("<|im_end|>", "<|eot_id|>", "<|end|>", "<|return|>", "<|endoftext|>", "</s>", "<end_of_turn>", "<eos>"),
    *("<|END_RESPONSE|>", "<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>"),  # noqa: RUF001 - as the model writes it
)
_MOST_ENDS = 4
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
    """The reply behind the reasoning that it begins with; a draft within the reasoning is none.

    Raises:
        ReplyError: the reasoning does not end, or nothing follows it.
    """
    rest = _final_channel(_without_ends(text.strip(_SPACE)))
    at = 0
    while opened := _OPENS.match(rest, at):
        closing = f"</{opened['tag']}>" if opened["tag"] else _CLOSINGS[opened["other"].upper()]
        closed = re.compile(re.escape(closing), re.IGNORECASE).search(rest, opened.end())
        if closed is None:
            raise ReplyError(f"the reasoning does not end; close it with {closing} and reply behind it")
        at = closed.end()
        while at < len(rest) and rest[at] in _SPACE:
            at += 1
    if at and at == len(rest):
        raise ReplyError("there is nothing behind the reasoning; reply there")
    return rest[at:].removeprefix("<|START_RESPONSE|>")


def lone_end(text: str) -> tuple[str, str, str] | None:
    """A reply at the last tag that ends reasoning, if none begins it: what is before, the tag, and what is behind.

    Reasoning may begin in the prompt, where the model's chat template opens it. ``None`` where there is no such tag.
    """
    closes = list(_CLOSES.finditer(text))
    if not closes or _OPENS.search(text):
        return None
    return text[: closes[-1].start()].rstrip(_SPACE), closes[-1][0], text[closes[-1].end() :]


def with_opening(prompt: str, reply: str) -> str:
    """The reply behind the tag with which its prompt opens reasoning, if it ends that."""
    opened = next((tag for tag in _OPENS.finditer(prompt) if tag.end() == len(prompt.rstrip())), None)
    return f"{opened[0]}{reply}" if opened and lone_end(reply) else reply


def ends_within_reasoning(text: str) -> bool:
    """Whether reasoning begins in ``text`` and does not end there."""
    opens = [opened.end() for opened in _OPENS.finditer(text)]
    return bool(opens) and _CLOSES.search(text, opens[-1]) is None


def unwrapped(text: str) -> str:
    """The reply without white space, one code fence and one tag such as ``<answer>`` around all of it."""
    inner = text.strip(_SPACE)
    if (tag := _TAG.match(inner)) and inner.lower().endswith(f"</{tag[1].lower()}>"):
        inner = inner[tag.end() : -len(tag[0]) - 1].strip(_SPACE)
    fence = _FENCE.match(inner)
    if fence and inner.endswith(fence[1]) and len(inner) >= fence.end() + len(fence[1]):
        inner = inner[fence.end() : -len(fence[1])].strip(_SPACE)
    return inner


def value_alone(text: str) -> str:
    """The value of a reply that is one value, without what is around it, such as LaTeX's box."""
    inner = unwrapped(text)
    if len(inner) > _LONGEST_VALUE:
        return inner
    boxed = _BOXED.fullmatch(inner)
    return (boxed[1] or boxed[2] or "").strip() if boxed else inner


def list_alone(text: str) -> str:
    """A reply without the heading of a list, such as ``Updated Nugget List:`` at the end of a published prompt."""
    inner = unwrapped(text)
    headed = _HEADED.match(inner)
    return unwrapped(inner[headed.end() :]) if headed else inner


def _without_ends(text: str) -> str:
    for _ in range(_MOST_ENDS):
        if not text.endswith(_ENDS):
            break
        text = text.removesuffix(next(filter(text.endswith, _ENDS))).rstrip(_SPACE)
    return text


def _final_channel(text: str) -> str:
    """The one final channel of a reply in channels (gpt-oss), also where a server dropped the marks between them.

    Raises:
        ReplyError: there is none, or there are several.
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


def _spelled(match: re.Match[str]) -> str:
    """An escape of JSON as it is, an apostrophe without its backslash, any other backslash or quote escaped itself."""
    if match[1]:
        return match[0]
    return "'" if match[0] == "\\'" else f"\\{match[0]}"
