"""Checks of the judges: their habits, and whether they agree with each other, with themselves and with people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arena.calibration.comparison import Comparison
from arena.calibration.words import Finding, findings
from arena.leaderboard import Leaderboard
from arena.present.blocks import Check, Status, settled
from arena.ratings.clustered import wilson
from arena.ratings.direct import circles
from arena.ratings.health import JudgeHealth
from arena.ratings.rate import Ratings
from arena.report.figures import in_brackets, percent, shares_between
from arena.wording import counted, listed
from judges.types import Task

_SAME_IN_BOTH_ORDERS = 0.75
_FIRST_PLACE = 0.05
"""How far from a half the share of verdicts for the first place may lie."""
_LONGER = 0.65
_TIES = 0.5
_CIRCLES = 0.1
_ALPHA = 0.4
"""Moderate agreement by the usual reading of kappa (Landis and Koch 1977)."""
_SAME_AGAIN = 0.8


def habits(health: JudgeHealth, ratings: Ratings) -> Iterator[Check]:
    """What verdicts say of their judge."""
    low, high = health.order_agreement_low, health.order_agreement_high
    yield Check(
        "Both orders agree",
        settled(low, high, _SAME_IN_BOTH_ORDERS),
        f"{percent(health.order_agreement)}{in_brackets(low, high)} of {counted(health.both_orders, 'game')} judged in "
        f"both orders; the bar is {_SAME_IN_BOTH_ORDERS:.0%}."
        if health.order_agreement is not None
        else "No game is known to be judged in both orders.",
        "Set pairwise.both_orders, or take a stronger judge: games that contradict themselves tell little.",
    )
    yield _place(health, ratings)
    yield _length(health)
    yield Check(
        "Few ties",
        settled(health.tie_rate_low, health.tie_rate_high, 0.0, _TIES),
        f"{percent(health.tie_rate)}{in_brackets(health.tie_rate_low, health.tie_rate_high)} of "
        f"{counted(health.n, 'verdict')} are ties; the bar is {_TIES:.0%}.",
        "Ties leave little to tell agents apart by: add queries, or ask the judge for what matters to you (factors).",
    )


def _place(health: JudgeHealth, ratings: Ratings) -> Check:
    """The advantage of being shown first, beside the agents' strengths: who is shown first may be the better one."""
    scale, tally = ratings.settings.scale, ratings.tally
    ends = health.first_effect, health.first_effect_low, health.first_effect_high
    share, low, high = (None if points is None else 1 / (1 + 10 ** (-points / scale)) for points in ends)
    bar = (0.5 - _FIRST_PLACE, 0.5 + _FIRST_PLACE)
    finding = (
        f"Between equal agents {percent(share)}{in_brackets(low, high)} of verdicts with a winner would go to the "
        f"answer shown first; the bar is {shares_between(*bar)}."
    )
    if share is None:
        finding = "Nothing tells place from strength: no two agents are known to be shown in both orders."
    remedy = (
        "Judge every game in both orders (pairwise.both_orders), so that the favour falls on both sides alike, or take "
        "it off the ratings (ratings.bradley_terry.position)."
    )
    if tally is not None and tally.both_orders == tally.games:
        remedy = "Nothing: every game was judged in both orders, so the favour falls on both sides alike."
    return Check("No favour for the place shown", settled(low, high, *bar), finding, remedy)


def _length(health: JudgeHealth) -> Check:
    low, high, bar = health.longer_share_low, health.longer_share_high, (1 - _LONGER, _LONGER)
    finding = (
        f"{percent(health.longer_share)}{in_brackets(low, high)} of verdicts with a winner go to the longer answer; "
        f"the bar is {shares_between(*bar)}."
    )
    if health.longer_share is None:
        finding = "No verdict with a winner is on two answers of known and different length."
    return Check(
        "No favour for length",
        settled(low, high, *bar),
        finding,
        "Longer answers may be better: read some games, and see the ratings controlled for length "
        "(ratings.bradley_terry.covariates: [log_length]).",
    )


def one_line(ratings: Ratings) -> Iterator[Check]:
    """Whether agents beat each other in circles, which no rating can describe."""
    found = circles([row.agent for row in ratings.agents], ratings.direct)
    if not found.triples:
        return
    low, high = found.surely / found.triples, 1 - found.surely_not / found.triples
    sets = counted(found.triples, "set")
    yield Check(
        "Few circles",
        settled(low, high, 0.0, _CIRCLES),
        f"Of {sets} of three agents that all met, {found.surely:,} surely beat each other in a circle and "
        f"{found.surely_not:,} surely do not; the bar is {_CIRCLES:.0%} circles.",
        "One rating per agent cannot describe circles: look at the win matrix pair by pair.",
    )


