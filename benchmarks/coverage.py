"""How often 95 % intervals hold the truth, when what is judged on one query depends on each other.

Prints the section "Intervals" of benchmarks/README.md: ratings by number of queries, agents and way of counting ties;
means near the ceiling; kappa; rank correlations. ``--simulations`` sets how many worlds each figure rests on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct

from arena.ratings.bootstrap import bootstrap
from arena.ratings.bradley_terry import BradleyTerrySettings, bradley_terry
from arena.ratings.games import Games
from arena.ratings.likelihood import TieModel
from arena.ratings.ranks import compare, competition_ranks, rank_intervals
from benchmarks.few_queries import World, simulated
from retrieval_eval.stats import Floats
from retrieval_eval.stats.agreement import cohen_kappas, krippendorff_alphas
from retrieval_eval.stats.bootstrap import (
    COEFFICIENT,
    estimates,
    jackknife_estimate,
    query_weights,
    ratio_estimate,
    share_estimate,
    weighted_means,
)
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.rank import kendall_taus, spearmans

STRENGTHS: Final = {3: (0.0, 0.3, 0.8), 4: (0.0, 0.2, 0.4, 0.9), 6: (0.0, 0.2, 0.4, 0.4, 0.8, 1.2)}
"""Log-odds of the agents on the average query, by their number."""
QUERY_SD: Final = 0.6
"""Standard deviation, in log-odds, of an agent's strength over queries."""
TIE: Final = 0.5
"""Davidson's nu: about a fifth of all games end in a tie."""
QUERIES: Final = (10, 20, 30, 60)
FEW: Final = (12, 20, 30, 60)
LEVEL: Final = 0.95
SAMPLES: Final = 400
MANY: Final = 100_000
DOCUMENTS: Final = 5
LABELS: Final = 4


class Coverage(Struct, frozen=True):
    """Coverage of the intervals of ratings.

    Attributes:
        covered: share that hold the truth, over agents and tournaments.
        width: mean, in points.
        needed: width of intervals that would know how far ratings stray: 3.92 of their standard deviations.
        ranks: share of tournaments in which the rank intervals of all agents hold the true ranks at once.
    """

    covered: float
    width: float
    needed: float
    ranks: float


def tournament(rng: np.random.Generator, queries: int, agents: int) -> Games:
    return simulated(World("", STRENGTHS[agents], 1, QUERY_SD, TIE), queries, rng)


@cache
def truth(agents: int, ties: TieModel) -> Floats:
    """Ratings from very many queries; agents of equal strength get their mean."""
    games = tournament(np.random.default_rng(0), MANY, agents)
    ratings = bradley_terry(games, BradleyTerrySettings(ties=ties)).ratings
    strengths = np.array(STRENGTHS[agents])
    return np.array([ratings[strengths == own].mean() for own in strengths])


def of_ratings(simulations: int, queries: int, agents: int, ties: TieModel, seed: int) -> Coverage:
    rng, exact = np.random.default_rng(seed), truth(agents, ties)
    best, worst = competition_ranks(exact), exact.size + 1 - competition_ranks(-exact)
    held, widths, found, ranked = [], [], [], 0
    for number in range(simulations):
        games = tournament(rng, queries, agents)
        fitted = bradley_terry(games, BradleyTerrySettings(ties=ties))
        drawn = bootstrap(games, fitted, SAMPLES, number)
        compared = compare(games, fitted, drawn, by_query=True, level=LEVEL, seed=number)
        assert compared is not None
        low, high = compared.interval(fitted.ratings, LEVEL)
        held.append((low <= exact) & (exact <= high))
        widths.append(high - low)
        found.append(fitted.ratings)
        least, most = rank_intervals(compared.joint)
        ranked += bool((least <= best).all() and (worst <= most).all())
    needed = 2 * 1.96 * np.std(found, axis=0, ddof=1).mean()
    return Coverage(float(np.mean(held)), float(np.mean(widths)), float(needed), ranked / simulations)


Figure: TypeAlias = tuple[float, Callable[[np.random.Generator, int], Estimate]]
"""The true value, and a function that estimates it from a number of queries."""


