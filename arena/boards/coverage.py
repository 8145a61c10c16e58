"""How much of what was planned is judged, and what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from arena.coverage import STAGES
from arena.present.blocks import Block, Remarks, Section
from arena.present.numbers import COUNT, PERCENT_1, counted
from arena.present.table import Column, Table
from judges.errors import CAUSES, RETRIED_NEXT_RUN

if TYPE_CHECKING:
    from arena.agents.costs import CostBoard
    from arena.coverage import Coverage
    from judges.types import Task


def coverage_section(
    stages: Mapping[Task, Coverage],
    causes: Mapping[str, int] | Mapping[tuple[Task, str, str], int],
    more: Sequence[Block] = (),
    remarks: Sequence[str] = (),
) -> Iterator[Section]:
    """The section; nothing where nothing is planned.

    Args:
        stages: how far each is.
        causes: how often which cause, or which stage, judge and cause.
        more: further tables.
        remarks: sentences below.
    """
    if not stages:
        return
    blocks: list[Block] = [_stages(stages), *([_failures(causes)] if causes else []), *more]
    lead = "How much of what was planned is behind the figures. A failure is never counted as a verdict."
    if remarks:
        blocks.append(Remarks(remarks))
    yield Section("coverage", "Coverage and failures", lead, blocks)


def missing(stages: Mapping[Task, Coverage], costs: CostBoard) -> list[str]:
    """What is not there, a sentence for answers and one for judgments, each with what to do."""
    said = []
    if gaps := [own for own in costs.gaps if own.missing]:
        owed = sum(own.queries - own.answered for own in gaps)
        said.append(
            f"Answers are missing, {owed:,} in all, of {counted(len(gaps), 'agent')}. Games are played where both "
            "agents answered. 'ragarena run' asks again."
        )
    wanted, judged, failed, left = (
        sum(getattr(stage, name) for stage in stages.values()) for name in ("wanted", "judged", "failed", "left")
    )
    if judged < wanted:
        said.append(
            f"{failed + left:,} of {wanted:,} judgments are missing: {failed:,} failed, {left:,} not made yet. Figures "
            "use what is there. 'ragarena run' makes the missing ones; with --retry-failed it also asks again where a "
            "judge gave an unusable reply."
        )
    return said


def _stages(stages: Mapping[Task, Coverage]) -> Table:
    columns = [
        Column("stage", "Stage"),
        Column("share", "Done", PERCENT_1),
        Column("wanted", "Wanted", COUNT),
        Column("judged", "Judged", COUNT),
        Column("failed", "Failed", COUNT),
        Column("left", "Left", COUNT, "Not asked yet, or waiting for what it builds on."),
        Column("identical", "Without a call", COUNT, "Among the judged: ties as both answers are the same text."),
    ]
    rows = [
        {"stage": STAGES.get(task, task.value)} | {column.key: getattr(stage, column.key) for column in columns[1:]}
        for task, stage in stages.items()
    ]
    return Table("coverage", "By stage", columns, rows)


def _failures(causes: Mapping[Any, int]) -> Table:
    columns = [
        Column("cause", "Cause"),
        Column("stage", "Stage"),
        Column("judge", "Judge"),
        Column("failures", "Failures", COUNT, "Samples are counted one by one."),
        Column("remedy", "What to do"),
    ]
    rows = []
    for key, count in sorted(causes.items(), key=lambda entry: -entry[1]):
        task, judge, cause = key if isinstance(key, tuple) else (None, None, key)
        rows.append(
            {
                "cause": CAUSES.get(cause, cause),
                "stage": task and task.value,
                "judge": judge,
                "failures": count,
                "remedy": "run again" if cause in RETRIED_NEXT_RUN else "run again with --retry-failed",
            }
        )
    notes = ["'ragarena failures' lists them with their replies."]
    return Table("failures", "Why judgments failed", columns, rows, notes)
