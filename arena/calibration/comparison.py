"""Judges held against the same people: who agrees most, where each does not, and what a panel of them gains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Final, Literal, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from arena.calibration import EPSILON
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
    Annotator,
    ItemKey,
    Level,
    Opinion,
    Values,
    VoteAgreement,
    agreement_between,
    agreement_within,
    annotators,
    by_rater,
    decided,
    each_vote,
    judge_less_people,
    paired,
    whole_numbers,
)
from arena.ratings.games import Unit
from retrieval_eval.stats.agreement import LabelAgreement, RaterAgreement, label_agreement, rater_agreement
from retrieval_eval.stats.alternative import AlternativeTest, Score, alternative_test
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import ALONE, Clusters, jackknife_estimate, numbered
from retrieval_eval.stats.estimate import Estimate

Against: TypeAlias = Literal["consensus", "votes"]
OrdersOfGames: TypeAlias = Literal["reconciled", "ordered"]


class Settings(Struct, frozen=True):
    """How people become one, what is compared, and how intervals are drawn.

    Attributes:
        consensus: how several people become one.
        samples, seed: of the intervals.
        against: a judge's labels are held against the people's ``consensus``, or against all of their ``votes``.
        epsilon: by how much a judge may be worse than a person, as of ``alternative_test``.
        games: the two orders of a game are ``reconciled`` to one verdict of each rater, or games are ``ordered``: each
            order is a thing of its own, whose sides are the places shown.
    """

    consensus: ConsensusMethod = "majority"
    samples: int = 1000
    seed: int = 0
    against: Against = "consensus"
    games: OrdersOfGames = "reconciled"
    epsilon: float = EPSILON

    def mirrored(self, level: Level) -> bool:
        """Whether a thing's sides are arbitrary, so that every value counts both ways round."""
        return level == "verdicts" and self.games == "reconciled"


USUAL: Final = Settings()


class People(Struct, frozen=True):
    """What people say, before any judge is looked at.

    Attributes:
        opinions: their votes, one of each person on each thing.
        things: that they judged.
        repeated: those that two people or more judged.
        within: how often two people agree.
        within_decided: the same of votes that are no tie; verdicts alone have ties.
        alpha: Krippendorff's, of all people; ``None`` for one person, or values that are no labels.
        annotators: each person against the others.
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
    """A thing that judge and people see differently; ``votes`` are the people's, by name."""

    query_id: str
    item: ItemKey
    judge: float
    people: float
    votes: Mapping[str, float]


