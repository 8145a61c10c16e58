"""What became of the queries that agents were asked, a line each."""

from __future__ import annotations

from arena.agents.summary import AgentsRun, AgentSummary
from arena.cli.console import errors, say
from arena.present.numbers import MONEY, counted

_NAMED = 3
"""Files that could not be read that are named."""


def print_agents(run: AgentsRun) -> None:
    """One line per agent on standard error, what could not be read of the corpus, and what to know of the agents."""
    if run.corpus is not None:
        _print_corpus(run)
    for name, summary in run.agents.items():
        say(f"agent {name}: {_words(summary)}", errors)
        if summary.stopped:
            say(f"agent {name!r} stopped: {summary.stopped}", errors)
    for note in dict.fromkeys(note for agent in run.declared for note in agent.notes):
        say(f"note: {note}", errors)
    if not run.complete:
        say("incomplete: run again to ask for the missing answers", errors)


def _words(own: AgentSummary) -> str:
    causes = ", ".join(f"{cause} {count}" for cause, count in own.causes.items())
    failed = f"{own.failed} failed" + (f" ({causes})" if causes else "")
    cost = MONEY.write(own.cost_usd) if own.cost_unknown < own.answered + own.failed or not own.calls else ""
    unknown = f"{own.cost_unknown} of unknown cost" if own.cost_unknown and own.calls else ""
    spent = " + ".join(filter(None, (cost, unknown)))
    said = f"{own.answered} answered, {own.known} known, {failed}, {own.left} left of {own.wanted}"
    return f"{said}; {own.calls} calls, {spent}, {own.seconds:.1f} s"


def _print_corpus(run: AgentsRun) -> None:
    corpus = run.corpus
    assert corpus is not None
    twins = f", {corpus.twins:,} that repeat another left out" if corpus.twins else ""
    say(f"corpus: {counted(len(corpus.documents), 'document')} to search{twins}", errors)
    for file in corpus.skipped[:_NAMED]:
        partly = "partly read: " if file.outcome == "partly read" else ""
        say(f"corpus: {file.source} {partly}{file.reason}", errors)
    if len(corpus.skipped) > _NAMED:
        say(
            f"corpus: ... and {len(corpus.skipped) - _NAMED:,} more; 'ragarena documents' lists all",
            errors,
        )
