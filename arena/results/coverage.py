"""How much of what was wanted is judged, and whether that is enough to rate on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from arena.config.stages import FURTHER
from arena.store import IDENTICAL, Result, Wanted
from judges.types import JudgeFailure, Judgment, Task

STAGES: Mapping[Task, str] = {
    **{task: stage.words for stage in FURTHER.values() for task in stage.tasks},
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


class Coverage(Struct, frozen=True):
    """How much of what was wanted is judged. ``identical`` games are among the judged ones."""

    wanted: int
    judged: int
    failed: int
    left: int
    identical: int

    @property
    def share(self) -> float:
        """Judged divided by wanted."""
        return self.judged / self.wanted if self.wanted else 1.0


class Shortfall(Struct, frozen=True):
    """Whose verdicts are too few to rate on.

    Attributes:
        kind: ``judge`` or ``agent``.
        name: of the judge or agent that has the smallest share of its verdicts.
        judged: its wanted verdicts that are there; each order of a game is one.
        wanted: all of them.
        min_coverage: the share that ``ratings.min_coverage`` asks for.
        rated: whether any game has a verdict, so that there is something to show all the same.
        again: what brings the rest, a phrase.
    """

    kind: str
    name: str
    judged: int
    wanted: int
    min_coverage: float
    rated: bool
    again: str = "run again to judge the rest"

    @property
    def share(self) -> float:
        """Judged divided by wanted."""
        return self.judged / self.wanted

    @property
    def message(self) -> str:
        """What is there and what is needed, on one line."""
        there = f"{self.kind} {self.name} has {self.judged} of {self.wanted} wanted verdicts ({self._share()})"
        return f"{there}, and ratings need {100 * self.min_coverage:g}% of every judge's and agent's"

    def _share(self) -> str:
        """The share with as many decimals as it takes to look smaller than what is needed."""
        bar = 100 * self.min_coverage
        forms = (f"{100 * self.share:.{decimals}f}" for decimals in range(4))
        return f"{next((written for written in forms if float(written) < bar), f'under {bar:g}')}%"

    @property
    def remedy(self) -> str:
        """How to see the ratings, if there are any."""
        see = ", or see them with 'ragleague leaderboard --below-coverage'"
        return f"{self.again}{see}" if self.rated else self.again


def coverage(outcomes: Sequence[tuple[Wanted, Result | None]]) -> Coverage:
    """Of one stage."""
    judged = sum(isinstance(result, Judgment) for _, result in outcomes)
    failed = sum(isinstance(result, JudgeFailure) for _, result in outcomes)
    identical = sum(result is not None and result.judgment_id == IDENTICAL for _, result in outcomes)
    return Coverage(len(outcomes), judged, failed, len(outcomes) - judged - failed, identical)


def shortfall(judged_of: Mapping[str, Mapping[str, tuple[int, int]]], min_coverage: float) -> Shortfall | None:
    """The judge, or if all have enough the agent, furthest below the least share of verdicts; ``None`` if nobody is.

    The share of all games together is a weighted mean of the judges' shares, so where each judge has enough, the whole
    has too. It may hide a judge that stopped early, or an agent whose answers a judge would not read: what is missing
    then is no random part of the games, and ratings of the rest are of something else.

    Args:
        judged_of: by kind (judge, agent) and name, the verdicts that are there and those that are wanted. Of an
            adaptive schedule these are the games that were chosen.
        min_coverage: from 0 to 1.
    """
    for kind, by_name in judged_of.items():
        for name, (judged, wanted) in sorted(by_name.items(), key=lambda entry: entry[1][0] / entry[1][1]):
            if judged < min_coverage * wanted - 1e-9:
                rated = any(there for there, _ in by_name.values())
                return Shortfall(kind, name, judged, wanted, min_coverage, rated)
    return None
