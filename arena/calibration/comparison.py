"""Comparison of judges with people: agreement, correlations, disagreements, and the gain of a panel of judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Final, Literal, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from arena.calibration import EPSILON, ItemKey, ItemMeans, Opinion
from arena.calibration.consensus import (
    Consensus,
    ConsensusMethod,
    OrderHealth,
    as_shown,
    consensus,
    majority,
    order_health,
    settled,
    values_of,
)
from arena.calibration.corrected_ratings import Estimates, estimates
from arena.calibration.correlation import BlandAltman, Correlations, bland_altman, correlations
from arena.calibration.methods import MethodPair, leaderboard_agreement
from arena.calibration.votes import (
    ONE_MEAN,
    Annotator,
    Level,
    Values,
    VoteAgreement,
    agreement_between,
    agreement_by_item,
    agreement_within,
    annotators,
    by_rater,
    decided,
    each_vote,
    judge_less_people,
    mean_of_totals,
    paired,
    whole_numbers,
)
from arena.ratings.games import Unit
from arena.ratings.results import MOST_JUDGES
from retrieval_eval.stats import Floats, Ints
from retrieval_eval.stats.agreement import LabelAgreement, RaterAgreement, label_agreement, rater_agreement
from retrieval_eval.stats.alternative import AlternativeTest, Score, alternative_test
from retrieval_eval.stats.bootstrap import ALONE, FEW_QUERIES, Clusters, jackknife_estimate, numbered, student
from retrieval_eval.stats.components import effective_votes
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.paired import GateVerdict

Against: TypeAlias = Literal["consensus", "votes"]
OrdersOfGames: TypeAlias = Literal["reconciled", "ordered"]


class Settings(Struct, frozen=True):
    """How to combine the opinions of several people, compare a judge with them, and compute intervals.

    Attributes:
        against: compare a judge's labels with people's ``consensus``, or with each of their ``votes``.
        epsilon: how much worse than a person a judge may be (``alternative_test``).
        games: ``reconciled`` combines the two orders of a game into one verdict per rater. ``ordered`` treats each
            order as a separate item, whose first side is the answer shown first.
    """

    consensus: ConsensusMethod = "majority"
    samples: int = 1000
    seed: int = 0
    against: Against = "consensus"
    games: OrdersOfGames = "reconciled"
    epsilon: float = EPSILON

    def mirrored(self, level: Level) -> bool:
        """Whether an item is a pair of agents in arbitrary order; statistics must not depend on this order."""
        return level == "verdicts" and self.games == "reconciled"


USUAL: Final = Settings()


class People(Struct, frozen=True):
    """People's opinions on the items of one level, such as labels, and their agreement with each other.

    Attributes:
        opinions: people's votes, one per person and item.
        things: number of items that people judged.
        repeated: number of items that at least two people judged.
        within: how often two people agree.
        within_decided: how often two people agree if ties are left out; ``None`` unless the values are verdicts.
        alpha: Krippendorff's alpha; ``None`` if no item has two people's votes, or the values are not integers.
    """

    level: Level
    opinions: tuple[Opinion, ...]
    things: int
    repeated: int
    within: VoteAgreement
    within_decided: VoteAgreement | None
    alpha: RaterAgreement | None
    annotators: tuple[Annotator, ...]
    consensus: Consensus


class Disagreement(Struct, frozen=True):
    """An item on which the judge and people's consensus differ; ``votes`` has each person's value by name."""

    query_id: str
    item: ItemKey
    judge: float
    people: float
    votes: Mapping[str, float]


class JudgeAgainstPeople(Struct, frozen=True):
    """A judge compared with people on the items that both judged.

    Attributes:
        n: number of items that both judged.
        queries: number of queries, or of conversations (``unit``), with items that both judged.
        judge_only: number of items that only the judge judged.
        people_only: number of items that only people judged.
        votes: how often the judge and a person agree.
        votes_decided: how often they agree if ties are left out; ``None`` unless the values are verdicts.
        less_people: agreement of the judge with a person, minus the agreement of two people, on the same items.
        labels: kappa, alpha and confusion with people's consensus, or with their votes; ``None`` if a value is not an
            integer.
        correlations: correlations of the judge's values with people's consensus, or with their votes.
        differences: differences between judge and people; ``None`` for verdicts, whose sides are arbitrary.
        alternative: the alternative annotator test, which decides whether the judge may replace a person.
        outside: each value of the judge outside the range of people's values, with its number of items; empty for
            verdicts.
        people_range: lowest and highest value that people gave; ``None`` if they gave none.
        judge_range: lowest and highest value that the judge gave to these items; ``None`` for verdicts.
        other_scale: whether judge and people used different scales. Either most of the judge's values lie outside
            people's range (on fewer than ten items, far outside), or the judge gave fractions up to 1 and people gave
            whole numbers from a longer scale.
        group: name of the group of items, such as a dimension; empty if there are no groups.
        orders: position bias in the judge's verdicts; ``None`` for a panel, or if no verdict has a known order.
        disagreements: items on which judge and people differ, the largest difference first.
        estimates: the judge's means and ratings corrected by people's labels, if requested.
        boards: rank correlation between the judge's and people's leaderboards on the same items; ``None`` for fewer
            than three agents.
        unit: what intervals and tests treat as independent of each other, queries or conversations.
    """

    level: Level
    judge: str
    n: int
    queries: int
    judge_only: int
    people_only: int
    votes: VoteAgreement
    votes_decided: VoteAgreement | None
    less_people: Estimate
    labels: LabelAgreement | None
    correlations: Correlations
    differences: BlandAltman | None
    alternative: AlternativeTest
    outside: tuple[tuple[float, int], ...] = ()
    people_range: tuple[float, float] | None = None
    judge_range: tuple[float, float] | None = None
    other_scale: bool = False
    group: str = ""
    orders: OrderHealth | None = None
    disagreements: tuple[Disagreement, ...] = ()
    estimates: Estimates | None = None
    boards: MethodPair | None = None
    unit: Unit = "query"

    @property
    def named(self) -> str:
        """Heading that names the judge, the group of items if there is one, and the kind of judgment (labels, ...)."""
        return ", ".join(filter(None, (self.judge, self.group, self.level)))

    @property
    def coverage(self) -> float:
        """Share of the items judged by people that the judge judged too."""
        return self.n / (self.n + self.people_only or 1)


def people(level: Level, opinions: Sequence[Opinion], settings: Settings = USUAL) -> People:
    """Summarise people's opinions and how far they agree; ``opinions`` must hold one vote per person and item."""
    mirrored = settings.mirrored(level)
    counts = Counter((opinion.query_id, opinion.item) for opinion in opinions)
    raters = [whole_numbers(values) for values in by_rater(opinions).values()]
    labels = [rater_labels for rater_labels in raters if rater_labels is not None]
    comparable = len(labels) == len(raters) and max(counts.values(), default=0) > 1
    return People(
        level=level,
        opinions=tuple(opinions),
        things=len(counts),
        repeated=sum(count > 1 for count in counts.values()),
        within=agreement_within(opinions),
        within_decided=agreement_within(decided(opinions)) if level == "verdicts" else None,
        alpha=rater_agreement(labels, mirrored=mirrored) if comparable else None,
        annotators=annotators(opinions, mirrored=mirrored, graded=level != "verdicts"),
        consensus=consensus(opinions, settings.consensus, mirrored=level == "verdicts"),
    )


