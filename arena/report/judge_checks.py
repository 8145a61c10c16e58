"""Checks of the judges: their habits, and whether they agree with each other, with themselves and with people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arena.calibration.comparison import Comparison
from arena.calibration.words import Finding, findings
from arena.leaderboard import Leaderboard
from arena.ratings.health import JudgeHealth
from arena.ratings.rate import Ratings
from arena.report.blocks import Check, Status, passed
from arena.report.figures import in_brackets, listed, percent, shares_between
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


def habits(health: JudgeHealth) -> Iterator[Check]:
    """What verdicts say of their judge."""
    low, high = health.order_agreement_low, health.order_agreement_high
    yield Check(
        "Both orders agree",
        "unknown" if health.order_agreement is None else passed(health.order_agreement >= _SAME_IN_BOTH_ORDERS),
        f"{percent(health.order_agreement)}{in_brackets(low, high)} of {health.both_orders:,} games judged in both "
        f"orders; the bar is {_SAME_IN_BOTH_ORDERS:.0%}."
        if health.order_agreement is not None
        else "No game was judged in both orders.",
        "Set pairwise.both_orders, or take a stronger judge: games that contradict themselves count as ties.",
    )
    yield _share(
        "No favour for the place shown",
        health.first_share,
        (health.first_share_low, health.first_share_high),
        (0.5 - _FIRST_PLACE, 0.5 + _FIRST_PLACE),
        what="of verdicts with a winner go to the answer shown first",
        remedy="Judge every game in both orders (pairwise.both_orders), so that the favour falls on both sides alike.",
    )
    yield _share(
        "No favour for length",
        health.longer_share,
        (health.longer_share_low, health.longer_share_high),
        (1 - _LONGER, _LONGER),
        what="of verdicts with a winner go to the longer answer",
        remedy="Longer answers may be better: read some games, and see the ratings controlled for length "
        "(ratings.bradley_terry.covariates: [log_length]).",
    )
    yield Check(
        "Few ties",
        passed(health.tie_rate <= _TIES),
        f"{percent(health.tie_rate)} of {health.n:,} verdicts are ties; the bar is {_TIES:.0%}.",
        "Ties leave little to tell agents apart by: add queries, or ask the judge for what matters to you (factors).",
    )
    if health.triples:
        yield Check(
            "Few circles",
            passed(health.intransitive_triples <= _CIRCLES * health.triples),
            f"{health.intransitive_triples:,} of {health.triples:,} sets of three agents beat each other in a circle; "
            f"the bar is {_CIRCLES:.0%}.",
            "One rating per agent cannot describe such games: look at the win matrix pair by pair.",
        )


def between_judges(ratings: Ratings) -> Iterator[Check]:
    """Whether several judges agree."""
    if ratings.judges is None:
        return
    own = ratings.judges
    yield Check(
        "Judges agree with each other",
        "unknown" if own.alpha.value is None else passed(own.alpha.value >= _ALPHA),
        f"Krippendorff's alpha is {own.alpha.value:.2f}{in_brackets(own.alpha.low, own.alpha.high, 2)} on "
        f"{own.games:,} games judged by several; the bar is {_ALPHA}."
        if own.alpha.value is not None
        else "No game was judged by several.",
        "See which judge stands alone, and calibrate each against people's verdicts.",
    )


def samples(board: Leaderboard) -> Iterator[Check]:
    """Whether a judge that is asked several times agrees with itself."""
    for task, judges in board.consistency.items():
        for judge, found in judges.items():
            if found.agreement is not None:
                yield Check(
                    f"Judge {judge} agrees with itself",
                    passed(found.agreement >= _SAME_AGAIN),
                    f"{percent(found.agreement)} of two samples agree ({task.value}, {found.repeated:,} things); the "
                    f"bar is {_SAME_AGAIN:.0%}.",
                    "Lower the judge's temperature, or raise its samples so that a majority decides.",
                )


def people(comparisons: Sequence[Comparison], not_compared: str) -> Iterator[Check]:
    """Whether each judge agrees with people as they do among themselves, on each kind of things that both judged."""
    name, found = "People agree with the judge", [own for one in comparisons for own in findings(one)]
    for own in found:
        if own.trust != "unknown":
            yield Check(f"{name} {own.judge} on {own.level}", *_agreement(own))
    if all(own.trust == "unknown" for own in found):
        finding = not_compared or "No person judged anything that the judge did."
        remedy = "Let people judge a random sample of the same things on the pages."
        yield Check(name, "unknown", finding[0].upper() + finding[1:], remedy)


def _agreement(own: Finding) -> tuple[Status, str, str]:
    """Status, finding and remedy: with nobody to hold it against, a judge must agree well beyond chance."""
    beyond, said = own.kappa, own.sentence
    if beyond.value is not None:
        said += f" Kappa is {beyond.value:.2f}{in_brackets(beyond.low, beyond.high, 2)}"
        said += f"; the bar is {_ALPHA}." if own.trust == "above chance" else "."
    if own.trust == "few":
        return "unknown", said, "Let people judge a random sample on more queries, on the pages."
    if own.trust == "above chance" and beyond.value is None:
        return "unknown", said, "Let several people judge the same things, so that the judge can be held against them."
    as_good = own.trust == "as people" or (own.trust == "above chance" and (beyond.value or 0.0) >= _ALPHA)
    remedy = "Read where they differ ('ragarena calibrate --disagreements 20'), change the prompt or the judge."
    return passed(as_good), said, remedy


def language_models(board: Leaderboard) -> Iterator[Check]:
    """Whether a judge is one."""
    words = [name for name, judge in board.settings.get("judges", {}).items() if judge.get("provider") == "lexical"]
    if words:
        used = "pairwise" if Task.PAIRWISE in board.coverage else "these"
        yield Check(
            "The judge is a language model",
            "failed",
            f"{listed(words)} compares words and is no language model: its {used} judgments are a baseline.",
            "Name a language model under 'judges' before anything is decided.",
        )


def _share(
    name: str,
    share: float | None,
    interval: tuple[float | None, float | None],
    bounds: tuple[float, float],
    *,
    what: str,
    remedy: str,
) -> Check:
    """Outside its bounds is only what is so by more than chance."""
    if share is None:
        return Check(name, "unknown", "Not known: there is nothing to compute it from.", remedy)
    by_chance = None not in interval and (interval[0] or 0.0) <= 0.5 <= (interval[1] or 0.0)
    finding = f"{percent(share)}{in_brackets(*interval)} {what}; the bar is {shares_between(*bounds)}."
    return Check(name, passed(by_chance or bounds[0] <= share <= bounds[1]), finding, remedy)
