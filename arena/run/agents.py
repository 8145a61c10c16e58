"""Opens the judges and agents of a configuration, in this process or on Ray workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from arena.config.schema import Config, ExecutorSection
from arena.config.settings import StoredAgent
from arena.data.corpus import ReadCorpus, corpus_of
from arena.store import Store, missing, sqlite_path
from arena.store.agents import AgentReplies
from judges.errors import PROGRESS, InputError, MissingExtraError
from judges.judge import Judge, Stop
from judges.spec import JudgeSpec
from judges.types import CallTrace, repeat_name
from retrieval_eval.agents.ranking import Corpus
from retrieval_eval.agents.spec import AgentSpec, judges_of_agents, uses_corpus
from retrieval_eval.agents.types import Agent
from retrieval_eval.data.trec import read_recordings


class OpenedAgents(Struct, frozen=True):
    """A configuration's agents, ready to be asked, in the order of the configuration file.

    Attributes:
        judges: the models that generate the agents' answers, by name.
        corpus: the document collection that agents search or cite from; ``None`` if no agent uses one.
        declared: each agent's name, identity and settings, as the store records them; an entry for each repeat.
    """

    agents: list[Agent]
    judges: dict[str, Judge]
    corpus: ReadCorpus | None
    declared: list[StoredAgent]

    async def close(self) -> None:
        for agent in self.agents:
            await agent.close()
        for judge in self.judges.values():
            await judge.close()


def open_agents(
    config: Config, stop: Stop | None = None, trace: Callable[[CallTrace], None] | None = None
) -> OpenedAgents:
    """Open the agents that a configuration declares, without sending a request.

    Pass the run's ``stop`` signal if the agents will be asked: the executor then decides where their models run.
    """
    specs = config.agents
    named = judges_of_agents(specs.values())
    if stop is None:
        judges = {name: Judge(name, config.judges[name], read_records=read_recordings) for name in named}
    else:
        judges = open_judges(config, stop, trace, named)
    corpus = corpus_of(config.data) if config.data.corpus and uses_corpus(specs.values()) else None
    searched = None if corpus is None else Corpus.of(corpus.documents)
    from retrieval_eval.agents.build import build_agents  # late: it loads HTTP clients, and most runs ask no agents

    agents = build_agents(specs, judges, searched, cache=_cache(config), stop=stop)
    for agent in agents if stop is not None else ():
        if lacking := getattr(agent, "lacking", ""):
            PROGRESS.warning("agent %s: %s", agent.name, lacking)
    identities = {agent.identity: agent.identity for agent in agents}
    if agents and not missing(config.store):
        with closing(Store.open(config.store)) as store:
            identities = AgentReplies(store).newest(identities)
    return OpenedAgents(agents, judges, corpus, declared(agents, specs, identities))


def declared(agents: Iterable[Agent], specs: Mapping[str, AgentSpec], newest: Mapping[str, str]) -> list[StoredAgent]:
    """The agents as the store records them; ``newest`` has the identity of each agent's newest asking, by identity.

    Each repeat is an entry of its own: its answers are stored under an identity that has the number of the repeat. Of
    several names for one system, those with repeats have answers of their own, and those without share one.
    """
    agents, first = list(agents), dict[str, str]()
    for agent in agents:
        if specs[agent.name].repeats > 1:
            first.setdefault(agent.identity, agent.name)
    return [
        StoredAgent(
            name=repeat_name(agent.name, repeat),
            identity=newest[agent.identity]
            + ("" if first.get(agent.identity, agent.name) == agent.name or spec.repeats == 1 else f"#{agent.name}")
            + ("" if repeat == 1 else f"#{repeat}"),
            settings=spec.stored(),
            notes=agent.notes,
            told_id=spec.told_id,
        )
        for agent in agents
        for spec in [specs[agent.name]]
        for repeat in range(1, spec.repeats + 1)
    ]


def _cache(config: Config) -> Path | None:
    """Path of the embedding cache, a file beside the store; ``None`` if the store is no SQLite file."""
    path = sqlite_path(config.store)
    return None if path is None else path.with_name(f"{path.name}.embeddings")


def open_judges(
    config: Config, stop: Stop, trace: Callable[[CallTrace], None] | None, names: Iterable[str] | None = None
) -> dict[str, Judge]:
    """Open the judges with these names; by default all judges that a stage uses.

    Limits, retries, parsing and costs are always handled in this process. Ray workers only run the provider, which
    sends the requests to a model.
    """
    executor = config.executor
    if executor.kind == "ray" and find_spec("ray") is None:
        raise MissingExtraError("ray", "'executor: {kind: ray}'")
    variables = (executor.runtime_env or {}).get("env_vars", {})
    judges: dict[str, Judge] = {}
    for name in config.judges_in_use() if names is None else names:
        spec = config.judges[name]
        if runs_on_workers(executor, spec):
            for secret in {spec.api_key_env, *spec.headers_env.values()} & variables.keys():
                raise InputError(
                    f"executor.runtime_env: {secret} is the key of judge {name!r}, and Ray shows runtime_env "
                    "in its logs; remove it here, and set it in the environment of Ray's machines"
                )
            # Ray reads this on import: it stops Ray from printing lines on dead nodes, which ragleague reports itself.
            os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
            from arena.run.ray_workers import RayProvider

            provider = RayProvider(name, spec, executor)
            judges[name] = Judge(name, with_all_workers(executor, spec), provider, stop=stop, trace=trace)
        else:
            judges[name] = Judge(name, spec, read_records=read_recordings, stop=stop, trace=trace)
        if lacking := getattr(judges[name].provider, "lacking", ""):
            PROGRESS.warning("judge %s: %s", name, lacking)
    return judges


def runs_on_workers(executor: ExecutorSection, spec: JudgeSpec) -> bool:
    """Whether Ray workers make a judge's calls; recorded replies and batches are always read in this process."""
    return executor.kind == "ray" and spec.provider != "replay" and not spec.in_batches


def with_all_workers(executor: ExecutorSection, spec: JudgeSpec) -> JudgeSpec:
    """A copy of a judge's settings whose concurrency is the sum over all its Ray workers."""
    if not runs_on_workers(executor, spec):
        return spec
    return spec.model_copy(update={"concurrency": spec.concurrency * executor.workers})
