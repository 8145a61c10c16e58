"""The stage of a run that makes queries of documents, where the configuration asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arena.cli.trace import Trace
    from arena.config.whole import Config
    from arena.history.record import Recorder


def make_queries(config: Config, *, retry_failed: bool, trace: Trace | None, part_of: Recorder) -> bool:
    """Make the queries that are missing, and say what came of it; whether nothing is left to do."""
    from arena.cli.console import Bars, errors, say
    from arena.cli.tournament import print_summary
    from arena.present.numbers import counted
    from arena.synth.config import of_tournament
    from arena.synth.run import synthesise

    own = of_tournament(config)
    with Bars(shown=errors.is_terminal) as bars:
        report = synthesise(own, bars, retry_failed=retry_failed, trace=trace, part_of=part_of)
    if report.summary is not None:
        print_summary(report.summary)
    kept = counted(sum(report.kept.values()), "query", "queries")
    say(f"synth: {kept} written to {own.synth.out}; 'ragarena synth' says more", errors)
    if report.skipped:
        say(f"synth: {counted(len(report.skipped), 'part', 'parts')} of the documents could not be read", errors)
    for model, (found, quota) in report.short.items():
        say(f"synth: {model} has {found} queries of the {quota} of its quota", errors)
    return report.complete
