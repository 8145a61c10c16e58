"""Writes synthetic queries: reads documents, lets models write queries about them, and writes a file and a report."""

from __future__ import annotations

import asyncio
import statistics
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from arena.config.schema import SynthSection
from arena.data.corpus import CorpusReading
from arena.data.dataset import Dataset
from arena.run.interrupts import run_to_end
from arena.run.ledger import Progress, RunSummary, summary_of
from arena.run.queue import Lookup, Queue
from arena.run.recorder import Recorder
from arena.stages.queries import (
    NONE,
    WRITTEN,
    QueriesStage,
    WrittenFiles,
    WrittenQuery,
    chosen,
    drawn,
    group_of,
    read_examples,
    read_reviewed,
    write_queries,
    write_review,
    written,
)
from arena.stages.queries_config import SynthConfig
from arena.store import Result, Store, Wanted
from arena.store.runners import Runner
from judges.judge import Judge, Stop
from judges.providers.lexical import content_terms
from judges.types import CallTrace
from judges.writing import count_words
from retrieval_eval.data.trec import read_recordings
from retrieval_eval.documents.passages import Twin
from retrieval_eval.documents.types import FileNote


class Spread(Struct, frozen=True):
    n: int
    mean: float
    least: float
    median: float
    greatest: float


class SynthReport(Struct, frozen=True):
    """Counts and statistics on synthetic queries.

    Attributes:
        summary: calls and costs; ``None`` if the queries come from a reviewed file.
        skipped, notes: see ``CorpusReading``.
        other_files: number of files in unsupported formats, by file extension.
        passages: number of passages, without near-duplicates.
        sampled: number of passages that models wrote queries about.
        twins: passages left out as near-duplicates.
        generated: number of queries that each model wrote.
        dropped: number of dropped queries, by reason and model.
        kept: number of queries selected for the file, by model.
        wanted: quota of each model, the number of its queries that the file should have.
        by_source: number of queries in the file, by the document they are about.
        lengths: number of words of the queries in the file; ``None`` if the file has no query.
        example_lengths: number of words of the experts' example queries.
        similarity: similarity of each query in the file to its most similar example query, as Jaccard index of word
            stems without function words.
        example_similarity: similarity of each example query to its most similar other example query.
        left_alone: a line for each file that was not written, with the reason.
        review: the outcome of writing or reading the review file; empty if none was requested.
        undecided: number of rows of the reviewed file for which people entered no decision.
    """

    summary: RunSummary | None
    documents: int = 0
    skipped: Sequence[FileNote] = ()
    other_files: Mapping[str, int] = field(default_factory=dict)
    passages: int = 0
    sampled: int = 0
    twins: Sequence[Twin] = ()
    generated: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    kept: Mapping[str, int] = field(default_factory=dict)
    wanted: Mapping[str, int] = field(default_factory=dict)
    by_source: Mapping[str, int] = field(default_factory=dict)
    lengths: Spread | None = None
    example_lengths: Spread | None = None
    similarity: Spread | None = None
    example_similarity: Spread | None = None
    left_alone: Sequence[str] = ()
    review: str = ""
    undecided: int = 0
    notes: Sequence[FileNote] = ()

    @property
    def short(self) -> dict[str, tuple[int, int]]:
        """Models with fewer queries than their quota, each with the number of its queries and its quota."""
        return {
            model: (self.kept.get(model, 0), quota)
            for model, quota in self.wanted.items()
            if self.kept.get(model, 0) < quota
        }

    @property
    def asked_all(self) -> bool:
        """Whether all judgments exist; only further passages can then fill a quota."""
        return self.summary is None or self.summary.complete

    @property
    def complete(self) -> bool:
        return not self.skipped and not self.short and self.asked_all


def synthesise(
    config: SynthConfig,
    progress: Progress,
    *,
    retry_failed: bool = False,
    trace: Callable[[CallTrace], None] | None = None,
    part_of: Recorder | None = None,
) -> SynthReport:
    """Write synthetic queries to ``config.synth.out``; every model reply goes to the store.

    Stored replies are reused: an interrupted run continues, and the same configuration writes the same file. If
    ``config.synth.reviewed`` names a file, the queries are drawn from the accepted rows of that file; no model is
    called and no document is read. ``part_of`` records the enclosing run of a tournament, if there is one.
    """
    section = config.synth
    if section.reviewed is not None:
        return _from_reviewed(config, section.reviewed)
    seed, reading = section.sample.seed, CorpusReading()
    stage = QueriesStage(config, reading)
    summary = _ask(stage, progress, retry_failed=retry_failed, trace=trace, part_of=part_of)
    candidates = stage.checked()
    usable = [each for each in candidates if not each.dropped]
    selected = chosen(usable, section)
    queries = [written(each, seed) for each in selected]
    with closing(Store.create(config.store)) as store:
        files = WrittenFiles(store, config.tournament)
        known = bool(queries) or summary.complete  # an empty list from an incomplete run is not written
        out, review = write_queries(files, section.out, queries) if known else NONE, ""
        if section.review is not None:
            ids = {each.query_id for each in selected}
            review = write_review(files, section.review, candidates, ids, seed) if candidates else NONE
    dropped: dict[str, Counter[str]] = {}
    for each in candidates:
        if each.dropped:
            dropped.setdefault(each.dropped, Counter())[group_of(each)] += 1
    return report_on(
        queries,
        stage.examples,
        section,
        summary=summary,
        reading=reading,
        sampled=len(stage.passages),
        generated=Counter(map(group_of, candidates)),
        dropped=dropped,
        left_alone=_left_alone({section.out: out, section.review: review}),
        review=review,
    )


