"""Values that people and judges give to items: how often two raters agree, and which raters agree only by chance.

Zheng et al. (2023, NeurIPS, "Judging LLM-as-a-judge with MT-bench and chatbot arena", section 4.2) compare judge and
people, and people with each other, by pairs of randomly drawn votes: with ties as a third vote (setup 1) and without
ties (setup 2). Since no consensus is involved, the two agreements are comparable, and show whether the judge agrees
with people as often as people do with each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from arena.calibration import ItemKey, ItemMeans, Opinion
from retrieval_eval.stats import Floats
from retrieval_eval.stats.agreement import cohen_kappas
from retrieval_eval.stats.bootstrap import (
    ALONE,
    Clusters,
    jackknife_estimate,
    jackknife_estimates,
    share_estimate,
    units_of,
)
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.paired import RunComparison, compare, holm

Level: TypeAlias = str
"""Name of what raters judge, such as ``verdicts`` or ``labels``; see ``arena.data.kinds``."""

Values: TypeAlias = Mapping[str, Mapping[ItemKey, float]]
"""Numeric value of each item, by query and item."""


ONE_MEAN: Final = ItemMeans()


Opinions: TypeAlias = Mapping[tuple[Level, str], Sequence[Opinion]]
"""Opinions by level, such as labels, and group of items, such as a dimension."""


def by_rater(opinions: Iterable[Opinion]) -> dict[str, dict[str, dict[ItemKey, float]]]:
    """Each rater's values, by query and item; a later value replaces an earlier one."""
    values: defaultdict[str, defaultdict[str, dict[ItemKey, float]]] = defaultdict(lambda: defaultdict(dict))
    for opinion in opinions:
        values[opinion.rater][opinion.query_id][opinion.item] = opinion.value
    return {rater: dict(by_query) for rater, by_query in sorted(values.items())}


def by_item(opinions: Iterable[Opinion]) -> dict[str, dict[ItemKey, list[Opinion]]]:
    groups: defaultdict[str, defaultdict[ItemKey, list[Opinion]]] = defaultdict(lambda: defaultdict(list))
    for opinion in opinions:
        groups[opinion.query_id][opinion.item].append(opinion)
    return {query_id: dict(items) for query_id, items in groups.items()}


def paired(first: Values, second: Values) -> list[tuple[str, ItemKey, float, float]]:
    """Match two raters' values of the same items: query, item, and both values, in the order of ``first``."""
    return [
        (query_id, item, value, second[query_id][item])
        for query_id, items in first.items()
        if query_id in second
        for item, value in items.items()
        if item in second[query_id]
    ]


def whole_numbers(values: Values) -> dict[str, dict[ItemKey, int]] | None:
    """Convert the values to integer labels; ``None`` if any value is fractional, such as the mean of several labels."""
    if any(value != int(value) for items in values.values() for value in items.values()):
        return None
    return {query_id: {item: int(value) for item, value in items.items()} for query_id, items in values.items()}


class VoteAgreement(Struct, frozen=True):
    """How often two votes on the same item are equal: number of pairs of votes, and share of pairs with equal votes.

    The interval of the share is clustered by query.
    """

    pairs: int
    share: Estimate


def agreement_between(judge: Iterable[Opinion], people: Iterable[Opinion]) -> VoteAgreement:
    """How often judge and people agree, over all pairs of a judge's and a person's vote on the same item."""
    human_opinions = by_item(people)
    equal: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for query_id, items in by_item(judge).items():
        human = human_opinions.get(query_id, {})
        for item in human.keys() & items.keys():
            votes, judge_votes = Counter(opinion.value for opinion in human[item]), items[item]
            pairs[query_id] += len(judge_votes) * votes.total()
            equal[query_id] += sum(votes[vote.value] for vote in judge_votes)
    return _agreement(equal, pairs)


def agreement_within(people: Iterable[Opinion]) -> VoteAgreement:
    """How often people agree with each other, over all pairs of two persons' votes on the same item."""
    equal: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for query_id, items in by_item(people).items():
        for votes in items.values():
            agreeing, compared = _pairs_of_people(votes)
            equal[query_id] += agreeing
            pairs[query_id] += compared
    return _agreement(equal, pairs)


