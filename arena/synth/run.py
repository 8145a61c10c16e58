"""``ragarena synth`` as a function: documents -> passages -> queries of several models -> the file of queries."""

from __future__ import annotations

from collections.abc import Callable

from arena.runtime.ledger import Progress
from arena.synth.config import SynthConfig
from arena.synth.report import SynthReport
from judges.types import CallTrace


def synthesise(
    config: SynthConfig,
    progress: Progress,
    *,
    retry_failed: bool = False,
    trace: Callable[[CallTrace], None] | None = None,
) -> SynthReport:
    """Make queries of documents, keep every reply in the store, and write the queries to ``config.synth.out``.

    What the store knows is not asked again: a run that was killed goes on, and the same configuration
    gives the same file. Where ``config.synth.reviewed`` names a file, nobody is asked: the queries are drawn from what
    people accepted.

    Args:
        config: what to make of which documents.
        progress: is told of every passage and every query that is asked about.
        retry_failed: also ask again where replies stayed outside their contract.
        trace: is told of every call.

    Returns:
        The report; ``complete`` is false where a file was skipped, a judgment is missing, or a quota is not filled.

    Raises:
        InputError: documents, examples, prompts, judges or the reviewed file cannot be used, or no document has text.
        StoreError: the store cannot be written.
    """
    raise NotImplementedError