def judge_against_people(
    judge: str, values: Values, opinions: Sequence[Opinion], against: People, settings: Settings = USUAL
) -> JudgeAgainstPeople:
    """Compare one judge with people on the items that both judged.

    ``values`` has the judge's value of each item, with the two orders of a game combined. ``opinions`` has all
    opinions of the judge, several on an item if it was judged several times; they are compared with each person's vote.
    """
    verdicts = against.level == "verdicts"
    mirrored = settings.mirrored(against.level)
    people_values: Values = against.consensus.values
    common = paired(people_values, values)
    numbers = paired(against.consensus.numbers, values)
    votes = [opinion.value for opinion in against.opinions]
    low, high = min(votes, default=0.0), max(votes, default=0.0)
    outside = Counter(judged for *_, judged in common if not (verdicts or low <= judged <= high))
    n, queries = len(common), {query_id for query_id, *_ in common}
    people_only, judge_only = (sum(map(len, side.values())) - n for side in (people_values, values))
    item_values = values
    if settings.against == "votes":
        people_values, values = each_vote(values, against.opinions)
        common = numbers = paired(people_values, values)
    x, y = [human for _, _, human, _ in common], [judged for *_, judged in common]
    units = [query_id for query_id, *_ in common]
    people_labels, judge_labels = whole_numbers(people_values), whole_numbers(values)
    labels = None
    if people_labels is not None and judge_labels is not None:
        labels = label_agreement(people_labels, judge_labels, mirrored=mirrored)
    return JudgeAgainstPeople(
        level=against.level,
        judge=judge,
        n=n,
        queries=len(queries),
        judge_only=judge_only,
        people_only=people_only,
        votes=agreement_between(opinions, against.opinions),
        votes_decided=agreement_between(decided(opinions), decided(against.opinions)) if verdicts else None,
        less_people=judge_less_people(opinions, against.opinions),
        labels=labels,
        correlations=correlations(x, y, units, mirrored=mirrored),
        differences=None if verdicts else bland_altman([human for _, _, human, _ in numbers], y, units),
        alternative=_alternative(item_values, against, settings),
        outside=tuple(sorted(outside.items())),
        people_range=(low, high) if votes else None,
        judge_range=(min(y), max(y)) if y and not verdicts else None,
        other_scale=not verdicts and _is_other_scale(y, votes),
    )


