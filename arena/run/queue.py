"""The queue of all stages' planned judgments: looks each up in the store, and asks a judge if it is missing."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from arena.run.assigned import Assigned
from arena.run.interrupts import stopping_early
from arena.run.ledger import Ledger, Progress, failed
from arena.run.writer import MOST_OPEN, Claims, Writer
from arena.stages.base import Stage
from arena.store import Result, Store, Wanted, chunks
from arena.store.runners import Runner
from judges.errors import ReplyError, to_be_asked
from judges.identity import cache_key, judgment_id
from judges.judge import Judge, Request, RequestSource, Respondent, Stop, read_again
from judges.types import JudgeFailure, Judgment, Task

_FEWEST, _USUAL = 16, 64
"""The least number of judgments looked up at once is the judge's concurrency, but within these two bounds."""
_ASKED = (32, _USUAL)
"""Number of judgments looked up in the store at once: 1/32 of the remaining ones, at most 64.
Larger lookups hold Python's lock and delay calls. The number shrinks towards the end, so that processes share the last
judgments: guided self-scheduling, Polychronopoulos and Kuck (1987).
"""
_KNOWN = (4, 256)
"""Number of judgments looked up after a lookup that found all results: 1/4 of the remaining ones, at most 256."""
_JUDGED_AT_ONCE = 1024
"""Number of planned judgments looked up at once, as long as all results were in the store."""
_POLL_S = 0.5
"""Seconds between lookups of judgments that other processes are asking for."""
_LOOKED_UP_AT_ONCE = 256
_AHEAD = 1024
"""Upper limit on a judge's concurrency, by which the queue renders prompts in advance; batches allow far more."""
_FOLLOWERS = 2048
"""Most requests that wait for the call that leads them; more are sent at once, since memory must hold their prompts."""
_LEAST_OPEN = 16
"""Maximum number of unsaved results at low concurrency: local judges are fast, and must not wait for the store."""

_Judged: TypeAlias = tuple[Any, Any]


class QueueSource(Protocol):
    """What a queue needs to ask for results: either judges for judgments, or agents for replies.

    Results have ``calls`` and ``cost_usd``, and a ``cause`` if they are failures; requests have the fields of
    ``judges.judge.Request``.
    """

    @property
    def store(self) -> Store: ...

    @property
    def judges(self) -> Mapping[str, Respondent]: ...

    @property
    def runner(self) -> Runner:
        """The entry in the store for this process, under which it claims judgments."""
        ...

    def judged(self, wants: Sequence[Wanted]) -> list[Any]:
        """Requests with results for those of these planned judgments that are stored, as far as it is quickly seen."""
        ...

    def known(self, wants: Sequence[Wanted]) -> list[Any]:
        """Requests for these planned judgments with their stored results; claims nothing. Thread-safe."""
        ...

    def claimed(self, wants: Sequence[Wanted], tried: Callable[[str], bool]) -> list[Any]:
        """Look up these planned judgments; claim for this process the ones that need a call.

        ``tried`` says whether this run has already tried a judgment, which is then not claimed again.
        """
        ...

    def to_be_asked(self, known: Any) -> bool: ...

    def is_final(self, known: Any) -> bool:
        """Whether a stored failure is final: by default, a run does not retry it."""
        ...

    def save(self, results: Sequence[tuple[Any, Any]]) -> None: ...

    async def close(self) -> None: ...


