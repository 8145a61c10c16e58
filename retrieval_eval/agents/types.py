"""Types of agents, the systems under evaluation: their protocol, replies and failures."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeAlias

from msgspec import Struct, field

from judges.errors import CAUSES, ProviderError
from judges.types import Query, Usage

AGENT_CAUSES: Mapping[str, str] = {
    **{
        cause: CAUSES[cause]
        for cause in (
            *("connection", "timeout", "rate_limit", "server_error", "bad_request", "authentication", "quota"),
            *("unknown_model", "other_model", "prompt_cut", "refusal", "too_long", "content_filter", "truncated"),
            *("budget", "stopped"),
        )
    },
    "empty": "the agent gave no answer",
    "contract": "the reply is not what the agent's 'mapping' or prompt says it is",
    "not_recorded": "the file holds no answer to this query",
    "exception": "the agent's own code raised an exception",
}
"""Every cause of an agent's failure, and its meaning."""


class RetrievedText(Struct, frozen=True):
    """A document that an agent retrieved; ``rank`` counts from 1, ``metadata`` contains for example its title."""

    doc_id: str
    text: str
    rank: int
    score: float | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


class AgentReply(Struct, frozen=True):
    """An agent's reply to one query.

    Attributes:
        answer: the answer's text, never blank; contains citations as the agent wrote them.
        documents: the retrieved documents, best first; empty if the agent does not report them or has no retrieval.
        citations: doc_ids that the answer cites, each once, in the order of first mention.
        latency_s: seconds that the agent's user waits for the answer: for a remote agent from sending the request to
            the last byte of the response. Excludes queueing and failed attempts. ``None`` if unknown, as for recorded
            answers.
        usage: tokens of all calls to models, including the embedding of the query.
        calls: number of requests to models, or to the remote agent; failed attempts count.
        cost_usd: price of all calls in dollars, ``None`` if the price of one call is unknown.
        tried_s: seconds of all attempts, failed ones included, without the waits between them; ``None`` if unknown.
    """

    answer: str
    documents: tuple[RetrievedText, ...] = ()
    citations: tuple[str, ...] = ()
    latency_s: float | None = 0.0
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    cost_usd: float | None = None
    tried_s: float | None = None


class AgentFailure(Struct, frozen=True):
    """An agent's failure to reply to a query, never used as an answer; ``cause`` is a key of ``AGENT_CAUSES``."""

    cause: str
    message: str
    latency_s: float = 0.0
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    cost_usd: float | None = None
    tried_s: float | None = None


ReplyOrFailure: TypeAlias = AgentReply | AgentFailure


class Agent(Protocol):
    """A system under evaluation.

    An agent limits its concurrent requests itself, so callers may request any number of replies at once.
    """

    @property
    def name(self) -> str:
        """The agent's name in files and tables."""
        ...

    @property
    def identity(self) -> str:
        """Hash of everything that affects the agent's replies: kind, settings, model, prompts, corpus."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for people who read the agent's results, one sentence each."""
        ...

    async def reply(self, query: Query) -> ReplyOrFailure:
        """Answer one query. Failures are returned as ``AgentFailure``; only bugs of this program raise exceptions."""
        ...

    async def close(self) -> None: ...


class Meter(Struct):
    """Sums the seconds, tokens, calls and dollars that one reply takes; dollars are ``None`` once a price is unknown.

    Attributes:
        latency_s: seconds of all steps of the reply, without failed attempts.
        tried_s: seconds of all steps of the reply, with failed attempts.
    """

    latency_s: float = 0.0
    tried_s: float = 0.0
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    cost_usd: float | None = 0.0

    def count(self, usage: Usage, calls: int, cost_usd: float | None) -> None:
        self.usage += usage
        self.calls += calls
        if calls:
            self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the seconds that the ``with`` block takes; for steps that run on this machine."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add_seconds(time.perf_counter() - started)

    def add_seconds(self, seconds: float) -> None:
        """Add the seconds of a step to both times; for steps whose failed attempts are unknown, or that had none."""
        self.latency_s += seconds
        self.tried_s += seconds

    def reply(
        self, answer: str, documents: Sequence[RetrievedText] = (), citations: Sequence[str] = ()
    ) -> AgentReply | AgentFailure:
        """A reply with the figures added so far; a failure if the answer is blank."""
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
        figures = (self.latency_s, self.usage, self.calls, self.cost_usd, self.tried_s)
        return AgentFailure(error.cause, str(error), *figures)


_CITED = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")


def cited_numbers(text: str, passages: int) -> tuple[int, ...]:
    """Numbers of the passages that an answer cites as ``[1]`` or ``[1, 3]``, each once, in the order of mention.

    Numbers greater than ``passages``, the number of passages, are ignored.
    """
    numbers = (int(number) for group in _CITED.findall(text) for number in re.split(r"\s*[,;]\s*", group))
    return tuple(dict.fromkeys(number for number in numbers if 1 <= number <= passages))
