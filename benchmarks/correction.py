"""Whether prediction-powered intervals hold what they promise: coverage and width in simulation.

Prints the section "Corrected estimates" of benchmarks/README.md: ``python -m benchmarks.correction``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from scipy import optimize

from arena.calibration.corrected_ratings import ScoredGame, corrected_ratings
from arena.calibration.prediction_powered import corrected_mean
from retrieval_eval.stats import Floats
from retrieval_eval.stats.estimate import Estimate

STRENGTHS = np.array([0.6, 0.2, -0.2, -0.6])
"""Log-odds of the agents on the average query."""

QUERY_SD = 0.5
"""Standard deviation over queries of an agent's strength, and of the leniency of people and judge."""

LIKING = np.array([-0.4, 0.0, 0.0, 0.4])
"""What a biased judge adds to each agent: it likes the worst."""


class Tally(Struct, frozen=True):
    """Share of intervals that hold the truth, their mean width, and that of labels alone."""

    corrected: float
    people: float
    judge: float
    width: float
    width_people: float

    @property
    def ratio(self) -> float:
        return self.width / self.width_people


class Study(Struct, frozen=True):
    """What is simulated: things on each query, and the share that people label."""

    queries: int = 80
    per_query: int = 12
    labelled: float = 0.2


def means(judge: str, simulations: int, study: Study, seed: int) -> Tally:
    """Mean grade of answers; the truth is 2.

    The biased judge is 0.5 too kind and errs by 0.3; noise knows nothing of the answer.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(simulations):
        query = np.repeat(np.arange(study.queries), study.per_query)
        shared, own = rng.normal(0, QUERY_SD, study.queries)[query], rng.normal(0, 0.8, query.size)
        people = 2 + shared + own
        kindness = rng.normal(0, 0.2, study.queries)[query]
        informed = 2.5 + 0.8 * (shared + own) + kindness + rng.normal(0, 0.3, query.size)
        noise = 2.5 + kindness + rng.normal(0, 1, query.size)
        known = rng.random(query.size) < study.labelled
        labels = [value if seen else None for value, seen in zip(people.tolist(), known.tolist(), strict=True)]
        found = corrected_mean((noise if judge == "noise" else informed).tolist(), labels, query.tolist())
        rows.append(([found.corrected], [found.people], [found.judge]))
    return _tally(rows, np.array([2.0]))


def win_rates(judge: str, simulations: int, study: Study, seed: int) -> Tally:
    rng = np.random.default_rng(seed)
    truth = _people_score(STRENGTHS[0] - STRENGTHS[3])
    rows = []
    for _ in range(simulations):
        games = simulated(rng, judge, study, pair=(0, 3))
        found = corrected_mean(
            [game.judge for game in games], [game.people for game in games], [game.query_id for game in games]
        )
        rows.append(([found.corrected], [found.people], [found.judge]))
    return _tally(rows, np.array([truth]))


def ratings(judge: str, simulations: int, study: Study, seed: int) -> Tally:
    rng = np.random.default_rng(seed)
    truth = true_ratings()
    rows = []
    for _ in range(simulations):
        found = corrected_ratings(simulated(rng, judge, study))
        if found.people is not None:
            rows.append((found.corrected, found.people, found.judge))
    return _tally(rows, truth)


def simulated(
    rng: np.random.Generator, judge: str, study: Study, pair: tuple[int, int] | None = None
) -> list[ScoredGame]:
    """Games between agents that are better on some queries than on others; judge and people see the same answers."""
    agents = STRENGTHS.size
    query = np.repeat(np.arange(study.queries), study.per_query)
    a = rng.integers(0, agents, query.size)
    b = (a + rng.integers(1, agents, query.size)) % agents
    if pair is not None:
        a, b = np.full(query.size, pair[0]), np.full(query.size, pair[1])
    of_query = rng.normal(0, QUERY_SD, (study.queries, agents))
    answer = rng.logistic(0, 1, query.size)
    gap = STRENGTHS[a] - STRENGTHS[b] + of_query[query, a] - of_query[query, b] + answer
    if judge == "noise":
        seen = rng.logistic(0, 1, query.size) + LIKING[a] - LIKING[b]
    else:
        seen = gap + 2 * (LIKING[a] - LIKING[b]) + rng.normal(0, 0.5, query.size)
    people, judged = (np.where(side > 0.3, 1.0, np.where(side < -0.3, 0.0, 0.5)) for side in (gap, seen))
    known = rng.random(query.size) < study.labelled
    rows = zip(query.tolist(), a.tolist(), b.tolist(), judged.tolist(), people.tolist(), known.tolist(), strict=True)
    return [
        ScoredGame(f"q{number}", f"agent_{first}", f"agent_{second}", own, human if seen_by else None)
        for number, first, second, own, human, seen_by in rows
    ]


def true_ratings() -> Floats:
    """Ratings of infinitely many games: the strengths whose expected scores are those of the simulation."""
    pairs = [(i, j) for i in range(STRENGTHS.size) for j in range(STRENGTHS.size) if i != j]
    scores = np.array([_people_score(STRENGTHS[i] - STRENGTHS[j]) for i, j in pairs])

    def slope(theta: Floats) -> Floats:
        out = np.zeros(STRENGTHS.size)
        for (i, j), score in zip(pairs, scores, strict=True):
            residual = 1 / (1 + np.exp(theta[j] - theta[i])) - score
            out[i] += residual
            out[j] -= residual
        out[0] += theta.sum()
        return out

    return np.asarray(1000 + 400 / np.log(10) * optimize.root(slope, STRENGTHS).x, np.float64)


def _people_score(gap: float, draws: int = 400_000) -> float:
    """Expected score of an agent that is better by ``gap``, ties half; the same draws for every gap."""
    rng = np.random.default_rng(12345)
    noise = rng.logistic(0, 1, draws) + np.sqrt(2) * QUERY_SD * rng.normal(0, 1, draws)
    noise = np.concatenate([noise, -noise])
    return float((gap + noise > 0.3).mean() + 0.5 * (np.abs(gap + noise) <= 0.3).mean())


def _tally(rows: Sequence[Sequence[Sequence[Estimate]]], truth: Floats) -> Tally:
    hits, widths = np.zeros((len(rows), 3)), np.zeros((len(rows), 3))
    for at, row in enumerate(rows):
        for kind, estimates in enumerate(row):
            low = np.array([own.low for own in estimates], np.float64)
            high = np.array([own.high for own in estimates], np.float64)
            hits[at, kind] = ((low <= truth) & (truth <= high)).mean()
            widths[at, kind] = (high - low).mean()
    corrected, people, judge = map(float, hits.mean(axis=0))
    width, width_people, _ = map(float, widths.mean(axis=0))
    return Tally(corrected, people, judge, width, width_people)


FIGURES: dict[str, Callable[[str, int, Study, int], Tally]] = {
    "mean grade": means,
    "win rate": win_rates,
    "Bradley-Terry rating": ratings,
}

PAGE = """\
## Corrected estimates

