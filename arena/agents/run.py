"""Ask agents what they have not answered yet, keep every reply, say what is left."""

from __future__ import annotations

from collections.abc import Callable

from arena.agents.asking import Asking, Progress
from arena.agents.declared import open_agents
from arena.agents.replies import require_fit
from arena.agents.summary import AgentsRun
from arena.config import Config
from arena.dataset import load_dataset
from arena.runtime.interrupts import run_to_end, stopping_on_ctrl_c
from arena.store import Store
from judges.errors import InputError
from judges.judge import Stop
from judges.types import CallTrace


def run_agents(
    config: Config,
    progress: Progress,
    *,
    retry_failed: bool = False,
    trace: Callable[[CallTrace], None] | None = None,
) -> AgentsRun:
    """Ask every declared agent every query that it has not answered.

    A first Ctrl-C finishes what is in flight, a second one stops at once; either way the store is whole.

    Args:
        config: the tournament.
        progress: is told of every query.
        retry_failed: also ask again what an agent would not answer.
        trace: is told of every call to a model.

    Raises:
        InputError: queries, corpus or agents cannot be used. Nothing was sent then.
        StoreError: the store cannot be written.
    """
    if not config.agents:
        raise InputError("the configuration has no section 'agents'")
    files = load_dataset(config.query_files, config.data.documents, config.data.answers)
    stop = Stop()
    opened = open_agents(config, stop, trace)
    require_fit(files, opened.declared)
    store = Store.create(config.store)
    asking = Asking(store, config.agents, opened.judges, progress, retry_failed=retry_failed)
    stop.tell(asking.stop)

    async def ask() -> AgentsRun:
        try:
            with stopping_on_ctrl_c(stop):
                summaries = await asking.run(opened.agents, list(files.queries.values()))
        finally:
            await opened.close()
        return AgentsRun(summaries, opened.declared, opened.corpus, interrupted=asking.stopped)

    try:
        return run_to_end(ask())
    finally:
        store.close()