def judge_less_people(judge: Iterable[Opinion], people: Iterable[Opinion]) -> Estimate:
    """How much more often the judge agrees with a person than two people agree with each other, on the same items.

    Only items that the judge and at least two people judged count, each once, so that difficult items affect both
    shares equally. The interval is clustered by query; ``n`` is the number of queries.
    """
    human_opinions = by_item(people)
    gaps: defaultdict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    for query_id, judge_items in by_item(judge).items():
        human = human_opinions.get(query_id, {})
        for item in human.keys() & judge_items.keys():
            agreeing, compared = _pairs_of_people(human[item])
            if not compared:
                continue
            gaps[query_id] += _share_alike(judge_items[item], human[item]) - agreeing / compared
            counts[query_id] += 1
    totals = np.array([[gaps[query_id], count] for query_id, count in counts.items()]).reshape(-1, 2)
    gap = jackknife_estimate(mean_of_totals, totals, narrowest=1e-9)
    low, high = (None if end is None else min(1.0, max(-1.0, end)) for end in (gap.low, gap.high))
    return replace(gap, low=low, high=high, n=len(counts))


def agreement_by_item(judge: Iterable[Opinion], people: Iterable[Opinion]) -> dict[tuple[str, ItemKey], float]:
    """Share of the pairs of a judge's and a person's vote that are equal, on each item that both judged."""
    human_opinions = by_item(people)
    return {
        (query_id, item): _share_alike(votes, human_opinions[query_id][item])
        for query_id, items in by_item(judge).items()
        for item, votes in items.items()
        if item in human_opinions.get(query_id, {})
    }


def _share_alike(judge_votes: Sequence[Opinion], human_votes: Sequence[Opinion]) -> float:
    votes = Counter(vote.value for vote in human_votes)
    return sum(votes[vote.value] for vote in judge_votes) / (len(judge_votes) * len(human_votes))


def mean_of_totals(totals: Floats) -> Floats:
    """Divide each row's first number, a sum, by its second, a count; shape (samples, 2) to (samples,)."""
    with np.errstate(invalid="ignore"):  # 0 / 0 when the jackknife leaves out the only query
        return np.asarray(totals[:, 0] / totals[:, 1], np.float64)


def _pairs_of_people(votes: Sequence[Opinion]) -> tuple[int, int]:
    """Number of pairs of two persons whose votes on the item are equal, and number of all such pairs."""
    same_rater = _equal_pairs([vote.rater for vote in votes])
    equal = _equal_pairs([vote.value for vote in votes])
    if same_rater:
        equal -= _equal_pairs([(vote.value, vote.rater) for vote in votes])
    return equal, len(votes) * (len(votes) - 1) // 2 - same_rater


def each_vote(judge: Values, people: Iterable[Opinion]) -> tuple[Values, Values]:
    """Make each person's vote on an item that the judge judged an item of its own.

    Returns:
        People's votes, and the judge's value for each of them; the vote's number is added to the item's key.
    """
    votes: dict[str, dict[ItemKey, float]] = {}
    values: dict[str, dict[ItemKey, float]] = {}
    for query_id, items in by_item(people).items():
        judge_values = judge.get(query_id, {})
        for item, opinions in items.items():
            if item in judge_values:
                for number, opinion in enumerate(opinions):
                    vote_key = (*item, str(number))
                    votes.setdefault(query_id, {})[vote_key] = opinion.value
                    values.setdefault(query_id, {})[vote_key] = judge_values[item]
    return votes, values


def decided(votes: Iterable[Opinion]) -> list[Opinion]:
    return [vote for vote in votes if vote.value != 0]


