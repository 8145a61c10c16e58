"""Opens the agents that a configuration declares."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from arena.config.schema import Config
from arena.config.settings import StoredAgent
from arena.data.corpus import ReadCorpus, corpus_of
from arena.run.executors import open_judges
from arena.store import sqlite_path
from judges.errors import PROGRESS
from judges.judge import Judge, Stop
from judges.types import CallTrace
from retrieval_eval.agents.ranking import Corpus
from retrieval_eval.agents.spec import AgentSpec, judges_of_agents, uses_corpus
from retrieval_eval.agents.types import Agent
from retrieval_eval.data.trec import read_recordings


class OpenedAgents(Struct, frozen=True):
    """A configuration's agents, ready to be asked.

    Attributes:
        agents: the opened agents, in the order of the configuration file.
        judges: the models that generate the agents' answers, by name.
        corpus: the documents that agents search or name; ``None`` if no agent uses any.
        declared: each agent's name, identity and settings, as the store records them.
    """

    agents: list[Agent]
    judges: dict[str, Judge]
    corpus: ReadCorpus | None
    declared: list[StoredAgent]

    async def close(self) -> None:
        """Close agents and judges."""
        for agent in self.agents:
            await agent.close()
        for judge in self.judges.values():
            await judge.close()


def open_agents(
    config: Config, stop: Stop | None = None, trace: Callable[[CallTrace], None] | None = None
) -> OpenedAgents:
    """Open the agents that a configuration declares, without sending a request.

    Args:
        config: the tournament.
        stop: the run's stop signal, needed if agents will be asked: it makes the models open where the executor runs.
        trace: called with every call to a model.

    Raises:
        InputError: an agent or the corpus cannot be used.
    """
    from retrieval_eval.agents.build import build_agents

    specs = config.agents
    named = judges_of_agents(specs.values())
    if stop is None:
        judges = {name: Judge(name, config.judges[name], read_records=read_recordings) for name in named}
    else:
        judges = open_judges(config, stop, trace, named)
    corpus = corpus_of(config.data) if config.data.corpus and uses_corpus(specs.values()) else None
    searched = None if corpus is None else Corpus.of(corpus.documents)
    agents = build_agents(specs, judges, searched, cache=_cache(config), stop=stop)
    for agent in agents if stop is not None else ():
        if lacking := getattr(agent, "lacking", ""):
            PROGRESS.warning("agent %s: %s", agent.name, lacking)
    return OpenedAgents(agents, judges, corpus, [_stored(agent, specs[agent.name]) for agent in agents])


def _stored(agent: Agent, spec: AgentSpec) -> StoredAgent:
    return StoredAgent(
        name=agent.name, identity=agent.identity, settings=spec.stored(), notes=agent.notes, told_id=spec.told_id
    )


def _cache(config: Config) -> Path | None:
    """Path of the embedding cache beside the store; ``None`` without a SQLite file."""
    path = sqlite_path(config.store)
    return None if path is None else path.with_name(f"{path.name}.embeddings")
