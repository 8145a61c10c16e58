"""Progress bars of a run on standard error: done, failed, rate, cost, time left."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from arena.cli.console import errors, printable
from arena.present.numbers import MISSING, MONEY

if TYPE_CHECKING:
    from arena.run.ledger import SettledKind

_DRAWN_S = 0.05
"""Minimum seconds between two redraws: a hundred thousand cached judgments are counted in less than a second."""


class _Rate(ProgressColumn):
    """A column with the judgments settled per second, from the last thousand; computed only when the bar is drawn."""

    def render(self, task: Task) -> Text:
        return Text("-/s" if task.speed is None else f"{task.speed:.1f}/s")


class _Cost(ProgressColumn):
    """A column with the dollars spent so far; formatted only when the bar is drawn."""

    def render(self, task: Task) -> Text:
        cost, unknown = task.fields["cost"], task.fields["unknown"]
        return Text(MISSING if unknown and not cost else MONEY.write(cost))


class Bars:
    """Progress bars: one per stage, or per agent that is asked."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<10}", markup=False),  # so that a name is not read as a link
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]} failed"),
            _Rate(),
            _Cost(),
            TimeRemainingColumn(),
            console=errors,
        )
        self._bars: dict[str, Task] = {}
        self._counted: dict[str, int] = {}
        self._drawn = 0.0

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._draw()
        self._progress.stop()

    def begin(self, task: str, wanted: int) -> None:
        """Add the bar of a stage or of an agent."""
        self._progress.add_task(printable(str(task)), total=wanted, failed=0, cost=0.0, unknown=False)
        self._bars[task] = self._progress.tasks[-1]

    def more(self, task: str, wanted: int) -> None:
        """Raise the bar's total: results led to further judgments."""
        bar = self._bars[task]
        self._progress.update(bar.id, total=(bar.total or 0) + wanted)

    def count(self, task: str, kind: SettledKind, cost_usd: float | None) -> None:
        """Count one judgment, or one answer of an agent, as settled in the way that ``kind`` says."""
        bar = self._bars[task]
        bar.fields["failed"] += kind == "failed"
        bar.fields["cost"] += cost_usd or 0.0
        bar.fields["unknown"] |= cost_usd is None and kind in ("judged", "failed")
        self._counted[task] = self._counted.get(task, 0) + 1
        if time.monotonic() > self._drawn + _DRAWN_S:
            self._draw()

    def _draw(self) -> None:
        for task, number in self._counted.items():
            self._progress.advance(self._bars[task].id, number)
        self._counted.clear()
        self._drawn = time.monotonic()
