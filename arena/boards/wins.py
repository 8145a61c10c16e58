"""The win matrix: as a heat map, as a table of percentages as papers print it, and as a table of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from arena.present.blocks import Board, Section
from arena.present.numbers import COUNT, P_VALUE, PERCENT, POINTS, Number
from arena.present.picture import Matrix, MatrixCell, nowhere
from arena.present.table import Column, Table, plain
from arena.ratings.pairs import PairResults, WinMatrix, pair_results
from arena.results.cache import cached_games
from arena.results.ratings import Leaderboard, rating_settings
from arena.store import Store

WinsCounted: TypeAlias = Literal["wins and half the ties", "wins only"]

ALPHA: Final = 0.05
"""Significance level: a pair of agents differs if its p-value is smaller."""
_WHOLE: Final = Number(0, factor=100)
_LEAD: Final = "How each agent did against each other one: where the order of the leaderboard comes from."
_PAIRS: Final = (
    Column("row", "Agent"),
    Column("column", "Against"),
    Column("share", "Percent", PERCENT, "Of the pair's games, how many the agent took."),
    Column("games", "Games", COUNT),
    Column("won", "Won", COUNT),
    Column("tied", "Tied", COUNT),
    Column("lost", "Lost", COUNT),
    Column("p", "p, corrected", P_VALUE, "How likely so clear a difference would be between equals (Holm)."),
)


class Wins(Board, frozen=True, eq=False):
    """Results of every two agents.

    Attributes:
        pairs: results of all agents that played.
        order: the agents to list, in this order.
        counted: which results the picture and the table of pairs count, such as wins and half the ties.
    """

    pairs: PairResults
    order: Sequence[str]
    counted: WinsCounted = "wins and half the ties"

    def sections(self) -> Sequence[Section]:
        return [Section("matrix", "Who beats whom", _LEAD, [self.percentages()])]

    def json(self) -> Any:
        return {"percent": plain(self._rows())}

    def report(self) -> Section:
        """The section for a report: the heat map, which takes less room than the table."""
        return Section("matrix", "Who beats whom", _LEAD, [self.picture()])

    def percentages(self) -> Table:
        """A row for each agent: the percentage of games won against each other agent, and the average.

        ``arena.data.verdicts`` reads this table. Ties count for neither side; a cell is empty if the two agents never
        met, and the average leaves such cells out (004, Table 5).
        """
        rows = [
            {key: round(value, 1) if isinstance(value, float) else value for key, value in row.items()}
            for row in self._rows()
        ]
        columns = [Column("agent", "Agent"), *(Column(name, name, POINTS) for name in self.order)]
        note = "Percentage of its games that the row's agent won against the column's; the rest are ties and losses."
        return Table("matrix", "", [*columns, Column("average", "Average", POINTS)], rows, [note])

    def pairwise(self) -> Table:
        """A row for each pair of agents that played each other."""
        return Table("win-matrix", "", _PAIRS, list(self._met()))

    def picture(self, link: Callable[[str, str], str] = nowhere) -> Matrix:
        """The heat map; ``link`` returns the address of two agents' games."""
        cells, significant = {}, 0
        for pair in self._met():
            row, column, is_significant = pair["row"], pair["column"], bool(pair["p"] < ALPHA)
            significant += is_significant
            counts = ", ".join(f"{key} {COUNT.write(pair[key])}" for key in ("won", "tied", "lost"))
            cells[row, column] = MatrixCell(
                _WHOLE.write(pair["share"]),
                2 * pair["share"] - 1,
                COUNT.write(pair["games"]),
                f"{row} against {column}: {counts}; p {P_VALUE.write(pair['p'])}",
                bold=is_significant,
                link=link(row, column),
            )
        caption = (
            f"Percentage of its games against the column's agent that the row's agent took ({self.counted}); below it, "
            "where there is room, the number of games. Blue: the row's agent does better; orange: worse; pale: even. A "
            "gap is a pair that never met. In bold are pairs that their own games tell apart: "
            f"{significant // 2:,} of {len(cells) // 2:,}, at 5% for all of them together. Where it is not bold, a "
            "strong colour may be chance."
        )
        if link is not nowhere:
            caption += " A cell leads to the two agents' games."
        words = "Win matrix, row against column"
        return Matrix("win-matrix", "", words, caption, self.order, self.order, cells, "Row against column")

    def _met(self) -> Iterator[dict[str, Any]]:
        wins, p = self.pairs.wins, self.pairs.p
        points = wins.wins + (wins.ties / 2 if self.counted == "wins and half the ties" else 0)
        index = {agent: number for number, agent in enumerate(wins.agents)}
        for row in self.order:
            for column in self.order:
                i, j = index[row], index[column]
                if i != j and wins.games[i, j] > 0:
                    yield {
                        "row": row,
                        "column": column,
                        "share": float(points[i, j] / wins.games[i, j]),
                        "games": float(wins.games[i, j]),
                        "won": float(wins.wins[i, j]),
                        "tied": float(wins.ties[i, j]),
                        "lost": float(wins.wins[j, i]),
                        "p": float(p[i, j]),
                    }

    def _rows(self) -> list[dict[str, Any]]:
        wins = self.pairs.wins
        index = {agent: number for number, agent in enumerate(wins.agents)}
        rows = []
        for agent in self.order:
            shares: dict[str, float | None] = {}
            for opponent in self.order:
                i, j = index[agent], index[opponent]
                met = agent != opponent and wins.games[i, j] > 0
                shares[opponent] = float(100 * wins.wins[i, j] / wins.games[i, j]) if met else None
            won = [percent for percent in shares.values() if percent is not None]
            rows.append({"agent": agent, **shares, "average": sum(won) / len(won) if won else None})
        return rows


def tournament_pairs(store: Store, tournament: str) -> PairResults | None:
    """Results of every two agents over the rated games; ``None`` before the first verdict."""
    games = cached_games(store, tournament).rated(rating_settings(store.settings(tournament)))
    return None if games is None else pair_results(games)


def as_declared(board: Leaderboard) -> list[str]:
    """The rated agents in the configuration's order; agents that it does not list follow, best rated first."""
    rated = [row.agent for row in board.ratings.agents] if board.ratings else []
    stated = [agent.name for agent in board.settings.agents if agent.name in rated]
    return list(dict.fromkeys([*stated, *rated]))


def by_points(wins: WinMatrix) -> list[str]:
    """Agents by share of points, largest first; a win counts 1, a tie half."""
    share = (wins.wins + wins.ties / 2).sum(axis=1) / wins.games.sum(axis=1)
    return [wins.agents[number] for number in np.argsort(-share, kind="stable")]
