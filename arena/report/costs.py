"""Quality against what it takes: latency, tokens and cost of the agents' answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from arena.agents.board import CostBoard
from arena.agents.costs import COST, LATENCY, Figure
from arena.agents.front import Front, money, seconds
from arena.present.blocks import Remarks, Section
from arena.present.table import Table
from arena.report.blocks import Block, Plot, Point, Scale, text_table
from arena.report.figures import NONE, Axis, number

_TITLES = {LATENCY: "Rating against latency", COST: "Rating against cost"}
_AXES = {LATENCY: "Median latency in seconds; further left is better", COST: "Mean cost of a query in US dollars"}


def costs(board: CostBoard) -> Section | None:
    """The section; ``None`` where nothing is known and no answer is missing."""
    if not board.known and not board.gaps:
        return None
    blocks: list[Block] = [_table(board), *(_plot(front) for front in board.fronts.values())]
    if board.notes:
        blocks.append(Remarks(board.notes))
    lead = "What an answer takes, and which agents nobody beats in both quality and price."
    return Section("costs", "Latency and cost", lead, blocks)


def _table(board: CostBoard) -> Table:
    rows = []
    for own in board.agents:
        row = [own.agent, f"{own.answered:,} of {own.queries:,}", _known(own.latency_s, own.answered, seconds)]
        row += [NONE if own.latency_p95_s is None else seconds(own.latency_p95_s)]
        row += [_known(own.cost_usd, own.answered, money)]
        row += [number(own.input_tokens.value, 0), number(own.output_tokens.value, 0)]
        rows.append([*row, "; ".join(f"{cause} {count}" for cause, count in own.missing.items())])
    columns = ["Agent", "Queries answered", "Latency, median", "Latency, 95%", "Cost of a query"]
    columns += ["Tokens in", "Tokens out", "Why not answered"]
    if not any(own.missing for own in board.agents):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    notes = ["Over the answers that have the figure; how many those are is said where they are not all."]
    notes += ["Latency is from sending the request to the end of the answer, without failed attempts."]
    return text_table("What an answer takes", columns, rows, notes, frozenset({"Why not answered"}))


def _known(figure: Figure, answered: int, shown: Callable[[float], str]) -> str:
    if figure.value is None:
        return NONE
    return shown(figure.value) + (f" ({figure.known:,} of {answered:,})" if figure.known < answered else "")


def _plot(front: Front) -> Plot:
    x_axis = Axis([price for _, price in front.points.values()], from_zero=True)
    y_axis = Axis([rating for rating, _ in front.points.values()])
    return Plot(
        list(_points(front, x_axis, y_axis)),
        Scale(_AXES[front.price], x_axis.ticks()),
        Scale("Bradley-Terry rating in points", y_axis.ticks()),
        f"{_TITLES[front.price]}: the best are in the upper left corner; filled dots are agents that nobody beats in "
        "both.",
    )


def _points(front: Front, x_axis: Axis, y_axis: Axis) -> Iterator[Point]:
    for agent, (rating, price) in front.points.items():
        yield Point(agent, x_axis.place(price), y_axis.place(rating), open=agent not in front.agents)
