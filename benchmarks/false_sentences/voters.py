"""Small tables of what judges and people say, whose truth is known, and what of them is counted again.

Everybody is right with a chance of their own, and else says one of the two other values. On hard queries all guess.
"""

from __future__ import annotations

import csv
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from pathlib import Path

from msgspec import Struct

PANEL = "panel (majority)"
Thing = tuple[str, ...]
"""A query, and two agents by name or a document."""


class Vote(Struct, frozen=True):
    """One value of one thing; ``turned`` where the second agent by name was shown first."""

    thing: Thing
    rater: str
    value: int
    turned: bool = False


class World(Struct, frozen=True):
    """How votes come about.

    Attributes:
        level: ``verdicts``, of 1, 0 and -1, or ``labels``, of 0, 1 and 2.
        right: chance that a person is right, and each judge.
        again: chance that each further person judges a thing too.
        hard: share of the queries on which everybody guesses.
        judged: chance that a judge judges a thing; ``asked`` likewise of people.
        both: whether judges judge games in both orders, people too with ``people_both``.
        outside: chance that a judge's label lies beyond the scale.
    """

    kind: str
    right: float
    judges: Mapping[str, float]
    queries: int
    level: str = "verdicts"
    things: int = 3
    people: int = 3
    again: float = 0.5
    hard: float = 0.0
    judged: float = 1.0
    asked: float = 1.0
    both: bool = True
    people_both: bool = False
    outside: float = 0.0
    one_value: bool = False

    def gap(self, judge: str) -> float | None:
        """Agreement of judge and person minus that of two people; ``None`` if people judge both orders."""
        if self.people_both:
            return None
        kept = 1 - self.outside
        on_easy = kept * _alike(self.judges[judge], self.right) - _alike(self.right, self.right)
        return (1 - self.hard) * on_easy - self.hard * self.outside / 3

    def is_chance(self, judge: str) -> bool:
        """Whether the judge agrees with people no more than chance would; sides of games say nothing by themselves."""
        return self.judges[judge] == 1 / 3 or (self.one_value and self.level == "labels")


MARGIN = 0.05
"""A judge agrees as people do if it agrees with them less than they do by at most this much."""


def _alike(one: float, other: float) -> float:
    return one * other + (1 - one) * (1 - other) / 2


def _below(right: float, gap: float) -> float:
    """Probability at which a judge is right if it agrees with people less than they do by ``gap``."""
    return right - 2 * gap / (3 * right - 1)


def _queries(noise: random.Random) -> int:
    return noise.randint(1, 12) if noise.random() < 0.4 else noise.randint(13, 60)


def _level(noise: random.Random) -> str:
    return noise.choice(("verdicts", "labels"))


KINDS: list[Callable[[random.Random], World]] = [
    lambda r: World("as people", 0.8, {"j": 0.8}, _queries(r), level=_level(r), again=r.choice((0.2, 1.0))),
    lambda r: World("as people, ties split", 0.65, {"j": 0.65}, _queries(r), people_both=True),
    lambda r: World("at the margin", 0.8, {"j": _below(0.8, MARGIN)}, r.randint(20, 80), level=_level(r), again=1.0),
    lambda r: World("at the margin, few", 0.9, {"j": _below(0.9, MARGIN)}, r.randint(10, 30), again=0.3),
    lambda r: World("worse", 0.9, {"j": 0.6}, _queries(r), level=_level(r)),
    lambda r: World("few repeat", 0.9, {"j": 0.7}, _queries(r), again=0.06),
    lambda r: World("better", 0.7, {"j": 0.95}, _queries(r), level=_level(r)),
    lambda r: World("chance", 0.8, {"j": 1 / 3}, _queries(r), level=_level(r)),
    lambda r: World("chance, one person", 0.8, {"j": 1 / 3}, _queries(r), people=1, level=_level(r)),
    lambda r: World("one person", 0.8, {"j": 0.8}, _queries(r), people=1, level=_level(r)),
    lambda r: World("all agree", 1.0, {"j": 1.0}, _queries(r), level=_level(r)),
    lambda r: World("judge always right", 0.8, {"j": 1.0}, _queries(r), both=False),
    lambda r: World("one value", 1.0, {"j": r.choice((0.7, 1.0))}, _queries(r), level=_level(r), one_value=True),
    lambda r: World("hard queries", 0.9, {"j": 0.9}, r.randint(10, 60), hard=0.4, level=_level(r), again=1.0),
    lambda r: World("hard queries, worse", 0.9, {"j": 0.7}, r.randint(10, 60), hard=0.4, again=1.0),
    lambda r: World("two judges", 0.8, {"j": 0.8, "k": 0.5}, _queries(r), level=_level(r)),
    lambda r: World("three judges", 0.8, {"j": 0.75, "k": 0.75, "l": 0.75}, _queries(r), judged=0.9, level=_level(r)),
    lambda r: World("three judges, one bad", 0.8, {"j": 0.8, "k": 0.8, "l": 0.1}, _queries(r), level=_level(r)),
    lambda r: World("outside the scale", 0.8, {"j": 0.7}, _queries(r), level="labels", outside=0.2),
    lambda r: World("gaps", 0.8, {"j": 0.8}, _queries(r), judged=0.5, asked=0.4, level=_level(r), things=6),
    lambda r: World("one thing each", 0.8, {"j": 0.7}, _queries(r), things=1, again=1.0, level=_level(r)),
    lambda r: World("two people", 0.75, {"j": 0.7}, _queries(r), people=2, both=False, again=1.0),
]


