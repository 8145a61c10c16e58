"""Whether a leaderboard may be believed: each thing that must hold, whether it does, and what to do if not.

The bars are rules of thumb, named beside each finding; none of them enters a rating.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arena.calibration.comparison import Comparison
from arena.config import RatingsSection
from arena.leaderboard import Leaderboard
from arena.ratings.health import JudgeHealth
from arena.ratings.rate import Ratings
from arena.report.blocks import Check, Status
from arena.report.figures import between, counted, percent, shares_between
from judges.types import Task

_FEWEST_QUERIES = 10
"""Below so many queries, percentile intervals are known to be too narrow."""
_SAME_IN_BOTH_ORDERS = 0.75
_FIRST_PLACE = 0.05
"""How far from a half the share of verdicts for the first place may lie."""
_LONGER = 0.65
_TIES = 0.5
_CIRCLES = 0.1
_CARRIED_BY = 0.02
"""Share of the queries, two at least, that must not carry the lead alone."""
_ALPHA = 0.4
"""Moderate agreement by the usual reading of kappa (Landis and Koch 1977)."""
_SAME_AGAIN = 0.8

_ORDER: tuple[Status, ...] = ("failed", "unknown", "passed")


def trust_checks(
    board: Leaderboard, comparisons: Sequence[Comparison] = (), not_compared: str = ""
) -> tuple[Check, ...]:
    """All checks that apply to a tournament: those that failed first, then those that nobody can tell.

    Args:
        board: its leaderboard.
        comparisons: its judges with people.
        not_compared: why there are none, where people judged something.
    """
    found = [_judged(board)]
    if board.ratings is not None:
        found += [_rated(board.ratings), _queries(board.ratings), *_of_lead(board.ratings)]
        if board.ratings.judge_health is not None:
            found += _of_judge(board.ratings.judge_health)
        found += _between_judges(board.ratings)
    found += _samples(board)
    found += [*_people(comparisons, not_compared), *_language_models(board)]
    return tuple(sorted(found, key=lambda check: _ORDER.index(check.status)))


def _judged(board: Leaderboard) -> Check:
    wanted = sum(stage.wanted for stage in board.coverage.values())
    judged = sum(stage.judged for stage in board.coverage.values())
    bar = RatingsSection.model_validate(board.settings["ratings"]).min_coverage
    short = board.shortfall is not None or any(stage.share < bar for stage in board.coverage.values())
    finding = f"{judged:,} of {wanted:,} wanted judgments are there ({percent(judged / wanted if wanted else 1, 1)})"
    if board.shortfall is not None:
        finding = board.shortfall.message[0].upper() + board.shortfall.message[1:]
    return Check(
        "Enough is judged",
        _passed(not short and wanted > 0),
        f"{finding}; the bar is {percent(bar, 1)} of each stage.",
        "Run 'ragarena run' again, with --retry-failed where replies were unusable; 'ragarena failures' says why.",
    )


def _rated(ratings: Ratings) -> Check:
    flagged = [row.agent for row in ratings.agents if row.flags]
    finding = f"{_listed(flagged)}: to be read with care." if flagged else "Every agent's rating has a maximum."
    if not ratings.convergence.converged:
        finding = "The fit has not converged."
    return Check(
        "The games determine the ratings",
        _passed(ratings.convergence.converged and not flagged),
        finding,
        "Let the agents that are flagged in the leaderboard meet others of nearly their strength, on more queries.",
    )


def _queries(ratings: Ratings) -> Check:
    how = ratings.convergence
    if how.resampled is None:
        finding, passed = "There are no intervals: nothing shows how much a rating varies.", False
    else:
        units = counted(how.units, *(("query", "queries") if how.resampled == "query" else ("game", "games")))
        finding, passed = f"Intervals rest on {units}; the bar is {_FEWEST_QUERIES}.", how.units >= _FEWEST_QUERIES
    return Check("Enough queries", _passed(passed), finding, "Add queries like those that users will ask.")


def _of_lead(ratings: Ratings) -> Iterator[Check]:
    changes = [found for found in ratings.fragility if found.change == "leader"]
    own = next((found for found in changes if found.unit == "query"), next(iter(changes), None))
    if own is None:
        return
    words = ("query", "queries") if own.unit == "query" else ("game", "games")
    least = max(2, round(_CARRIED_BY * own.units))
    if own.count is None:
        finding = f"More than {own.tried} of {own.units} {words[1]} would have to go for another agent to lead."
    else:
        finding = f"Without {own.count} of {counted(own.units, *words)} {own.behind} would lead."
    yield Check(
        "The lead does not hang on a few games",
        _passed(own.count is None or own.count > least),
        f"{finding} The bar is more than {least}.",
        f"Read the {words[1]} that carry the lead, and add more queries before choosing between the two.",
    )


def _of_judge(health: JudgeHealth) -> Iterator[Check]:
    low, high = health.order_agreement_low, health.order_agreement_high
    yield Check(
        "Both orders agree",
        "unknown" if health.order_agreement is None else _passed(health.order_agreement >= _SAME_IN_BOTH_ORDERS),
        f"{percent(health.order_agreement)}{_in_brackets(low, high)} of {health.both_orders:,} games judged in both "
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
        remedy="Longer answers may be better: read some games. Rate exported verdicts with length as --covariate.",
    )
    yield Check(
        "Few ties",
        _passed(health.tie_rate <= _TIES),
        f"{percent(health.tie_rate)} of {health.n:,} verdicts are ties; the bar is {_TIES:.0%}.",
        "Ties leave little to tell agents apart by: add queries, or ask the judge for what matters to you (factors).",
    )
    if health.triples:
        yield Check(
            "Few circles",
            _passed(health.intransitive_triples <= _CIRCLES * health.triples),
            f"{health.intransitive_triples:,} of {health.triples:,} sets of three agents beat each other in a circle; "
            f"the bar is {_CIRCLES:.0%}.",
            "One rating per agent cannot describe such games: look at the win matrix pair by pair.",
        )


def _between_judges(ratings: Ratings) -> Iterator[Check]:
    if ratings.judges is None:
        return
    own = ratings.judges
    yield Check(
        "Judges agree with each other",
        "unknown" if own.alpha.value is None else _passed(own.alpha.value >= _ALPHA),
        f"Krippendorff's alpha is {own.alpha.value:.2f}{_in_brackets(own.alpha.low, own.alpha.high, 2)} on "
        f"{own.games:,} games judged by several; the bar is {_ALPHA}."
        if own.alpha.value is not None
        else "No game was judged by several.",
        "See which judge stands alone, and calibrate each against people's verdicts.",
    )


def _samples(board: Leaderboard) -> Iterator[Check]:
    for task, judges in board.consistency.items():
        for judge, found in judges.items():
            if found.agreement is not None:
                yield Check(
                    f"Judge {judge} agrees with itself",
                    _passed(found.agreement >= _SAME_AGAIN),
                    f"{percent(found.agreement)} of two samples agree ({task.value}, {found.repeated:,} things); the "
                    f"bar is {_SAME_AGAIN:.0%}.",
                    "Lower the judge's temperature, or raise its samples so that a majority decides.",
                )


def _people(comparisons: Sequence[Comparison], not_compared: str) -> Iterator[Check]:
    name, remedy = "People agree with the judge", "Let people judge a random sample of the same things on the pages."
    judged = [(one.people.level, report.against) for one in comparisons for report in one.judges.values()]
    for level, own in judged:
        kappa = own.labels.kappa if own.labels is not None else None
        if kappa is not None and kappa.value is not None:
            yield Check(
                f"{name} {own.judge} on {level}",
                _passed(kappa.value >= _ALPHA),
                f"Kappa is {kappa.value:.2f}{_in_brackets(kappa.low, kappa.high, 2)} on {own.n:,} things that both "
                f"judged; the bar is {_ALPHA}.",
                "Read where they differ ('ragarena calibrate --disagreements 20'), change the prompt or the judge.",
            )
            remedy = ""
    if remedy:
        finding = not_compared or "No person judged anything that the judge did, or in values that are no labels."
        yield Check(name, "unknown", finding[0].upper() + finding[1:], remedy)


def _language_models(board: Leaderboard) -> Iterator[Check]:
    words = [name for name, judge in board.settings.get("judges", {}).items() if judge.get("provider") == "lexical"]
    if words:
        used = "pairwise" if Task.PAIRWISE in board.coverage else "these"
        yield Check(
            "The judge is a language model",
            "failed",
            f"{_listed(words)} compares words and is no language model: its {used} judgments are a baseline.",
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
    finding = f"{percent(share)}{_in_brackets(*interval)} {what}; the bar is {shares_between(*bounds)}."
    return Check(name, _passed(by_chance or bounds[0] <= share <= bounds[1]), finding, remedy)


def _in_brackets(low: float | None, high: float | None, decimals: int | None = None) -> str:
    if low is None or high is None:
        return ""
    return f" ({shares_between(low, high) if decimals is None else between(low, high, decimals)})"


def _passed(held: bool) -> Status:
    return "passed" if held else "failed"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
