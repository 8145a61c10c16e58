"""What answers took as plain values: its part of a leaderboard's JSON, and columns of flat rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, TypeAlias

from arena.agents.board import CostBoard
from arena.agents.costs import AgentCosts

Row: TypeAlias = dict[str, Any]


def costs_json(board: CostBoard) -> Row:
    """The field ``costs`` of a leaderboard's JSON."""
    return {
        "agents": {own.agent: _agent_json(own) for own in board.agents},
        "fronts": {price: list(front.agents) for price, front in board.fronts.items()},
        "notes": list(board.notes),
    }


def cost_columns(board: CostBoard, agent: str) -> Row:
    """One agent's figures as columns of a flat row, the same for every agent; none where nothing is known."""
    if not board.known and not board.gaps:
        return {}
    own = next((own for own in board.agents if own.agent == agent), None)
    return {
        "answered": own and own.answered,
        "queries": own and own.queries,
        "latency_median_s": own and own.latency_s.value,
        "latency_p95_s": own and own.latency_p95_s,
        "latency_known": own and own.latency_s.known,
        "retried": own and own.retried,
        "tried_median_s": own and own.tried_s.value,
        "cost_usd": own and own.cost_usd.value,
        "cost_known": own and own.cost_usd.known,
        "input_tokens": own and own.input_tokens.value,
        "output_tokens": own and own.output_tokens.value,
        "front": " ".join(price for price, front in board.fronts.items() if agent in front.agents),
    }


def _agent_json(own: AgentCosts) -> Row:
    latency = {"median": own.latency_s.value, "p95": own.latency_p95_s, "known": own.latency_s.known}
    return {
        "queries": own.queries,
        "answered": own.answered,
        "missing": dict(own.missing),
        "latency_s": latency,
        "retried": own.retried,
        "tried_s": {"median": own.tried_s.value, "known": own.tried_s.known},
        "cost_usd": _mean(asdict(own.cost_usd)),
        "input_tokens": _mean(asdict(own.input_tokens)),
        "output_tokens": _mean(asdict(own.output_tokens)),
    }


def _mean(figure: Row) -> Row:
    return {"mean": figure["value"], "known": figure["known"]}
