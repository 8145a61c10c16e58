"""The adaptive schedule in simulation: does its confidence hold, and how many games does it save?

``python -m benchmarks.adaptive`` prints the tables of benchmarks/README.md; ``--runs`` sets how many tournaments
each line rests on. Each agent is off its strength by its own normal amount on each query, so verdicts on one query
depend on each other; every game is judged in both orders by a judge that leans to the first, and reconciled.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import islice
from typing import get_args

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.adaptive import AdaptiveSettings, Decide, Fixtures, Meeting, belief, decision, next_games
from arena.ratings.bradley_terry import BradleyTerrySettings, bradley_terry, sandwich
from arena.ratings.games import Games
from arena.ratings.ranks import paired_tests
from retrieval_eval.stats import Floats
from retrieval_eval.stats.paired import holm

POINTS = 400 / np.log(10)
UNEQUAL = -np.cumsum([0.0, 150, 60, 250, 90, 200, 70, 120, 300, 80, 180, 100])


class World(Struct, frozen=True):
    """A tournament whose every verdict is drawn beforehand, so that schedules meet the same ones.

    Attributes:
        strengths: of the agents in Elo points, best first.
        score: of the row agent against the column agent on each query, shape (queries, agents, agents).
    """

    strengths: Floats
    score: Floats

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(f"agent_{number:02}" for number in range(self.strengths.size))

    def fixtures(self, seed: int) -> Fixtures:
        return Fixtures({str(query): self.agents for query in range(len(self.score))}, seed)

    def outcomes(self, meetings: list[Meeting]) -> Games:
        number = {name: code for code, name in enumerate(self.agents)}
        query = np.array([int(meeting.query_id) for meeting in meetings], np.int32)
        a = np.array([number[meeting.agent_a] for meeting in meetings], np.int32)
        b = np.array([number[meeting.agent_b] for meeting in meetings], np.int32)
        return Games(self.agents, a, b, self.score[query, a, b] if meetings else np.zeros(0), soft=True)


def world(rng: np.random.Generator, strengths: Floats, queries: int, *, spread: float = 100.0) -> World:
    """Draw all verdicts: with ties, 40 points for being shown first, and agents ``spread`` points off per query."""
    size = strengths.size
    here = (strengths + rng.normal(0, spread, (queries, size))) / POINTS
    gap = here[:, :, np.newaxis] - here[:, np.newaxis]
    first, second = _verdicts(rng, gap, 40 / POINTS), _verdicts(rng, gap, -40 / POINTS)
    upper = np.triu(np.sign(first + second) * (np.abs(first + second) == 2), k=1)
    return World(strengths, (1 + upper - upper.transpose(0, 2, 1)) / 2)


def _verdicts(rng: np.random.Generator, gap: Floats, first: float, nu: float = 0.3) -> NDArray[np.int8]:
    win, loss = np.exp((gap + first) / 2), np.exp(-(gap + first) / 2)
    draw = rng.random(gap.shape) * (win + loss + nu)
    return (draw < win).astype(np.int8) - (draw > win + nu).astype(np.int8)


def adaptive(drawn: World, settings: AdaptiveSettings) -> Iterator[list[Meeting]]:
    fixtures, asked = drawn.fixtures(settings.seed), list[Meeting]()
    while batch := next_games(fixtures, asked, drawn.outcomes(asked), settings):
        asked += batch
        yield asked


def at_random(rng: np.random.Generator, drawn: World, settings: AdaptiveSettings) -> Iterator[list[Meeting]]:
    fixtures = drawn.fixtures(settings.seed)
    every = [(pair, nth) for pair in range(fixtures.a.size) for nth in range(fixtures.available[pair])]
    order = rng.permutation(len(every))
    asked = list[Meeting]()
    for start in range(0, len(every), settings.batch):
        asked += [own for place in order[start : start + settings.batch] for own in fixtures.meetings(*every[place])]
        yield asked


def errs(drawn: World, places: tuple[str, ...]) -> bool:
    rank = [drawn.agents.index(name) for name in places]
    return any(
        drawn.strengths[a] <= drawn.strengths[b]
        for position, a in enumerate(rank)
        for b in set(range(len(drawn.agents))) - set(rank[: position + 1])
    )


def repeated_tests_err(drawn: World, meetings: list[Meeting]) -> tuple[bool, bool]:
    """Whether fixed-sample tests at 95 % (Wald, by query, Holm) claim a false difference, and a false first place."""
    outcomes = drawn.outcomes(meetings)
    query = np.array([int(meeting.query_id) for meeting in meetings], np.int32)
    games = Games(drawn.agents, outcomes.a, outcomes.b, outcomes.score, query)
    if (games.per_agent() == 0).any():
        return False, False
    fitted = bradley_terry(games, BradleyTerrySettings(ties="half"))
    robust = sandwich(games, fitted)
    if robust is None or fitted.problems:
        return False, False
    alone = paired_tests(fitted.ratings, (robust.covariance,), robust.clusters)
    upper, different = np.triu_indices(len(alone), k=1), np.zeros(alone.shape, np.bool_)
    different[upper] = different.T[upper] = holm(alone[upper]) < 0.05
    better = different & (fitted.ratings[:, np.newaxis] > fitted.ratings)
    false = better & (drawn.strengths[:, np.newaxis] <= drawn.strengths)
    first = np.flatnonzero(better.sum(axis=1) == len(better) - 1)
    return bool(false.any()), bool(first.size) and errs(drawn, (drawn.agents[first[0]],))


def order_is_right(drawn: World, meetings: list[Meeting]) -> bool:
    return bool((np.diff(belief(drawn.outcomes(meetings)).mean) < 0).all())


def familywise_error(runs: int, looks: int = 50) -> None:
    scenarios = [
        # Two agents share the level with nobody and so come nearest to it: the more runs, to see how near.
        ("2 equal agents", np.zeros(2), 300, 5 * runs),
        ("5 equal agents", np.zeros(5), 1500, runs),
        ("5 agents, two tied for first", np.array([200.0, 200.0, 100.0, 0.0, 0.0]), 1500, runs),
    ]
    columns = [_errors(strengths, most, looks=looks, runs=count) for _, strengths, most, count in scenarios]
    headings = [f"{label} ({count} runs)" for label, _, _, count in scenarios]
    print(f"\n| claimed at one of {looks} looks | " + " | ".join(headings) + " |")
    print("|---|" + "---|" * len(scenarios))
    for claim in columns[0]:
        print(f"| {claim} | " + " | ".join(f"{column[claim]:.1%}" for column in columns) + " |")


def _errors(strengths: Floats, most: int, *, looks: int, runs: int) -> dict[str, float]:
    """Share of tournaments of ``most`` games with a false claim, by the rule that claims it."""
    wrong = np.zeros(5)
    for run in range(runs):
        rng = np.random.default_rng([11, run])
        drawn = world(rng, strengths, 300)
        found = np.zeros(5, np.bool_)
        for number, decide in enumerate(get_args(Decide)):
            settings = AdaptiveSettings(decide, batch=most // looks, max_games=most, seed=run)
            found[number] = any(
                errs(drawn, decision(drawn.outcomes(asked), settings).places) for asked in adaptive(drawn, settings)
            )
        for asked in islice(at_random(rng, drawn, settings), looks):
            places = decision(drawn.outcomes(asked), settings).places
            found[2:] |= [errs(drawn, places), *repeated_tests_err(drawn, asked)]
        wrong += found
    claims = [
        "adaptive, `decide: order`: a false place",
        "adaptive, `decide: top`: a false place",
        "random pairs, the same rule: a false place",
        "random pairs, 95 % tests at each look: a false difference",
        "random pairs, 95 % tests at each look: a false first place",
    ]
    return dict(zip(claims, wrong / runs, strict=True))


def games_saved(runs: int, queries: int = 1500) -> None:
    """Games until the order of 12 agents is decided, and until the ratings are in the right order."""
    looks = np.unique(np.geomspace(60, 66 * queries, 120).astype(int) // 60 * 60)
    decided = {"adaptive": np.full(runs, np.nan), "random": np.full(runs, np.nan), "top": np.full(runs, np.nan)}
    right = {name: np.zeros(looks.size) for name in ("adaptive", "random")}
    wrong = spread = 0.0
    for run in range(runs):
        rng = np.random.default_rng([7, run])
        drawn = world(rng, UNEQUAL, queries)
        settings = AdaptiveSettings(seed=run)
        last, at = 0, 0
        for asked in adaptive(drawn, settings):
            while at < looks.size and looks[at] <= len(asked):
                right["adaptive"][at] += order_is_right(drawn, asked)
                at += 1
            last = len(asked)
        found = decision(drawn.outcomes(asked), settings)
        decided["adaptive"][run] = last if found.decided else np.nan
        wrong += errs(drawn, found.places)
        right["adaptive"][at:] += order_is_right(drawn, asked)
        per_query = np.bincount([int(meeting.query_id) for meeting in asked], minlength=queries)
        spread += per_query.std() / np.sqrt(per_query.mean()) / runs
        for asked in adaptive(drawn, AdaptiveSettings("top", seed=run)):
            decided["top"][run] = len(asked)
        shuffled = next(at_random(rng, drawn, AdaptiveSettings(seed=run, batch=66 * queries)))
        for at, look in enumerate(looks):
            right["random"][at] += order_is_right(drawn, shuffled[:look])
            if np.isnan(decided["random"][run]) and decision(drawn.outcomes(shuffled[:look]), settings).decided:
                decided["random"][run] = look
    _print_saved(runs, queries, decided, {name: count / runs for name, count in right.items()}, looks)
    print(f"\nwrong places claimed: {wrong / runs:.1%}; games per query vary {spread:.2f} times as much as by chance")


def _print_saved(
    runs: int, queries: int, decided: dict[str, Floats], right: dict[str, Floats], looks: NDArray[np.int64]
) -> None:
    print(f"\n{runs} tournaments of 12 agents, {queries} queries, {66 * queries} possible games")
    print("\n| games until | adaptive | random pairs | ratio |\n|---|---|---|---|")
    shares = " and ".join(f"{np.isfinite(decided[name]).mean():.0%}" for name in ("adaptive", "random"))
    lines = {f"the order is decided (median; decided in {shares})": [float(np.median(decided[name])) for name in right]}
    for share in (0.5, 0.8, 0.9, 0.95, 0.98):
        lines[f"the ratings are in the right order in {share:.0%}"] = [
            _first_from(looks, found, share) for found in right.values()
        ]
    for label, (one, other) in lines.items():
        print(f"| {label} | {one:.0f} | {other:.0f} | {other / one:.1f} |")
    print(f"| the first place is decided (median, `decide: top`) | {np.median(decided['top']):.0f} | | |")


def _first_from(looks: NDArray[np.int64], found: Floats, share: float) -> float:
    """The first look from which ``found`` stays at or above ``share``; NaN if there is none."""
    below = np.flatnonzero(found < share)
    start = below[-1] + 1 if below.size else 0
    return float(looks[start]) if start < looks.size else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--runs", type=int, default=400, help="tournaments behind each error rate; games saved take a quarter"
    )
    chosen = parser.parse_args()
    start = time.perf_counter()
    familywise_error(chosen.runs)
    games_saved(max(1, chosen.runs // 4))
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
