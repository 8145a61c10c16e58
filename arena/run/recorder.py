"""Records runs in the store, and says how a configuration differs from its last recorded run."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Container, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from arena.config.schema import Config
from arena.present.numbers import counted, listed
from arena.store import Store
from arena.store.runners import Runner
from arena.store.runs import Ending, Runs
from judges.errors import InputError, StoreError
from judges.types import conversations, repeat_of

if TYPE_CHECKING:
    from arena.config.settings import StoredSettings
    from arena.data.dataset import Dataset
    from arena.results.ratings import Leaderboard
    from arena.run.ledger import StageSummary
    from retrieval_eval.stats.estimate import Drawn


_STANDING_COLUMNS = ("agent", "rank", "rank_low", "rank_high", "group", "bt", "bt_low", "bt_high", "games")
_DRAWS: Final = 200
"""Maximum number of ratings on resampled queries that are stored with a run."""
_NAMED = 5
"""Maximum number of agents, judges or changes that a message names."""


class Recorder:
    """Records one run in the store, with all its stages; the record begins with the first stage that sends a request.

    Attributes:
        runner: this process's entry in the store, which all stages use.
        run_id: id of the run; empty until the record begins.
        ending: how the run has ended if no further stage follows, such as ``complete``.
        stages: the counts of each stage, by name.
    """

    def __init__(self, location: str, tournament: str) -> None:
        self.runner = Runner()
        self.run_id = ""
        self.ending: Ending = "complete"
        self.stages: dict[str, Mapping[str, Any]] = {}
        self._location, self._tournament = location, tournament

    def begin(self, store: Store) -> None:
        """Begin the record of the run, unless an earlier stage began it."""
        if not self.run_id:
            store.announce(self._tournament)
            self.run_id = Runs(store, self._tournament).begin(self.runner)

    def describe(self, store: Store, subject: Mapping[str, Any]) -> None:
        Runs(store, self._tournament).describe(self.run_id, subject)

    def update(self, store: Store, stages: Mapping[str, StageSummary]) -> None:
        """Store the current counts of stages that are in progress."""
        self.stages |= {name: asdict(stage) for name, stage in stages.items()}
        Runs(store, self._tournament).update_stages(self.run_id, self.stages)

    def finish_stages(self, stages: Mapping[Any, StageSummary], *, complete: bool, stopped: bool) -> None:
        """Note the final counts of some stages, by name or task; the run is complete if all stages are."""
        if self.ending == "complete":
            self.ending = "complete" if complete else "stopped" if stopped else "incomplete"
        self.stages |= {str(name): asdict(stage) for name, stage in stages.items()}

    def end(self, ending: Ending) -> None:
        """Store how the run ended, if its record began."""
        if self.run_id:
            with closing(Store.open(self._location)) as store:
                Runs(store, self._tournament).end(self.run_id, ending, self.stages)


@contextmanager
def recorded(location: str, tournament: str, part_of: Recorder | None = None) -> Iterator[Recorder]:
    """Record a run in the store while the block executes; inside the run that ``part_of`` records, does nothing."""
    if part_of is not None:
        yield part_of
        return
    recorder = Recorder(location, tournament)
    try:
        yield recorder
    except BaseException as problem:
        with suppress(StoreError, InputError):  # the original error is raised anyway
            recorder.end("stopped" if isinstance(problem, KeyboardInterrupt) else "failed")
        raise
    recorder.end(recorder.ending)


def subject_of(settings: StoredSettings, data: Dataset) -> dict[str, Any]:
    """What a run judged: settings, agents, and digests of queries and answers; contains no text."""
    digests = query_digests(data)
    subject = {"settings": settings.raw, "agents": sorted(data.agents), "queries": digests}
    if clusters := conversations(data.queries.values()):
        subject["conversations"] = clusters
    return {**subject, "answers": answer_digests(data, digests)}


def origin_of(config: Config) -> dict[str, str]:
    """Digests of the configuration file's path and content; the path itself is never stored."""
    if config.file is None or not config.file.is_file():
        return {}
    path = str(config.file.resolve()).encode("utf-8", "surrogateescape")
    content = config.file.read_bytes()
    return {"file": hashlib.sha256(path).hexdigest()[:16], "content": hashlib.sha256(content).hexdigest()[:16]}


def query_digests(data: Dataset) -> dict[str, str]:
    """By query id, a digest of the query with the conversation before it."""
    return {
        query_id: hashlib.sha256(query.thread.encode("utf-8", "replace")).hexdigest()[:8]
        for query_id, query in data.queries.items()
    }


def answer_digests(data: Dataset, query_ids: Container[str]) -> dict[str, str]:
    """By agent, a digest of its answers to these queries; equal digests mean equal texts."""
    digests = {agent: hashlib.sha256() for agent in data.answerers}
    for query_id, agent in sorted(data.answers):
        if query_id in query_ids:
            text = data.answers[query_id, agent].text.encode("utf-8", "replace")
            digests[agent].update(f"{query_id}\0{len(text)}\0".encode("utf-8", "replace") + text)
    return {agent: digest.hexdigest()[:16] for agent, digest in digests.items()}


