"""What answers took, as a leaderboard shows it: per agent, the fronts of quality against price, and that in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arena.agents.costs import AgentCosts, Causes, agent_costs
from arena.agents.front import Front, fronts, in_words
from arena.dataset import Dataset
from arena.present.numbers import SECONDS, counted
from arena.ratings.results import AgentRating


@dataclass(frozen=True, slots=True)
class CostBoard:
    """All agents that answered or were to answer.

    Attributes:
        agents: best rated first, those without a rating behind them by name.
        fronts: by price, see ``arena.agents.front``.
        notes: what they say, in words.
    """

    agents: tuple[AgentCosts, ...] = ()
    fronts: Mapping[str, Front] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether anything is known of what any answer took."""
        return any(own.known for own in self.agents)

    @property
    def gaps(self) -> tuple[AgentCosts, ...]:
        """Agents without an answer to some of the queries."""
        return tuple(own for own in self.agents if own.answered < own.queries)

    @property
    def complete(self) -> bool:
        """Whether every agent that we ask ourselves has answered everything."""
        return not any(own.missing for own in self.agents)


def cost_board(data: Dataset, rows: Sequence[AgentRating], failed: Mapping[str, Causes]) -> CostBoard:
    """Put together what answers took.

    Args:
        data: of the tournament.
        rows: the ratings, best first; empty where there are none.
        failed: agents that we ask, with the causes of the answers they owe.
    """
    rank = {row.agent: place for place, row in enumerate(rows)}
    costs = sorted(agent_costs(data, failed), key=lambda own: (rank.get(own.agent, len(rank)), own.agent))
    found = fronts(rows, costs)
    return CostBoard(tuple(costs), found, (*in_words(rows, found), *filter(None, map(_retry_words, costs))))


def _retry_words(own: AgentCosts) -> str:
    """What an agent's latency leaves out; empty where that is nothing."""
    if not own.retried or own.tried_s.median is None:
        return ""
    return (
        f"{own.agent}: {counted(own.retried, 'answer')} of {own.answered} came after failed attempts. Latency leaves "
        f"these out; with them the median is {SECONDS.write(own.tried_s.median)}, and by that it is compared."
    )
