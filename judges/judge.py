"""From requests to judgments: each judge asks its provider until there is a reply within the contract, or a failure."""

from __future__ import annotations

import asyncio
import random
import time
from array import array
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from judges.contracts import reply_rule, unused_mark
from judges.errors import (
    PROGRESS,
    RETRIED_NEXT_RUN,
    BrokenReplyError,
    ConfigError,
    JudgeStoppedError,
    Misses,
    NoServiceError,
    ProviderError,
    ReplyError,
    StillWaitingError,
    TransientError,
    UnclearReplyError,
)
from judges.functions import contained
from judges.masking import exception_line
from judges.pace import Pace, Ticket
from judges.providers import Provider, open_provider
from judges.providers.replay import ReadRecords
from judges.spec import VENDORS, JudgeSpec, Price, cost_usd, price_of
from judges.types import CallTrace, Completion, Finish, JudgeFailure, Judgment, Prompt, Turn, Usage
from judges.witness import Witness
from judges.writing import estimated_tokens

if TYPE_CHECKING:
    from judges.parse import ParsedReply


class Request(Struct, frozen=True):
    """One judgment that is wanted; ``before`` is the failure about its texts that an earlier run ended in."""

    judgment_id: str
    prompt: Prompt
    before: JudgeFailure | None = None


class Account(Struct):
    """What one judgment has used so far, over all its calls.

    Attributes:
        request: what is wanted.
        price: of the judge's tokens, ``None`` where it is not known.
        model: as the server names it, until then as it was asked for.
        started: when the first call began: waiting for a turn is no doing of the model's.
        in_line_s: seconds spent waiting for turns.
        replied_s, called_s: seconds of the calls that brought a reply, and of all.
        rejected: replies outside the contract, to each of which the judge was asked again.
        error: of the last attempt, if that brought no reply.
        to_do: what mends a failure, where that is not what mends its cause.
    """

    request: Request
    price: Price | None
    model: str
    started: float | None = None
    in_line_s: float = 0.0
    replied_s: float = 0.0
    called_s: float = 0.0
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    rejected: list[str] = field(default_factory=list)
    error: ProviderError | None = None
    to_do: str = ""

    def begin_call(self) -> float:
        """Count a call that begins now; returns when that is."""
        now = time.perf_counter()
        self.calls += 1
        self.started = now if self.started is None else self.started
        return now

    def end_call(self, began: float, *, replied: bool) -> None:
        """Count the seconds of a call."""
        seconds = time.perf_counter() - began
        self.called_s += seconds
        self.replied_s += seconds if replied else 0.0

    def take(self, completion: Completion) -> None:
        """Count what a reply has used."""
        self.usage += completion.usage
        self.model = completion.model

    def judgment(self, completion: Completion, parsed: ParsedReply) -> Judgment:
        """The last reply is within the contract."""
        return Judgment(
            self.request.judgment_id,
            parsed.outcome,
            parsed.reason,
            completion.text,
            completion.model,
            **self._totals(),
            replied_s=self.replied_s,
            called_s=self.called_s,
        )

    def failure(self, cause: str, message: str, reply: str | None = None, *, to_do: str = "") -> JudgeFailure:
        """There will be no judgment."""
        self.to_do = to_do
        message = f"{message}; {to_do}" if to_do else message
        return JudgeFailure(self.request.judgment_id, cause, message, reply, self.model, **self._totals())

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
"""Cause and message of failures that another call would not mend."""


_REASONED = "turn reasoning off by 'extra_body', or raise 'max_tokens'"


def read(completion: Completion, prompt: Prompt) -> ParsedReply:
    """What a completion says.

    Raises:
        ReplyError: it is outside the contract, cut off, or empty.
    """
    if not completion.text.strip():
        where = f": its text stands in {completion.aside!r}" if completion.aside else ""
        raise ReplyError(f"the reply was empty{where}")
    if completion.finish is Finish.LENGTH:
        raise ReplyError("the reply was cut off; explain more briefly")
    return parsed(completion.text, prompt)


