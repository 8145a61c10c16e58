"""Judges: each sends requests to its provider, within limits and with retries, until it has a judgment or a failure."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from judges.contracts import reply_rule, unused_mark
from judges.errors import (
    PROGRESS,
    RETRIED_NEXT_RUN,
    BrokenReplyError,
    ConfigError,
    FailureCounter,
    JudgeStoppedError,
    NoServiceError,
    ProviderError,
    ReplyError,
    StillWaitingError,
    TransientError,
    UnclearReplyError,
    to_be_asked,
)
from judges.functions import contained
from judges.masking import exception_line
from judges.pace import Pace, backoff_s
from judges.providers import Provider, open_provider
from judges.providers.replay import ReadRecords
from judges.spec import VENDORS, JudgeSpec, Price, cost_usd, price_of
from judges.types import CallTrace, Completion, Finish, JudgeFailure, Judgment, Message, Prompt, Task, Usage
from judges.witness import Witness
from judges.writing import estimated_tokens

if TYPE_CHECKING:
    from judges.parse import ParsedReply


Result: TypeAlias = Judgment | JudgeFailure


class Request(Struct, frozen=True):
    """A planned judgment with its id and prompt, and what is stored of it.

    Attributes:
        prompt: ``None`` if no call is needed.
        known: the stored result; a failure that the judged texts caused is kept if asking again fails otherwise.
        want: the planned judgment, as the caller knows it.
        elsewhere: whether another process is asking for it.
        lead: key of the beginning that its prompt shares with others in the server's cache; empty if it has none.
    """

    judgment_id: str
    prompt: Prompt | None
    known: Result | None = None
    want: Any = None
    elsewhere: bool = False
    lead: str = ""


class Account(Struct):
    """Counts the tokens, seconds and replies of one judgment so far, over all its calls.

    Attributes:
        price: the price of the judge's tokens; ``None`` if it is not known.
        model: the server's name for the model; before the first reply, the requested name.
        started: start of the first call; the wait before it, until the judge's limits allow a call, does not count as
            latency.
        queued_s: seconds spent waiting until the judge's limits allowed a call.
        replied_s, called_s: seconds spent in calls that returned a reply, and in all calls.
        rejected: replies outside the contract; the judge was asked again after each of them.
        error: the error of the last attempt; ``None`` if the attempt returned a reply.
        to_do: what the user can do about a failure, if it differs from the usual remedy for its cause.
    """

    judgment_id: str
    task: Task
    price: Price | None
    model: str
    started: float | None = None
    queued_s: float = 0.0
    replied_s: float = 0.0
    called_s: float = 0.0
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    rejected: list[str] = field(default_factory=list)
    error: ProviderError | None = None
    to_do: str = ""

    def judgment(self, completion: Completion, parsed: ParsedReply) -> Judgment:
        return Judgment(
            self.judgment_id,
            parsed.outcome,
            parsed.reason,
            completion.text,
            completion.model,
            **self._totals(),
            replied_s=self.replied_s,
            called_s=self.called_s,
        )

    def failure(self, cause: str, message: str, reply: str | None = None, *, to_do: str = "") -> JudgeFailure:
        self.to_do = to_do
        message = f"{message}; {to_do}" if to_do else message
        return JudgeFailure(self.judgment_id, cause, message, reply, self.model, **self._totals())

    def _totals(self) -> dict[str, Any]:
        return {
            "usage": self.usage,
            "calls": self.calls,
            "latency_s": 0.0 if self.started is None else time.perf_counter() - self.started,
            "cost_usd": cost_usd(self.usage, self.price),
            "rejected": tuple(self.rejected),
        }


FINAL_FINISHES = {
    Finish.FILTER: ("content_filter", "the provider's filter withheld the reply"),
    Finish.REFUSAL: ("refusal", "the model refused to answer"),
    Finish.TOO_LONG: ("too_long", "the reply is longer than any that can be used"),
}
"""For each way in which a reply can end so that another call would not help: the failure's cause and message."""


_REASONING_ADVICE = "turn reasoning off by 'extra_body', or raise 'max_tokens'"


def read(completion: Completion, prompt: Prompt) -> ParsedReply:
    """Parse a model's completion; raises ``ReplyError`` if it is outside the contract, cut off, or empty."""
    if not completion.text.strip():
        where = f": its text stands in {completion.aside!r}" if completion.aside else ""
        raise ReplyError(f"the reply was empty{where}")
    if completion.finish is Finish.LENGTH:
        raise ReplyError("the reply was cut off; explain more briefly")
    return parsed(completion.text, prompt)


