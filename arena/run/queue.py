"""One queue for every judge, whatever stage its wants are of: looked up in the store when they are due, then asked."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from arena.run.assigned import Assigned
from arena.run.claims import Claims
from arena.run.ledger import Ledger, Progress, failed
from arena.run.writer import MOST_OPEN, Writer, write_while
from arena.stages.base import Asking
from arena.store import Result, Store, Wanted, chunks
from arena.store.runners import Runner
from judges.errors import ReplyError, to_be_asked
from judges.identity import judgment_id
from judges.judge import Judge, Request, Respondent, judge_all, read_again
from judges.types import JudgeFailure, Judgment, Prompt, Task

_FEWEST, _USUAL = 16, 64
"""Wants looked up together: at least as many as are asked at once, up to ``_USUAL``."""
_ASKED = (32, _USUAL)
"""Of what is left this part is looked up together, and so many at most: each lookup takes Python's lock from the calls
in flight. Few at the end, which other processes share: Polychronopoulos and Kuck (1987) call it guided self-scheduling.
"""
_KNOWN = (4, 256)
"""The same where nothing of the last lookup had to be asked: then no call is held up, and many spare the store."""
_JUDGED_AT_ONCE = 1024
"""Wants among which those that are judged already are looked for together, as long as nothing had to be asked."""
_POLL_S = 0.5
"""How often to look for what another process is judging."""


_LOOKED_UP_AT_ONCE = 256
_AHEAD = 1024
"""Requests that are ready before a judge takes them: what waits in batches is far more than has to be."""
_LEAST_OPEN = 16
"""Results that may be on their way into the store, however few calls are made at once: local judges are quick."""

_Judged: TypeAlias = tuple[Any, Any]
"""A request and its result."""


def prompt_label(prompt: Prompt) -> str:
    """``name@version``, as the store keeps it."""
    return f"{prompt.name}@{prompt.version}"


class Found(Struct, frozen=True):
    """A want whose result's id is known; ``request`` is ``None`` where no call is needed."""

    want: Wanted
    judgment_id: str
    request: Any


class Claimed(NamedTuple):
    """What became of wants that were looked up to be asked.

    Attributes:
        here: those that are known, or this process may ask for.
        elsewhere: those that another process is asking for.
        later: those that were not looked up.
    """

    here: list[tuple[Found, Any]]
    elsewhere: list[Found]
    later: Sequence[Wanted] = ()


class QueueSource(Protocol):
    """What a queue has to know of what it asks, whether judges for judgments or agents for answers.

    Results are anything with ``calls`` and ``cost_usd``, and a ``cause`` if they are failures; requests anything with a
    ``judgment_id``.
    """

    @property
    def store(self) -> Store:
        """Where results go."""
        ...

    @property
    def judges(self) -> Mapping[str, Respondent]:
        """Who is asked."""
        ...

    @property
    def runner(self) -> Runner:
        """This process, as others see it in the store."""
        ...

    def known(self, wants: Sequence[Wanted]) -> list[tuple[Found, Any]]:
        """What the store knows of these wants; nothing is taken to be asked. Works in any thread."""
        ...

    def claimed(self, wants: Sequence[Wanted], most: int, tried: Callable[[str], bool]) -> Claimed:
        """The same, with what has to be asked taken for this process.

        Args:
            wants: what to look up.
            most: of what may have to be asked so many are taken, and the rest is left for later.
            tried: whether this run has failed to get a judgment; then it is not taken.
        """
        ...

    def to_be_asked(self, known: Any) -> bool:
        """Whether that of which the store knows this needs a call."""
        ...

    def stands(self, known: Any) -> bool:
        """Whether what the store knows stands where nobody could be asked again."""
        ...

    def save(self, results: Sequence[tuple[Any, Any]]) -> None:
        """Keep results, each with its request."""
        ...


