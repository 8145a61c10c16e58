"""One stage of a run: every want is found in the store, asked of its judge, or left for later."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from arena.prompting import Prompting
from arena.store import IDENTICAL, Result, Store, Wanted, chunks
from judges.errors import RETRIED_NEXT_RUN, ReplyError
from judges.identity import judgment_id
from judges.parse import parse_reply
from judges.runtime import Judge, Request, Stop, judge_all
from judges.types import JudgeFailure, Judgment, Prompt, Task

_PREPARED_AT_ONCE = 64
"""Prompts rendered and looked up together: enough to spare the store, few enough not to hold up replies."""

Kind: TypeAlias = Literal["judged", "known", "failed"]


class Progress(Protocol):
    """Told of what happens, to show it."""

    def begin(self, task: Task, wanted: int) -> None:
        """A stage begins."""

    def count(self, task: Task, kind: Kind, cost_usd: float | None) -> None:
        """One more want is ``judged`` by a call, ``known`` without one, or ``failed``."""


@dataclass(slots=True)
class StageSummary:
    """What became of a stage's wants.

    Attributes:
        wanted: all of them.
        judged: by a call of this run.
        known: without a call: judged earlier, the same texts as another want, or equal answers.
        failed: no judgment, and asking again would need ``retry_failed``; or a call of this run that failed.
        calls: requests sent, attempts included.
        cost_usd: of this run's calls, as far as prices and tokens are known.
        cost_unknown: results of this run without a known cost.
    """

    wanted: int
    judged: int = 0
    known: int = 0
    failed: int = 0
    calls: int = 0
    cost_usd: float = 0.0
    cost_unknown: int = 0

    @property
    def left(self) -> int:
        """Not asked: a judge stopped, money spent, a stop requested, or documents not labelled yet."""
        return self.wanted - self.judged - self.known - self.failed


@dataclass(slots=True)
class RunSummary:
    """What a run did; ``stopped`` holds a line for each judge that could not go on."""

    stages: dict[Task, StageSummary] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every want of the stages that were asked for has a judgment."""
        return all(stage.failed + stage.left == 0 for stage in self.stages.values())


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A want whose judgment's id is known, with the result where the store has one; equal answers need no prompt."""

    judgment_id: str
    prompt: Prompt | None
    known: Result | None


