"""A store as large as a team's: 50 agents, 1000 queries, 200,000 games, each judged in both orders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from arena.config.judging import PairwiseSection, ScheduleSection
from arena.config.ratings import RatingsSection
from arena.data.dataset import Dataset
from arena.stages.pairwise import games
from arena.store import Store, Wanted, chunks
from judges.types import Answer, Judgment, Query, Task, Usage

SETTINGS: dict[str, Any] = {
    "judges": {"judge": {"provider": "openai", "model": "judge-1", "temperature": 0.0}},
    "pairwise": {"judges": ["judge"], "both_orders": True, "documents": {"include": False}, "win_and_tie": "tie"},
    "ratings": RatingsSection().model_dump(mode="json"),
}
NAME = "large"
_REASON = "Both answers name the notice period; the preferred one also says from which day it runs and cites the rule."
_BATCH = 5000

Place = TypeVar("Place", Path, str)


def write(
    location: Place, *, agents: int = 50, queries: int = 1000, games_per_query: int = 200, seed: int = 0
) -> Place:
    """Write a tournament whose games are all judged.

    Agents differ by 140 points in standard deviation, the answer shown first has an advantage of 40 points, and about
    a seventh of the verdicts are ties.
    """
    data = _data(agents, queries)
    wants = list(_wants(data, games_per_query, seed))
    with closing(Store.create(str(location))) as store:
        store.begin(NAME, SETTINGS, data, wants)
        for some in chunks(zip(wants, _judged(wants, agents, seed), strict=True), _BATCH):
            store.save([(Task.PAIRWISE, "pairwise@1", judgment) for _, judgment in some])
            store.assign(NAME, [(want, judgment.judgment_id) for want, judgment in some])
    return location


def _data(agents: int, queries: int) -> Dataset:
    ids = [f"query-{number:04}" for number in range(queries)]
    names = [f"agent-{number:02}" for number in range(agents)]
    return Dataset(
        {query_id: Query(query_id, f"How long is the notice period in case {query_id}?") for query_id in ids},
        answers={
            (query_id, agent): Answer(query_id, agent, _answer(query, number))
            for query, query_id in enumerate(ids)
            for number, agent in enumerate(names)
        },
    )


def _answer(query: int, agent: int) -> str:
    """60 to 139 words with as many list items, citations and confident words as answers of language models have."""
    length = 60 + (query * 7 + agent * 13) % 80
    words = [f"word{(query + agent * 3 + place) % 97}" for place in range(length)]
    for every, mark in ((23 + agent % 5, "\n- "), (17 + query % 7, "[1]"), (31 + (query + agent) % 11, "clearly")):
        words[every::every] = [f"{word} {mark}" for word in words[every::every]]
    return f"Answer {agent} to {query}: {' '.join(words)}"


def _wants(data: Dataset, games_per_query: int, seed: int) -> Iterator[Wanted]:
    answering = dict.fromkeys(data.queries, data.agents)
    schedule = ScheduleSection(kind="random", games_per_query=games_per_query, seed=seed)
    return games(PairwiseSection(judges=["judge"], schedule=schedule), answering)


def _judged(wants: list[Wanted], agents: int, seed: int) -> Iterator[Judgment]:
    rng = np.random.default_rng(seed)
    names = sorted({want.item for want in wants} | {want.other for want in wants})
    strength = dict(zip(names, rng.normal(0, 0.8, agents), strict=True))
    ids = rng.integers(0, 2**63, (len(wants), 4))
    for want, noise, ident in zip(wants, rng.logistic(0, 1, len(wants)), ids, strict=True):
        lead = strength[want.item] - strength[want.other] + (0.23 if want.order == "ab" else -0.23) + noise
        first_leads = lead > 0 if want.order == "ab" else lead < 0
        verdict = "TIE" if abs(lead) < 0.3 else "A" if first_leads else "B"
        key = "".join(f"{part:016x}" for part in ident)
        reply = f'{{"reason": "{_REASON}", "choice": "{verdict}"}}'
        yield Judgment(key, verdict, _REASON, reply, "judge-1", Usage(900, None, 40), latency_s=1.25, cost_usd=0.001)
