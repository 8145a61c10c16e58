"""The conclusion about ratings: a leader, a tie at the top, or why there is neither.

Every sentence follows from the ratings and from facts about their judge. No leader is named if there are no
ratings, if position or chance may explain the lead, or if one rating per agent does not fit the games.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from arena.boards.groups import GROUPS_AHEAD
from arena.boards.left_out_judges import (
    ADD_JUDGES,
    WithoutJudge,
    judges_decide,
    more_needed,
    top_sentence,
    without_judges,
)
from arena.data.kinds import kind_of
from arena.present.blocks import judge_first
from arena.present.numbers import COUNT, PERCENT, ROUGH_MONEY, SIGNED_2, capital, counted, listed, with_interval
from arena.ratings.likelihood import NO_TIES, probabilities
from arena.ratings.results import UNITS, fewest_queries
from arena.results.costs import Front, lowest_prices
from retrieval_eval.stats.bootstrap import FEW_QUERIES
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from arena.calibration.comparison import Comparison, JudgeAgainstPeople
    from arena.calibration.votes import Level
    from arena.present.blocks import Check
    from arena.ratings.results import Ratings
    from arena.results.outcomes import Shortfall
    from arena.results.ratings import Leaderboard
    from arena.stages.adaptive import AdaptiveState

ConclusionKind: TypeAlias = Literal["leader", "tie", "unclear", "empty"]

Standing: TypeAlias = Literal["decided", "care", "none"]
"""How firm a conclusion is; the pages show it in green, amber or grey."""

STANDINGS: Final[Mapping[Standing, str]] = {
    "decided": "Conclusion",
    "care": "Read with care",
    "none": "Nothing to conclude yet",
}

_NAMED = 5

NO_MODEL: Final = "No language model judged these games"
"""Headline if all judges only compare words."""

MODEL: Final = "Language model as judge"
"""Name of the check that fails if a judge only compares words."""

BY_PLACE: Final = "Place or strength?"
"""Headline if the order in which answers were shown may explain the ratings."""

BY_PEOPLE: Final = "Results by people's labels"
"""Name of the check that fails if people's labels contradict the leaderboard."""


_FIRST: Final = (BY_PEOPLE, GROUPS_AHEAD)
"""Checks that are the first reasons, as a terminal may have room for one or two."""
_EQUAL = 1e-6


class Conclusion(Struct, frozen=True):
    """The conclusion about a set of ratings.

    Attributes:
        headline: a fixed text without names.
        sentence: the conclusion with figures; it contains agents' names, which are untrusted text.
        ordered: whether the order of the ratings means anything, so that more queries could change it.
        standing: ``decided``; ``care`` if a trust check failed; ``none`` if there is no conclusion.
        why: what the failed checks found, so why the conclusion is no firmer.
        next: what to do next, with its cost where that is known.
    """

    kind: ConclusionKind
    headline: str
    sentence: str
    top: tuple[str, ...] = ()
    ordered: bool = False
    standing: Standing = "none"
    why: tuple[str, ...] = ()
    next: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        ending = "" if self.headline.endswith("?") else "."
        return f"{STANDINGS[self.standing]}: {self.headline}{ending} {self.sentence}"

    def weighed(self, checks: Sequence[Check], more: str = "") -> Conclusion:
        """Lower the standing if a check failed, and say why and what to do; ``more`` is what would make more certain.

        The first step answers the headline, or else the first reason: before that, more of the same settles nothing.
        """
        is_said = {MODEL} if self.headline == NO_MODEL else ()
        failed = [check for check in checks if check.status == "failed"]
        order = (*is_said, *_FIRST)
        failed.sort(key=lambda check: order.index(check.name) if check.name in order else len(order))
        remedies = [check.remedy for check in failed]
        steps = _once((*remedies[:1], more, *remedies[1:]))
        failed = [check for check in failed if check.name not in is_said]
        reasons = tuple(check.finding for check in failed if check.finding.split(". ")[0] not in self.sentence)
        weighed = replace(self, why=reasons, next=steps)
        if self.kind in ("unclear", "empty"):
            return replace(weighed, standing="none")
        return replace(weighed, standing="care" if self.standing == "care" or failed else "decided")


