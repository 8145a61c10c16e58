"""Whether people grade one agent higher than another: paired t tests of each criterion, over queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from arena.calibration.votes import Opinion
from retrieval_eval.stats.bootstrap import ALONE, Clusters, units_of
from retrieval_eval.stats.significance import RunComparison, compare, holm


class GradeTest(Struct, frozen=True):
    """Two agents by people's grades of one criterion.

    Attributes:
        group: what was graded, where a table holds several things; else empty.
        found: on the queries on which people graded both; ``p_t_holm`` is corrected for all tests made together.
        queries: how many these are; ``found.difference.n`` are their conversations, where there are any.
    """

    group: str
    criterion: str
    found: RunComparison
    queries: int


def grade_tests(
    groups: Iterable[tuple[str, Iterable[Opinion]]], *, seed: int, clusters: Clusters = ALONE
) -> tuple[GradeTest, ...]:
    """Test every two agents on each criterion, two-sided (Rackauckas, Camara, Zavrel 2024, section 7.2.2, with two).

    A query's value is the mean over its raters and things. Queries of one conversation count as one unit, and all
    p-values are corrected together (Holm).

    Args:
        groups: grades, each of an item that ends in agent and criterion, by group.
        seed: of the permutation test.
        clusters: the conversations of queries.
    """
    tests = []
    for group, opinions in groups:
        by_criterion: defaultdict[str, defaultdict[str, defaultdict[str, list[float]]]]
        by_criterion = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
        for one in opinions:
            agent, criterion = one.item[-2:]
            by_criterion[criterion][agent][one.query_id].append(one.value)
        for criterion, by_agent in sorted(by_criterion.items()):
            means = {
                agent: {query: float(np.mean(grades)) for query, grades in of_agent.items()}
                for agent, of_agent in sorted(by_agent.items())
            }
            for first, second in combinations(means, 2):
                shared = [query for query in means[first] if query in means[second]]
                values = np.array([[means[agent][query] for query in shared] for agent in (first, second)])
                unit = units_of(shared, clusters)
                found = compare(values, (first, second), seed=seed, unit=unit) if shared else ()
                tests += [GradeTest(group, criterion, each, len(shared)) for each in found]
    corrected = holm(np.array([1.0 if each.found.p_t is None else each.found.p_t for each in tests]))
    return tuple(
        replace(each, found=replace(each.found, p_t_holm=None if each.found.p_t is None else p))
        for each, p in zip(tests, corrected.tolist(), strict=True)
    )