class JudgeAgainstPeople(Struct, frozen=True):
    """A judge and people on the things that both judged.

    Attributes:
        n, queries: things that both judged, and their queries.
        judge_only, people_only: things that only one of them judged.
        votes: how often a verdict of the judge and a vote of a person agree.
        votes_decided: the same of verdicts and votes that are no tie.
        less_people: how often it agrees with a vote less how often two people agree, on things that both know of.
        labels: kappa, alpha and confusion against the people's consensus, or their votes; ``None`` where a value is no
            label.
        correlations: with the same.
        differences: of judge and consensus; verdicts have none, since their sides are arbitrary.
        alternative: whether it may stand in for people.
        outside: values of the judge beyond those that people gave, each with how many things have it; none of verdicts.
        people_range: the lowest and the highest value that people gave on any thing; ``None`` where they gave none.
        judge_range: the same of the judge, on things that both judged; none of verdicts.
        other_scale: whether the two used different scales: most of the judge's values lie beyond those of people, or
            it gave fractions up to 1 where people gave whole numbers from a longer scale.
        group: as of the comparison.
        orders: what its verdicts say about places; ``None`` where none says who was shown first, and for a panel.
        disagreements: things that it sees differently, the furthest apart first.
        estimates: its figures corrected by people, where they are asked for.
        boards: its leaderboard against that of people on the same things; ``None`` for fewer than three agents.
        unit: what ``queries`` counts, and intervals and tests are by.
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
        """The judge, and what it judged."""
        return ", ".join(filter(None, (self.judge, self.group, self.level)))

    @property
    def coverage(self) -> float:
        """Of what people judged, how much it judged too."""
        return self.n / (self.n + self.people_only or 1)


def people(level: Level, opinions: Sequence[Opinion], settings: Settings = USUAL) -> People:
    """Look at people alone.

    ``opinions`` hold one vote of each person on each thing.
    """
    mirrored = settings.mirrored(level)
    counts: dict[tuple[str, ItemKey], int] = {}
    for one in opinions:
        counts[one.query_id, one.item] = counts.get((one.query_id, one.item), 0) + 1
    raters = [whole_numbers(values) for values in by_rater(opinions).values()]
    labels = [own for own in raters if own is not None]
    comparable = len(labels) == len(raters) and max(counts.values(), default=0) > 1
    return People(
        level=level,
        opinions=tuple(opinions),
        things=len(counts),
        repeated=sum(times > 1 for times in counts.values()),
        within=agreement_within(opinions),
        within_decided=agreement_within(decided(opinions)) if level == "verdicts" else None,
        alpha=rater_agreement(labels, mirrored=mirrored) if comparable else None,
        annotators=annotators(opinions, mirrored=mirrored, graded=level != "verdicts"),
        consensus=consensus(opinions, settings.consensus, mirrored=level == "verdicts"),
    )


def judge_against_people(
    judge: str, values: Values, said: Sequence[Opinion], against: People, settings: Settings = USUAL
) -> JudgeAgainstPeople:
    """Hold a judge against people.

    In ``values`` the two orders of a game are reconciled; ``said`` is what it said each time, and held against single
    votes.
    """
    verdicts = against.level == "verdicts"
    mirrored = settings.mirrored(against.level)
    people_values: Values = against.consensus.values
    both = paired(people_values, values)
    differing = paired(against.consensus.numbers, values)
    given = [one.value for one in against.opinions]
    low, high = min(given, default=0.0), max(given, default=0.0)
    beyond = Counter(judged for *_, judged in both if not (verdicts or low <= judged <= high))
    things, queries = len(both), {query_id for query_id, *_ in both}
    people_only, judge_only = (sum(map(len, own.values())) - things for own in (people_values, values))
    consensual = values
    if settings.against == "votes":
        people_values, values = each_vote(values, against.opinions)
        both = differing = paired(people_values, values)
    x, y = [human for _, _, human, _ in both], [judged for *_, judged in both]
    units = [query_id for query_id, *_ in both]
    reference, other = whole_numbers(people_values), whole_numbers(values)
    labels = None
    if reference is not None and other is not None:
        labels = label_agreement(reference, other, mirrored=mirrored)
    return JudgeAgainstPeople(
        level=against.level,
        judge=judge,
        n=things,
        queries=len(queries),
        judge_only=judge_only,
        people_only=people_only,
        votes=agreement_between(said, against.opinions),
        votes_decided=agreement_between(decided(said), decided(against.opinions)) if verdicts else None,
        less_people=judge_less_people(said, against.opinions),
        labels=labels,
        correlations=correlations(x, y, units, mirrored=mirrored),
        differences=None if verdicts else bland_altman([human for _, _, human, _ in differing], y, units),
        alternative=_alternative(consensual, against, settings),
        outside=tuple(sorted(beyond.items())),
        people_range=(low, high) if given else None,
        judge_range=(min(y), max(y)) if y and not verdicts else None,
        other_scale=not verdicts and _is_other_scale(y, given),
    )


def _is_other_scale(judged: Sequence[float], given: Sequence[float]) -> bool:
    """Whether a judge's values are of another scale than people's."""
    if not judged or not given:
        return False
    low, high = min(given), max(given)
    beyond = sum(not low <= value <= high for value in judged)
    shares = min(judged) >= 0 and max(judged) <= 1 < high and any(value % 1 for value in judged)
    return 2 * beyond > len(judged) or (shares and not any(0 < value < 1 for value in given))


def _alternative(values: Values, against: People, settings: Settings) -> AlternativeTest:
    """The judge in place of each person; verdicts are labels without an order, all else are numbers."""
    votes: dict[str, dict[tuple[str, ItemKey], float]] = {
        name: {} for name in sorted({one.rater for one in against.opinions})
    }
    for one in against.opinions:
        votes[one.rater][one.query_id, one.item] = one.value
    judge = {(query_id, item): value for query_id, things in values.items() for item, value in things.items()}
    score: Score = "accuracy" if against.level == "verdicts" else "neg_rmse"
    return alternative_test(votes, judge, epsilon=settings.epsilon, score=score, cluster=itemgetter(0))


def disagreements(values: Values, against: People, most: int) -> list[Disagreement]:
    """What judge and people see differently: the furthest apart first, then where most people share the consensus."""
    votes: dict[tuple[str, ItemKey], dict[str, float]] = {}
    for one in against.opinions:
        votes.setdefault((one.query_id, one.item), {})[one.rater] = one.value
    found = [
        Disagreement(query_id, item, judged, human, votes[query_id, item])
        for query_id, item, human, judged in paired(against.consensus.values, values)
        if human != judged
    ]
    return sorted(found, key=_clarity)[:most]


def _clarity(one: Disagreement) -> tuple[float, int, str, ItemKey]:
    sharing = sum(vote == one.people for vote in one.votes.values()) - sum(v != one.people for v in one.votes.values())
    return -abs(one.judge - one.people), -sharing, one.query_id, one.item


class PanelGain(Struct, frozen=True):
    """A panel against its best member.

    Attributes:
        best: the judge that agrees with people most often, on things that all judges and people judged.
        n: those things.
        agreement, best_agreement: shares of them on which the panel, and the best judge, say what people say.
        gain: the difference, clustered by query. The best was chosen on the same things, so it is flattered.
        gold_ties: of verdicts, things on which people tie, as the panel does wherever no verdict leads.
        gain_on_ties: the part of the difference that comes from these; ``None`` where there are none.
    """

    best: str
    n: int
    agreement: float
    best_agreement: float
    gain: Estimate
    gold_ties: int = 0
    gain_on_ties: float | None = None


def panel_gain(
    judges: Mapping[str, Values], panel: Values, people: Values, *, verdicts: bool = False
) -> PanelGain | None:
    """Compare; ``None`` with a single judge, or nothing that all judged."""
    right = {
        name: {(query, item): human == value for query, item, human, value in paired(people, values)}
        for name, values in judges.items()
    }
    of_panel = {(query, item): human == value for query, item, human, value in paired(people, panel)}
    common = [thing for thing in of_panel if all(thing in own for own in right.values())]
    if len(judges) < 2 or not common:
        return None
    shares = {name: sum(own[thing] for thing in common) / len(common) for name, own in right.items()}
    best = max(shares, key=lambda name: (shares[name], name))
    gains = np.array([float(of_panel[thing]) - float(right[best][thing]) for thing in common])
    unit = numbered([query_id for query_id, _ in common])
    totals = np.stack([np.bincount(unit, gains), np.bincount(unit).astype(np.float64)], axis=1)

    def mean(sums: Floats) -> Floats:
        with np.errstate(invalid="ignore"):  # of nothing, where all is on one query
            return np.asarray(sums[:, 0] / sums[:, 1], np.float64)

    gain = replace(jackknife_estimate(mean, totals, narrowest=1e-9), value=float(gains.mean()))
    share = sum(of_panel[thing] for thing in common) / len(common)
    tied = np.array([verdicts and people[query_id][item] == 0 for query_id, item in common])
    on_ties = float(gains[tied].sum() / len(common)) if tied.any() else None
    return PanelGain(best, len(common), share, shares[best], gain, int(tied.sum()), on_ties)


PANEL = "panel (majority)"
"""The name of all judges together, each with one vote."""


class Comparison(Struct, frozen=True):
    """All judges of one kind of things.

    Attributes:
        group: what was compared, where a table holds several things such as dimensions; else empty.
        people: without a judge.
        orders: what people's votes say about places, ``None`` for anything but verdicts.
        judges: by name, and with several all together as ``PANEL``.
        gain: the panel against its best member, ``None`` for one judge.
    """

    group: str
    people: People
    orders: OrderHealth | None
    judges: Mapping[str, JudgeAgainstPeople]
    gain: PanelGain | None

    @property
    def what(self) -> str:
        """What was compared: a level, and the group of a table that holds several."""
        return ", ".join(filter(None, (self.group, self.people.level)))


def compare(
    level: Level,
    judges: Mapping[str, Sequence[Opinion]],
    said_by_people: Sequence[Opinion],
    settings: Settings = USUAL,
    *,
    group: str = "",
    most: int = 0,
    label_next: int | None = None,
    boards: bool = True,
    clusters: Clusters = ALONE,
) -> Comparison:
    """Hold judges against people.

    Args:
        level: what was judged.
        judges: everything each judge said.
        said_by_people: everything people said.
        settings: of consensus and intervals.
        group: a name for what is compared.
        most: disagreements listed of each judge.
        label_next: things to label next, of each judge corrected by people; ``None`` corrects none.
        boards: whether leaderboards of judges and people are compared, which takes longer than all else.
        clusters: the conversations of queries. Everything is by conversation then, whose turns are told apart as things
            are; what is listed is by query as ever.
    """
    judges = {name: regrouped(own, clusters) for name, own in judges.items()}
    said_by_people = regrouped(said_by_people, clusters)
    verdicts = level == "verdicts"
    orders = {name: order_health(said) for name, said in judges.items() if said and verdicts}
    of_people = order_health(said_by_people) if verdicts else None
    ordered = settings.games == "ordered"
    if verdicts and ordered:
        judges, said_by_people = {name: as_shown(said) for name, said in judges.items()}, as_shown(said_by_people)
    chances = {(one.query_id, one.item): one.chance for one in said_by_people if one.chance is not None}
    votes = settings.against == "votes"
    cast = said_by_people if votes else settled(said_by_people, verdicts=verdicts, ordered=ordered)
    against = people(level, cast, settings)
    of_judge = {name: settled(said, verdicts=verdicts, ordered=ordered) for name, said in judges.items() if said}
    if votes:
        judges = of_judge
    members = {name: values_of(own) for name, own in of_judge.items()}
    values, said, gain = dict(members), dict(judges), None
    if len(of_judge) > 1:
        values[PANEL] = majority([one for own in of_judge.values() for one in own], mirrored=verdicts).values
        said[PANEL] = [
            Opinion(query_id, item, PANEL, value)
            for query_id, things in values[PANEL].items()
            for item, value in things.items()
        ]
        gain = panel_gain(members, values[PANEL], against.consensus.values, verdicts=verdicts)
    reports = {
        name: replace(
            judge_against_people(name, own, said[name], against, settings),
            group=group,
            unit="conversation" if clusters else "query",
            orders=orders.get(name),
            disagreements=tuple(_of_query(one, clusters) for one in disagreements(own, against, most)),
            estimates=None
            if label_next is None
            else _next_by_query(
                estimates(
                    level,
                    _as_listed(own, said[name]),
                    against.consensus.numbers,
                    chances,
                    label_next=label_next,
                    seed=settings.seed,
                ),
                clusters,
            ),
            boards=leaderboard_agreement(
                level,
                _by_query(own, clusters),
                _by_query(against.consensus.numbers, clusters),
                (settings.samples, settings.seed),
                clusters,
            )
            if boards
            else None,
        )
        for name, own in values.items()
    }
    return Comparison(group, against, of_people, reports, gain)


def _as_listed(values: Values, said: Sequence[Opinion]) -> Values:
    """Values in the order in which their things were first named."""
    found: dict[str, dict[ItemKey, float]] = {}
    for one in said:
        found.setdefault(one.query_id, {})[one.item] = values[one.query_id][one.item]
    return found


def regrouped(said: Sequence[Opinion], clusters: Clusters) -> Sequence[Opinion]:
    """Things of one conversation as those of one query; the query becomes the first part of what names a thing."""
    if not clusters:
        return said
    return [
        one._replace(query_id=clusters.get(one.query_id, one.query_id), item=(one.query_id, *one.item)) for one in said
    ]


def _by_query(values: Values, clusters: Clusters) -> Values:
    """Values of things that were regrouped, by query again."""
    if not clusters:
        return values
    found: dict[str, dict[ItemKey, float]] = {}
    for things in values.values():
        for (query_id, *item), value in things.items():
            found.setdefault(query_id, {})[tuple(item)] = value
    return found


def _of_query(one: Disagreement, clusters: Clusters) -> Disagreement:
    return replace(one, query_id=one.item[0], item=one.item[1:]) if clusters else one


def _next_by_query(found: Estimates, clusters: Clusters) -> Estimates:
    return replace(found, next=tuple((item[0], item[1:]) for _, item in found.next)) if clusters else found
