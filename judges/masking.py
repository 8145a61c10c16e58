"""Keys are taken out of every text that a server sends, however it spells them.

Whoever sends a key says so once (``keep_secret``). ``masked`` then takes each such key out of a text: as it is, escaped
for JSON, for an address or for HTML, once or several times over, in base64 or hexadecimal, in another case or width,
and split by blanks, line ends or characters that nobody sees. It is applied where an answer is decoded, and once more
where the store writes.
"""

from __future__ import annotations

import base64
import html
import re
import string
import unicodedata
from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import AnyStr, Final

from msgspec import Struct

_MASK: Final = "***"
_SHORTEST: Final = 8
"""Characters of the shortest text that counts as a key: ``none`` and ``ollama`` are none."""
_LONG: Final = 16
"""Characters from which on a text with a digit in it is no word and no name, so that any spelling of it is the key."""
_PIECE: Final = 12
"""Letters and digits of the beginning or the end of a long key that give it away."""
_HEAD, _TAIL, _ALONE = 4, 2, 10
"""Characters of the beginning and of the end that give a key away where the rest is starred out, and of the beginning
alone."""
_DISTINCT: Final = 5
"""Different characters that a key has, and each of its ends that gives it away: rows of zeros stand in many numbers."""
_ROUNDS: Final = 6
"""How often escapes may be escaped again."""

_ESCAPE = re.compile(
    r"(?<!\\)\\++(?:u00([0-9a-f]{2})|x([0-9a-f]{2})|([/nrtbf]))|%(?:25)*([0-9a-f]{2})"
    r"|(&(?:amp;)*(?:#x?[0-9a-f]{1,6}|[a-z]{2,12});?)",
    re.IGNORECASE,
)
"""A row of backslashes counts from its first one on, since looking at each would take the square of its length."""


class _Key(Struct, frozen=True):
    """How one key can stand in a text.

    Attributes:
        exact: the key.
        folded: letters and digits of a long key in lower case, else empty.
        needles: what to look for in a folded text: both ends of the key, and all of it in other alphabets.
        starred: its beginning and a row of stars or dots.
    """

    exact: str
    folded: bytes
    needles: tuple[bytes, ...]
    starred: re.Pattern[str]


_STARTS: Final = (
    ("\\", re.compile(r"\\(?:u00|x)[0-9a-f]{2}|\\[bf]", re.IGNORECASE)),
    ("%", re.compile("%[0-9a-f]{2}", re.IGNORECASE)),
    ("&", re.compile("&(?:#|[a-z]{2,12};)", re.IGNORECASE)),
)
_SMALL: Final = bytes.maketrans(string.ascii_uppercase.encode(), string.ascii_lowercase.encode())
_SIGNS: Final = bytes(set(range(256)) - set(f"{string.ascii_letters}{string.digits}".encode()))
_keys: dict[str, _Key] = {}
"""The keys that this process has sent anywhere."""


def keep_secret(*secrets: str) -> None:
    """Take these out of every text from now on, where they are long enough to be keys."""
    for secret in secrets:
        if secret not in _keys and (key := _key(secret)) is not None:
            _keys[secret] = key


def masked(text: str) -> str:
    """The text without any key."""
    if not _keys or len(text) < _HEAD + _TAIL:
        return text
    seen = text
    for _ in range(_ROUNDS):
        if _is_in(seen):
            return _without(text)
        if (plainer := _plainer(seen)) == seen:
            break
        seen = plainer
    return text


def _key(secret: str) -> _Key | None:
    telling = any(map(str.isdigit, secret))
    if len(secret) < (_SHORTEST if telling else _LONG) or len(set(secret)) < _DISTINCT:
        return None
    more = f"[^\\s*\u2022\u2026\u00b7#]{{0,{len(secret)}}}?"
    starred = re.compile(f"{re.escape(secret[:_HEAD])}{more}([*.\u2022\u00b7xX#]{{3,}}|\u2026)")
    folded = _folded(secret) if telling and len(secret) >= _LONG else b""
    if len(folded) < _PIECE:
        return _Key(secret, b"", (), starred)
    ends = (end for end in (folded[:_PIECE], folded[-_PIECE:]) if len(set(end)) >= _DISTINCT)
    return _Key(secret, folded, (*ends, *_other_alphabets(secret)), starred)


