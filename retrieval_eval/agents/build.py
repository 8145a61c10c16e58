"""Agents out of their declarations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from judges.judge import Judge
from retrieval_eval.agents.corpus import Corpus
from retrieval_eval.agents.spec import AgentSpec
from retrieval_eval.agents.types import Agent


def build_agents(
    specs: Mapping[str, AgentSpec],
    judges: Mapping[str, Judge],
    corpus: Corpus | None = None,
    *,
    cache: Path | None = None,
) -> list[Agent]:
    """One agent per declaration, in their order. Nothing is sent and no model loaded before the first reply.

    Agents share what they can: one index per kind of retrieval, one judge per name with its limits and its budget.
    Close every agent, then the judges, which are the caller's.

    Args:
        specs: by the agents' names.
        judges: the declared judges; at least those of ``judges_of_agents``.
        corpus: what is searched; needed where ``needs_corpus`` says so.
        cache: a folder that keeps embeddings, so that none is paid twice; they are forgotten when absent.

    Raises:
        InputError: in one line that names the agent: a generator that is no judge, a missing corpus, key, extra, file
            or function.
    """
    raise NotImplementedError
