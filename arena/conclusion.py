"""The conclusion of a leaderboard in one sentence: a leader, a tie at the top, or not enough to say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from arena.agents.front import lowest_prices
from arena.leaderboard import Leaderboard
from arena.ratings.rate import Ratings
from arena.ratings.results import AgentRating
from arena.wording import listed

Kind: TypeAlias = Literal["leader", "tie", "unclear", "empty"]

_NAMED = 5
"""Agents named in a sentence; the others are counted."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What may be concluded. ``headline`` is in our own words, ``sentence`` names agents: text from outside."""

    kind: Kind
    headline: str
    sentence: str


def conclude(board: Leaderboard) -> Conclusion:
    """What a leaderboard allows to be said. A missing interval or test never makes a winner.

    Where quality ties, which agent is cheaper or faster decides, as far as answers say what they took.
    """
    ratings = board.ratings
    if board.shortfall is not None and board.shortfall.rated and ratings is None:
        sentence = f"{board.shortfall.message}: {board.shortfall.remedy}."
        return Conclusion("empty", "Not enough verdicts to rate", sentence[0].upper() + sentence[1:])
    if ratings is None:
        return Conclusion("empty", "No verdicts yet", "No game has a verdict, so there is nothing to rate.")
    if doubt := _doubt(ratings):
        return Conclusion("unclear", "Not enough signal", doubt)
    top = _tied_for_first(ratings.agents)
    if len(top) == 1:
        return Conclusion("leader", "Clear leader", _leads(ratings))
    prices = lowest_prices([row.agent for row in top], board.costs.fronts)
    ending = f"{_basis(ratings)}{'; of these ' if prices else ''}{prices}."
    if len(top) == len(ratings.agents):
        sentence = f"None of the {len(top)} agents can be told apart from {top[0].agent}, which has the highest rating"
        return Conclusion("unclear", "Not enough signal", f"{sentence}, {ending}")
    sentence = f"{_listed(top)} are tied for first: no two of them can be told apart, {ending}"
    return Conclusion("tie", "Tie at the top", sentence)


def _doubt(ratings: Ratings) -> str:
    """Why no comparison can be believed; empty if they can."""
    if not ratings.convergence.converged:
        return "The ratings did not converge, so they cannot be compared."
    if any("disconnected" in row.flags for row in ratings.agents):
        return "Some agents never met the others, not even through third ones, so their ratings cannot be compared."
    if not ratings.pairs or any(row.bt_low is None for row in ratings.agents):
        return "There are no intervals, so a higher rating may be chance. Judge games on more queries."
    return ""


def _leads(ratings: Ratings) -> str:
    first, second = ratings.agents[:2]
    points = f"{first.bt - second.bt:.0f} points above {second.agent}, the next"
    return f"{first.agent} leads, {points}, {_basis(ratings)}."


def _tied_for_first(rows: Sequence[AgentRating]) -> list[AgentRating]:
    """Those that share the first group's letter, see ``arena.ratings.ranks.groups``."""
    first = rows[0].group.split("-")[0]
    return [row for row in rows if row.group.split("-")[0] == first]


def _listed(rows: Sequence[AgentRating]) -> str:
    names = [row.agent for row in rows[:_NAMED]]
    if len(rows) > _NAMED:
        names.append(f"{len(rows) - _NAMED} more")
    return listed(names)


def _basis(ratings: Ratings) -> str:
    games = sum(row.games for row in ratings.agents) / 2
    how = ratings.convergence
    units = f" on {how.units} queries" if how.resampled == "query" else ""
    return f"at {ratings.settings.level:.0%} confidence over {games:,g} games{units}"
