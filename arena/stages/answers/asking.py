"""How agents are asked: each at its own pace, what nobody else is asking, and every reply into the store."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from arena.run.ledger import Kind
from arena.run.writer import Writer, write_while
from arena.stages.answers.summary import AgentSummary
from arena.store import Store
from arena.store.agents import ANSWERED, AgentReplies, Asked
from arena.store.runners import Runner
from judges.errors import RETRIED_NEXT_RUN
from judges.judge import Judge
from judges.types import Query
from retrieval_eval.agents.spec import AgentSpec
from retrieval_eval.agents.types import Agent, AgentFailure, AgentReply, Reply

ASKED_AGAIN = RETRIED_NEXT_RUN | {"empty", "contract", "exception"}
"""Causes under which the next run asks again; others say something about the query itself, and need a word."""

_HOPELESS = frozenset({"authentication", "quota", "unknown_model"})
"""Causes after which no other query would fare better."""
_UNSAID = frozenset({"stopped", "budget"})
"""Causes under which an agent was not asked at all, if no call was made."""
_CHUNK = 16
"""Queries taken at once: enough to spare the store, few enough to share the work with another process."""
_POLL_S = 0.5
"""How often to look for what another process is asking."""


class Progress(Protocol):
    """Told of what happens, to show it."""

    def begin(self, agent: str, wanted: int) -> None:
        """An agent's queries."""

    def count(self, agent: str, kind: Kind, cost_usd: float | None) -> None:
        """One more is answered by a call (``judged``), was answered already (``known``), or ``failed``."""


@dataclass(frozen=True, slots=True)
class _Replied:
    """A reply on its way into the store."""

    agent: str
    asked: Asked
    reply: Reply


def needs_call(outcome: str | None, *, retry_failed: bool) -> bool:
    """Whether an agent is to be asked, by what is known of the query; ``None`` where nothing is."""
    if outcome is None or outcome == ANSWERED:
        return outcome is None
    return retry_failed or outcome in ASKED_AGAIN


