"""What answers took: over those that say so, with how many they are, and never 0 where nobody knows."""

from __future__ import annotations

from arena.data.dataset import Dataset
from arena.results.costs import agent_costs
from judges.types import Answer, Query

QUERIES = [f"q{number}" for number in range(4)]


def answered(*answers: tuple[str, str, dict[str, str]]) -> Dataset:
    return Dataset(
        {query: Query(query, f"What is {query}?") for query in QUERIES},
        answers={(query, agent): Answer(query, agent, "So.", took) for query, agent, took in answers},
    )


def test_figures_are_over_the_answers_that_have_them() -> None:
    data = answered(
        ("q0", "x", {"latency_s": "1", "cost_usd": "0.01"}),
        ("q1", "x", {"latency_s": "3", "output_tokens": "20"}),
        ("q2", "x", {"latency_s": "soon", "cost_usd": "-1"}),
    )
    (own,) = agent_costs(data, {})
    assert (own.answered, own.queries) == (3, 4)
    assert (own.latency_s.median, own.latency_s.known, own.latency_s.p95) == (2.0, 2, 2.9)
    assert (own.cost_usd.mean, own.cost_usd.known) == (0.01, 1)
    assert (own.output_tokens.mean, own.output_tokens.known) == (20.0, 1)
    assert (own.input_tokens.mean, own.input_tokens.known) == (None, 0)


def test_answers_after_failed_attempts_are_counted() -> None:
    data = answered(
        ("q0", "x", {"latency_s": "0.5", "tried_s": "2.5"}),
        ("q1", "x", {"latency_s": "0.5", "tried_s": "0.5"}),
        ("q2", "x", {"latency_s": "0.5"}),
    )
    (own,) = agent_costs(data, {})
    assert (own.retried, own.tried_s.median, own.tried_s.known) == (1, 0.5, 3)


def test_an_agent_that_answered_nothing_is_there_with_its_causes() -> None:
    costs = agent_costs(answered(("q0", "x", {})), {"x": {"timeout": 3}, "dead": {"connection": 4}})
    assert [(own.agent, own.answered, own.missing, own.known) for own in costs] == [
        ("dead", 0, {"connection": 4}, False),
        ("x", 1, {"timeout": 3}, False),
    ]
