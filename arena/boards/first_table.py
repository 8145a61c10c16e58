"""The table of agents that every output shows first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from arena.boards.quantities import WON, quantity
from arena.present.numbers import ALIGNED, COUNT, FIGURE, MONEY, POINTS, SECONDS, listed
from arena.present.table import INTERVAL, Column, Table
from arena.present.terminal import narrowest
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from arena.ratings.results import Ratings
    from arena.results.ratings import Leaderboard

_ONE_SCORE: Final = ("cover", "v_strict", "criteria", "citation_precision")
"""Scores shown beside the rating, one for each stage; the retrieval score is the stage's first measure."""
_TAKEN: Final = (
    Column("cost_usd", "Cost", MONEY, "Mean of a query."),
    Column("latency_median_s", "Latency", SECONDS, "Median of its answers."),
)


def first_table(board: Leaderboard, table: Table) -> Table:
    """The columns of ``table``, the agents with all their figures, that a first screen has room for."""
    behind = {} if board.ratings is None else _behind(board.ratings)
    rows = [_on_one_line(board, row) | {"behind": behind.get(row["agent"])} for row in table.rows]
    scores = [quantity(name).column() for name in _ONE_SCORE]
    for results in board.further.values():
        scores += [quantity(first.name).column(first.column) for first in results.scores[:1]]
    if (retrieval := board.retrieval) is not None:
        measure = retrieval.measures[0]
        scores.append(Column(f"retrieval_{measure}", measure, FIGURE, "Of the documents retrieved, by their labels."))
    apart = (
        "Rating minus that of the agent rated highest; 100 points are 64% of the decided games. Where the interval "
        "reaches 0, the two cannot be told apart; "
        "the intervals of all pairs hold at once. An arrow marks what lies beyond the axis."
    )
    columns = [
        Column("agent", "Agent"),
        Column("group", "Group", drawn="bands"),
        Column("behind", "To first", POINTS, apart, INTERVAL, drawn="whiskers"),
        Column("ranks", "Ranks", ALIGNED, "The places that the agent may truly have."),
        quantity(WON).column(),
        *_TAKEN,
        *scores,
    ]
    return Table("brief", "", columns, rows)


def _on_one_line(board: Leaderboard, row: Mapping[str, Any]) -> dict[str, Any]:
    grade = board.criteria[0].means.get(row["agent"]) if board.criteria else None
    return {
        **row,
        "group": row.get("group") or None,
        "ranks": COUNT.between(row["rank_low"], row["rank_high"]) if row.get("rank_low") else None,
        "share": (row["wins"] + row["ties"] / 2) / row["games"] if row.get("games") else None,
        "grade": grade,
    }


def _behind(ratings: Ratings) -> dict[str, Estimate]:
    """Each agent's rating minus that of the agent rated highest, with its interval."""
    leader = ratings.by_rank[0]
    pairs = {
        (pair.worse if pair.better == leader.agent else pair.better): pair
        for pair in ratings.pairs
        if leader.agent in (pair.better, pair.worse)
    }
    behind = {leader.agent: Estimate(0.0)}
    for row in ratings.by_rank[1:]:
        pair = pairs.get(row.agent)
        ends = () if pair is None else (pair.low, pair.high) if pair.better == row.agent else (-pair.high, -pair.low)
        behind[row.agent] = Estimate(row.bt - leader.bt, *ends)
    return behind


def in_text(table: Table, width: int) -> Table:
    """The table for text outputs: ranks first, nothing drawn, and the last columns named if there is no room."""
    columns = sorted((replace(column, drawn="") for column in table.columns), key=lambda column: column.key != "ranks")
    fewer = list(columns)
    while len(fewer) > 1 and narrowest(replace(table, columns=fewer)) > width:
        fewer.pop()
    left_out = [column.heading for column in columns[len(fewer) :]]
    notes = [f"No room for {listed(left_out)} (--details)."] if left_out else []
    return replace(table, columns=fewer, notes=[*table.notes, *notes])
