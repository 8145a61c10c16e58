"""Masks keys in texts from servers, and recognizes keys in texts that will be stored or logged.

Code that sends a key registers it once (``keep_secret``). ``masked`` then replaces every part of it of 12 characters or
more: in either case, escaped for JSON, URLs or HTML, in base64 or hexadecimal, and with other characters between its
letters and digits. A key that is short or has no digit may consist of words, so only the whole key is replaced.
``masked`` is applied when an answer is decoded, and again when the store writes a text.
"""

from __future__ import annotations

import base64
import re
import string
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress, count
from struct import iter_unpack
from typing import Final, TypeAlias

from msgspec import Struct

_MASK: Final = b"***"
_SHORTEST, _SHORTEST_OF_LETTERS = 8, 16
"""Shortest text that counts as a key if it has a digit, and if it has none: ``ollama`` is not a key."""
_PART, _PART_LETTERS, _HEX_PART, _BASE64_PART = 12, 9, 24, 15
"""For masking parts of keys: shortest part, in characters; letters and digits that a key must have for parts of it to
be masked; shortest part in hexadecimal digits; shortest part in base64 characters."""
_DISTINCT: Final = 5
"""Fewest different characters in a key or a masked part of one: rows of zeros occur in many numbers."""
_EXACT, _FOLDED = 4, 5
"""Length of the pieces in which texts are searched for keys as they are, and for keys without signs or encoded. The
shortest key has 8 characters and the shortest encoded one 10, so each contains a full piece wherever it starts."""
_ESCAPE: Final = re.compile(
    rb"\\(?:u00|x)([0-9a-f]{2})|%(?:25)*([0-9a-f]{2})|&(?:amp;)*#x([0-9a-f]{2});|&(?:amp;)*#(\d{2,3});|\\([/\x22])"
    rb"|\\[nrtbf]",
    re.IGNORECASE,
)
_FILLER: Final = b"\0"
_SHOWN: Final = 300
_SIGNS: Final = bytes(set(range(256)) - set(f"{string.ascii_letters}{string.digits}".encode()))

_keys: dict[str, None] = {}
"""The keys that this process has sent to any server, in the order of first use; a ``dict`` serves as an ordered set."""


def keep_secret(*secrets: str) -> None:
    """Mask these keys from now on in every text passed to ``masked``; texts too short to be keys are ignored."""
    for secret in secrets:
        shortest = _SHORTEST if _has_digit(secret.encode()) else _SHORTEST_OF_LETTERS
        if len(secret) >= shortest and len(set(secret)) >= _DISTINCT:
            _keys[secret] = None


def masked(text: str) -> str:
    """The text with all registered keys replaced by ``***``."""
    if not _keys:
        return text
    raw = text.encode("utf-8", "surrogatepass")
    plain = (_ESCAPE.sub(_unescaped, raw) if any(sign in raw for sign in (b"\\", b"%", b"&")) else raw).lower()
    pieces: list[bytes] = []
    done = 0
    exact, folded = _search_index(tuple(_keys))
    for begin, end in sorted([*_spans(plain, exact, _EXACT, _FILLER), *_spans(plain, folded, _FOLDED, _SIGNS)]):
        start = begin
        while start > done and raw[start - 1 : start] == b"\\":  # backslashes of a doubly escaped character
            start -= 1
        if start > done or not pieces:
            pieces += [raw[done:start], _MASK]
        done = max(done, end)
    return b"".join([*pieces, raw[done:]]).decode("utf-8", "surrogatepass") if pieces else text


class _Code(Struct, frozen=True):
    """A key in one spelling or encoding.

    Attributes:
        text: the key so written, in lower case.
        least: length of the shortest part of it that is masked.
        with_digit: whether a part is masked only if it contains a digit.
    """

    text: bytes
    least: int
    with_digit: bool = False


_Chunks: TypeAlias = dict[tuple[bytes], list[tuple[_Code, int]]]
"""For each short piece of text, the codes that contain it and where; keys are tuples, as ``iter_unpack`` yields
them."""


@lru_cache(maxsize=1)
def _search_index(secrets: tuple[str, ...]) -> tuple[_Chunks, _Chunks]:
    """Pieces of the keys as they are, and of their letters and digits alone, plain and encoded; all in lower case."""
    exact, folded = list[_Code](), list[_Code]()
    for secret in secrets:
        content = secret.encode()
        in_parts = _has_digit(content) and len(_folded(content)) >= _PART_LETTERS and len(content) >= _PART
        exact.append(_Code(content.lower(), _PART if in_parts else len(content)))
        if in_parts:  # letters without digits, separated by other characters, may be words
            folded.append(_Code(_folded(content), _PART, with_digit=True))
        # Base64 of any text with the key: the key may start at any of the three positions in a group.
        encoded = {_base64(content, before): _BASE64_PART for before in range(3)} | {content.hex().encode(): _HEX_PART}
        folded += [_Code(code, least if in_parts else len(code)) for code, least in encoded.items()]
    return _chunks_of(exact, _EXACT), _chunks_of(folded, _FOLDED)


def _chunks_of(codes: Iterable[_Code], size: int) -> _Chunks:
    chunks: _Chunks = defaultdict(list)
    for code in codes:
        for at in range(len(code.text) - size + 1):
            chunks[(code.text[at : at + size],)].append((code, at))
    return chunks


