"""What turns texts into vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from retrieval_eval.agents.meter import Meter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors; async, because that is where it waits.

    Attributes:
        identity: everything besides the text that decides its vector; no key, address or timeout.
        note: what a reader of results must know of it; empty where there is nothing.
        parallel: how many texts asked for one by one it works on at a time.
    """

    identity: Mapping[str, str | int | None]
    note: str
    parallel: int

    async def embed(self, texts: Sequence[str], meter: Meter) -> Vectors:
        """Vectors of length 1 (or all zero, of a text without words), of shape (texts, dimensions).

        Raises:
            ProviderError: there are none; what was spent is on the meter all the same.
        """
        ...

    async def close(self) -> None:
        """Release connections or memory; may be called twice."""
        ...


def of_length_one(vectors: Vectors) -> Vectors:
    """Each row divided by its length; a row of zeros stays."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    shortened: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return shortened