class Lookup(Struct, frozen=True):
    """Finds the stored judgments of one tournament for a queue, and claims missing ones. Thread-safe."""

    tournament: str
    stages: Stage
    store: Store
    judges: dict[str, Judge]
    runner: Runner
    retry_failed: bool
    assigned: Assigned | None = None

    def identified(self, wants: Iterable[Wanted]) -> list[Request]:
        """Requests for these planned judgments; skips those whose prompt needs labels that do not exist yet."""
        requests: list[Request] = []
        for want in wants:
            if (ident := self.stages.free(want)) is not None:
                requests.append(Request(ident, None, want=want))
            elif (prompt := self.stages.prompt(want)) is not None:
                provider = self.judges[want.judge].provider
                ident = judgment_id(prompt, provider.identity, by_name=provider.judges_names)
                requests.append(Request(ident, prompt, want=want, lead=cache_key(prompt, self.judges[want.judge].spec)))
        return requests

    def judged(self, wants: Sequence[Wanted]) -> list[Request]:
        """The stored judgments among these, by the ids that an earlier run recorded, without rendering prompts."""
        judged = {} if self.assigned is None else self.assigned.judged(wants)
        return [Request(ident, None, judgment, want) for want, (ident, judgment) in judged.items()]

    def known(self, wants: Sequence[Wanted]) -> list[Request]:
        """The stored results of these planned judgments; records the judgments' ids, but claims nothing."""
        judged = self.judged(wants)
        requests = self.identified(_without(wants, judged))
        self.store.assign(self.tournament, [(request.want, request.judgment_id) for request in requests])
        known = self.store.results([request.judgment_id for request in requests])
        return [*judged, *(self._with_result(request, known) for request in requests)]

    def claimed(self, wants: Sequence[Wanted], tried: Callable[[str], bool]) -> list[Request]:
        """Look up these planned judgments; claim for this process the ones that need a call. See ``QueueSource``."""
        requests = self.identified(wants)
        pairs = [(request.want, request.judgment_id) for request in requests]
        known, elsewhere = self.store.claim(self.tournament, pairs, self.runner, self.to_be_asked, tried)
        return [
            replace(request, elsewhere=True) if request.judgment_id in elsewhere else self._with_result(request, known)
            for request in requests
        ]

    def to_be_asked(self, known: Result | None) -> bool:
        return to_be_asked(known) or (self.retry_failed and isinstance(known, JudgeFailure))

    def is_final(self, known: Result) -> bool:
        return not to_be_asked(known)

    def _with_result(self, request: Request, results: Mapping[str, Result]) -> Request:
        """The request with its stored result.

        A stored reply that was rejected is parsed again: if it is valid now, it becomes a judgment without a call.
        """
        known = results.get(request.judgment_id)
        if isinstance(known, JudgeFailure) and known.cause == "contract" and request.prompt is not None:
            with suppress(ReplyError):
                reply = read_again(request.prompt, (*known.rejected, known.reply or ""))
                known = Judgment(
                    known.judgment_id,
                    reply.outcome,
                    reply.reason,
                    known.reply or "",
                    known.model,
                    known.usage,
                    known.calls,
                    known.latency_s,
                    known.cost_usd,
                    known.rejected,
                )
                self.store.save([_labelled(request, known)])
        return request if known is None else replace(request, known=known)

    async def close(self) -> None:
        for judge in self.judges.values():
            await judge.close()
        self.store.close()

    def save(self, results: Sequence[tuple[Request, Result]]) -> None:
        self.store.save([_labelled(*each) for each in results], self.runner)


def _without(wants: Sequence[Wanted], judged: Sequence[Request]) -> list[Wanted]:
    known = {request.want for request in judged}
    return [want for want in wants if want not in known]


def _labelled(request: Request, result: Result) -> tuple[Task, str, Result]:
    """A result with the task and the label of its prompt, as the store saves it."""
    assert request.prompt is not None
    return request.prompt.task, f"{request.prompt.name}@{request.prompt.version}", result


