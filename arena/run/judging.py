"""The main part of a run: makes the missing judgments, stores every result, and reports what is left."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from arena.config.schema import Config
from arena.config.settings import StoredAgent, StoredSettings
from arena.data.corpus import tables_of, with_qrels, with_references, with_runs
from arena.data.dataset import Dataset, notes_of
from arena.data.files import load_files
from arena.results.documents import check_measures
from arena.results.replies import with_replies
from arena.run.agents import open_agents, open_judges
from arena.run.assigned import Assigned, made_from
from arena.run.batches import ask_in_batches, waiting, waiting_lines
from arena.run.interrupts import run_to_end
from arena.run.ledger import Progress, RunSummary
from arena.run.queue import Lookup
from arena.run.recorder import Recorder, origin_of, recorded, subject_of
from arena.run.stage_loop import Engine
from arena.stages.nuggets import depth_of
from arena.stages.together import TournamentStages
from arena.store import Store
from arena.store.batches import open_batches
from judges.judge import Stop
from judges.types import CallTrace, Task
from retrieval_eval.agents.spec import uses_corpus

if TYPE_CHECKING:
    from pathlib import Path


def load_data(config: Config, agents: Sequence[StoredAgent] | None = None, files: Dataset | None = None) -> Dataset:
    """The dataset of a tournament: queries and documents from files, and the stored replies of its agents.

    ``agents`` and ``files`` can be passed if the caller has them; otherwise they are read here.
    """
    section = config.data
    data = load_files(config) if files is None else files
    if config.agents:
        data = with_replies(data, declared_agents(config) if agents is None else agents, config.store)
    tables: list[Path] = []
    if section.corpus:
        tables = tables_of(section.corpus)
    if section.runs:
        data = with_runs(data, section.runs, tables, _run_depth(config))
    if section.corpus:
        taken = bool(section.runs or section.qrels) or uses_corpus(config.agents.values())
        data = with_references(data, tables, taken=taken)
    return with_qrels(data, section.qrels, section.corpus) if section.qrels else data


def _run_depth(config: Config) -> int | None:
    """Number of top documents per query that stages use from run files; ``None`` if a stage has no limit."""
    if config.retrieval is None or config.retrieval.depth is None:
        return None
    depths = [config.retrieval.depth]
    if config.exam is not None and config.exam.texts == "documents":
        depths.append(config.exam.depth)
    if config.nuggets is not None and "documents" in config.nuggets.assign.texts:
        depths.append(depth_of(config.nuggets.assign))
    return max(depths)


def declared_agents(config: Config) -> list[StoredAgent]:
    """Each agent's name, identity and settings, as the store records them; opens the agents to read these."""
    if not config.agents:
        return []
    return open_agents(config).declared


@contextmanager
def _settled_memory() -> Iterator[None]:
    """Exempt objects that exist now from garbage collection until the block ends.

    Scanning them took a quarter of a run's start, delayed every call in flight, and cost a tenth of the throughput at
    64 concurrent calls.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@_settled_memory()
def run(
    config: Config,
    progress: Progress,
    *,
    data: Dataset | None = None,
    ready: TournamentStages | None = None,
    agents: Sequence[StoredAgent] | None = None,
    only: Sequence[Task] | None = None,
    retry_failed: bool = False,
    trace: Callable[[CallTrace], None] | None = None,
    wait: bool = True,
    part_of: Recorder | None = None,
) -> RunSummary:
    """Make all judgments of a tournament that are missing, and store every result.

    The first Ctrl-C finishes the calls in flight, the second stops at once; the store stays consistent either way.

    Args:
        config: the configuration of the tournament.
        progress: a display that is notified of every judgment.
        data: use this dataset instead of the configured files and stored replies.
        ready: the stages with their data, if a preflight has set them up and checked them.
        agents: the tournament's agents, if they are open already.
        only: the tasks whose judgments are made, all by default; for other tasks, stored results are used.
        retry_failed: retry all failures, including refused or unusable replies.
        trace: called with every call to a model.
        wait: whether to wait until the provider has processed all batches; if not, send batches, collect the
            replies that exist, and return.
        part_of: the recorder of the enclosing run; by default a new run starts.
    """
    agents = declared_agents(config) if agents is None else agents
    if ready is None:
        data = load_data(config, agents) if data is None else data
        stages = TournamentStages(config, data)
        stages.check()
        if config.retrieval is not None and config.retrieval.measures is not None:
            check_measures(config.retrieval.measures, data)
    else:
        stages, data = ready, ready.data
    asked = [task for task in stages.tasks if only is None or task in only]
    settings = stored_settings(stages, agents)
    stop = Stop()
    judges = open_judges(config, stop, trace)
    store = Store.create(config.store)
    try:
        ask_in_batches(judges, store, stop, wait=wait)
        store.save(list(stages.free_judgments()))
        stages.resume(store, config.name)
        begun = {
            stage: {query_id: stages.begin(stage, query_id) for query_id in data.queries} for stage in stages.stages
        }
        wanted = [want for by_query in begun.values() for wants in by_query.values() for want in wants]
        store.begin(config.name, settings.raw, data, wanted)
        with recorded(config.store, config.name, part_of) as recorder:
            recorder.begin(store)
            recorder.describe(store, subject_of(settings, data) | {"origin": origin_of(config)})
            providers = {name: judge.provider for name, judge in judges.items()}
            _, digest = store.judged(config.name)
            made = made_from(config, settings.raw, digest, providers)
            assigned = Assigned(store, config.name, made, stages.leads_on)
            lookup = Lookup(config.name, stages, store, judges, recorder.runner, retry_failed, assigned)
            stopped = threading.Event()
            stop.tell(stopped.set)
            with _settled_memory():
                summary = run_to_end(Engine(lookup, stages, asked, progress).run(begun, stop))
            recorder.finish_stages(summary.stages, complete=summary.complete, stopped=stopped.is_set())
            if only is None and not any(stage.left for stage in summary.stages.values()):
                assigned.keep(recorder.run_id)
        if not (summary.stopped or stopped.is_set()):
            summary = replace(summary, awaits=_awaited(stages, asked, summary))
        waits = waiting(open_batches(store))
        return replace(
            summary,
            run_id=recorder.run_id,
            waiting=waiting_lines(waits),
            on_server=any(each.handed_in for each in waits),
            notes=notes_of(data),
        )
    finally:
        store.close()


def _awaited(stages: TournamentStages, asked: Collection[Task], summary: RunSummary) -> str:
    """Name of a stage that this run leaves out although other stages wait for it; empty if there is none."""
    waiting = any(
        stage.waits_for_labels and task in summary.stages and summary.stages[task].left
        for stage in stages.stages
        for task in stage.tasks
    )
    return Task.RELEVANCE.value if waiting and Task.RELEVANCE in set(stages.tasks).difference(asked) else ""


def stored_settings(stages: TournamentStages, agents: Sequence[StoredAgent] = ()) -> StoredSettings:
    config = stages.config
    used = {name: config.judges[name] for name in config.judges_in_use()}
    settings = stages.settings() | config.model_dump(mode="json", include={"ratings"})
    settings["judges"] = {name: judge.stored() for name, judge in used.items()}
    if config.card is not None:
        settings["card"] = config.card.stored()
    families = {name: judge.family for name, judge in used.items() if judge.family is not None}
    if families or config.families:
        settings["families"] = {"judges": families, "agents": config.families}
    if agents:
        settings["agents"] = [agent.model_dump(mode="json") for agent in agents]
    if stages.data.left_out:
        settings["left_out"] = stages.data.left_out
    return StoredSettings.model_validate(settings)