def _once(steps: Sequence[str]) -> tuple[str, ...]:
    """Leave out the first sentence of each piece of advice if an earlier piece begins with the same sentence."""
    said: dict[str, None] = {}
    for step in steps:
        first, _, rest = step.partition(". ")
        said.setdefault(rest if rest and any(before.startswith(first) for before in said) else step)
    return tuple(filter(None, said))


def _unclear(headline: str, sentence: str, *, ordered: bool = False) -> Conclusion:
    return Conclusion("unclear", headline, sentence, ordered=ordered)


def conclude_board(board: Leaderboard, comparisons: Sequence[Comparison] = ()) -> Conclusion:
    return conclude(
        board.ratings,
        shortfall=board.shortfall,
        fronts=board.costs.fronts,
        comparisons=comparisons,
        of_words=board.settings.judges_of_words,
    )


def conclude(
    ratings: Ratings | None,
    *,
    shortfall: Shortfall | None = None,
    fronts: Mapping[str, Front] | None = None,
    comparisons: Sequence[Comparison] = (),
    of_words: Sequence[str] = (),
) -> Conclusion:
    """Draw a conclusion from ratings; no agent is called the leader if an interval or a test is missing."""
    conclusion = _from_ratings(ratings, shortfall, fronts or {}, comparisons)
    if ratings is None:
        return conclusion
    if of_words:
        verb = "compares" if len(of_words) == 1 else "compare"
        conclusion = replace(
            conclusion,
            kind="unclear",
            headline=NO_MODEL,
            sentence=f"{listed(of_words, _NAMED)} only {verb} words.",
            top=(),
        )
    return _checked_for_judges(_checked_for_absence(conclusion, ratings), ratings).weighed(())


def _checked_for_judges(conclusion: Conclusion, ratings: Ratings) -> Conclusion:
    """Add to a conclusion about an order whether it differs without one judge; a trust check lowers its standing."""
    changes = judge_changes(ratings) if conclusion.ordered else []
    changed = top_sentence(changes)
    if changes and conclusion.top and not changed:
        changed = f"So it is without any 1 of {len(changes)} judges."
    return replace(conclusion, sentence=f"{conclusion.sentence} {changed}") if changed else conclusion


def judge_changes(ratings: Ratings) -> list[WithoutJudge]:
    def top(rated: Ratings) -> tuple[str, tuple[str, ...]]:
        conclusion = _from_ratings(rated, None, {}, ())
        return conclusion.headline, conclusion.top

    return without_judges(ratings, top)


def _checked_for_absence(conclusion: Conclusion, ratings: Ratings) -> Conclusion:
    """Lower the standing to ``care`` if an agent has games on clearly fewer queries, which may be the easy queries."""
    if conclusion.kind not in ("leader", "tie") or not ratings.absent:
        return conclusion
    (name, count), *others = sorted(ratings.absent.items(), key=itemgetter(1, 0))
    more = f", {counted(len(others), 'more agent')} on fewer than others too" if others else ""
    doubt = f"{name} has games on {counted(count, *ratings.noun)} only{more}: what it did not meet may be harder."
    return replace(conclusion, standing="care", sentence=f"{conclusion.sentence} {doubt}")


