"""Whole tournaments whose truth is known: a judge that follows a script, and may give nothing usable on one agent.

The script decides everything by a hash of what is judged, so that what the judge said can be counted again without the
store: games by the agents' strengths, and every other score by how often an agent is good. On part of the queries all
parts of an agent's answer are good or bad together.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from arena.config.schema import Config
from arena.data.kinds import Annotation, texts_now
from arena.run import judging as tournament
from arena.store import Store
from arena.store.annotations import Annotations
from benchmarks.false_sentences.voters import Vote
from benchmarks.false_sentences.worlds import Row
from judges.types import Task
from retrieval_eval.data.tables import write_rows
from tests.support.tournaments import Quiet

GROUPS = ("even", "odd")
ITEMS = 4
"""Questions and nuggets of a query, and documents of each agent."""
TIE, SWAYED, TOGETHER, BAD = 0.3, 0.1, 0.3, 0.1
"""How near two answers tie; how often a verdict goes to the answer shown first; how often all parts are alike;
how often an agent is good where it is bad."""
_SHOWN = re.compile(r"\b([v-z]) (?:says of|found for) (q\d+)")


class World(Struct, frozen=True):
    """How a tournament comes about.

    Attributes:
        strengths: of the agents in games, in standard deviations of a query.
        good: how often a part of an agent's answer, or a document, is good.
        judges: of games.
        failing: the agent on which judgments fail, and how often.
        hard: they fail on that share of the queries, the first ones, on which the agent is bad.
        turns: queries of one conversation.
        voters: people, each of whom judges this share of the games.
        grouped: whether queries are of one of two kinds; ``only`` counts those of one, 0 or 1.
        audited: whether cheats play.
    """

    kind: str
    seed: str
    strengths: Mapping[str, float]
    good: Mapping[str, float]
    queries: int
    scores: frozenset[str]
    judges: tuple[str, ...] = ("j",)
    failing: str = ""
    share: float = 0.0
    hard: bool = False
    turns: int = 1
    voters: Mapping[str, float] = field(default_factory=dict)
    grouped: bool = False
    only: int | None = None
    audited: bool = False

    @property
    def agents(self) -> list[str]:
        return sorted(self.strengths)

    @property
    def names(self) -> list[str]:
        return [f"q{at:02}" for at in range(self.queries) if self.only in (None, at % 2)]

    def conversation(self, query: str) -> str:
        return query if self.turns == 1 else f"c{int(query[1:]) // self.turns}"

    @property
    def best(self) -> str | None:
        ahead = {one: [other for other in self.agents if self.truth("pairwise", one, other) > 0] for one in self.agents}
        return next((one for one, behind in ahead.items() if len(behind) == len(ahead) - 1), None)

    def fails(self, agents: Sequence[str], query: str, *what: str) -> bool:
        if self.failing not in agents:
            return False
        return self.is_hard(query) if self.hard else self._draw("fails", query, *what) < self.share

    def is_hard(self, query: str) -> bool:
        return self.hard and int(query[1:]) < self.share * self.queries

    def verdict(self, judge: str, query: str, first: str, second: str) -> str:
        if self._draw("swayed", judge, query, first, second) < SWAYED:
            return first
        one, other = sorted((first, second))
        gap = self._gap(query, one, other, judge)
        return "" if abs(gap) < TIE else one if gap > 0 else other

    def vote(self, person: str, query: str, one: str, other: str) -> int | None:
        """1 where the first agent by name wins, -1, or 0; ``None`` where the person does not judge the game."""
        if self._draw("votes", person, query, one, other) >= self.voters[person]:
            return None
        gap = self._gap(query, one, other, person)
        return 0 if abs(gap) < TIE else 1 if gap > 0 else -1

    def _gap(self, query: str, one: str, other: str, rater: str) -> float:
        of_query, of_rater = self._normal("query", query, one, other), self._normal("rater", rater, query, one, other)
        return self._apart(one, other, hard=self.is_hard(query)) + of_query + 0.3 * of_rater

    def _apart(self, one: str, other: str, *, hard: bool) -> float:
        bad = {agent: 4.0 * (hard and agent == self.failing) for agent in (one, other)}
        return self.strengths[one] - bad[one] - self.strengths[other] + bad[other]

    def truth(self, score: str, one: str, other: str) -> float:
        """How much higher the first scores in expectation; being swayed favours neither."""
        on_easy, on_hard = (self._truth(score, one, other, hard=hard) for hard in (False, True))
        return on_easy + self.share * self.hard * (on_hard - on_easy)

    def _truth(self, score: str, one: str, other: str, *, hard: bool) -> float:
        if score == "pairwise":
            gap = NormalDist(self._apart(one, other, hard=hard), (1 + 0.3**2) ** 0.5)
            return (1 - SWAYED) * ((1 - gap.cdf(TIE)) + (gap.cdf(TIE) - gap.cdf(-TIE)) / 2 - 0.5)
        good = [BAD if hard and agent == self.failing else self.good[agent] for agent in (one, other)]
        return (good[0] - good[1]) * (2 if score == "criteria" else 1)

    def is_good(self, score: str, query: str, agent: str, part: int) -> bool:
        together = self._draw("together", score, query, agent) < TOGETHER
        good = BAD if agent == self.failing and self.is_hard(query) else self.good[agent]
        return self._draw("good", score, query, agent, "" if together else str(part)) < good

    def _draw(self, *what: str) -> float:
        return int(hashlib.sha256(" ".join((self.seed, *what)).encode()).hexdigest()[:12], 16) / 2**48

    def _normal(self, *what: str) -> float:
        return NormalDist().inv_cdf(min(max(self._draw("normal", *what), 1e-9), 1 - 1e-9))

    def reply(self, judge: str, prompt: Any) -> Any:
        asked, shown = prompt.asked, list(dict.fromkeys(_SHOWN.findall(prompt.asked.user)))
        query, agents = shown[0][1], [agent for agent, _ in shown]
        if asked.task is Task.PAIRWISE and len(agents) == 1:
            return self._of_cheat(asked.user, query, agents[0])
        if asked.task is Task.PAIRWISE:
            if self.fails(agents, query, "pairwise", judge, *agents):
                return ""
            winner = self.verdict(judge, query, agents[0], agents[1])
            return {"explanation": "e", "verdict": "TIE" if not winner else "A" if winner == agents[0] else "B"}
        score = _SCORED[asked.task]
        parts = self.parts(score, query, agents[0])
        of_part = re.findall(r"(?:Point|text) (\d+)", asked.user) if score in ("exam", "retrieval") else []
        parts = [parts[int(own)] for own in of_part[:1]] or parts
        return "" if None in parts else _written(score, [bool(own) for own in parts], asked.contract)

    def is_seen(self, cheat: str, query: str, agent: str) -> bool:
        return self._draw("cheat", cheat, query, agent) < 0.75

    def _of_cheat(self, user: str, query: str, agent: str) -> Any:
        first = re.findall(r"<<<answer of[^\n>]*? [0-9a-f]{12}>>>\n(.*?)\n?<<<end", user, re.DOTALL)[0]
        cheat = "padded" if "once more" in user else "constant"
        if not self.is_seen(cheat, query, agent):
            return {"explanation": "e", "verdict": "TIE"}
        honest = f"{agent} says of {query} this."
        return {"explanation": "e", "verdict": "A" if first.strip() == honest else "B"}

    # --- what the judge said, without the store

    def rows(self) -> list[Row]:
        return [
            Row(query, *shown, self.verdict(judge, query, *shown), judge)
            for query in self.names
            for pair in combinations(self.agents, 2)
            for judge in self.judges
            for shown in (pair, pair[::-1])
            if not self.fails(shown, query, "pairwise", judge, *shown)
        ]

    def parts(self, score: str, query: str, agent: str) -> list[bool | None]:
        """Which parts of an answer are good by a score; ``None`` where the judgment is missing."""
        whole = score in ("criteria", "nuggets")
        return [
            None
            if self.fails([agent], query, score, agent, *([] if whole else [str(part)]))
            else self.is_good(score, query, agent, part)
            for part in range(1 if score == "criteria" else ITEMS)
        ]

    def votes(self) -> list[Vote]:
        return [
            Vote((query, *pair), person, value)
            for query in self.names
            for pair in combinations(self.agents, 2)
            for person in self.voters
            if (value := self.vote(person, query, *pair)) is not None
        ]


SCORES = ("criteria", "exam", "nuggets", "retrieval")
_SCORED: Mapping[Task, str] = {
    Task.CRITERIA: "criteria",
    Task.GRADING: "exam",
    Task.ASSIGNMENT: "nuggets",
    Task.RELEVANCE: "retrieval",
}


def _written(score: str, parts: Sequence[bool], contract: Any) -> Any:
    if score == "criteria":
        return {contract.reason: "e", **dict.fromkeys(contract.choices, 2 * parts[0])}
    if score == "nuggets":
        return {"labels": ["support" if own else "not_support" for own in parts]}
    if score == "retrieval":
        return {"reason": "r", "label": "very relevant" if parts[0] else "not relevant"}
    return "5" if parts[0] else "0"


def draw(number: int, seed: int) -> World:
    noise = random.Random(f"tournaments {seed} {number}")
    agents = list("vwxyz"[: noise.choice((3, 3, 4))])
    noise.shuffle(agents)
    kind, made = KINDS[number % len(KINDS)]
    spread = noise.choice((0.0, 0.0, 0.5, 1.5))
    chosen = frozenset(noise.sample(SCORES, noise.randint(1, 3)))
    usual: dict[str, Any] = {
        "strengths": {agent: -spread * place for place, agent in enumerate(agents)},
        "good": dict.fromkeys(agents, 0.6) | {agents[-1]: 0.6 - noise.choice((0.0, 0.05, 0.3))},
        "queries": noise.choice((6, 12, 16, 24)),
        "scores": chosen,
    }
    return World(kind, f"{seed} {number}", **usual | made(noise, agents))


_PEOPLE = {"person-0": 0.6, "person-1": 0.5}


def _some(noise: random.Random) -> float:
    return noise.choice((0.05, 0.2, 0.4, 0.6))


def _seems_best(agents: Sequence[str]) -> dict[str, Any]:
    """The first agent is the best where its judgments do not fail, and the worst over all."""
    strengths = dict.fromkeys(agents, 0.0) | {agents[0]: 1.0}
    return {"strengths": strengths, "good": dict.fromkeys(agents, 0.6) | {agents[0]: 0.9}, "queries": 24}


def _few(noise: random.Random) -> float:
    return noise.choice((0.0, 0.2))


KINDS: Sequence[tuple[str, Callable[[random.Random, list[str]], dict[str, Any]]]] = (
    ("complete", lambda _r, _a: {}),
    ("failures", lambda r, a: {"failing": a[0], "share": _some(r)}),
    ("failures of the worst", lambda r, a: {"failing": a[-1], "share": _some(r), "scores": frozenset(SCORES)}),
    ("failures on hard queries", lambda r, a: {"failing": a[-1], "share": r.choice((0.2, 0.4)), "hard": True}),
    ("failures hide the worst", lambda _r, a: {"failing": a[0], "share": 0.4, "hard": True} | _seems_best(a)),
    ("two judges", lambda r, a: {"judges": ("j", "k"), "failing": a[0], "share": _few(r)}),
    ("conversations", lambda r, a: {"turns": 2, "queries": r.choice((24, 32)), "failing": a[1], "share": _few(r)}),
    ("groups", lambda r, a: {"grouped": True, "queries": r.choice((24, 32)), "failing": a[1], "share": _few(r)}),
    ("people", lambda r, _a: {"voters": _PEOPLE, "judges": r.choice((("j",), ("j", "k")))}),
    ("people and failures", lambda _r, a: {"voters": _PEOPLE, "failing": a[0], "share": 0.2}),
    ("people and conversations", lambda _r, _a: {"voters": _PEOPLE, "turns": 2, "queries": 24}),
    ("audit", lambda r, a: {"audited": True, "scores": frozenset(), "failing": a[0], "share": _few(r)}),
)


def run(world: World, folder: Path) -> Config:
    _write(world, folder)
    judge = {
        name: {"provider": "python", "function": _judge(world, name), "version": world.seed} for name in world.judges
    }
    stages: dict[str, Any] = {
        "retrieval": {"judge": "j", "measures": [f"P@{ITEMS}"]},
        "criteria": {"judge": "j", "documents": {"include": False}, "names": {"accuracy": "it is true"}},
        "exam": {"judge": "j", "bank": folder / "bank.csv"},
        "nuggets": {"judge": "j", "bank": folder / "nuggets.jsonl"},
    }
    content = {
        "name": "small",
        "store": str(folder / "store.db"),
        "data": {name: [folder / f"{name}.csv"] for name in ("queries", "documents", "answers")},
        "judges": judge,
        "pairwise": {"judges": list(world.judges), "documents": {"include": False}},
        "ratings": {"bootstrap": {"samples": 200}, "elo": {"tournaments": 5}},
        **{name: own for name, own in stages.items() if name in world.scores},
        **({"audit": {"judge": "j", "canaries": ["constant", "padded"]}} if world.audited else {}),
    }
    config = Config.model_validate(content)
    tournament.run(config, Quiet())
    if world.voters:
        _cast(world, config)
    return config


def _judge(world: World, name: str) -> Callable[[Any], Any]:
    return lambda prompt: world.reply(name, prompt)


def _write(world: World, folder: Path) -> None:
    queries: list[dict[str, Any]] = [{"qid": query, "query": f"What is {query}?"} for query in world.names]
    for at, row in enumerate(queries):
        if world.grouped:
            row["kind"] = GROUPS[at % 2]
        if world.turns > 1:
            row |= {"conversation": world.conversation(row["qid"]), "turn": 1 + at % world.turns}
    write_rows(folder / "queries.csv", list(queries[0]), queries)
    both = [(query, agent) for query in world.names for agent in world.agents]
    answers = [{"qid": query, "agent": agent, "answer": f"{agent} says of {query} this."} for query, agent in both]
    write_rows(folder / "answers.csv", ["qid", "agent", "answer"], answers)
    documents: list[dict[str, Any]] = [
        {"qid": query, "did": f"{query}-{agent}-{part}", "agent": agent, "rank": part + 1}
        | {"document": f"{agent} found for {query} text {part}."}
        for query, agent in both
        for part in range(ITEMS)
    ]
    write_rows(folder / "documents.csv", ["qid", "did", "document", "agent", "rank"], documents)
    bank = [{"qid": query, "question": f"Point {part} of {query}?"} for query in world.names for part in range(ITEMS)]
    write_rows(folder / "bank.csv", ["qid", "question"], bank)
    nuggets = [
        {"query": f"What is {query}?", "qid": query}
        | {"nuggets": [{"text": f"Fact {part} of {query}.", "importance": "vital"} for part in range(ITEMS)]}
        for query in world.names
    ]
    (folder / "nuggets.jsonl").write_text("".join(json.dumps(one) + "\n" for one in nuggets))


def _cast(world: World, config: Config) -> None:
    said = []
    with closing(Store.create(str(config.store))) as store:
        data = store.dataset(config.name)
        for vote in world.votes():
            query, one, other = vote.thing
            verdict = {1: "A", 0: "TIE", -1: "B"}[vote.value]
            seen = Annotation("verdict", vote.rater, query, one, other, "", verdict)
            said.append(replace(seen, texts=texts_now(seen, data, {})))
        Annotations(store, config.name).add(said)