def between_judges(ratings: Ratings) -> Iterator[Check]:
    """Whether several judges agree."""
    if ratings.judges is None:
        return
    own = ratings.judges
    yield Check(
        "Judges agree with each other",
        settled(own.alpha.low, own.alpha.high, _ALPHA),
        f"Krippendorff's alpha is {own.alpha.value:.2f}{in_brackets(own.alpha.low, own.alpha.high, 2)} on "
        f"{counted(own.games, 'game')} judged by several; the bar is {_ALPHA}."
        if own.alpha.value is not None
        else "No game was judged by several.",
        "See which judge stands alone, and calibrate each against people's verdicts.",
    )


def samples(board: Leaderboard) -> Iterator[Check]:
    """Whether a judge that is asked several times agrees with itself."""
    for task, judges in board.consistency.items():
        for judge, found in judges.items():
            if found.agreement is not None:
                spread = found.agreement * (1 - found.agreement)
                known = found.repeated > 1
                low, high = (
                    wilson(found.agreement, spread / found.repeated, found.repeated, found.repeated)
                    if known
                    else (None, None)
                )
                yield Check(
                    f"Judge {judge} agrees with itself",
                    settled(low, high, _SAME_AGAIN),
                    f"{percent(found.agreement)}{in_brackets(low, high)} of two samples agree ({task.value}, "
                    f"{counted(found.repeated, 'thing')}); the bar is {_SAME_AGAIN:.0%}.",
                    "Lower the judge's temperature, or raise its samples so that a majority decides.",
                )


def people(comparisons: Sequence[Comparison], not_compared: str) -> Iterator[Check]:
    """Whether each judge agrees with people as they do among themselves, on each kind of things that both judged."""
    name, found = "People agree with the judge", [(one, own) for one in comparisons for own in findings(one)]
    for one, own in found:
        if own.trust != "unknown":
            yield Check(f"{name} {own.judge} on {own.level}", *_agreement(one, own))
    if all(own.trust == "unknown" for _, own in found):
        finding = not_compared or "No person judged anything that the judge did."
        remedy = "Let people judge a random sample of the same things on the pages."
        yield Check(name, "unknown", finding[0].upper() + finding[1:], remedy)


def _agreement(one: Comparison, own: Finding) -> tuple[Status, str, str]:
    """Status, finding and remedy.

    Where people repeat each other, the judge must agree with them at least as often as two of them may; with nobody to
    hold it against, well beyond chance. One that agrees no more than by chance fails where kappa lies below that too.
    """
    beyond, said = own.kappa, own.sentence
    if beyond.value is not None:
        said += f" Kappa is {beyond.value:.2f}{in_brackets(beyond.low, beyond.high, 2)}"
        said += f"; the bar is {_ALPHA}." if own.trust in ("above chance", "chance") else "."
    if own.trust == "few":
        return "unknown", said, "Let people judge a random sample on more queries, on the pages."
    if own.trust == "above chance" and beyond.value is None:
        return "unknown", said, "Let several people judge the same things, so that the judge can be held against them."
    status = settled(beyond.low, beyond.high, _ALPHA)
    within = one.people.within.share.low
    if own.trust in ("as people", "below people") and within is not None:
        share = one.judges[own.judge].against.votes.share
        status = settled(share.low, share.high, within)
    remedy = "Read where they differ ('ragarena calibrate --disagreements 20'), change the prompt or the judge."
    return status, said, remedy


def language_models(board: Leaderboard) -> Iterator[Check]:
    """Whether all judges are; said only where one is not."""
    judges = board.settings.get("judges", {})
    words = [name for name, judge in judges.items() if judge.get("provider") == "lexical"]
    if words:
        used = "pairwise" if Task.PAIRWISE in board.coverage else "these"
        yield Check(
            "No language model judged these games" if len(words) == len(judges) else "A judge compares words alone",
            "failed",
            f"{listed(words)} compares words and is no language model: its {used} judgments are a baseline.",
            "Name a language model under 'judges' before anything is decided.",
        )