def parsed(text: str, prompt: Prompt) -> ParsedReply:
    """What a reply to a prompt says.

    Raises:
        ReplyError: it is outside the contract, or the parser fails on it.
    """
    from judges.parse import parse_reply  # late, as a run that knows all replies reads none

    try:
        return parse_reply(text, prompt.contract, prompt.inputs)
    except ReplyError:
        raise
    except Exception as error:
        raise ReplyError(f"the reply cannot be read: {exception_line(error)}") from error


def asked_again(prompt: Prompt, reply: str, error: ReplyError) -> Prompt:
    """The same prompt with the refused reply and what is wrong with it; an empty message cannot be sent.

    Once a reply may have been a quotation, all that follow must carry a mark, each its own.
    """
    contract, form = prompt.contract, "exactly in the form asked for."
    if contract.mark or isinstance(error, UnclearReplyError):
        contract = replace(contract, mark=unused_mark(prompt))
        form = f"so that it can be told from a quotation. {reply_rule(contract)}"
    turns = (
        Turn("assistant", reply.strip() or "(no reply)"),
        Turn("user", f"That reply cannot be used: {error}. Reply again, {form}"),
    )
    return replace(prompt, contract=contract, turns=prompt.turns + turns)


def read_again(prompt: Prompt, replies: Sequence[str]) -> ParsedReply:
    """What the last reply to a prompt says, where those before it were refused.

    Raises:
        ReplyError: it is outside the contract that it was asked for under.
    """
    for reply in replies[:-1]:
        try:
            parsed(reply, prompt)
        except ReplyError as error:
            prompt = asked_again(prompt, reply, error)
    return parsed(replies[-1], prompt)


_AT_FIRST = 4
"""Calls at once until the first reply: where none can succeed, few are made."""
MAX_REASKS = 2
"""How often a judge is told what is wrong with its reply before the judgment counts as failed."""

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 60.0
_STARTING_S = 60.0
"""Seconds beyond all attempts in which a server that has not replied yet may still be starting."""
Result = Judgment | JudgeFailure


