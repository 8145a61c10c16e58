"""A provider that gathers what is asked, hands it in as batches and follows them, in this process or the next one."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from msgspec import Struct, field

from judges.batches import Batch, BatchEnding, Book
from judges.batches.servers import BatchServer, NotTakenError, UndecidedError, refused_as_a_whole
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
from judges.providers.endpoint import HostedProvider
from judges.types import Completion, Prompt

_QUIET_S = 1.0
"""A batch is handed in once nothing more has been asked for so long."""
_SEARCH_S = 300.0
"""How long a batch is looked for whose hand-in was not answered: a server's list may lag behind what it has taken."""
_NEXT = {
    "cancelled": "'ragleague run CONFIG --retry-failed' asks for the rest again",
    "expired": "the next run asks for the rest again",
}
_CAUSES = {"cancelled": "cancelled", "expired": "timeout"}
_LEAST_S, _MOST_S, _SHARE = 1.0, 60.0, 0.1
"""A batch is looked at again after a tenth of the time that it has taken so far, within these bounds."""


class BatchLine(Struct, frozen=True):
    """A request that somebody waits for."""

    custom_id: str
    judgment_id: str
    content: bytes
    reply: asyncio.Future[Completion]

    def fail(self, error: Exception) -> None:
        """End the wait without a reply."""
        if not self.reply.done():
            self.reply.set_exception(error)


class Followed(Struct):
    """A batch with the requests of it that are waited for.

    Attributes:
        to_submit: the server does not have it, for certain.
        search_until: how long it is to be looked for if the server does not show it, in seconds since 1970.
        searched: whether it has been looked for in vain.
        looked: when it was last looked for or at, in seconds since 1970.
        since: when this process began to follow it, on the monotonic clock.
        due: when it is to be looked at again.
    """

    batch: Batch
    to_submit: bool
    search_until: float
    searched: bool = False
    looked: float = 0.0
    lines: dict[str, BatchLine] = field(default_factory=dict)
    since: float = field(default_factory=time.monotonic)
    due: float = 0.0

    @property
    def is_sought(self) -> bool:
        """Whether it may be on the server or not: a look after ``search_until`` decides, not the clock."""
        return self.batch.remote_id is None and self.looked < self.search_until


def portions(lines: Iterable[BatchLine], server: BatchServer) -> Iterator[list[BatchLine]]:
    """The requests in lists that one batch may hold."""
    portion: list[BatchLine] = []
    size = 0
    for line in lines:
        longer = size + len(line.content) + 1
        if portion and (longer > server.most_bytes or len(portion) == server.most_requests):
            yield portion
            portion, longer = [], len(line.content) + 1
        portion.append(line)
        size = longer
    if portion:
        yield portion


def patient(since: float) -> float:
    """Seconds to wait for what has taken since then."""
    return min(_MOST_S, max(_LEAST_S, _SHARE * (time.monotonic() - since)))


