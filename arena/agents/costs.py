"""What agents' answers took: seconds, tokens and dollars, and on how many queries there is an answer at all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from arena.dataset import Dataset
from judges.types import Answer

LATENCY, COST, TOKENS_IN, TOKENS_OUT = "latency_s", "cost_usd", "input_tokens", "output_tokens"
TRIED = "tried_s"

Causes: TypeAlias = Mapping[str, int]
"""How often an agent had no answer for which cause."""


@dataclass(frozen=True, slots=True)
class Mean:
    """Over those of an agent's answers that have a figure, and how many they are."""

    mean: float | None = None
    known: int = 0


@dataclass(frozen=True, slots=True)
class Median:
    """The same for seconds."""

    median: float | None = None
    known: int = 0


@dataclass(frozen=True, slots=True)
class Latency(Median):
    """The same, and the 95th percentile."""

    p95: float | None = None


@dataclass(frozen=True, slots=True)
class AgentCosts:
    """What one agent's answers took. A figure that an answer does not have is left out and counted, never 0.

    Attributes:
        queries: of the tournament.
        answered: of these, with an answer.
        missing: why it has no answer where we asked it ourselves.
        latency_s: seconds an answer took, as its user sees them: from the request to the end of the answer.
        retried: answers before which attempts failed.
        tried_s: seconds of all attempts at an answer together, without the waits between them; where nobody
            counted these, the answer's latency.
        cost_usd: dollars an answer cost.
        input_tokens, output_tokens: tokens an answer took.
    """

    agent: str
    queries: int
    answered: int
    latency_s: Latency = Latency()
    cost_usd: Mean = Mean()
    input_tokens: Mean = Mean()
    output_tokens: Mean = Mean()
    missing: Causes = field(default_factory=dict)
    retried: int = 0
    tried_s: Median = Median()

    @property
    def known(self) -> bool:
        """Whether any answer has any figure."""
        return any(one.known for one in (self.latency_s, self.cost_usd, self.input_tokens, self.output_tokens))


def unanswered(data: Dataset, settings: Mapping[str, Any]) -> dict[str, list[str]]:
    """By agent that a tournament asks itself, the queries to which it has no answer, from its stored settings."""
    return {
        agent["name"]: [query_id for query_id in data.queries if (query_id, agent["name"]) not in data.answers]
        for agent in settings.get("agents", ())
    }


def agent_costs(data: Dataset, failed: Mapping[str, Causes]) -> tuple[AgentCosts, ...]:
    """What each agent's answers took, by name.

    The figures are those that an answer carries as metadata: a table of answers may have the columns ``latency_s``,
    ``tried_s``, ``cost_usd``, ``input_tokens`` and ``output_tokens``, and replies of agents that we ask have them.

    Args:
        data: of the tournament.
        failed: agents that we ask, with the causes of the answers they owe.
    """
    answers: dict[str, list[Answer]] = {agent: [] for agent in sorted({*data.agents, *failed})}
    for (_, agent), answer in data.answers.items():
        answers[agent].append(answer)
    return tuple(
        _costs(agent, own, len(data.queries), failed.get(agent, {}))
        for agent, own in answers.items()
        if own or agent in failed
    )


def _costs(agent: str, answers: Iterable[Answer], queries: int, missing: Causes) -> AgentCosts:
    import numpy as np

    own = list(answers)
    latencies = _values(own, LATENCY)
    median, p95 = np.percentile(latencies, (50, 95)).tolist() if latencies else (None, None)
    both = [(_number(answer.metadata.get(LATENCY)), _number(answer.metadata.get(TRIED))) for answer in own]
    tried = [latency if all_s is None else all_s for latency, all_s in both if latency is not None]
    return AgentCosts(
        agent,
        queries,
        len(own),
        Latency(median, len(latencies), p95),
        _mean(own, COST),
        _mean(own, TOKENS_IN),
        _mean(own, TOKENS_OUT),
        dict(missing),
        sum(latency is not None and all_s is not None and all_s > latency for latency, all_s in both),
        Median(float(np.median(tried)) if tried else None, len(tried)),
    )


def _mean(answers: Iterable[Answer], name: str) -> Mean:
    values = _values(answers, name)
    return Mean(math.fsum(values) / len(values) if values else None, len(values))


def _values(answers: Iterable[Answer], name: str) -> list[float]:
    return [value for answer in answers if (value := _number(answer.metadata.get(name))) is not None]


def _number(text: str | None) -> float | None:
    """The figure; ``None`` for what is none, which a column of that name may hold by chance."""
    try:
        value = math.nan if text is None else float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