@dataclass
class StageRunner:
    """Runs the stages of one tournament, one after another, on one store."""

    tournament: str
    prompting: Prompting
    store: Store
    judges: dict[str, Judge]
    progress: Progress
    retry_failed: bool
    summary: RunSummary = field(default_factory=RunSummary)
    _ledgers: dict[Task, _Ledger] = field(default_factory=dict)

    async def judge(self, task: Task, stop: Stop) -> None:
        """Ask for everything of a stage that the store does not know."""
        wants = self.wants(task)
        self.begin(task, len(wants))
        await self.ask(task, wants, stop)

    def begin(self, task: Task, at_most: int) -> None:
        """Show that a stage begins, whose wants then come by ``ask``, all at once or in batches."""
        self._ledgers[task] = _Ledger(task, StageSummary(0), self.progress)
        self.summary.stages[task] = self._ledgers[task].stage
        self.progress.begin(task, at_most)

    async def ask(self, task: Task, wants: Sequence[Wanted], stop: Stop) -> None:
        """Ask for those of a stage's wants that the store does not know."""
        ledger, by_judge = self._ledgers[task], _by_judge(wants)
        ledger.stage.wanted += len(wants)
        writer = _Writer(self.store, ledger)
        requests = {name: self._missing(wants, ledger) for name, wants in by_judge.items()}
        writing = asyncio.create_task(writer.work())
        try:
            await judge_all(requests, self.judges, writer.put, stop)
        finally:
            await writer.end()
            await writing
        for rest in requests.values():
            for _ in rest:  # nobody is asked any more, but what the store knows is counted and linked
                pass
        self._note_stopped()
        self._learn_labels(task)

    def find_again(self, task: Task, wants: Sequence[Wanted]) -> None:
        """Link a stage's wants to what the store knows, without asking."""
        for chunk in chunks(wants, _PREPARED_AT_ONCE):
            self._prepare(chunk)
        self._learn_labels(task)

    def wants(self, task: Task) -> list[Wanted]:
        """All that a stage needs judged."""
        return [want for want in self.prompting.wants() if want.task is task]

    def _missing(self, wants: Sequence[Wanted], ledger: _Ledger) -> Iterator[Request]:
        """The requests that need a call; counts all others on the way."""
        for chunk in chunks(wants, _PREPARED_AT_ONCE):
            for prepared in self._prepare(chunk):
                known = self._parsed_anew(prepared) if isinstance(prepared.known, JudgeFailure) else prepared.known
                if isinstance(known, Judgment):
                    ledger.count("known")
                elif known is not None and known.cause not in RETRIED_NEXT_RUN and not self.retry_failed:
                    ledger.count("failed")
                elif prepared.prompt is not None and ledger.is_first(prepared.judgment_id):
                    yield Request(prepared.judgment_id, prepared.prompt)

    def _prepare(self, wants: Sequence[Wanted]) -> list[_Prepared]:
        """Find ids and results, and link the wants to them. Wants that wait for labels are left out."""
        found = self._identified(wants)
        known = self.store.results([ident for _, ident, _ in found])
        self.store.assign(self.tournament, [(want, ident) for want, ident, _ in found])
        return [_Prepared(ident, prompt, known.get(ident)) for _, ident, prompt in found]

    def results(self, wants: Sequence[Wanted]) -> list[tuple[Wanted, Result | None]]:
        """What the store knows of these wants by now; ``None`` where that is nothing."""
        results: dict[Wanted, Result | None] = dict.fromkeys(wants)
        for chunk in chunks(wants, _PREPARED_AT_ONCE):
            found = self._identified(chunk)
            known = self.store.results([ident for _, ident, _ in found])
            results.update((want, known.get(ident)) for want, ident, _ in found)
        return list(results.items())

    def _identified(self, wants: Sequence[Wanted]) -> list[tuple[Wanted, str, Prompt | None]]:
        found: list[tuple[Wanted, str, Prompt | None]] = []
        for want in wants:
            if want.task is Task.PAIRWISE and self.prompting.equal_answers(want):
                found.append((want, IDENTICAL, None))
            elif (prompt := self.prompting.prompt(want)) is not None:
                provider = self.judges[want.judge].provider
                found.append((want, judgment_id(prompt, provider.identity, by_name=provider.judges_names), prompt))
        return found

    def _parsed_anew(self, prepared: _Prepared) -> Result | None:
        """A stored reply that the present parser accepts is a judgment, without a new call."""
        failure = prepared.known
        if not isinstance(failure, JudgeFailure) or failure.cause != "contract" or prepared.prompt is None:
            return failure
        try:
            parsed = parse_reply(failure.reply or "", prepared.prompt.contract, prepared.prompt.inputs)
        except ReplyError:
            return failure
        judgment = Judgment(
            failure.judgment_id,
            parsed.outcome,
            parsed.reason,
            failure.reply or "",
            failure.model,
            failure.usage,
            failure.calls,
            failure.latency_s,
            failure.cost_usd,
            failure.rejected,
        )
        self.store.save([(prepared.prompt.task, prompt_label(prepared.prompt), judgment)])
        return judgment

    def _learn_labels(self, task: Task) -> None:
        if task is Task.RELEVANCE:
            outcomes = self.store.outcomes(self.tournament, task)
            self.prompting.labels = {(want.query_id, want.item): result for want, result in outcomes}

    def _note_stopped(self) -> None:
        for name, judge in self.judges.items():
            reason = str(judge.stopped) if judge.stopped else f"max_cost_usd of {judge.spec.max_cost_usd} is spent"
            line = f"judge {name!r} stopped: {reason}"
            if not judge.may_go_on and line not in self.summary.stopped:
                self.summary.stopped.append(line)


