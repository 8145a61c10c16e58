"""Asks models for queries, and a judge whether passages answer them; every reply is kept in the store."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from arena.data.dataset import Dataset
from arena.run.interrupts import run_to_end, stopping_on_signals
from arena.run.ledger import Kind, Progress, RunSummary, StageSummary, judge_summary, stopped_lines
from arena.run.queue import Lookup, Queue
from arena.run.recorder import Recorder
from arena.stages.base import Stage
from arena.stages.queries.candidates import Candidate, candidate, drawn, filtered, to_be_checked
from arena.stages.queries.config import SynthConfig
from arena.store import Result, Store, Wanted
from arena.store.runners import Runner
from judges.judge import Judge, Stop
from judges.prompts import PromptTemplate, load_prompt
from judges.prompts.tasks import answerable_prompt, queries_prompt
from judges.types import CallTrace, Document, Judgment, Prompt, Query, Task
from retrieval_eval.data.recordings import read_recordings


@dataclass
class SynthPrompting(Stage):
    """Renders what is wanted: queries about a passage, and answers to whether a passage answers a query."""

    config: SynthConfig
    passages: Mapping[str, Document]
    examples: Sequence[str]
    candidates: dict[str, Candidate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        section = self.config.synth
        self.writing: PromptTemplate = load_prompt(section.prompt, Task.QUERIES)
        self.checking: PromptTemplate = load_prompt(section.filters.prompt, Task.ANSWERABLE)

    def wants(self) -> list[Wanted]:
        """Each model about each passage."""
        return [
            Wanted(Task.QUERIES, model, passage, "") for passage in self.passages for model in self.config.synth.models
        ]

    def prompt(self, want: Wanted) -> Prompt:
        """The prompt of a want."""
        if want.task is Task.ANSWERABLE:
            asked = self.candidates[want.query_id]
            return answerable_prompt(self.checking, Query(asked.query_id, asked.text), asked.passage)
        section, passage = self.config.synth, self.passages[want.query_id]
        shown = drawn(self.examples, section.sample.seed, lambda text: f"{passage.doc_id}\0{text}")[: section.shots]
        return queries_prompt(self.writing, passage, section.per_passage, shown)

    def typical_tokens(self, want: Wanted) -> int:
        """Tokens of a usual reply."""
        return (self.checking if want.task is Task.ANSWERABLE else self.writing).reply.typical_tokens

    def written(self, results: Iterable[tuple[Wanted, Result]]) -> list[Candidate]:
        """The queries that models wrote, in the order of the draw and with the reasons of those dropped."""
        section, prompt = self.config.synth, f"{self.writing.name}@{self.writing.version}"
        found = [
            candidate(text, self.passages[want.query_id], want.judge, result.model, prompt)
            for want, result in results
            if isinstance(result, Judgment) and isinstance(result.outcome, tuple)
            for text in result.outcome
        ]
        candidates = filtered(found, self.examples, section.sample.seed, section.filters)
        self.candidates.update({each.query_id: each for each in candidates})
        return candidates

    def settings(self) -> dict[str, Any]:
        """What a store keeps of the configuration: all that decides the replies, but no path and no secret."""
        synth = self.config.synth
        kept = synth.model_dump(mode="json", include={"models", "per_passage", "shots", "sample", "passages"})
        kept["prompts"] = {template.name: template.digest for template in (self.writing, self.checking)}
        return {"synth": kept}


@dataclass(frozen=True)
class Asked:
    """All queries that models wrote, in the order of the draw and with the reasons of those dropped, and the run."""

    candidates: Sequence[Candidate]
    summary: RunSummary


def ask(
    prompting: SynthPrompting,
    progress: Progress,
    *,
    retry_failed: bool,
    trace: Callable[[CallTrace], None] | None,
    part_of: Recorder | None = None,
) -> Asked:
    """Have queries written and checked, as far as the store does not know them yet.

    Raises:
        InputError: prompts or judges cannot be used. Nothing was sent then.
        StoreError: the store cannot be written.
    """
    config, stop = prompting.config, Stop()
    wants = prompting.wants()
    prompting.prompt(wants[0])  # a template that fails does so before anything is sent
    names = config.synth.judges()
    judges = {
        name: Judge(name, config.judges[name], read_records=read_recordings, stop=stop, trace=trace) for name in names
    }
    store = Store.create(config.store)
    try:
        data = Dataset({}, {passage.doc_id: passage for passage in prompting.passages.values()})
        store.begin(config.tournament, prompting.settings(), data, wants)
        if part_of is not None:
            part_of.begin(store)
        runner = Runner() if part_of is None else part_of.runner
        lookup = Lookup(config.tournament, prompting, store, judges, runner, retry_failed)
        stopped = threading.Event()
        stop.tell(stopped.set)
        asked = run_to_end(_Asking(prompting, lookup, progress).run(wants, stop))
        if part_of is not None:
            part_of.judged(asked.summary, stopped=stopped.is_set())
        return asked
    finally:
        store.close()


class _Asking:
    """One run: the queries first, then round by round those whose answer the quotas depend on."""

    def __init__(self, prompting: SynthPrompting, lookup: Lookup, progress: Progress) -> None:
        self._prompting, self._lookup, self._progress = prompting, lookup, _OneBar(progress)
        self._stages: dict[Task, StageSummary] = {}

    async def run(self, wants: Sequence[Wanted], stop: Stop) -> Asked:
        started, judges = time.perf_counter(), self._lookup.judges
        try:
            with stopping_on_signals(stop):
                candidates = self._prompting.written((await self._settle(Task.QUERIES, wants)).items())
                if self._prompting.config.synth.filters.answerable is not None:
                    candidates = await self._checked(candidates)
        finally:
            for judge in judges.values():
                await judge.close()
        seconds = time.perf_counter() - started
        summaries = {name: judge_summary(judge, seconds) for name, judge in judges.items()}
        return Asked(candidates, RunSummary(self._stages, summaries, stopped_lines(judges)))

    async def _checked(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        section = self._prompting.config.synth
        assert section.filters.answerable is not None
        checked: dict[str, bool | None] = {}
        details: dict[str, str] = {}
        judge = self._lookup.judges[section.filters.answerable]
        while asked := list(to_be_checked(candidates, section.quotas, checked)):
            wants = [Wanted(Task.ANSWERABLE, judge.name, each.query_id, each.passage.doc_id) for each in asked]
            results: Mapping[Wanted, Result] = {}
            if not judge.halted.is_set():
                await asyncio.to_thread(self._lookup.store.extend, self._lookup.tournament, wants)
                results = await self._settle(Task.ANSWERABLE, wants)
            for want in wants:
                checked[want.query_id], details[want.query_id] = _answered(results.get(want))
        reasons = {False: "unanswerable", None: "unchecked"}
        return [
            each.without(reasons[known], details[each.query_id])
            if not (known := checked.get(each.query_id, True))
            else each
            for each in candidates
        ]

    async def _settle(self, task: Task, wants: Sequence[Wanted]) -> dict[Wanted, Result]:
        results: dict[Wanted, Result] = {}
        work = Queue(self._lookup, self._progress, results.__setitem__, lambda _: None)
        work.begin(task, len(wants))
        work.put(wants)
        work.close()
        await work.run()
        await work.count_rest()
        for stage, summary in work.ledger.stages.items():
            before = self._stages.get(stage)
            values = asdict(summary) if before is None else _added(asdict(before), asdict(summary))
            self._stages[stage] = StageSummary(**values)
        return results


def _answered(result: Result | None) -> tuple[bool | None, str]:
    """Whether a passage answers a query, ``None`` where that is not known; and why."""
    if isinstance(result, Judgment):
        return result.outcome == 1, result.reason
    return None, "not asked" if result is None else f"{result.cause}: {result.message}"


def _added(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value + right[name] for name, value in left.items()}


class _OneBar:
    """Progress whose stages may begin several times: later rounds add to the first."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._begun: set[str] = set()

    def begin(self, task: str, wanted: int) -> None:
        if task in self._begun:
            self._progress.more(task, wanted)
            return
        self._begun.add(task)
        self._progress.begin(task, wanted)

    def more(self, task: str, wanted: int) -> None:
        self._progress.more(task, wanted)

    def count(self, task: str, kind: Kind, cost_usd: float | None) -> None:
        self._progress.count(task, kind, cost_usd)