def _base64(content: bytes, before: int) -> bytes:
    """Encode a key as it appears within a longer base64 text, where ``before`` bytes precede it in its group of three.

    Characters that also encode neighbouring bytes are left out.
    """
    code = base64.b64encode(bytes(before) + content)
    return _folded(code[-(-before * 8 // 6) : (before + len(content)) * 8 // 6])


def _folded(text: bytes) -> bytes:
    return text.lower().translate(None, _SIGNS)


def _has_digit(text: bytes) -> bool:
    return text.translate(None, string.digits.encode()) != text


def _unescaped(escape: re.Match[bytes]) -> bytes:
    """The character for which an escape stands, padded to the escape's length, so that offsets stay the same."""
    unicode, percent, entity, number, sign = escape.groups()
    code = ord(sign) if sign else int(number) if number else int(unicode or percent or entity or "20", 16)
    return (bytes([code]) if code < 128 else b"").ljust(len(escape[0]), _FILLER)


def _spans(plain: bytes, chunks: _Chunks, size: int, dropped: bytes) -> Iterator[tuple[int, int]]:
    """Start and end of each part of ``plain`` that matches part of a code, if the ``dropped`` bytes are ignored."""
    text = plain.translate(None, dropped)
    places: Sequence[int] = ()
    covered = 0
    for number, chunk in enumerate(iter_unpack(f"{size}s", text[: len(text) // size * size])):
        at = number * size
        if chunk not in chunks or at + size <= covered:
            continue
        for code, place in chunks[chunk]:
            start, end = _run(text, at, size, code.text, place)
            part = text[start:end]
            if len(part) < code.least or len(set(part)) < _DISTINCT or (code.with_digit and not _has_digit(part)):
                continue
            places = places or _places(plain, dropped)
            yield places[start], _end(plain, places[end - 1])
            covered = max(covered, end)


def _run(text: bytes, at: int, size: int, code: bytes, place: int) -> tuple[int, int]:
    """Extend a piece that a text and a code have in common to the longest span in which they are equal."""
    start, end, shift = at, at + size, place - at
    while start and start + shift and text[start - 1] == code[start + shift - 1]:
        start -= 1
    while end < len(text) and end + shift < len(code) and text[end] == code[end + shift]:
        end += 1
    return start, end


def _places(plain: bytes, dropped: bytes) -> Sequence[int]:
    is_kept = bytes(byte not in dropped for byte in range(256))
    return array("q", compress(count(), plain.translate(is_kept)))


def _end(plain: bytes, at: int) -> int:
    """End of the character at ``at``, including the padding after a decoded escape."""
    end = at + 1
    while plain[end : end + 1] == _FILLER:
        end += 1
    return end


_PREFIXES: Final = (
    r"[rs]k_|gsk_|xai-|hf_|r8_|gh[opsur]_|github_pat_|glpat-|xox[abprs]-|AKIA|ASIA|AIza|pplx-|nvapi-|tvly-|lsv2_|eyJ"
)
_KEY_PATTERN: Final = re.compile(
    rf"(?<![A-Za-z0-9])(?:sk-(?=[\w-]*\d)[\w-]{{8,}}|sk-[\w-]{{16,}}|(?:{_PREFIXES})(?=[\w-]*\d)[\w-]{{12,}})"
    r"|PRIVATE KEY-----|\bBearer\s+\S{8,}|\bBasic\s+[A-Za-z0-9+/]{8,}=*$"
    r"|(?<![A-Za-z0-9])(?=[^\W_]*[a-z])(?=[^\W_]*[A-Z])(?=[^\W_]*\d)(?=[^\W_]*[g-zG-Z])[A-Za-z0-9]{32,}",
    re.ASCII,
)
"""Matches what looks like a key: vendors' prefixes, headers with a key, and runs of 32 or more mixed letters and
digits."""
_PASSWORD: Final = re.compile(r"(:/{1,3}[^/@\s:\"']*:)[^\s\"']*(?=@)")
_PARAMETER: Final = re.compile(
    r"([?&](?:[^=&\s]*(?:key|secret|password|token)|sig|signature|auth|code)=)[^&\s]*[^&\s:;,.\"')]", re.IGNORECASE
)


def looks_like_key(text: str) -> bool:
    """Whether a text contains something that looks like a key, or an address with a password."""
    return _KEY_PATTERN.search(text) is not None or without_passwords(text) != text


def key_in(value: object) -> tuple[str, ...] | None:
    """The path, in a JSON value, to the first text that looks like a key; ``None`` if there is none."""
    if isinstance(value, str):
        return () if looks_like_key(value) else None
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    return next(((str(name), *at) for name, each in inner if (at := key_in(each)) is not None), None)


def without_passwords(text: str) -> str:
    """The text with the passwords and keys in its addresses replaced by ``***``."""
    if ":/" not in text:
        return text
    return _PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1***", text))


def one_line(text: str) -> str:
    """The text on one line, shortened, with keys masked."""
    flat = " ".join(without_passwords(masked(text)).split())
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "…"


def exception_line(error: BaseException) -> str:
    """Type and message of an exception on one line, with keys masked."""
    try:
        message = str(error)
    except Exception:  # the exception's __str__ fails
        message = ""
    return one_line(f"{type(error).__name__}: {message}" if message.strip() else type(error).__name__)


def storable(text: str) -> str:
    """The text as a database accepts it: keys are masked, and lone surrogates and NUL are replaced."""
    clean = masked(text).replace("\0", "\ufffd")
    return clean if clean.isascii() else clean.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