def _by_judge(wants: Sequence[Wanted]) -> dict[str, list[Wanted]]:
    by_judge: dict[str, list[Wanted]] = {}
    for want in wants:
        by_judge.setdefault(want.judge, []).append(want)
    return by_judge


class _Ledger:
    """Counts the wants of one stage; several wants may share one judgment."""

    def __init__(self, task: Task, stage: StageSummary, progress: Progress) -> None:
        self.task, self.stage, self._progress = task, stage, progress
        self._waiting: dict[str, int] = {}
        self._done: dict[str, Kind] = {}

    def count(self, kind: Kind, cost_usd: float | None = None) -> None:
        setattr(self.stage, kind, getattr(self.stage, kind) + 1)
        self._progress.count(self.task, kind, cost_usd)

    def is_first(self, ident: str) -> bool:
        """Whether nothing in this run asked for this judgment before; if not, the want is counted with the first."""
        if ident in self._done:
            self.count("failed" if self._done[ident] == "failed" else "known")
            return False
        self._waiting[ident] = self._waiting.get(ident, 0) + 1
        return self._waiting[ident] == 1

    def settle(self, result: Result) -> None:
        """Count a result that is safely stored, for every want that waits for it."""
        kind: Kind = "judged" if isinstance(result, Judgment) else "failed"
        self._done[result.judgment_id] = kind
        self.stage.calls += result.calls
        self.stage.cost_usd += result.cost_usd or 0.0
        self.stage.cost_unknown += result.cost_usd is None
        self.count(kind, result.cost_usd)
        for _ in range(self._waiting.pop(result.judgment_id, 1) - 1):
            self.count("failed" if kind == "failed" else "known")


@dataclass(frozen=True, slots=True)
class _Arrived:
    """A result on its way into the store; ``kept`` is done once it is committed."""

    task: Task
    label: str
    result: Result
    kept: asyncio.Future[None]


class _Writer:
    """Commits results as they come: whatever has arrived while the last commit ran goes into the next.

    Whoever puts a result waits until it is committed, so that a judge is asked the next question only when its last
    reply is safe: a process killed at any moment loses the calls in flight and nothing else.
    """

    def __init__(self, store: Store, ledger: _Ledger) -> None:
        self._store, self._ledger = store, ledger
        self._arrived: asyncio.Queue[_Arrived | None] = asyncio.Queue()

    async def put(self, _judge: str, request: Request, result: Result) -> None:
        kept = asyncio.get_running_loop().create_future()
        self._arrived.put_nowait(_Arrived(request.prompt.task, prompt_label(request.prompt), result, kept))
        await kept

    async def end(self) -> None:
        await self._arrived.put(None)

    async def work(self) -> None:
        ended = False
        while not ended:
            batch = [await self._arrived.get()]
            while not self._arrived.empty():
                batch.append(self._arrived.get_nowait())
            ended = batch[-1] is None
            results = [entry for entry in batch if entry is not None]
            if results:
                await self._keep(results)

    async def _keep(self, arrived: Sequence[_Arrived]) -> None:
        try:
            await asyncio.to_thread(self._store.save, [(entry.task, entry.label, entry.result) for entry in arrived])
        except Exception as error:  # whatever it is, whoever waits must learn of it
            for entry in arrived:
                if not entry.kept.done():
                    entry.kept.set_exception(error)
            return
        for entry in arrived:
            self._ledger.settle(entry.result)
            if not entry.kept.done():  # who waited may have been cancelled
                entry.kept.set_result(None)


def prompt_label(prompt: Prompt) -> str:
    """``name@version``, as the store keeps it."""
    return f"{prompt.name}@{prompt.version}"


@contextlib.contextmanager
def stopping_on_ctrl_c(stop: Stop) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) finishes what is in flight, the second stops at once."""
    loop = asyncio.get_running_loop()
    handled: list[signal.Signals] = []

    def first() -> None:
        stop.request()
        restore()

    def restore() -> None:
        while handled:
            loop.remove_signal_handler(handled.pop())

    if threading.current_thread() is threading.main_thread():
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C stops at once
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, first)
                handled.append(number)
    try:
        yield
    finally:
        restore()