def _left_alone(outcomes: Mapping[Path | None, str]) -> list[str]:
    return [f"{path}: {outcome}" for path, outcome in outcomes.items() if path is not None and outcome != WRITTEN]


def _ask(
    stage: QueriesStage,
    progress: Progress,
    *,
    retry_failed: bool,
    trace: Callable[[CallTrace], None] | None,
    part_of: Recorder | None,
) -> RunSummary:
    config, stop = stage.config, Stop()
    wants = stage.wants()
    stage.prompt(wants[0])  # a template that fails must do so before a call is sent
    judges = {
        name: Judge(name, config.judges[name], read_records=read_recordings, stop=stop, trace=trace)
        for name in config.synth.judges()
    }
    store = Store.create(config.store)
    try:
        store.begin(config.tournament, stage.settings(), Dataset({}, stage.passages), wants)
        if part_of is not None:
            part_of.begin(store)
        runner = Runner() if part_of is None else part_of.runner
        lookup = Lookup(config.tournament, stage, store, judges, runner, retry_failed)
        stopped = threading.Event()
        stop.tell(stopped.set)
        summary = run_to_end(_Rounds(stage, lookup, progress).run(wants, stop))
        if part_of is not None:
            part_of.finish_stages(summary.stages, complete=summary.complete, stopped=stopped.is_set())
        return summary
    finally:
        store.close()


class _Rounds:
    """Lets models write all queries, then lets a judge check as many, round by round, as the quotas need."""

    def __init__(self, stage: QueriesStage, lookup: Lookup, progress: Progress) -> None:
        self._stage, self._lookup = stage, lookup
        self._queue = Queue(lookup, progress, self._settled, self._judge_ended)
        self._open: set[Wanted] = set()
        self._ended: set[str] = set()
        self._changed = asyncio.Event()

    async def run(self, wants: Sequence[Wanted], stop: Stop) -> RunSummary:
        seconds, lookup = await self._queue.finish(self._queue.run(self._drive(wants)), stop), self._lookup
        return summary_of(self._queue.ledger, lookup.judges, seconds, retried=lookup.retry_failed)

    async def _drive(self, wants: Sequence[Wanted]) -> None:
        while wants:
            (task,) = {want.task for want in wants}
            if task in self._queue.ledger.stages:
                self._queue.ledger.want(task, len(wants))
            else:
                self._queue.begin(task, len(wants))
            self._open = set(wants)
            self._queue.put(wants)
            while any(want.judge not in self._ended for want in self._open):
                self._changed.clear()
                await self._changed.wait()
            await self._queue.count_rest()
            wants = self._stage.next_checks()
            while wants and wants[0].judge in self._ended:
                wants = self._stage.next_checks()  # until every candidate left is noted as unchecked
            await asyncio.to_thread(self._lookup.store.extend, self._lookup.tournament, wants)
        self._queue.close()

    def _settled(self, want: Wanted, result: Result) -> None:
        self._stage.after(want, result)
        self._open.discard(want)
        self._changed.set()

    def _judge_ended(self, judge: str) -> None:
        self._ended.add(judge)
        self._changed.set()


def _from_reviewed(config: SynthConfig, path: Path) -> SynthReport:
    section = config.synth
    reviewed = read_reviewed(path)
    ordered = drawn(reviewed.queries, section.sample.seed, lambda query: query.query_id)
    queries = chosen(ordered, section)
    with closing(Store.create(config.store)) as store:
        out = write_queries(WrittenFiles(store, config.tournament), section.out, queries, reviewed=True)
    return report_on(
        queries,
        read_examples(section.examples),
        section,
        generated=reviewed.generated,
        dropped={"rejected": reviewed.rejected} if reviewed.rejected else {},
        left_alone=_left_alone({section.out: out}),
        review="read",
        undecided=reviewed.undecided,
    )


def report_on(
    queries: Sequence[WrittenQuery],
    examples: Sequence[str],
    section: SynthSection,
    *,
    reading: CorpusReading | None = None,
    summary: RunSummary | None = None,
    **counted: Any,
) -> SynthReport:
    """Make the report on the queries in the file; ``counted`` sets further fields of the report."""
    read = reading or CorpusReading()
    texts = [query.text for query in queries]
    stems, example_stems = _stems(texts), _stems(examples)
    return SynthReport(
        summary,
        read.documents,
        tuple(read.skipped),
        read.other_files,
        read.passages,
        twins=tuple(read.twins),
        notes=tuple(read.notes),
        kept=Counter(map(group_of, queries)),
        wanted=section.all_quotas,
        by_source=dict(sorted(Counter(query.provenance.get("source", "") for query in queries).items())),
        lengths=_spread([count_words(text) for text in texts]),
        example_lengths=_spread([count_words(text) for text in examples]),
        similarity=_spread([_nearest(each, example_stems) for each in stems] if examples else []),
        example_similarity=_spread(
            [_nearest(each, example_stems[:at] + example_stems[at + 1 :]) for at, each in enumerate(example_stems)]
            if len(examples) > 1
            else []
        ),
        **counted,
    )


def _stems(texts: Sequence[str]) -> list[frozenset[str]]:
    return [frozenset(content_terms(text)) for text in texts]


def _nearest(stems: frozenset[str], others: Sequence[frozenset[str]]) -> float:
    return max((len(stems & other) / len(stems | other) for other in others if stems | other), default=0.0)


def _spread(values: Sequence[float]) -> Spread | None:
    if not values:
        return None
    return Spread(len(values), statistics.fmean(values), min(values), statistics.median(values), max(values))
