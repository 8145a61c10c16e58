"""What a run would ask, as tables with the assumptions below."""

from __future__ import annotations

from collections.abc import Sequence

from arena.agents.plan import PlannedAgent
from arena.cli.console import dollars, output, printable
from arena.cli.tables import print_table
from arena.plan import Plan


def print_plan(plan: Plan) -> None:
    """Write a plan as tables with its assumptions below."""
    if plan.agents:
        _print_planned_agents(plan.agents)
        output.print()
    headings = ["wanted", "known", "identical", "calls", "tokens\nin", "tokens\nout", "cost", "time"]
    rows = []
    for row in plan.rows:
        numbers = (row.wanted, row.known, row.identical, row.calls, row.input_tokens, row.output_tokens)
        cells = [f"{number:,}" for number in numbers] + [dollars(row.cost_usd), _duration(row.seconds)]
        rows.append([row.task.value, row.judge, *cells])
    if rows:
        print_table(["stage", "judge"], headings, rows)
    output.print(f"total {dollars(plan.cost_usd)}")
    for note in plan.notes:
        output.print(f"- {printable(note)}")


def _print_planned_agents(agents: Sequence[PlannedAgent]) -> None:
    headings = ["queries", "known", "calls", "tokens\nin", "tokens\nout", "cost", "time"]
    rows = []
    for row in agents:
        counts = [_count(number) for number in (row.wanted, row.known, row.calls, row.input_tokens, row.output_tokens)]
        rows.append([row.agent, *counts, dollars(row.cost_usd), _duration(row.seconds)])
    print_table(["agent"], headings, rows)


def _count(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
