"""Decide which of your RAG systems is better, and whether the judge that says so can be trusted.

Example:
    >>> import ragleague as rl
    >>> board = rl.run("demo/tournament.yaml", progress=False)
    >>> board.to_frame()["agent"][0]
    'fusion-bm25'

Wrong input raises ``InputError`` with a message of one line. You need to import no other package: ``judges`` asks
models, ``retrieval_eval`` scores texts, ``arena`` runs tournaments and rates agents, and ``ui`` serves the pages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from judges.errors import InputError, RagleagueError, StoreError
    from judges.functions import PromptText
    from judges.types import Query
    from ragleague.board import Board
    from ragleague.play import Answer, arun, load, open, run  # noqa: A004
    from ragleague.rating import Rated, rate

_HOMES: Final = {
    "Answer": "ragleague.play",
    "Board": "ragleague.board",
    "InputError": "judges.errors",
    "PromptText": "judges.functions",
    "Query": "judges.types",
    "RagleagueError": "judges.errors",
    "Rated": "ragleague.rating",
    "StoreError": "judges.errors",
    "arun": "ragleague.play",
    "load": "ragleague.play",
    "open": "ragleague.play",
    "rate": "ragleague.rating",
    "run": "ragleague.play",
}
"""The module of each public name; it is imported when the name is first used, so that ``import ragleague`` is fast."""

__all__ = [
    "Answer",
    "Board",
    "InputError",
    "PromptText",
    "Query",
    "RagleagueError",
    "Rated",
    "StoreError",
    "__version__",
    "arun",
    "load",
    "open",
    "rate",
    "run",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib import metadata

        return metadata.version("ragleague")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ragleague' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
