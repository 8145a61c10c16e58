"""How far a tournament is, counted by the database while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import case, func
from sqlmodel import select

from arena.stages import TASKS
from arena.store.rows import JudgmentRow, WantedRow, table, tournament_number
from judges.types import Task

if TYPE_CHECKING:
    from arena.store import Store


@dataclass(frozen=True, slots=True)
class StageProgress:
    """One stage's wants, every sample of a judgment one.

    Attributes:
        causes: how many failed for which cause.
    """

    wanted: int
    judged: int
    causes: Mapping[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        """Wants whose judgment is a failure."""
        return sum(self.causes.values())

    @property
    def left(self) -> int:
        """Not asked yet."""
        return self.wanted - self.judged - self.failed


@dataclass(frozen=True, slots=True)
class Progress:
    """How far all stages are.

    Attributes:
        stages: by task, in the order of the tasks.
        cost_usd: of all judgments of the tournament, each once however often it is wanted, as far as it is known.
        cost_unknown: judgments whose cost is not known.
    """

    stages: Mapping[Task, StageProgress]
    cost_usd: float
    cost_unknown: int


def progress(store: Store, tournament: str) -> Progress:
    """Count a tournament's wants and what they cost so far.

    Raises:
        InputError: no such tournament.
    """
    wants, judged = table(WantedRow), table(JudgmentRow)
    joined = wants.outerjoin(judged, wants.c.judgment_id == judged.c.judgment_id)
    with store._read() as connection:
        mine = wants.c.tournament_id == tournament_number(connection, tournament)
        is_judged = func.sum(case((judged.c.outcome.is_not(None), 1), else_=0))
        kinds = select(wants.c.task, judged.c.cause, func.count(), is_judged).select_from(joined).where(mine)
        rows = connection.execute(kinds.group_by(wants.c.task, judged.c.cause)).all()
        wanted = select(wants.c.task).where(mine, wants.c.judgment_id == judged.c.judgment_id).exists()
        costs = select(func.coalesce(func.sum(judged.c.cost_usd), 0.0), func.count() - func.count(judged.c.cost_usd))
        cost, unknown = connection.execute(costs.select_from(judged).where(wanted)).one()
    return Progress(_stages(rows), float(cost), int(unknown))


def _stages(rows: Any) -> dict[Task, StageProgress]:
    found: dict[Task, StageProgress] = {}
    for task in TASKS:
        own = [row for row in rows if row[0] == task.value]
        if own:
            causes = {str(cause): int(count) for _, cause, count, _ in own if cause is not None}
            wanted, judged = (sum(int(row[place]) for row in own) for place in (2, 3))
            found[task] = StageProgress(wanted, judged, causes)
    return found
