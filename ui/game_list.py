"""Which games a reader asks for, found in the columns of all of them, and a page of them as a table."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arena.games.table import Bools, GameKey, GameTable
from arena.present.table import Column, Table
from arena.ratings.games import Floats
from judges.types import Query
from ui import text

Ending: TypeAlias = Literal["a winner", "a tie", "no verdict yet", "the agent wins", "the agent loses"]
Apart: TypeAlias = Literal["the two orders", "the judges"]

_COLUMNS: Final = (
    Column("agent_a", "Agent"),
    Column("agent_b", "Opponent"),
    Column("result", "Result"),
    Column("orders", "Orders"),
    Column("query", "Query"),
    Column("query_id", "Query ID"),
    Column("judge", "Judge"),
)


@dataclass(frozen=True, slots=True)
class GameFilter:
    """Which games to list; ``None`` is any.

    Attributes:
        agent: who plays.
        opponent: who else plays.
        queries: their ids.
        ending: how the rated game ended; that the agent wins or loses says nothing without an agent.
        apart: who disagrees on the game.
    """

    agent: str | None = None
    opponent: str | None = None
    queries: Collection[str] | None = None
    ending: Ending | None = None
    judge: str | None = None
    apart: Apart | None = None

    def rows(self, games: GameTable, scores: Floats) -> NDArray[np.intp]:
        """The rows that pass, in the order of the plan; ``scores`` are those of ``games.scores``."""
        passing = np.ones(len(games), np.bool_)
        for agent in (self.agent, self.opponent):
            if agent is not None:
                passing &= games.of_agent(agent)
        if self.queries is not None:
            passing &= games.of_query(*self.queries)
        if self.judge is not None:
            passing &= games.of_judge(self.judge)
        if self.ending is not None:
            passing &= self._ended(self.ending, games, scores)
        if self.apart is not None:
            passing &= games.orders_disagree if self.apart == "the two orders" else games.judges_disagree(scores)
        return np.flatnonzero(passing)

    def _ended(self, ending: Ending, games: GameTable, scores: Floats) -> Bools:
        won = np.zeros(len(games), np.bool_)
        if self.agent in games.agents:
            is_a = games.a == games.agents.index(self.agent)
            won = np.where(is_a, scores == 1, scores == 0)
        decided = (scores == 1) | (scores == 0)
        found: dict[Ending, Bools] = {
            "a winner": decided,
            "a tie": scores == 0.5,
            "no verdict yet": np.isnan(scores),
            "the agent wins": decided & won,
            "the agent loses": decided & ~won & (self.agent in games.agents),
        }
        return found[ending]


def queries_meant(words: str, queries: Mapping[str, Query]) -> list[str] | None:
    """Ids of the queries that a reader asks for; ``None`` for any.

    Args:
        words: an id, a query's label as links hold it, or words that a query holds, in any order and case.
        queries: all by id.
    """
    asked = words.strip()
    if not asked:
        return None
    for query_id, query in queries.items():
        if asked in (query_id, text.query_label(query_id, query.text)):
            return [query_id]
    parts = asked.casefold().split()
    held = {query_id: f"{query_id} {query.text}".casefold() for query_id, query in queries.items()}
    return [query_id for query_id, own in held.items() if all(part in own for part in parts)]


def games_table(
    games: GameTable, scores: Floats, rows: Sequence[int], queries: Mapping[str, Query], *, whole: bool = False
) -> Table:
    """One line per game; ``whole`` queries are not cut."""
    lines = []
    for row in rows:
        key = games.key(row)
        query = queries[key.query_id].text
        said = {"result": _result(key, scores[row]), "orders": _orders(games, row)}
        lines.append({**key._asdict(), **said, "query": query if whole else text.clipped(query, 120)})
    return Table("games", "", _COLUMNS, lines)


def address_of(key: GameKey) -> str:
    """A game as a page's address holds it."""
    return json.dumps(key, ensure_ascii=False, separators=(",", ":"))


def game_at(address: str | None) -> GameKey | None:
    """The game that an address names; ``None`` where it names none."""
    try:
        names = json.loads(address or "null")
    except (ValueError, RecursionError):
        return None
    is_key = isinstance(names, list) and len(names) == len(GameKey._fields)
    return GameKey(*names) if is_key and all(isinstance(name, str) for name in names) else None


def _result(key: GameKey, score: float) -> str:
    if np.isnan(score):
        return "no verdict yet"
    return {1.0: f"{key.agent_a} wins", 0.0: f"{key.agent_b} wins"}.get(float(score), "a tie")


def _orders(games: GameTable, row: int) -> str:
    if not games.judged[row].all():
        return "one order only" if games.played[row] else ""
    return "disagree" if games.orders_disagree[row] else "agree"