def _from_ratings(
    ratings: Ratings | None, shortfall: Shortfall | None, fronts: Mapping[str, Front], comparisons: Sequence[Comparison]
) -> Conclusion:
    if ratings is None:
        if shortfall is not None and shortfall.rated:
            sentence = capital(f"{shortfall.message}: {shortfall.remedy}.")
            return Conclusion("empty", "Not enough verdicts to rate", sentence)
        return Conclusion("empty", "No verdicts yet", "No game has a verdict, so there is nothing to rate.")
    obstacles = (
        _too_little(ratings, shortfall),
        _no_order(ratings),
        _untrusted(comparisons),
        _unsure(ratings),
        _beaten(ratings),
    )
    if obstacle := next(filter(None, obstacles), None):
        return obstacle
    rows = ratings.by_rank
    top = tuple(row.agent for row in rows if row.rank_low == 1)
    if len(top) == 1:
        return Conclusion("leader", "Clear leader", _leads(ratings), top, ordered=True)
    prices = lowest_prices(top, fronts)
    ending = f"{_basis(ratings)}{'; of these ' if prices else ''}{prices}."
    if len(top) == len(rows):
        # Where no agent is surely behind another, no two are told apart.
        who = f"{listed(top, _NAMED)} cannot" if len(top) == 2 else f"No two of the {len(top)} agents can"
        return _unclear("Not enough signal", f"{who} be told apart, {ending}", ordered=True)
    sentence = f"{listed(top, _NAMED)} are tied for first: no two of them can be told apart, {ending}"
    return Conclusion("tie", "Tie at the top", sentence, top, ordered=True)


def expectation(ratings: Ratings, conclusion: Conclusion) -> Iterator[str]:
    first, second = (row.agent for row in ratings.by_rank[:2])
    direct = ratings.direct
    if direct.games:
        # Soft games add up to about their number.
        won, lost, tied = map(COUNT.write, (direct.wins, direct.losses, max(0.0, direct.ties)))
        yield (
            f"{first} and {second} met in {counted(direct.games, 'game')}: "
            f"{first} won {won}, {second} won {lost}, {tied} tied."
        )
    pair = ratings.first_pair
    # A prior on some of the ratings also moves the others a little.
    if not conclusion.ordered or pair is None or ratings.convergence.prior_games:
        return
    if direct.low is not None and direct.high is not None:
        _, share = _expected(pair.difference, ratings)
        if not direct.low <= (share if first == pair.better else 1 - share) <= direct.high:
            return  # the pair's own games contradict the prediction
    share, low, high = (_expected(points, ratings)[0] for points in (pair.difference, pair.low, pair.high))
    games = "100 games, a tie half a win for each," if ratings.settings.ties == "half" else "100 games with a winner"
    yield (
        f"Of {games} {pair.better} would win about {100 * share:.0f} against {pair.worse} "
        f"(between {100 * low:.0f} and {100 * high:.0f})."
    )


def to_tell_apart(ratings: Ratings, conclusion: Conclusion, paid_usd: float | None = None) -> str:
    """Sentence on the number of further queries that would separate the first two agents; empty if it is unknown.

    ``paid_usd`` is what all judgments have cost; with it, the sentence says what the further queries would cost.
    """
    pair = ratings.first_pair
    more = more_needed(pair) if pair is not None and conclusion.ordered else ""
    if not more or pair is None or ratings.convergence.prior_games or conclusion.headline == NO_MODEL:
        return ""
    by_judges = next(
        (row.parts for row in ratings.other_judges if {row.better, row.worse} == {pair.better, pair.worse}), {}
    )
    if judges_decide(by_judges):
        return f"To tell {pair.better} and {pair.worse} apart, {ADD_JUDGES}."
    cost = " like these"
    if paid_usd and ratings.units and pair.queries_needed:
        cost = f", {ROUGH_MONEY.write(paid_usd / ratings.units * pair.queries_needed)} to judge"
    needed = f"To tell {pair.better} and {pair.worse} apart, it takes about {more} more {ratings.noun[1]}{cost}."
    return " ".join(filter(None, (judge_first(ratings.unjudged), needed)))