`python -m benchmarks.correction` prints this section.

{simulations} simulations of {queries} queries with {per_query} things each, of which people label {labelled:.0%} by
chance. Agents and leniency vary over queries. The biased judge sees what people see, with some noise, is half a grade
too kind and likes the worst agent best; the other judge is noise. Seed {seed}; a share of {simulations} has a standard
error of {error:.1%}.

| figure | judge | corrected holds the truth | labels alone | judge alone | width against labels alone |
|---|---|---|---|---|---|
{rows}

The judge alone is precise and wrong: its interval knows nothing of its bias.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=80)
    parser.add_argument("--per-query", type=int, default=12)
    parser.add_argument("--labelled", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    study = Study(given.queries, given.per_query, given.labelled)
    rows = []
    for name, simulate in FIGURES.items():
        for judge in ("biased", "noise"):
            one = simulate(judge, given.simulations, study, given.seed)
            shares = " | ".join(f"{share:.1%}" for share in (one.corrected, one.people, one.judge))
            rows.append(f"| {name} | {judge} | {shares} | {one.ratio:.2f} |")
    error = np.sqrt(0.95 * 0.05 / given.simulations)
    print(PAGE.format(rows="\n".join(rows), error=error, **vars(given)), end="")


if __name__ == "__main__":
    main()
