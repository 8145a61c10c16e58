"""How often a 95 % interval of a rating holds the truth, when verdicts on one query depend on each other.

Prints the section "Intervals" of benchmarks/README.md. The analytic part with a fixed seed is also a test, and so is
the part on single figures, which ``--figures`` prints alone in about a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from arena.ratings.bootstrap import Bootstrap, bootstrap
from arena.ratings.bradley_terry import BradleyTerry, bradley_terry, sandwich
from arena.ratings.games import Floats, Games
from arena.ratings.ranks import competition_ranks, joint_differences, rank_intervals
from retrieval_eval.stats.agreement import cohen_kappas
from retrieval_eval.stats.bootstrap import estimates, query_weights, share_interval, student, weighted_means
from retrieval_eval.stats.rank import kendall_taus, spearmans

STRENGTHS = np.array([0.0, 0.2, 0.4, 0.4, 0.8])
"""Log-odds of the agents on the average query; the third and the fourth are equal."""

QUERY_SD = 0.6
"""An agent is better at some queries than at others: standard deviation, in log-odds, of its strength over queries."""

TIE = 0.5
"""Davidson's nu: about a fifth of all games end in a tie."""

LEVEL = 0.95


class Coverage(Struct, frozen=True):
    """Of one kind of interval: share that hold the truth, over agents and simulations, and mean width in points."""

    covered: float
    width: float


def simulated(rng: np.random.Generator, queries: int, per_query: int) -> Games:
    """Games on queries that each agent is better or worse at, between agents drawn by chance."""
    agents = STRENGTHS.size
    query = np.repeat(np.arange(queries), per_query)
    a = rng.integers(0, agents, query.size)
    b = (a + rng.integers(1, agents, query.size)) % agents
    strength = STRENGTHS + rng.normal(0, QUERY_SD, (queries, agents))
    half = (strength[query, a] - strength[query, b]) / 2
    win, loss = np.exp(half), np.exp(-half)
    draw = rng.random(query.size) * (win + loss + TIE)
    score = np.where(draw < win, 1.0, np.where(draw < win + TIE, 0.5, 0.0))
    names = tuple(f"agent_{i}" for i in range(agents))
    return Games(names, a.astype(np.int32), b.astype(np.int32), score, query.astype(np.int32))


def truth() -> Floats:
    """What infinitely many queries would give: the ratings of a million games on as many queries as make no odds.

    Equal agents get their common mean, so that sampling does not set them apart.
    """
    ratings = bradley_terry(simulated(np.random.default_rng(0), 200_000, 5)).ratings
    return np.array([ratings[own == STRENGTHS].mean() for own in STRENGTHS])


def analytic(simulations: int, queries: int, per_query: int, seed: int) -> dict[str, Coverage]:
    """Coverage of the intervals that need no resampling."""
    rng = np.random.default_rng(seed)
    return _tallied(
        {
            "model (Fisher), independent games": _interval(fitted, fitted.model_covariance(), len(games)),
            "sandwich by game": _of_sandwich(games, fitted, by_query=False),
            "sandwich by query": _of_sandwich(games, fitted, by_query=True),
        }
        for games, fitted in _fits(rng, simulations, queries, per_query)
    )


def resampled(
    simulations: int, queries: int, per_query: int, seed: int, samples: int
) -> tuple[dict[str, Coverage], float]:
    """Coverage of bootstrap intervals, and how often the rank intervals hold the true ranks of all agents at once."""
    rng = np.random.default_rng(seed)
    exact = truth()
    best, worst = competition_ranks(exact), exact.size + 1 - competition_ranks(-exact)
    joint_hits = 0
    rows = []
    for number, (games, fitted) in enumerate(_fits(rng, simulations, queries, per_query)):
        drawn = {by: _drawn(games, fitted, samples, number, by_query=by) for by in (False, True)}
        low, high = rank_intervals(joint_differences(fitted.ratings, drawn[True].sample_sets, queries, LEVEL))
        joint_hits += bool((low <= best).all() and (worst <= high).all())
        rows.append({f"bootstrap by {'query' if by else 'game'}": drawn[by].interval(LEVEL) for by in drawn})
    return _tallied(iter(rows)), joint_hits / simulations


def _fits(
    rng: np.random.Generator, simulations: int, queries: int, per_query: int
) -> Iterator[tuple[Games, BradleyTerry]]:
    for _ in range(simulations):
        games = simulated(rng, queries, per_query)
        yield games, bradley_terry(games)