def _is_other_scale(judge_values: Sequence[float], votes: Sequence[float]) -> bool:
    if not judge_values or not votes:
        return False
    low, high = min(votes), max(votes)
    fractions = min(judge_values) >= 0 and max(judge_values) <= 1 < high and any(value % 1 for value in judge_values)
    if fractions and not any(0 < value < 1 for value in votes):
        return True
    few = len(judge_values) < FEW_QUERIES  # few items may all have got the same label, which shows no scale
    slack = high - low if few else 0.0
    outside = sum(not low - slack <= value <= high + slack for value in judge_values)
    return 2 * outside > len(judge_values) and not (few and low == high)


def _alternative(values: Values, against: People, settings: Settings) -> AlternativeTest:
    """Run the alternative annotator test; it scores verdicts by equality, all other values by their distance."""
    votes: dict[str, dict[tuple[str, ItemKey], float]] = {
        name: {} for name in sorted({opinion.rater for opinion in against.opinions})
    }
    for opinion in against.opinions:
        votes[opinion.rater][opinion.query_id, opinion.item] = opinion.value
    judge = {(query_id, item): value for query_id, items in values.items() for item, value in items.items()}
    score: Score = "accuracy" if against.level == "verdicts" else "neg_rmse"
    return alternative_test(votes, judge, epsilon=settings.epsilon, score=score, cluster=itemgetter(0))


def disagreements(values: Values, against: People, most: int) -> list[Disagreement]:
    """List at most ``most`` items on which judge and people differ, the largest difference first.

    Among equal differences, the items on which more people agree come first.
    """
    votes: dict[tuple[str, ItemKey], dict[str, float]] = {}
    for opinion in against.opinions:
        votes.setdefault((opinion.query_id, opinion.item), {})[opinion.rater] = opinion.value
    differing = [
        Disagreement(query_id, item, judged, human, votes[query_id, item])
        for query_id, item, human, judged in paired(against.consensus.values, values)
        if human != judged
    ]
    return sorted(differing, key=_largest_first)[:most]


