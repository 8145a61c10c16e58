"""What an agent, the system under evaluation, is and gives: a reply, or a failure that says why there is none."""

from __future__ import annotations

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
            "connection",
            "timeout",
            "rate_limit",
            "server_error",
            "bad_request",
            "authentication",
            "quota",
            "unknown_model",
            "other_model",
            "prompt_cut",
            "refusal",
            "too_long",
            "content_filter",
            "truncated",
            "budget",
            "stopped",
        )
    },
    "empty": "the agent gave no answer",
    "contract": "the reply is not what the agent's 'mapping' or prompt says it is",
    "not_recorded": "the file holds no answer to this query",
    "exception": "the agent's own code raised an exception",
}
"""Every cause that an agent's failure can have, with its meaning."""


class RetrievedText(Struct, frozen=True):
    """A document that an agent retrieved; ``rank`` counts from 1, ``title`` and the like are in ``metadata``."""

    doc_id: str
    text: str
    rank: int
    score: float | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


class AgentReply(Struct, frozen=True):
    """All that one agent gave for one query.

    Attributes:
        answer: never blank; citations stand in it as the agent wrote them.
        documents: what was retrieved, best first; empty where the agent does not tell or has no retrieval.
        citations: doc_ids of what the answer cites, each once, in the order of their first mention.
        latency_s: seconds that the agent took for the answer, as its user sees them: of a system behind an address
            from sending the request to the last byte. Waiting for a turn and failed attempts are not in it. ``None``
            where it is not known, as of a file.
        usage: tokens of all calls, embeddings of the query among them.
        calls: requests to models, or to the agent itself where it stands behind an address; failed attempts count.
        cost_usd: price of all calls, ``None`` where one is not known.
        tried_s: seconds of all attempts together, without the waits between them; ``None`` where nobody knows.
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
    """A reply that did not come about. It is stored, counted and shown, and never becomes an answer.

    Attributes:
        cause: one of ``AGENT_CAUSES``.
        message: one line for people.
    """

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

    It keeps within its own limits: any number of replies may be asked for at once.
    """

    @property
    def name(self) -> str:
        """How files and tables call the agent."""
        ...

    @property
    def identity(self) -> str:
        """Hash of everything that decides its replies: kind, settings, model, words of its prompts, corpus."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its results must know, a sentence each; a stand-in for embeddings says so here."""
        ...

    async def reply(self, query: Query) -> ReplyOrFailure:
        """Answer one query. Whatever goes wrong is an ``AgentFailure``, except an error in this program."""
        ...

    async def close(self) -> None:
        """Release connections and memory that are the agent's own."""
        ...


class Meter(Struct):
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
        self, answer: str, documents: Sequence[RetrievedText] = (), citations: Sequence[str] = ()
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
