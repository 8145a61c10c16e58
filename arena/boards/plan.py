"""What a run would ask: a line for each agent, and for each judge's part in each stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from arena.agents.plan import PlannedAgent
from arena.coverage import AGENTS_ASKED, STAGES
from arena.plan import Plan
from arena.present.blocks import Board, Figure, Figures, Remarks, Section
from arena.present.numbers import COUNT, DURATION, MONEY
from arena.present.plain import plain
from arena.present.table import Column, Table
from arena.runtime.counting import PlannedCalls

_COLUMNS: Final = (
    Column("stage", "Stage"),
    Column("who", "Who"),
    Column("wanted", "Wanted", COUNT),
    Column("known", "Known", COUNT, "In the store already, or the same as another one."),
    Column("waiting", "In a batch", COUNT, "Sent already, and paid for."),
    Column("identical", "Identical", COUNT, "Games of equal answers: ties without a call."),
    Column("calls", "Calls", COUNT),
    Column("input_tokens", "Tokens in", COUNT),
    Column("output_tokens", "Tokens out", COUNT),
    Column("cost_usd", "Cost", MONEY),
    Column("seconds", "Time", DURATION, "At two seconds a call."),
)


@dataclass(frozen=True, slots=True)
class PlanBoard(Board):
    """A plan, for people and programs."""

    plan: Plan

    def sections(self) -> Sequence[Section]:
        """One: the lines, the sums, and what they assume."""
        rows = [*map(_agent, self.plan.agents), *map(_judge, self.plan.rows)]
        sums = Figures(
            [
                Figure("Calls", sum(row["calls"] or 0 for row in rows), COUNT, "As far as they can be counted."),
                Figure("Cost", self.plan.cost_usd, MONEY, "Of all of it; - where a price is not known."),
            ]
        )
        lines = Table("plan", "", _COLUMNS, rows)
        return [Section("plan", "The next run", "", [lines, sums, Remarks(self.plan.notes)])]

    def json(self) -> Any:
        """The shape of ``plan --json``."""
        own = self.plan
        return plain({"agents": own.agents, "stages": own.rows, "cost_usd": own.cost_usd, "notes": own.notes})


def _agent(own: PlannedAgent) -> dict[str, Any]:
    return {**plain(own), "stage": AGENTS_ASKED, "who": own.agent}


def _judge(own: PlannedCalls) -> dict[str, Any]:
    return {**plain(own), "stage": STAGES[own.task], "who": own.judge, "waiting": own.waiting or None}