class Asking:
    """One run over one store.

    Args:
        store: where replies go.
        specs: the agents' declarations by name.
        judges: those that generate for them.
        progress: told of every query.
        runner: this process, as others see it in the store.
        retry_failed: also ask again what an agent would not answer.
    """

    def __init__(
        self,
        store: Store,
        specs: Mapping[str, AgentSpec],
        judges: Mapping[str, Judge],
        progress: Progress,
        runner: Runner,
        *,
        retry_failed: bool = False,
    ) -> None:
        self._store, self._replies, self._runner = store, AgentReplies(store), runner
        self._specs, self._judges, self._progress, self._retry_failed = specs, judges, progress, retry_failed
        self._writer: Writer[_Replied] = Writer(self._save, self._kept, lambda entry: entry.reply.calls)
        self._summaries: dict[str, AgentSummary] = {}
        self._outcomes: dict[Asked, str] = {}
        self._tried: set[Asked] = set()
        self._here = asyncio.Semaphore(1)
        self.stopped = False

    def stop(self) -> None:
        """Begin nothing new."""
        self.stopped = True

    async def run(self, agents: Sequence[Agent], queries: Sequence[Query]) -> dict[str, AgentSummary]:
        """Ask every agent every query, and count what became of each.

        Raises:
            StoreError: the store cannot be read or written.
        """
        self._summaries = {agent.name: AgentSummary(len(queries)) for agent in agents}
        for agent in agents:
            self._progress.begin(agent.name, len(queries))
        await write_while(self._store, self._runner, self._writer, self._ask_all(agents, queries))
        for agent in agents:
            self._count(agent, queries)
        return self._summaries

    async def _ask_all(self, agents: Sequence[Agent], queries: Sequence[Query]) -> None:
        taken: set[Asked] = set()
        async with asyncio.TaskGroup() as group:
            for agent in agents:
                mine = {self._asked(agent, query): query for query in queries}
                group.create_task(self._ask(agent, {asked: mine[asked] for asked in mine if asked not in taken}))
                taken |= mine.keys()

    async def _ask(self, agent: Agent, queries: Mapping[Asked, Query]) -> None:
        """Ask one agent; what another process is asking it is looked for again until it is there."""
        summary, started = self._summaries[agent.name], time.perf_counter()
        free = self._turns(agent)
        wanted = deque(queries)
        elsewhere: list[Asked] = []
        again = False
        async with asyncio.TaskGroup() as group:
            while (wanted or elsewhere) and not self._halted(agent):
                if not wanted:
                    await asyncio.sleep(_POLL_S)
                    wanted, elsewhere, again = deque(elsewhere), [], True
                chunk = [wanted.popleft() for _ in range(min(_CHUNK, len(wanted)))]
                needed = self._is_unknown if again else self._to_be_asked
                mine, held = await asyncio.to_thread(self._replies.claim, chunk, self._runner, needed)
                elsewhere += held
                self._tried.update(held)
                for asked in mine:
                    await free.acquire()
                    if self._halted(agent):
                        break
                    group.create_task(self._reply(agent, asked, queries[asked], free))
        summary.seconds = time.perf_counter() - started

    async def _reply(self, agent: Agent, asked: Asked, query: Query, free: asyncio.Semaphore) -> None:
        try:
            reply = await agent.reply(query)
        finally:
            free.release()
        if isinstance(reply, AgentFailure):
            if reply.cause in _HOPELESS:
                self._summaries[agent.name].stopped = reply.message
            if reply.cause in _UNSAID and not reply.calls:
                return
        await self._writer.put(_Replied(agent.name, asked, reply))

    def _save(self, entries: Sequence[_Replied]) -> None:
        self._replies.save([(entry.asked, entry.reply) for entry in entries], self._runner)

    def _kept(self, entry: _Replied) -> None:
        """A reply is safely stored."""
        summary, reply = self._summaries[entry.agent], entry.reply
        summary.calls += reply.calls
        summary.cost_usd += reply.cost_usd or 0.0
        summary.cost_unknown += reply.cost_usd is None
        self._outcomes[entry.asked] = ANSWERED if isinstance(reply, AgentReply) else reply.cause
        self._progress.count(entry.agent, "judged" if isinstance(reply, AgentReply) else "failed", reply.cost_usd)

    def _count(self, agent: Agent, queries: Sequence[Query]) -> None:
        """Count what this run has asked, and what the store knows besides."""
        summary, causes = self._summaries[agent.name], Counter[str]()
        wanted = [self._asked(agent, query) for query in queries]
        known = self._replies.outcomes(wanted)
        for asked in wanted:
            outcome = known.get(asked)
            if asked in self._outcomes and outcome == self._outcomes[asked]:
                del self._outcomes[asked]  # a second query or agent that comes to the same finds it known
                self._tried.add(asked)
                summary.answered += outcome == ANSWERED
                causes.update([outcome] if outcome != ANSWERED else [])
            elif outcome == ANSWERED:
                summary.known += 1
                self._progress.count(agent.name, "known", None)
            elif outcome is not None and (asked in self._tried or not self._to_be_asked(outcome)):
                causes[outcome] += 1
                self._progress.count(agent.name, "failed", None)
        summary.causes = dict(sorted(causes.items()))

    def _asked(self, agent: Agent, query: Query) -> Asked:
        return Asked.of(agent.identity, query, told_id=self._specs[agent.name].told_id)

    def _to_be_asked(self, outcome: str | None) -> bool:
        return needs_call(outcome, retry_failed=self._retry_failed)

    def _is_unknown(self, outcome: str | None) -> bool:
        """Whether a query that another process took has to be asked after all: not where that one tried in vain."""
        return outcome is None

    def _halted(self, agent: Agent) -> bool:
        judge = self._judges.get(self._specs[agent.name].generator or "")
        if judge is not None and judge.stopped is not None:
            self._summaries[agent.name].stopped = str(judge.stopped)
        elif judge is not None and judge.budget_spent:
            self._summaries[agent.name].stopped = f"max_cost_usd of {judge.spec.max_cost_usd} is spent"
        return self.stopped or bool(self._summaries[agent.name].stopped)

    def _turns(self, agent: Agent) -> asyncio.Semaphore:
        """Replies asked for at the same time: as many as whatever works on them takes.

        Agents that work in this process alone take turns with each other, or their latencies would be each other's.
        """
        spec = self._specs[agent.name]
        judge = self._judges.get(spec.generator or "")
        if spec.kind in {"rag", "fusion"} and judge is None and spec.embeddings.provider != "openai":
            return self._here
        return asyncio.Semaphore(spec.concurrency if judge is None else judge.spec.concurrency)
