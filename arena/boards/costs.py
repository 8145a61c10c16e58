"""What answers took: seconds, tokens and dollars of each agent, and the fronts of quality against price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from arena.present.blocks import Board, Remarks, Section
from arena.present.numbers import COUNT, MONEY, POINTS, SECONDS
from arena.present.picture import Chart, Dot
from arena.present.plain import plain
from arena.present.table import Column, Table, records
from arena.stages.answers.costs import LATENCY, AgentCosts

if TYPE_CHECKING:
    from arena.stages.answers.costs import CostBoard, Front

_LATENCY: Final = (
    "Median, from sending the request to the end of the answer; waiting for a turn and failed attempts are not in it."
)
_COLUMNS: Final = (
    Column("agent", "Agent"),
    Column("answered", "Answered", COUNT, "Queries with an answer; games are played where both agents answered."),
    Column("queries", "Queries", COUNT),
    Column("latency_median_s", "Latency, median", SECONDS, _LATENCY),
    Column("latency_p95_s", "Latency, 95%", SECONDS, "95% of the answers took no longer."),
    Column("latency_known", "Latency known", COUNT, "Answers whose latency is known; the others are left out."),
    Column("retried", ""),
    Column("tried_median_s", ""),
    Column("cost_usd", "Cost of a query", MONEY, "Mean over the answers whose cost is known."),
    Column("cost_known", "Cost known", COUNT, "Answers whose cost is known; the others are left out."),
    Column("input_tokens", "Tokens in", POINTS, "Mean over the answers whose tokens are known."),
    Column("output_tokens", "Tokens out", POINTS, "Mean over the answers whose tokens are known."),
    Column("on_front", "Front", meaning="No agent is rated as high and takes as little of this.", programs=False),
    Column("front", ""),
    Column("missing", "Why not answered", meaning="How often each cause left a query open.", programs=False),
)


@dataclass(frozen=True, slots=True)
class CostsBoard(Board):
    """What answers took, for people and programs; nothing where nothing is known and no answer is missing."""

    costs: CostBoard

    def sections(self) -> Sequence[Section]:
        """One, or none."""
        if not self.costs.known and not self.costs.gaps:
            return []
        lead = "What an answer takes, and which agents nobody beats in both quality and price."
        charts = map(front_chart, self.costs.fronts.values())
        remarks = [Remarks(self.costs.notes)] if self.costs.notes else []
        return [Section("costs", "Latency and cost", lead, [self.table(), *charts, *remarks])]

    def table(self) -> Table:
        """A row for each agent."""
        return Table("costs", "What an answer takes", _COLUMNS, [self._row(own) for own in self.costs.agents])

    def columns(self, agent: str) -> dict[str, Any]:
        """An agent's figures as columns of a flat row, the same for every agent; none where there is no section."""
        if not self.sections():
            return {}
        own = [row for row in self.table().rows if row["agent"] == agent] or [{"agent": agent, "front": ""}]
        (record,) = records(Table("costs", "", _COLUMNS, own))
        return {name: value for name, value in record.items() if name != "agent"}

    def json(self) -> Any:
        """The field ``costs`` of a leaderboard's JSON."""
        agents = plain({own.agent: own for own in self.costs.agents})
        for shape in agents.values():
            del shape["agent"]
        fronts = {price: list(front.agents) for price, front in self.costs.fronts.items()}
        return {"agents": agents, "fronts": fronts, "notes": list(self.costs.notes)}

    def _row(self, own: AgentCosts) -> Mapping[str, Any]:
        fronts = [price for price, front in self.costs.fronts.items() if own.agent in front.agents]
        return {
            **{name: getattr(own, name) for name in ("agent", "answered", "queries", "retried")},
            "latency_median_s": own.latency_s.median,
            "latency_p95_s": own.latency_s.p95,
            "latency_known": own.latency_s.known,
            "tried_median_s": own.tried_s.median,
            "cost_usd": own.cost_usd.mean,
            "cost_known": own.cost_usd.known,
            "input_tokens": own.input_tokens.mean,
            "output_tokens": own.output_tokens.mean,
            "on_front": ["latency" if price == LATENCY else "cost" for price in fronts],
            "front": " ".join(fronts),
            "missing": [f"{cause} {count}" for cause, count in own.missing.items()],
        }


def front_chart(front: Front) -> Chart:
    """Rating against what an answer takes; agents that nobody beats in both are filled and joined by steps."""
    fast = front.price == LATENCY
    title, form = ("Rating against latency", SECONDS) if fast else ("Rating against cost", MONEY)
    dots = [
        Dot(price, rating, agent, "blue" if agent in front.agents else "grey", f"{agent}: {rating:.0f}, {written}")
        for agent in sorted(front.points, key=lambda agent: agent not in front.agents)
        for rating, price in [front.points[agent]]
        for written in [form.write(price)]
    ]
    return Chart(
        front.price,
        title,
        f"{title}: the agents {', '.join(front.agents)} are on the front",
        "The best are in the upper left corner; filled dots are agents that nobody beats in both.",
        "Median latency in seconds" if fast else "Mean cost of a query in US dollars",
        "Bradley-Terry rating in points",
        dots,
        [(dot.x, dot.y) for dot in dots[: len(front.agents)]],
        stepped=True,
        zero=True,
    )
