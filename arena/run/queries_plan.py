"""Plans ``make queries``: counts the calls of the writing models and the checking judge, without sending a request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from arena.data.corpus import CorpusReading
from arena.run.planner import PlannedCalls, Planner
from arena.stages.queries import QueriesStage, read_reviewed
from arena.stages.queries_config import SynthConfig
from arena.store import Store, Wanted, missing
from judges.types import Task


class PlannedQueries(Struct, frozen=True):
    """The planned calls of the models that write queries and the judge that checks them.

    Attributes:
        rows: the calls if every query is usable.
        notes: assumptions behind the figures.
        queries: maximum number of queries written.
        most: the calls if every query must be checked to fill the quotas; ``None`` if ``rows`` already says so.
    """

    rows: list[PlannedCalls]
    notes: list[str]
    queries: int = 0
    most: list[PlannedCalls] | None = None


def plan_synth(config: SynthConfig) -> PlannedQueries:
    """Count the calls needed to write and check queries.

    Raises:
        InputError: documents, examples or prompts cannot be used, or no document has text.
    """
    section = config.synth
    if section.reviewed is not None:
        number = len(read_reviewed(section.reviewed).queries)
        return PlannedQueries([], [f"queries are drawn from {section.reviewed}: nobody is asked"], number)
    reading = CorpusReading()
    stage = QueriesStage(config, reading)
    store = None if missing(config.store) else Store.open(config.store)
    try:
        planner = Planner(stage, {name: config.judges[name] for name in section.judges()}, store)
        wants: Sequence[Wanted] = stage.wants()
        while wants:
            planner.walk(wants)
            wants = stage.next_checks()
        rows = planner.rows()
    finally:
        if store is not None:
            store.close()
    usable = Counter(each.generator for each in stage.candidates if not each.dropped)
    number = sum(min(count, section.quotas.get(model, count)) for model, count in usable.items())
    most = _checking_all(rows, usable.total())
    return PlannedQueries(rows, [*_notes(stage, reading, rows), *planner.notes], number, most)


def _checking_all(rows: Sequence[PlannedCalls], candidates: int) -> list[PlannedCalls] | None:
    """The planned calls if every candidate query is checked, at the mean cost of the planned checks."""
    return [_with_calls(row, candidates - row.known) for row in rows] if _checks(rows, candidates) else None


def _checks(rows: Sequence[PlannedCalls], candidates: int) -> bool:
    return any(row.task is Task.ANSWERABLE and row.calls and row.wanted < candidates for row in rows)


def _with_calls(row: PlannedCalls, calls: int) -> PlannedCalls:
    if row.task is not Task.ANSWERABLE or not row.calls:
        return row
    factor = calls / row.calls
    return replace(
        row,
        wanted=row.known + calls,
        calls=calls,
        input_tokens=round(row.input_tokens * factor),
        output_tokens=round(row.output_tokens * factor),
        cost_usd=None if row.cost_usd is None else row.cost_usd * factor,
        seconds=None if row.seconds is None else row.seconds * factor,
    )


def _notes(stage: QueriesStage, reading: CorpusReading, rows: Sequence[PlannedCalls]) -> Iterator[str]:
    section = stage.config.synth
    wanted = ", ".join(f"{model} {quota}" for model, quota in section.quotas.items())
    quotas = f", for quotas of {wanted}" if wanted else ""
    asked = f"passages asked about: {len(stage.passages)} of {reading.passages} (documents: {reading.documents})"
    yield f"synth: {asked}; about each up to {section.per_passage} queries of each model{quotas}"
    if reading.skipped:
        yield f"synth: parts of documents that cannot be read: {len(reading.skipped)}; 'ragleague documents' lists them"
    most = Counter(each.generator for each in stage.candidates if not each.dropped)
    for model, quota in section.quotas.items():
        if most[model] < quota:
            yield (
                f"synth: {model} can write {most[model]} queries at most, fewer than its quota of {quota}; "
                "sample more passages, or lower the quota"
            )
    if any(row.calls for row in rows):
        yield (
            "synth: queries that are not written yet count as many as a model may write and as usable; each that is "
            "dropped, or that its passage does not answer, makes one more check"
        )
