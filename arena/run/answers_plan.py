"""Plans the calls of agents as far as they are known in advance, without sending a request."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from msgspec import Struct

from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.data.files import load_files
from arena.run.agents import OpenedAgents, open_agents
from arena.run.answers import needs_call
from arena.run.planner import SECONDS_PER_CALL
from arena.store import Store, missing
from arena.store.agents import AgentQuery, AgentReplies
from judges.spec import price_of
from judges.types import Document
from judges.writing import estimated_tokens
from retrieval_eval.agents.build import require_messages
from retrieval_eval.agents.spec import EXTRACTIVE, AgentSpec


class PlannedAgent(Struct, frozen=True):
    """One agent's planned calls; figures that cannot be known are ``None``.

    Attributes:
        wanted: number of queries.
        known: number of queries that are already answered, or failed and are not retried.
        calls: number of calls to models or to the agent's address, without retries.
        input_tokens: number of tokens in the passages and queries that the agent's model reads.
        output_tokens: maximum number of output tokens, from the model's ``max_tokens``.
        cost_usd: cost of input and output together.
        seconds: estimated duration at ``SECONDS_PER_CALL`` and the declared concurrency.
    """

    agent: str
    wanted: int
    known: int
    calls: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float | None


def plan_agents(
    config: Config, opened: OpenedAgents | None = None, data: Dataset | None = None, *, longest: bool = False
) -> tuple[list[PlannedAgent], OpenedAgents]:
    """Count the calls that the agents would make in a run.

    Args:
        config: the tournament.
        opened: the tournament's agents, if they are open already.
        data: use the queries in this dataset instead of the files in the configuration.
        longest: assume passages of maximum instead of mean length.

    Returns:
        One row for each agent, and the opened agents.

    Raises:
        InputError: queries, corpus or agents cannot be used.
    """
    data = load_files(config) if data is None else data
    if data.has_messages:
        require_messages(config.agents)
    opened, queries = opened or open_agents(config), list(data.queries.values())
    wanted = {agent.name: [AgentQuery.of(agent, query) for query in queries] for agent in opened.declared}
    outcomes = _outcomes(config, [query for agent_queries in wanted.values() for query in agent_queries])
    documents = () if opened.corpus is None else opened.corpus.documents
    texts = [text for query in queries for text in (query.text, *(each.text for each in query.messages))]
    length = sum(map(estimated_tokens, texts)) / len(queries) if queries else 0.0
    rows = []
    for name, asked in wanted.items():
        todo = len({query for query in asked if needs_call(outcomes.get(query), retry_failed=False)})
        rows.append(
            _planned(name, config, len(asked), todo, passage=_passage_length(documents, longest=longest), query=length)
        )
    return rows, opened


def agent_notes(config: Config, rows: Sequence[PlannedAgent]) -> list[str]:
    """Notes that say what the planned figures of agents assume and leave out."""
    asked = [row for row in rows if row.calls != 0]
    notes = []
    if unknown := [row.agent for row in asked if row.cost_usd is None]:
        notes.append(f"what agents ask behind their own address or code is not known: {', '.join(unknown)}")
    if embedded := [
        row.agent for row in rows if row.wanted > row.known and _embeds_elsewhere(config.agents[row.agent])
    ]:
        notes.append(f"requests to a server of embeddings are not counted: {', '.join(embedded)}")
    if any(row.calls and config.agents[row.agent].generator for row in asked):
        notes.append("an agent's answer counts as long as its model's max_tokens allows: an upper bound")
    return notes


def _outcomes(config: Config, asked: Sequence[AgentQuery]) -> dict[AgentQuery, str]:
    if missing(config.store):
        return {}
    with closing(Store.open(config.store)) as store:
        return AgentReplies(store).outcomes(asked)


def _passage_length(documents: Sequence[Document], *, longest: bool) -> float:
    """Mean or maximum number of tokens of a document."""
    lengths = [estimated_tokens(document.text) for document in documents] or [0]
    return max(lengths) if longest else sum(lengths) / len(lengths)


def _planned(name: str, config: Config, wanted: int, todo: int, *, passage: float, query: float) -> PlannedAgent:
    spec = config.agents[name]
    known = wanted - todo
    calls_each = _calls_each(spec)
    if calls_each is None or not todo:
        figure = 0 if not todo else None
        return PlannedAgent(name, wanted, known, figure, figure, figure, figure, figure)
    calls = calls_each * todo
    judge = config.judges.get(spec.generator or "")
    if judge is None:
        unknown = 0 if not calls else None
        seconds = calls * SECONDS_PER_CALL / spec.concurrency
        return PlannedAgent(name, wanted, known, calls, unknown, unknown, unknown, seconds)
    shown = passage * spec.passages if spec.kind in {"rag", "fusion"} else 0.0
    sent = round(todo * (shown + calls_each * query))
    price, most = price_of(judge), calls * judge.max_tokens
    cost = None if price is None else (sent * price.input + most * price.output) / 1e6
    return PlannedAgent(name, wanted, known, calls, sent, most, cost, calls * SECONDS_PER_CALL / judge.concurrency)


def _embeds_elsewhere(spec: AgentSpec) -> bool:
    return spec.retriever != "bm25" and spec.embeddings.provider == "openai"


def _calls_each(spec: AgentSpec) -> int | None:
    """Number of calls to a model or address for one query; ``None`` if the agent's Python code decides it."""
    if spec.kind == "python":
        return None
    if spec.kind == "file" or (spec.kind in {"rag", "fusion"} and spec.generator in {None, EXTRACTIVE}):
        return 0
    return 2 if spec.kind == "fusion" else 1
