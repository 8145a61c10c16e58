"""Tournaments played from Python."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ragleague.board import Board

if TYPE_CHECKING:
    from arena.config.whole import Config
    from arena.run.ledger import Kind, Progress

_EVERY_S: Final = 0.2


def open(store: str | Path, tournament: str | None = None) -> Board:  # noqa: A001 - reads as rl.open
    """The results in a store, or of a tournament's YAML file.

    Args:
        store: path or URL of a store, or a configuration.
        tournament: its name; may be left out where there is one alone.

    Raises:
        InputError: there is no such file, store or tournament.
    """
    from arena.cli.sources import location_and_name

    location, name = location_and_name(str(store))
    return Board(location, tournament or name)


def run(config: str | Path, *, progress: bool = True, retry_failed: bool = False) -> Board:
    """Play what is missing of a tournament, and give its results; what its store holds is not asked again.

    What is missing afterwards, and why, says ``board``; ``board.complete`` is false then.

    Args:
        config: the tournament's YAML file.
        progress: show bars while agents and judges are asked.
        retry_failed: also ask again where the last reply was outside its contract.

    Raises:
        InputError: configuration, data, prompts or judges cannot be used. Nothing was sent then.
        StoreError: the store cannot be written.
    """
    from arena.config.whole import load_config

    loaded = load_config(Path(config))
    _outside_loops(lambda: _play(loaded, progress=progress, retry_failed=retry_failed))
    return Board(loaded.store, loaded.name)


async def arun(*args: Any, **options: Any) -> Board:
    """The same as ``run``, for programs with a loop of their own."""
    return await asyncio.to_thread(run, *args, **options)


def _play(config: Config, *, progress: bool, retry_failed: bool) -> None:
    from arena.cli.console import Bars, errors
    from arena.cli.parts import print_part
    from arena.run.play import Part, play

    def say(part: Part) -> None:
        if progress:
            print_part(part)

    def told() -> AbstractContextManager[Progress]:
        if progress and _in_notebook():
            return _Line()
        return Bars(shown=progress and errors.is_terminal)

    play(config, told, say, retry_failed=retry_failed)


class _Line:
    """One line of a notebook's cell, written over while a run goes on."""

    def __init__(self) -> None:
        self._wanted: dict[str, int] = {}
        self._settled: dict[str, int] = {}
        self._failed: dict[str, int] = {}
        self._written_at = 0.0

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        print(f"\r{'':<60}\r", end="", file=sys.stderr, flush=True)  # noqa: T201

    def begin(self, task: str, wanted: int) -> None:
        """A stage begins."""
        self._wanted[task], self._settled[task], self._failed[task] = wanted, 0, 0

    def more(self, task: str, wanted: int) -> None:
        """More wants than were known when it began."""
        self._wanted[task] += wanted

    def count(self, task: str, kind: Kind, cost_usd: float | None) -> None:  # noqa: ARG002 - the interface's
        """One more want is settled."""
        self._settled[task] += 1
        self._failed[task] += kind == "failed"
        if time.monotonic() - self._written_at > _EVERY_S:
            self._written_at = time.monotonic()
            failed = f", {self._failed[task]} failed" if self._failed[task] else ""
            line = f"{task}: {self._settled[task]:,} of {self._wanted[task]:,}{failed}"
            print(f"\r{line:<60}", end="", file=sys.stderr, flush=True)  # noqa: T201


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _outside_loops(work: Callable[[], None]) -> None:
    """Do work that has an event loop of its own, which a thread cannot have beside another, such as a notebook's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        work()
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
