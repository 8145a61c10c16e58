"""Vectors of hashed words: a stand-in for embeddings that needs no model, knows no meaning, and says so."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from retrieval_eval.agents.embeddings.base import of_length_one
from retrieval_eval.agents.meter import Meter
from retrieval_eval.agents.text import terms

if TYPE_CHECKING:
    from retrieval_eval.agents.embeddings.base import Vectors

DIMENSIONS = 4096


class HashedEmbedder:
    """Feature hashing (Weinberger et al. 2009) of word stems and of pairs of neighbours, with a sign by the hash.

    A term that occurs n times weighs 1 + ln n. Texts are similar as far as they share words.
    """

    identity: Mapping[str, str | int | None] = {"provider": "hashed", "version": 1, "dimensions": DIMENSIONS}
    parallel = 1
    note = "vectors of hashed words stand in for embeddings: they match words and know no meaning"

    async def embed(self, texts: Sequence[str], meter: Meter) -> Vectors:
        """Vectors of shape (texts, ``DIMENSIONS``)."""
        import numpy as np

        with meter.timed():
            vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
            for row, text in zip(vectors, texts, strict=True):
                stems = terms(text)
                for term, count in Counter([*stems, *map(" ".join, pairwise(stems))]).items():
                    place, sign = _place(term)
                    row[place] += sign * (1 + math.log(count))
            return of_length_one(vectors)

    async def close(self) -> None:
        """Nothing is held."""


@lru_cache(maxsize=100_000)
def _place(term: str) -> tuple[int, int]:
    number = int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest())
    return number // 2 % DIMENSIONS, 1 if number % 2 else -1
