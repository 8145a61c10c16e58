"""Splits texts of any script into words, search terms, tokens and passages, and counts them.

Chinese, Japanese, Thai, Lao, Khmer and Burmese have no spaces between words. There each character, with its combining
marks, counts as a word, and search terms are pairs of neighbouring characters, which need no dictionary. Korean search
terms are pairs too, since particles are attached to the nouns.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, groupby, pairwise
from typing import Final, TypeAlias

Span: TypeAlias = tuple[int, int]
"""Start and end offset of a part of a text; the end is exclusive."""

SENTENCE_STOPS: Final = "\u3002\uff01\uff1f\uff61\u0964\u0965\u06d4\u061f\u104b\u17d4\u17d5"
"""Marks that end a sentence in East Asian, Indic, Arabic, Burmese and Khmer scripts."""

_HAN = "\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_SYLLABLES = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff\uff66-\uff9d"
_SOUTH_EAST = ((0xE01, 0xE4E), (0xE81, 0xEDF), (0x1000, 0x109F), (0x1780, 0x17DD), (0xA9E0, 0xA9FE), (0xAA60, 0xAA7F))
"""Unicode ranges of the letters and marks of Thai, Lao, Burmese and Khmer."""
_HANGUL = "\uac00-\ud7a3\u1100-\u11ff\u3131-\u318e"
_BEFORE = "\u0e40-\u0e44\u0ec0-\u0ec4"
"""Thai and Lao vowels that are written before their consonant."""
_BEHIND = "\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3"
"""Thai and Lao vowels that are written after their consonant."""
_STACKING = "\u17d2\u1039"
"""Khmer and Burmese marks that stack the next consonant below."""
_OPENING = "\\[(\u2018\u201c\u3008\u300a\u300c\u300e\u3010\u3014\uff08\uff3b"
_PLAIN_WORD = re.compile(r"\w+")
_WORD = re.compile(r"\S{1,100}")
_OTHER = re.compile("[^\0-\u02ff\u2000-\u20cf]")
"""Matches characters outside of Latin letters and punctuation: whoever has none needs no pattern for other scripts."""


def _is_plain(text: str) -> bool:
    """Whether all characters are Latin letters, digits, punctuation and currency signs."""
    return text.isascii() or _OTHER.search(text) is None


@cache
def _letters() -> str:
    """Ranges of the letters of scripts without spaces between words."""
    south_east = (chr(code) for first, last in _SOUTH_EAST for code in range(first, last + 1))
    return _SYLLABLES + _HAN + _ranges(each for each in south_east if unicodedata.category(each)[0] == "L")


@cache
def _pattern(purpose: str) -> re.Pattern[str]:
    """A regular expression for texts that are not plain; compiled, in several milliseconds, when it is first needed."""
    letters = _letters()
    if purpose in {"han", "unspaced"}:
        return re.compile(f"[{_HAN if purpose == 'han' else letters}]")
    marks = _ranges(chr(code) for code in range(0x300, 0x10000) if unicodedata.category(chr(code))[0] == "M")
    character = f"[{_BEFORE}]?[{letters}](?:[{_STACKING}][{letters}]|[{marks}{_BEHIND}])*"
    spaced = rf"[^\W{letters}{_HANGUL}]"
    word = rf"[{_OPENING}]{{0,9}}{character}[^\w\s{_OPENING}]*"
    patterns = {
        "character": character,
        "kinds": rf"((?:{character})+)|([{_HANGUL}]+)|{spaced}+(?:[{marks}]+{spaced}*)*",
        "words": rf"{word}|[^\s{letters}]+",
        "pieces": rf"{word}|[^\s{letters}]{{1,100}}",
        "tokens": rf"{character}|[{_HANGUL}]|{spaced}{{1,8}}[{marks}]*|[^\w\s]",
    }
    return re.compile(patterns[purpose])


def _ranges(characters: Iterable[str]) -> str:
    """Write characters, given in code-point order, as ranges for a regular expression, such as ``a-fx-z``."""
    # In a row of neighbours, the difference of code point and position stays the same.
    rows = groupby(enumerate(characters), key=lambda each: ord(each[1]) - each[0])
    ranges = ([char for _, char in row] for _, row in rows)
    return "".join(f"{chars[0]}-{chars[-1]}" for chars in ranges)


def _is_unspaced(text: str) -> bool:
    """Whether a text contains a script without spaces between words."""
    return not _is_plain(text) and _pattern("unspaced").search(text) is not None


def count_words(text: str) -> int:
    """Number of words, separated by white space; in scripts without spaces, the number of characters."""
    return len(_pattern("words").findall(text)) if _is_unspaced(text) else len(text.split())


def word_spans(text: str) -> list[Span]:
    """The span of each word with its punctuation; a word of more than 100 characters gives several spans."""
    pattern = _pattern("pieces") if _is_unspaced(text) else _WORD
    return [match.span() for match in pattern.finditer(text)]


_PLAIN_TOKEN = re.compile(r"\w{1,8}|[^\w\s]")


def token_spans(text: str) -> list[Span]:
    """Spans of approximate tokens, which need no model's vocabulary.

    A token is up to 8 letters or digits, a character of a script without spaces, or a punctuation mark. English prose
    has about 1.3 of these tokens per word, as many as current models' tokenizers produce.
    """
    pattern = _PLAIN_TOKEN if _is_plain(text) else _pattern("tokens")
    return [match.span() for match in pattern.finditer(text)]


_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_SENTENCE_END = re.compile(f"[.!?{SENTENCE_STOPS}][\"'\u201d\u2019\u300d\u300f\uff09)\\]]*$")


def cut(text: str, units: Sequence[Span], most: int, overlap: int = 0) -> Iterator[Span]:
    """Yields spans of at most ``most`` words or tokens (``units``) of a text; neighbours share ``overlap`` units."""
    if most < 1 or not 0 <= overlap < most:
        raise ValueError(f"the size must be at least 1 and the overlap from 0 to size - 1, not {most} and {overlap}")
    first = 0
    while first < len(units):
        last = _last_unit(text, units, first, most, overlap)
        yield units[first][0], units[last][1]
        first = last + 1 if last == len(units) - 1 else last + 1 - overlap


def _last_unit(text: str, units: Sequence[Span], first: int, most: int, overlap: int) -> int:
    """Index of the last unit in the span that begins with unit ``first`` and has at most ``most`` units.

    A span ends between paragraphs if possible, else after a sentence, else between words.
    """
    latest = first + most - 1
    if latest >= len(units) - 1:
        return len(units) - 1
    candidates = range(latest, first + overlap - 1, -1)
    between_paragraphs = (unit for unit in candidates if _PARAGRAPH.search(text, units[unit][1], units[unit + 1][0]))
    after_sentence = (unit for unit in candidates if _SENTENCE_END.search(text, *units[unit]))
    between_words = (unit for unit in candidates if units[unit][1] < units[unit + 1][0])
    return next(chain(between_paragraphs, after_sentence, between_words), latest)


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation, in Unicode's normal form NFKC."""
    folded = unicodedata.normalize("NFKC", text).lower()
    if _is_plain(folded):
        return _PLAIN_WORD.findall(folded)
    return list(
        chain.from_iterable(
            characters if kind == 1 else ["".join(characters)] for characters, kind in _segments(folded)
        )
    )


