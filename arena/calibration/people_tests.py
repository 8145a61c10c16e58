"""Paired t tests over queries: whether people grade one agent higher than another on a criterion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from arena.calibration.votes import Opinion
from retrieval_eval.stats.bootstrap import ALONE, Clusters, units_of
from retrieval_eval.stats.paired import RunComparison, compare, holm


class GradeTest(Struct, frozen=True):
    """Two agents compared by people's grades on one criterion.

    Attributes:
        group: name of what people graded, if a table has several groups; else empty.
        comparison: the test on the queries on which people graded both agents; ``p_t_holm`` is corrected for all tests
            made together.
        queries: number of queries on which people graded both. If the queries belong to conversations,
            ``comparison.difference.n`` counts conversations.
    """

    group: str
    criterion: str
    comparison: RunComparison
    queries: int


def grade_tests(
    groups: Iterable[tuple[str, Iterable[Opinion]]], *, seed: int, clusters: Clusters = ALONE
) -> tuple[GradeTest, ...]:
    """Test every two agents on each criterion, two-sided (Rackauckas, Camara, Zavrel 2024, section 7.2.2, with two).

    A query's value is the mean over its raters and items. Queries of one conversation count as one unit, and all
    p-values are corrected together (Holm).

    Args:
        groups: grades by group; the last two parts of each opinion's ``item`` are agent and criterion.
        seed: seed of the permutation test.
        clusters: the conversation of each query.
    """
    tests = []
    for group, opinions in groups:
        by_criterion: defaultdict[str, defaultdict[str, defaultdict[str, list[float]]]]
        by_criterion = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
        for opinion in opinions:
            agent, criterion = opinion.item[-2:]
            by_criterion[criterion][agent][opinion.query_id].append(opinion.value)
        for criterion, by_agent in sorted(by_criterion.items()):
            means = {
                agent: {query: float(np.mean(grades)) for query, grades in by_query.items()}
                for agent, by_query in sorted(by_agent.items())
            }
            for first, second in combinations(means, 2):
                shared = [query for query in means[first] if query in means[second]]
                values = np.array([[means[agent][query] for query in shared] for agent in (first, second)])
                unit = units_of(shared, clusters)
                comparisons = compare(values, (first, second), seed=seed, unit=unit) if shared else ()
                tests += [GradeTest(group, criterion, comparison, len(shared)) for comparison in comparisons]
    corrected = holm(np.array([1.0 if test.comparison.p_t is None else test.comparison.p_t for test in tests]))
    return tuple(
        replace(test, comparison=replace(test.comparison, p_t_holm=None if test.comparison.p_t is None else p))
        for test, p in zip(tests, corrected.tolist(), strict=True)
    )
