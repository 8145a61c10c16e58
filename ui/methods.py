"""Ways of scoring agents held against each other, as tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from arena.calibration.methods import MethodComparison
from retrieval_eval.rank_correlation import Coefficient
from ui.figures import Row, span


def correlation_frame(found: MethodComparison, coefficient: str) -> pd.DataFrame:
    """For the heat map: a line for each cell, a method with itself left out."""
    rows: list[Row] = []
    for pair in found.pairs:
        own: Coefficient = pair.kendall if coefficient == "Kendall's tau-b" else pair.spearman
        for row, column in ((pair.first, pair.second), (pair.second, pair.first)):
            cell = {"row": row, "column": column, "value": own.value, "interval": span(own, 2), "agents": pair.agents}
            rows.append(cell)
    return pd.DataFrame(rows, columns=["row", "column", "value", "interval", "agents"])


def scores_frame(found: MethodComparison) -> pd.DataFrame:
    """A line for each agent: scores, and places in brackets."""
    agents = sorted(
        {agent for own in found.methods for agent in own.scores},
        key=lambda agent: ([own.ranks.get(agent, 10**6) for own in found.methods], agent),
    )
    columns = {
        own.method: [f"{own.scores[agent]:.5g} ({own.ranks[agent]})" if agent in own.scores else "" for agent in agents]
        for own in found.methods
    }
    return pd.DataFrame({"Agent": agents, **{f"by {name}": cells for name, cells in columns.items()}})


def places_frame(found: MethodComparison) -> pd.DataFrame:
    """Agents whose place differs from method to method, the most first."""
    gaps = [gap for gap in found.places if gap.worst > gap.best]
    return pd.DataFrame(
        {
            "Agent": [gap.agent for gap in gaps],
            "Best place": [gap.best for gap in gaps],
            "by": [", ".join(gap.best_by) for gap in gaps],
            "Worst place": [gap.worst for gap in gaps],
            "by ": [", ".join(gap.worst_by) for gap in gaps],
        }
    )


def points_frame(found: MethodComparison, across: str, up: str) -> pd.DataFrame:
    """Agents that both methods score."""
    scores: Mapping[str, Mapping[str, float]] = {own.method: own.scores for own in found.methods}
    x, y = scores[across], scores[up]
    rows = [{"agent": agent, "x": x[agent], "y": y[agent]} for agent in x if agent in y]
    return pd.DataFrame(rows, columns=["agent", "x", "y"])