def _expected(points: float, ratings: Ratings) -> tuple[float, float]:
    """Expected win rates at a rating difference of ``points``: of games with a winner, and of points (a tie half)."""
    settings, tie = ratings.settings, ratings.tie_parameter
    log_tie = math.log(tie) if tie else NO_TIES[settings.ties]
    gap = np.array([points * math.log(10) / settings.scale])
    win, loss, tied = (float(probability[0]) for probability in probabilities(settings.ties, gap, np.array([log_tie])))
    return win / (win + loss), win + tied / 2


def _too_little(ratings: Ratings, shortfall: Shortfall | None) -> Conclusion | None:
    if shortfall is None:
        return None
    sentence = f"{capital(shortfall.message)}. {capital(shortfall.again)}."
    return _unclear("Too little is judged", sentence, ordered=_no_order(ratings) is None)


def _no_order(ratings: Ratings) -> Conclusion | None:
    rows = ratings.by_rank
    if not ratings.convergence.converged:
        return _unclear("No ratings", "The ratings did not converge, so they cannot be compared.")
    if any("disconnected" in row.flags for row in rows):
        return _unclear(
            "Not all agents met",
            "Some agents never met the others, not even through third ones, so their ratings cannot be compared.",
        )
    if by_place := _by_place(ratings):
        return by_place
    if circle := ratings.direct.contradicted:
        return _unclear(
            "No one order fits",
            f"One rating for each agent cannot describe these games: {listed(circle, _NAMED)} beat each other in a "
            "circle, or lose to agents rated below them, by more than chance. Compare them pair by pair.",
        )
    if rows[0].bt - rows[-1].bt <= _EQUAL:
        why = "Wins and losses balance" if any(row.wins for row in rows) else "Every game is a tie"
        return _unclear("All rated equal", f"{why}: all {len(rows)} agents have the same rating, and none leads.")
    return None


def _beaten(ratings: Ratings) -> Conclusion | None:
    """The conclusion if an agent without a win or tie may be first: how far it is behind the others is then unknown."""
    first = [row for row in ratings.agents if row.rank_low == 1]
    if len(first) == len(ratings.agents) or not any("winless" in row.flags for row in first):
        return None
    beaten = [row.agent for row in ratings.by_rank if "winless" in row.flags]
    return _unclear(
        "Not enough signal",
        f"{listed(beaten, _NAMED)} won or tied no game: these games do not say how far behind "
        f"{'it is' if len(beaten) == 1 else 'they are'}. No leader is named, {_basis(ratings)}.",
    )


def _by_place(ratings: Ratings) -> Conclusion | None:
    health, tally = ratings.judge_health, ratings.tally
    orders = health or tally
    if orders is not None and orders.both_orders and 2 * orders.contradictions >= orders.both_orders:
        return _unclear(
            "The orders contradict each other",
            f"In {orders.contradictions:,} of the {counted(orders.both_orders, 'game')} judged in both orders, each "
            "order preferred another agent: the place shown may decide, not the answer. No agent can be said to lead.",
        )
    if health is None and tally is not None and tally.single_order:
        return _unclear(
            BY_PLACE,
            f"{tally.single_order:,} of {counted(tally.games, 'game')} were judged in one order only. Whether place or "
            "strength decided them is not computed here, so none can be said to lead.",
        )
    # The order shown is known, but its effect cannot be separated from strength.
    one_order = health is not None and health.first_share.value is not None and health.first_effect.value is None
    if not (one_order or any("position" in row.flags for row in ratings.agents)):
        return None
    explanation = "No two agents were shown in both orders" if one_order else "Wins follow the order shown"
    if health is not None and health.first_share.value is not None:
        first = round(health.first_share.value * health.decided)
        explanation += (
            f", and the answer shown first won {first:,} of {counted(health.decided, 'verdict')} with a winner"
        )
    return _unclear(
        BY_PLACE,
        f"{explanation}. Strength and place cannot be told apart, so none can be said to lead. Judge both orders.",
    )


