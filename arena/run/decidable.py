"""What a planned run can decide: the smallest difference that it finds, and what twice the queries or judges buy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median_low
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from arena.config.schema import Config
from arena.data.dataset import Dataset, queries_by_agent
from arena.ratings.games import Games
from arena.results.cache import cached_games
from arena.run.planner import PlannedCalls
from arena.store import Store
from arena.store.wants import mean_costs
from judges.spec import FREE, price_of
from judges.types import Task, conversations, repeat_of
from retrieval_eval.stats import Floats, Int32s, Ints
from retrieval_eval.stats.bootstrap import units_of
from retrieval_eval.stats.decidable import ENOUGH, FEWEST, Components, components, smallest_difference

_ADAPTIVE: Final = "an adaptive schedule plays until its question is decided: what it can decide is not predicted"
_MOST_CELLS: Final = 200_000
"""Largest number of cells (pair, query and judge) of a pilot; of more, the pairs with the most games count."""


class Decidable(Struct, frozen=True):
    """What a run of one size can decide.

    Attributes:
        cost_usd: cost of the judgments that do not exist yet; ``None`` if it is not known.
        smallest: the smallest difference of two agents, in share of points from one half, that is found in 80 % of
            runs; ``None`` if none is.
        other_judges: the same with intervals for other judges of this kind; ``None`` also if it is not known.
        repeats: number of answers of each agent to a query.
    """

    run: str
    queries: int
    judges: int
    cost_usd: float | None
    smallest: float | None
    other_judges: float | None
    repeats: int = 1


class Decides(Struct, frozen=True):
    """What a planned run can decide, and the pilot that shows it: the judged games of a tournament in the store."""

    tournament: str
    judged_queries: int
    pairs: int
    judges: tuple[str, ...]
    components: Components
    runs: Sequence[Decidable] = ()


def decides(config: Config, data: Dataset, rows: Sequence[PlannedCalls], store: Store | None) -> Decides | str:
    """Predict what a run with these planned calls can decide by games; without a pilot, a sentence that says so."""
    assert config.pairwise is not None
    if config.pairwise.schedule.kind == "adaptive":
        return _ADAPTIVE
    queries, judges = _planned_queries(config, data), len(config.pairwise.judges)
    pilot = None if store is None else _pilot(store, config.name)
    if store is None or pilot is None:
        first = f"judge {ENOUGH} first with 'ragleague run CONFIG --limit {ENOUGH}', then plan again"
        how = first if queries > ENOUGH else f"that takes {FEWEST} judged queries"
        return f"what this run can decide is not known: fewer than {FEWEST} queries have games in {config.store}; {how}"
    paid = mean_costs(store, pilot.tournament)
    planned = _total(row.cost_usd for row in rows)
    every, games = (
        _total([planned, *(_cost(config, row, paid) for row in rows if row.task is Task.PAIRWISE or whole)])
        for whole in (True, False)
    )
    repeats = planned_repeats(config, data)
    sizes = [
        ("As planned", queries, judges, repeats, planned),
        ("Twice the queries", 2 * queries, judges, repeats, every),
    ]
    if pilot.components.rest is not None:
        sizes.append(("Twice the judges", queries, 2 * judges, repeats, games))
    if pilot.components.answers is not None:
        sizes.append(("Twice the repeats", queries, judges, 2 * repeats, every))
    runs = []
    for run, size, asked, times, cost in sizes:
        smallest, others = (
            smallest_difference(pilot.components, size, asked, times, others=other) for other in (False, True)
        )
        runs.append(Decidable(run, size, asked, cost, smallest, others, times))
    return replace(pilot, runs=runs)


def planned_repeats(config: Config, data: Dataset) -> int:
    """The largest number of answers to a query that two agents give, so that all of them are in games."""
    numbers = Counter(repeat_of(name)[0] for name in data.answerers)
    numbers |= Counter({name: spec.repeats for name, spec in config.agents.items()})
    return sorted([1, 1, *numbers.values()])[-2]


def repeats_note(repeats: int, pilot: Components | None) -> str:
    """What repeats are good for, and what new queries do better."""
    worth = None if pilot is None else pilot.worth(repeats)
    here = "with 3 repeats about 1.67" if worth is None else f"here {worth:.2f}"
    return (
        f"{repeats} answers to each query: at equal numbers of games new queries tell more (the variance with repeats "
        f"is {here} times as large); to measure the noise of a system, two repeats on 20 to 30 queries suffice"
    )


def _pilot(store: Store, tournament: str) -> Decides | None:
    """The tournament's own games, or those of the latest other one in the store that has enough queries."""
    names = store.rated_tournaments()[::-1]
    for name in sorted(names, key=lambda each: each != tournament):
        table = cached_games(store, name)
        games = table.games(store.settings(name).win_and_tie)
        query, judge = units_of(table.queries, table.clusters)[games.cluster], table.judge[table.played]
        if (judged := np.unique(query).size) >= FEWEST:
            values = _cells(games, query, judge)
            judges = tuple(table.judges[each] for each in np.unique(judge).tolist())
            return Decides(name, judged, len(values), judges, components(values))
    return None