def _largest_first(disagreement: Disagreement) -> tuple[float, int, str, ItemKey]:
    judge, human, votes = disagreement.judge, disagreement.people, disagreement.votes.values()
    majority_lead = sum(vote == human for vote in votes) - sum(vote != human for vote in votes)
    return -abs(judge - human), -majority_lead, disagreement.query_id, disagreement.item


class PanelPoints(Struct, frozen=True):
    """Points of a panel's majority and of its best judge against people's verdicts.

    ``worse`` says whether the majority is surely worse, corrected for the choice of the best on the same items.
    """

    best: str
    majority: float
    best_points: float
    worse: bool


class PanelGain(Struct, frozen=True):
    """A panel of judges compared with its best judge, on the ``n`` items that all judges and people judged.

    Attributes:
        best: name of the judge that agrees with people most often.
        agreement: share of the items on which the panel agrees with people.
        best_agreement: share of the items on which the best judge agrees with people.
        gain: difference of the two shares, clustered by query. It is biased in favour of the best judge, which was
            chosen on the same items.
        gold_ties: for verdicts, the number of items on which people tie. The panel ties whenever no verdict leads.
        gain_on_ties: the part of the gain that comes from items on which people tie; ``None`` if there are none.
        votes: number of independent judges that the panel is worth, from the correlation of errors on these items.
        points: the same in points, a tie half, with the side of more judges as majority; ``None`` unless verdicts.
    """

    best: str
    n: int
    agreement: float
    best_agreement: float
    gain: Estimate
    gold_ties: int = 0
    gain_on_ties: float | None = None
    votes: Estimate = Estimate(None)
    points: PanelPoints | None = None


def panel_gain(
    judges: Mapping[str, Values], panel: Values, people: Values, *, verdicts: bool = False
) -> PanelGain | None:
    """Compare how often a panel of judges and its best judge agree with people.

    ``None`` for a single judge, or if no item was judged by all judges and people.
    """
    correct = {
        name: {(query, item): human == value for query, item, human, value in paired(people, values)}
        for name, values in judges.items()
    }
    panel_correct = {(query, item): human == value for query, item, human, value in paired(people, panel)}
    common = [item for item in panel_correct if all(item in by_judge for by_judge in correct.values())]
    if len(judges) < 2 or not common:
        return None
    shares = {name: sum(by_judge[item] for item in common) / len(common) for name, by_judge in correct.items()}
    best = max(shares, key=lambda name: (shares[name], name))
    gains = np.array([float(panel_correct[item]) - float(correct[best][item]) for item in common])
    unit = numbered([query_id for query_id, _ in common])
    totals = np.stack([np.bincount(unit, gains), np.bincount(unit).astype(np.float64)], axis=1)
    gain = replace(jackknife_estimate(mean_of_totals, totals, narrowest=1e-9), value=float(gains.mean()))
    values = np.array([[own[query][item] for own in judges.values()] for query, item in common])
    truth = np.array([people[query_id][item] for query_id, item in common])
    share = sum(panel_correct[item] for item in common) / len(common)
    tied = np.array([verdicts and people[query_id][item] == 0 for query_id, item in common])
    on_ties = float(gains[tied].sum() / len(common)) if tied.any() else None
    return PanelGain(
        *(best, len(common), share, shares[best], gain, int(tied.sum()), on_ties),
        votes=effective_votes(np.abs(values - truth[:, np.newaxis]), unit),
        points=_points(values, truth, unit, [*judges]) if verdicts else None,
    )


