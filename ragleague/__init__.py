"""Decide which of your RAG systems is better, and whether the judge that says so can be trusted.

    import ragleague as rl

    board = rl.run("tournament.yaml")  # or rl.run(rl.load("answers/*.jsonl"), judge="openai/gpt-4.1-mini")
    board = rl.open("store.db")
    board.to_frame(); board.scores("exam"); board.plot(); board.report("board.html")
    rl.rate("verdicts.csv")

What is wrong with an input is said in one line, as an ``InputError``. This package is the face of four others, which
nothing needs to import: ``judges`` asks, ``retrieval_eval`` scores texts, ``arena`` plays and rates, ``ui`` shows.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from judges.errors import InputError, RagleagueError, StoreError
    from judges.providers.python import PromptText
    from judges.types import Query
    from ragleague.board import Board
    from ragleague.play import Answer, arun, load, open, run  # noqa: A004
    from ragleague.rating import Rated, rate

_HOMES: Final = {
    "Answer": "ragleague.play",
    "Board": "ragleague.board",
    "InputError": "judges.errors",
    "PromptText": "judges.providers.python",
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
"""Where each public name is: imported when it is first used, so that ``import ragleague`` costs nothing."""

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