def _other_alphabets(secret: str) -> tuple[bytes, ...]:
    """Hexadecimal, and base64 of any text that holds the key: it may begin at any of three places of a group."""
    content = secret.encode()
    codes = [content.hex().encode()]
    for before in range(3):
        code = base64.b64encode(b"\0" * before + content).decode().rstrip("=")
        begins, ends = -(-before * 8 // 6), (before + len(content)) * 8 // 6
        codes.append(_folded(code[begins:ends]))  # without what depends on neighbours
    return tuple(codes)


def _folded(text: str) -> bytes:
    """What a text comes down to: lower-case letters and digits of ASCII, whatever stands between them."""
    plain = text if text.isascii() else unicodedata.normalize("NFKD", text)
    return plain.encode("ascii", "ignore").translate(_SMALL, _SIGNS)


_letter = lru_cache(_folded)


def _plainer(text: str) -> str:
    """The text with its escapes decoded once; most texts have none but those of line ends and quotes."""
    if "\\" in text:
        for control in "ntr":
            text = text.replace(f"\\{control}", " ")
        text = text.replace("\\/", "/")
    if any(sign in text and start.search(text) for sign, start in _STARTS):
        return _ESCAPE.sub(_character, text)
    return text


def _is_in(text: str) -> bool:
    folded = _folded(text)
    for key in tuple(_keys.values()):
        if key.exact in text or any(needle in folded for needle in key.needles):
            return True
        if key.exact[:_HEAD] in text and next(_starred(text, key), None) is not None:
            return True
    return False


def _without(text: str) -> str:
    """The text with every key in it replaced, also where one is only seen once escapes are decoded."""
    seen = text
    starts, ends = array("q", range(len(text))), array("q", range(1, len(text) + 1))
    hits: list[tuple[int, int]] = []
    for _ in range(_ROUNDS):
        hits += [(starts[start], ends[end - 1]) for start, end in _hits(seen)]
        parts: list[str] = []
        fewer_starts, fewer_ends = array("q"), array("q")
        at = 0
        for escape in _ESCAPE.finditer(seen):
            start, end = escape.span()
            letter = _character(escape)
            parts += [seen[at:start], letter]
            fewer_starts += starts[at:start] + array("q", [starts[start]]) * len(letter)
            fewer_ends += ends[at:start] + array("q", [ends[end - 1]]) * len(letter)
            at = end
        if not at:
            break
        seen = "".join([*parts, seen[at:]])
        starts, ends = fewer_starts + starts[at:], fewer_ends + ends[at:]
    out, at = [], 0
    for start, end in sorted(hits):
        if end > at:
            out += [text[at:start], _MASK if start >= at else ""]
            at = end
    return "".join([*out, text[at:]])


def _character(escape: re.Match[str]) -> str:
    unicode, byte, control, percent, entity = escape.groups()
    if code := unicode or byte or percent:
        return chr(int(code, 16))
    if entity is not None:
        return html.unescape(re.sub("&(?:amp;)+", "&", entity, flags=re.IGNORECASE))
    return "/" if control == "/" else " "


def _hits(text: str) -> Iterator[tuple[int, int]]:
    letters, places = bytearray(), array("q")
    for at, each in enumerate(text):
        if letter := _letter(each):
            letters += letter
            places.extend([at] * len(letter))
    folded = bytes(letters)
    for key in tuple(_keys.values()):
        for at in _all(key.exact, text):
            yield at, at + len(key.exact)
        yield from _starred(text, key)
        for needle in key.needles:
            for at in _all(needle, folded):
                start, end = _widened(folded, at, needle, key.folded)
                yield places[start], places[end - 1] + 1


def _all(needle: AnyStr, text: AnyStr) -> Iterator[int]:
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def _widened(folded: bytes, at: int, needle: bytes, key: bytes) -> tuple[int, int]:
    """As much of a key as stands around one of its ends."""
    start, end = at, at + len(needle)
    if key.startswith(needle):
        while end < len(folded) and end - start < len(key) and folded[end] == key[end - start]:
            end += 1
    elif key.endswith(needle):
        while start and end - start < len(key) and folded[start - 1] == key[-(end - start) - 1]:
            start -= 1
    return start, end


def _starred(text: str, key: _Key) -> Iterator[tuple[int, int]]:
    for match in key.starred.finditer(text):
        rest = text[match.end() : match.end() + len(key.exact)]
        shown = next((size for size in range(len(rest), _TAIL - 1, -1) if key.exact.endswith(rest[:size])), 0)
        head = text[match.start() : match.start(1)]
        if key.exact.startswith(head) and (shown or len(head) >= _ALONE):
            yield match.start(), match.end() + shown


_SHOWN = 300


def one_line(text: str) -> str:
    """``text`` on one line, shortened, without any key."""
    flat = " ".join(masked(text).split())
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "…"


def exception_line(error: BaseException) -> str:
    """Type and message of an exception on one line."""
    try:
        message = str(error)
    except Exception:  # of a class whose own __str__ fails
        message = ""
    return one_line(f"{type(error).__name__}: {message}" if message.strip() else type(error).__name__)


def storable(text: str) -> str:
    """``text`` without any key, half a surrogate pair or NUL: JSON can spell these, and no database can hold them."""
    whole = masked(text).replace("\0", "\ufffd")
    return whole if whole.isascii() else whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
