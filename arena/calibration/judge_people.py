"""One judge held against people, on whatever both judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from arena.calibration.annotators import Annotator, annotators
from arena.calibration.bland_altman import BlandAltman, bland_altman
from arena.calibration.consensus import Consensus, Method, consensus
from arena.calibration.correlation import Correlations, correlations
from arena.calibration.estimates import Estimates
from arena.calibration.methods import MethodPair
from arena.calibration.opinions import Item, Level, Opinion, Values, by_rater, paired, size, whole_numbers
from arena.calibration.orders import OrderHealth
from arena.calibration.votes import VoteAgreement, agreement_between, agreement_within, decided, each_vote
from retrieval_eval.stats.agreement import LabelAgreement, RaterAgreement, label_agreement, rater_agreement

Against: TypeAlias = Literal["consensus", "votes"]
OrdersOfGames: TypeAlias = Literal["reconciled", "ordered"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How people become one, what is compared, and how intervals are drawn.

    Attributes:
        consensus: how several people become one.
        samples, seed: of the intervals.
        against: a judge's labels are held against the people's ``consensus``, or against all of their ``votes``.
        games: the two orders of a game are ``reconciled`` to one verdict of each rater, or games are ``ordered``: each
            order is a thing of its own, whose sides are the places shown.
    """

    consensus: Method = "majority"
    samples: int = 1000
    seed: int = 0
    against: Against = "consensus"
    games: OrdersOfGames = "reconciled"

    def mirrored(self, level: Level) -> bool:
        """Whether a thing's sides are arbitrary, so that every value counts both ways round."""
        return level == "verdicts" and self.games == "reconciled"


@dataclass(frozen=True, slots=True)
class People:
    """What people say, before any judge is looked at.

    Attributes:
        level: what they judged.
        opinions: their votes, one of each person on each thing.
        things: that they judged.
        repeated: those that two people or more judged.
        within: how often two people agree.
        within_decided: the same of votes that are no tie; verdicts alone have ties.
        alpha: Krippendorff's, of all people; ``None`` for one person, or values that are no labels.
        annotators: each person against the others.
        consensus: one value for each thing.
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


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A thing that judge and people see differently; ``votes`` are the people's, by name."""

    query_id: str
    item: Item
    judge: float
    people: float
    votes: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class JudgeAgainstPeople:
    """A judge and people on the things that both judged.

    Attributes:
        level: what was judged.
        judge: its name.
        n, queries: things that both judged, and their queries.
        judge_only, people_only: things that only one of them judged.
        votes: how often a verdict of the judge and a vote of a person agree.
        votes_decided: the same of verdicts and votes that are no tie.
        labels: kappa, alpha and confusion against the people's consensus, or their votes; ``None`` where a value is no
            label.
        correlations: with the same.
        differences: of judge and consensus; verdicts have none, since their sides are arbitrary.
        outside: values of the judge beyond those that people gave, each with how many things have it; none of verdicts.
        people_range: the lowest and the highest value that people gave on any thing; ``None`` where they gave none.
        group: as of the comparison.
        orders: what its verdicts say about places; ``None`` where none says who was shown first, and for a panel.
        disagreements: things that it sees differently, the furthest apart first.
        estimates: its figures corrected by people, where they are asked for.
        boards: its leaderboard against that of people on the same things; ``None`` for fewer than three agents.
    """

    level: Level
    judge: str
    n: int
    queries: int
    judge_only: int
    people_only: int
    votes: VoteAgreement
    votes_decided: VoteAgreement | None
    labels: LabelAgreement | None
    correlations: Correlations
    differences: BlandAltman | None
    outside: tuple[tuple[float, int], ...] = ()
    people_range: tuple[float, float] | None = None
    group: str = ""
    orders: OrderHealth | None = None
    disagreements: tuple[Disagreement, ...] = ()
    estimates: Estimates | None = None
    boards: MethodPair | None = None

    @property
    def named(self) -> str:
        """The judge, and what it judged."""
        return ", ".join(filter(None, (self.judge, self.group, self.level)))

    @property
    def coverage(self) -> float:
        """Of what people judged, how much it judged too."""
        return self.n / (self.n + self.people_only or 1)


def people(level: Level, opinions: Sequence[Opinion], settings: Settings | None = None) -> People:
    """Look at people alone.

    Args:
        level: what they judged.
        opinions: one vote of each person on each thing.
        settings: the defaults if absent.
    """
    how = settings or Settings()
    mirrored = how.mirrored(level)
    counts: dict[tuple[str, Item], int] = {}
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
        alpha=rater_agreement(labels, mirrored=mirrored, samples=how.samples, seed=how.seed) if comparable else None,
        annotators=annotators(opinions, mirrored=mirrored),
        consensus=consensus(opinions, how.consensus, mirrored=level == "verdicts"),
    )


def judge_against_people(
    judge: str, values: Values, said: Sequence[Opinion], against: People, settings: Settings | None = None
) -> JudgeAgainstPeople:
    """Hold a judge against people.

    Args:
        judge: its name.
        values: its value of each thing, the two orders of a game reconciled.
        said: what it said each time, which is held against single votes.
        against: the people.
        settings: the defaults if absent.
    """
    how, verdicts = settings or Settings(), against.level == "verdicts"
    mirrored = how.mirrored(against.level)
    people_values: Values = against.consensus.values
    both = paired(people_values, values)
    given = [one.value for one in against.opinions]
    low, high = min(given, default=0.0), max(given, default=0.0)
    beyond = Counter(judged for *_, judged in both if not (verdicts or low <= judged <= high))
    things, queries = len(both), {query_id for query_id, *_ in both}
    people_only, judge_only = size(people_values) - things, size(values) - things
    if how.against == "votes":
        people_values, values = each_vote(values, against.opinions)
        both = paired(people_values, values)
    x, y = [human for _, _, human, _ in both], [judged for *_, judged in both]
    units = [query_id for query_id, *_ in both]
    reference, other = whole_numbers(people_values), whole_numbers(values)
    labels = None
    if reference is not None and other is not None:
        labels = label_agreement(reference, other, mirrored=mirrored, samples=how.samples, seed=how.seed)
    return JudgeAgainstPeople(
        level=against.level,
        judge=judge,
        n=things,
        queries=len(queries),
        judge_only=judge_only,
        people_only=people_only,
        votes=agreement_between(said, against.opinions),
        votes_decided=agreement_between(decided(said), decided(against.opinions)) if verdicts else None,
        labels=labels,
        correlations=correlations(x, y, units, mirrored=mirrored),
        differences=None if verdicts else bland_altman(x, y, units),
        outside=tuple(sorted(beyond.items())),
        people_range=(low, high) if given else None,
    )


def disagreements(values: Values, against: People, most: int) -> list[Disagreement]:
    """What judge and people see differently: the furthest apart first, then where most people share the consensus.

    Args:
        values: the judge's.
        against: the people.
        most: how many.
    """
    votes: dict[tuple[str, Item], dict[str, float]] = {}
    for one in against.opinions:
        votes.setdefault((one.query_id, one.item), {})[one.rater] = one.value
    found = [
        Disagreement(query_id, item, judged, human, votes[query_id, item])
        for query_id, item, human, judged in paired(against.consensus.values, values)
        if human != judged
    ]
    return sorted(found, key=_clarity)[:most]


def _clarity(one: Disagreement) -> tuple[float, int, str, Item]:
    sharing = sum(vote == one.people for vote in one.votes.values()) - sum(v != one.people for v in one.votes.values())
    return -abs(one.judge - one.people), -sharing, one.query_id, one.item