class Lookup(Struct, frozen=True):
    """The source of judgments, for a queue. Works in any thread."""

    tournament: str
    stages: Asking
    store: Store
    judges: dict[str, Judge]
    runner: Runner
    retry_failed: bool
    assigned: Assigned | None = None

    def identified(self, wants: Iterable[Wanted]) -> list[Found]:
        """The wants with their judgment's id; those that wait for labels are left out."""
        found: list[Found] = []
        for want in wants:
            if (ident := self.stages.free(want)) is not None:
                found.append(Found(want, ident, None))
            elif (prompt := self.stages.prompt(want)) is not None:
                provider = self.judges[want.judge].provider
                ident = judgment_id(prompt, provider.identity, by_name=provider.judges_names)
                found.append(Found(want, ident, Request(ident, prompt)))
        return found

    def known(self, wants: Sequence[Wanted]) -> list[tuple[Found, Result | None]]:
        """What the store knows of these wants, noted there; nothing is taken to be asked."""
        judged = self._judged(wants)
        found = self.identified(want for want in wants if want not in judged)
        self.store.assign(self.tournament, [(entry.want, entry.judgment_id) for entry in found])
        known = self.store.results([entry.judgment_id for entry in found])
        rest = [(entry, self._parsed_anew(entry, known.get(entry.judgment_id))) for entry in found]
        return [*_found(judged), *rest]

    def claimed(self, wants: Sequence[Wanted], most: int, tried: Callable[[str], bool]) -> Claimed:
        """The same, with what has to be asked taken for this process, as a source says."""
        judged = self._judged(wants)
        rest = [want for want in wants if want not in judged]
        found = self.identified(rest[:most])
        pairs = [(entry.want, entry.judgment_id) for entry in found]
        known, elsewhere = self.store.claim(self.tournament, pairs, self.runner, self.to_be_asked, tried)
        found = [_with_failure(entry, known.get(entry.judgment_id)) for entry in found]
        here = [
            (entry, self._parsed_anew(entry, known.get(entry.judgment_id)))
            for entry in found
            if entry.judgment_id not in elsewhere
        ]
        theirs = [entry for entry in found if entry.judgment_id in elsewhere]
        return Claimed([*_found(judged), *here], theirs, rest[most:])

    def _judged(self, wants: Sequence[Wanted]) -> dict[Wanted, tuple[str, Judgment]]:
        return {} if self.assigned is None else self.assigned.judged(wants)

    def to_be_asked(self, known: Result | None) -> bool:
        """Whether a judgment of which the store knows this needs a call."""
        return to_be_asked(known) or (self.retry_failed and isinstance(known, JudgeFailure))

    def stands(self, known: Result) -> bool:
        """Whether what the store knows stands where nobody could be asked again."""
        return not to_be_asked(known)

    def _parsed_anew(self, entry: Found, known: Result | None) -> Result | None:
        """A stored reply that the present parser accepts is a judgment, without a new call."""
        if not isinstance(known, JudgeFailure) or known.cause != "contract" or entry.request is None:
            return known
        try:
            reply = read_again(entry.request.prompt, (*known.rejected, known.reply or ""))
        except ReplyError:
            return known
        judgment = Judgment(
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
        self.store.save([_labelled(entry.request, judgment)])
        return judgment

    def save(self, results: Sequence[tuple[Request, Result]]) -> None:
        """Keep results, on this runner's account."""
        self.store.save([_labelled(*each) for each in results], self.runner)


def _found(judged: Mapping[Wanted, tuple[str, Judgment]]) -> Iterator[tuple[Found, Judgment]]:
    return ((Found(want, ident, None), judgment) for want, (ident, judgment) in judged.items())


def _with_failure(entry: Found, known: Result | None) -> Found:
    """The same, with the failure about its texts that is asked about again, if it is one."""
    if entry.request is None or not isinstance(known, JudgeFailure) or to_be_asked(known):
        return entry
    return replace(entry, request=replace(entry.request, before=known))


def _labelled(request: Request, result: Result) -> tuple[Task, str, Result]:
    """As the store keeps a result: with its task and its prompt's name and version."""
    return request.prompt.task, prompt_label(request.prompt), result


class _JudgeQueue:
    """One judge's source. Wants are put in as soon as they can be rendered, and come out as requests.

    What the store knows is counted on the way. Only a few requests are made ahead of time, so that a hundred thousand
    wants are not as many prompts in memory. What another process is judging is looked for again until it is there.

    Args:
        lookup: knows the store.
        ledger: told of what is known.
        claims: of this process.
        concurrency: of the judge.
        ended: called once, when nothing is taken any more.
        left_out: told of wants that cannot be rendered, since documents they need have no label.

    Attributes:
        over: whether nothing is taken any more.
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
        self._changed = asyncio.Event()
        self._filling: asyncio.Task[None] | None = None
        self._closed = self.over = False

    def put(self, want: Wanted) -> None:
        """Put a want in behind all others."""
        self._wants.append(want)
        self._changed.set()

    def close(self) -> None:
        """Nothing more will be put in."""
        self._closed = True
        self._changed.set()

    def take(self) -> Any:
        """The next request that is ready."""
        if self._wants and self._is_short() and (self._filling is None or self._filling.done()):
            self._raise_problem()
            self._filling = asyncio.create_task(self._fill())
            self._filling.add_done_callback(_heard)
        while self._ready:
            request = self._ready.popleft()
            if not self._claims.is_lost(request.judgment_id):
                return request
            self._want_again(request)
        return None

    async def more(self) -> bool:
        """Wait until there may be another request."""
        while not self._ready:
            self._raise_problem()
            filling = self._filling is not None and not self._filling.done()
            if not filling and self._wants:
                return True
            if not filling and not self._elsewhere and self._closed:
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
        """A request has not been sent."""
        if self._claims.is_lost(request.judgment_id):
            self._want_again(request)
        else:
            self._ready.append(request)

    def _want_again(self, request: Any) -> None:
        """Another process may have asked what this one had claimed: it is looked up anew."""
        self._claims.forget(request.judgment_id)
        self._wants.extend(self._ledger.withdraw(request.judgment_id))
        self._changed.set()

    def end(self) -> None:
        """Nothing is taken any more; what is ready and not asked for is free for other processes."""
        self.over = True
        self._give_back()
        self._ended()

    def _give_back(self) -> None:
        idents = [request.judgment_id for request in self._ready]
        self._lookup.store.give_back(idents, self._lookup.runner)
        self._wants.extend(want for ident in idents for want in self._ledger.withdraw(ident))
        self._ready.clear()

    async def rest(self) -> list[Wanted]:
        """The wants that were not taken, once the judge has halted."""
        if self._filling is not None:
            await asyncio.wait([self._filling])
            self._raise_problem()
        left, self._elsewhere = [*self._elsewhere, *self._wants], []
        self._wants.clear()
        return left

    def _raise_problem(self) -> None:
        if self._filling is not None and self._filling.done():
            self._filling.result()

    def _chunk(self) -> int:
        share, most = self._portion
        return max(self._least, min(most, len(self._wants) // share))

    def _is_short(self) -> bool:
        """Whether what is ready may soon be asked."""
        return len(self._ready) < max(self._chunk(), self._concurrency)

    async def _fill(self) -> None:
        try:
            while self._wants and self._is_short() and not self.over:
                most = self._chunk()
                taken = min(_JUDGED_AT_ONCE if self._all_known else most, len(self._wants))
                await self._look_up([self._wants.popleft() for _ in range(taken)], most)
        finally:
            self._changed.set()

    async def _look_up(self, wants: list[Wanted], most: int) -> None:
        losses = self._claims.losses
        here, elsewhere, later = await asyncio.to_thread(self._lookup.claimed, wants, most, self._tried)
        if self._claims.losses > losses:  # maybe what was claimed just now
            self._wants.extendleft(reversed(wants))
            return
        self._wants.extendleft(reversed(later))
        self._elsewhere += [entry.want for entry in elsewhere]
        for entry, known in here:
            if known is not None and not failed(known):
                self._ledger.count(entry.want, "known", known)
            elif known is not None and (entry.judgment_id in self._awaited or not self._lookup.to_be_asked(known)):
                self._ledger.count(entry.want, "failed", known)  # another process has just tried in vain, or none may
            elif entry.request is not None and self._ledger.is_first(entry.want, entry.judgment_id):
                self._ready.append(entry.request)
        self._awaited.update(entry.judgment_id for entry in elsewhere)
        self._all_known = not elsewhere and all(known is not None for _, known in here)
        self._portion = _KNOWN if self._all_known else _ASKED
        if len(here) + len(elsewhere) + len(later) < len(wants):
            found = [*elsewhere, *(entry for entry, _ in here)]
            self._left_out(set(wants).difference(later, (entry.want for entry in found)))
        if self.over:  # meanwhile
            self._give_back()
        self._changed.set()

    def _tried(self, ident: str) -> bool:
        """Whether this run has asked for a judgment, or waited for another process that did."""
        return ident in self._awaited or self._ledger.has_asked(ident)


def _heard(task: asyncio.Task[None]) -> None:
    """A problem is raised for whoever asks next; where a run ends by another nobody does: asyncio would complain."""
    if not task.cancelled():
        task.exception()


class Queue:
    """Wants go in, and come out settled: found in the store or judged, each exactly once.

    A settled want may release others, for as long as ``close`` has not been called. Whoever uses it decides that; it
    must call ``close`` at last, or the work never ends, unless all judges halt.

    Args:
        lookup: renders prompts and knows the store and the judges.
        progress: told of every want.
        settled: told of every want that nothing more will be asked for, with its result.
        ended: told of every judge that takes nothing more, because it halted or all is closed and judged.
        left_out: told of wants that have no prompt and thus cannot be asked for in this run.
        stage_of: what wants are counted by.
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
            judge.may_ask = self._claims.hold
            at_once = min(judge.at_once, _AHEAD)
            self._queues[name] = _JudgeQueue(
                lookup, self.ledger, self._claims, at_once, ended=partial(ended, name), left_out=left_out
            )

    def begin(self, stage: str, wanted: int, shown: int | None = None) -> None:
        """Begin a stage of so many wants; ``shown`` where more may be added and are to be expected."""
        self.ledger.begin(stage, wanted if shown is None else shown)
        self.ledger.want(stage, wanted)

    def put(self, wants: Iterable[Wanted]) -> None:
        """Hand wants of stages that have begun to their judges."""
        for want in wants:
            self._queues[want.judge].put(want)

    def close(self) -> None:
        """Nothing more will be put in."""
        for each in self._queues.values():
            each.close()

    async def run(self, beside: Coroutine[None, None, None] | None = None) -> None:
        """Judge until everything is closed and settled, or all judges have halted.

        Args:
            beside: runs at the same time and may put wants in; it must end when judges have.

        Raises:
            StoreError: the store cannot be read or written.
        """
        in_flight = sum(judge.at_once for judge in self.lookup.judges.values())
        writer: Writer[_Judged] = Writer(
            self.lookup.save,
            lambda judged: self.ledger.settle(judged[0].judgment_id, judged[1]),
            lambda judged: judged[1].calls,
            min(MOST_OPEN, max(_LEAST_OPEN, in_flight)),
        )
        await write_while(self._claims, writer, self._judge(writer, beside))

    async def _judge(self, writer: Writer[_Judged], beside: Coroutine[None, None, None] | None) -> None:
        async def put(_judge: str, request: Any, result: Any) -> None:
            await writer.put((request, result))

        async with asyncio.TaskGroup() as group:
            if beside is not None:
                group.create_task(beside)
            await judge_all(self._queues, self.lookup.judges, put)
            await writer.finish()

    async def count_rest(self, *, halted: bool = False) -> None:
        """Count what the store knows of the wants that nobody took, without asking; or only of judges that halted."""
        queues = [each for each in self._queues.values() if each.over or not halted]
        await self.count_known([want for each in queues for want in await each.rest()])

    async def count_known(self, wants: Sequence[Wanted]) -> None:
        """Count those of these wants that the store knows."""
        async for want, known in self._looked_up(wants):
            if known is not None and not failed(known):
                self.ledger.count(want, "known", known)
            elif known is not None and self.lookup.stands(known):
                self.ledger.count(want, "failed", known)

    async def known(self, wants: Sequence[Wanted]) -> list[tuple[Wanted, Any]]:
        """What the store knows of these wants by now, in their order; nobody is asked."""
        results: dict[Wanted, Any] = dict.fromkeys(wants)
        async for want, known in self._looked_up(wants):
            results[want] = known
        return list(results.items())

    async def _looked_up(self, wants: Sequence[Wanted]) -> AsyncIterator[tuple[Wanted, Any]]:
        """What the store knows of those wants that can be rendered; there may be a hundred thousand.

        Whatever else waits for the loop is heard meanwhile, Ctrl-C for one, which ends it after the chunk at hand.
        """
        for chunk in chunks(wants, _LOOKED_UP_AT_ONCE):
            for entry, known in await asyncio.to_thread(self.lookup.known, chunk):
                yield entry.want, known
