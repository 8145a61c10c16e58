"""The whole of a run: queries are made, agents asked, what is missing is judged, and what it comes to is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from arena.config.stages import FURTHER, STAGES
from judges.errors import InputError
from judges.types import CallTrace, Task

if TYPE_CHECKING:
    from arena.config.schema import Config
    from arena.data.dataset import Dataset
    from arena.results.ratings import Leaderboard
    from arena.run.answers import AgentsRun
    from arena.run.ledger import Progress, RunSummary
    from arena.run.queries import SynthReport
    from arena.run.recorder import Recorder

STAGE_TASKS: Final[Mapping[str, Sequence[Task]]] = {
    "synth": (),
    "agents": (),
    **{stage.name or stage.key: stage.tasks for stage in STAGES},
}
"""The stages of a tournament in their order, and what a judge does in each."""

RunPart: TypeAlias = "SynthReport | AgentsRun | RunSummary"
"""What one part of a run came to."""


class PipelineResult(Struct, frozen=True):
    """What a run came to.

    Attributes:
        complete: whether nothing that was asked for is missing.
        board: the leaderboard; ``None`` where it did not come to judging.
    """

    complete: bool
    board: Leaderboard | None


def play(
    config: Config,
    progress: Callable[[], AbstractContextManager[Progress]],
    say: Callable[[RunPart], None],
    *,
    stages: Sequence[str] = (),
    retry_failed: bool = False,
    wait: bool = True,
    trace: Callable[[CallTrace], None] | None = None,
    data: Dataset | None = None,
) -> PipelineResult:
    """Do what a configuration asks for and the store does not have yet, one part after the other.

    Ctrl-C finishes what is in flight, a second one stops at once; either way the store is whole.

    Args:
        config: the tournament.
        progress: opens what is told of every want of a part.
        say: is told what each part came to as soon as it ends.
        stages: the stages to do, by their names in ``STAGE_TASKS``; all when empty.
        retry_failed: ask again about all failures, also refused or unusable replies.
        wait: whether to stay until batches have ended.
        trace: is told of every call.
        data: in place of the files that the configuration names.

    Raises:
        InputError: the configuration has no such stage, or its data, prompts or judges cannot be used.
        StoreError: the store cannot be written.
    """
    from arena.run.interrupts import interruptible
    from arena.run.preflight import preflight
    from arena.run.recorder import recorded

    for stage in stages:
        section = "retrieval" if stage == "relevance" else stage
        if not (config.section(section) if section in FURTHER else getattr(config, section)):
            raise InputError(
                f"--stage {stage}: the configuration has no section {section!r}; add it, or name another stage"
            )
    checked = preflight(config, data)
    checked.require()
    if config.synth is None and not config.agents:
        data = checked.data
    with interruptible(), recorded(config.store, config.name) as recorder:
        whole, summary = _ask(
            config, progress, say, recorder, stages=stages, retry_failed=retry_failed, wait=wait, trace=trace, data=data
        )
    if summary is None:
        return PipelineResult(whole, None)
    return PipelineResult(whole and summary.complete, _keep(config, summary.run_id))


def _ask(
    config: Config,
    progress: Callable[[], AbstractContextManager[Progress]],
    say: Callable[[RunPart], None],
    recorder: Recorder,
    *,
    stages: Sequence[str],
    retry_failed: bool,
    wait: bool,
    trace: Callable[[CallTrace], None] | None,
    data: Dataset | None,
) -> tuple[bool, RunSummary | None]:
    """Whether the parts before the judging are complete, and what became of it, if it came to that."""
    from arena.run import judging

    whole, answering = True, None
    if config.synth is not None and (not stages or "synth" in stages):
        from arena.run.queries import synthesise
        from arena.stages.queries.config import of_tournament

        with progress() as told:
            made = synthesise(of_tournament(config), told, retry_failed=retry_failed, trace=trace, part_of=recorder)
        say(made)
        whole = made.complete
        if config.lacks_queries:
            return False, None
    if config.agents and (not stages or "agents" in stages):
        from arena.run.answers import run_agents

        with progress() as told:
            answering = run_agents(config, told, data, retry_failed=retry_failed, trace=trace, part_of=recorder)
        say(answering)
        whole = whole and answering.complete
        given = config.data.answers if data is None else data.answers
        if answering.interrupted or not (answering.answers or given):
            return False, None
    tasks = [task for stage in stages for task in STAGE_TASKS[stage]]
    if stages and not tasks:
        return whole, None
    declared = None if answering is None else answering.declared
    if config.agents and data is not None:
        data = judging.load_data(config, declared, data)
    with progress() as told:
        summary = judging.run(
            config,
            told,
            data=data,
            agents=declared,
            only=tasks if stages else None,
            retry_failed=retry_failed,
            trace=trace,
            wait=wait,
            part_of=recorder,
        )
    say(summary)
    return whole, summary


def _keep(config: Config, run_id: str) -> Leaderboard:
    """Keep the leaderboard that is returned, and where its agents stand."""
    from arena.results.cache import cached_leaderboard, rating_draws
    from arena.run.recorder import standings_of
    from arena.store import Store
    from arena.store.runs import Runs

    with closing(Store.open(config.store)) as store:
        board = cached_leaderboard(store, config.name)
        Runs(store, config.name).keep_standings(run_id, standings_of(board, rating_draws(store, config.name)))
    return board