class _JudgeQueue(RequestSource):
    """One judge's queue: takes planned judgments, and returns requests with rendered prompts for the missing ones.

    It counts judgments that already have a stored result. It renders only a few requests in advance, so that memory
    need not hold a hundred thousand prompts. If another process is asking for a judgment, the queue looks that judgment
    up again later.

    Of requests whose prompts begin alike, one leads: the others wait until its first call has ended, so that they find
    the beginning in the server's cache. Meanwhile other requests are sent.

    Args:
        concurrency: maximum number of the judge's concurrent calls.
        ended: called once, when the judge stops taking requests.
        left_out: called with judgments whose prompts cannot be rendered because labels are missing.

    Attributes:
        over: whether the judge has stopped taking requests.
    """

    def __init__(
        self,
        lookup: QueueSource,
        ledger: Ledger,
        claims: Claims,
        concurrency: int,
        *,
        ended: Callable[[], None],
        left_out: Callable[[Collection[Wanted]], None],
    ) -> None:
        self._lookup, self._ledger, self._claims = lookup, ledger, claims
        self._ended, self._left_out = ended, left_out
        self._least = min(_USUAL, max(_FEWEST, concurrency))
        self._concurrency = concurrency
        self._portion, self._all_known = _ASKED, True
        self._wants: deque[Wanted] = deque()
        self._elsewhere: list[Wanted] = []
        self._awaited: set[str] = set()
        self._ready: deque[Any] = deque()
        self._led: dict[str, list[Any]] = {}
        self._leaders: dict[str, str] = {}
        self._cached: set[str] = set()
        self._changed = asyncio.Event()
        self._filling: asyncio.Task[None] | None = None
        self._closed = self.over = False

    def put(self, want: Wanted) -> None:
        self._wants.append(want)
        self._changed.set()

    def close(self) -> None:
        self._closed = True
        self._changed.set()

    def take(self) -> Any:
        """The next request to send; ``None`` if none is rendered yet. Starts the next lookup when few are left."""
        if self._wants and self._is_short() and (self._filling is None or self._filling.done()):
            self._raise_problem()
            self._filling = asyncio.create_task(self._fill())
            self._filling.add_done_callback(_retrieve_exception)
        while self._ready:
            request = self._ready.popleft()
            if self._claims.is_lost(request.judgment_id):
                self._want_again(request)
            elif not self._follows(request):
                return request
        return None

    def _follows(self, request: Any) -> bool:
        """Whether a request waits for another to be called; if its prompt is the first to begin so, it leads."""
        key = request.lead
        if not key or key in self._cached or request.judgment_id in self._leaders:
            return False
        if key not in self._led:
            self._led[key], self._leaders[request.judgment_id] = [], key
            return False
        if sum(map(len, self._led.values())) >= _FOLLOWERS:
            return False
        self._led[key].append(request)
        return True

    def called(self, ident: str) -> None:
        """Send the requests that the judgment ``ident`` leads, since the server has begun to reply to it, or failed."""
        if (key := self._leaders.pop(ident, None)) is not None:
            self._cached.add(key)
            self._ready.extendleft(reversed(self._led.pop(key)))
            self._changed.set()

    async def more(self) -> bool:
        """Wait until another request may be ready; returns false if no request can follow."""
        while not self._ready:
            self._raise_problem()
            filling = self._filling is not None and not self._filling.done()
            if not filling and self._wants:
                return True
            if not filling and not self._elsewhere and not self._led and self._closed:
                return False
            self._changed.clear()
            try:
                async with asyncio.timeout(_POLL_S if self._elsewhere and not filling else None):
                    await self._changed.wait()
            except TimeoutError:
                self._wants.extend(self._elsewhere)
                self._elsewhere.clear()
        return True

    def put_back(self, request: Any) -> None:
        """Return a request to the queue that was taken but not sent."""
        self.called(request.judgment_id)
        if self._claims.is_lost(request.judgment_id):
            self._want_again(request)
        else:
            self._ready.append(request)

    def _want_again(self, request: Any) -> None:
        """Look up a judgment again because this process lost its claim: another process may have asked for it."""
        self._claims.reclaim(request.judgment_id)
        self._wants.extend(self._ledger.withdraw(request.judgment_id))
        self._changed.set()

    def end(self) -> None:
        """Give out no more requests, and release the claims on requests that were not sent."""
        self.over = True
        self._give_back()
        self._ended()

    def _give_back(self) -> None:
        for ident in list(self._leaders):
            self.called(ident)
        idents = [request.judgment_id for request in self._ready]
        self._lookup.store.give_back(idents, self._lookup.runner)
        self._wants.extend(want for ident in idents for want in self._ledger.withdraw(ident))
        self._ready.clear()

    async def rest(self) -> list[Wanted]:
        """The planned judgments for which no request was sent, once the judge has stopped."""
        if self._filling is not None:
            await asyncio.wait([self._filling])
            self._raise_problem()
        left, self._elsewhere = [*self._elsewhere, *self._wants], []
        self._wants.clear()
        return left

    def _raise_problem(self) -> None:
        if self._filling is not None and self._filling.done():
            self._filling.result()

    def _lookup_size(self) -> int:
        share, most = self._portion
        return max(self._least, min(most, len(self._wants) // share))

    def _is_short(self) -> bool:
        """Whether so few requests are ready that the next lookup must start."""
        return len(self._ready) < max(self._lookup_size(), self._concurrency)

    async def _fill(self) -> None:
        try:
            while self._wants and self._is_short() and not self.over:
                most = self._lookup_size()
                taken = min(_JUDGED_AT_ONCE if self._all_known else most, len(self._wants))
                await self._look_up([self._wants.popleft() for _ in range(taken)], most)
        finally:
            self._changed.set()

    async def _look_up(self, wants: list[Wanted], most: int) -> None:
        losses = self._claims.losses
        requests = await asyncio.to_thread(self._lookup.judged, wants)
        rest = _without(wants, requests)
        if rest:
            requests += await asyncio.to_thread(self._lookup.claimed, rest[:most], self._tried)
        if self._claims.losses > losses:  # the claims just made may be among them
            self._wants.extendleft(reversed(wants))
            return
        self._wants.extendleft(reversed(rest[most:]))
        for request in requests:
            known, ident = request.known, request.judgment_id
            if request.elsewhere:
                self._elsewhere.append(request.want)
                self._awaited.add(ident)
            elif known is not None and not failed(known):
                self._ledger.count(request.want, "known", known)
            elif known is not None and (ident in self._awaited or not self._lookup.to_be_asked(known)):
                self._ledger.count(request.want, "failed", known)  # just failed elsewhere, or failures are not retried
            elif request.prompt is not None and self._ledger.is_first(request.want, ident):
                self._ready.append(request)
        self._all_known = all(request.known is not None for request in requests)
        self._portion = _KNOWN if self._all_known else _ASKED
        if left_out := set(wants).difference(rest[most:], (request.want for request in requests)):
            self._left_out(left_out)
        if self.over:  # the judge stopped during the lookup
            self._give_back()
        self._changed.set()

    def _tried(self, ident: str) -> bool:
        """Whether this run has asked for a judgment, or has waited while another process asked for it."""
        return ident in self._awaited or self._ledger.has_asked(ident)


def _retrieve_exception(task: asyncio.Task[None]) -> None:
    """Retrieve a task's exception, so that asyncio does not warn; ``take`` or ``more`` raises it later."""
    if not task.cancelled():
        task.exception()


class Queue:
    """Gets every planned judgment: finds it in the store, or asks a judge exactly once.

    Results may lead to further planned judgments until ``close`` is called. The caller must call ``close`` at the end;
    otherwise the queue never finishes, unless all judges halt.

    Args:
        lookup: renders prompts, and gives access to the store and the judges.
        settled: called with every planned judgment that has a result, and with the result.
        ended: called with the name of each judge that stops taking requests: it halted, or its work is done.
        left_out: called with judgments that cannot be made in this run because their prompts need missing labels.
        stage_of: function that returns the stage in which a planned judgment is counted.
    """

    def __init__(
        self,
        lookup: QueueSource,
        progress: Progress,
        settled: Callable[[Wanted, Any], None],
        ended: Callable[[str], None],
        left_out: Callable[[Collection[Wanted]], None] = lambda _: None,
        *,
        stage_of: Callable[[Wanted], str] = attrgetter("task"),
    ) -> None:
        self.lookup = lookup
        self.ledger = Ledger(progress, settled, stage_of)
        self._claims = Claims(lookup.store, lookup.runner, self.ledger.unsettled)
        self._queues: dict[str, _JudgeQueue] = {}
        for name, judge in lookup.judges.items():
            judge.may_ask = self._claims.still_holds
            at_once = min(judge.at_once, _AHEAD)
            self._queues[name] = _JudgeQueue(
                lookup, self.ledger, self._claims, at_once, ended=partial(ended, name), left_out=left_out
            )
            judge.called = self._queues[name].called

    def begin(self, stage: str, wanted: int, shown: int | None = None) -> None:
        """Begin a stage of ``wanted`` planned judgments; ``shown`` is the total to display if results may add more."""
        self.ledger.begin(stage, wanted if shown is None else shown)
        self.ledger.want(stage, wanted)

    def put(self, wants: Iterable[Wanted]) -> None:
        for want in wants:
            self._queues[want.judge].put(want)

    def close(self) -> None:
        for each in self._queues.values():
            each.close()

    async def run(self, beside: Coroutine[None, None, None] | None = None) -> None:
        """Get results until ``close`` was called and no planned judgment is left, or until all judges have halted.

        The coroutine ``beside`` runs at the same time and may add judgments; it must end when all judges have. In the
        end, stored results of judgments that were not sent are counted.
        """
        in_flight = sum(judge.at_once for judge in self.lookup.judges.values())
        writer: Writer[_Judged] = Writer(
            self.lookup.save,
            lambda judged: self.ledger.settle(judged[0].judgment_id, judged[1]),
            lambda judged: judged[1].calls,
            min(MOST_OPEN, max(_LEAST_OPEN, in_flight)),
        )
        await writer.run(self._claims, self._judge(writer.put, beside))
        await self.count_rest()

    async def _judge(
        self, put: Callable[[_Judged], Awaitable[None]], beside: Coroutine[None, None, None] | None
    ) -> None:
        async with asyncio.TaskGroup() as group:
            if beside is not None:
                group.create_task(beside)
            for name, queue in self._queues.items():
                group.create_task(queue.serve(self.lookup.judges[name], lambda *judged: put(judged)))

    async def finish(self, work: Awaitable[None], stop: Stop) -> float:
        """Await ``work``, which uses this queue, unless the user stops it; close the source, and return the seconds."""
        started = time.perf_counter()
        with stopping_early(stop):
            try:
                await work
            finally:
                await self.lookup.close()  # here, so that Ctrl-C cannot interrupt it
        return time.perf_counter() - started

    async def count_rest(self, *, halted: bool = False) -> None:
        """Count stored results of judgments that were not sent; with ``halted``, only those of judges that halted."""
        left: list[Wanted] = []
        for queue in self._queues.values():
            left += await queue.rest() if queue.over or not halted else []
        await self.count_known(left)

    async def count_known(self, wants: Sequence[Wanted]) -> None:
        async for want, known in self._looked_up(wants):
            if known is not None and not failed(known):
                self.ledger.count(want, "known", known)
            elif known is not None and self.lookup.is_final(known):
                self.ledger.count(want, "failed", known)

    async def known(self, wants: Sequence[Wanted]) -> list[tuple[Wanted, Any]]:
        """The stored results of these planned judgments, in the given order; sends no request."""
        results: dict[Wanted, Any] = dict.fromkeys(wants)
        async for want, known in self._looked_up(wants):
            results[want] = known
        return list(results.items())

    async def _looked_up(self, wants: Sequence[Wanted]) -> AsyncIterator[tuple[Wanted, Any]]:
        """Yield the stored result of each planned judgment whose prompt can be rendered.

        There may be a hundred thousand, so it looks them up in chunks; between chunks the event loop can handle Ctrl-C.
        """
        for chunk in chunks(wants, _LOOKED_UP_AT_ONCE):
            for request in await asyncio.to_thread(self.lookup.known, chunk):
                yield request.want, request.known
