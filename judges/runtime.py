"""From requests to judgments: concurrency, retries, re-asking, budget. One loop for every stage and judge.

Each judge has ``concurrency`` workers that pull from one lazy iterator, so that a hundred thousand pending requests are
neither a hundred thousand tasks nor as many prompts in memory. Every result goes to the sink as it comes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from judges.errors import ConfigError, JudgeStoppedError, ProviderError, ReplyError, TransientError
from judges.parse import ParsedReply, parse_reply
from judges.pricing import cost_usd, price_of
from judges.providers import Provider, open_provider
from judges.spec import JudgeSpec
from judges.types import Completion, Finish, JudgeFailure, Judgment, Prompt, Turn, Usage

MAX_REASKS = 2
"""How often a judge is told what is wrong with its reply before the judgment counts as failed."""

_BACKOFF = wait_random_exponential(multiplier=0.5, max=60)
_FINAL_FINISHES = {
    Finish.FILTER: ("content_filter", "the provider's filter withheld the reply"),
    Finish.REFUSAL: ("refusal", "the model refused to answer"),
}

Result = Judgment | JudgeFailure


@dataclass(frozen=True, slots=True)
class Request:
    """One judgment that is wanted."""

    judgment_id: str
    prompt: Prompt


@dataclass(slots=True)
class _Account:
    """What one judgment has used so far, over all its calls."""

    started: float = field(default_factory=time.perf_counter)
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    model: str = ""
    rejected: list[str] = field(default_factory=list)


class Judge:
    """A provider with its limits: answers one request after another, counts what it spends."""

    def __init__(self, name: str, spec: JudgeSpec, provider: Provider | None = None) -> None:
        """Open the provider that ``spec`` names, unless one is given.

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
        self.provider = provider or open_provider(spec)
        self.spent_usd = 0.0
        self.stopped: JudgeStoppedError | None = None

    @property
    def may_go_on(self) -> bool:
        """Whether another request may be sent: not stopped, and money left."""
        return self.stopped is None and not self.budget_spent

    @property
    def budget_spent(self) -> bool:
        """Whether ``max_cost_usd`` is used up. Calls in flight when it is may still add to it."""
        return self.spec.max_cost_usd is not None and self.spent_usd >= self.spec.max_cost_usd

    async def judge(self, request: Request) -> Result:
        """Ask until there is a reply within the contract, or a failure that another attempt would not mend."""
        account = _Account()
        try:
            return await self._converse(request, account)
        except JudgeStoppedError as error:
            self.stopped = self.stopped or error
            return self._failure(request, account, error.cause, str(error))
        except ProviderError as error:
            return self._failure(request, account, error.cause, str(error))

    async def _converse(self, request: Request, account: _Account) -> Result:
        prompt = request.prompt
        while True:
            completion = await self._call(prompt, account)
            if completion.finish in _FINAL_FINISHES:
                cause, message = _FINAL_FINISHES[completion.finish]
                return self._failure(request, account, cause, message, completion.text)
            try:
                parsed = _parsed(completion, prompt)
            except ReplyError as error:
                if len(account.rejected) == MAX_REASKS:
                    return self._failure(request, account, _contract_cause(completion), str(error), completion.text)
                if self.budget_spent:
                    message = f"no money left to ask again: {error}"
                    return self._failure(request, account, "budget", message, completion.text)
                account.rejected.append(completion.text)
                prompt = _asked_again(prompt, completion.text, str(error))
                continue
            return Judgment(
                request.judgment_id,
                parsed.outcome,
                parsed.reason,
                completion.text,
                completion.model,
                account.usage,
                account.calls,
                time.perf_counter() - account.started,
                cost_usd(account.usage, self.price),
                tuple(account.rejected),
            )

    async def _call(self, prompt: Prompt, account: _Account) -> Completion:
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(TransientError),
            stop=stop_after_attempt(self.spec.max_attempts),
            wait=_wait,
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                completion = await self._complete(prompt, account)
        account.usage += completion.usage
        account.model = completion.model
        self._pay(cost_usd(completion.usage, self.price))
        return completion

    def _pay(self, dollars: float | None) -> None:
        self.spent_usd += dollars or 0.0
        if dollars is None and self.spec.max_cost_usd is not None and self.stopped is None:
            message = "the server does not say how many tokens it used, so max_cost_usd cannot be kept; leave it out"
            self.stopped = JudgeStoppedError("budget", message)

    async def _complete(self, prompt: Prompt, account: _Account) -> Completion:
        if self.stopped is not None:
            raise JudgeStoppedError("stopped", f"not asked: {self.stopped}")
        account.calls += 1
        try:
            async with asyncio.timeout(self.spec.timeout_s):
                return await self.provider.complete(prompt)
        except TimeoutError:
            raise TransientError("timeout", f"no reply within {self.spec.timeout_s:g} s") from None

    def _failure(
        self, request: Request, account: _Account, cause: str, message: str, reply: str | None = None
    ) -> JudgeFailure:
        return JudgeFailure(
            request.judgment_id,
            cause,
            message,
            reply,
            account.model or self.spec.model,
            account.usage,
            account.calls,
            time.perf_counter() - account.started,
            cost_usd(account.usage, self.price),
            tuple(account.rejected),
        )

    async def close(self) -> None:
        """Release the provider."""
        await self.provider.close()


