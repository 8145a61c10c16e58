"""How much one pass through a local model may hold, learned from the passes that ran out of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_SAID_BY_CPU_AND_MPS = ("can't allocate memory", "not enough memory", "out of memory", "alloc_failed")
"""torch has an error of its own for CUDA and XPU; elsewhere it is a ``RuntimeError`` that says so."""


class Memory:
    """Divides batches that do not fit into memory, and does not try again what did not fit.

    What failed once is held to fail again in this process, and so is anything larger: as many items or more, the
    longest of them as long or longer. Single items are always tried, since others may have held the memory.
    """

    def __init__(self) -> None:
        self._failed: list[tuple[int, int]] = []

    def parts(
        self, items: Sequence[Item], length: Callable[[Item], int], work: Callable[[Sequence[Item]], list[Result]]
    ) -> Iterator[tuple[Sequence[Item], list[Result] | None]]:
        """Work on items in as few parts as fit.

        Yields:
            Each part with its results, as soon as they are there; ``None`` for a single item that does not fit alone.
        """
        waiting = [items]
        while waiting:
            part = waiting.pop()
            size = len(part), max(map(length, part))
            results = None
            if len(part) == 1 or not self._too_much(*size):
                results = _within_memory(part, work)
                if results is None:
                    self._failed.append(size)
            if results is not None or len(part) == 1:
                yield part, results
            else:
                half = len(part) // 2
                waiting += [part[half:], part[:half]]

    def _too_much(self, number: int, length: int) -> bool:
        return any(number >= failed and length >= longest for failed, longest in self._failed)


def _within_memory(items: Sequence[Item], work: Callable[[Sequence[Item]], list[Result]]) -> list[Result] | None:
    """The results, ``None`` where memory did not suffice. The exception, which holds on to what filled it, is gone."""
    import torch

    try:
        return work(items)
    except (MemoryError, torch.OutOfMemoryError):
        return None
    except RuntimeError as error:
        if not any(said in str(error).lower() for said in _SAID_BY_CPU_AND_MPS):
            raise
        return None
