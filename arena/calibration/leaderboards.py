"""Whether a judge puts agents in the order that people do, where both judged the same things.

A judge that errs on single things may still rank agents well, and it is the ranking that decides (Zheng et al. 2023,
section 4.2, compare both). The two leaderboards rest on the same things, so that they differ by judgment alone:
Bradley-Terry ratings of verdicts with ties as half a win, means over queries of grades and of nuggets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arena.calibration.methods import MethodPair, method_pair
from arena.calibration.opinions import Item, Level, Opinion, Values, paired
from arena.calibration.orders import games_of
from arena.ratings.bootstrap import bootstrap
from arena.ratings.bradley_terry import BradleyTerrySettings, bradley_terry
from arena.ratings.games import Floats
from retrieval_eval.stats.bootstrap import query_weights, weighted_means

_FEWEST_AGENTS = 3


def leaderboard_agreement(
    level: Level, judge: Values, people: Values, samples: int = 1000, seed: int = 0
) -> MethodPair | None:
    """Correlate the places of agents by people and by a judge, with intervals by resampling queries.

    Args:
        level: what was judged; documents have no agent.
        judge: the judge's value of each thing.
        people: people's consensus.
        samples: bootstrap samples, the same queries for both.
        seed: of the samples.

    Returns:
        ``None`` for documents and for fewer than three agents.
    """
    both = paired(people, judge)
    names = (-2, -1) if level == "verdicts" else (-2,)
    agents = sorted({item[place] for _, item, *_ in both for place in names}) if level != "labels" else []
    if len(agents) < _FEWEST_AGENTS:
        return None
    scored = _rated if level == "verdicts" else _averaged
    points, drawn = zip(
        *(
            scored([(query_id, item, values[side]) for query_id, item, *values in both], agents, samples, seed)
            for side in (0, 1)
        ),
        strict=True,
    )
    queries = len({query_id for query_id, *_ in both})
    return method_pair(("people", "judge"), (points[0], points[1]), (drawn[0], drawn[1]), queries)


def _rated(
    values: Sequence[tuple[str, Item, float]], agents: Sequence[str], samples: int, seed: int
) -> tuple[Floats, Floats]:
    """Ratings, and those of each sample, shapes (agents,) and (samples, agents)."""
    games, _ = games_of([Opinion(query_id, item, "", value) for query_id, item, value in values])
    fitted = bradley_terry(games, BradleyTerrySettings(ties="half"))
    drawn = bootstrap(games, fitted, samples, seed)
    return fitted.ratings, np.empty((0, len(agents))) if drawn is None else drawn.samples


def _averaged(
    values: Sequence[tuple[str, Item, float]], agents: Sequence[str], samples: int, seed: int
) -> tuple[Floats, Floats]:
    """Means over queries, shapes as above."""
    row = {agent: at for at, agent in enumerate(agents)}
    column = {query_id: at for at, query_id in enumerate(dict.fromkeys(query_id for query_id, *_ in values))}
    total, count = np.zeros((2, len(row), len(column)))
    for query_id, item, value in values:
        total[row[item[-2]], column[query_id]] += value
        count[row[item[-2]], column[query_id]] += 1
    table = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    weights = query_weights(len(column), samples if len(column) > 1 else 0, seed)
    return weighted_means(table, np.ones((1, len(column))))[0], weighted_means(table, weights)
