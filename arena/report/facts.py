"""What a report is about, read from a store once."""

from __future__ import annotations

import hashlib
import json
import platform
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata

from arena.boards.wins import tournament_pairs
from arena.calibration.calibrated import Calibrated
from arena.games.pairs import PairResults
from arena.leaderboard import Leaderboard, leaderboard
from arena.opinions.tournament import calibrate_tournament, resampling_of
from arena.store import IDENTICAL, Result, Store, Wanted
from judges.types import JudgeFailure, Judgment, Task, Usage

_PACKAGES = ("ragarena", "numpy", "scipy", "ir-measures")
"""Whose versions may change a figure."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What one judge did for one stage. A judgment that several wants share counts once.

    Attributes:
        judgments, failed: replies that fulfil their contract, and those that do not.
        models: how many judgments and failures came from which model, as the server names it.
        usage: tokens, as far as servers said.
        cost_usd: ``None`` where a price is not known.
    """

    task: Task
    judge: str
    judgments: int
    failed: int
    models: Mapping[str, int]
    calls: int
    usage: Usage
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a report shows.

    Attributes:
        board: the leaderboard.
        pairs: of the games that are rated, ``None`` without any.
        counts: of the data: queries, documents, answers, agents, labels of people.
        queries: texts by id.
        data_digest: SHA-256 of the data, see ``arena.dataset.Dataset.digest``.
        results_digest: SHA-256 of the ids and outcomes of everything judged.
        effort: by stage and judge.
        failures: how often which cause, by stage and judge.
        calibration: judges against people, and ways of scoring against each other.
        versions: of what computed the figures.
    """

    board: Leaderboard
    pairs: PairResults | None
    counts: Mapping[str, int]
    queries: Mapping[str, str]
    data_digest: str
    results_digest: str
    effort: tuple[Effort, ...]
    failures: Mapping[tuple[Task, str, str], int]
    calibration: Calibrated
    versions: Mapping[str, str]


def gather(store: Store, tournament: str, *, below_coverage: bool = False) -> Facts:
    """Read a tournament.

    Args:
        store: where it is.
        tournament: its name.
        below_coverage: as for ``leaderboard``.
    """
    board = leaderboard(store, tournament, below_coverage=below_coverage)
    data = store.dataset(tournament)
    outcomes = [entry for task in Task for entry in store.outcomes(tournament, task)]
    return Facts(
        board=board,
        pairs=tournament_pairs(store, tournament) if board.ratings is not None else None,
        counts={
            "queries": len(data.queries),
            "agents": len(data.agents),
            "answers": len(data.answers),
            "documents": len(data.documents),
            "labels of people": sum(map(len, data.qrels.values())),
        },
        queries={query_id: query.text for query_id, query in data.queries.items()},
        data_digest=data.digest(),
        results_digest=_digest(result for _, result in outcomes if result is not None),
        effort=tuple(_effort(outcomes)),
        failures=Counter(
            (want.task, want.judge, result.cause) for want, result in outcomes if isinstance(result, JudgeFailure)
        ),
        calibration=calibrate_tournament(store, tournament, resampling_of(board.settings), label_next=0),
        versions={"python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}},
    )


def _effort(outcomes: Iterable[tuple[Wanted, Result | None]]) -> Iterable[Effort]:
    found: defaultdict[tuple[Task, str], dict[str, Result]] = defaultdict(dict)
    for want, result in outcomes:
        if result is not None and result.judgment_id != IDENTICAL:
            found[want.task, want.judge][result.judgment_id] = result
    for (task, judge), by_id in found.items():
        results = by_id.values()
        costs = [result.cost_usd for result in results]
        known = [cost for cost in costs if cost is not None]
        yield Effort(
            task=task,
            judge=judge,
            judgments=sum(isinstance(result, Judgment) for result in results),
            failed=sum(isinstance(result, JudgeFailure) for result in results),
            models=dict(Counter(result.model or "unknown" for result in results).most_common()),
            calls=sum(result.calls for result in results),
            usage=sum((result.usage for result in results), Usage()),
            cost_usd=sum(known) if len(known) == len(costs) else None,
        )


def _digest(results: Iterable[Result]) -> str:
    said = {
        f"{result.judgment_id} "
        + (json.dumps(result.outcome, sort_keys=True) if isinstance(result, Judgment) else f"failed {result.cause}")
        for result in results
    }
    return hashlib.sha256("\n".join(sorted(said)).encode()).hexdigest()