def draw(number: int, seed: int) -> tuple[World, list[Vote], list[Vote]]:
    """One world with the judges' votes and the people's; the same for the same number and seed."""
    noise = random.Random(f"voters {seed} {number}")
    while True:
        world = KINDS[number % len(KINDS)](noise)
        judges, people = _votes(world, noise)
        if {vote.thing for vote in judges} & {vote.thing for vote in people}:
            return world, judges, people


def _votes(world: World, noise: random.Random) -> tuple[list[Vote], list[Vote]]:
    values = (-1, 0, 1) if world.level == "verdicts" else (0, 1, 2)
    judges: list[Vote] = []
    people: list[Vote] = []
    for query in range(world.queries):
        hard = noise.random() < world.hard
        pairs = noise.sample(list(combinations("vwxyz", 2)), world.things)
        for at, pair in enumerate(pairs):
            truth = values[-1] if world.one_value else noise.choice(values)
            thing = (f"q{query:02}", *(pair if world.level == "verdicts" else (f"d{at}",)))

            def says(right: float, truth: int = truth, *, guess: bool = hard) -> int:
                if noise.random() < (1 / 3 if guess else right):
                    return truth
                return noise.choice([value for value in values if value != truth])

            judges += _of_judges(world, noise, thing, says)
            people += _of_people(world, noise, thing, says)
    return judges, people


def _of_judges(world: World, noise: random.Random, thing: Thing, says: Callable[[float], int]) -> Iterator[Vote]:
    for judge, right in world.judges.items():
        if noise.random() < world.judged:
            for turned in (False, True) if world.level == "verdicts" and world.both else (False,):
                yield Vote(thing, judge, 5 if noise.random() < world.outside else says(right), turned)


def _of_people(world: World, noise: random.Random, thing: Thing, says: Callable[[float], int]) -> Iterator[Vote]:
    if noise.random() >= world.asked:
        return
    for person in noise.sample(range(world.people), world.people):
        alone = (world.level == "verdicts" and noise.random() < 0.5,)
        for turned in (False, True) if world.people_both else alone:
            yield Vote(thing, f"person-{person}", says(world.right), turned)
        if noise.random() >= world.again:
            return


