"""Ask agents what they have not answered yet, through the queue that judges are asked through; keep every reply."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from operator import attrgetter
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from arena.config.schema import Config
from arena.data.corpus import ReadCorpus
from arena.data.dataset import Dataset
from arena.data.files import load_files
from arena.results.replies import Declared, require_fit
from arena.run.agents import OpenedAgents, open_agents
from arena.run.interrupts import run_to_end, stopping_early
from arena.run.ledger import Progress, StageSummary, failed
from arena.run.queue import Claimed, Found, Queue
from arena.run.recorder import Recorder, recorded
from arena.store import Store, Wanted
from arena.store.agents import ANSWERED, AgentQuery, AgentReplies
from arena.store.runners import Runner
from arena.store.runs import AGENTS
from arena.store.subjects import AnswerSubject
from judges.errors import RETRIED_NEXT_RUN, InputError, ProviderError
from judges.functions import contained
from judges.judge import Judge, MayAsk, Stop
from judges.types import CallTrace, Query, Task
from retrieval_eval.agents.build import require_messages
from retrieval_eval.agents.spec import AgentSpec
from retrieval_eval.agents.types import Agent, AgentFailure, ReplyOrFailure

ASKED_AGAIN = RETRIED_NEXT_RUN | {"empty", "contract", "exception"}
"""Causes under which the next run asks again; others say something about the query itself, and need a word."""

_HOPELESS = frozenset({"authentication", "quota", "unknown_model"})
"""Causes after which no other query would fare better."""
_UNSAID = frozenset({"stopped", "budget"})
"""Causes under which an agent was not asked at all, if no call was made."""


def needs_call(outcome: str | None, *, retry_failed: bool) -> bool:
    """Whether an agent is to be asked, by what is known of the query; ``None`` where nothing is."""
    if outcome is None or outcome == ANSWERED:
        return outcome is None
    return retry_failed or outcome in ASKED_AGAIN


class AgentSummary(Struct):
    """What became of the queries to one agent.

    Attributes:
        wanted: all of them.
        answered: in this run.
        known: answered without a call, earlier or by another process, or by an agent that is the same.
        causes: of the failures: of this run, and earlier ones that are not asked again.
        calls: of this run, failed attempts included.
        cost_usd: of this run's calls, as far as it is known.
        cost_unknown: replies and failures of this run without a known cost.
        seconds: from the first question to the last reply.
        stopped: why it was asked nothing more, empty if it was.
        problem: what the first failure of this run said.
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
        """No answer, with a cause."""
        return sum(self.causes.values())

    @property
    def left(self) -> int:
        """Not asked: the agent or its model stopped, or a stop was requested."""
        return self.wanted - self.answered - self.known - self.failed

    @property
    def complete(self) -> bool:
        """Whether every query has an answer."""
        return self.answered + self.known == self.wanted


class AgentsRun(Struct, frozen=True):
    """What a run did.

    Attributes:
        agents: by name.
        declared: the agents as a tournament knows them.
        corpus: what they search, ``None`` where none does.
        interrupted: whether it was told to stop.
        retried: whether all failures were asked again.
    """

    agents: dict[str, AgentSummary]
    declared: list[Declared]
    corpus: ReadCorpus | None = None
    interrupted: bool = False
    retried: bool = False

    @property
    def complete(self) -> bool:
        """Whether every agent has answered every query."""
        return all(summary.complete for summary in self.agents.values())

    @property
    def next_step(self) -> str:
        """What brings the answers that are missing; running again helps only where that asks for some."""
        asked = any(own.left or ASKED_AGAIN & own.causes.keys() for own in self.agents.values())
        lasting = any(own.causes.keys() - ASKED_AGAIN for own in self.agents.values())
        first = "mend what is named above, then " if any(own.stopped for own in self.agents.values()) else ""
        if asked or not lasting:
            return f"{first}run again to ask for the missing answers"
        if self.retried:
            return "what agents would not answer was asked again in vain; 'ragleague failures' says why"
        return f"'ragleague failures' says why; {first}run again with --retry-failed to ask for the missing answers"

    @property
    def stage(self) -> StageSummary:
        """All agents together, as one stage of a run."""
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
        """The agents without any answer, each with what its first failure said."""
        without = [(name, own) for name, own in self.agents.items() if own.problem and not own.answered + own.known]
        return [f"agent {name!r} answered nothing: {own.problem}" for name, own in without]

    @property
    def answers(self) -> int:
        """How many there are now, from this run or earlier ones."""
        return sum(summary.answered + summary.known for summary in self.agents.values())


def run_agents(
    config: Config,
    progress: Progress,
    data: Dataset | None = None,
    *,
    retry_failed: bool = False,
    trace: Callable[[CallTrace], None] | None = None,
    part_of: Recorder | None = None,
) -> AgentsRun:
    """Ask every declared agent every query that it has not answered.

    A first Ctrl-C finishes what is in flight, a second one stops at once; either way the store is whole.

    Args:
        config: the tournament.
        progress: is told of every query.
        data: in place of the files that the configuration names.
        retry_failed: also ask again what an agent would not answer.
        trace: is told of every call to a model.
        part_of: a run that goes on with other stages; else this is one by itself.

    Raises:
        InputError: queries, corpus or agents cannot be used. Nothing was sent then.
        StoreError: the store cannot be written.
    """
    if not config.agents:
        raise InputError("the configuration has no section 'agents'; add it")
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
            source = Answers(store, opened, config.agents, files.queries, recorder.runner, retry_failed=retry_failed)
            recorder.goes_on(store, {AGENTS: source.before()})
            came_to = run_to_end(_ask(source, progress, stop))
            recorder.came_to({AGENTS: came_to.stage}, complete=came_to.complete, stopped=came_to.interrupted)
        return came_to
    finally:
        store.close()


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
            agent = AnswerSubject.of(want).agent
            causes[agent][result.cause or ""] += 1  # type: ignore[union-attr]
            if isinstance(result, AgentFailure):
                problems.setdefault(agent, result.message)

    def ended(agent: str) -> None:
        seconds[agent] = time.perf_counter() - started

    queue = Queue(source, progress, settled, ended, stage_of=attrgetter("item"))
    for agent in source.judges:
        queue.begin(agent, len(source.queries))
    queue.put(source.wants())
    queue.close()
    try:
        with stopping_early(stop):
            await queue.run()
            await queue.count_rest()
    finally:
        await source.opened.close()
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
    """What the store knows of a query to an agent; ``cause`` is ``None`` where it is answered."""

    cause: str | None


