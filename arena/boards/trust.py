"""Whether a leaderboard may be believed: each thing that must hold, whether it does, and what to do if not.

The bars are rules of thumb, named beside each finding; none of them enters a rating.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from arena.config.ratings import RatingsSection
from arena.present.blocks import Check, Checks, Section, Status, passed, settled
from arena.present.numbers import FIGURE, PERCENT, PERCENT_1, counted, listed, with_interval
from arena.ratings.comparison import circles
from arena.ratings.ranks import fewest_queries
from judges.types import Task
from retrieval_eval.stats.bootstrap import wilson
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from arena.calibration.comparison import Comparison
    from arena.calibration.opinions import Level
    from arena.conclusion import Conclusion
    from arena.leaderboard import Leaderboard
    from arena.ratings.health import JudgeHealth
    from arena.ratings.rate import Ratings

_CARRIED_BY: Final = 0.02
"""Share of the queries, two at least, that must not carry the lead alone."""
_NAMED: Final = 5
"""Agents named in a finding; the others are counted."""
PEOPLE: Final = "People agree with the judge"
_ORDER: Final[Sequence[Status]] = ("failed", "unknown", "passed")
_SAME_IN_BOTH_ORDERS = 0.75
_FIRST_PLACE = 0.05
"""How far from a half the share of verdicts for the first place may lie."""
_LONGER = 0.65
_TIES = 0.5
_CIRCLES = 0.1
ALPHA = 0.4
"""Moderate agreement by the usual reading of kappa (Landis and Koch 1977)."""
_SAME_AGAIN = 0.8


def trust_checks(
    board: Leaderboard,
    conclusion: Conclusion,
    comparisons: Sequence[Comparison] = (),
    apart: Sequence[Level] = (),
) -> tuple[Check, ...]:
    """All checks that apply to a tournament: those that failed first, then those that nobody can tell.

    Args:
        board: its leaderboard.
        conclusion: what may be said of it.
        comparisons: its judges with people.
        apart: on what people judged nothing that a judge judged.
    """
    found = [_judged(board), *_answered(board)]
    if board.ratings is not None:
        found += [_rated(board.ratings), _queries(board.ratings), *_of_lead(board.ratings, conclusion)]
        if board.ratings.judge_health is not None:
            found += _habits(board.ratings.judge_health, board.ratings)
        found += [*_one_line(board.ratings), *_between_judges(board.ratings)]
    found += _samples(board)
    found += [*_people(comparisons, apart), *_language_models(board)]
    return tuple(sorted(found, key=lambda check: _ORDER.index(check.status)))


def _people(comparisons: Sequence[Comparison], apart: Sequence[Level]) -> Sequence[Check]:
    """Whether judges agree with people, on each kind of things that both judged."""
    if not comparisons:
        return [no_people(apart)]
    from arena.boards.calibration.people import people_checks

    return people_checks(comparisons, apart)


def no_people(apart: Sequence[Level] = ()) -> Check:
    """The check where people judged nothing that a judge did; ``apart`` are the levels on which they judged."""
    finding = "No person judged anything that the judge did."
    if apart:
        finding = f"Judges and people have no {', '.join(apart)} of the same things to compare."
    return Check(PEOPLE, "unknown", finding, "Let people judge a random sample of the same things on the pages.")


def trust_section(checks: Sequence[Check]) -> Section:
    """All checks, as ``trust_checks`` found them."""
    lead = "Each of these must hold before the order above is worth acting on. The bars are rules of thumb."
    return Section("trust", "Can this be trusted?", lead, [Checks(checks)])


def in_short(checks: Sequence[Check]) -> str:
    """How many checks passed, and the names of those that did not."""
    passed = sum(check.status == "passed" for check in checks)
    failed = [check.name for check in checks if check.status == "failed"]
    open_ones = [check.name for check in checks if check.status == "unknown"]
    said = f"{'Read with care: ' if failed else ''}{passed} of {len(checks)} trust checks passed."
    for what, names in (("Failed", failed), ("Not known", open_ones)):
        if names:
            said += f" {what}: {'; '.join(name[0].lower() + name[1:] for name in names)}."
    return said


def _judged(board: Leaderboard) -> Check:
    wanted = sum(stage.wanted for stage in board.coverage.values())
    judged = sum(stage.judged for stage in board.coverage.values())
    bar = RatingsSection.model_validate(board.settings["ratings"]).min_coverage
    short = board.shortfall is not None or any(stage.share < bar for stage in board.coverage.values())
    finding = (
        f"{judged:,} of {wanted:,} wanted judgments are there ({PERCENT_1.write(judged / wanted if wanted else 1)})"
    )
    if board.shortfall is not None:
        finding = board.shortfall.message[0].upper() + board.shortfall.message[1:]
    return Check(
        "Enough is judged",
        passed(not short and wanted > 0),
        f"{finding}; the bar is {PERCENT_1.write(bar)} of each stage.",
        "Run 'ragarena run' again, with --retry-failed where replies were unusable; 'ragarena failures' says why.",
    )


def _answered(board: Leaderboard) -> Iterator[Check]:
    if not board.costs.agents:
        return
    gaps = [f"{own.agent} {own.answered:,} of {own.queries:,}" for own in board.costs.gaps]
    finding = f"Answered: {listed(gaps, _NAMED)}; games are played where both agents answered." if gaps else "All did."
    yield Check(
        "Every agent answered every query",
        passed(not gaps),
        finding,
        "Bring the missing answers, or run again where agents are asked: who leaves out what is hard gains by it.",
    )


def _rated(ratings: Ratings) -> Check:
    flagged = [row.agent for row in ratings.agents if row.flags]
    finding = f"{listed(flagged, _NAMED)}: to be read with care." if flagged else "Every agent's rating has a maximum."
    if not ratings.convergence.converged:
        finding = "The fit has not converged."
    return Check(
        "The games determine the ratings",
        passed(ratings.convergence.converged and not flagged),
        finding,
        "Let the agents that are flagged in the leaderboard meet others of nearly their strength, on more queries.",
    )


def _queries(ratings: Ratings) -> Check:
    noun = ("query", "queries") if ratings.unit == "query" else ("game", "games")
    bar = fewest_queries(len(ratings.agents))
    finding = f"Intervals rest on {counted(ratings.units, *noun)}; the bar for {len(ratings.agents)} agents is {bar}."
    if not ratings.pairs:
        finding = "There are no intervals: nothing shows how much a rating varies."
    enough = bool(ratings.pairs) and ratings.units >= bar
    return Check("Enough queries", passed(enough), finding, "Add queries like those that users will ask.")


def _of_lead(ratings: Ratings, conclusion: Conclusion) -> Iterator[Check]:
    changes = [found for found in ratings.flips if found.change == "leader"]
    own = next((found for found in changes if found.unit == "query"), next(iter(changes), None))
    if own is None:
        return
    noun = ("query", "queries") if own.unit == "query" else ("game", "games")
    least = max(2, round(_CARRIED_BY * own.units))
    status: Status = "unknown"
    if not conclusion.ordered or own.count == 0:
        finding = "No agent is surely rated above all others."
        if not conclusion.ordered:
            finding = conclusion.headline if conclusion.headline.endswith("?") else f"{conclusion.headline}."
    elif own.count is None and not own.tried:
        finding = f"There are too few {noun[1]} to leave any out."
    elif own.count is not None:
        finding = f"Without {own.count} of {counted(own.units, *noun)} {own.behind} would be rated highest."
        status = passed(own.count > least)
    else:
        weigh = counted(own.tried, f"{noun[0]} that weighs", f"{noun[1]} that weigh")
        finding = f"{own.ahead} is rated highest also without the {weigh} most for it."
        status = "passed" if own.tried > least else "unknown"
    yield Check(
        "Robust to a few queries",
        status,
        f"{finding} The bar is more than {least} of {counted(own.units, *noun)}.",
        f"Read the {noun[1]} that carry the first place, and add more queries before choosing.",
    )


def _habits(health: JudgeHealth, ratings: Ratings) -> Iterator[Check]:
    low, high = health.order_agreement_low, health.order_agreement_high
    yield Check(
        "Both orders agree",
        settled(low, high, _SAME_IN_BOTH_ORDERS),
        f"{_share(health.order_agreement, low, high)} of {counted(health.both_orders, 'game')} judged in "
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
        f"{_share(health.tie_rate, health.tie_rate_low, health.tie_rate_high)} of "
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
        f"Between equal agents {_share(share, low, high)} of verdicts with a winner would go to the "
        f"answer shown first; the bar is {PERCENT.between(*bar)}."
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
        f"{_share(health.longer_share, low, high)} of verdicts with a winner go to the longer answer; "
        f"the bar is {PERCENT.between(*bar)}."
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


def _one_line(ratings: Ratings) -> Iterator[Check]:
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


def _between_judges(ratings: Ratings) -> Iterator[Check]:
    if ratings.judges is None:
        return
    own = ratings.judges
    yield Check(
        "Judges agree with each other",
        settled(own.alpha.low, own.alpha.high, ALPHA),
        f"Krippendorff's alpha is {with_interval(own.alpha, FIGURE)} on "
        f"{counted(own.games, 'game')} judged by several; the bar is {ALPHA}."
        if own.alpha.value is not None
        else "No game was judged by several.",
        "See which judge stands alone, and calibrate each against people's verdicts.",
    )


def _samples(board: Leaderboard) -> Iterator[Check]:
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
                    f"{_share(found.agreement, low, high)} of two samples agree ({task.value}, "
                    f"{counted(found.repeated, 'thing')}); the bar is {_SAME_AGAIN:.0%}.",
                    "Lower the judge's temperature, or raise its samples so that a majority decides.",
                )


def _language_models(board: Leaderboard) -> Iterator[Check]:
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


def _share(share: float | None, low: float | None, high: float | None) -> str:
    return with_interval(Estimate(share, low, high), PERCENT)
