"""Asks agents the queries that they have not answered, through the same queue as judges, and stores every reply."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from arena.config.schema import Config
from arena.config.settings import StoredAgent
from arena.data.corpus import ReadCorpus
from arena.data.dataset import Dataset
from arena.data.files import load_files
from arena.results.replies import require_fit
from arena.run.agents import OpenedAgents, declared, open_agents
from arena.run.interrupts import run_to_end
from arena.run.ledger import Progress, StageSummary, failed
from arena.run.queue import Queue
from arena.run.recorder import Recorder, recorded
from arena.store import Store, Wanted
from arena.store.agents import ANSWERED, AgentQuery, AgentReplies
from arena.store.runners import Runner
from arena.store.runs import AGENTS
from judges.errors import RETRIED_NEXT_RUN, InputError, ProviderError
from judges.functions import contained
from judges.judge import Called, Judge, MayAsk, Stop
from judges.sections import nearest
from judges.types import CallTrace, Query, Task, repeat_of
from retrieval_eval.agents.build import require_messages
from retrieval_eval.agents.spec import AgentSpec
from retrieval_eval.agents.types import Agent, AgentFailure, ReplyOrFailure

ASKED_AGAIN = RETRIED_NEXT_RUN | {"empty", "contract", "exception"}
"""Causes of failure for which the next run asks the agent again; others need ``--retry-failed``."""

_HOPELESS = frozenset({"authentication", "quota", "unknown_model"})
"""Causes of failure that would make every further query fail too, so that the agent is stopped."""
_NOT_ASKED = frozenset({"stopped", "budget"})
"""Causes of failure that mean that the agent was not asked, if it made no call."""


def needs_call(outcome: str | None, *, retry_failed: bool) -> bool:
    """Whether to ask an agent a query, given the stored outcome of that query; ``None`` if there is none."""
    if outcome is None or outcome == ANSWERED:
        return outcome is None
    return retry_failed or outcome in ASKED_AGAIN


class AgentSummary(Struct):
    """Counts of one agent's replies in a run.

    Attributes:
        answered: number of queries answered in this run.
        known: number of queries answered without a call: earlier, by another process, or by an identical agent.
        causes: number of failed queries by cause, including failures of earlier runs that are not retried.
        calls: number of requests sent in this run, retries included.
        cost_unknown: number of replies and failures of this run whose cost is unknown.
        seconds: time from the start of the run to the agent's last reply.
        stopped: reason why the agent was stopped early; empty if it was not.
        problem: message of the first failure in this run.
    """

    wanted: int
    answered: int = 0
    known: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    cost_usd: float = 0.0
    cost_unknown: int = 0
    seconds: float = 0.0
    stopped: str = ""
    problem: str = ""

    @property
    def failed(self) -> int:
        return sum(self.causes.values())

    @property
    def left(self) -> int:
        """Number of queries never sent to the agent, because the agent, its model or the run stopped early."""
        return self.wanted - self.answered - self.known - self.failed

    @property
    def complete(self) -> bool:
        return self.answered + self.known == self.wanted


class AgentsRun(Struct, frozen=True):
    """Outcomes of asking all agents.

    Attributes:
        declared: each agent's name, identity and settings, as the store records them.
        corpus: the document collection that agents search; ``None`` if no agent uses one.
        interrupted: whether the run was stopped early.
        retried: whether the run retried all failures.
    """

    agents: dict[str, AgentSummary]
    declared: list[StoredAgent]
    corpus: ReadCorpus | None = None
    interrupted: bool = False
    retried: bool = False

    @property
    def complete(self) -> bool:
        return all(summary.complete for summary in self.agents.values())

    @property
    def next_step(self) -> str:
        asked = any(summary.left or ASKED_AGAIN & summary.causes.keys() for summary in self.agents.values())
        lasting = any(summary.causes.keys() - ASKED_AGAIN for summary in self.agents.values())
        first = "fix what is named above, then " if any(summary.stopped for summary in self.agents.values()) else ""
        if asked or not lasting:
            return f"{first}run again to ask for the missing answers"
        if self.retried:
            return "agents failed to answer again; 'ragleague failures' says why"
        return f"'ragleague failures' says why; {first}run again with --retry-failed to ask for the missing answers"

    @property
    def stage(self) -> StageSummary:
        summaries = self.agents.values()
        return StageSummary(
            wanted=sum(each.wanted for each in summaries),
            judged=sum(each.answered for each in summaries),
            known=sum(each.known for each in summaries),
            failed=sum(each.failed for each in summaries),
            calls=sum(each.calls for each in summaries),
            cost_usd=math.fsum(each.cost_usd for each in summaries),
            cost_unknown=sum(each.cost_unknown for each in summaries),
        )

    @property
    def silent(self) -> list[str]:
        """A line for each agent that answered no query, with the message of its first failure."""
        without = [
            (name, summary)
            for name, summary in self.agents.items()
            if summary.problem and not summary.answered + summary.known
        ]
        return [f"agent {name!r} answered nothing: {summary.problem}" for name, summary in without]

    @property
    def answers(self) -> int:
        """Number of answers by all agents, including those of earlier runs."""
        return sum(summary.answered + summary.known for summary in self.agents.values())


def run_agents(
    config: Config,
    progress: Progress,
    data: Dataset | None = None,
    *,
    retry_failed: bool = False,
    ask: Collection[str] = (),
    trace: Callable[[CallTrace], None] | None = None,
    part_of: Recorder | None = None,
) -> AgentsRun:
    """Ask every declared agent each query that it has not answered.

    The first Ctrl-C finishes the calls in flight, the second stops at once; the store stays consistent either way.
    ``data`` replaces the dataset from the configured files. Agents named in ``ask`` are asked every query anew; later
    runs use these answers and continue if some are missing. ``part_of`` records the enclosing run; without it a new run
    starts.
    """
    require_askable(config, ask)
    if not config.agents:
        raise InputError("the configuration has no section 'agents'; add it to name the agents that answer the queries")
    files = load_files(config) if data is None else data
    if files.has_messages:
        require_messages(config.agents)
    stop = Stop()
    opened = open_agents(config, stop, trace)
    require_fit(files, opened.declared)
    store = Store.create(config.store)
    try:
        with recorded(config.store, config.name, part_of) as recorder:
            recorder.begin(store)
            opened = _asked_anew(store, opened, config, ask)
            source = Answers(store, opened, config.agents, files.queries, recorder.runner, retry_failed=retry_failed)
            recorder.update(store, {AGENTS: source.before()})
            outcome = run_to_end(_ask(source, progress, stop))
            recorder.finish_stages({AGENTS: outcome.stage}, complete=outcome.complete, stopped=outcome.interrupted)
        return outcome
    finally:
        store.close()


def require_askable(config: Config, ask: Iterable[str]) -> None:
    """Check the names of agents to ask anew.

    Raises:
        InputError: the configuration declares no such agent, or its answers are from a file.
    """
    for name in ask:
        if name not in config.agents:
            hint = nearest(name, config.agents) if config.agents else ": it declares no agents"
            raise InputError(f"--ask {name}: the configuration has no agent of this name to ask{hint}")
        if config.agents[name].kind == "file":
            raise InputError(f"--ask {name}: its answers are from a file; replace the file, or ask another agent")


def _asked_anew(store: Store, opened: OpenedAgents, config: Config, ask: Collection[str]) -> OpenedAgents:
    if not ask:
        return opened
    replies = AgentReplies(store)
    replies.ask_anew(agent.identity for agent in opened.agents if agent.name in ask)
    newest = replies.newest(agent.identity for agent in opened.agents)
    return replace(opened, declared=declared(opened.agents, config.agents, newest))


async def _ask(source: Answers, progress: Progress, stop: Stop) -> AgentsRun:
    causes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    seconds: dict[str, float] = {}
    problems: dict[str, str] = {}
    started = time.perf_counter()
    stopped = asyncio.Event()
    for act in (stopped.set, *(agent.halt for agent in source.judges.values())):
        stop.tell(act)

    def settled(want: Wanted, result: ReplyOrFailure | AnswerOutcome) -> None:
        if failed(result):
            agent, _ = repeat_of(want.item)
            causes[agent][result.cause or ""] += 1  # type: ignore[union-attr]
            if isinstance(result, AgentFailure):
                problems.setdefault(agent, result.message)

    def ended(agent: str) -> None:
        seconds[agent] = time.perf_counter() - started

    queue = Queue(source, progress, settled, ended, stage_of=lambda want: repeat_of(want.item)[0])
    wants = source.wants()
    for agent, number in Counter(repeat_of(want.item)[0] for want in wants).items():
        queue.begin(agent, number)
    queue.put(wants)
    queue.close()
    await queue.finish(queue.run(), stop)
    summaries = {}
    for name, stage in queue.ledger.stages.items():
        summaries[name] = AgentSummary(
            stage.wanted,
            stage.judged,
            stage.known,
            dict(sorted(causes[name].items())),
            stage.calls,
            stage.cost_usd,
            stage.cost_unknown,
            seconds[name],
            source.judges[name].stopped,
            problems.get(name, ""),
        )
    opened = source.opened
    return AgentsRun(
        summaries, opened.declared, opened.corpus, interrupted=stopped.is_set(), retried=source.retry_failed
    )


class AnswerOutcome(NamedTuple):
    """The stored outcome of asking an agent a query: the cause of its failure, or ``None`` if it answered."""

    cause: str | None


class _Request(Struct, frozen=True):
    """A query to an agent; the fields are those of ``judges.judge.Request``."""

    judgment_id: str
    prompt: AgentQuery
    want: Wanted
    query: Query
    known: AnswerOutcome | None = None
    elsewhere: bool = False
    lead: str = ""


_REPLY: Final[ContextVar[str]] = ContextVar("_REPLY")
"""Id of the reply for which the agent is called in this context, in order to check the claim on it."""


class AskedAgent:
    """Lets the queue ask an agent like a judge: limits concurrency, and stops when the agent or its model cannot go on.

    Args:
        judge: the model that generates the agent's answers, if it has one.
        at_once: maximum number of concurrent replies.
        turns: semaphore that limits concurrency; shared by local agents, so that they do not slow each other down.

    Attributes:
        halted: event that is set when the agent will be asked no further query.
        stopped: reason why the agent was stopped; empty if it was not, or if the whole run was.
        may_ask: function that checks before each call whether this process still holds its claim on the reply.
    """

    may_ask: MayAsk | None = None
    called: Called | None = None

    def __init__(self, agent: Agent, judge: Judge | None, at_once: int, turns: asyncio.Semaphore) -> None:
        self.name, self.at_once = agent.name, at_once
        self.halted, self.stopped = asyncio.Event(), ""
        self._agent, self._judge, self._turns = agent, judge, turns
        if judge is not None:
            judge.may_ask = self._may_generate

    async def judge(self, request: _Request) -> ReplyOrFailure | None:
        """Ask the agent a query; returns its reply, or ``None`` if the agent was not asked."""
        async with self._turns:
            _REPLY.set(request.judgment_id)
            if self.halted.is_set() or not await self._may_generate():
                return None
            try:
                reply = await contained(self._agent.reply(request.query.as_asked()))
            except ProviderError as error:
                reply = AgentFailure(error.cause, str(error))
        judge = self._judge
        if judge is not None and judge.stopped is not None:
            self.halt(str(judge.stopped))
        elif judge is not None and judge.budget_spent:
            self.halt(f"max_cost_usd of {judge.spec.max_cost_usd} is spent")
        if isinstance(reply, AgentFailure):
            if reply.cause in _HOPELESS:
                self.halt(reply.message)
            if reply.cause in _NOT_ASKED and not reply.calls:
                return None
        return reply

    async def _may_generate(self, _judgment_id: str = "") -> bool:
        """Whether this process still holds its claim on the reply; the agent's model checks this before each call."""
        return self.may_ask is None or await self.may_ask(_REPLY.get())

    def halt(self, reason: str = "") -> None:
        self.stopped = self.stopped or reason
        self.halted.set()


