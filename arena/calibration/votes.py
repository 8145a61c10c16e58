"""What people and judges said of single things, how often two of them say the same, and who may do no better.

Zheng et al. (2023, NeurIPS, "Judging LLM-as-a-judge with MT-bench and chatbot arena", section 4.2) compare judge and
people by the votes of two raters drawn by chance, and people among themselves, with ties as a third vote (setup 1) and
on votes without ties (setup 2). No consensus is needed, so that the two figures can be compared: a judge agrees with
people as well as people do, or not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from retrieval_eval.stats.agreement import cohen_kappas
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import jackknife_estimate, jackknife_estimates, share_estimate
from retrieval_eval.stats.estimate import Estimate

Level: TypeAlias = Literal["verdicts", "labels", "criteria", "nuggets", "support"]
"""What was judged: two answers to a query, a document, an answer by one criterion, a nugget in an answer, a sentence by
what it cites."""

ItemKey: TypeAlias = tuple[str, ...]
"""Names one thing among those of its query: two agents in the order of their names, a document, an agent and a
criterion, an agent and a nugget, an agent, a sentence's place and a document, and further columns where those do not
tell things apart."""

Values: TypeAlias = Mapping[str, Mapping[ItemKey, float]]
"""A value for each thing, by query."""


class Opinion(NamedTuple):
    """One rater's value of one thing.

    Attributes:
        query_id: the query; what was said on one query depends on each other.
        value: a label or a grade; of a verdict 1 where the first agent of ``item`` won, -1 where the second did, and 0
            for a tie.
        swapped: of a verdict, whether the second agent of ``item`` was shown first.
        placed: of a verdict, whether it is known who was shown first.
        chance: with which the thing was drawn for this rater, where that is known.
    """

    query_id: str
    item: ItemKey
    rater: str
    value: float
    swapped: bool = False
    placed: bool = True
    chance: float | None = None


Opinions: TypeAlias = Mapping[tuple[Level, str], Sequence[Opinion]]
"""What was said, by what was judged and group."""


def by_rater(opinions: Iterable[Opinion]) -> dict[str, dict[str, dict[ItemKey, float]]]:
    """Each rater's values, by query and thing; where a rater repeats itself the last one stands."""
    found: defaultdict[str, defaultdict[str, dict[ItemKey, float]]] = defaultdict(lambda: defaultdict(dict))
    for one in opinions:
        found[one.rater][one.query_id][one.item] = one.value
    return {rater: dict(values) for rater, values in sorted(found.items())}


def by_item(opinions: Iterable[Opinion]) -> dict[str, dict[ItemKey, list[Opinion]]]:
    """All that was said of each thing, by query."""
    found: defaultdict[str, defaultdict[ItemKey, list[Opinion]]] = defaultdict(lambda: defaultdict(list))
    for one in opinions:
        found[one.query_id][one.item].append(one)
    return {query_id: dict(things) for query_id, things in found.items()}


def paired(first: Values, second: Values) -> list[tuple[str, ItemKey, float, float]]:
    """Query, thing and both values of what is in both, in the order of the first."""
    return [
        (query_id, item, value, second[query_id][item])
        for query_id, things in first.items()
        if query_id in second
        for item, value in things.items()
        if item in second[query_id]
    ]


def whole_numbers(values: Values) -> dict[str, dict[ItemKey, int]] | None:
    """The same as labels, ``None`` where a value is none, such as the mean of several."""
    if any(value != int(value) for things in values.values() for value in things.values()):
        return None
    return {query_id: {item: int(value) for item, value in things.items()} for query_id, things in values.items()}


class VoteAgreement(Struct, frozen=True):
    """Share of pairs of votes on one thing that are equal, with its interval clustered by query.

    Attributes:
        pairs: pairs of votes by different raters.
        share: of them that are equal.
    """

    pairs: int
    share: Estimate


def agreement_between(judge: Iterable[Opinion], people: Iterable[Opinion]) -> VoteAgreement:
    """Every vote of the judge with every vote of people on the same thing."""
    said = by_item(people)
    equal: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for query_id, things in by_item(judge).items():
        human = said.get(query_id, {})
        for item in human.keys() & things.keys():
            votes, own = Counter(one.value for one in human[item]), things[item]
            pairs[query_id] += len(own) * votes.total()
            equal[query_id] += sum(votes[one.value] for one in own)
    return _agreement(equal, pairs)


def agreement_within(people: Iterable[Opinion]) -> VoteAgreement:
    """Every two votes of different people on the same thing."""
    equal: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for query_id, things in by_item(people).items():
        for own in things.values():
            same_rater = _pairs([one.rater for one in own])
            pairs[query_id] += len(own) * (len(own) - 1) // 2 - same_rater
            equal[query_id] += _pairs([one.value for one in own])
            equal[query_id] -= _pairs([(one.value, one.rater) for one in own]) if same_rater else 0
    return _agreement(equal, pairs)


def judge_less_people(judge: Iterable[Opinion], people: Iterable[Opinion]) -> Estimate:
    """How much more often the judge agrees with a person than two people agree, on the same things.

    Only things count that the judge and two people or more have judged, each once, so that hard ones count for both
    alike; the interval is by query. ``n`` is the number of queries.
    """
    said = by_item(people)
    gaps: defaultdict[str, float] = defaultdict(float)
    things: Counter[str] = Counter()
    for query_id, own in by_item(judge).items():
        human = said.get(query_id, {})
        for item in human.keys() & own.keys():
            of_two = _shares_of_two(human[item])
            if of_two is None:
                continue
            votes = Counter(one.value for one in human[item])
            of_judge = sum(votes[one.value] for one in own[item]) / (len(own[item]) * votes.total())
            gaps[query_id] += of_judge - of_two
            things[query_id] += 1
    totals = np.array([[gaps[name], number] for name, number in things.items()]).reshape(-1, 2)
    return replace(jackknife_estimate(_mean_gaps, totals, narrowest=1e-9), n=len(things))


