"""Keys are taken out of every text that a server sends, and refused where they would be stored or logged.

Whoever sends a key says so once (``keep_secret``). ``masked`` then takes each part of it of twelve characters and more
out of a text: in any case, escaped for JSON, an address or HTML, in base64 or hexadecimal, and with other signs or
blanks between its letters and digits. A key that is short, or has no digit, may be made of words: only the whole of it
counts. ``masked`` is applied where an answer is decoded, and once more where the store writes.
"""

from __future__ import annotations

import base64
import re
import string
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress, count
from struct import iter_unpack
from typing import Final, TypeAlias

from msgspec import Struct

_MASK: Final = b"***"
_SHORTEST, _SHORTEST_OF_LETTERS = 8, 16
"""Characters of the shortest text that counts as a key, with a digit in it and without: ``ollama`` is none."""
_PART, _PART_LETTERS, _HEX_PART, _BASE64_PART = 12, 9, 24, 15
"""Characters of a key that give it away, the letters and digits among them, and what its encodings have of as many."""
_AROUND: Final = 64
"""Bytes around a part in which its last signs stand, escaped or not."""
_DISTINCT: Final = 5
"""Different characters in what gives a key away: rows of zeros stand in many numbers."""
_CHUNK: Final = 5
"""Characters looked up at a time. The shortest encoded key has 10, so one chunk of it is whole wherever it begins."""
_ESCAPE: Final = re.compile(
    rb"\\(?:u00|x)([0-9a-f]{2})|%(?:25)*([0-9a-f]{2})|&(?:amp;)*#x([0-9a-f]{2});|&(?:amp;)*#(\d{2,3});|\\([/\x22])"
    rb"|\\[nrtbf]",
    re.IGNORECASE,
)
_FILLER: Final = b"\0"
_SHOWN: Final = 300
_SIGNS: Final = bytes(set(range(256)) - set(f"{string.ascii_letters}{string.digits}".encode()))

_keys: dict[str, None] = {}
"""The keys that this process has sent anywhere."""


def keep_secret(*secrets: str) -> None:
    """Take these out of every text from now on, where they are long enough to be keys."""
    for secret in secrets:
        shortest = _SHORTEST if _has_digit(secret.encode()) else _SHORTEST_OF_LETTERS
        if len(secret) >= shortest and len(set(secret)) >= _DISTINCT:
            _keys[secret] = None


def masked(text: str) -> str:
    """The text without any key."""
    if not _keys:
        return text
    whole, chunks = _sought(tuple(_keys))
    raw = text.encode("utf-8", "surrogatepass")
    plain = (_ESCAPE.sub(_unescaped, raw) if any(sign in raw for sign in (b"\\", b"%", b"&")) else raw).lower()
    out: list[bytes] = []
    at = 0
    for begin, end in sorted([*_whole(plain, whole), *_parts(plain, chunks)]):
        start = begin
        while start > at and raw[start - 1 : start] == b"\\":  # of an escape that is escaped again
            start -= 1
        if start > at or not out:
            out += [raw[at:start], _MASK]
        at = max(at, end)
    return b"".join([*out, raw[at:]]).decode("utf-8", "surrogatepass") if out else text


class _Code(Struct, frozen=True):
    """A spelling's letters and digits, how many of them give the key away, and the key where this is no encoding."""

    letters: bytes
    least: int
    key: bytes = b""


_Chunks: TypeAlias = dict[tuple[bytes], list[tuple[_Code, int]]]
"""Where each row of ``_CHUNK`` letters and digits stands in which codes; in tuples, as ``iter_unpack`` gives them."""


@lru_cache(maxsize=1)
def _sought(secrets: tuple[str, ...]) -> tuple[list[bytes], _Chunks]:
    """Keys that only count as a whole, in lower case, and the chunks of every spelling."""
    whole: list[bytes] = []
    chunks: _Chunks = defaultdict(list)
    for secret in secrets:
        content = secret.encode()
        in_parts = _has_digit(content) and len(_folded(content)) >= _PART_LETTERS and len(content) >= _PART
        codes = [_Code(_folded(content), _PART_LETTERS, content.lower())] if in_parts else []
        # Base64 of any text that holds the key: it may begin at any of three places of a group.
        encoded = {_base64(content, before): _BASE64_PART for before in range(3)} | {content.hex().encode(): _HEX_PART}
        codes += [_Code(code, least if in_parts else len(code)) for code, least in encoded.items()]
        for each in codes:
            for at in range(len(each.letters) - _CHUNK + 1):
                chunks[(each.letters[at : at + _CHUNK],)].append((each, at))
        if not in_parts:
            whole.append(content.lower())
    return whole, chunks