def _drawn(games: Games, fitted: BradleyTerry, samples: int, seed: int, *, by_query: bool) -> Bootstrap:
    drawn = bootstrap(games, fitted, samples, seed, by_query=by_query)
    if drawn is None:
        raise ValueError("a study of coverage needs at least two queries")
    return drawn


def _of_sandwich(games: Games, fitted: BradleyTerry, *, by_query: bool) -> tuple[Floats, Floats]:
    robust = sandwich(games, fitted, by_query=by_query)
    if robust is None:
        raise ValueError("a study of coverage needs at least two queries")
    return _interval(fitted, robust.covariance, robust.clusters)


def _interval(fitted: BradleyTerry, covariance: Floats, units: int) -> tuple[Floats, Floats]:
    half = student(LEVEL, units) * np.sqrt(np.diag(covariance))
    return fitted.ratings - half, fitted.ratings + half


def _tallied(rows: Iterator[Mapping[str, tuple[Floats, Floats]]]) -> dict[str, Coverage]:
    exact = truth()
    hits: dict[str, list[float]] = {}
    widths: dict[str, list[float]] = {}
    for row in rows:
        for name, (low, high) in row.items():
            hits.setdefault(name, []).append(float(((low <= exact) & (exact <= high)).mean()))
            widths.setdefault(name, []).append(float((high - low).mean()))
    return {name: Coverage(float(np.mean(hits[name])), float(np.mean(widths[name]))) for name in hits}


Drawn: TypeAlias = tuple[float, tuple[float | None, float | None]]
"""A figure of simulated queries, and its interval."""

World: TypeAlias = tuple[float, Callable[[np.random.Generator, int], Drawn]]
"""The truth, and how so many queries are drawn."""

SAMPLES = 400
MANY = 100_000
DOCUMENTS = 5
LABELS = 4


def of_figures(simulations: int, queries: int, seed: int) -> dict[str, float]:
    """How often the intervals of single figures hold the truth, over so many queries."""
    covered = {}
    for name, (exact, draw) in worlds(queries, seed).items():
        rng = np.random.default_rng(seed)
        ends = [draw(rng, number)[1] for number in range(simulations)]
        covered[name] = float(
            np.mean([low is not None and high is not None and low <= exact <= high for low, high in ends])
        )
    return covered


def worlds(queries: int, seed: int) -> dict[str, World]:
    """Kappas and shares of labels of documents, means of scores, rank correlations of agents scored on queries."""
    rng = np.random.default_rng(seed)
    many = _labels(rng, MANY)
    found: dict[str, World] = {
        "mean of scores": (0.4, partial(_mean, queries=queries)),
        "share, bootstrap": (
            _shares(many.sum(axis=0)[np.newaxis])[0],
            partial(_of_tables, queries=queries, statistic=_shares),
        ),
        "share, Wilson by query": (_shares(many.sum(axis=0)[np.newaxis])[0], partial(_wilson, queries=queries)),
    }
    for how in ("none", "linear", "quadratic"):
        statistic = partial(cohen_kappas, weights=how)
        found[f"kappa, weights {how}"] = (
            float(statistic(many.sum(axis=0))),
            partial(_of_tables, queries=queries, statistic=statistic),
        )
    for agents in (6, 10, 30):
        for name, rank in (("tau", kendall_taus), ("rho", spearmans)):
            a, b = _scores(rng, agents, queries, 2000)
            exact = float(np.nanmean(rank(a.mean(axis=2), b.mean(axis=2))))
            found[f"{name} of {agents} agents"] = (
                exact,
                partial(_ranked, agents=agents, queries=queries, rank=rank),
            )
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


def _shares(tables: Floats) -> Floats:
    same: Floats = np.trace(tables, axis1=1, axis2=2) / tables.sum(axis=(1, 2))
    return same


def _of_tables(rng: np.random.Generator, number: int, queries: int, statistic: Callable[[Floats], Floats]) -> Drawn:
    tables = _labels(rng, queries)
    weights = np.vstack([np.ones(queries), query_weights(queries, SAMPLES, number)])
    return _estimated(statistic(np.tensordot(weights, tables, axes=1)), queries)


def _wilson(rng: np.random.Generator, _number: int, queries: int) -> Drawn:
    tables = _labels(rng, queries)
    ends = share_interval(np.trace(tables, axis1=1, axis2=2), tables.sum(axis=(1, 2)))
    return _shares(tables.sum(axis=0)[np.newaxis])[0], ends or (None, None)


def _mean(rng: np.random.Generator, number: int, queries: int) -> Drawn:
    weights = np.vstack([np.ones(queries), query_weights(queries, SAMPLES, number)])
    return _estimated(weighted_means(rng.beta(0.8, 1.2, (1, queries)), weights)[:, 0], queries)