def parsed(text: str, prompt: Prompt) -> ParsedReply:
    from judges.parse import parse_reply  # late: a run whose replies are all cached never parses

    try:
        return parse_reply(text, prompt.contract, prompt.inputs)
    except ReplyError:
        raise
    except Exception as error:
        raise ReplyError(f"the reply cannot be read: {exception_line(error)}") from error


def asked_again(prompt: Prompt, reply: str, error: ReplyError) -> Prompt:
    """The prompt for the next call: the same prompt, the rejected reply, and a message about its error.

    After a reply that may be a quotation, every further reply must carry a mark, a new one each time. An empty reply is
    replaced by ``(no reply)``, since servers refuse empty messages.
    """
    contract, form = prompt.contract, "exactly in the form asked for."
    if contract.mark or isinstance(error, UnclearReplyError):
        contract = replace(contract, mark=unused_mark(prompt))
        form = f"so that it can be told from a quotation. {reply_rule(contract)}"
    turns = (
        Message("assistant", reply.strip() or "(no reply)"),
        Message("user", f"That reply cannot be used: {error}. Reply again, {form}"),
    )
    return replace(prompt, contract=contract, turns=prompt.turns + turns)


def read_again(prompt: Prompt, replies: Sequence[str]) -> ParsedReply:
    """Parse the last of ``replies`` to a prompt, after the earlier ones were rejected.

    The contract is that of the last prompt: after a reply that might be a quotation, it requires a mark.
    """
    for reply in replies[:-1]:
        try:
            parsed(reply, prompt)
        except ReplyError as error:
            prompt = asked_again(prompt, reply, error)
    return parsed(replies[-1], prompt)


_INITIAL_CALLS = 4
"""Limit on concurrent calls until the first reply, so that a wrong setting costs few calls."""
MAX_REASKS = 2
"""How often a judge is asked again after replies outside the contract; then the judgment fails."""

_STARTUP_S = 60.0
"""Seconds for which calls are retried beyond ``max_attempts`` if the server never replied, since it may be starting
up."""


