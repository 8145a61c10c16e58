"""How often two raters, drawn by chance, say the same of a thing that both judged.

Zheng et al. (2023, NeurIPS, "Judging LLM-as-a-judge with MT-bench and chatbot arena", section 4.2) compare judge and
people so, and people among themselves, with ties as a third vote (setup 1) and on votes without ties (setup 2). No
consensus is needed, so that the two figures can be compared: a judge agrees with people as well as people do, or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from arena.calibration.opinions import Item, Opinion, Values, by_item
from retrieval_eval.stats.bootstrap import share_interval
from retrieval_eval.stats.estimate import Estimate


@dataclass(frozen=True, slots=True)
class VoteAgreement:
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
        for item, own in things.items():
            votes = Counter(one.value for one in said.get(query_id, {}).get(item, ()))
            pairs[query_id] += len(own) * votes.total()
            equal[query_id] += sum(votes[one.value] for one in own)
    return _agreement(equal, pairs)


def agreement_within(people: Iterable[Opinion]) -> VoteAgreement:
    """Every two votes of different people on the same thing."""
    equal: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for query_id, things in by_item(people).items():
        for own in things.values():
            same = _pairs(Counter(one.value for one in own)), _pairs(Counter((one.value, one.rater) for one in own))
            of_all = _pairs(Counter(["any"] * len(own))), _pairs(Counter(one.rater for one in own))
            equal[query_id] += same[0] - same[1]
            pairs[query_id] += of_all[0] - of_all[1]
    return _agreement(equal, pairs)


def each_vote(judge: Values, people: Iterable[Opinion]) -> tuple[Values, Values]:
    """Every vote of people on what the judge judged, and the judge's value beside each: a thing for each vote."""
    votes: dict[str, dict[Item, float]] = {}
    values: dict[str, dict[Item, float]] = {}
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


def _pairs(counts: Mapping[Hashable, int]) -> int:
    return sum(times * (times - 1) // 2 for times in counts.values())


def _agreement(equal: Mapping[str, int], pairs: Mapping[str, int]) -> VoteAgreement:
    total = sum(pairs.values())
    if not total:
        return VoteAgreement(0, Estimate(None))
    parts = np.array([equal.get(query_id, 0) for query_id in pairs], np.float64)
    wholes = np.array(list(pairs.values()), np.float64)
    bounds = share_interval(parts, wholes) or (None, None)
    return VoteAgreement(total, Estimate(float(parts.sum() / total), *bounds))