def _scores(rng: np.random.Generator, agents: int, queries: int, times: int) -> list[Floats]:
    """Two scores of each agent and query, shape (times, agents, queries), of agents whose order they share in part."""
    order = np.random.default_rng(agents)
    quality = order.normal(size=(agents, 1)) * 0.25
    shared = rng.normal(size=(times, agents, queries)) * 0.4
    other = order.normal(size=(agents, 1)) * 0.1
    return [own + shared + rng.normal(size=shared.shape) * 0.8 for own in (quality, quality + other)]


def _ranked(
    rng: np.random.Generator, number: int, agents: int, queries: int, rank: Callable[[Floats, Floats], Floats]
) -> Drawn:
    weights = np.vstack([np.ones(queries), query_weights(queries, SAMPLES, number)])
    x, y = (weighted_means(part[0], weights) for part in _scores(rng, agents, queries, 1))
    return _estimated(rank(x, y), queries, centred=True)


def _estimated(values: Floats, queries: int, *, centred: bool = False) -> Drawn:
    (found,) = estimates(values[:1], values[1:, np.newaxis], queries, centred=centred)
    return float(values[0]), (found.low, found.high)


FIGURES = """\

### Means, shares, kappa, rank correlations

{simulations} simulated sets of 25 and of 80 queries; what queries share is drawn anew with each. Labels of {documents}
documents a query by two raters who agree more on some queries than on others; scores of agents by two measures whose
errors on one query go together. The truth is that of {many:,} queries; of a rank correlation, the mean over as many
other queries. All are the bootstrap by query with percentiles taken further out ({samples} samples), centred for rank
correlations; but for the second share, which is Wilson's interval with an effective number of observations. The
standard error of each share below is about {error:.1%}.

| interval | 25 queries | 80 queries |
|---|---|---|
{rows}
"""


def figures_page(simulations: int, seed: int) -> str:
    """The part of the page on single figures."""
    few, enough = (of_figures(simulations, queries, seed) for queries in (25, 80))
    return FIGURES.format(
        simulations=simulations,
        documents=DOCUMENTS,
        many=MANY,
        samples=SAMPLES,
        error=np.sqrt(LEVEL * (1 - LEVEL) / simulations),
        rows="\n".join(f"| {name} | {few[name]:.1%} | {enough[name]:.1%} |" for name in few),
    )


PAGE = """\
## Intervals

`python -m benchmarks.coverage` prints this section.

{simulations} simulated tournaments of {agents} agents, {queries} queries and {per_query} games on each. An agent's
strength varies over queries with a standard deviation of {points:.0f} points around its mean; about a fifth of all
games are ties. The truth is what a million games on 200,000 queries give. Bradley-Terry with Davidson's ties,
intervals at 95 %, {samples} bootstrap samples, seed {seed}. If the intervals of one tournament hit or missed together,
the shares below would have a standard error of {error:.1%}; they do not, so it is less.

| interval | holds the truth | mean width in points |
|---|---|---|
{rows}

The rank intervals, which are to hold the true ranks of all agents at once in 95 % of all tournaments, did so in
{ranks:.1%}. They are cautious by construction: the differences of all pairs must hold at once, while a rank errs only
where a difference is taken for real that is none or has the other sign.

The bootstrap by query is a little narrower than the sandwich by query: a resample of n queries varies by (n - 1) / n
too little, and its percentiles are those of a normal distribution where the sandwich uses Student's t. With few
queries that is worth knowing; rank intervals and groups correct for both.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--per-query", type=int, default=50)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figures", action="store_true", help="print only the part on single figures")
    given = parser.parse_args()
    if given.figures:
        print(figures_page(given.simulations, given.seed), end="")
        return
    found = analytic(given.simulations, given.queries, given.per_query, given.seed)
    drawn, ranks = resampled(given.simulations, given.queries, given.per_query, given.seed, given.samples)
    rows = [f"| {name} | {one.covered:.1%} | {one.width:.0f} |" for name, one in (found | drawn).items()]
    print(
        PAGE.format(
            agents=STRENGTHS.size,
            points=QUERY_SD * 400 / np.log(10),
            error=np.sqrt(LEVEL * (1 - LEVEL) / given.simulations),
            rows="\n".join(rows),
            ranks=ranks,
            **vars(given),
        ),
        end="",
    )
    print(figures_page(given.simulations, given.seed), end="")


if __name__ == "__main__":
    main()
