"""A provider that collects requests and submits them as batches; it polls a batch until it ends, also in later runs."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain

from msgspec import Struct, field

from judges.batch_servers import (
    Batch,
    BatchEnding,
    BatchServer,
    Book,
    NotTakenError,
    UndecidedError,
    refused_as_a_whole,
)
from judges.errors import (
    PROGRESS,
    JudgeStoppedError,
    ProviderError,
    RejectedError,
    StillWaitingError,
    StoreError,
    TransientError,
)
from judges.identity import judgment_id, request_id
from judges.masking import masked
from judges.providers.hosted import HostedProvider
from judges.types import Completion, Prompt

_COLLECT_S = 1.0
"""A batch is submitted after this many seconds without a new request."""
_SEARCH_S = 300.0
"""How long to search for a batch whose submission got no answer: a server's list may lag behind."""
_NEXT_STEP = {
    "cancelled": "'ragleague run CONFIG --retry-failed' asks for the rest again",
    "expired": "the next run asks for the rest again",
}
_CAUSES = {"cancelled": "cancelled", "expired": "timeout"}
_LEAST_S, _MOST_S, _SHARE = 1.0, 60.0, 0.1
"""Shortest and longest seconds between two checks of a batch, and the wait as a share of the time since the first
check."""


class BatchLine(Struct, frozen=True):
    """A request in a batch, and the future of the caller who waits for the request's reply."""

    custom_id: str
    judgment_id: str
    content: bytes
    reply: asyncio.Future[Completion]

    def fail(self, error: Exception) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)


class TrackedBatch(Struct):
    """A batch that this process checks until it ends, with the requests for which callers wait.

    Attributes:
        to_submit: whether the batch must be submitted, since the server certainly does not have it.
        search_until: time until which to search for a batch that the server does not list, in seconds since 1970.
        checked_at: last time that the server was asked about the batch, in seconds since 1970.
        tracked_since, due: times at which this process began to check the batch and will check it next, on the
            monotonic clock.
    """

    batch: Batch
    to_submit: bool
    search_until: float
    search_logged: bool = False
    checked_at: float = 0.0
    lines: dict[str, BatchLine] = field(default_factory=dict)
    tracked_since: float = field(default_factory=time.monotonic)
    due: float = 0.0

    @property
    def is_unconfirmed(self) -> bool:
        """Whether it is still unknown if the server has the batch. A check after ``search_until`` ends the search."""
        return self.batch.remote_id is None and self.checked_at < self.search_until


def split_by_limits(lines: Iterable[BatchLine], server: BatchServer) -> Iterator[list[BatchLine]]:
    """Split requests into lists that each fit into one batch by the server's limits."""
    batch_lines: list[BatchLine] = []
    size = 0
    for line in lines:
        size += len(line.content) + 1
        if batch_lines and (size > server.most_bytes or len(batch_lines) == server.most_requests):
            yield batch_lines
            batch_lines, size = [], len(line.content) + 1
        batch_lines.append(line)
    if batch_lines:
        yield batch_lines


def poll_wait_s(since: float) -> float:
    """Seconds until the server is asked again about a batch, or after a failure: a tenth of the time so far.

    ``since`` is when the checks or the failures began, on the monotonic clock. The wait is limited by ``_LEAST_S`` and
    ``_MOST_S``.
    """
    return min(_MOST_S, max(_LEAST_S, _SHARE * (time.monotonic() - since)))