class Answers:
    """Tells the queue which replies of agents are missing, claims them in the store, and saves them.

    A reply is identified by everything that affects it; of several identical agents, only the first is asked. With
    ``retry_failed``, queries on which an agent failed for good are repeated too.
    """

    def __init__(
        self,
        store: Store,
        opened: OpenedAgents,
        specs: Mapping[str, AgentSpec],
        queries: Mapping[str, Query],
        runner: Runner,
        *,
        retry_failed: bool,
    ) -> None:
        self.store, self.runner, self.opened, self.queries = store, runner, opened, queries
        self._specs, self.retry_failed = specs, retry_failed
        self._replies = AgentReplies(store)
        self._declared = {each.name: each for each in opened.declared}
        here = asyncio.Semaphore(1)
        self.judges = {agent.name: self._agent(agent, here) for agent in opened.agents}

    def _agent(self, agent: Agent, here: asyncio.Semaphore) -> AskedAgent:
        spec = self._specs[agent.name]
        judge = self.opened.judges.get(spec.generator or "")
        if spec.kind in {"rag", "fusion"} and judge is None and spec.embeddings.provider != "openai":
            return AskedAgent(agent, None, 1, here)
        at_once = spec.concurrency if judge is None else judge.spec.concurrency
        return AskedAgent(agent, judge, at_once, asyncio.Semaphore(at_once))

    def wants(self) -> list[Wanted]:
        """One planned reply for each agent, query and repeat; of identical agents, only the first one will be asked."""
        first: dict[str, str] = {}
        for agent in self.opened.declared:
            first.setdefault(agent.identity, repeat_of(agent.name)[0])
        return [
            Wanted(Task.ANSWERING, first[agent.identity], query_id, agent.name)
            for agent in self.opened.declared
            for query_id in self.queries
        ]

    def before(self) -> StageSummary:
        """Counts at the start of a run: all queries to agents, and those with a stored answer."""
        outcomes = self.known(self.wants())
        return StageSummary(
            len(outcomes), known=sum(each.known is not None and each.known.cause is None for each in outcomes)
        )

    def _requests(self, wants: Sequence[Wanted]) -> list[_Request]:
        requests = []
        for want in wants:
            query = self.queries[want.query_id]
            asked = AgentQuery.of(self._declared[want.item], query)
            requests.append(_Request(asked.reply_id, asked, want, query))
        return requests

    def judged(self, wants: Sequence[Wanted]) -> list[_Request]:  # noqa: ARG002 - every lookup here is quick
        return []

    def known(self, wants: Sequence[Wanted]) -> list[_Request]:
        requests = self._requests(wants)
        outcomes = self._replies.outcomes([request.prompt for request in requests])
        return [replace(request, known=_outcome(outcomes.get(request.prompt))) for request in requests]

    def claimed(self, wants: Sequence[Wanted], tried: Callable[[str], bool]) -> list[_Request]:
        """Look up these replies; claim for this process the ones that need a call. See ``QueueSource``."""
        requests = self._requests(wants)
        outcomes, elsewhere = self._replies.claim(
            [each.judgment_id for each in requests], self.runner, lambda known: self.to_be_asked(_outcome(known)), tried
        )
        return [
            replace(request, elsewhere=True)
            if request.judgment_id in elsewhere
            else replace(request, known=_outcome(outcomes.get(request.judgment_id)))
            for request in requests
        ]

    def to_be_asked(self, known: AnswerOutcome | None) -> bool:
        outcome = None if known is None else known.cause or ANSWERED
        return needs_call(outcome, retry_failed=self.retry_failed)

    def is_final(self, known: AnswerOutcome) -> bool:
        return not needs_call(known.cause or ANSWERED, retry_failed=False)

    async def close(self) -> None:
        await self.opened.close()

    def save(self, replies: Sequence[tuple[_Request, ReplyOrFailure]]) -> None:
        self._replies.save([(request.prompt, reply) for request, reply in replies], self.runner)


def _outcome(known: str | None) -> AnswerOutcome | None:
    return None if known is None else AnswerOutcome(None if known == ANSWERED else known)
