"""Advice on missing judgments, as phrases for messages and reports."""

from __future__ import annotations

from collections.abc import Mapping

from arena.present.numbers import counted
from judges.errors import RETRIED_NEXT_RUN


def to_judge_the_rest(causes: Mapping[str, int], left: int, *, imported: bool) -> str:
    """A phrase on how to get the missing judgments; advises another run only if it would request some of them.

    Args:
        causes: number of failed judgments by cause.
        left: number of judgments not made yet.
        imported: whether the judgments come from an import.
    """
    if imported:
        return "judge the rest with the tool that made these judgments, and import all of them again"
    why = "'ragleague failures' says what helps where a reply was unusable"
    if not causes.keys() - RETRIED_NEXT_RUN:
        return "run again to judge the rest"
    return (
        f"run again to judge the rest; {why}"
        if left or causes.keys() & RETRIED_NEXT_RUN
        else f"{why}: asking again alone may not"
    )


def judge_first(unjudged: int) -> str:
    """Advice to judge the unjudged queries before writing new queries, in one sentence; empty if all are judged."""
    if not unjudged:
        return ""
    are, them = ("is", "it") if unjudged == 1 else ("are", "them")
    return f"{counted(unjudged, 'query', 'queries')} of the data {are} not judged yet: judge {them} first."