class BatchProvider:
    """Takes one prompt at a time like any provider, and replies when its batch has ended.

    A batch is in the book before the server hears of it. What the book has is not handed in again, whoever put it
    there: a run that begins again waits for the batches of the last one. A request that comes back without a reply
    leaves the book and raises an error, and whoever asks again gets it into the next batch. A batch that was cancelled
    or has expired brings the replies that it holds, and stops the judge: whether to pay for the rest is for people to
    say.

    Args:
        provider: makes requests and reads replies; its identity is this one's, so a judgment is the same either way.
        server: the vendor's batch API.
        book: kept in the store.
        halt: told when the judge should ask nothing more, with the reason if it is an error.
        patience_s: how long the server may be out of reach.
        wait: whether to stay until the batches have ended; else to leave once everything is handed in.
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
        self._asked: dict[str, BatchLine] = {}
        self._followed: dict[str, Followed] = {}
        self._read: list[Batch] = []
        self._worker: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._left = False
        self._trouble_since: float | None = None
        self._resting_until = 0.0

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask once, in the next batch.

        Raises:
            TransientError: the server failed at the request.
            RejectedError: the server refused it.
            JudgeStoppedError: the server refuses every batch, or this one was cancelled or has expired.
            StillWaitingError: it was left before the reply came.
        """
        if self._left:
            raise StillWaitingError
        ident = judgment_id(prompt, self.identity)
        custom_id = request_id(ident, prompt)
        content = self._server.line(custom_id, self._provider.request(prompt))
        line = BatchLine(custom_id, ident, content, asyncio.get_running_loop().create_future())
        self._asked[custom_id] = line
        self._changed.set()
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await line.reply

    def leave(self) -> None:
        """Wait for nothing more. What is being handed in just now still is, so that the book has its name."""
        self._left = True
        self._changed.set()

    async def close(self) -> None:
        """Leave, and close the connections."""
        self.leave()
        if self._worker is not None:
            await self._worker
        with suppress(StoreError):  # then its own error is on the way
            await self._delete_files()
        await self._server.close()
        await self._provider.close()

    async def _work(self) -> None:
        try:
            while (self._asked or self._followed) and not self._left:
                await self._gathered()
                await self._place()
                moved = [await self._advance(each) for each in self._due()]
                await self._delete_files()
                if not (self._asked or self._wait or any(moved) or self._is_searching()):
                    self._halt(None)
                    self._left = True
                await self._pause()
            error: Exception = StillWaitingError()
        except Exception as problem:  # the book's: whoever asks has to know
            error = problem
        with suppress(StoreError):  # then that is the error, or comes again
            for each in self._followed.values():
                if each.to_submit:
                    await asyncio.to_thread(self._book.drop, each.batch.marker)
        for line in self._all_lines():
            line.fail(error)

    def _all_lines(self) -> Iterator[BatchLine]:
        yield from self._asked.values()
        for followed in self._followed.values():
            yield from followed.lines.values()

    async def _gathered(self) -> None:
        """Wait until nothing more is asked for a while."""
        before = -1
        while len(self._asked) != before and len(self._asked) < self._server.most_requests and not self._left:
            before = len(self._asked)
            if before:
                await asyncio.sleep(_QUIET_S)

    async def _place(self) -> None:
        """Find the batch of each request, and make batches of those that have none."""
        for lines in portions(list(self._asked.values()), self._server):
            batch = Batch(uuid.uuid4().hex, time.time(), len(lines))
            idents = {line.custom_id: line.judgment_id for line in lines}
            placed = await asyncio.to_thread(self._book.place, batch, idents)
            for line in lines:
                there = placed[line.custom_id]
                new = Followed(there, there.marker == batch.marker, there.made_at + _SEARCH_S)
                followed = self._followed.setdefault(there.marker, new)
                followed.lines[line.custom_id] = line
                del self._asked[line.custom_id]

    def _due(self) -> list[Followed]:
        now = time.monotonic()
        return [each for each in self._followed.values() if self._due_at(each) <= now]

    def _due_at(self, followed: Followed) -> float:
        return max(followed.due, self._resting_until)

    async def _advance(self, followed: Followed) -> bool:
        """Do what comes next for a batch; whether that was more than to look."""
        followed.looked = time.time()
        try:
            moved = await self._step(followed)
        except UndecidedError:
            self._trouble_since, moved = None, False
        except TransientError as error:
            self._in_trouble(error)
            if followed.to_submit and not isinstance(error, NotTakenError):  # the server may have it
                followed.to_submit, followed.search_until = False, time.time() + _SEARCH_S
            moved = False
        except ProviderError as error:
            await self._cannot(followed, error)
            moved = True
        followed.due = 0.0 if moved else time.monotonic() + patient(followed.since)
        return moved

    async def _step(self, followed: Followed) -> bool:
        batch = followed.batch
        if batch.remote_id is None:
            remote_id = await self._submitted(followed)
            self._trouble_since = None
            if remote_id is None:
                return await self._not_there(followed)
            followed.to_submit = False
            if masked(remote_id) != remote_id:
                raise RejectedError("server_error", "the server names the batch by a key")
            followed.batch = Batch(batch.marker, batch.made_at, batch.requests, remote_id)
            await asyncio.to_thread(self._book.submitted, batch.marker, remote_id)
            return True
        ended = await self._server.look(batch.remote_id)
        self._trouble_since = None
        if isinstance(ended, ProviderError):
            await self._refused(followed, ended)
        elif ended is not None:
            await self._deliver(followed, batch.remote_id, ended)
        return ended is not None

    async def _submitted(self, followed: Followed) -> str | None:
        """The server's name for a batch, handed in if that was not tried before; ``None`` if it has not come there."""
        custom_ids = await asyncio.to_thread(self._book.custom_ids, followed.batch.marker)
        if not followed.to_submit:
            return await self._server.find(followed.batch, custom_ids)
        if custom_ids:
            return await self._server.submit(followed.batch.marker, [each.content for each in followed.lines.values()])
        followed.search_until = 0.0  # while this process slept another one has put its requests elsewhere
        return None

    async def _not_there(self, followed: Followed) -> bool:
        """The server does not show a batch: look again for a while; then its requests go into another one."""
        if followed.is_sought:
            if not followed.searched:
                followed.searched = True
                left_s = followed.search_until - followed.looked
                PROGRESS.info("a hand-in was not answered; looking for its batch on the server for %.0f s", left_s)
            return False
        await self._forget(followed)
        self._asked.update(followed.lines)
        return True

    def _is_searching(self) -> bool:
        """Whether a batch may be on the server or not, and that will be known soon."""
        return self._trouble_since is not None or any(each.is_sought for each in self._followed.values())

    async def _refused(self, followed: Followed, error: ProviderError) -> None:
        """The server will not do any of it."""
        await self._forget(followed)
        for line in followed.lines.values():
            line.fail(error)

    async def _cannot(self, followed: Followed, error: ProviderError) -> None:
        """The server takes no batch, or does not tell of one that it took: that one stays in the book."""
        if followed.to_submit and followed.batch.remote_id is None:
            await self._refused(followed, refused_as_a_whole(error))
        else:
            self._halt(JudgeStoppedError(error.cause, str(error)))
            self._left = True

    async def _forget(self, followed: Followed) -> None:
        self._let_go(followed)
        await asyncio.to_thread(self._book.drop, followed.batch.marker)

    def _let_go(self, followed: Followed) -> None:
        del self._followed[followed.batch.marker]
        if followed.batch.remote_id is not None:
            self._read.append(followed.batch)

    async def _deliver(self, followed: Followed, remote_id: str, ended: BatchEnding) -> None:
        """Hand out what came back. Requests without a reply leave the book before anybody can ask them again."""
        failed: list[tuple[BatchLine, ProviderError]] = []
        lost: ProviderError = TransientError("server_error", "the batch ended without a reply to this request")
        async for custom_id, outcome in self._server.outcomes(remote_id):
            line = followed.lines.get(custom_id)
            if not custom_id and isinstance(outcome, RejectedError):  # it is of one of those that seem to have none
                lost = outcome
            if line is None or line.reply.done():
                continue
            if isinstance(outcome, Completion):
                line.reply.set_result(outcome)
            else:
                failed.append((line, outcome))
        known = {line.custom_id for line, _ in failed}
        unanswered = (line for line in followed.lines.values() if not line.reply.done() and line.custom_id not in known)
        failed += [(line, lost) for line in unanswered]
        await asyncio.to_thread(self._book.free, [line.custom_id for line, _ in failed])
        self._let_go(followed)
        stop = self._stop_for(followed, remote_id, ended, sum(isinstance(each, TransientError) for _, each in failed))
        for line, error in failed:
            line.fail(stop if stop is not None and isinstance(error, TransientError) else error)

    def _stop_for(self, followed: Followed, remote_id: str, ended: BatchEnding, open_: int) -> JudgeStoppedError | None:
        """Why nothing more is asked after a batch that somebody cancelled, or that the server did not get through."""
        if ended == "completed" or not open_:
            return None
        how = "was cancelled" if ended == "cancelled" else "has expired"
        counts = f"{len(followed.lines) - open_} of {len(followed.lines)} replies are kept"
        error = JudgeStoppedError(_CAUSES[ended], f"batch {remote_id} {how}: {counts}; {_NEXT[ended]}")
        self._halt(error)
        self._left = True
        return error

    async def _delete_files(self) -> None:
        """Of batches whose judgments are all in the store: what is kept nowhere else would be lost with them."""
        for batch in list(self._read):
            waited_for = await asyncio.to_thread(self._book.custom_ids, batch.marker)
            if batch.remote_id is None or waited_for:
                continue
            self._read.remove(batch)
            try:
                await self._server.delete_files(batch.remote_id)
            except ProviderError as error:
                PROGRESS.info("the files of batch %s could not be deleted on the server: %s", batch.remote_id, error)

    def _in_trouble(self, error: TransientError) -> None:
        """The server is out of reach: its batches go on without us, so this is no failure of what is in them."""
        now = time.monotonic()
        self._trouble_since = self._trouble_since or now
        self._resting_until = now + max(patient(self._trouble_since), error.retry_after_s or 0.0)
        if self._resting_until - self._trouble_since > self._patience_s:
            self._halt(JudgeStoppedError(error.cause, f"{error}; {self._whereabouts()}"))
            self._left = True

    def _whereabouts(self) -> str:
        """What becomes of the batches when the server is out of reach."""
        if any(each.batch.remote_id is not None for each in self._followed.values()):
            return "batches that were handed in go on"
        unknown = sum(len(each.lines) for each in self._followed.values() if not each.to_submit)
        if unknown:
            return f"whether it has the {unknown} requests is not known, and the next run looks for them"
        return "nothing was handed in, and nothing has to be paid"

    async def _pause(self) -> None:
        """Until a batch is to be looked at again, or somebody asks or leaves."""
        if self._left or self._asked or not self._followed:
            return
        self._changed.clear()
        seconds = min(self._due_at(each) for each in self._followed.values()) - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._changed.wait()
        except TimeoutError:
            pass
