"""The main job: judge what is missing, keep every result, say what is left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from arena.adaptive_games import AdaptiveGames
from arena.config import Config
from arena.dataset import Dataset, load_dataset
from arena.leaderboard import game_verdicts
from arena.prompting import Prompting
from arena.stages import Progress, RunSummary, StageRunner, stopping_on_ctrl_c
from arena.store import IDENTICAL, Store
from judges.errors import InputError
from judges.runtime import Judge, Stop
from judges.types import Judgment, Task, Verdict

_TIE_OF_EQUALS = Judgment(
    IDENTICAL, Verdict.TIE.value, "Both answers are the same text.", "", "none", calls=0, cost_usd=0.0
)


def load_data(config: Config) -> Dataset:
    """The data a configuration names."""
    return load_dataset(config.data.queries, config.data.documents, config.data.answers)


def run(
    config: Config,
    progress: Progress,
    *,
    only: Sequence[Task] | None = None,
    retry_failed: bool = False,
) -> RunSummary:
    """Judge what is missing and keep it in the store.

    A first Ctrl-C finishes what is in flight, a second one stops at once; either way the store is whole.

    Args:
        config: the tournament.
        progress: is told of every want.
        only: the stages to do; all when ``None``. Earlier results of the others stay in use.
        retry_failed: also ask again where the last reply was outside its contract.

    Raises:
        InputError: data, prompts or judges cannot be used. Nothing was sent then.
        StoreError: the store cannot be written.
    """
    data = load_data(config)
    prompting = Prompting(config, data)
    wants = list(prompting.wants())
    if not wants:
        raise InputError("nothing to judge: the configuration has no stage, or the data no answers or documents")
    prompting.check()
    asked = [task for task in prompting.tasks() if only is None or task in only]
    settings = stored_settings(config, prompting)
    judges = {name: Judge(name, config.judges[name]) for name in config.judges_in_use()}
    store = Store.create(config.store)
    try:
        store.save([(Task.PAIRWISE, "none", _TIE_OF_EQUALS)])
        if prompting.adaptive_games() is not None:
            wants = [want for want in wants if want.task is not Task.PAIRWISE]  # these come batch by batch
        store.begin(config.name, settings, data, wants)
        runner = StageRunner(config.name, prompting, store, judges, progress, retry_failed)
        return asyncio.run(_judge_stages(runner, asked))
    except BaseExceptionGroup as group:
        raise _first(group) from group
    finally:
        store.close()


async def _judge_stages(runner: StageRunner, asked: Sequence[Task]) -> RunSummary:
    """Stage by stage: the answer judges are shown documents by the relevance judge's labels."""
    stop = Stop()
    with stopping_on_ctrl_c(stop):
        try:
            for task in runner.prompting.tasks():
                games = runner.prompting.adaptive_games() if task is Task.PAIRWISE else None
                if games is not None:
                    await _play_adaptively(runner, games, stop if task in asked else None)
                elif task in asked:
                    await runner.judge(task, stop)
                else:
                    runner.find_again(task, runner.wants(task))
        finally:
            for judge in runner.judges.values():
                await judge.close()
    return runner.summary


async def _play_adaptively(runner: StageRunner, games: AdaptiveGames, stop: Stop | None) -> None:
    """Judge batch by batch until the games decide; without ``stop`` only find again what is known.

    The store holds all that decides: a run that begins again chooses the same games from the same verdicts, and asks
    where it left off. A batch that is not finished, because a judge stopped or somebody did, is the last one.
    """
    if stop is not None:
        runner.begin(Task.PAIRWISE, len(runner.wants(Task.PAIRWISE)))
    while batch := list(runner.prompting.game_wants(games.choose())):
        runner.store.extend(runner.tournament, batch)
        if stop is None:
            runner.find_again(Task.PAIRWISE, batch)
        else:
            await runner.ask(Task.PAIRWISE, batch, stop)
        outcomes = runner.results(batch)
        if any(result is None for _, result in outcomes):
            break
        games.learn(game_verdicts(outcomes))


def _first(group: BaseException) -> BaseException:
    """What went wrong first in tasks that ran together."""
    return _first(group.exceptions[0]) if isinstance(group, BaseExceptionGroup) else group


def stored_settings(config: Config, prompting: Prompting) -> dict[str, Any]:
    """What of a configuration goes into the store: what decides the results; no path, address or variable name."""
    deciding = {
        "provider",
        "model",
        "temperature",
        "seed",
        "max_tokens",
        "structured_output",
        "system_role",
        "extra_body",
    }
    settings = config.model_dump(mode="json", include={"retrieval", "pairwise", "criteria", "ratings"})
    settings["judges"] = {
        name: config.judges[name].model_dump(mode="json", include=deciding) for name in config.judges_in_use()
    }
    sections = {Task.RELEVANCE: "retrieval", Task.PAIRWISE: "pairwise", Task.CRITERIA: "criteria"}
    for task, template in prompting.templates.items():
        settings[sections[task]]["prompt"] = f"{template.name}@{template.version}"
    return settings