def _untrusted(comparisons: Sequence[Comparison]) -> Conclusion | None:
    if not comparisons:
        return None
    from arena.calibration.comparison import PANEL

    on_games = (comparison for comparison in comparisons if comparison.people.level == "verdicts")
    measured = [
        finding
        for comparison in on_games
        for finding in findings(comparison)
        if finding.trust not in ("unknown", "other scale", "few") and finding.kappa.value is not None
    ]
    decisive = [finding for finding in measured if finding.judge == PANEL] or measured
    if not decisive or any(finding.trust != "chance" for finding in decisive):
        return None
    return _unclear(
        "The judge is not shown to agree with people",
        f"{decisive[0].sentence} So its games name no leader.",
        ordered=True,
    )


def _unsure(ratings: Ratings) -> Conclusion | None:
    rows, number, enough = ratings.by_rank, ratings.units, fewest_queries(len(ratings.agents))
    if number < enough:
        only = counted(number, *ratings.noun)
        return _unclear(
            f"Too few {ratings.noun[1]}",
            f"Only {only}: with fewer than {enough}, intervals miss too often to name a leader.",
            ordered=True,
        )
    if not ratings.pairs or any(row.rank_low is None for row in rows):
        doubt = "There are no intervals, so a higher rating may be chance."
        return _unclear("Not enough signal", doubt, ordered=True)
    if ratings.beyond_place is False and rows[0].rank_high == 1:
        return _unclear(
            BY_PLACE,
            f"{rows[0].agent} is rated highest, but not every game was judged in both orders. If being shown first "
            "has an effect, its lead may be chance. Judge both orders.",
        )
    return None


def _leads(ratings: Ratings) -> str:
    first, *others = ratings.by_rank
    behind = listed([row.agent for row in others if row.rank == others[0].rank], _NAMED)
    if first.flags:
        # A rating that only a weak prior holds does not show the distance.
        return f"{first.agent} leads {_basis(ratings)}; how far ahead it is, these games cannot say."
    return f"{first.agent} leads, {first.bt - others[0].bt:.0f} points above {behind}, {_basis(ratings)}."


def _basis(ratings: Ratings) -> str:
    games = sum(row.games for row in ratings.agents) / 2
    number = f" on {counted(ratings.units, *ratings.noun)}" if ratings.unit != "game" else ""
    return f"at {ratings.settings.level:.0%} confidence over {counted(games, 'game')}{number}"


def adaptive_line(state: AdaptiveState, *, ordered: bool) -> str:
    """Sentence on an adaptive schedule's progress; ``ordered`` says whether the order of the ratings means anything."""
    target = "the order" if state.decide == "order" else "the first place"
    state_words = "is decided" if state.decided else "is not decided" if state.ended else "is still open"
    line = f"Adaptive: {target} {state_words} after {state.games:,} of {state.possible:,} possible games"
    if state.ended and not state.decided:
        line += " (no game is left that could decide it, or max_games is reached)"
    line += f", at {100 * state.confidence:g}% confidence by a test of its own, which holds after any number of games"
    if not ordered and state.places:
        return f"{line}; that counts games alone, and the conclusion says why their order means nothing."
    return line + (f"; decided from the first place down: {', '.join(state.places)}." if state.places else ".")


Trust: TypeAlias = Literal[
    "unknown", "other scale", "few", "chance", "below people", "beside people", "as people", "above chance"
]

MARGIN: Final = 0.05
"""A judge's agreement with people may be lower than people's agreement with each other by up to this margin."""
_BESIDE: Final[dict[Trust, str]] = {
    "below people": "It agrees with people less than they do among themselves.",
    "as people": f"It agrees with people as they do among themselves, or less by {MARGIN:g} at most.",
    "beside people": f"These votes do not show whether it agrees less than people do, by more than {MARGIN:g}.",
}