def _mean_gaps(totals: Floats) -> Floats:
    with np.errstate(invalid="ignore"):  # of nothing, where all is on one query
        return np.asarray(totals[:, 0] / totals[:, 1], np.float64)


def _shares_of_two(votes: Sequence[Opinion]) -> float | None:
    """Share of the pairs of votes by different people that are equal; ``None`` where there is no such pair."""
    same_rater = _pairs([one.rater for one in votes])
    pairs = len(votes) * (len(votes) - 1) // 2 - same_rater
    if not pairs:
        return None
    equal = _pairs([one.value for one in votes]) - _pairs([(one.value, one.rater) for one in votes])
    return equal / pairs


def each_vote(judge: Values, people: Iterable[Opinion]) -> tuple[Values, Values]:
    """Every vote of people on what the judge judged, and the judge's value beside each: a thing for each vote."""
    votes: dict[str, dict[ItemKey, float]] = {}
    values: dict[str, dict[ItemKey, float]] = {}
    for query_id, things in by_item(people).items():
        of_judge = judge.get(query_id, {})
        for item, own in things.items():
            if item in of_judge:
                for number, one in enumerate(own):
                    thing = (*item, str(number))
                    votes.setdefault(query_id, {})[thing] = one.value
                    values.setdefault(query_id, {})[thing] = of_judge[item]
    return votes, values


def decided(votes: Iterable[Opinion]) -> list[Opinion]:
    """Votes that are no tie."""
    return [one for one in votes if one.value != 0]


def _pairs(named: Sequence[Hashable]) -> int:
    """How many two of these are equal."""
    if len(set(named)) == len(named):
        return 0
    return sum(times * (times - 1) // 2 for times in Counter(named).values())


def _agreement(equal: Mapping[str, int], pairs: Mapping[str, int]) -> VoteAgreement:
    return VoteAgreement(sum(pairs.values()), share_estimate([equal.get(name, 0) for name in pairs], [*pairs.values()]))


_FEWEST = 10
"""Things shared with others below which nobody is said not to be above chance."""


class Annotator(Struct, frozen=True):
    """One rater against all others on the things that both judged.

    Attributes:
        votes: that it gave.
        shared: those on things that others judged too.
        kappa: Cohen's with the others' votes, each thing counting once; interval clustered by query.
        above_chance: whether the interval lies above 0, of labels and grades that of kappa with linear weights: who is
            always one grade off agrees. ``None`` where there is none, or it does not and fewer than ten are shared.
    """

    rater: str
    votes: int
    shared: int
    kappa: Estimate
    above_chance: bool | None


def annotators(opinions: Sequence[Opinion], *, mirrored: bool = False, graded: bool = False) -> tuple[Annotator, ...]:
    """Everybody, whoever agrees least with the others first and those that cannot be compared last.

    Where they are ``mirrored``, values are verdicts; both sides count alike. ``graded`` ones are labels or grades, some
    of which are nearer to each other than others.
    """
    given = {one.value for one in opinions}
    labels = sorted(given | {-value for value in given}) if mirrored else sorted(given)
    place = {label: at for at, label in enumerate(labels)}
    raters = sorted({one.rater for one in opinions})
    number = {rater: at for at, rater in enumerate(raters)}
    queries = by_item(opinions)
    things = [(query, own) for query, of_query in enumerate(queries.values()) for own in of_query.values()]
    said = [one for _, own in things for one in own]
    thing = np.repeat(np.arange(len(things)), [len(own) for _, own in things])
    query = np.array([at for at, _ in things], np.int64)[thing]
    rater = np.array([number[one.rater] for one in said], np.int64)
    label = np.array([place[one.value] for one in said], np.int64)
    others = np.zeros((len(things), len(labels)))
    np.add.at(others, (thing, label), 1)
    others = others[thing]
    others[np.arange(len(said)), label] -= 1
    with_others = others.any(axis=1)
    tables = np.zeros((len(raters), len(queries), len(labels), len(labels)))
    share = others[with_others] / others[with_others].sum(axis=1, keepdims=True)
    np.add.at(tables, (rater[with_others], query[with_others], label[with_others]), share)
    votes, shared = np.bincount(rater, minlength=len(raters)), np.bincount(rater[with_others], minlength=len(raters))
    if mirrored:
        tables = (tables + tables[..., ::-1, ::-1]) / 2
    whose = np.repeat(np.arange(len(raters)), len(queries))
    by_query = tables.reshape(len(raters) * len(queries), len(labels), len(labels))
    of = by_query, whose, len(raters), (-1.0, 1.0)
    kappas = jackknife_estimates(cohen_kappas, *of)
    chance = jackknife_estimates(partial(cohen_kappas, weights="linear"), *of) if graded else kappas
    found = [
        _annotator(name, int(votes[at]), int(shared[at]), kappas[at], chance[at]) for at, name in enumerate(raters)
    ]
    return tuple(sorted(found, key=lambda one: (one.kappa.value is None, round(one.kappa.value or 0.0, 9), one.rater)))


def _annotator(rater: str, votes: int, shared: int, kappa: Estimate, chance: Estimate) -> Annotator:
    above = None if chance.low is None else chance.low > 0
    return Annotator(rater, votes, shared, kappa, above if above or shared >= _FEWEST else None)