def _equal_pairs(keys: Sequence[Hashable]) -> int:
    if len(set(keys)) == len(keys):
        return 0
    return sum(count * (count - 1) // 2 for count in Counter(keys).values())


def _agreement(equal: Counter[str], pairs: Counter[str]) -> VoteAgreement:
    return VoteAgreement(pairs.total(), share_estimate([equal[query_id] for query_id in pairs], [*pairs.values()]))


_FEWEST = 10
"""Minimum number of votes on items that others judged too, for saying that a rater agrees no better than chance."""


class Annotator(Struct, frozen=True):
    """One rater compared with all other raters of the same items.

    Attributes:
        votes: number of the rater's votes.
        shared: number of the rater's votes on items that other raters judged too.
        kappa: Cohen's kappa with the votes of all other raters; each vote of the rater counts once. The interval is
            clustered by query.
        above_chance: whether kappa's interval lies above 0. For labels and grades, kappa has linear weights here, so
            that a rater who is always one grade off still agrees. ``None`` if there is no interval, or if it does not
            lie above 0 and ``shared`` is below ten.
    """

    rater: str
    votes: int
    shared: int
    kappa: Estimate
    above_chance: bool | None


def annotators(opinions: Sequence[Opinion], *, mirrored: bool = False, graded: bool = False) -> tuple[Annotator, ...]:
    """Compare every rater with all others; the rater with the lowest kappa comes first, raters without kappa come last.

    ``mirrored`` means that the values are verdicts on two agents in arbitrary order; ``graded``, that they are ordered
    labels or grades.
    """
    observed = {opinion.value for opinion in opinions}
    labels = sorted(observed | {-value for value in observed}) if mirrored else sorted(observed)
    label_index = {label: index for index, label in enumerate(labels)}
    raters = sorted({opinion.rater for opinion in opinions})
    rater_index = {rater: index for index, rater in enumerate(raters)}
    queries = by_item(opinions)
    items = [(query, votes) for query, by_key in enumerate(queries.values()) for votes in by_key.values()]
    all_votes = [vote for _, votes in items for vote in votes]
    item = np.repeat(np.arange(len(items)), [len(votes) for _, votes in items])
    query = np.array([index for index, _ in items], np.int64)[item]
    rater = np.array([rater_index[vote.rater] for vote in all_votes], np.int64)
    label = np.array([label_index[vote.value] for vote in all_votes], np.int64)
    others = np.zeros((len(items), len(labels)))
    np.add.at(others, (item, label), 1)
    others = others[item]
    others[np.arange(len(all_votes)), label] -= 1
    with_others = others.any(axis=1)
    tables = np.zeros((len(raters), len(queries), len(labels), len(labels)))
    share = others[with_others] / others[with_others].sum(axis=1, keepdims=True)
    np.add.at(tables, (rater[with_others], query[with_others], label[with_others]), share)
    counts, shared = np.bincount(rater, minlength=len(raters)), np.bincount(rater[with_others], minlength=len(raters))
    if mirrored:
        tables = (tables + tables[..., ::-1, ::-1]) / 2
    table_rater = np.repeat(np.arange(len(raters)), len(queries))
    by_query = tables.reshape(len(raters) * len(queries), len(labels), len(labels))
    arguments = by_query, table_rater, len(raters), (-1.0, 1.0)
    kappas = jackknife_estimates(cohen_kappas, *arguments)
    weighted = jackknife_estimates(partial(cohen_kappas, weights="linear"), *arguments) if graded else kappas
    compared = []
    columns = raters, counts.tolist(), shared.tolist(), kappas, weighted
    for name, votes, common, kappa, graded_kappa in zip(*columns, strict=True):
        above = None if graded_kappa.low is None else graded_kappa.low > 0
        compared.append(Annotator(name, votes, common, kappa, above if above or common >= _FEWEST else None))
    return tuple(
        sorted(compared, key=lambda own: (own.kappa.value is None, round(own.kappa.value or 0.0, 9), own.rater))
    )


class GradeTest(Struct, frozen=True):
    """Two agents compared by people's grades on one criterion.

    Attributes:
        group: name of what people graded, if a table has several groups; else empty.
        comparison: the test on the queries on which people graded both agents; its ``p_t_holm`` is corrected for all
            tests of the same call.
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
    """Paired t tests of every two agents on each criterion (Rackauckas, Camara, Zavrel 2024, section 7.2.2).

    The tests are two-sided. An agent's value on a query is the mean of its grades by all raters. Queries of one
    conversation count as one unit, and all p-values are corrected together (Holm).

    Args:
        groups: names of groups, each with its grades; the last two parts of a grade's ``item`` are agent and criterion.
        seed: random seed of a permutation test.
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
