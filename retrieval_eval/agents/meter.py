"""What one reply of an agent takes, added up over its steps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from judges.errors import ProviderError
from judges.types import Usage
from retrieval_eval.agents.types import AgentFailure, AgentReply, Retrieved


@dataclass(slots=True)
class Meter:
    """Seconds, tokens, calls and dollars so far; dollars are ``None`` once a price is not known.

    Attributes:
        latency_s: of each step, but for its failed attempts.
        tried_s: with its failed attempts.
    """

    latency_s: float = 0.0
    tried_s: float = 0.0
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    cost_usd: float | None = 0.0

    def count(self, usage: Usage, calls: int, cost_usd: float | None) -> None:
        """Add the calls of one step."""
        self.usage += usage
        self.calls += calls
        if calls:
            self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the seconds of a step that is worked on here."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add_seconds(time.perf_counter() - started)

    def add_seconds(self, seconds: float) -> None:
        """Count a step that was not tried again, or of which nobody knows it."""
        self.latency_s += seconds
        self.tried_s += seconds

    def reply(
        self, answer: str, documents: Sequence[Retrieved] = (), citations: Sequence[str] = ()
    ) -> AgentReply | AgentFailure:
        """The reply with what it took; without an answer there is none."""
        if not answer.strip():
            return self.failure(ProviderError("empty", "the agent gave no answer"))
        return AgentReply(
            answer.strip(),
            tuple(documents),
            tuple(dict.fromkeys(citations)),
            self.latency_s,
            self.usage,
            self.calls,
            self.cost_usd,
            self.tried_s,
        )

    def failure(self, error: ProviderError) -> AgentFailure:
        """The failure with what was spent on it."""
        took = (self.latency_s, self.usage, self.calls, self.cost_usd, self.tried_s)
        return AgentFailure(error.cause, str(error), *took)
