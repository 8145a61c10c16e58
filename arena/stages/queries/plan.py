"""What making queries would ask. Documents are read, and nothing is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from arena.data.corpus import Reading, read_passages
from arena.run.planner import PlannedCalls, Planner
from arena.run.queue import to_be_asked
from arena.stages.queries.asking import SynthPrompting
from arena.stages.queries.candidates import Candidate, candidate, drawn, sampled_passages, to_be_checked
from arena.stages.queries.config import SynthConfig
from arena.stages.queries.files import read_examples
from arena.store import Result, Store, Wanted, missing
from judges.types import Judgment, Prompt, Task

_LIKE_A_QUERY = "a query of as many words as people need to ask for what they want to know"
"""Behind a model's name and a number, so that no two are the same."""


def plan_synth(config: SynthConfig) -> tuple[list[PlannedCalls], list[str]]:
    """The calls of each model and of the judge of answers, and what the figures assume.

    Queries that are not written yet count as many as a model may write, and each as answered by its passage.

    Raises:
        InputError: documents, examples or prompts cannot be used, or no document has text.
    """
    section = config.synth
    if section.reviewed is not None:
        return [], [f"queries are drawn from {section.reviewed}: nobody is asked"]
    examples, reading = read_examples(section.examples), Reading()
    passages = read_passages(section.documents, section.passages, section.limits, reading)
    sampled = sampled_passages(passages, section.sample.passages, section.sample.seed)
    prompting = SynthPrompting(config, {passage.doc_id: passage for passage in sampled}, examples)
    store = None if missing(config.store) else Store.open(config.store)
    try:
        counter = Planner(prompting, {name: config.judges[name] for name in section.judges()}, store)
        candidates = _candidates(prompting, counter.count(prompting.wants()))
        if section.filters.answerable is not None:
            _count_checks(prompting, counter, candidates)
        rows = counter.rows()
    finally:
        if store is not None:
            store.close()
    return rows, [*_notes(config, reading, len(sampled), rows, candidates), *counter.notes]


def _candidates(
    prompting: SynthPrompting, found: Sequence[tuple[Wanted, Prompt | None, Result | None]]
) -> list[Candidate]:
    """What is written, filtered, and a stand-in for each query that may still be, in the order of the draw."""
    section = prompting.config.synth
    written = prompting.written([(want, result) for want, _, result in found if result is not None])
    to_come = [
        candidate(f"{want.judge} {number}: {_LIKE_A_QUERY}", prompting.passages[want.query_id], want.judge, "", "")
        for want, _, result in found
        if to_be_asked(result)
        for number in range(section.per_passage)
    ]
    return drawn([*written, *to_come], section.sample.seed, lambda each: each.query_id)


def _count_checks(prompting: SynthPrompting, counter: Planner, candidates: Sequence[Candidate]) -> None:
    """Round by round as a run goes, where each check that is not known says that the passage answers."""
    section = prompting.config.synth
    assert section.filters.answerable is not None
    prompting.candidates.update({each.query_id: each for each in candidates})
    checked: dict[str, bool | None] = {}
    while asked := list(to_be_checked(candidates, section.quotas, checked)):
        wants = [
            Wanted(Task.ANSWERABLE, section.filters.answerable, each.query_id, each.passage.doc_id) for each in asked
        ]
        for want, _, result in counter.count(wants):
            checked[want.query_id] = result.outcome == 1 if isinstance(result, Judgment) else to_be_asked(result)


def _notes(
    config: SynthConfig, reading: Reading, sampled: int, rows: Sequence[PlannedCalls], candidates: Sequence[Candidate]
) -> Iterator[str]:
    section = config.synth
    wanted = ", ".join(f"{model} {quota}" for model, quota in section.quotas.items())
    quotas = f", for quotas of {wanted}" if wanted else ""
    asked = f"passages asked about: {sampled} of {reading.passages} (documents: {reading.documents})"
    yield f"synth: {asked}; about each up to {section.per_passage} queries of each model{quotas}"
    if reading.skipped:
        yield f"synth: parts of documents that cannot be read: {len(reading.skipped)}; 'ragleague documents' lists them"
    most = Counter(each.generator for each in candidates if not each.dropped)
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
