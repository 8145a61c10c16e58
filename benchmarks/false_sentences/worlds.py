"""Small tables of verdicts whose truth is known: who is better, what the judge favours, what is missing."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from itertools import combinations

from msgspec import Struct, field

from benchmarks.false_sentences.recount import Row


class World(Struct, frozen=True):
    """How verdicts come about.

    Attributes:
        strengths: of the agents in log-odds; empty where no order of them is true.
        place: log-odds that being shown first adds.
        tie: chance of a tie.
        orders: ``both``, ``one`` (the agent whose name comes first is shown first), ``random`` or ``mostly one``.
        played: chance that a game is played.
        again: chance that a verdict is given twice, the second time anew.
    """

    kind: str
    strengths: Mapping[str, float]
    queries: int
    place: float = 0.0
    tie: float = 0.1
    orders: str = "both"
    played: float = 1.0
    again: float = 0.0
    judges: Mapping[str, float] = field(default_factory=lambda: {"j": 0.0})
    circle: bool = False
    named: bool = True
    placed: bool = True
    absent: str = ""

    @property
    def best(self) -> str | None:
        """The agent that is truly better than all others, if there is one."""
        if self.circle:
            return None
        ranked = sorted(self.strengths, key=lambda agent: -self.strengths[agent])
        tied = self.strengths[ranked[0]] == self.strengths[ranked[1]]
        return None if tied else ranked[0]


def draw(number: int, seed: int) -> tuple[World, list[Row]]:
    """One world and its verdicts; the same for the same number and seed."""
    noise = random.Random(f"{seed} {number}")
    while True:
        world = KINDS[number % len(KINDS)](noise)
        rows = list(_verdicts(world, noise))
        if rows:
            return world, rows


def _queries(noise: random.Random) -> int:
    return noise.randint(1, 12) if noise.random() < 0.75 else noise.randint(13, 40)


def _names(noise: random.Random, most: int = 5) -> list[str]:
    return list("vwxyz"[: noise.randint(2, most)])


def _flat(noise: random.Random) -> dict[str, float]:
    return dict.fromkeys(_names(noise), 0.0)


def _apart(noise: random.Random) -> dict[str, float]:
    names = _names(noise)
    noise.shuffle(names)
    return {name: -1.5 * place for place, name in enumerate(names)}


KINDS: list[Callable[[random.Random], World]] = [
    lambda r: World("clear", _apart(r), _queries(r), tie=r.choice((0.0, 0.2))),
    lambda r: World("surely clear", {"x": 9.0, "y": 0.0, "z": -9.0}, _queries(r), tie=0.0),
    lambda r: World("coin flips", _flat(r), _queries(r), tie=r.choice((0.0, 0.3))),
    lambda r: World("one order, first wins", _flat(r), _queries(r), place=9.0, tie=0.0, orders="one"),
    lambda r: World("one order", _apart(r), _queries(r), place=r.choice((0.0, 1.0)), orders="one"),
    lambda r: World("both orders, first wins", _flat(r), _queries(r), place=9.0, tie=0.0),
    lambda r: World("mostly one order, first wins", _flat(r), _queries(r), place=3.0, tie=0.0, orders="mostly one"),
    lambda r: World("random order", _apart(r), _queries(r), place=0.5, orders="random"),
    lambda r: World("random order, equal", _flat(r), _queries(r), place=1.0, orders="random"),
    lambda r: World("a second place", _flat(r), _queries(r), place=-2.0, orders=r.choice(("both", "random"))),
    lambda r: World("all ties", _flat(r), _queries(r), tie=1.0),
    lambda r: World("many ties", _apart(r), _queries(r), tie=0.8),
    lambda r: World("circle", _flat(r) | {"x": 0.0, "v": 0.0, "w": 0.0}, _queries(r), circle=True),
    lambda r: World("absent", _apart(r), _queries(r), absent="v"),
    lambda r: World("absent, equal", _flat(r), r.randint(10, 30), absent="v", tie=0.0),
    lambda r: World("gaps", _apart(r), _queries(r), played=0.4),
    lambda r: World("gaps, equal", _flat(r), _queries(r), played=0.3, orders=r.choice(("both", "random"))),
    lambda r: World("again", _apart(r), _queries(r), again=0.3),
    lambda r: World("one judge always first", _apart(r), _queries(r), judges={"fair": 0.0, "first": 9.0}),
    lambda r: World("two judges, equal", _flat(r), _queries(r), judges={"fair": 0.0, "swayed": 1.0}),
    lambda r: World("one game", {"x": 1.0, "y": 0.0}, 1, orders=r.choice(("one", "both"))),
    lambda r: World("no queries named", _apart(r), _queries(r), orders="random", named=False),
    lambda r: World("places not known", _apart(r), _queries(r), orders="random", placed=False),
]


def _verdicts(world: World, noise: random.Random) -> list[Row]:
    agents = sorted(world.strengths)
    rows = []
    for query in range(world.queries):
        own = {agent: noise.gauss(0, 0.5) for agent in agents}
        for one, other in combinations(agents, 2):
            if noise.random() > world.played or (world.absent in (one, other) and noise.random() < 0.7):
                continue
            turned = {"random": 0.5, "mostly one": 0.06}.get(world.orders, 0.0)
            shown = (other, one) if noise.random() < turned else (one, other)
            for judge, place in world.judges.items():
                for first, second in (shown, shown[::-1]) if world.orders == "both" else (shown,):
                    for _ in range(2 if noise.random() < world.again else 1):
                        winner = _winner(world, noise, (first, second), own, place + world.place)
                        rows.append(Row(f"q{query:02}", first, second, winner, judge, world.placed))
    return rows


def _winner(world: World, noise: random.Random, shown: tuple[str, str], own: Mapping[str, float], place: float) -> str:
    first, second = shown
    if noise.random() < world.tie:
        return ""
    gap = world.strengths[first] - world.strengths[second] + own[first] - own[second]
    if world.circle:
        names = sorted(world.strengths)
        ahead = (names.index(second) - names.index(first)) % len(names)
        gap = 2.0 if ahead * 2 < len(names) else -2.0 if ahead * 2 > len(names) else 0.0
    return first if noise.random() < 1 / (1 + math.exp(-gap - place)) else second
