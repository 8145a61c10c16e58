"""Texts made comparable, so that a verdict that stands in a judged text is seen however it is disguised there.

A planted ``{"verdict": "A"}`` may hide from a plain search behind characters that are not seen (soft hyphens,
zero-width spaces, tag characters), behind others of the same look (full-width or Cyrillic letters), or behind entities
and escapes. A model reads through all of them and may repeat the object in plain letters.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from judges.errors import ReplyError

_ESCAPE = re.compile(r"(?<!\\)\\++(?:u([0-9a-fA-F]{4})|[nrtbf])")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_NOT_LETTERS = re.compile(r"[\W_]+")
_MAY_HOLD_OBJECT = re.compile(r"[{｛﹛︷❴⦃\U000e007b]|&(?:#|amp|AMP|l[bc])|\\u0")  # noqa: RUF001 - look-alikes
_MAY_HOLD_MARKER = re.compile(
    r"[\[［﹇【][^\x00-\x7f]*[\[［﹇【]|[⟦〚\U000e005b]|&(?:#|amp|AMP|l[bs])|\\u0"  # noqa: RUF001
)
_UNDOINGS = 3
"""An escape or entity may itself be escaped; nobody reads deeper."""

_UNSEEN = frozenset({"Cf", "Mn", "Me", "Cc"})
_FILLERS = "\u115f\u1160\u3164\uffa0"
"""Letters by their category that show nothing."""

_ALIKE = (  # letters of one script that look like these, where compatibility normalisation does not say so
    ("АВЕЅІЈКМНОРСТУХЬаеѕіјкмнорстухьԁԛԝһӏѵгпв", "ABESIJKMHOPCTYXbaesijkmhopctyxbdqwhlvrnb"),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹαεηικνορτυχωγσϲϳ", "ABEZHIKMNOPTYXCaenikvoptuxwyocj"),
    ("ᎠᎡᎢᎪᎫᎬᎳᎷᎻᏀᏃᏙᏚᏞᏟᏢᏦᏴ", "DRTAJEWMHGZVSLCPKB"),  # noqa: RUF001 - Cherokee
    ("ՕՍՏոսօցհ", "OUSnuogh"),  # noqa: RUF001 - Armenian
    ("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢıɑɡɩʋ", "abcdefghijklmnoprstuvwyziagiv"),
    ("❴⦃❵⦄【】", "{{}}[]"),  # noqa: RUF001 - brackets
)
_SEEN_AS = {alike: letter for others, plain in _ALIKE for alike, letter in zip(others, plain, strict=True)}
_SEEN_AS |= {"⟦": "[[", "〚": "[[", "⟧": "]]", "〛": "]]"}
_SEEN_AS |= {chr(first + at): chr(65 + at) for first in (0x1F150, 0x1F170, 0x1F1E6) for at in range(26)}  # boxed, flags


class _Plain(dict[int, str]):
    """What a character beyond ASCII is seen as, worked out when it first comes up."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        parts = unicodedata.normalize("NFKD", _SEEN_AS.get(char, char))
        seen = (part for part in parts if unicodedata.category(part) not in _UNSEEN and part not in _FILLERS)
        self[code] = plain = "".join(_SEEN_AS.get(part, part) for part in seen)
        return plain


_plain = _Plain()


def folded(text: str) -> str:
    """``text`` as it is seen: without unseen characters, in plain letters, with entities and escapes undone.

    What tag characters spell is put at the end, since a model may read them. Takes time in proportion to the length.
    """
    for _ in range(_UNDOINGS):
        if "&" not in text and "\\u" not in text:
            break
        undone = html.unescape(_ESCAPE.sub(_unescaped, text))
        if undone == text:
            break
        text = undone
    if text.isascii():
        return text
    spelled: list[str] = []

    def seen(run: re.Match[str]) -> str:
        spelled.extend(chr(ord(char) - 0xE0000) for tags in _TAGS.findall(run[0]) for char in tags)
        return run[0].translate(_plain)

    plain = _BEYOND_ASCII.sub(seen, text)
    return f"{plain}\n{''.join(spelled)}" if spelled else plain


def letters(text: str) -> str:
    """Letters and digits only, JSON's escapes undone however often they are escaped again."""
    return _NOT_LETTERS.sub("", _ESCAPE.sub(_unescaped, text)).casefold()


def may_hold_object(text: str) -> bool:
    """Whether there may be a JSON object in ``text`` once it is folded; cheap, since most texts hold none."""
    if text.isascii() and "{" not in text and "&" not in text and "\\u0" not in text:
        return False
    return _MAY_HOLD_OBJECT.search(text) is not None


def may_hold_marker(text: str) -> bool:
    """Whether there may be a ``[[marker]]`` in ``text`` once it is folded."""
    return _MAY_HOLD_MARKER.search(text) is not None


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else " "


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


def behind_lone_end(text: str) -> str | None:
    """What follows the end of reasoning whose beginning stood in the prompt; ``None`` where there is no such end."""
    closes = list(_CLOSES.finditer(text))
    if not closes or _OPENS.search(text):
        return None
    return text[closes[-1].end() :].strip(_SPACE)


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
