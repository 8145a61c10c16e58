"""What each part of a run came to, as lines on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from arena.cli.console import errors, say
from arena.present.numbers import MONEY, counted
from arena.run.ledger import RunSummary
from arena.run.pipeline import RunPart
from judges.types import Task

if TYPE_CHECKING:
    from arena.run.answers import AgentsRun, AgentSummary
    from arena.run.queries import SynthReport

_NAMED: Final = 3
"""Files that could not be read that are named."""


def print_part(part: RunPart) -> None:
    """Say what queries, agents or judges came to."""
    if isinstance(part, RunSummary):
        print_summary(part)
        return
    from arena.run.answers import AgentsRun

    if isinstance(part, AgentsRun):
        _print_agents(part)
    else:
        _print_queries(part)


def print_summary(summary: RunSummary, option: str = "") -> None:
    """One line per stage on standard error, one per judge that was asked, and one per judge that stopped.

    ``option`` is what running the command again takes.
    """
    for note in summary.notes:
        say(f"note: {note}", errors)
    for task, stage in summary.stages.items():
        cost = MONEY.write(stage.cost_usd) + (f" + {stage.cost_unknown} of unknown cost" if stage.cost_unknown else "")
        counts = f"{stage.judged} judged, {stage.known} needed no call, {stage.failed} failed"
        errors.print(f"{task.value}: {counts}, {stage.left} left of {stage.wanted}; {stage.calls} calls, {cost}")
        if stage.changed_lists:
            told_by = {Task.QUESTIONS: "make bank", Task.NUGGETS: "make nuggets"}[task]
            errors.print(
                f"{task.value}: lists shorter than asked for, or with texts left out: {stage.changed_lists}; "
                f"'ragleague {told_by}' says which"
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
        errors.print(f"incomplete: {summary.next_step_with(option)}")


def _print_agents(run: AgentsRun) -> None:
    """One line per agent on standard error, what could not be read of the corpus, and what to know of the agents."""
    if (corpus := run.corpus) is not None:
        twins = f", {corpus.twins:,} that repeat another left out" if corpus.twins else ""
        say(f"corpus: {counted(len(corpus.documents), 'document')} to search{twins}", errors)
        for file in corpus.skipped[:_NAMED]:
            partly = "partly read: " if file.outcome == "partly read" else ""
            say(f"corpus: {file.source} {partly}{file.reason}", errors)
        if (more := len(corpus.skipped) - _NAMED) > 0:
            say(f"corpus: ... and {more:,} more; 'ragleague documents' lists all", errors)
    for name, summary in run.agents.items():
        say(f"agent {name}: {_words(summary)}", errors)
        if summary.stopped:
            say(f"agent {name!r} stopped: {summary.stopped}", errors)
    for line in run.silent:
        say(line, errors)
    for note in dict.fromkeys(note for agent in run.declared for note in agent.notes):
        say(f"note: {note}", errors)
    if not run.complete:
        say(f"incomplete: {run.next_step}", errors)


def _words(own: AgentSummary) -> str:
    causes = ", ".join(f"{cause} {count}" for cause, count in own.causes.items())
    failed = f"{own.failed} failed" + (f" ({causes})" if causes else "")
    cost = MONEY.write(own.cost_usd) if own.cost_unknown < own.answered + own.failed or not own.calls else ""
    unknown = f"{own.cost_unknown} of unknown cost" if own.cost_unknown and own.calls else ""
    spent = " + ".join(filter(None, (cost, unknown)))
    said = f"{own.answered} answered, {own.known} needed no call, {failed}, {own.left} left of {own.wanted}"
    return f"{said}; {own.calls} calls, {spent}, {own.seconds:.1f} s"


def _print_queries(report: SynthReport) -> None:
    """How many queries were made, and what is missing."""
    if report.summary is not None:
        print_summary(report.summary)
    kept = counted(sum(report.kept.values()), "query", "queries")
    say(f"synth: {kept} drawn; 'ragleague make queries' says more", errors)
    for line in report.left_alone:
        say(f"synth: {line}", errors)
    if report.skipped:
        say(f"synth: {counted(len(report.skipped), 'part', 'parts')} of the documents could not be read", errors)
    for line in lines_of_short(report):
        say(f"synth: {line}", errors)


def lines_of_short(report: SynthReport) -> list[str]:
    """A line for each model with fewer queries than its quota."""
    to_do = "; sample more passages, or lower the quota" if report.asked_all else " so far"
    return [
        f"{model}: {kept} queries of the {quota} of its quota{to_do}" for model, (kept, quota) in report.short.items()
    ]
