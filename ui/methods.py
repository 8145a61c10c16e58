"""Ways of scoring agents held against each other, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd

from arena.calibration.methods import MethodComparison
from retrieval_eval.stats.estimate import Coefficient
from ui.figures import Row, span
from ui.heat_table import Cell, heat_table

_MOST_NAMED: Final = 12
_CHART: Final = {"x": 400, "y": 240}
_NAME: Final = {"x": 120, "y": 14}
"""Pixels across and down: of a chart of agents, on a small window, and of a name in it."""


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


def correlations_html(frame: pd.DataFrame, methods: Sequence[str], coefficient: str) -> str:
    """The heat map of ``correlation_frame`` with its figures in the cells."""
    cells = {
        (row, column): Cell(
            value,
            f"{value:.2f}",
            f"{row} and {column}: {coefficient} {value:.2f}, 95 % {interval}, {agents:,} agents",
            below=interval,
        )
        for row, column, value, interval, agents in frame.itertuples(index=False)
        if not pd.isna(value)
    }
    return heat_table({name: name for name in methods}, cells, "Places by", coefficient)


def named_agents(frame: pd.DataFrame) -> list[str]:
    """Agents of ``points_frame`` to be named in its chart: those whose places differ most, if their names can be read.

    A name that would stand on an earlier one is left out.
    """
    points = frame[["x", "y"]]
    gaps = points.rank().diff(axis=1)["y"].abs()
    pixels = (points - points.min()) / (points.max() - points.min()).replace(0, 1) * pd.Series(_CHART)
    chosen: list[int] = []
    for at in gaps.sort_values(ascending=False, kind="stable").index:
        apart = (pixels.loc[chosen] - pixels.loc[at]).abs() >= pd.Series(_NAME)
        if len(chosen) < _MOST_NAMED and apart.any(axis=1).all():
            chosen.append(at)
    return list(frame["agent"][chosen])


def points_frame(found: MethodComparison, across: str, up: str) -> pd.DataFrame:
    """Agents that both methods score."""
    scores: Mapping[str, Mapping[str, float]] = {own.method: own.scores for own in found.methods}
    x, y = scores[across], scores[up]
    rows = [{"agent": agent, "x": x[agent], "y": y[agent]} for agent in x if agent in y]
    return pd.DataFrame(rows, columns=["agent", "x", "y"])