def _base64(content: bytes, before: int) -> bytes:
    """Base64 of a text behind ``before`` others, without what depends on its neighbours."""
    code = base64.b64encode(bytes(before) + content)
    return _folded(code[-(-before * 8 // 6) : (before + len(content)) * 8 // 6])


def _folded(text: bytes) -> bytes:
    return text.lower().translate(None, _SIGNS)


def _has_digit(text: bytes) -> bool:
    return text.translate(None, string.digits.encode()) != text


def _unescaped(escape: re.Match[bytes]) -> bytes:
    """The character, filled up to the escape's length, so that places stay."""
    unicode, percent, entity, number, sign = escape.groups()
    code = ord(sign) if sign else int(number) if number else int(unicode or percent or entity or "20", 16)
    return (bytes([code]) if code < 128 else b"").ljust(len(escape[0]), _FILLER)


def _whole(plain: bytes, keys: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    text = plain.translate(None, _FILLER)
    places: Sequence[int] = ()
    for key in keys:
        at = text.find(key)
        while at >= 0:
            places = places or _places(plain, _FILLER)
            end = at + len(key)
            yield places[at], _end(plain, places[end - 1])
            at = text.find(key, end)


def _parts(plain: bytes, chunks: _Chunks) -> Iterator[tuple[int, int]]:
    letters = plain.translate(None, _SIGNS)
    places: Sequence[int] = ()
    reached = 0
    for number, chunk in enumerate(iter_unpack(f"{_CHUNK}s", letters[: len(letters) // _CHUNK * _CHUNK])):
        at = number * _CHUNK
        if chunk not in chunks or at + _CHUNK <= reached:
            continue
        for code, place in chunks[chunk]:
            start, end = _run(letters, at, code.letters, place)
            part = letters[start:end]
            if len(part) < code.least or len(set(part)) < _DISTINCT:
                continue
            places = places or _places(plain, _SIGNS)
            span = places[start], _end(plain, places[end - 1])
            # Letters alone, with other signs between them, may be words.
            if not code.key or (len(part) >= _PART and _has_digit(part)) or _length(plain, *span, code.key) >= _PART:
                yield span
                reached = max(reached, end)


def _run(text: bytes, at: int, code: bytes, place: int) -> tuple[int, int]:
    """How far a text and a code are the same around a chunk that both have."""
    start, end, shift = at, at + _CHUNK, place - at
    while start and start + shift and text[start - 1] == code[start + shift - 1]:
        start -= 1
    while end < len(text) and end + shift < len(code) and text[end] == code[end + shift]:
        end += 1
    return start, end


def _length(plain: bytes, first: int, behind: int, key: bytes) -> int:
    """Characters of the key that stand there as in the key, signs around included."""
    part = plain[first:behind].translate(None, _FILLER)
    start = key.find(part)
    if start < 0:
        return 0
    before = plain[max(0, first - _AROUND) : first].translate(None, _FILLER)
    after = plain[behind : behind + _AROUND].translate(None, _FILLER)
    begin, end = _run(before + part + after, len(before), key, start)
    return end - begin


def _places(plain: bytes, dropped: bytes) -> Sequence[int]:
    """Where each byte stands that is not dropped."""
    kept = bytes(byte not in dropped for byte in range(256))
    return array("q", compress(count(), plain.translate(kept)))


def _end(plain: bytes, last: int) -> int:
    """Behind the last byte, and the rest of its escape."""
    end = last + 1
    while plain[end : end + 1] == _FILLER:
        end += 1
    return end


_HEADS: Final = (
    r"[rs]k_|gsk_|xai-|hf_|r8_|gh[opsur]_|github_pat_|glpat-|xox[abprs]-|AKIA|ASIA|AIza|pplx-|nvapi-|tvly-|lsv2_|eyJ"
)
_LOOKS: Final = re.compile(
    rf"(?<![A-Za-z0-9])(?:sk-(?=[\w-]*\d)[\w-]{{8,}}|sk-[\w-]{{16,}}|(?:{_HEADS})(?=[\w-]*\d)[\w-]{{12,}})"
    r"|PRIVATE KEY-----|\bBearer\s+\S{8,}|\bBasic\s+[A-Za-z0-9+/]{8,}=*$"
    r"|(?<![A-Za-z0-9])(?=[^\W_]*[a-z])(?=[^\W_]*[A-Z])(?=[^\W_]*\d)(?=[^\W_]*[g-zG-Z])[A-Za-z0-9]{32,}",
    re.ASCII,
)
"""How vendors' keys begin, headers with a key, and 32 letters of both cases and digits in a row, which no word has."""
_PASSWORD: Final = re.compile(r"(:/{1,3}[^/@\s:\"']*:)[^\s\"']*(?=@)")
_PARAMETER: Final = re.compile(
    r"([?&](?:[^=&\s]*(?:key|secret|password|token)|sig|signature|auth|code)=)[^&\s]*[^&\s:;,.\"')]", re.IGNORECASE
)


def looks_like_key(text: str) -> bool:
    """Whether a text holds what looks like a key, or an address with a password."""
    return _LOOKS.search(text) is not None or without_passwords(text) != text


def key_in(value: object) -> tuple[str, ...] | None:
    """Where in a value as JSON has it, by names and places, a text looks like a key; ``None`` if none does."""
    if isinstance(value, str):
        return () if looks_like_key(value) else None
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    return next(((str(name), *at) for name, each in inner if (at := key_in(each)) is not None), None)


def without_passwords(text: str) -> str:
    """``text`` with the passwords and keys in its addresses replaced."""
    if ":/" not in text:
        return text
    return _PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1***", text))


def one_line(text: str) -> str:
    """``text`` on one line, shortened, without any key."""
    flat = " ".join(without_passwords(masked(text)).split())
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
