"""Words for what a leaderboard shows, the same in the commands, on the pages and in the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from judges.types import Task

if TYPE_CHECKING:
    from arena.adaptive_games import AdaptiveState
    from arena.ratings.results import PairDifference

STAGES: Mapping[Task, str] = {
    Task.RELEVANCE: "Documents labelled",
    Task.PAIRWISE: "Games judged, each order counted",
    Task.CRITERIA: "Answers graded",
    Task.QUESTIONS: "Exam items written, by query",
    Task.GRADING: "Passages graded by exam items",
    Task.EXTRACTION: "Answers found in passages",
    Task.ANSWER_CHECK: "Answers found, checked",
    Task.NUGGETS: "Turns of making nuggets",
    Task.IMPORTANCE: "Nuggets' importance, at most ten each",
    Task.ASSIGNMENT: "Answers held against nuggets, some at a time",
    Task.ANSWERING: "Answers written",
    Task.REWRITING: "Search queries written",
    Task.PASSAGE_ASSIGNMENT: "Retrieved documents held against nuggets, some at a time",
    Task.QUERIES: "Queries written, by passage",
    Task.ANSWERABLE: "Queries held against their passage",
}

AGENTS_ASKED: Final = "Agents asked"
"""The stage before these."""


def more_needed(pair: PairDifference) -> str:
    """How many more queries (games) would tell two agents apart, as "12 (8 to 40)"; empty where none can be said."""
    if not pair.queries_needed:
        return ""
    low, high = pair.queries_needed_low or 0, pair.queries_needed_high
    ends = f"at least {low:,}" if high is None else f"{low:,} to {high:,}"
    return f"{pair.queries_needed:,} ({ends})"


def adaptive_line(state: AdaptiveState, *, ordered: bool) -> str:
    """How far an adaptive schedule has come, a sentence.

    Args:
        state: of the schedule.
        ordered: whether the order of the games means anything, as the conclusion says.
    """
    asked = "the order" if state.decide == "order" else "the first place"
    found = "is decided" if state.decided else "is not decided" if state.ended else "is still open"
    line = f"Adaptive: {asked} {found} after {state.games:,} of {state.possible:,} possible games"
    if state.ended and not state.decided:
        line += " (no game is left that could decide it, or max_games is reached)"
    line += f", at {100 * state.confidence:g}% confidence by a test of its own, which holds after any number of games"
    if not ordered and state.places:
        return f"{line}; that counts games alone, and the conclusion says why their order means nothing."
    return line + (f"; decided from the first place down: {', '.join(state.places)}." if state.places else ".")