def standings_of(board: Leaderboard, drawn: Drawn | None = None) -> list[dict[str, Any]]:
    """The rows of a leaderboard as stored with a run, best agent first; empty without ratings.

    ``se`` of a row lists the standard errors of the agent's difference to each agent below it, where known: with these,
    intervals around the difference to any group of agents can be computed later. ``draws`` lists the agent's ratings on
    resampled queries, if given: they can be paired with those of another run on the same queries.
    """
    if board.ratings is None:
        return []
    pairs = [pair for pair in board.ratings.pairs if math.isfinite(pair.se)]
    errors = {frozenset((pair.better, pair.worse)): round(pair.se, 2) for pair in pairs}
    names = [row.agent for row in board.ratings.agents]
    draws = {} if drawn is None else dict(zip(drawn.agents, drawn.samples[:_DRAWS].T.tolist(), strict=True))
    return [
        {name: getattr(row, name) for name in _STANDING_COLUMNS}
        | {"se": [errors.get(frozenset((row.agent, other))) for other in names[at:]]}
        | ({"draws": [_rounded(rating) for rating in draws[row.agent]]} if row.agent in draws else {})
        for at, row in enumerate(board.ratings.agents, start=1)
    ]


def _rounded(rating: float) -> float | None:
    """A rating rounded to 0.1 points; ``None`` if it is missing because an agent had no game in this resample."""
    return None if math.isnan(rating) else round(rating, 1)


def compared_with_stored(store: Store, config: Config) -> str:
    """Describe in one line how a configuration differs from its stored tournament; empty if it does not.

    The configuration may have been edited since its last run; the stored results are still shown. It may also be a
    copy, or an older version that lacks agents or queries added later.
    """
    subject = Runs(store, config.name).last_subject()
    origin, stored = origin_of(config), subject.get("origin", {})
    if not subject or origin == stored or store.settings(config.name).imported:
        return ""
    from arena.data.files import load_files  # late: the data of an unchanged configuration are not read
    from retrieval_eval.data.table_spec import unsaid

    edited = origin.get("file") == stored.get("file") is not None
    try:
        with unsaid():
            described = _described(config, load_files(config), subject["queries"])
    except InputError as error:
        described = None
        problem = f"its data cannot be read: {error}"
    if described is None:
        if edited:
            return f"{config.file}: has changed since its last run, which is shown, and {problem}"
        raise _another(config, subject, problem)
    gone, added = _differences(config, described, subject)
    if gone and not edited:
        raise _another(config, subject, "")
    changes = [
        *([f"not in the store yet: {listed(added, _NAMED)}"] if added else []),
        *([f"changed since its last run, which is shown: {listed(gone, _NAMED)}"] if gone else []),
    ]
    return f"{config.file}: {'; '.join(changes)}; run it to bring the store up to date" if changes else ""


def _another(config: Config, subject: Mapping[str, Any], problem: str) -> InputError:
    agents = listed([str(agent) for agent in subject["agents"]] or ["none"], _NAMED)
    judges = sorted((subject.get("settings") or {}).get("judges", {}))
    owner = f"agents {agents}; judges {listed(judges, _NAMED)}" if judges else f"agents {agents}"
    return InputError(
        f"{config.file}: another file ran the tournament {config.name!r} in the store ({owner})"
        f"{f', and {problem}' if problem else ''}; run this file first, or give its tournament another name"
    )


def _described(config: Config, data: Dataset, query_ids: Collection[str]) -> dict[str, Any]:
    """Digests of the queries and answers in the files, as a run records them; asks no agent and reads no corpus."""
    queries = query_digests(data)
    runs: set[str] = set()
    if config.data.runs:
        from retrieval_eval.data.runs import read_runs  # late, as above

        runs = {run.name for run in read_runs(config.data.runs)}
    return {
        "queries": queries,
        "answers": answer_digests(data, query_ids),
        "agents": {*data.agents, *config.agents},
        "runs": runs,
    }


def _differences(
    config: Config, described: Mapping[str, Any], subject: Mapping[str, Any]
) -> tuple[list[str], list[str]]:
    """What has changed or is missing in the files since the last run, and what only the files have."""
    stored, known = subject["queries"], {*described["agents"], *described["runs"]}
    gone = [f"agent {agent!r}" for agent in subject["agents"] if agent not in known]
    gone += [
        f"answers of agent {agent!r}"
        for agent, digest in described["answers"].items()
        if repeat_of(agent)[0] not in config.agents and subject.get("answers", {}).get(agent, digest) != digest
    ]
    changed = sum(described["queries"].get(query_id) != digest for query_id, digest in stored.items())
    gone += [counted(changed, "query", "queries")] if changed else []
    judges, used = (subject.get("settings") or {}).get("judges", {}), config.judges_in_use()
    gone += [f"judge {name!r}" for name in judges if name not in used or config.judges[name].stored() != judges[name]]
    gone += _changed_agents(config, (subject.get("settings") or {}).get("agents", ()))
    added = [f"agent {agent!r}" for agent in sorted(described["agents"].difference(subject["agents"]))]
    more = len(described["queries"].keys() - stored.keys())
    added += [f"judge {name!r}" for name in used if name not in judges]
    return gone, added + ([counted(more, "query", "queries")] if more else [])


def _changed_agents(config: Config, stored: Collection[Mapping[str, Any]]) -> list[str]:
    specs = config.agents
    return [
        f"settings of agent {agent['name']!r}"
        for agent in stored
        if agent["name"] in specs and specs[agent["name"]].stored() != agent.get("settings", {})
    ]