def of_figures(simulations: int, queries: int, seed: int) -> dict[str, float]:
    covered = {}
    for name, (exact, draw) in worlds(queries, seed).items():
        rng = np.random.default_rng([seed, queries])
        ends = [draw(rng, number) for number in range(simulations)]
        covered[name] = float(
            np.mean([own.low is not None and own.high is not None and own.low <= exact <= own.high for own in ends])
        )
    return covered


def exam(rng: np.random.Generator, queries: int) -> Floats:
    return rng.binomial(10, np.minimum(rng.beta(9, 0.8, queries), 1)) / 10


def nuggets(rng: np.random.Generator, queries: int) -> Floats:
    return np.where(rng.random(queries) < 0.6, 1.0, rng.beta(4, 1, queries))


def measure(rng: np.random.Generator, queries: int) -> Floats:
    return rng.choice([1.0, 1 / 2, 1 / 3, 0.0], queries, p=[0.88, 0.07, 0.03, 0.02])


def middling(rng: np.random.Generator, queries: int) -> Floats:
    return rng.beta(0.8, 1.2, queries)


MEANS: Final[Mapping[str, Callable[[np.random.Generator, int], Floats]]] = {
    "mean of exam scores near 0.92": exam,
    "mean of nugget scores near 0.92": nuggets,
    "mean reciprocal rank near 0.92": measure,
    "mean of scores near 0.4": middling,
}


def worlds(queries: int, seed: int) -> dict[str, Figure]:
    """Means of scores; kappas, alpha and shares of labels of documents; rank correlations of agents."""
    rng = np.random.default_rng(seed)
    found: dict[str, Figure] = {
        name: (float(draw(rng, 4_000_000).mean()), partial(_mean, queries=queries, draw=draw))
        for name, draw in MEANS.items()
    }
    many = _labels(rng, MANY).sum(axis=0)
    found["share of equal labels"] = (float(np.trace(many) / many.sum()), partial(_share, queries=queries))
    scale = np.arange(float(LABELS))
    coefficients: dict[str, Callable[[Floats], Floats]] = {
        f"kappa, weights {how}": partial(cohen_kappas, weights=how) for how in ("none", "linear", "quadratic")
    }
    coefficients["alpha"] = lambda tables: krippendorff_alphas(tables + tables.swapaxes(1, 2), scale, "nominal")
    for name, statistic in coefficients.items():
        exact = float(statistic(many[np.newaxis])[0])
        found[name] = exact, partial(_coefficient, queries=queries, statistic=statistic)
    for agents in (6, 30):
        for name, rank in (("tau", kendall_taus), ("rho", spearmans)):
            a, b = _scores(rng, agents, queries, 2000)
            exact = float(np.nanmean(rank(a.mean(axis=2), b.mean(axis=2))))
            found[f"{name} of {agents} agents"] = exact, partial(_ranked, agents=agents, queries=queries, rank=rank)
    return found


def _labels(rng: np.random.Generator, queries: int) -> Floats:
    """Tables of two raters' labels of the documents of each query, who agree more on some queries than on others."""
    shares = rng.dirichlet([1.5, 1, 1, 0.8], queries).cumsum(axis=1)[:, np.newaxis, :-1]
    first, chance = ((rng.random((queries, DOCUMENTS, 1)) > shares).sum(axis=2) for _ in range(2))
    same = rng.random((queries, DOCUMENTS)) < rng.beta(4, 2, (queries, 1))
    tables = np.zeros((queries, LABELS, LABELS))
    unit = np.repeat(np.arange(queries), DOCUMENTS)
    np.add.at(tables, (unit, first.ravel(), np.where(same, first, chance).ravel()), 1)
    return tables


def _mean(
    rng: np.random.Generator, _number: int, queries: int, draw: Callable[[np.random.Generator, int], Floats]
) -> Estimate:
    return ratio_estimate(draw(rng, queries), np.ones(queries))


def _share(rng: np.random.Generator, _number: int, queries: int) -> Estimate:
    tables = _labels(rng, queries)
    return share_estimate(np.trace(tables, axis1=1, axis2=2), tables.sum(axis=(1, 2)))


