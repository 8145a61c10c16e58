"""Print summary lines of a run on standard error, for queries, agents and judges."""

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

_LISTED_FILES: Final = 3
"""Maximum number of unreadable files that are listed."""


def print_part(part: RunPart) -> None:
    """Print the summary of one part of a run: queries, agents or judges."""
    if isinstance(part, RunSummary):
        print_summary(part)
        return
    from arena.run.answers import AgentsRun

    if isinstance(part, AgentsRun):
        _print_agents(part)
    else:
        _print_queries(part)


def print_summary(summary: RunSummary, option: str = "") -> None:
    """Print one line per stage, per judge that was called, and per judge that stopped.

    The last line suggests a command to run again; ``option`` is added to this command.
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
        errors.print(f"incomplete: {summary.next_step_with(option)}")


def _print_agents(run: AgentsRun) -> None:
    """Print one line per agent, a list of the corpus files that could not be read, and notes on the agents."""
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
    """Print the number of queries drawn, the number of unread documents, and the models that miss their quota."""
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
    """A line for each model with fewer queries than its quota."""
    remedy = "; sample more passages, or lower the quota" if report.asked_all else " so far"
    return [
        f"{model}: {drawn} queries of the {quota} of its quota{remedy}"
        for model, (drawn, quota) in report.short.items()
    ]
