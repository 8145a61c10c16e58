"""Small tables of verdicts whose truth is known, and a recount of tables that shares no code with the tool.

The recount is slow and plain on purpose: what it says of a table is what the tool's sentences are held against.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np
from msgspec import Struct, field

POINTS = 400 / math.log(10)
STILL = 10.0
"""Ratings have no maximum if a hundred times the prior moves them by more points than this."""

STEPS = 80

Key = tuple[str, str]
Counts = dict[Key, list[float]]
"""For two agents in the order of their names: games won by the first, by the second, and tied."""


class Row(Struct, frozen=True):
    """One verdict: the agents as they were shown, the winner's name or ``""`` for a tie."""

    query: str
    first: str
    second: str
    winner: str
    judge: str = "j"
    placed: bool = True


class Game(Struct, frozen=True):
    """A game as it is rated: ``score`` is 1 where the agent whose name comes first wins, 0.5 for a tie."""

    query: str
    one: str
    other: str
    score: float


class Fit(Struct, frozen=True):
    """Ratings in points by agent, and whether the likelihood has a maximum."""

    ratings: Mapping[str, float]
    exists: bool
    first: float = 0.0

    def highest(self, slack: float = 0.01) -> set[str]:
        top = max(self.ratings.values())
        return {agent for agent, rating in self.ratings.items() if rating >= top - slack}


