"""Whether a leaderboard may be believed: each thing that must hold, whether it does, and what to do if not.

The bars are rules of thumb, named beside each finding; none of them enters a rating.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arena.calibration.comparison import Comparison
from arena.conclusion import Conclusion
from arena.config import RatingsSection
from arena.leaderboard import Leaderboard
from arena.present.blocks import Check, Status, passed
from arena.ratings.ranks import fewest_queries
from arena.ratings.rate import Ratings
from arena.report.figures import percent
from arena.report.judge_checks import between_judges, habits, language_models, one_line, people, samples
from arena.wording import counted, listed

TRUST = "Can this be trusted?"
TRUST_LEAD = "Each of these must hold before the order above is worth acting on. The bars are rules of thumb."

_CARRIED_BY = 0.02
"""Share of the queries, two at least, that must not carry the lead alone."""

_NAMED = 5
"""Agents named in a finding; the others are counted."""

_ORDER: tuple[Status, ...] = ("failed", "unknown", "passed")


def trust_checks(
    board: Leaderboard,
    conclusion: Conclusion,
    comparisons: Sequence[Comparison] = (),
    not_compared: str = "",
) -> tuple[Check, ...]:
    """All checks that apply to a tournament: those that failed first, then those that nobody can tell.

    Args:
        board: its leaderboard.
        conclusion: what may be said of it.
        comparisons: its judges with people.
        not_compared: why there are none, where people judged something.
    """
    found = [_judged(board), *_answered(board)]
    if board.ratings is not None:
        found += [_rated(board.ratings), _queries(board.ratings), *_of_lead(board.ratings, conclusion)]
        if board.ratings.judge_health is not None:
            found += habits(board.ratings.judge_health, board.ratings)
        found += [*one_line(board.ratings), *between_judges(board.ratings)]
    found += samples(board)
    found += [*people(comparisons, not_compared), *language_models(board)]
    return tuple(sorted(found, key=lambda check: _ORDER.index(check.status)))


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
    finding = f"{judged:,} of {wanted:,} wanted judgments are there ({percent(judged / wanted if wanted else 1, 1)})"
    if board.shortfall is not None:
        finding = board.shortfall.message[0].upper() + board.shortfall.message[1:]
    return Check(
        "Enough is judged",
        passed(not short and wanted > 0),
        f"{finding}; the bar is {percent(bar, 1)} of each stage.",
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
