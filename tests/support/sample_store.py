"""Stores made by hand through ``Store``, for tests of what reads them: no judge runs, every verdict is decided here."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from arena.config.ratings import RatingsSection
from arena.data.dataset import Dataset
from arena.store import IDENTICAL, Result, Store, Wanted
from judges.types import (
    Answer,
    Document,
    JudgeFailure,
    Judgment,
    Query,
    Retrieved,
    Task,
    Usage,
)

AGENTS = ("hybrid", "dense", "bm25", "random-passage")
"""Strongest first, as the verdicts will have it."""

SCALE = {"not relevant": 0, "somewhat relevant": 1, "very relevant": 2}

SETTINGS: dict[str, Any] = {
    "judges": {"strict": {"provider": "openai", "model": "judge-1", "temperature": 0.0}},
    "retrieval": {"judge": ["strict"], "prompt": "reasoner@1", "depth": None, "scale": SCALE},
    "pairwise": {
        "judges": ["strict"],
        "both_orders": True,
        "documents": {"include": True, "annotations": True, "threshold": 1},
        "win_and_tie": "tie",
    },
    "criteria": {
        "judge": "strict",
        "names": {"accuracy": "what it says is true", "completeness": "nothing is missing"},
        "scale": [0, 2],
    },
    "ratings": RatingsSection.model_validate(
        {"elo": {"tournaments": 50}, "bootstrap": {"samples": 200}, "seed": 3}
    ).model_dump(mode="json"),
}

Wording = Callable[[str, str], str]
"""From a kind (query, answer, document, title, reason or reply) and our text to the text stored."""


def as_it_is(_kind: str, text: str) -> str:
    """The wording that changes nothing."""
    return text


def write_store(
    path: Path,
    *,
    name: str = "sample",
    agents: Sequence[str] = AGENTS,
    queries: int = 12,
    wording: Wording = as_it_is,
    unasked: int = 0,
    failed: int = 0,
    margin: float = 1.0,
    criteria: bool = True,
    details: Mapping[str, int | str] | None = None,
    qrels: Mapping[str, Mapping[str, int]] | None = None,
    priced: bool = False,
    kinds: Sequence[str] = (),
    reference: str | None = None,
    prompt: str = "",
) -> Path:
    """Put a tournament into a store, which is made if it is not there.

    Args:
        path: of the store.
        name: of the tournament.
        agents: strongest first.
        queries: how many; each pair meets on each, in both orders.
        wording: of every text but the agents' names.
        unasked: wants, from the end of the games, that have no result.
        failed: wants, before those, whose judge failed.
        margin: how much better each agent is than the next, against noise of standard deviation 1.
        criteria: whether answers are graded too.
        details: what the relevance judge said of every document besides its label.
        qrels: people's labels by query (q00, q01, ...) and document (q00-d0 of the first agent, ..., q00-common).
        priced: whether answers say what they took: the weaker an agent, the less.
        kinds: of the queries, in turn, in their column "kind".
        reference: answer of every query.
        prompt: by which games were judged, as NAME@VERSION.
    """
    data = replace(_data(agents, queries, wording), qrels=qrels or {})
    if kinds:
        of_kind = enumerate(data.queries.values())
        data = replace(
            data, queries={own.query_id: replace(own, metadata={"kind": kinds[at % len(kinds)]}) for at, own in of_kind}
        )
    if reference is not None:
        queried = {query_id: replace(query, reference=reference) for query_id, query in data.queries.items()}
        data = replace(data, queries=queried)
    if priced:
        data = replace(data, answers={key: _priced(answer, agents) for key, answer in data.answers.items()})
    relevance = [(want, _labelled(want, wording, details)) for want in _relevance_wants(data)]
    games = _games(agents, data, wording, margin)
    grades = [(want, _graded(want, agents, wording)) for want in _criteria_wants(data)] if criteria else []
    last = len(games) - unasked
    games[last - failed : last] = [(want, _failure(want, wording)) for want, _ in games[last - failed : last]]
    outcomes: list[tuple[Wanted, Result]] = [*relevance, *games[:last], *grades]
    settings = SETTINGS if criteria else {**SETTINGS, "criteria": None}
    settings = {**settings, "pairwise": {**settings["pairwise"], "prompt": prompt}} if prompt else settings
    with closing(Store.create(str(path))) as store:
        store.save([(want.task, "by-hand@1", result) for want, result in outcomes])
        store.begin(name, settings, data, [want for want, _ in [*relevance, *games, *grades]])
        store.assign(name, [(want, result.judgment_id) for want, result in outcomes])
    return path


def _data(agents: Sequence[str], queries: int, wording: Wording) -> Dataset:
    """Each agent retrieves one document of its own and one in common; the two weakest give one answer on query 0."""
    ids = [f"q{number:02}" for number in range(queries)]
    found = {query_id: [*(f"{query_id}-d{i}" for i in range(len(agents))), f"{query_id}-common"] for query_id in ids}
    answers = {}
    for query_id in ids:
        for agent in agents:
            writer = agents[-1] if query_id == "q00" and agent in agents[-2:] else agent
            text = f"The answer of {writer} to {query_id}: twelve days, as the handbook says."
            answers[query_id, agent] = Answer(query_id, agent, wording("answer", text))
    return Dataset(
        {q: Query(q, wording("query", f"How long is the notice period in case {q}?")) for q in ids},
        {
            doc_id: Document(
                doc_id,
                wording("document", f"Document {doc_id} tells of notice periods."),
                {"title": wording("title", f"Title of {doc_id}")},
            )
            for q in ids
            for doc_id in found[q]
        },
        answers,
        {
            q: [
                entry
                for i, agent in enumerate(agents)
                for entry in (Retrieved(q, found[q][i], agent, 1), Retrieved(q, found[q][-1], agent, 2))
            ]
            for q in ids
        },
    )


def _priced(answer: Answer, agents: Sequence[str]) -> Answer:
    effort = len(agents) - agents.index(answer.agent)
    return replace(answer, metadata={"latency_s": f"{0.8 * effort}", "cost_usd": f"{0.002 * effort}"})


def _relevance_wants(data: Dataset) -> list[Wanted]:
    pools = {q: sorted({entry.doc_id for entry in entries}) for q, entries in data.retrieved.items()}
    return [Wanted(Task.RELEVANCE, "strict", q, doc_id) for q, pool in pools.items() for doc_id in pool]


def _criteria_wants(data: Dataset) -> list[Wanted]:
    return [Wanted(Task.CRITERIA, "strict", query_id, agent) for query_id, agent in data.answers]


def _games(
    agents: Sequence[str], data: Dataset, wording: Wording, margin: float
) -> list[tuple[Wanted, Judgment | JudgeFailure]]:
    games: list[tuple[Wanted, Judgment | JudgeFailure]] = []
    for query_id in data.queries:
        for first, second in combinations(sorted(agents), 2):
            noise = random.Random(f"{query_id} {first} {second}")
            lead = margin * (agents.index(second) - agents.index(first))
            same = data.answers[query_id, first].text == data.answers[query_id, second].text
            for order in ("ab", "ba"):
                want = Wanted(Task.PAIRWISE, "strict", query_id, first, second, order)
                gap = lead + noise.gauss(0, 1) + (0.2 if order == "ab" else -0.2)
                games.append((want, _tie_of_equals() if same else _preferred(want, gap, wording)))
    return games


def _preferred(want: Wanted, gap: float, wording: Wording) -> Judgment:
    """The verdict where ``item`` is better than ``other`` by ``gap``."""
    better_first = gap > 0 if want.order == "ab" else gap < 0
    verdict = "TIE" if abs(gap) < 0.3 else "A" if better_first else "B"
    return _judgment(want, verdict, wording("reason", f"I weighed both answers to {want.query_id}."), wording)


def _labelled(want: Wanted, wording: Wording, details: Mapping[str, int | str] | None) -> Judgment:
    label = random.Random(want.item).choice((0, 1, 2))
    outcome = {"label": label, **details} if details else label
    return _judgment(want, outcome, wording("reason", f"{want.item} speaks of the case in part."), wording)


def _graded(want: Wanted, agents: Sequence[str], wording: Wording) -> Judgment:
    best = 2 if agents.index(want.item) < 2 else 1
    grades = {name: random.Random(f"{want} {name}").choice((best, 1)) for name in ("accuracy", "completeness")}
    return _judgment(want, grades, wording("reason", "Graded with care."), wording)


def _judgment(want: Wanted, outcome: Any, reason: str, wording: Wording) -> Judgment:
    return Judgment(
        _ident(want), outcome, reason, wording("reply", f'{{"reason": "…", "choice": "{outcome}"}}'), "judge-1",
        Usage(900, None, 40), latency_s=1.25,
    )  # fmt: skip


def _failure(want: Wanted, wording: Wording) -> JudgeFailure:
    return JudgeFailure(_ident(want), "contract", wording("reason", "no verdict in the reply"), wording("reply", "Hm."))


def _tie_of_equals() -> Judgment:
    return Judgment(IDENTICAL, "TIE", "Both answers are the same text.", "", "none", calls=0, cost_usd=0.0)


def _ident(want: Wanted) -> str:
    parts = (want.task, want.query_id, want.item, want.other, want.order)
    return "/".join(parts)


def in_conversations(store: Store, name: str, turns: int) -> None:
    """Begin a tournament anew with so many of its queries after one another in one conversation, as judged as it is."""
    settings, data = store.settings(name).raw, store.dataset(name)
    queries = {
        query_id: replace(query, metadata={**query.metadata, "conversation": f"c{at // turns}"})
        for at, (query_id, query) in enumerate(data.queries.items())
    }
    judged = [(want, judgment_id) for want, judgment_id in store.wanted(name) if judgment_id is not None]
    store.begin(name, settings, replace(data, queries=queries), [want for want, _ in store.wanted(name)])
    store.assign(name, judged)


def begin_judged(store: Store, name: str, judged: Callable[[Wanted], bool], of: str = "sample") -> None:
    """Begin a tournament like another one, with the other's judgments of these wants alone."""
    wanted = dict(store.wanted(of))
    store.begin(name, store.settings(of).raw, store.dataset(of), list(wanted))
    store.assign(name, [(want, ident) for want, ident in wanted.items() if ident and judged(want)])