class Stop:
    """Tells all judges and agents to finish the calls in flight and to start no new calls."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []

    def request(self) -> None:
        for callback in self._callbacks:
            callback()

    def tell(self, callback: Callable[[], None]) -> None:
        """Register ``callback``, which is called when a stop is requested."""
        self._callbacks.append(callback)


MayAsk = Callable[[str], Awaitable[bool]]
"""Checks, by a judgment's id, whether this process may still make the judgment: another process may have taken it
over."""


Called = Callable[[str], None]


class _NotSentError(Exception):
    """A call was not made because the judge has halted; the judgment has not failed."""


class _ClaimLostError(_NotSentError):
    """A call was not made because another process may have taken over the judgment."""


class Judge:
    """A provider with its rate limits, budget and retries.

    Attributes:
        spent_usd: cost of all calls so far, as far as the price is known.
        stopped: the error that stopped the judge, if one did.
        halted: set once no further request may be sent: an error stopped the judge, its budget is spent, or a stop was
            requested.
        latencies_s: seconds of each call that returned a reply.
        calls: number of calls sent, including retries.
        may_ask: checks before each call that no other process has taken over the judgment; ``None`` if there is no
            other.
        called: called after each call, failed or not, with the judgment's id.
    """

    may_ask: MayAsk | None = None
    called: Called | None = None

    def __init__(
        self,
        name: str,
        spec: JudgeSpec,
        provider: Provider | None = None,
        *,
        read_records: ReadRecords | None = None,
        stop: Stop | None = None,
        trace: Callable[[CallTrace], None] | None = None,
    ) -> None:
        """Open the provider that ``spec`` names, unless one is given; ``trace`` is called after every call.

        Raises:
            InputError: a key, extra or file is missing, or the model has a budget but no known price.
        """
        self.name, self.spec = name, spec
        self.price = price_of(spec)
        if spec.max_cost_usd is not None and self.price is None:
            raise ConfigError(
                f"judges.{name}: max_cost_usd needs a 'price', since the price of {spec.model!r} is not known"
            )
        self.provider = provider or open_provider(spec, read_records)
        self.spent_usd = 0.0
        self.stopped: JudgeStoppedError | None = None
        self.latencies_s = array("d")
        self.calls = 0
        self.halted = asyncio.Event()
        self._trace = trace
        self._usual_output = float(spec.max_tokens)
        budget_usd = spec.max_cost_usd or 0.0
        # The requests waiting in batches could together cost many times the budget before the first cost is known.
        left_usd = (lambda: budget_usd - self.spent_usd) if spec.in_batches and budget_usd else None
        ramps_up = (spec.provider in VENDORS or spec.provider == "python") and not spec.in_batches
        self._connection_failures, self._judgment_failures = FailureCounter(), FailureCounter(spec.retry_s)
        self._witness = Witness(name, spec)
        self._failing_since: float | None = None
        if spec.in_batches:  # failures stop no batch: its requests are already sent, its replies already paid
            self._connection_failures.add_success()
            self._judgment_failures.add_success()
        self._pace = Pace(
            spec.at_once,
            spec.requests_per_minute,
            spec.tokens_per_minute,
            spec.max_retry_s,
            left_usd=left_usd,
            at_first=_INITIAL_CALLS if ramps_up else None,
        )
        if stop is not None:
            stop.tell(self.halt)

    def halt(self, error: JudgeStoppedError | None = None) -> None:
        """Send no more requests, and wake all tasks that wait for their turn or for a request."""
        self.stopped = self.stopped or error
        self.halted.set()
        self._pace.wake()

    @property
    def at_once(self) -> int:
        return self.spec.at_once

    @property
    def budget_spent(self) -> bool:
        """Whether ``max_cost_usd`` is used up; calls in flight may exceed it."""
        return self.spec.max_cost_usd is not None and self.spent_usd >= self.spec.max_cost_usd

    async def judge(self, request: Request) -> Result | None:
        """Call the provider until it returns a reply within the contract, or a failure that retries would not change.

        Returns:
            ``None`` if nothing was sent, because the judge had halted or another process may have taken over the
            judgment; or if the run stopped waiting for the request's batch; a later run waits for it again.
        """
        prompt, known = request.prompt, request.known
        assert prompt is not None
        before = known if isinstance(known, JudgeFailure) and not to_be_asked(known) else None
        account = Account(request.judgment_id, prompt.task, self.price, self.spec.model)
        result = await self._judged(prompt, account)
        if isinstance(result, Judgment):
            self._judgment_failures.add_success()
        elif result is not None:
            about_texts = result.cause not in RETRIED_NEXT_RUN
            of_text = account.error is not None and account.error.of_text
            repeated = before is not None and about_texts  # tells nothing about other texts
            if not repeated and not of_text and self._judgment_failures.add_failure(result.cause):
                problem = result.message.removesuffix(f"; {account.to_do}")
                self.halt(
                    JudgeStoppedError(result.cause, self._judgment_failures.stop_message(problem), to_do=account.to_do)
                )
            if before is not None and not about_texts:  # so the earlier failure still stands
                return replace(result, cause=before.cause, message=before.message, reply=before.reply)
        return result

    async def _judged(self, prompt: Prompt, account: Account) -> Result | None:
        try:
            return await self._converse(prompt, account)
        except (StillWaitingError, _ClaimLostError):
            return None
        except JudgeStoppedError as error:
            self.halt(error)
            return account.failure(error.cause, error.problem, to_do=error.to_do)
        except ProviderError as error:
            return account.failure(error.cause, error.problem, to_do=error.to_do)
        except _NotSentError:
            return self._unsent_result(account)

    def _unsent_result(self, account: Account) -> Result | None:
        """The result of a judgment whose next call was not made: a failure if a call was made before, else ``None``.

        For a judge in batch mode it is always ``None``: the next run reads the batch's replies again.
        """
        if not account.calls or self.spec.in_batches:
            return None
        reply = account.rejected[-1] if account.rejected else None
        if self.stopped is not None:
            return account.failure("stopped", f"not asked again: {self.stopped}", reply)
        if self.budget_spent:
            return account.failure("budget", "not asked again: no money left", reply)
        if account.error is not None:
            return account.failure(account.error.cause, account.error.problem, reply, to_do=account.error.to_do)
        return account.failure("stopped", "not asked again: the run was stopped", reply)

    async def _converse(self, prompt: Prompt, account: Account) -> Result:
        while True:
            completion = await self._call(prompt, account)
            if completion.finish in FINAL_FINISHES:
                cause, message = FINAL_FINISHES[completion.finish]
                return account.failure(cause, message, completion.text)
            try:
                reply = read(completion, prompt)
            except ReplyError as error:
                if len(account.rejected) == MAX_REASKS:
                    cut = "truncated" if completion.finish is Finish.LENGTH else "contract"
                    cause = cut if completion.text.strip() else "empty"
                    to_do = _REASONING_ADVICE if cause == "empty" and completion.aside else ""
                    return account.failure(cause, str(error), completion.text, to_do=to_do)
                account.rejected.append(completion.text)
                prompt = asked_again(prompt, completion.text, error)
                continue
            return account.judgment(completion, reply)

    async def _call(self, prompt: Prompt, account: Account) -> Completion:
        """Call the provider until it returns a reply, which is not parsed here, or its retries are used up.

        Calls are retried within ``max_attempts`` and ``retry_s``; waiting until the judge's limits allow a call does
        not count.
        """
        attempts, failed_at, queued_s = 0, 0.0, 0.0
        while True:
            try:
                completion = await self._attempt(prompt, account)
            except TransientError as error:
                account.error = error
                attempts += 1
                if attempts == 1:
                    failed_at, queued_s = time.perf_counter(), account.queued_s
                wait_s = backoff_s(min(attempts, self.spec.max_attempts - 1), error)
                wait_s = 0.0 if self.spec.in_batches else wait_s  # which are submitted together anyway
                trying_s = time.perf_counter() - failed_at - (account.queued_s - queued_s)
                last = attempts >= self.spec.max_attempts and not self._may_be_starting(error)
                if last or trying_s + wait_s >= self.spec.retry_s:
                    raise
            else:
                account.error = None
                return completion
            await self._sleep(wait_s)

    def _may_be_starting(self, error: TransientError) -> bool:
        """Whether to retry beyond the default of ``max_attempts``: the server answers, but has never replied."""
        was_up = self._connection_failures.has_succeeded or isinstance(error, NoServiceError | BrokenReplyError)
        if was_up or "max_attempts" in self.spec.model_fields_set:
            return False
        now = time.perf_counter()
        if self._failing_since is None:
            self._failing_since = now
            PROGRESS.info("judge %s: %s; asked again for up to %.0f s", self.name, error, _STARTUP_S)
        return now - self._failing_since < _STARTUP_S

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.halted.wait()
                raise _NotSentError

    async def _attempt(self, prompt: Prompt, account: Account) -> Completion:
        tokens, queued_at = self._expected_tokens(prompt), time.perf_counter()
        ticket = await self._pace.enter(tokens, self.halted.is_set, self._expected_usd(tokens))
        account.queued_s += time.perf_counter() - queued_at
        if ticket is None:
            raise _NotSentError
        try:  # right before the call, since this process may have been suspended while it waited for a slot
            if self.may_ask is not None and not await self.may_ask(account.judgment_id):
                raise _ClaimLostError
        except BaseException:
            self._pace.leave(ticket, 0)
            raise
        self.calls += 1
        tokens_used, started = None, time.perf_counter()
        account.calls += 1
        account.started = account.started or started
        try:
            async with asyncio.timeout(self.spec.reply_s):
                completion = await contained(self.provider.complete(prompt))
        except (TimeoutError, ProviderError) as raised:
            timeout_error = TransientError("timeout", f"no reply within {self.spec.timeout_s:g} s")
            error = raised if isinstance(raised, ProviderError) else timeout_error
            self._record_call(account, time.perf_counter() - started, error=error)
            if isinstance(error, NoServiceError) and self._connection_failures.add_failure(error.cause):
                error = JudgeStoppedError(
                    error.cause, self._connection_failures.stop_message(error.problem), to_do=error.to_do
                )
            if error.cause == "rate_limit":
                self._pace.slow_down(ticket, error.retry_after_s)
                wait_s, longest_s = error.retry_after_s or 0.0, self.spec.max_retry_s
                if wait_s > longest_s:
                    waits = f"the server asks to wait {wait_s:.0f} s, max_retry_s is {longest_s:g}"
                    raise JudgeStoppedError("rate_limit", f"{error.problem} ({waits})") from None
            account.error = error
            raise error from None
        else:
            tokens_used = completion.usage.total
            latency_s = time.perf_counter() - started
            mismatch = self._witness.look(completion, prompt)
            self._count_reply(completion, prompt, account, usable=mismatch is None)
            self._record_call(account, latency_s, completion)
            if mismatch is not None:
                account.error = mismatch
                raise mismatch
            return completion
        finally:
            self._pace.leave(ticket, tokens_used)

    def _count_reply(self, completion: Completion, prompt: Prompt, account: Account, *, usable: bool) -> None:
        account.usage += completion.usage
        account.model = completion.model
        self._connection_failures.add_success()
        if completion.usage.output_tokens is not None:
            self._usual_output += (completion.usage.output_tokens - self._usual_output) / 8
        if usable:  # else the limit on concurrent calls stays as it was before the first reply
            self._pace.speed_up()
        if completion.allowance is not None:
            self._pace.respect_limits(completion.allowance, self._expected_tokens(prompt))
        dollars = cost_usd(completion.usage, self.price)
        self.spent_usd += dollars or 0.0
        if dollars is None and self.spec.max_cost_usd is not None:
            message = (
                "the server does not say how many tokens it used, so max_cost_usd cannot be enforced; leave it out"
            )
            self.halt(JudgeStoppedError("budget", message))
        if self.budget_spent:
            self.halt()

    def _expected_tokens(self, prompt: Prompt) -> int:
        return int(sum(map(estimated_tokens, prompt.texts)) + int(self._usual_output))

    def _expected_usd(self, tokens: int) -> float:
        """Expected dollars for a call of ``tokens``, with an output of usual length; 0 if the judge has no budget."""
        if self.spec.max_cost_usd is None:
            return 0.0
        output_tokens = int(self._usual_output)
        return cost_usd(Usage(tokens - output_tokens, None, output_tokens), self.price) or 0.0

    def _record_call(
        self,
        account: Account,
        latency_s: float,
        completion: Completion | None = None,
        *,
        error: ProviderError | None = None,
    ) -> None:
        account.called_s += latency_s
        if self.called is not None:
            self.called(account.judgment_id)
        if completion is not None:
            account.replied_s += latency_s
            self.latencies_s.append(latency_s)
        if self._trace is None:
            return
        self._trace(
            CallTrace(
                at=time.time(),
                judge=self.name,
                model=completion.model if completion else self.spec.model,
                task=account.task,
                judgment_id=account.judgment_id,
                call=account.calls,
                reask=len(account.rejected),
                latency_s=latency_s,
                finish=completion.finish.value if completion else None,
                cause=error.cause if error else None,
                usage=completion.usage if completion else Usage(),
                cost_usd=cost_usd(completion.usage, self.price) if completion else None,
                allowed=int(self._pace.allowed),
            )
        )

    async def close(self) -> None:
        await self.provider.close()


Sink = Callable[[Any, Any], Awaitable[None]]
"""A callback with a request and its result. Judges await it, so a slow callback slows them down."""


class Respondent(Protocol):
    """Anything that answers requests: a judge, or a system under evaluation."""

    @property
    def name(self) -> str: ...

    @property
    def at_once(self) -> int: ...

    @property
    def halted(self) -> asyncio.Event:
        """Set once no further request may be sent."""

    may_ask: MayAsk | None
    """Checks before each call that no other process has taken over the request; ``None`` if no other process can."""
    called: Called | None

    async def judge(self, request: Any, /) -> Any:
        """Answer a request and return the result; ``None`` if nothing was sent."""


class RequestSource:
    """The queue of one judge's requests. A request is created only when the judge takes it."""

    def take(self) -> Any:
        """Remove and return the next request; ``None`` if none is ready."""
        raise NotImplementedError

    async def more(self) -> bool:
        """Wait until another request may be ready; ``False`` if there will be no more requests."""
        raise NotImplementedError

    def put_back(self, request: Any) -> None:
        """Return to the queue a request that was not sent, because the judge halted or another process took it over."""
        raise NotImplementedError

    def end(self) -> None:
        """Close the queue, because the judge halted or everything has been judged."""
        raise NotImplementedError

    async def serve(self, judge: Respondent, sink: Sink) -> None:
        """Let the judge answer the requests at its own concurrency; when it halts, the rest stay in the queue."""
        slots = asyncio.Semaphore(judge.at_once)

        async def work(request: Any) -> None:
            """Judge one request, then further ones as long as any are ready, as one of the judge's concurrent calls."""
            try:
                while request is not None:
                    result = await judge.judge(request)
                    if result is None:
                        self.put_back(request)
                        break
                    await sink(request, result)
                    request = None if judge.halted.is_set() else self.take()
            finally:
                slots.release()

        working: set[asyncio.Task[None]] = set()
        try:
            async with asyncio.TaskGroup() as group:
                while not judge.halted.is_set():
                    await slots.acquire()
                    request = None if judge.halted.is_set() else self.take()
                    if request is not None:
                        task = group.create_task(work(request))
                        working.add(task)
                        task.add_done_callback(working.discard)
                        continue
                    slots.release()
                    if await self._has_more(judge):
                        continue
                    if not working:
                        break
                    await asyncio.wait(working)  # they may put their requests back
        finally:
            self.end()

    async def _has_more(self, judge: Respondent) -> bool:
        tasks = [asyncio.ensure_future(self.more()), asyncio.ensure_future(judge.halted.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return not judge.halted.is_set() and tasks[0].result()
        finally:
            for task in tasks:
                task.cancel()
