"""The whole of a run: queries are made, agents asked, what is missing is judged, and what it comes to is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from arena.stages import FURTHER, STAGES
from judges.errors import InputError
from judges.types import CallTrace, Task

if TYPE_CHECKING:
    from arena.config.whole import Config
    from arena.data.dataset import Dataset
    from arena.run.ledger import Progress, RunSummary
    from arena.run.recorder import Recorder
    from arena.stages.answers.asking import AgentsRun
    from arena.stages.queries.run import SynthReport

STAGE_TASKS: Final[Mapping[str, Sequence[Task]]] = {
    "synth": (),
    "agents": (),
    **{stage.name or stage.key: stage.tasks for stage in STAGES},
}
"""The stages of a tournament in their order, and what a judge does in each."""

Part: TypeAlias = "SynthReport | AgentsRun | RunSummary"
"""What one part of a run came to."""


@dataclass(frozen=True, slots=True)
class Played:
    """What a run came to.

    Attributes:
        complete: whether nothing that was asked for is missing.
        judged: whether it came to judging, so that there is a leaderboard.
    """

    complete: bool
    judged: bool


def play(
    config: Config,
    progress: Callable[[], AbstractContextManager[Progress]],
    say: Callable[[Part], None],
    *,
    stages: Sequence[str] = (),
    retry_failed: bool = False,
    wait: bool = True,
    trace: Callable[[CallTrace], None] | None = None,
    data: Dataset | None = None,
) -> Played:
    """Do what a configuration asks for and the store does not have yet, one part after the other.

    Ctrl-C finishes what is in flight, a second one stops at once; either way the store is whole.

    Args:
        config: the tournament.
        progress: opens what is told of every want of a part.
        say: is told what each part came to as soon as it ends.
        stages: the stages to do, by their names in ``STAGE_TASKS``; all when empty.
        retry_failed: also ask again where the last reply was outside its contract.
        wait: whether to stay until batches have ended.
        trace: is told of every call.
        data: in place of the files that the configuration names, which must not declare agents then.

    Raises:
        InputError: the configuration has no such stage, or its data, prompts or judges cannot be used.
        StoreError: the store cannot be written.
    """
    from arena.run.preflight import preflight
    from arena.run.recorder import recorded

    for stage in stages:
        section = "retrieval" if stage == "relevance" else stage
        if not (config.section(section) if section in FURTHER else getattr(config, section)):
            raise InputError(f"--stage {stage}: the configuration has no section {section!r}")
    checked = preflight(config, data)
    checked.require()
    if config.synth is None and not config.agents:
        data = checked.data
    with recorded(config.store, config.name) as recorder:
        whole, summary = _ask(
            config, progress, say, recorder, stages=stages, retry_failed=retry_failed, wait=wait, trace=trace, data=data
        )
    if summary is None:
        return Played(whole, judged=False)
    _keep(config, summary.run_id)
    return Played(whole and summary.complete, judged=True)


def _ask(
    config: Config,
    progress: Callable[[], AbstractContextManager[Progress]],
    say: Callable[[Part], None],
    recorder: Recorder,
    *,
    stages: Sequence[str],
    retry_failed: bool,
    wait: bool,
    trace: Callable[[CallTrace], None] | None,
    data: Dataset | None,
) -> tuple[bool, RunSummary | None]:
    """Whether the parts before the judging are complete, and what became of it, if it came to that."""
    from arena.run import tournament
    from arena.stages.answers.asking import run_agents
    from arena.stages.queries.config import of_tournament
    from arena.stages.queries.run import synthesise

    whole, answering = True, None
    if config.synth is not None and (not stages or "synth" in stages):
        with progress() as told:
            made = synthesise(of_tournament(config), told, retry_failed=retry_failed, trace=trace, part_of=recorder)
        say(made)
        whole = made.complete
    if config.agents and (not stages or "agents" in stages):
        with progress() as told:
            answering = run_agents(config, told, retry_failed=retry_failed, trace=trace, part_of=recorder)
        say(answering)
        whole = whole and answering.complete
        if answering.interrupted or not (answering.answers or config.data.answers):
            return False, None
    tasks = [task for stage in stages for task in STAGE_TASKS[stage]]
    if stages and not tasks:
        return whole, None
    with progress() as told:
        summary = tournament.run(
            config,
            told,
            data=data,
            agents=None if answering is None else answering.declared,
            only=tasks if stages else None,
            retry_failed=retry_failed,
            trace=trace,
            wait=wait,
            part_of=recorder,
        )
    say(summary)
    return whole, summary


def _keep(config: Config, run_id: str) -> None:
    """Keep the leaderboard, where its agents stand after this run, and what takes long of a large tournament."""
    from arena.boards.cache import cached_games, cached_leaderboard
    from arena.boards.compare import compare_board
    from arena.people.calibrate import WORTH_KEEPING, keep_slow_figures
    from arena.run.recorder import standings_of
    from arena.store import Store
    from arena.store.runs import Runs

    with closing(Store.open(config.store)) as store:
        board = cached_leaderboard(store, config.name)
        Runs(store, config.name).keep_standings(run_id, standings_of(board))
        keep_slow_figures(store, config.name)
        if len(cached_games(store, config.name)) >= WORTH_KEEPING:
            compare_board(store, config.name)
