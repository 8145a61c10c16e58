"""One judgment's account: what its calls have used so far, and the result that comes of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from judges.errors import ProviderError
from judges.parse import ParsedReply
from judges.pricing import cost_usd
from judges.spec import Price
from judges.types import Completion, JudgeFailure, Judgment, Prompt, Usage


@dataclass(frozen=True, slots=True)
class Request:
    """One judgment that is wanted."""

    judgment_id: str
    prompt: Prompt


@dataclass(slots=True)
class Account:
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
            self.usage,
            self.calls,
            self._latency_s(),
            cost_usd(self.usage, self.price),
            tuple(self.rejected),
            self.replied_s,
            self.called_s,
        )

    def failure(self, cause: str, message: str, reply: str | None = None) -> JudgeFailure:
        """There will be no judgment."""
        return JudgeFailure(
            self.request.judgment_id,
            cause,
            message,
            reply,
            self.model,
            self.usage,
            self.calls,
            self._latency_s(),
            cost_usd(self.usage, self.price),
            tuple(self.rejected),
        )

    def _latency_s(self) -> float:
        return 0.0 if self.started is None else time.perf_counter() - self.started
