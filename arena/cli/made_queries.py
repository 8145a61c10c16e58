"""The stage of a run that makes queries of documents, where the configuration asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arena.cli.trace import Trace
    from arena.config import Config


def make_queries(config: Config, *, retry_failed: bool, trace: Trace | None) -> bool:
    """Make the queries that are missing, and say what came of it; whether nothing is left to do."""
    from arena.cli.console import Bars, errors
    from arena.synth.config import SynthConfig
    from arena.synth.run import synthesise

    assert config.synth is not None
    own = SynthConfig(name=config.name, store=config.store, judges=config.judges, synth=config.synth)
    with Bars(shown=errors.is_terminal) as bars:
        report = synthesise(own, bars, retry_failed=retry_failed, trace=trace)
    errors.print(f"synth: {sum(report.kept.values())} queries of {report.sampled} passages")
    return report.complete