class _Request(Struct, frozen=True):
    """A query for an agent, under the id of its reply."""

    judgment_id: str
    asked: AgentQuery
    query: Query


_REPLY: Final[ContextVar[str]] = ContextVar("_REPLY")
"""The id of the reply that an agent is asked for."""


class AskedAgent:
    """An agent as the queue asks it: at its own pace, until it or its model cannot go on.

    Args:
        agent: itself.
        judge: the model that generates for it, if it has one.
        at_once: replies that are asked for at the same time.
        turns: shared by agents that work in this process alone, or their latencies would be each other's.

    Attributes:
        halted: set once nothing more is asked.
        stopped: why; empty where a stop was requested.
        may_ask: looked at before each question, where there may be other processes.
    """

    may_ask: MayAsk | None = None

    def __init__(self, agent: Agent, judge: Judge | None, at_once: int, turns: asyncio.Semaphore) -> None:
        self.name, self.at_once = agent.name, at_once
        self.halted, self.stopped = asyncio.Event(), ""
        self._agent, self._judge, self._turns = agent, judge, turns
        if judge is not None:
            judge.may_ask = self._may_generate

    async def judge(self, request: _Request) -> ReplyOrFailure | None:
        """Its reply; ``None`` if it was not asked."""
        async with self._turns:
            _REPLY.set(request.judgment_id)
            if self.halted.is_set() or not await self._may_generate():
                return None
            try:
                reply = await contained(self._agent.reply(replace(request.query, reference=None)))
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
            if reply.cause in _UNSAID and not reply.calls:
                return None
        return reply

    async def _may_generate(self, _judgment_id: str = "") -> bool:
        """Whether the reply may still be asked for, which its model's calls are part of."""
        return self.may_ask is None or await self.may_ask(_REPLY.get())

    def halt(self, reason: str = "") -> None:
        """Ask nothing more."""
        self.stopped = self.stopped or reason
        self.halted.set()


class Answers:
    """The source of answers, for the queue: every agent's reply to every query, by what decides it.

    Agents that are the same are asked once, by the first of them.

    Args:
        store: where replies go.
        opened: the agents, and the judges that generate for them.
        specs: their declarations by name.
        queries: by id.
        runner: this process, as others see it in the store.
        retry_failed: also ask again what an agent would not answer.
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
        """Every query to every agent, handed to the first agent of those that are the same."""
        first: dict[str, str] = {}
        for agent in self.opened.agents:
            first.setdefault(agent.identity, agent.name)
        return [
            AnswerSubject(query_id, agent.name).want(Task.ANSWERING, first[agent.identity])
            for agent in self.opened.agents
            for query_id in self.queries
        ]

    def before(self) -> StageSummary:
        """What is wanted, and known before anybody is asked."""
        found = self.known(self.wants())
        return StageSummary(len(found), known=sum(known is not None and known.cause is None for _, known in found))

    def _found(self, wants: Sequence[Wanted]) -> list[Found]:
        found = []
        for want in wants:
            query = self.queries[want.query_id]
            asked = self._declared[AnswerSubject.of(want).agent].asked(query)
            found.append(Found(want, asked.reply_id, _Request(asked.reply_id, asked, query)))
        return found

    def known(self, wants: Sequence[Wanted]) -> list[tuple[Found, AnswerOutcome | None]]:
        """What the store knows of these wants."""
        found = self._found(wants)
        outcomes = self._replies.outcomes([each.request.asked for each in found])
        return [(each, _outcome(outcomes.get(each.request.asked))) for each in found]

    def claimed(self, wants: Sequence[Wanted], most: int, tried: Callable[[str], bool]) -> Claimed:
        """The same, with what has to be asked taken for this process, as a source says."""
        found = self._found(wants[:most])
        outcomes, elsewhere = self._replies.claim(
            [each.judgment_id for each in found], self.runner, lambda known: self.to_be_asked(_outcome(known)), tried
        )
        here = [each for each in found if each.judgment_id not in elsewhere]
        return Claimed(
            [(each, _outcome(outcomes.get(each.judgment_id))) for each in here],
            [each for each in found if each.judgment_id in elsewhere],
            wants[most:],
        )

    def to_be_asked(self, known: AnswerOutcome | None) -> bool:
        """Whether an agent is to be asked."""
        outcome = None if known is None else known.cause or ANSWERED
        return needs_call(outcome, retry_failed=self.retry_failed)

    def stands(self, known: AnswerOutcome) -> bool:
        """Whether a failure stands where the agent could not be asked again."""
        return not needs_call(known.cause or ANSWERED, retry_failed=False)

    def save(self, replies: Sequence[tuple[_Request, ReplyOrFailure]]) -> None:
        """Keep replies, on this runner's account."""
        self._replies.save([(request.asked, reply) for request, reply in replies], self.runner)


def _outcome(known: str | None) -> AnswerOutcome | None:
    return None if known is None else AnswerOutcome(None if known == ANSWERED else known)
