"""What answers took, for people: a table of the agents, and below it the fronts in words."""

from __future__ import annotations

from collections.abc import Callable

from arena.agents.board import CostBoard
from arena.agents.costs import COST, LATENCY, AgentCosts, Figure
from arena.agents.front import money, seconds
from arena.cli.console import output
from arena.cli.figures import say
from arena.cli.tables import print_table


def print_costs(board: CostBoard) -> None:
    """Write the table and its notes to standard output; one line where nothing is known, none without an agent."""
    if not board.agents:
        return
    if board.known:
        headings = [
            "queries\nanswered",
            "latency\nmedian",
            "latency\n95 %",
            "cost a\nquery",
            "tokens\nin",
            "tokens\nout",
        ]
        print_table(["agent"], [*headings, "front"], [_cells(own, board) for own in board.agents])
        output.print()
        for note in board.notes:
            say(note)
    for own in board.gaps:
        say(gap_words(own))
    if not board.known:
        say("latency, tokens and cost of the answers are not known")
    output.print()


def gap_words(own: AgentCosts) -> str:
    """How much an agent did not answer, and why where that is known."""
    causes = ", ".join(f"{cause} {count}" for cause, count in own.missing.items())
    return f"agent {own.agent}: {own.answered} of {own.queries} queries answered" + (f" ({causes})" if causes else "")


def _cells(own: AgentCosts, board: CostBoard) -> list[str]:
    prices = {LATENCY: "latency", COST: "cost"}
    on = [word for price, word in prices.items() if price in board.fronts and own.agent in board.fronts[price].agents]
    return [
        own.agent,
        f"{own.answered} of {own.queries}",
        _known(own.latency_s, own, seconds),
        "-" if own.latency_p95_s is None else seconds(own.latency_p95_s),
        _known(own.cost_usd, own, money),
        _known(own.input_tokens, own, _whole),
        _known(own.output_tokens, own, _whole),
        ", ".join(on) or "-",
    ]


def _known(figure: Figure, own: AgentCosts, shown: Callable[[float], str]) -> str:
    """The figure, and of how many answers where not all have one."""
    if figure.value is None:
        return "-"
    return shown(figure.value) + (f" of {figure.known}" if figure.known < own.answered else "")


def _whole(tokens: float) -> str:
    return f"{tokens:,.0f}"
