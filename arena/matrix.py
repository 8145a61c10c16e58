"""Who won how many of its games against whom, in the layout of published tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arena.kept import kept_games
from arena.leaderboard import Leaderboard, rating_settings
from arena.ratings.counts import WinMatrix, win_matrix
from arena.store import Store


def tournament_wins(store: Store, tournament: str) -> WinMatrix | None:
    """Wins, ties and games of each pair over the games that are rated; ``None`` before the first verdict."""
    games = kept_games(store, tournament).rated(rating_settings(store.settings(tournament)))
    return None if games is None else win_matrix(games)


def agents_in_order(board: Leaderboard) -> list[str]:
    """The agents as the configuration declares them, those it does not behind them, best rated first."""
    rated = [row.agent for row in board.ratings.agents] if board.ratings else []
    stated = [agent["name"] for agent in board.settings.get("agents", ()) if agent["name"] in rated]
    return list(dict.fromkeys([*stated, *rated]))


def win_percentages(matrix: WinMatrix, order: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each agent: the percentage of its games that it won against each other one, and their average.

    ``arena.win_matrix`` reads this table. Ties count for neither side; a cell is ``None`` where two agents never met,
    and the average is over those that they did (004, Table 5).
    """
    number = {agent: place for place, agent in enumerate(matrix.agents)}
    rows = []
    for agent in order:
        own: dict[str, float | None] = {}
        for opponent in order:
            i, j = number[agent], number[opponent]
            met = agent != opponent and matrix.games[i, j] > 0
            own[opponent] = float(100 * matrix.wins[i, j] / matrix.games[i, j]) if met else None
        won = [percent for percent in own.values() if percent is not None]
        rows.append({"agent": agent, **own, "average": sum(won) / len(won) if won else None})
    return rows