class Finding(Struct, frozen=True):
    """Whether a judge can be trusted on one kind of judgment.

    Attributes:
        level: the kind of judgment, such as verdicts.
        judge: the judge's name, which is untrusted text.
        trust: ``unknown``: people and judge have no item in common; ``other scale``: their values cannot be compared;
            ``few``: too few queries; ``chance``: agreement not shown to exceed chance; ``below people``: the judge
            agrees with people less than people do among themselves; ``as people``: no less, up to ``MARGIN``;
            ``beside people``: undecided between these two; ``above chance``: above chance, and no two people judged
            the same things.
        sentence: the finding in words, with figures.
        kappa: Cohen's kappa against the consensus of people; no value if the values are not labels.
    """

    level: Level
    judge: str
    trust: Trust
    sentence: str
    kappa: Estimate


def findings(comparison: Comparison) -> tuple[Finding, ...]:
    found = []
    for judge in comparison.judges.values():
        trust, kappa = _trust(comparison, judge), Estimate(None) if judge.labels is None else judge.labels.kappa
        found.append(Finding(judge.level, judge.judge, trust, _sentence(comparison, judge, trust), kappa))
    return tuple(found)


def _sentence(comparison: Comparison, judge: JudgeAgainstPeople, trust: Trust) -> str:
    things, within, share = kind_of(judge.level).things, comparison.people.within.share, judge.votes.share
    if trust == "unknown":
        return f"{judge.judge} and people judged none of the same {things}."
    if trust == "other scale" and judge.judge_range and judge.people_range:
        ranges = [f"{low:g} to {high:g}" for low, high in (judge.judge_range, judge.people_range)]
        return (
            f"The scales differ: {judge.judge} gave {ranges[0]}, and people {ranges[1]}, on "
            f"{counted(judge.n, things[:-1], things)}. Agreement, kappa and bias mean nothing before both are on one "
            f"scale; rank correlation does: Spearman's is {with_interval(judge.correlations.spearman)}."
        )
    sentence = f"{judge.judge} says what a person says in {with_interval(share, PERCENT)} of cases"
    sentence += f", on {counted(judge.n, things[:-1], things)} of {counted(judge.queries, *UNITS[judge.unit])}"
    if trust == "few":
        return f"{sentence}. That is too little to trust or distrust it."
    if trust == "chance":
        return f"{sentence}. It is not shown to agree with people more than chance would."
    if trust == "above chance":
        more = "That is more than chance. How often two people agree is not known: let several judge the same things."
        return f"{sentence}. {more}"
    among = f"two people agree in {with_interval(within, PERCENT)}"
    gap = judge.less_people
    difference = "nobody repeated a vote on what it judged"
    if gap.value is not None:
        difference = f"on {things} with votes of two people the difference is {with_interval(gap, SIGNED_2)}"
    return f"{sentence}; {among}; {difference}. {_BESIDE[trust]}"


def is_full(agreement: Estimate) -> bool:
    """Whether agreement is 100 %; all resamples are then the same, so there is no interval."""
    return agreement.value == 1 and agreement.low is None


def _trust(comparison: Comparison, judge: JudgeAgainstPeople) -> Trust:
    within, share = comparison.people.within.share, judge.votes.share
    if not judge.n or share.value is None:
        return "unknown"
    if judge.other_scale:
        return "other scale"
    if judge.queries < FEW_QUERIES:
        return "few"
    agreement = judge.labels.kappa if judge.labels is not None else judge.correlations.spearman
    if not is_full(agreement) and (agreement.low is None or agreement.low <= 0):
        return "chance"
    if within.value is None:
        return "above chance"
    return _beside(judge.less_people)


def _beside(gap: Estimate) -> Trust:
    """Trust in a judge by ``gap``: its agreement with people minus people's agreement among themselves."""
    if gap.value is None or (gap.n or 0) < FEW_QUERIES:
        return "beside people"
    if gap.low is None or gap.high is None:  # all queries have the same value, so the uncertainty is unknown
        return "beside people"
    if gap.high < 0:
        return "below people"
    return "as people" if gap.low > -MARGIN else "beside people"
