"""What to do about judgments that are missing, in words."""

from __future__ import annotations

from collections.abc import Mapping

from arena.present.numbers import counted
from judges.errors import RETRIED_NEXT_RUN


def to_judge_the_rest(causes: Mapping[str, int], left: int, *, imported: bool) -> str:
    """What brings judgments that are missing, a phrase that says to run again only where that asks for some.

    Args:
        causes: how many failed for which cause.
        left: those that were not made yet.
        imported: whether they were made elsewhere.
    """
    if imported:
        return "judge the rest where these were judged, and import all again"
    why = "'ragleague failures' says what helps where a reply was unusable"
    if not causes.keys() - RETRIED_NEXT_RUN:
        return "run again to judge the rest"
    return (
        f"run again to judge the rest; {why}"
        if left or causes.keys() & RETRIED_NEXT_RUN
        else f"{why}: asking again alone may not"
    )


def judge_first(unjudged: int) -> str:
    """What to do before more queries are written, a sentence; empty where every query there is is judged."""
    if not unjudged:
        return ""
    are, them = ("is", "it") if unjudged == 1 else ("are", "them")
    return f"{counted(unjudged, 'query', 'queries')} of the data {are} not judged yet: judge {them} first."