class BatchProvider:
    """Takes single prompts like any provider; each call returns when the batch with its prompt has ended.

    A batch is recorded in the store before it is submitted. Recorded requests are never submitted again, so a new run
    waits for the batches of earlier ones. A request without a reply is removed from the record and raises an error;
    when it is repeated, it goes into the next batch. A cancelled or expired batch delivers its replies and then stops
    the judge, so that the user can decide whether to pay for the rest.

    Args:
        provider: the vendor's provider, which makes requests and parses replies. Judgments have the same ids with and
            without batches, since its identity is used.
        server: the vendor's batch API.
        book: the record of batches, in the store.
        halt: called to stop the judge; its argument is the error that stops the judge, if any.
        patience_s: how long the server may be unreachable before the judge stops, in seconds.
        wait: whether to wait until the batches have ended; otherwise stop once all requests are submitted.
    """

    judges_names = False

    def __init__(
        self,
        provider: HostedProvider,
        server: BatchServer,
        book: Book,
        halt: Callable[[JudgeStoppedError | None], None],
        *,
        patience_s: float,
        wait: bool = True,
    ) -> None:
        self.identity = provider.identity
        self._provider, self._server, self._book, self._halt = provider, server, book, halt
        self._patience_s, self._wait = patience_s, wait
        self._queued: dict[str, BatchLine] = {}
        self._tracked: dict[str, TrackedBatch] = {}
        self._finished: list[Batch] = []
        self._worker: asyncio.Task[None] | None = None
        self._changed, self._left = asyncio.Event(), False
        self._outage_since: float | None = None
        self._paused_until = 0.0

    async def complete(self, prompt: Prompt) -> Completion:
        """Send the prompt in the next batch and wait for its reply.

        Raises:
            ProviderError: the request failed; a ``JudgeStoppedError`` if its batch was refused, cancelled or expired.
            StillWaitingError: the run stopped waiting before the reply came.
        """
        if self._left:
            raise StillWaitingError
        judgment = judgment_id(prompt, self.identity)
        custom_id = request_id(judgment, prompt)
        content = self._server.line(custom_id, self._provider.request(prompt))
        line = BatchLine(custom_id, judgment, content, asyncio.get_running_loop().create_future())
        self._queued[custom_id] = line
        self._changed.set()
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._run())
        return await line.reply

    def leave(self) -> None:
        """Stop waiting for replies. A submission in progress is completed, so that the server's id can be recorded."""
        self._left = True
        self._changed.set()

    async def close(self) -> None:
        self.leave()
        if self._worker is not None:
            await self._worker
        with suppress(StoreError):  # the run raises the store's error anyway
            await self._delete_files()
        await self._server.close()
        await self._provider.close()

    async def _run(self) -> None:
        try:
            while (self._queued or self._tracked) and not self._left:
                await self._gather()
                await self._place()
                now = time.monotonic()
                due = [each for each in self._tracked.values() if self._due_at(each) <= now]
                progressed = [await self._advance(each) for each in due]
                await self._delete_files()
                is_searching = self._outage_since or any(each.is_unconfirmed for each in self._tracked.values())
                if not (self._queued or self._wait or any(progressed) or is_searching):
                    self._halt(None)
                    self._left = True
                await self._pause()
            error: Exception = StillWaitingError()
        except Exception as problem:  # such as the store's, which all callers must get
            error = problem
        with suppress(StoreError):  # the callers get the error above, or the run meets it again
            for each in self._tracked.values():
                if each.to_submit:
                    await asyncio.to_thread(self._book.drop, each.batch.marker)
        for line in chain(self._queued.values(), *(tracked.lines.values() for tracked in self._tracked.values())):
            line.fail(error)

    async def _gather(self) -> None:
        """Collect requests for the next batch until no new one has come for a while, or the batch is full."""
        before = -1
        while len(self._queued) != before and len(self._queued) < self._server.most_requests and not self._left:
            before = len(self._queued)
            if before:
                await asyncio.sleep(_COLLECT_S)

    async def _place(self) -> None:
        """Find the recorded batch of each queued request; put the others into new batches."""
        for lines in split_by_limits(list(self._queued.values()), self._server):
            batch = Batch(uuid.uuid4().hex, time.time(), len(lines))
            judgment_ids = {line.custom_id: line.judgment_id for line in lines}
            placed = await asyncio.to_thread(self._book.place, batch, judgment_ids)
            for line in lines:
                recorded = placed[line.custom_id]
                new_entry = TrackedBatch(recorded, recorded.marker == batch.marker, recorded.made_at + _SEARCH_S)
                tracked = self._tracked.setdefault(recorded.marker, new_entry)
                tracked.lines[line.custom_id] = line
                del self._queued[line.custom_id]

    def _due_at(self, tracked: TrackedBatch) -> float:
        return max(tracked.due, self._paused_until)

    async def _advance(self, tracked: TrackedBatch) -> bool:
        """Submit, find, check or deliver a batch, whichever is next; returns whether this changed the batch's state."""
        tracked.checked_at = time.time()
        try:
            progressed = await self._step(tracked)
        except UndecidedError:
            self._outage_since, progressed = None, False
        except TransientError as error:
            self._note_outage(error)
            if tracked.to_submit and not isinstance(error, NotTakenError):  # the server may have the batch
                tracked.to_submit, tracked.search_until = False, time.time() + _SEARCH_S
            progressed = False
        except ProviderError as error:
            await self._handle_refusal(tracked, error)
            progressed = True
        tracked.due = 0.0 if progressed else time.monotonic() + poll_wait_s(tracked.tracked_since)
        return progressed

    async def _step(self, tracked: TrackedBatch) -> bool:
        batch = tracked.batch
        if batch.remote_id is None:
            remote_id = await self._submit_or_find(tracked)
            self._outage_since = None
            if remote_id is None:
                return await self._handle_missing(tracked)
            tracked.to_submit = False
            if masked(remote_id) != remote_id:
                raise RejectedError("server_error", "the server's id of the batch contains a key")
            tracked.batch = Batch(batch.marker, batch.made_at, batch.requests, remote_id)
            await asyncio.to_thread(self._book.submitted, batch.marker, remote_id)
            return True
        ending = await self._server.look(batch.remote_id)
        self._outage_since = None
        if isinstance(ending, ProviderError):
            await self._fail_batch(tracked, ending)
        elif ending is not None:
            await self._deliver(tracked, batch.remote_id, ending)
        return ending is not None

    async def _submit_or_find(self, tracked: TrackedBatch) -> str | None:
        """Submit the batch or search the server for it; returns the server's id, ``None`` if the batch is not there."""
        custom_ids = await asyncio.to_thread(self._book.custom_ids, tracked.batch.marker)
        if not tracked.to_submit:
            return await self._server.find(tracked.batch, custom_ids)
        if custom_ids:
            return await self._server.submit(tracked.batch.marker, [each.content for each in tracked.lines.values()])
        tracked.search_until = 0.0  # another process put its requests elsewhere while this one was suspended
        return None

    async def _handle_missing(self, tracked: TrackedBatch) -> bool:
        """Handle a batch that the server does not list: search again for a while, then queue its requests again."""
        if tracked.is_unconfirmed:
            if not tracked.search_logged:
                tracked.search_logged = True
                left_s = tracked.search_until - tracked.checked_at
                PROGRESS.info("submitting a batch got no answer; looking for it on the server for %.0f s", left_s)
            return False
        await self._forget(tracked)
        self._queued.update(tracked.lines)
        return True

    async def _fail_batch(self, tracked: TrackedBatch, error: ProviderError) -> None:
        """Fail all requests of a batch that the server refused, and delete the batch from the record."""
        await self._forget(tracked)
        for line in tracked.lines.values():
            line.fail(error)

    async def _handle_refusal(self, tracked: TrackedBatch, error: ProviderError) -> None:
        """Handle a permanent error: fail a batch that was not submitted; for any other, stop the judge and keep it."""
        if tracked.to_submit and tracked.batch.remote_id is None:
            await self._fail_batch(tracked, refused_as_a_whole(error))
        else:
            self._halt(JudgeStoppedError(error.cause, str(error)))
            self._left = True

    async def _forget(self, tracked: TrackedBatch) -> None:
        self._untrack(tracked)
        await asyncio.to_thread(self._book.drop, tracked.batch.marker)

    def _untrack(self, tracked: TrackedBatch) -> None:
        del self._tracked[tracked.batch.marker]
        if tracked.batch.remote_id is not None:
            self._finished.append(tracked.batch)

    async def _deliver(self, tracked: TrackedBatch, remote_id: str, ending: BatchEnding) -> None:
        """Give callers the results of an ended batch. A request without reply is removed from the record and fails."""
        failed: list[tuple[BatchLine, ProviderError]] = []
        no_reply: ProviderError = TransientError("server_error", "the batch ended without a reply to this request")
        async for custom_id, outcome in self._server.outcomes(remote_id):
            line = tracked.lines.get(custom_id)
            if not custom_id and isinstance(outcome, RejectedError):  # its request is among those without a result
                no_reply = outcome
            if line is None or line.reply.done():
                continue
            if isinstance(outcome, Completion):
                line.reply.set_result(outcome)
            else:
                failed.append((line, outcome))
        failed_ids = {line.custom_id for line, _ in failed}
        waiting = (line for line in tracked.lines.values() if not line.reply.done())
        failed += [(line, no_reply) for line in waiting if line.custom_id not in failed_ids]
        await asyncio.to_thread(self._book.free, [line.custom_id for line, _ in failed])
        self._untrack(tracked)
        stop = self._stop_error(tracked, remote_id, ending, sum(isinstance(each, TransientError) for _, each in failed))
        for line, error in failed:
            line.fail(stop if stop is not None and isinstance(error, TransientError) else error)

    def _stop_error(
        self, tracked: TrackedBatch, remote_id: str, ending: BatchEnding, unanswered: int
    ) -> JudgeStoppedError | None:
        """Stop the judge after a cancelled or expired batch, and return the error; ``None`` if all was answered."""
        if ending == "completed" or not unanswered:
            return None
        how = "was cancelled" if ending == "cancelled" else "has expired"
        counts = f"{len(tracked.lines) - unanswered} of {len(tracked.lines)} replies are kept"
        error = JudgeStoppedError(_CAUSES[ending], f"batch {remote_id} {how}: {counts}; {_NEXT_STEP[ending]}")
        self._halt(error)
        self._left = True
        return error

    async def _delete_files(self) -> None:
        """Delete the server's files of batches whose judgments are all in the store."""
        for batch in list(self._finished):
            pending = await asyncio.to_thread(self._book.custom_ids, batch.marker)
            if batch.remote_id is None or pending:
                continue
            self._finished.remove(batch)
            try:
                await self._server.delete_files(batch.remote_id)
            except ProviderError as error:
                PROGRESS.info("the files of batch %s could not be deleted on the server: %s", batch.remote_id, error)

    def _note_outage(self, error: TransientError) -> None:
        """Pause while the server is unreachable; after ``patience_s`` stop the judge. The requests stay recorded."""
        now = time.monotonic()
        self._outage_since = self._outage_since or now
        self._paused_until = now + max(poll_wait_s(self._outage_since), error.retry_after_s or 0.0)
        if self._paused_until - self._outage_since > self._patience_s:
            self._halt(JudgeStoppedError(error.cause, f"{error}; {self._batch_status()}"))
            self._left = True

    def _batch_status(self) -> str:
        """What happened to the batches while the server was unreachable, as the end of an error message."""
        if any(each.batch.remote_id is not None for each in self._tracked.values()):
            return "the batches that were submitted continue on the server"
        unknown = sum(len(each.lines) for each in self._tracked.values() if not each.to_submit)
        if unknown:
            return f"whether it has the {unknown} requests is not known; the next run looks for them"
        return "no batch was submitted, so there is nothing to pay"

    async def _pause(self) -> None:
        """Wait until the next check of a batch is due, a new request comes, or the run ends."""
        if self._left or self._queued or not self._tracked:
            return
        self._changed.clear()
        seconds = min(self._due_at(each) for each in self._tracked.values()) - time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._changed.wait()
