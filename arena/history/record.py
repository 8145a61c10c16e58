"""A run's entry in the store: what it is of when it begins, what it came to when it ends."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any

from arena.dataset import Dataset
from arena.leaderboard import Leaderboard
from arena.ratings.results import AgentRating
from arena.runtime.ledger import RunSummary
from arena.store import Runner, Store
from arena.store.runs import Ending, Runs
from judges.errors import StoreError

_KEPT = ("agent", "rank", "rank_low", "rank_high", "group", "bt", "bt_low", "bt_high", "games")


@contextmanager
def recorded(store: Store, tournament: str, runner: Runner, subject: Mapping[str, Any]) -> Iterator[Recorder]:
    """Keep in the store that a run lasts as long as the block, and how it ended.

    Raises:
        StoreError: the store cannot be written.
    """
    runs = Runs(store, tournament)
    run_id = runs.begin(runner, subject)
    recorder = Recorder(run_id)
    try:
        yield recorder
    except BaseException as problem:
        ending: Ending = "stopped" if isinstance(problem, KeyboardInterrupt) else "failed"
        with suppress(StoreError):  # the problem itself is on the way
            runs.end(run_id, ending, {})
        raise
    runs.end(run_id, recorder.ending, recorder.stages)


class Recorder:
    """Told what a run came to, before its block ends."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.ending: Ending = "incomplete"
        self.stages: Mapping[str, Any] = {}

    def came_to(self, summary: RunSummary, *, stopped: bool) -> None:
        """What became of every want."""
        self.ending = "complete" if summary.complete else "stopped" if stopped else "incomplete"
        self.stages = {task.value: asdict(stage) for task, stage in summary.stages.items()}


def subject_of(settings: Mapping[str, Any], data: Dataset) -> dict[str, Any]:
    """What a run is of, without any text: settings, agents, and a digest of each query."""
    digests = {
        query_id: hashlib.sha256(query.text.encode("utf-8", "replace")).hexdigest()[:8]
        for query_id, query in data.queries.items()
    }
    return {"settings": settings, "agents": sorted(data.agents), "queries": digests}


def standings_of(board: Leaderboard) -> list[dict[str, Any]]:
    """The lines of a leaderboard, best first; none without ratings."""
    return [_line(row) for row in board.ratings.agents] if board.ratings else []


def _line(row: AgentRating) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _KEPT}