class Stop:
    """Asks whatever runs to finish what is in flight and begin nothing new."""

    def __init__(self) -> None:
        self._told: list[Callable[[], None]] = []

    def request(self) -> None:
        """Begin nothing new."""
        for callback in self._told:
            callback()

    def tell(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` when a stop is requested."""
        self._told.append(callback)


MayAsk = Callable[[str], Awaitable[bool]]
"""Whether the judgment with this id may be asked for: another process may do so meanwhile."""


class _GivenUpError(Exception):
    """A call was not made, because nothing new is to begin; no fault of the judgment."""


class _LostError(_GivenUpError):
    """A call was not made, because another process may ask for the judgment."""


class Judge:
    """A provider with its limits.

    Attributes:
        spent_usd: over all calls, as far as the price is known.
        stopped: the error after which it is not asked any more.
        halted: set once no further request may be sent: it stopped, its money is spent, or a stop was requested.
        latencies_s: seconds of each call that brought a reply.
        calls: attempts sent.
        may_ask: looked at before each call, where there may be other processes.
    """

    may_ask: MayAsk | None = None

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
        """Open the provider that ``spec`` names, unless one is given.

        Args:
            name: by which results and messages call it.
            spec: its declaration.
            provider: in place of the declared one.
            read_records: see ``open_provider``.
            stop: ends waiting, so that nothing new begins.
            trace: told of every call.

        Raises:
            InputError: a missing key, extra or file; a budget for a model whose price is not known.
        """
        self.name = name
        self.spec = spec
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
        # What waits in batches together could cost many times the budget, before the first price is known.
        left_usd = self._left_usd if spec.in_batches and spec.max_cost_usd is not None else None
        asks_elsewhere = (spec.provider in VENDORS or spec.provider == "python") and not spec.in_batches
        self._unserved, self._failed = Misses(), Misses(spec.retry_s)
        self._witness = Witness(name, spec)
        self._failing_since: float | None = None
        if spec.in_batches:  # what has come back is paid for, and the rest has been sent
            self._unserved.hit()
            self._failed.hit()
        self._pace = Pace(
            spec.at_once,
            spec.requests_per_minute,
            spec.tokens_per_minute,
            spec.max_retry_s,
            left_usd=left_usd,
            at_first=_AT_FIRST if asks_elsewhere else None,
        )
        if stop is not None:
            stop.tell(self.halt)

    def halt(self, error: JudgeStoppedError | None = None) -> None:
        """Send nothing more: whoever waits for a turn, or for something to ask, looks again."""
        self.stopped = self.stopped or error
        self.halted.set()
        self._pace.wake()

    @property
    def at_once(self) -> int:
        """Requests that it works on at the same time."""
        return self.spec.at_once

    @property
    def budget_spent(self) -> bool:
        """Whether ``max_cost_usd`` is used up. Calls in flight when it is may still add to it."""
        return self.spec.max_cost_usd is not None and self.spent_usd >= self.spec.max_cost_usd

    def _left_usd(self) -> float:
        return (self.spec.max_cost_usd or 0.0) - self.spent_usd

    async def judge(self, request: Request) -> Result | None:
        """Ask until there is a reply within the contract, or a failure that another attempt would not mend.

        Returns:
            ``None`` if nothing was sent, because a stop came, the judge stopped or its money was spent before; if
            another process may ask; or if it is in a batch that was not waited for, and will be found there again.
        """
        account = Account(request, self.price, self.spec.model)
        result = await self._judged(account)
        if isinstance(result, Judgment):
            self._failed.hit()
        elif result is not None:
            about_texts = result.cause not in RETRIED_NEXT_RUN
            of_text = account.error is not None and account.error.of_text
            again = request.before is not None and about_texts  # says nothing of others
            if not again and not of_text and self._failed.miss(result.cause):
                problem = result.message.removesuffix(f"; {account.to_do}")
                self.halt(JudgeStoppedError(result.cause, self._failed.alike(problem), to_do=account.to_do))
            if request.before is not None and not about_texts:  # nothing new is known of the texts
                earlier = request.before
                return replace(result, cause=earlier.cause, message=earlier.message, reply=earlier.reply)
        return result

    async def _judged(self, account: Account) -> Result | None:
        try:
            return await self._converse(account)
        except (StillWaitingError, _LostError):
            return None
        except JudgeStoppedError as error:
            self.halt(error)
            return account.failure(error.cause, error.problem, to_do=error.to_do)
        except ProviderError as error:
            return account.failure(error.cause, error.problem, to_do=error.to_do)
        except _GivenUpError:
            return self._given_up(account)

    def _given_up(self, account: Account) -> Result | None:
        """What becomes of a judgment that is not asked any more: nothing, or a failure if calls were made for it.

        Replies that came in batches are found there again by the next run.
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

    async def _converse(self, account: Account) -> Result:
        prompt = account.request.prompt
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
                    to_do = _REASONED if cause == "empty" and completion.aside else ""
                    return account.failure(cause, str(error), completion.text, to_do=to_do)
                account.rejected.append(completion.text)
                prompt = asked_again(prompt, completion.text, error)
                continue
            return account.judgment(completion, reply)

    async def _call(self, prompt: Prompt, account: Account) -> Completion:
        """One reply, whatever it says; attempts are repeated within bounds of number and time (not that in line)."""
        attempts, failed_at, in_line_s = 0, 0.0, 0.0
        while True:
            try:
                completion = await self._attempt(prompt, account)
            except TransientError as error:
                account.error = error
                attempts += 1
                if attempts == 1:
                    failed_at, in_line_s = time.perf_counter(), account.in_line_s
                wait_s = self._backoff_s(min(attempts, self.spec.max_attempts - 1), error)
                trying_s = time.perf_counter() - failed_at - (account.in_line_s - in_line_s)
                last = attempts >= self.spec.max_attempts and not self._may_be_starting(error)
                if last or trying_s + wait_s >= self.spec.retry_s:
                    raise
            else:
                account.error = None
                return completion
            await self._sleep(wait_s)

    def _may_be_starting(self, error: TransientError) -> bool:
        """Whether a server that fails, but is there, gets more attempts than by default: it has not replied yet."""
        up = self._unserved.over or isinstance(error, NoServiceError | BrokenReplyError)
        if up or "max_attempts" in self.spec.model_fields_set:
            return False
        now = time.perf_counter()
        if self._failing_since is None:
            self._failing_since = now
            PROGRESS.info("judge %s: %s; asked again for up to %.0f s", self.name, error, _STARTING_S)
        return now - self._failing_since < _STARTING_S

    def _backoff_s(self, attempts: int, error: TransientError) -> float:
        """At least what the server asked for, else exponential with full jitter; batches go out at one time anyway."""
        if self.spec.in_batches:
            return 0.0
        longest_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(attempts - 1, 32))
        return max(error.retry_after_s or 0.0, random.uniform(0, longest_s))  # noqa: S311 - no secret

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.halted.wait()
                raise _GivenUpError

    async def _attempt(self, prompt: Prompt, account: Account) -> Completion:
        tokens, came = self._expected_tokens(prompt), time.perf_counter()
        ticket = await self._pace.enter(tokens, self.halted.is_set, self._expected_usd(tokens))
        account.in_line_s += time.perf_counter() - came
        if ticket is None:
            raise _GivenUpError
        await self._require_claim(account.request, ticket)
        self.calls += 1
        sent, used = account.begin_call(), None
        try:
            async with asyncio.timeout(self.spec.reply_s):
                completion = await contained(self.provider.complete(prompt))
        except (TimeoutError, ProviderError) as raised:
            late = TransientError("timeout", f"no reply within {self.spec.timeout_s:g} s")
            error = raised if isinstance(raised, ProviderError) else late
            account.end_call(sent, replied=False)
            self._note(account, sent, error=error)
            if isinstance(error, NoServiceError) and self._unserved.miss(error.cause):
                error = JudgeStoppedError(error.cause, self._unserved.alike(error.problem), to_do=error.to_do)
            if error.cause == "rate_limit":
                self._pace.slow_down(ticket, error.retry_after_s)
                self._check_wait(error)
            account.error = error
            raise error from None
        else:
            used = _tokens(completion.usage)
            account.end_call(sent, replied=True)
            unlike = self._witness.look(completion, prompt)
            self._took_in(completion, prompt, account, usable=unlike is None)
            self._note(account, sent, completion)
            if unlike is not None:
                account.error = unlike
                raise unlike
            return completion
        finally:
            self._pace.leave(ticket, used)

    async def _require_claim(self, request: Request, ticket: Ticket) -> None:
        """Look last thing before a call, as a process may have slept while it waited for its turn."""
        try:
            if self.may_ask is not None and not await self.may_ask(request.judgment_id):
                raise _LostError
        except BaseException:
            self._pace.leave(ticket, 0)
            raise

    def _check_wait(self, error: ProviderError) -> None:
        """A wait that is longer than a run should take ends the judge's work, and says when to come back."""
        asked = error.retry_after_s or 0.0
        if asked > self.spec.max_retry_s:
            message = (
                f"{error.problem} (the server asks to wait {asked:.0f} s, max_retry_s is {self.spec.max_retry_s:g})"
            )
            raise JudgeStoppedError("rate_limit", message)

    def _took_in(self, completion: Completion, prompt: Prompt, account: Account, *, usable: bool) -> None:
        account.take(completion)
        self._unserved.hit()
        if completion.usage.output_tokens is not None:
            self._usual_output += (completion.usage.output_tokens - self._usual_output) / 8
        if usable:  # else as few calls as before the first reply
            self._pace.speed_up()
        if completion.allowance is not None:
            self._pace.heed(completion.allowance, self._expected_tokens(prompt))
        self._pay(cost_usd(completion.usage, self.price))

    def _expected_tokens(self, prompt: Prompt) -> int:
        texts = (prompt.system, prompt.user, *(turn.text for turn in prompt.turns))
        return int(sum(map(estimated_tokens, texts)) + int(self._usual_output))

    def _expected_usd(self, tokens: int) -> float:
        """What so many tokens are expected to cost, as many of them written as usual; 0 where no money is counted."""
        if self.spec.max_cost_usd is None:
            return 0.0
        written = int(self._usual_output)
        return cost_usd(Usage(tokens - written, None, written), self.price) or 0.0

    def _pay(self, dollars: float | None) -> None:
        self.spent_usd += dollars or 0.0
        if dollars is None and self.spec.max_cost_usd is not None:
            message = "the server does not say how many tokens it used, so max_cost_usd cannot be kept; leave it out"
            self.halt(JudgeStoppedError("budget", message))
        if self.budget_spent:
            self.halt()

    def _note(
        self, account: Account, sent: float, completion: Completion | None = None, *, error: ProviderError | None = None
    ) -> None:
        latency_s = time.perf_counter() - sent
        if completion is not None:
            self.latencies_s.append(latency_s)
        if self._trace is None:
            return
        usage = completion.usage if completion is not None else Usage()
        self._trace(
            CallTrace(
                time.time(),
                self.name,
                completion.model if completion is not None else self.spec.model,
                account.request.prompt.task,
                account.request.judgment_id,
                account.calls,
                len(account.rejected),
                latency_s,
                completion.finish.value if completion is not None else None,
                error.cause if error is not None else None,
                usage,
                cost_usd(usage, self.price) if completion is not None else None,
                int(self._pace.allowed),
            )
        )

    async def close(self) -> None:
        """Release the provider."""
        await self.provider.close()


def _tokens(usage: Usage) -> int | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens + usage.output_tokens


class RequestSource(Protocol):
    """Where one judge's requests come from, made no earlier than they are taken."""

    def take(self) -> Any:
        """The next request, ``None`` while there is none."""
        ...

    async def more(self) -> bool:
        """Wait until there may be another request; ``False`` once there will be none."""
        ...

    def put_back(self, request: Any) -> None:
        """A request that was taken has not been sent, since the judge cannot go on or may not ask for it."""
        ...

    def end(self) -> None:
        """Nothing is taken any more: the judge cannot go on, or everything has been judged."""
        ...


Sink = Callable[[str, Any, Any], Awaitable[None]]
"""Takes a judge's name, the request and its result; is awaited, so it can hold the judges back."""


class Asked(Protocol):
    """Whom requests go to: a judge, or a system under evaluation."""

    @property
    def name(self) -> str:
        """By which sources are given."""
        ...

    @property
    def at_once(self) -> int:
        """Requests that it works on at the same time."""
        ...

    @property
    def halted(self) -> asyncio.Event:
        """Set once no further request may be sent."""
        ...

    may_ask: MayAsk | None
    """Looked at before each call."""

    async def judge(self, request: Any, /) -> Any:
        """The result; ``None`` if nothing was sent."""
        ...


async def judge_all(sources: Mapping[str, RequestSource], judges: Mapping[str, Asked], sink: Sink) -> None:
    """Judge everything the sources give, each judge from its own and at its own concurrency.

    Requests that are left when a judge halts are not taken: they stay unjudged, and the caller sees what is missing.

    Args:
        sources: per judge name; a request is taken only when it can be worked on.
        judges: the judges by name.
        sink: called with each result.
    """
    async with asyncio.TaskGroup() as group:
        for name, source in sources.items():
            group.create_task(_work_off(judges[name], source, sink))


async def _work_off(judge: Asked, source: RequestSource, sink: Sink) -> None:
    free = asyncio.Semaphore(judge.at_once)

    async def work(request: Any) -> None:
        """Judge one request and, in the same place, those that are ready behind it: the next leaves at once."""
        try:
            while request is not None:
                result = await judge.judge(request)
                if result is None:
                    source.put_back(request)
                    break
                await sink(judge.name, request, result)
                request = None if judge.halted.is_set() else source.take()
        finally:
            free.release()

    working: set[asyncio.Task[None]] = set()
    try:
        async with asyncio.TaskGroup() as group:
            while not judge.halted.is_set():
                await free.acquire()
                request = None if judge.halted.is_set() else source.take()
                if request is not None:
                    task = group.create_task(work(request))
                    working.add(task)
                    task.add_done_callback(working.discard)
                    continue
                free.release()
                if await _more(source, judge):
                    continue
                if not working:
                    break
                await asyncio.wait(working)  # whose requests may be put back
    finally:
        source.end()


async def _more(source: RequestSource, judge: Asked) -> bool:
    """Wait until the source may have another request; ``False`` if it never will, or the judge halts before."""
    waiting = [asyncio.ensure_future(source.more()), asyncio.ensure_future(judge.halted.wait())]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return not judge.halted.is_set() and waiting[0].result()
    finally:
        for task in waiting:
            task.cancel()