class Recount:
    """All that is checked of one table of verdicts.

    Args:
        rows: the verdicts.
        named: whether queries are known.
        clusters: the conversations that queries are turns of.
    """

    def __init__(self, rows: Sequence[Row], *, named: bool = True, clusters: Mapping[str, str] | None = None) -> None:
        self.rows, self.named, self.clusters = list(rows), named, clusters or {}
        self.agents = sorted({name for row in rows for name in (row.first, row.second)})
        self.judges = sorted({row.judge for row in rows})
        self.queries = sorted({row.query for row in rows})
        self.units = sorted({self.unit(query) for query in self.queries})

    def unit(self, query: str) -> str:
        return self.clusters.get(query, query)

    @cached_property
    def folded(self) -> list[tuple[str, str, str, str, dict[bool, float]]]:
        """Query, judge, both agents by name, and by whether the first is shown first the majority's score for it."""
        votes: defaultdict[tuple[str, str, str, str], dict[bool, list[float]]] = defaultdict(dict)
        for row in self.rows:
            one, other = sorted((row.first, row.second))
            score = 0.5 if not row.winner else float(row.winner == one)
            votes[row.query, row.judge, one, other].setdefault(row.first == one, []).append(score)
        return [(*key, {order: _majority(said) for order, said in orders.items()}) for key, orders in votes.items()]

    @cached_property
    def in_both_orders(self) -> list[tuple[float, float]]:
        """The scores of each game that has two orders, for the same agent; of rows whose order is known."""
        if not self.named:
            return []
        known = Recount([row for row in self.rows if row.placed]).folded if any(r.placed for r in self.rows) else []
        return [(orders[True], orders[False]) for *_, orders in known if len(orders) == 2]

    @cached_property
    def folds(self) -> bool:
        return self.named and any(len(orders) == 2 for *_, orders in self.folded)

    @cached_property
    def games(self) -> list[Game]:
        if not self.folds:
            return [
                Game(row.query, min(row.first, row.second), max(row.first, row.second), _score(row))
                for row in self.rows
            ]
        return [Game(query, one, other, _fold(orders)) for query, _, one, other, orders in self.folded]

    @cached_property
    def counts(self) -> Counts:
        return counted(self.games)

    @cached_property
    def fit(self) -> Fit:
        return fit(self.counts)

    @cached_property
    def by_place(self) -> Fit | None:
        """Ratings of single verdicts along with what being shown first is worth; ``None`` where it has no maximum."""
        shown: defaultdict[Key, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        for row in self.rows:
            if row.placed:
                shown[row.first, row.second][0 if row.winner == row.first else 1 if row.winner else 2] += 1
        found = fit(dict(shown), place=True) if shown else None
        return found if found is not None and found.exists else None

    def record(self, agent: str) -> tuple[float, float, float]:
        scores = [g.score if g.one == agent else 1 - g.score for g in self.games if agent in (g.one, g.other)]
        return scores.count(1.0), scores.count(0.5), scores.count(0.0)

    def met(self, one: str, other: str) -> tuple[float, float, float]:
        low, high = sorted((one, other))
        won, lost, tied = self.counts.get((low, high), [0.0, 0.0, 0.0])
        return (won, lost, tied) if one == low else (lost, won, tied)

    @cached_property
    def present(self) -> dict[str, int]:
        places = [self.unit(game.query) if self.named else str(at) for at, game in enumerate(self.games)]
        met = [(place, {game.one, game.other}) for place, game in zip(places, self.games, strict=True)]
        return {agent: len({place for place, two in met if agent in two}) for agent in self.agents}

    def beats(self, one: str, other: str) -> bool:
        won, lost, _ = self.met(one, other)
        return won > lost

    @cached_property
    def place_known(self) -> bool:
        """Whether the advantage of being shown first differs from every set of strengths (rank of the design)."""
        pairs = {(row.first, row.second) for row in self.rows if row.placed}
        number = {agent: at for at, agent in enumerate(self.agents)}
        design = np.zeros((len(pairs), len(self.agents) + 1))
        for line, (first, second) in enumerate(sorted(pairs)):
            design[line, number[first]], design[line, number[second]], design[line, -1] = 1, -1, 1
        return bool(np.linalg.matrix_rank(design) > np.linalg.matrix_rank(design[:, :-1]))

    @cached_property
    def linked(self) -> bool:
        seen, left = {self.agents[0]}, [self.agents[0]]
        while left:
            at = left.pop()
            new = {name for pair in self.counts for name in pair if at in pair} - seen
            seen |= new
            left += sorted(new)
        return len(seen) == len(self.agents)

    def circles(self) -> tuple[int, int]:
        """Number of triples with a majority winner in each pair, and of circular triples."""
        triples = around = 0
        for a, b, c in combinations(self.agents, 3):
            pairs = ((a, b), (b, c), (c, a))
            if all(self.beats(*pair) or self.beats(*pair[::-1]) for pair in pairs):
                triples += 1
                around += len({self.beats(*pair) for pair in pairs}) == 1
        return triples, around

    def on_a_circle(self, agents: Iterable[str]) -> bool:
        """Whether each of these agents lies on a circle of direct results and ratings."""
        ratings = self.fit.ratings
        after = {
            one: {o for o in self.agents if o != one and (self.beats(one, o) or ratings[one] > ratings[o] + 1)}
            for one in self.agents
        }
        return all(agent in _reached(after, agent) for agent in agents)

    def without(self, number: int, unit: str, leads: str, behind: str, *, highest: bool) -> bool:
        """Whether leaving out so many games (queries) can put ``behind`` ahead: of all, or of ``leads`` alone."""
        units = [[game] for game in self.games]
        if unit == "query":
            units = [[game for game in self.games if self.unit(game.query) == name] for name in self.units]
            units = [own for own in units if own]

        def gap(left: Sequence[Sequence[Game]]) -> float:
            counts = counted(game for own in left for game in own)
            rest = _fitted(counts, 1e-7, place=False)[0] if counts else {}
            if behind not in rest:
                return -math.inf
            above = rest[behind] - rest.get(leads, -math.inf)
            rivals = [rating for agent, rating in rest.items() if agent != behind] if highest else []
            return min(above, rest[behind] - max(rivals, default=-math.inf) + 0.01)

        kinds: defaultdict[str, list[int]] = defaultdict(list)
        for at, own in enumerate(units):
            kinds[repr(sorted((g.one, g.other, g.score) for g in own))].append(at)

        def turned(left_out: Sequence[int]) -> bool:
            gone = set(left_out)
            return gap([own for at, own in enumerate(units) if at not in gone]) > 0

        effect = {kind: gap(units[: own[0]] + units[own[0] + 1 :]) for kind, own in kinds.items()}
        ordered = sorted(kinds, key=lambda kind: -effect[kind])
        if turned([at for kind in ordered for at in kinds[kind]][:number]):
            return True
        left = dict(kinds)
        gone: list[int] = []
        for _ in range(number):
            kept = [kind for kind in left if left[kind]]
            best = max(
                kept, key=lambda kind: gap([u for at, u in enumerate(units) if at not in (*gone, left[kind][0])])
            )
            gone.append(left[best][0])
            left[best] = left[best][1:]
        return turned(gone) or any(
            turned([*kinds[one][:part], *kinds[other][: number - part]])
            for one, other in combinations(ordered, 2)
            for part in range(number + 1)
            if part <= len(kinds[one]) and number - part <= len(kinds[other])
        )


def counted(games: Iterable[Game]) -> Counts:
    found: Counts = {}
    for game in games:
        kind = {1.0: 0, 0.0: 1, 0.5: 2}[game.score]
        found.setdefault((game.one, game.other), [0.0, 0.0, 0.0])[kind] += 1
    return found


def fit(counts: Counts, *, place: bool = False) -> Fit:
    """Davidson's model, mean 1000; with ``place`` the first agent of a pair is the one shown first.

    A hair of a prior keeps endless ratings in sight: where a larger one moves them, there is no maximum.
    """
    ratings, first = _fitted(counts, 1e-7, place=place)
    checked, other = _fitted(counts, 1e-5, place=place)
    moved = max(abs(first - other), *(abs(ratings[agent] - checked[agent]) for agent in ratings))
    decided = any(won or lost for won, lost, _ in counts.values())
    return Fit(ratings, moved < STILL and decided, first)


def _fitted(counts: Counts, prior: float, *, place: bool) -> tuple[dict[str, float], float]:
    agents = sorted({name for pair in counts for name in pair})
    number = {agent: at for at, agent in enumerate(agents)}
    won, lost, tied = np.array(list(counts.values())).T
    played, size, with_ties = won + lost + tied, len(agents), bool(tied.any())
    design = np.zeros((len(counts), size + place + with_ties))
    for line, (one, other) in enumerate(counts):
        design[line, number[one]], design[line, number[other]] = 1.0, -1.0
    if place:
        design[:, size] = 1.0
    x = np.zeros(design.shape[1])
    for _ in range(STEPS):
        gap = design @ x - (x[-1] * design[:, -1] if with_ties else 0.0)
        weights = np.array([gap / 2, -gap / 2, np.full(gap.size, x[-1] if with_ties else -np.inf)])
        weights = np.exp(weights - weights.max(axis=0))
        win, loss, tie = weights / weights.sum(axis=0)
        slope = design.T @ ((won - lost) / 2 - played * (win - loss) / 2) - 2 * prior * x
        curve = (design.T * (played * ((win + loss) / 4 - (win - loss) ** 2 / 4))) @ design
        if with_ties:
            slope[-1] = (tied - played * tie).sum() - 2 * prior * x[-1]
            across = -design.T @ (played * tie * (win - loss) / 2)
            curve[-1, :], curve[:, -1] = across, across
            curve[-1, -1] = (played * tie * (1 - tie)).sum()
        step = np.linalg.solve(curve + 2 * prior * np.eye(x.size), slope)
        x = x + step * min(1.0, 3 / max(1e-300, float(np.abs(step).max())))
        if np.abs(step).max() < 1e-9:
            break
    x = POINTS * x
    strengths = x[:size] - x[:size].mean()
    ratings = {agent: 1000 + float(strengths[at]) for agent, at in number.items()}
    return ratings, float(x[size]) if place else 0.0


def _majority(said: Sequence[float]) -> float:
    ranked = Counter(said).most_common()
    return 0.5 if len(ranked) > 1 and ranked[0][1] == ranked[1][1] else ranked[0][0]


def _fold(orders: Mapping[bool, float]) -> float:
    scores = set(orders.values())
    return scores.pop() if len(scores) == 1 else 0.5


def _score(row: Row) -> float:
    return 0.5 if not row.winner else float(row.winner == min(row.first, row.second))


def _reached(after: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    left = list(after[start])
    while left:
        at = left.pop()
        if at not in found:
            found.add(at)
            left += after[at]
    return found


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
