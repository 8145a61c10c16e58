"""What making queries would take: the calls of each model and of the judge of answers. Nothing is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from arena.data.corpus import Reading
from arena.run.planner import PlannedCalls, Planner
from arena.stages.queries.config import SynthConfig
from arena.stages.queries.stage import QueriesStage
from arena.store import Store, Wanted, missing


def plan_synth(config: SynthConfig) -> tuple[list[PlannedCalls], list[str]]:
    """The calls of each model and of the judge of answers, and what the figures assume.

    Raises:
        InputError: documents, examples or prompts cannot be used, or no document has text.
    """
    section = config.synth
    if section.reviewed is not None:
        return [], [f"queries are drawn from {section.reviewed}: nobody is asked"]
    reading = Reading()
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
    return rows, [*_notes(stage, reading, rows), *planner.notes]


def _notes(stage: QueriesStage, reading: Reading, rows: Sequence[PlannedCalls]) -> Iterator[str]:
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
                f"synth: {model} comes to {most[model]} queries at most, fewer than the {quota} of its quota; "
                "sample more passages, or lower the quota"
            )
    if any(row.calls for row in rows):
        yield (
            "synth: queries that are not written yet count as many as a model may write and as usable; each that is "
            "dropped, or that its passage does not answer, makes one more check"
        )