def _cells(games: Games, query: Ints, judge: Int32s) -> Floats:
    """Mean share of points, from one half, of each pair's first agent, shape (pairs, queries, judges[, repeats])."""
    _, pair, met = np.unique(games.a * len(games.agents) + games.b, return_inverse=True, return_counts=True)
    (_, row), (_, column) = (np.unique(codes, return_inverse=True) for codes in (query, judge))
    shape = [int(row.max()) + 1, int(column.max()) + 1]
    place_in_row = column
    if games.repeat is not None:
        shape.append(int(games.repeat.max()))
        place_in_row = column * shape[2] + games.repeat - 1
    pairs = np.argsort(-met, kind="stable")[: max(1, _MOST_CELLS // math.prod(shape))]
    place = np.full(met.size, -1)
    place[pairs] = np.arange(pairs.size)
    kept = place[pair] >= 0
    cell = (place[pair] * math.prod(shape) + row * math.prod(shape[1:]) + place_in_row)[kept]
    played, points = (np.bincount(cell, of, pairs.size * math.prod(shape)) for of in (None, games.score[kept] - 0.5))
    return np.where(played > 0, points / np.maximum(played, 1), np.nan).reshape(-1, *shape)


def _planned_queries(config: Config, data: Dataset) -> int:
    """Number of queries, or conversations, on which two agents meet; of pairs with different numbers, the median."""
    assert config.pairwise is not None
    schedule, clusters = config.pairwise.schedule, conversations(data.queries.values())
    answered = queries_by_agent(data) | {agent: set(data.queries) for agent in config.agents}
    common = answered.pop(schedule.baseline or "", set(data.queries))
    counts = [len({clusters.get(query, query) for query in own & common}) for own in answered.values()]
    pairs = math.comb(len(counts), 2)
    share = min(1.0, schedule.games_per_query / pairs) if pairs and schedule.games_per_query else 1.0
    return round(share * median_low(counts)) if counts else 0


def _cost(config: Config, row: PlannedCalls, paid: Mapping[tuple[Task, str], float]) -> float | None:
    """Cost of all judgments of a row, as if none existed, at the mean cost of the missing or of the stored ones."""
    judgments = row.wanted - row.identical
    if not judgments or price_of(config.judges[row.judge]) == FREE:
        return 0.0
    one = row.cost_usd / row.calls if row.calls and row.cost_usd is not None else paid.get((row.task, row.judge))
    return None if one is None else judgments * one


def _total(costs: Iterable[float | None]) -> float | None:
    known = list(costs)
    return None if None in known else math.fsum(cost for cost in known if cost is not None)