def search_terms(text: str) -> list[str]:
    """The words of a text; in Korean and scripts without spaces, pairs of characters, and each Chinese character."""
    folded = unicodedata.normalize("NFKC", text).lower()
    if _is_plain(folded):
        return _PLAIN_WORD.findall(folded)
    terms: list[str] = []
    for characters, kind in _segments(folded):
        if not kind or len(characters) == 1:
            terms += characters
            continue
        terms += map("".join, pairwise(characters))
        terms += [each for each in characters if _pattern("han").fullmatch(each)] if kind == 1 else []
    return terms


def _segments(folded: str) -> Iterator[tuple[list[str], int]]:
    """Yields parts of a text with their kind: a word (0), characters of a script without spaces (1), or Korean (2)."""
    character, kinds = _pattern("character"), _pattern("kinds")
    for match in kinds.finditer(folded):
        kind = match.lastindex or 0
        yield character.findall(match[0]) if kind == 1 else list(match[0]) if kind else [match[0]], kind


CHARACTERS_PER_TOKEN: Final = 4
"""Average number of characters per token in ASCII text, for estimates."""


def estimated_tokens(text: str) -> float:
    """Estimated tokens of a current model: one per 4 characters of English, 2 of Russian, 1 of Chinese or Japanese.

    Each ASCII character counts a quarter of a token; of other characters, each byte of UTF-8 beyond the first counts
    half a token. Measured on one program's messages in 29 languages and on the answers of a Chinese test, with the
    vocabularies of cl100k, o200k, DeepSeek and an earlier Claude. These differ by a factor of up to 2 for Latin letters
    and of up to 4.7 for others; the estimate lies between them in 28 of 30 texts, and within a ninth of the nearest in
    Turkish and English.
    """
    if text.isascii():
        return len(text) / CHARACTERS_PER_TOKEN
    plain = len(text.encode("ascii", "ignore"))
    return plain / CHARACTERS_PER_TOKEN + (len(text.encode("utf-8", "surrogatepass")) - len(text)) / 2