def _points(values: Floats, truth: Floats, unit: Ints, names: Sequence[str]) -> PanelPoints:
    right = 1 - np.abs(values - truth[:, np.newaxis]) / 2
    majority_right = 1 - np.abs(np.sign(values.sum(axis=1)) - truth) / 2
    best = int(right.mean(axis=0).argmax())
    totals = np.stack([np.bincount(unit, majority_right - right[:, best]), np.bincount(unit)], axis=1)
    gain = jackknife_estimate(mean_of_totals, totals.astype(np.float64), narrowest=1e-9)
    half = 0.0 if gain.low is None or gain.value is None else gain.value - gain.low
    choice = student(1 - 0.05 / len(names), len(totals)) / student(0.95, len(totals)) if half else 0.0
    worse = bool(half) and (gain.value or 0.0) + choice * half < 0
    return PanelPoints(names[best], float(majority_right.mean()), float(right[:, best].mean()), worse)


PANEL = "panel (majority)"
"""Name under which the majority vote of all judges is compared with people."""


Agreements: TypeAlias = Mapping[tuple[str, ItemKey], float]
"""A judge's share of agreement with the votes on each item, by query and item."""


class TwoJudges(Struct, frozen=True):
    """Two judges compared by their agreement with the same people on the same items.

    Attributes:
        n: number of items that both judges and people judged.
        queries: number of queries, or of conversations, with such items.
        first_agreement, second_agreement: mean share of people's votes on an item that the judge agrees with.
        difference: first minus second, with an interval at ``level``, the one at which Holm's procedure tests the pair.
        verdict: as in ``Paired``, for the first judge. ``better`` and ``worse`` hold only if the test says so as well,
            and too few queries decide nothing.
        more: number of further queries that decide it with 80 % probability, if known.
        p, p_holm: of a sign-flip test by query, the second corrected for all pairs; ``None`` for too few queries.
    """

    first: str
    second: str
    n: int
    queries: int
    first_agreement: float
    second_agreement: float
    difference: Estimate
    verdict: GateVerdict
    margin: float
    level: float
    more: int | None
    p: float | None
    p_holm: float | None


class Comparison(Struct, frozen=True):
    """All judges compared with people on one level.

    Attributes:
        group: name of the group, if a table has several groups such as dimensions; else empty.
        orders: position bias in people's votes; ``None`` unless they are verdicts.
        judges: the comparison of each judge with people, by name; ``PANEL`` names the majority vote of several judges.
        gain: comparison of the panel with its best judge; ``None`` for a single judge.
        agreements: each judge's agreement by item, until ``compare_judges`` makes ``pairs`` of them. Judges on another
            scale than people's are left out, and all if there are more than ``MOST_JUDGES``.
    """

    group: str
    people: People
    orders: OrderHealth | None
    judges: Mapping[str, JudgeAgainstPeople]
    gain: PanelGain | None
    agreements: Mapping[str, Agreements] = {}
    pairs: tuple[TwoJudges, ...] = ()

    @property
    def what(self) -> str:
        return ", ".join(filter(None, (self.group, self.people.level)))


