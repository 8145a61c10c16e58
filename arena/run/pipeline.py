"""Runs a whole tournament: writes queries, asks agents, makes the missing judgments, and stores the leaderboard."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, TypeAlias

from arena.config.schema import Config
from arena.config.stages import listed_stages
from arena.data.dataset import Dataset
from arena.results.cache import cached_leaderboard, rating_draws
from arena.results.ratings import Leaderboard
from arena.run import judging
from arena.run.interrupts import interruptible
from arena.run.ledger import Progress, RunSummary
from arena.run.preflight import Preflight
from arena.run.recorder import Recorder, recorded, standings_of
from arena.stages.queries_config import of_tournament
from arena.stages.together import TournamentStages
from arena.store import Store
from arena.store.runs import Runs
from judges.errors import InputError
from judges.sections import nearest
from judges.types import CallTrace, Task

if TYPE_CHECKING:
    from arena.run.answers import AgentsRun
    from arena.run.queries import SynthReport


def stage_tasks() -> dict[str, Sequence[Task]]:
    """The judging tasks of each stage of a tournament, by stage name, in the order in which stages run."""
    return {"synth": (), "agents": (), **{stage.name or stage.key: stage.tasks for stage in listed_stages()}}


RunPart: TypeAlias = "SynthReport | AgentsRun | RunSummary"
"""The outcome of one part of a run: of writing queries, of asking agents, or of judging."""


def play(
    config: Config,
    progress: Callable[[], AbstractContextManager[Progress]],
    say: Callable[[RunPart], None],
    *,
    stages: Sequence[str] = (),
    retry_failed: bool = False,
    ask: Collection[str] = (),
    wait: bool = True,
    trace: Callable[[CallTrace], None] | None = None,
    data: Dataset | None = None,
) -> Leaderboard | None:
    """Run the parts of a tournament in order: write queries, ask agents, judge. Stored results are used again.

    Returns the leaderboard; ``None`` if the run ended before judging.

    The first Ctrl-C finishes the calls in flight, the second stops at once; the store stays consistent either way.

    Args:
        config: the configuration of the tournament.
        progress: opens a progress display for one part.
        say: called with the outcome of each part when the part ends.
        stages: names from ``stage_tasks`` to run, all by default.
        retry_failed: retry all failures, including refused or unusable replies.
        ask: agents to ask every query anew, see ``run_agents``.
        wait: whether to wait until the provider has processed all batches.
        trace: called with every call to a model.
        data: use this dataset instead of the files in the configuration.
    """
    for stage in stages:
        if stage not in stage_tasks():
            raise InputError(f"--stage {stage}: no such stage{nearest(stage, stage_tasks())}")
        section = "retrieval" if stage == "relevance" else stage
        if not config.section(section):
            raise InputError(
                f"--stage {stage}: the configuration has no section {section!r}; add it, or name another stage"
            )
    if ask:
        from arena.run.answers import require_askable

        require_askable(config, ask)
        if stages and "agents" not in stages:
            raise InputError(f"--ask {next(iter(ask))}: goes with the stage agents; add --stage agents")
    is_ready = config.synth is None and not config.agents
    checked = Preflight(config, data, assume=not is_ready)
    checked.require()
    ready = checked.stages if is_ready else None
    with interruptible(), recorded(config.store, config.name) as recorder:
        summary = _ask(
            config,
            progress,
            say,
            recorder,
            stages=stages,
            retry_failed=retry_failed,
            ask=ask,
            wait=wait,
            trace=trace,
            data=data,
            ready=ready,
        )
    return None if summary is None else _store_standings(config, summary.run_id)


def _ask(
    config: Config,
    progress: Callable[[], AbstractContextManager[Progress]],
    say: Callable[[RunPart], None],
    recorder: Recorder,
    *,
    stages: Sequence[str],
    retry_failed: bool,
    ask: Collection[str],
    wait: bool,
    trace: Callable[[CallTrace], None] | None,
    data: Dataset | None,
    ready: TournamentStages | None,
) -> RunSummary | None:
    """Run all parts; returns the summary of judging, if there was any."""
    agents_run = None
    if config.synth is not None and (not stages or "synth" in stages):
        from arena.run.queries import synthesise  # late, like the agents: most runs have neither

        with progress() as display:
            report = synthesise(
                of_tournament(config), display, retry_failed=retry_failed, trace=trace, part_of=recorder
            )
        say(report)
        if config.lacks_queries:
            return None
    if config.agents and (not stages or "agents" in stages):
        from arena.run.answers import run_agents

        with progress() as display:
            agents_run = run_agents(
                config, display, data, retry_failed=retry_failed, ask=ask, trace=trace, part_of=recorder
            )
        say(agents_run)
        given_answers = config.data.answers if data is None else data.answers
        if agents_run.interrupted or not (agents_run.answers or given_answers):
            return None
    tasks = [task for stage in stages for task in stage_tasks()[stage]]
    if stages and not tasks:
        return None
    declared = None if agents_run is None else agents_run.declared
    if config.agents and data is not None:
        data = judging.load_data(config, declared, data)
    with progress() as display:
        summary = judging.run(
            config,
            display,
            data=data,
            ready=ready,
            agents=declared,
            only=tasks if stages else None,
            retry_failed=retry_failed,
            trace=trace,
            wait=wait,
            part_of=recorder,
        )
    say(summary)
    return summary


def _store_standings(config: Config, run_id: str) -> Leaderboard:
    with closing(Store.open(config.store)) as store:
        board = cached_leaderboard(store, config.name)
        Runs(store, config.name).keep_standings(run_id, standings_of(board, rating_draws(store, config.name)))
    return board
