"""Progress bars and summaries that a run prints on standard error, and the log file of ``--log-json``."""

from __future__ import annotations

import io
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from arena.cli.console import COLUMN_NOTES, errors, say
from arena.present.numbers import MISSING, MONEY, counted, printable
from arena.run.ledger import Progress, RunSummary, SettledKind
from arena.run.pipeline import RunPart
from judges.errors import PROGRESS, DataError, reason
from judges.types import CallTrace, Task

if TYPE_CHECKING:
    from rich.progress import Task as Bar

    from arena.run.answers import AgentsRun, AgentSummary
    from arena.run.queries import SynthReport


Trace = Callable[[CallTrace], None]
_LISTED_FILES: Final = 3
"""Maximum number of unreadable documents that a summary lists by name."""
_DRAWN_S = 0.05
"""Minimum number of seconds between two redraws of the bars. Cached judgments are counted too fast to redraw for each:
a hundred thousand in less than a second."""


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        errors.print(printable(record.getMessage()))


class _NoProgress:
    def begin(self, task: str, wanted: int) -> None: ...

    def more(self, task: str, wanted: int) -> None: ...

    def count(self, task: str, kind: SettledKind, cost_usd: float | None) -> None: ...


@contextmanager
def watching(*, shown: bool = True) -> Iterator[Progress]:
    """Show progress on standard error while the block runs: bars on a terminal, and the messages that a run logs."""
    lines = _Lines()
    PROGRESS.addHandler(lines)
    PROGRESS.setLevel(logging.INFO)
    try:
        if shown and errors.is_terminal:
            COLUMN_NOTES.print_new()
            with Bars() as bars:
                yield bars
        else:
            yield _NoProgress()
    finally:
        PROGRESS.removeHandler(lines)


@contextmanager
def traced_to(path: Path | None) -> Iterator[Trace | None]:
    """Open the log file for the block; yields a function that logs one call of a model, or ``None`` without a path."""
    if path is None:
        yield None
        return
    with _write_errors_of(path):
        existing = path.open("rb") if path.is_file() else io.BytesIO()
        with existing:
            if existing.read(1) not in {b"", b"{"}:
                raise DataError(path, "is not a log in JSON lines, and appending would damage it; name a new file")
    with _write_errors_of(path):
        file = os.fdopen(_open_for_append(path), "ab", buffering=0)

    def add(call: CallTrace) -> None:
        with _write_errors_of(path):
            file.write(f"{json.dumps(_line(call))}\n".encode("ascii"))

    with file:
        yield add


@contextmanager
def asking(log: Path | None = None) -> Iterator[tuple[Progress, Trace | None]]:
    with traced_to(log) as trace, watching() as progress:
        yield progress, trace


