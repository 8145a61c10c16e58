"""How much of what was planned is judged, what is missing, and why judgments failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from arena.boards.trust import still_to_judge
from arena.present.blocks import Block, Remarks, Section
from arena.present.numbers import COUNT, PERCENT, counted
from arena.present.table import Column, Table, plain
from arena.results.outcomes import stage_words
from judges.errors import CAUSES, remedy

if TYPE_CHECKING:
    from arena.results.outcomes import Coverage
    from arena.results.ratings import Leaderboard
    from judges.types import Task

_STAGES: Final = (
    Column("stage", "Stage"),
    Column("share", "Done", PERCENT),
    Column("wanted", "Wanted", COUNT),
    Column("judged", "Judged", COUNT),
    Column("failed", "Failed", COUNT),
    Column("left", "Left", COUNT, "Not asked yet, or waiting for an earlier stage."),
    Column("identical", "Without a call", COUNT, "Among the judged: ties as both answers are the same text."),
)
_FAILURES: Final = (
    Column("cause", "Cause"),
    Column("stage", "Stage"),
    Column("judge", "Judge"),
    Column("failures", "Failures", COUNT, "Samples are counted one by one."),
    Column("remedy", "What to do"),
)


def coverage_sections(
    board: Leaderboard, failures: Mapping[tuple[Task, str, str], int], effort: Sequence[Block]
) -> Iterator[Section]:
    if not board.coverage:
        return
    words = stage_words()
    rows = [{"stage": words.get(task, task.value), **stage_row(coverage)} for task, coverage in board.coverage.items()]
    blocks: list[Block] = [Table("coverage", "By stage", _STAGES, rows)]
    if causes := failures or board.causes:
        blocks.append(_failures(causes))
    blocks += effort
    remarks = missing(board)
    if board.shortfall is not None and not board.withheld:
        remarks.append(f"Below ratings.min_coverage: {board.shortfall.message}.")
    if remarks:
        blocks.append(Remarks(remarks))
    lead = "How much of what was planned is behind the figures. A failure is never counted as a verdict."
    yield Section("coverage", "Coverage and failures", lead, blocks)


def missing(board: Leaderboard) -> list[str]:
    """Sentences on missing answers and judgments, with what to do, and on answers that a criterion skips."""
    sentences, stages = [], board.coverage.values()
    if gaps := [gap for gap in board.costs.gaps if gap.missing]:
        owed = sum(gap.queries - gap.answered for gap in gaps)
        sentences.append(
            f"Answers are missing, {owed:,} in all, of {counted(len(gaps), 'agent')}. Games are played where both "
            "agents answered. 'ragleague run' asks again; 'ragleague failures' says why, and what only --retry-failed "
            "asks again."
        )
    wanted, judged, failed = (sum(getattr(stage, name) for stage in stages) for name in ("wanted", "judged", "failed"))
    if judged < wanted:
        left = wanted - judged - failed
        sentences.append(
            f"{wanted - judged:,} of {wanted:,} judgments are missing: {failed:,} failed, {left:,} "
            f"not made yet. Figures use what is there. {still_to_judge(board)}"
        )
    return [*sentences, *(f"{left_out}." for left_out in board.ungraded)]


def stage_row(coverage: Coverage) -> dict[str, Any]:
    return {**plain(coverage), "share": coverage.share}


def _failures(causes: Mapping[Any, int]) -> Table:
    rows = []
    for key, count in sorted(causes.items(), key=lambda entry: -entry[1]):
        task, judge, cause = key if isinstance(key, tuple) else (None, None, key)
        words, help_words = CAUSES.get(cause, cause), remedy(cause)
        rows.append({"cause": words, "stage": task, "judge": judge, "failures": count, "remedy": help_words})
    notes = ["'ragleague failures' lists them with their replies."]
    return Table("failures", "Why judgments failed", _FAILURES, rows, notes)