Sink = Callable[[str, Request, Result], Awaitable[None]]
"""Takes a judge's name, the request and its result; is awaited, so it can hold the judges back."""


class Stop:
    """Asks a running ``judge_all`` to finish what is in flight and take nothing new."""

    def __init__(self) -> None:
        self.requested = False

    def request(self) -> None:
        """Take nothing new."""
        self.requested = True


async def judge_all(
    requests: Mapping[str, Iterator[Request]], judges: Mapping[str, Judge], sink: Sink, stop: Stop | None = None
) -> None:
    """Judge everything the iterators yield, each judge from its own and at its own concurrency.

    Requests that are left when a judge stops, its money is spent or a stop is requested are not drawn from the
    iterator: they stay unjudged, and the caller sees what is missing.

    Args:
        requests: per judge name a lazy iterator; it is advanced only when a worker is free.
        judges: the judges by name.
        sink: called with each result.
        stop: lets another task end the work gracefully.
    """
    halt = stop or Stop()

    async def work(judge: Judge, pending: Iterator[Request]) -> None:
        while judge.may_go_on and not halt.requested:
            request = next(pending, None)
            if request is None:
                return
            await sink(judge.name, request, await judge.judge(request))

    async with asyncio.TaskGroup() as group:
        for name, pending in requests.items():
            for _ in range(judges[name].spec.concurrency):
                group.create_task(work(judges[name], pending))


def _parsed(completion: Completion, prompt: Prompt) -> ParsedReply:
    if not completion.text.strip():
        raise ReplyError("the reply was empty")
    if completion.finish is Finish.LENGTH:
        raise ReplyError("the reply was cut off; explain more briefly")
    return parse_reply(completion.text, prompt.contract, prompt.inputs)


def _contract_cause(completion: Completion) -> str:
    if not completion.text.strip():
        return "empty"
    return "truncated" if completion.finish is Finish.LENGTH else "contract"


def _asked_again(prompt: Prompt, reply: str, problem: str) -> Prompt:
    """The same prompt with the refused reply and what is wrong with it; an empty message cannot be sent."""
    turns = (
        Turn("assistant", reply.strip() or "(no reply)"),
        Turn("user", f"That reply cannot be used: {problem}. Reply again, exactly in the form asked for."),
    )
    return replace(prompt, turns=prompt.turns + turns)


def _wait(state: RetryCallState) -> float:
    """At least what the server asked for, else exponential with full jitter."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after_s if isinstance(error, ProviderError) else None
    return max(asked or 0.0, _BACKOFF(state))
