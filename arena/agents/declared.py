"""The agents that a configuration declares: built, and as what decides their replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arena.config import Config
from arena.store import sqlite_path
from judges.judge import Judge, Stop
from judges.types import CallTrace
from retrieval_eval.agents.build import build_agents
from retrieval_eval.agents.corpus import Corpus
from retrieval_eval.agents.spec import judges_of_agents, needs_corpus
from retrieval_eval.agents.types import Agent
from retrieval_eval.corpora import read_corpora

_TOLD = {"kind", "version", "generator", "retriever", "depth", "passages", "rrf_k", "queries", "ask", "model"}
"""What of a declaration goes into the store; no path, address or variable name."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One agent as a tournament knows it.

    Attributes:
        identity: hash of everything that decides its replies.
        settings: what of its declaration is told.
        notes: what a reader of its results must know.
    """

    name: str
    identity: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def open_agents(
    config: Config, stop: Stop | None = None, trace: Callable[[CallTrace], None] | None = None
) -> tuple[list[Agent], dict[str, Judge]]:
    """The agents in the order of the file, and the judges that generate for them. Nothing is sent.

    Raises:
        InputError: one cannot be used, or the corpus cannot.
    """
    specs = config.agents
    judges = {
        name: Judge(name, config.judges[name], stop=stop, trace=trace) for name in judges_of_agents(specs.values())
    }
    corpus = Corpus.of(read_corpora(config.data.corpus)) if needs_corpus(specs.values()) else None
    return build_agents(specs, judges, corpus, cache=_cache(config)), judges


def declared(config: Config, agents: list[Agent] | None = None) -> list[Declared]:
    """What is known of a configuration's agents; they are opened unless given.

    Raises:
        InputError: see ``open_agents``.
    """
    if not config.agents:
        return []
    opened = open_agents(config)[0] if agents is None else agents
    return [
        Declared(
            agent.name,
            agent.identity,
            config.agents[agent.name].model_dump(mode="json", include=_TOLD, exclude_defaults=True),
            agent.notes,
        )
        for agent in opened
    ]


def _cache(config: Config) -> Path | None:
    """Where embeddings are kept, beside the store."""
    path = sqlite_path(config.store)
    return None if path is None else path.with_name(f"{path.name}.embeddings")
