"""What must be said of nugget scores, in words."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_eval.nuggets.run_scores import RunScores
from retrieval_eval.nuggets.scores import ScoreTable

_MOST_NAMED = 5


def score_notes(table: ScoreTable, scored: Sequence[RunScores]) -> list[str]:
    """All a reader must know who compares the scores."""
    notes = []
    if missing := [f"{own.run} {own.missing}" for own in scored if own.missing]:
        notes.append(f"topics a run did not answer, each counted 0: {named(missing)}")
    for own in scored:
        if own.failed:
            first = own.means["v_strict"]
            notes.append(
                f"{own.run}: {own.labels - own.assigned} of {own.labels} labels failed; topics left out of its means "
                f"for that: {own.failed}; with every label V strict would lie in "
                f"{interval(first.lowest, first.highest)}"
            )
    if empty := [f"{own.run} {own.empty}" for own in scored if own.empty]:
        notes.append(f"answers without a single nugget, left out of the means: {named(empty)}")
    fewer = [
        f"{own.run} {own.means['v_strict'].topics}"
        for own in scored
        if own.means["v_strict"].topics < own.topics - own.failed - own.empty
    ]
    if fewer:
        notes.append(f"V is not defined without vital nuggets; topics in its mean: {named(fewer)}")
    if table.unjudged_topics:
        notes.append(f"topics without an assignment of any run, counted 0 for all: {named(table.unjudged_topics)}")
    if table.differing_topics:
        notes.append(f"topics where runs were held against different nuggets: {named(table.differing_topics)}")
    if table.left_out:
        notes.append(f"{table.left_out} assignments are on queries outside the topic set and left out")
    if table.counts[..., :3].any() and not table.counts[..., 1].any():
        notes.append("no label is partial_support, so strict scores are the same as the others")
    return notes


def interval(low: float | None, high: float | None) -> str:
    """Both ends, where there are any."""
    return "-" if low is None or high is None else f"{low:.3f}..{high:.3f}"


def named(names: Sequence[str]) -> str:
    """The first of many names."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
