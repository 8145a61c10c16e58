"""A small corpus, agents over it, and a generator on loopback."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judges.judge import Judge
from judges.spec import JudgeSpec
from judges.types import Document, Query
from retrieval_eval.agents.build import build_agents
from retrieval_eval.agents.ranking import Corpus
from retrieval_eval.agents.spec import AgentSpec
from retrieval_eval.agents.types import Agent, AgentFailure, AgentReply

QUERY = Query("q1", "How are Elo ratings updated after a game?")
CORPUS = Corpus.of(
    [
        Document(
            "elo", "Elo ratings are updated after every game. The winner gains what the loser loses.", {"title": "Elo"}
        ),
        Document("order", "The order of the games changes Elo ratings. Shuffled replays average it out."),
        Document("kappa", "Kappa corrects agreement for chance."),
        Document("blank", " "),
        Document("pool", "Pooling takes the first documents of several runs.", {"title": "Pools"}),
    ]
)


def judge(base_url: str, **settings: Any) -> Judge:
    """An OpenAI-compatible generator whose tokens have a price."""
    price = {"input": 1.0, "output": 2.0}
    given = {"provider": "openai", "model": "gen-1", "base_url": base_url, "price": price, "max_attempts": 1}
    return Judge("strong", JudgeSpec.model_validate({**given, **settings}))


def build(specs: Mapping[str, Mapping[str, Any]], *judges: Judge, cache: Path | None = None) -> dict[str, Agent]:
    """Agents by name, over the corpus."""
    declared = {name: AgentSpec.model_validate(spec) for name, spec in specs.items()}
    agents = build_agents(declared, {judge.name: judge for judge in judges}, CORPUS, cache=cache)
    return {agent.name: agent for agent in agents}


def only(spec: Mapping[str, Any], *judges: Judge) -> Agent:
    """The one agent of a declaration."""
    return build({"mine": spec}, *judges)["mine"]


async def answered(agent: Agent, query: Query = QUERY) -> AgentReply:
    """Its reply, which must be one."""
    reply = await agent.reply(query)
    await agent.close()
    assert isinstance(reply, AgentReply), reply
    return reply


async def failed(agent: Agent, query: Query = QUERY) -> AgentFailure:
    """Its failure, which must be one."""
    reply = await agent.reply(query)
    await agent.close()
    assert isinstance(reply, AgentFailure), reply
    return reply