class Recount:
    """A plain and slow recount of one table."""

    def __init__(
        self,
        judges: Sequence[Vote],
        people: Sequence[Vote],
        *,
        verdicts: bool,
        clusters: Mapping[str, str] | None = None,
    ) -> None:
        self.judges, self.people, self.verdicts, self.clusters = judges, people, verdicts, clusters or {}

    def units(self, things: Iterable[Thing]) -> int:
        return len({self.clusters.get(thing[0], thing[0]) for thing in things})

    @cached_property
    def human(self) -> dict[Thing, dict[str, int]]:
        return _settled(self.people)

    @cached_property
    def consensus(self) -> dict[Thing, int]:
        return {thing: self._most(own.values()) for thing, own in self.human.items()}

    @cached_property
    def contested(self) -> int:
        return sum(len(_leading(own.values())) > 1 for own in self.human.values())

    def _most(self, values: Iterable[int]) -> int:
        leading = _leading(values)
        return leading[0] if len(leading) == 1 else 0 if self.verdicts else min(leading)

    def of(self, judge: str) -> dict[Thing, int]:
        every = _settled(self.judges)
        if judge == PANEL:
            return {thing: self._most(own.values()) for thing, own in every.items()}
        return {thing: own[judge] for thing, own in every.items() if judge in own}

    def number(self, thing: Thing) -> float:
        leading = _leading(self.human[thing].values())
        return sum(leading) / len(leading)

    def among_people(self, name: str) -> tuple[float, int] | None:
        """A person's kappa with the others, each thing counting once, and the things that both judged."""
        pairs: Counter[tuple[int, int]] = Counter()
        shared = 0
        for own in self.human.values():
            others = [value for person, value in own.items() if person != name]
            if name in own and others:
                shared += 1
                for value in others:
                    for sign in (1, -1) if self.verdicts else (1,):
                        pairs[sign * own[name], sign * value] += 1 / len(others)  # type: ignore[assignment]
        total = sum(pairs.values())
        if not total:
            return None
        rows, columns = Counter[int](), Counter[int]()
        for (row, column), times in pairs.items():
            rows[row] += times
            columns[column] += times
        chance = sum(rows[value] * columns[value] for value in rows) / total**2
        same = sum(times for (row, column), times in pairs.items() if row == column) / total
        return None if chance > 1 - 1e-12 else ((same - chance) / (1 - chance), shared)

    def both(self, judge: str) -> list[Thing]:
        return sorted(self.of(judge).keys() & self.consensus.keys())

    def queries(self, judge: str) -> int:
        return self.units(self.both(judge))

    def said(self, judge: str) -> dict[Thing, list[int]]:
        if judge == PANEL:
            return {thing: [value] for thing, value in self.of(PANEL).items()}
        found: defaultdict[Thing, list[int]] = defaultdict(list)
        for vote in self.judges:
            if vote.rater == judge:
                found[vote.thing].append(vote.value)
        return dict(found)

    def with_a_person(self, judge: str) -> float:
        same = [
            own == other
            for thing, said in self.said(judge).items()
            for own in said
            for other in self.human.get(thing, {}).values()
        ]
        return sum(same) / len(same)

    @cached_property
    def of_two(self) -> float | None:
        same = [a == b for own in self.human.values() for a, b in combinations(own.values(), 2)]
        return sum(same) / len(same) if same else None

    def less_people(self, judge: str) -> tuple[float, int] | None:
        """Mean over things of the judge's share less the people's, and the queries of these things."""
        gaps, things = [], []
        for thing, said in self.said(judge).items():
            votes = list(self.human.get(thing, {}).values())
            pairs = [a == b for a, b in combinations(votes, 2)]
            if pairs:
                alike = [own == other for own in said for other in votes]
                gaps.append(sum(alike) / len(alike) - sum(pairs) / len(pairs))
                things.append(thing)
        return (sum(gaps) / len(gaps), self.units(things)) if gaps else None

    def all_agree(self, judge: str) -> bool:
        every = [{*said, *self.human.get(thing, {}).values()} for thing, said in self.said(judge).items()]
        return all(len(own) == 1 for own in every) and self.of_two == 1

    def kappa(self, judge: str) -> float | None:
        """Cohen's kappa with the consensus; each verdict counts in both directions."""
        values = self.of(judge)
        pairs = [(self.consensus[thing], values[thing]) for thing in self.both(judge)]
        if self.verdicts:
            pairs += [(-one, -other) for one, other in pairs]
        rows, columns = (Counter(own) for own in zip(*pairs, strict=True))
        chance = sum(rows[value] * columns[value] for value in rows) / len(pairs) ** 2
        return None if chance == 1 else (sum(a == b for a, b in pairs) / len(pairs) - chance) / (1 - chance)

    def like_people(self, judge: str, common: Iterable[Thing]) -> float:
        values, things = self.of(judge), list(common)
        return sum(values[thing] == self.consensus[thing] for thing in things) / len(things)

    @cached_property
    def common(self) -> list[Thing]:
        judges = {vote.rater for vote in self.judges}
        return [thing for thing in self.consensus if all(thing in self.of(judge) for judge in judges)]


def _settled(votes: Iterable[Vote]) -> dict[Thing, dict[str, int]]:
    every: defaultdict[Thing, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for vote in votes:
        every[vote.thing][vote.rater].add(vote.value)
    return {
        thing: {rater: next(iter(said)) if len(said) == 1 else 0 for rater, said in own.items()}
        for thing, own in every.items()
    }


def _leading(values: Iterable[int]) -> list[int]:
    counts = Counter(values)
    return [value for value, times in counts.items() if times == max(counts.values())]


def write(file: Path, votes: Iterable[Vote], *, verdicts: bool) -> None:
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow(["qid", *(("agent_a", "agent_b", "verdict") if verdicts else ("did", "label")), "judge"])
        for vote in votes:
            query, *thing = vote.thing
            if verdicts:
                shown = thing[::-1] if vote.turned else thing
                value = -vote.value if vote.turned else vote.value
                table.writerow([query, *shown, {1: "A", 0: "TIE", -1: "B"}[value], vote.rater])
            else:
                table.writerow([query, *thing, vote.value, vote.rater])
