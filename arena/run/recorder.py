"""A run's entry in the store: what it is of when it begins, what it came to when it ends."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Container, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from arena.store import Store
from arena.store.runners import Runner
from arena.store.runs import Ending, Runs
from judges.errors import InputError, StoreError
from judges.types import conversations

if TYPE_CHECKING:
    from arena.config.schema import Config
    from arena.config.settings import StoredSettings
    from arena.data.dataset import Dataset
    from arena.results.ratings import Leaderboard
    from arena.run.ledger import RunSummary, StageSummary
    from retrieval_eval.stats.estimate import Drawn

_KEPT = ("agent", "rank", "rank_low", "rank_high", "group", "bt", "bt_low", "bt_high", "games")


_DRAWS: Final = 200
"""Draws of the queries that are kept of a run."""


class Recorder:
    """A run from the first stage that asks anything, whichever that is; told what each comes to.

    Args:
        location: of the store.
        tournament: whose run it is; it need not have begun.

    Attributes:
        runner: the process as others see it in the store, for all stages.
        run_id: empty until the run begins.
        ending: how the run ends, by what it has been told so far.
        stages: what became of each stage's wants.
    """

    def __init__(self, location: str, tournament: str) -> None:
        self.runner = Runner()
        self.run_id = ""
        self.ending: Ending = "complete"
        self.stages: dict[str, Mapping[str, Any]] = {}
        self._location, self._tournament = location, tournament

    def begin(self, store: Store) -> None:
        """A stage begins to ask, and the run with the first one."""
        if not self.run_id:
            store.announce(self._tournament)
            self.run_id = Runs(store, self._tournament).begin(self.runner)

    def is_of(self, store: Store, subject: Mapping[str, Any]) -> None:
        """What the run judges is known by now."""
        Runs(store, self._tournament).describe(self.run_id, subject)

    def goes_on(self, store: Store, stages: Mapping[str, StageSummary]) -> None:
        """What is known of stages that are at work."""
        self.stages |= {name: asdict(stage) for name, stage in stages.items()}
        Runs(store, self._tournament).update_stages(self.run_id, self.stages)

    def judged(self, summary: RunSummary, *, stopped: bool) -> None:
        """What became of every want of stages in which judges are asked."""
        stages = {task.value: stage for task, stage in summary.stages.items()}
        self.came_to(stages, complete=summary.complete, stopped=stopped)

    def came_to(self, stages: Mapping[str, StageSummary], *, complete: bool, stopped: bool) -> None:
        """What became of every want of some stages; the run is complete if all of them are."""
        if self.ending == "complete":
            self.ending = "complete" if complete else "stopped" if stopped else "incomplete"
        self.stages |= {name: asdict(stage) for name, stage in stages.items()}

    def end(self, ending: Ending) -> None:
        """Keep how the run ended, if it began."""
        if self.run_id:
            with closing(Store.open(self._location)) as store:
                Runs(store, self._tournament).end(self.run_id, ending, self.stages)


@contextmanager
def recorded(location: str, tournament: str, part_of: Recorder | None = None) -> Iterator[Recorder]:
    """Keep in the store that a run lasts as long as the block, if it begins there, and how it ended.

    Args:
        location: of the store.
        tournament: whose run it is.
        part_of: the run that goes on beyond the block, if there is one.

    Raises:
        StoreError: the store cannot be written.
    """
    if part_of is not None:
        yield part_of
        return
    recorder = Recorder(location, tournament)
    try:
        yield recorder
    except BaseException as problem:
        with suppress(StoreError, InputError):  # the problem itself is on the way
            recorder.end("stopped" if isinstance(problem, KeyboardInterrupt) else "failed")
        raise
    recorder.end(recorder.ending)


def subject_of(settings: StoredSettings, data: Dataset) -> dict[str, Any]:
    """What a run is of, without any text: settings, agents, a digest of each query and of each agent's answers."""
    digests = query_digests(data)
    subject = {"settings": settings.raw, "agents": sorted(data.agents), "queries": digests}
    if clusters := conversations(data.queries.values()):
        subject["conversations"] = clusters
    return {**subject, "answers": answer_digests(data, digests)}


def origin_of(config: Config) -> dict[str, str]:
    """Digests of a configuration's file: of its place, which no store holds in words, and of its content."""
    if config.file is None or not config.file.is_file():
        return {}
    path = str(config.file.resolve()).encode("utf-8", "surrogateescape")
    content = config.file.read_bytes()
    return {"file": hashlib.sha256(path).hexdigest()[:16], "content": hashlib.sha256(content).hexdigest()[:16]}


def query_digests(data: Dataset) -> dict[str, str]:
    """By query, a digest of its text and of what was said before it."""
    return {
        query_id: hashlib.sha256(query.thread.encode("utf-8", "replace")).hexdigest()[:8]
        for query_id, query in data.queries.items()
    }


def answer_digests(data: Dataset, query_ids: Container[str]) -> dict[str, str]:
    """By agent, a digest of its answers to these queries: equal if each of them has the same text."""
    found = {agent: hashlib.sha256() for agent in sorted(data.agents)}
    for query_id, agent in sorted(data.answers):
        if query_id in query_ids:
            text = data.answers[query_id, agent].text.encode("utf-8", "replace")
            found[agent].update(f"{query_id}\0{len(text)}\0".encode("utf-8", "replace") + text)
    return {agent: own.hexdigest()[:16] for agent, own in found.items()}


def standings_of(board: Leaderboard, drawn: Drawn | None = None) -> list[dict[str, Any]]:
    """The lines of a leaderboard, best first; none without ratings.

    ``se`` of a line is the standard error of its difference to each agent below it, where that is known: enough to put
    an interval around the difference to any group of agents later on. ``draws`` are the agent's ratings on draws of
    the queries, where these are given: enough to pair them with those of another run on the same queries.
    """
    if board.ratings is None:
        return []
    pairs = [pair for pair in board.ratings.pairs if math.isfinite(pair.se)]
    errors = {frozenset((pair.better, pair.worse)): round(pair.se, 2) for pair in pairs}
    names = [row.agent for row in board.ratings.agents]
    draws = {} if drawn is None else dict(zip(drawn.agents, drawn.samples[:_DRAWS].T.tolist(), strict=True))
    return [
        {name: getattr(row, name) for name in _KEPT}
        | {"se": [errors.get(frozenset((row.agent, other))) for other in names[at:]]}
        | ({"draws": [_rounded(one) for one in draws[row.agent]]} if row.agent in draws else {})
        for at, row in enumerate(board.ratings.agents, start=1)
    ]


def _rounded(rating: float) -> float | None:
    """In points; draws without a game of some agent rate nobody."""
    return None if math.isnan(rating) else round(rating, 1)