def _coefficient(
    rng: np.random.Generator, _number: int, queries: int, statistic: Callable[[Floats], Floats]
) -> Estimate:
    return jackknife_estimate(statistic, _labels(rng, queries), COEFFICIENT)


def _scores(rng: np.random.Generator, agents: int, queries: int, times: int) -> list[Floats]:
    """Two scores of each agent and query, shape (times, agents, queries), of agents whose order they share in part."""
    order = np.random.default_rng(agents)
    quality = order.normal(size=(agents, 1)) * 0.25
    shared = rng.normal(size=(times, agents, queries)) * 0.4
    other = order.normal(size=(agents, 1)) * 0.1
    return [own + shared + rng.normal(size=shared.shape) * 0.8 for own in (quality, quality + other)]


def _ranked(
    rng: np.random.Generator, number: int, agents: int, queries: int, rank: Callable[[Floats, Floats], Floats]
) -> Estimate:
    weights = np.vstack([np.ones(queries), query_weights(queries, SAMPLES, number)])
    x, y = (weighted_means(part[0], weights) for part in _scores(rng, agents, queries, 1))
    values = rank(x, y)
    (found,) = estimates(values[:1], values[1:, np.newaxis], queries, centred=True)
    return found


PAGE = """\
## Intervals

`python -m benchmarks.coverage` prints this section. Each figure is of {simulations} simulated sets of queries, with a
standard error of at most {error:.1%}.

### Ratings

Tournaments of all pairs on each query. An agent's strength varies over queries with a standard deviation of
{points:.0f} points around its mean; about a fifth of all games are ties. The truth is what {many:,} queries give.
Intervals are the clustered sandwich's with Student's t. *Width* is a ratio to what knowing the spread of ratings would
need.

| agents | ties | {heads} |
|---|---|{dashes}
{ratings}

Percentiles of resampled queries hold the truth in 88 to 92 % with 10 queries. The rank intervals are to hold the true
ranks of all agents at once in 95 % of tournaments, and did so in {ranks:.1%} at least. They are cautious by
construction: the differences of all pairs must hold at once, while a rank errs only where a difference is taken for
real that is none or has the other sign.

### Means, shares, kappa, rank correlations

What queries share is drawn anew with each. Labels of {documents} documents a query by two raters who agree more on
some queries than on others; scores of agents by two measures whose errors on one query go together. The truth is that
of very many queries; of a rank correlation, the mean over as many other queries. Means have the empirical likelihood's
interval, shares Wilson's with an effective number of observations, kappa and alpha the jackknife's on Fisher's scale,
rank correlations the centred bootstrap's.

| interval | {few} |
|---|{few_dashes}
{figures}
"""


def rows_of_ratings(simulations: int, seed: int) -> Iterator[tuple[int, TieModel, list[Coverage]]]:
    kinds: tuple[TieModel, ...] = ("davidson", "half")
    for agents in STRENGTHS:
        for ties in kinds:
            yield agents, ties, [of_ratings(simulations, queries, agents, ties, seed) for queries in QUERIES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rows = list(rows_of_ratings(given.simulations, given.seed))
    figures = {queries: of_figures(given.simulations, queries, given.seed) for queries in FEW}
    cells = "\n".join(
        f"| {agents} | {ties} | "
        + " | ".join(f"{one.covered:.1%}, width {one.width / one.needed:.2f}" for one in found)
        + " |"
        for agents, ties, found in rows
    )
    print(
        PAGE.format(
            simulations=f"{given.simulations:,}",
            error=np.sqrt(LEVEL * (1 - LEVEL) / given.simulations),
            points=QUERY_SD * 400 / np.log(10),
            many=MANY,
            heads=" | ".join(f"{queries} queries" for queries in QUERIES),
            dashes="---|" * len(QUERIES),
            ratings=cells,
            ranks=min(one.ranks for *_, found in rows for one in found),
            documents=DOCUMENTS,
            few=" | ".join(f"{queries} queries" for queries in FEW),
            few_dashes="---|" * len(FEW),
            figures="\n".join(
                f"| {name} | {' | '.join(f'{figures[queries][name]:.1%}' for queries in FEW)} |"
                for name in figures[FEW[0]]
            ),
        ),
        end="",
    )


if __name__ == "__main__":
    main()