def _open_for_append(path: Path) -> int:
    """Open a file for appending. For a named pipe without a reader it fails at once instead of waiting for one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o666)
    os.set_blocking(descriptor, True)
    return descriptor


@contextmanager
def _write_errors_of(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(path, f"cannot be written: {reason(error)}") from error


def _line(call: CallTrace) -> dict[str, Any]:
    return {
        "at": datetime.fromtimestamp(call.at, UTC).isoformat(timespec="milliseconds"),
        "judge": call.judge,
        "model": call.model,
        "task": call.task.value,
        "judgment": call.judgment_id,
        "call": call.call,
        "reask": call.reask,
        "latency_s": round(call.latency_s, 4),
        "finish": call.finish,
        "error": call.cause,
        "input_tokens": call.usage.input_tokens,
        "cached_input_tokens": call.usage.cached_input_tokens,
        "output_tokens": call.usage.output_tokens,
        "cost_usd": call.cost_usd,
        "allowed_at_once": call.allowed,
    }


def print_part(part: RunPart) -> None:
    if isinstance(part, RunSummary):
        print_summary(part)
        return
    from arena.run.answers import AgentsRun

    if isinstance(part, AgentsRun):
        _print_agents(part)
    else:
        _print_queries(part)


def print_summary(summary: RunSummary, option: str = "") -> None:
    """Print a line for each stage, each judge that was called, and each judge that stopped.

    If the run is incomplete, the last line suggests the command to run next, with ``option`` added.
    """
    for note in summary.notes:
        say(f"note: {note}", errors)
    for task, stage in summary.stages.items():
        cost = MONEY.write(stage.cost_usd) + (f" + {stage.cost_unknown} of unknown cost" if stage.cost_unknown else "")
        counts = f"{stage.judged} judged, {stage.known} needed no call, {stage.failed} failed"
        errors.print(f"{task.value}: {counts}, {stage.left} left of {stage.wanted}; {stage.calls} calls, {cost}")
        if stage.changed_lists:
            command = {Task.QUESTIONS: "make bank", Task.NUGGETS: "make nuggets"}[task]
            errors.print(
                f"{task.value}: lists shorter than asked for, or with texts left out: {stage.changed_lists}; "
                f"'ragleague {command}' says which"
            )
    for name, judge in summary.judges.items():
        if judge.latency_s is not None:
            median, ninetieth, ninety_ninth = (f"{seconds:.2f}" for seconds in judge.latency_s)
            line = f"judge {name}: {judge.replies} replies of {judge.calls} calls in {judge.seconds:.1f} s"
            line += f" ({judge.replies_per_s:.1f}/s), latency {median} s median, {ninetieth} 90 %, {ninety_ninth} 99 %"
            say(line, errors)
    for line in [*summary.stopped, *summary.waiting]:
        say(line, errors)
    if summary.waiting or not summary.complete:
        errors.print(f"incomplete: {summary.next_step(option)}")


def _print_agents(run: AgentsRun) -> None:
    if (corpus := run.corpus) is not None:
        twins = f", {corpus.twins:,} that repeat another left out" if corpus.twins else ""
        say(f"corpus: {counted(len(corpus.documents), 'document')} to search{twins}", errors)
        for file in corpus.skipped[:_LISTED_FILES]:
            partly = "partly read: " if file.outcome == "partly read" else ""
            say(f"corpus: {file.source} {partly}{file.reason}", errors)
        if (more := len(corpus.skipped) - _LISTED_FILES) > 0:
            say(f"corpus: ... and {more:,} more; 'ragleague documents' lists all", errors)
    for name, summary in run.agents.items():
        say(f"agent {name}: {_agent_counts(summary)}", errors)
        if summary.stopped:
            say(f"agent {name!r} stopped: {summary.stopped}", errors)
    for line in run.silent:
        say(line, errors)
    for note in dict.fromkeys(note for agent in run.declared for note in agent.notes):
        say(f"note: {note}", errors)
    if not run.complete:
        say(f"incomplete: {run.next_step}", errors)


def _agent_counts(agent: AgentSummary) -> str:
    causes = ", ".join(f"{cause} {count}" for cause, count in agent.causes.items())
    failed = f"{agent.failed} failed" + (f" ({causes})" if causes else "")
    cost = MONEY.write(agent.cost_usd) if agent.cost_unknown < agent.answered + agent.failed or not agent.calls else ""
    unknown = f"{agent.cost_unknown} of unknown cost" if agent.cost_unknown and agent.calls else ""
    spent = " + ".join(filter(None, (cost, unknown)))
    counts = f"{agent.answered} answered, {agent.known} needed no call, {failed}, {agent.left} left of {agent.wanted}"
    return f"{counts}; {agent.calls} calls, {spent}, {agent.seconds:.1f} s"


def _print_queries(report: SynthReport) -> None:
    if report.summary is not None:
        print_summary(report.summary)
    drawn = counted(sum(report.kept.values()), "query", "queries")
    say(f"synth: {drawn} drawn; 'ragleague make queries' says more", errors)
    for line in report.left_alone:
        say(f"synth: {line}", errors)
    if report.skipped:
        say(f"synth: {counted(len(report.skipped), 'part', 'parts')} of the documents could not be read", errors)
    for line in quota_lines(report):
        say(f"synth: {line}", errors)


def quota_lines(report: SynthReport) -> list[str]:
    remedy = "; sample more passages, or lower the quota" if report.asked_all else " so far"
    return [
        f"{model}: {drawn} queries of the {quota} of its quota{remedy}"
        for model, (drawn, quota) in report.short.items()
    ]


class Bars:
    def __init__(self) -> None:
        from rich import progress as rich_progress  # late: only a terminal needs it

        self._progress = rich_progress.Progress(
            rich_progress.TextColumn("{task.description:<10}", markup=False),  # so that a name is not read as a link
            rich_progress.BarColumn(bar_width=24),
            rich_progress.MofNCompleteColumn(),
            rich_progress.TextColumn("{task.fields[failed]} failed"),
            rich_progress.TextColumn("{task.fields[rate]}"),
            rich_progress.TextColumn("{task.fields[spent]}"),
            rich_progress.TimeRemainingColumn(),
            console=errors,
        )
        self._bars: dict[str, Bar] = {}
        self._counted: dict[str, int] = {}
        self._drawn = 0.0

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._draw()
        self._progress.stop()

    def begin(self, task: str, wanted: int) -> None:
        fields: dict[str, Any] = {"failed": 0, "cost": 0.0, "unknown": False, "rate": "-/s", "spent": MONEY.write(0.0)}
        self._progress.add_task(printable(str(task)), total=wanted, **fields)
        self._bars[task] = self._progress.tasks[-1]

    def more(self, task: str, wanted: int) -> None:
        bar = self._bars[task]
        self._progress.update(bar.id, total=(bar.total or 0) + wanted)

    def count(self, task: str, kind: SettledKind, cost_usd: float | None) -> None:
        bar = self._bars[task]
        bar.fields["failed"] += kind == "failed"
        bar.fields["cost"] += cost_usd or 0.0
        bar.fields["unknown"] |= cost_usd is None and kind in ("judged", "failed")
        self._counted[task] = self._counted.get(task, 0) + 1
        if time.monotonic() > self._drawn + _DRAWN_S:
            self._draw()

    def _draw(self) -> None:
        for task, number in self._counted.items():
            bar = self._bars[task]
            self._progress.advance(bar.id, number)
            bar.fields["rate"] = "-/s" if bar.speed is None else f"{bar.speed:.1f}/s"
            cost = bar.fields["cost"]
            bar.fields["spent"] = MISSING if bar.fields["unknown"] and not cost else MONEY.write(cost)
        self._counted.clear()
        self._drawn = time.monotonic()