def compare(
    level: Level,
    judges: Mapping[str, Sequence[Opinion]],
    human_opinions: Sequence[Opinion],
    settings: Settings = USUAL,
    *,
    means: ItemMeans = ONE_MEAN,
    group: str = "",
    most: int = 0,
    label_next: int | None = None,
    boards: bool = True,
    clusters: Clusters = ALONE,
) -> Comparison:
    """Compare each judge with people on one level, and the majority vote of all judges if there are several.

    Args:
        means: which means, such as an agent's, the value of an item belongs to.
        group: name of the group of items; empty if there are no groups.
        most: maximum number of disagreements to list per judge.
        label_next: number of items to suggest for labelling; ``None`` to compute no corrected estimates.
        boards: whether to compare the leaderboards of judges and people too, the slowest part.
        clusters: the conversation of each query; statistics are then clustered by conversation.
    """
    judges = {name: regrouped(opinions, clusters) for name, opinions in judges.items()}
    human_opinions = regrouped(human_opinions, clusters)
    verdicts = level == "verdicts"
    orders = {name: order_health(opinions) for name, opinions in judges.items() if opinions and verdicts}
    people_orders = order_health(human_opinions) if verdicts else None
    ordered = settings.games == "ordered"
    if verdicts and ordered:
        judges = {name: as_shown(opinions) for name, opinions in judges.items()}
        human_opinions = as_shown(human_opinions)
    chances = {
        (opinion.query_id, opinion.item): opinion.chance for opinion in human_opinions if opinion.chance is not None
    }
    each_vote_counts = settings.against == "votes"
    votes = human_opinions if each_vote_counts else settled(human_opinions, verdicts=verdicts, ordered=ordered)
    against = people(level, votes, settings)
    by_judge = {
        name: settled(opinions, verdicts=verdicts, ordered=ordered) for name, opinions in judges.items() if opinions
    }
    if each_vote_counts:
        judges = by_judge
    members = {name: values_of(opinions) for name, opinions in by_judge.items()}
    values, judge_opinions, gain = dict(members), dict(judges), None
    if len(by_judge) > 1:
        pooled = [opinion for opinions in by_judge.values() for opinion in opinions]
        values[PANEL] = majority(pooled, mirrored=verdicts).values
        judge_opinions[PANEL] = [
            Opinion(query_id, item, PANEL, value)
            for query_id, items in values[PANEL].items()
            for item, value in items.items()
        ]
        gain = panel_gain(members, values[PANEL], against.consensus.values, verdicts=verdicts)
    reports = {}
    for name, judge_values in values.items():
        differing, corrected = disagreements(judge_values, against, most), None
        if label_next is not None:
            in_file_order: dict[str, dict[ItemKey, float]] = {}
            for opinion in judge_opinions[name]:
                value = judge_values[opinion.query_id][opinion.item]
                in_file_order.setdefault(opinion.query_id, {})[opinion.item] = value
            numbers, how = against.consensus.numbers, {"label_next": label_next, "seed": settings.seed}
            corrected = estimates(level, in_file_order, numbers, chances, means=means, **how)
        if clusters:  # items begin with their query
            differing = [replace(own, query_id=own.item[0], item=own.item[1:]) for own in differing]
            if corrected is not None:
                corrected = replace(corrected, next=tuple((item[0], item[1:]) for _, item in corrected.next))
        ranked = None
        if boards:
            of_judge, of_people = (_by_query(own, clusters) for own in (judge_values, against.consensus.numbers))
            draws = settings.samples, settings.seed
            ranked = leaderboard_agreement(level, of_judge, of_people, draws, clusters, means=means)
        reports[name] = replace(
            judge_against_people(name, judge_values, judge_opinions[name], against, settings),
            group=group,
            unit="conversation" if clusters else "query",
            orders=orders.get(name),
            disagreements=tuple(differing),
            estimates=corrected,
            boards=ranked,
        )
    few = 1 < len(members) <= MOST_JUDGES
    comparable = [name for name in members if few and not reports[name].other_scale]
    agreements = {name: agreement_by_item(judge_opinions[name], against.opinions) for name in comparable}
    return Comparison(group, against, people_orders, reports, gain, agreements)


def regrouped(opinions: Sequence[Opinion], clusters: Clusters) -> Sequence[Opinion]:
    """Name the conversation in place of the query in each opinion, and put the query first in the item's key.

    Without ``clusters``, the conversation of each query, the opinions are unchanged.
    """
    if not clusters:
        return opinions
    return [
        opinion._replace(
            query_id=clusters.get(opinion.query_id, opinion.query_id), item=(opinion.query_id, *opinion.item)
        )
        for opinion in opinions
    ]


def _by_query(values: Values, clusters: Clusters) -> Values:
    """Arrange values by query again, after ``regrouped`` has put the conversation in its place."""
    if not clusters:
        return values
    by_query: dict[str, dict[ItemKey, float]] = {}
    for items in values.values():
        for (query_id, *item), value in items.items():
            by_query.setdefault(query_id, {})[tuple(item)] = value
    return by_query
