"""Ask agents what they have not answered yet, keep every reply, say what is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from arena.config.whole import Config
from arena.data.files import load_dataset
from arena.run.interrupts import run_to_end, stopping_on_signals
from arena.run.ledger import StageSummary
from arena.run.recorder import Recorder, recorded
from arena.stages.answers.asking import Asking, Progress
from arena.stages.answers.declared import Declared, open_agents
from arena.stages.answers.replies import require_fit
from arena.stages.answers.summary import AgentsRun
from arena.store import Store
from arena.store.agents import ANSWERED, AgentReplies
from arena.store.spending import AGENTS
from judges.errors import InputError
from judges.judge import Stop
from judges.types import CallTrace, Query


def run_agents(
    config: Config,
    progress: Progress,
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
        retry_failed: also ask again what an agent would not answer.
        trace: is told of every call to a model.
        part_of: a run that goes on with other stages; else this is one by itself.

    Raises:
        InputError: queries, corpus or agents cannot be used. Nothing was sent then.
        StoreError: the store cannot be written.
    """
    if not config.agents:
        raise InputError("the configuration has no section 'agents'")
    files = load_dataset(config.queries(), config.data.documents, config.data.answers)
    stop = Stop()
    opened = open_agents(config, stop, trace)
    require_fit(files, opened.declared)
    queries = list(files.queries.values())
    store = Store.create(config.store)

    async def ask(asking: Asking) -> AgentsRun:
        try:
            with stopping_on_signals(stop):
                summaries = await asking.run(opened.agents, queries)
        finally:
            await opened.close()
        return AgentsRun(summaries, opened.declared, opened.corpus, interrupted=asking.stopped)

    try:
        with recorded(config.store, config.name, part_of) as recorder:
            recorder.begin(store)
            recorder.goes_on(store, {AGENTS: _before(store, opened.declared, queries)})
            asking = Asking(store, config.agents, opened.judges, progress, recorder.runner, retry_failed=retry_failed)
            stop.tell(asking.stop)
            came_to = run_to_end(ask(asking))
            recorder.came_to({AGENTS: came_to.stage}, complete=came_to.complete, stopped=came_to.interrupted)
        return came_to
    finally:
        store.close()


def _before(store: Store, agents: Sequence[Declared], queries: Sequence[Query]) -> StageSummary:
    """What is wanted of agents, and known before anybody is asked."""
    asked = [agent.asked(query) for agent in agents for query in queries]
    known = AgentReplies(store).outcomes(asked)
    return StageSummary(len(asked), known=sum(known.get(each) == ANSWERED for each in asked))
