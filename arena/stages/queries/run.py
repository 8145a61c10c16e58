"""``ragleague synth`` as a function: documents -> passages -> queries of several models -> the file of queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from arena.run.ledger import Progress
from arena.run.recorder import Recorder
from arena.stages.queries.asking import SynthPrompting, ask
from arena.stages.queries.config import SynthConfig
from arena.stages.queries.draw import by_quota, drawn
from arena.stages.queries.files import read_reviewed, write_queries, write_review, written
from arena.stages.queries.passages import Reading, read_examples, read_passages, sampled_passages
from arena.stages.queries.report import SynthReport, described
from judges.types import CallTrace


def synthesise(
    config: SynthConfig,
    progress: Progress,
    *,
    retry_failed: bool = False,
    trace: Callable[[CallTrace], None] | None = None,
    part_of: Recorder | None = None,
) -> SynthReport:
    """Make queries of documents, keep every reply in the store, and write the queries to ``config.synth.out``.

    What the store knows is not asked again: a run that was killed goes on, and the same configuration gives the same
    file. Where ``config.synth.reviewed`` names a file, nobody is asked and no document is read: the queries are drawn
    from what people accepted.

    Args:
        config: what to make of which documents.
        progress: is told of every passage and every query that is asked about.
        retry_failed: also ask again where replies stayed outside their contract.
        trace: is told of every call.
        part_of: a tournament's run that goes on with other stages.

    Returns:
        The report; ``complete`` is false where a file was skipped, a judgment is missing, or a quota is not filled.

    Raises:
        InputError: documents, examples, prompts, judges or the reviewed file cannot be used, or no document has text.
        StoreError: the store cannot be written.
    """
    section = config.synth
    if section.reviewed is not None:
        return _from_reviewed(config, section.reviewed)
    examples, seed = read_examples(section.examples), section.sample.seed
    reading = Reading()
    passages = read_passages(section.documents, section.passages, section.limits, reading)
    sampled = sampled_passages(passages, section.sample.passages, seed)
    prompting = SynthPrompting(config, {passage.doc_id: passage for passage in sampled}, examples)
    asked = ask(prompting, progress, retry_failed=retry_failed, trace=trace, part_of=part_of)
    usable = [each for each in asked.candidates if not each.dropped]
    chosen = by_quota(usable, section.quotas, lambda each: each.generator)
    queries = [written(each, seed) for each in chosen]
    write_queries(section.out, queries)
    review = ""
    if section.review is not None:
        ids = {each.query_id for each in chosen}
        fresh = write_review(section.review, asked.candidates, ids, seed)
        review = "written" if fresh else "left as it is, since it holds decisions"
    dropped: dict[str, Counter[str]] = {}
    for each in asked.candidates:
        if each.dropped:
            dropped.setdefault(each.dropped, Counter())[each.generator] += 1
    return described(
        queries,
        examples,
        section,
        summary=asked.summary,
        reading=reading,
        sampled=len(sampled),
        generated=Counter(each.generator for each in asked.candidates),
        dropped=dropped,
        review=review,
    )


def _from_reviewed(config: SynthConfig, path: Path) -> SynthReport:
    section = config.synth
    reviewed = read_reviewed(path)
    ordered = drawn(reviewed.queries, section.sample.seed, lambda query: query.query_id)
    queries = by_quota(ordered, section.quotas, lambda query: query.generator)
    write_queries(section.out, queries)
    return described(
        queries,
        read_examples(section.examples),
        section,
        generated=reviewed.generated,
        dropped={"rejected": reviewed.rejected} if reviewed.rejected else {},
        review="read",
        undecided=reviewed.undecided,
    )
