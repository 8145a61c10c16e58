"""Texts that say nearly the same, found by MinHash (Broder 1997) and locality-sensitive hashing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PERMUTATIONS = 128
_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Twin:
    """A text and an earlier one that is nearly the same; ``similarity`` is the Jaccard index of their shingles."""

    ident: str
    kept: str
    similarity: float


class NearDuplicates:
    """Takes texts one by one and says which of the earlier ones each repeats.

    MinHash proposes pairs and the Jaccard index of the shingles themselves decides, so that no pair is reported that is
    not as alike as asked; with 128 permutations a pair at the threshold may be missed. A text without a word is no
    twin of any, a text shorter than a shingle is one shingle.

    Args:
        threshold: the least Jaccard index of twins, above 0 and at most 1.
        shingle: words of a shingle, lower-case; with 1 the order of words does not matter.
        same_numbers: whether twins have the same words with a digit: "TLE4971" is not "TLE4972".
    """

    def __init__(self, threshold: float, shingle: int = 5, *, same_numbers: bool = False) -> None:
        from datasketch import MinHashLSH

        self._threshold, self._shingle, self._same_numbers = threshold, shingle, same_numbers
        # MinHash estimates; a little below the threshold fewer pairs are missed.
        self._index = MinHashLSH(threshold=max(0.05, threshold - 0.1), num_perm=PERMUTATIONS)
        self._kept: dict[str, tuple[frozenset[int], frozenset[str]]] = {}

    def twin(self, ident: str, text: str) -> Twin | None:
        """The earlier text most like this one, of those that were kept; without one, this one is kept."""
        words = _WORD.findall(text.lower())
        if not words:
            return None
        shingles = self._shingles(words)
        numbers = frozenset(filter(_DIGIT.search, words)) if self._same_numbers else frozenset()
        sketch = self._sketch(shingles)
        alike = [
            (_jaccard(shingles, self._kept[other][0]), other)
            for other in sorted(self._index.query(sketch))
            if self._kept[other][1] == numbers
        ]
        found = max(alike, key=lambda pair: pair[0], default=(0.0, ""))
        if found[0] >= self._threshold:
            return Twin(ident, found[1], found[0])
        self._index.insert(ident, sketch)
        self._kept[ident] = shingles, numbers
        return None

    def _shingles(self, words: Sequence[str]) -> frozenset[int]:
        starts = range(max(1, len(words) - self._shingle + 1))
        return frozenset(_hash(" ".join(words[at : at + self._shingle])) for at in starts)

    @staticmethod
    def _sketch(shingles: frozenset[int]) -> Any:
        from datasketch import MinHash

        sketch = MinHash(num_perm=PERMUTATIONS, seed=1, hashfunc=_same)
        sketch.update_batch(sorted(shingles))
        return sketch


def _hash(shingle: str) -> int:
    """The same in every process and on every machine."""
    return int.from_bytes(hashlib.blake2b(shingle.encode("utf-8", "replace"), digest_size=4).digest())


def _same(value: int) -> int:
    return value


def _jaccard(left: frozenset[int], right: frozenset[int]) -> float:
    return len(left & right) / len(left | right)
