"""The board of scores that answers bring along: means, ranks and groups by each score, and the pairs told apart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from arena.boards.scores import ScoreBoard
from arena.present.blocks import Board, Section
from arena.present.numbers import COUNT, FIGURE, P_VALUE
from arena.present.table import INTERVAL, Column, Table, TableRow, flat
from arena.ratings.ranks import groups, joint_differences, rank_intervals
from arena.results.outcomes import StageResults
from retrieval_eval.stats.bootstrap import unit_weights, units_of
from retrieval_eval.stats.scores import Scores

_SAMPLES: Final = 2_000
_RANKS: Final = (
    Column("score", "Score"),
    Column("agent", "Agent"),
    Column("value", "Mean", FIGURE, "", INTERVAL),
    Column("ranks", "Ranks (95%)"),
    Column("group", "Group"),
)
_PAIRS: Final = (
    Column("score", "Score"),
    Column("better", "Better"),
    Column("other", "Other"),
    Column("difference", "Difference", FIGURE, "Over the queries that both have.", INTERVAL),
    Column("queries", "Queries", COUNT),
    Column("p", "p, corrected", P_VALUE),
    Column("separable", "Told apart"),
)


def board(results: StageResults) -> Board:
    return _AnswerScores("answer_scores", results.scores, "Scores that the answers bring along")


class _AnswerScores(ScoreBoard, frozen=True, eq=False):
    def sections(self) -> list[Section]:
        (section,) = super().sections()
        ranks, pairs = self._rows()
        tables = [
            Table("score_ranks", "Ranks by each score", _RANKS, ranks),
            Table("score_pairs", "Which agents does a score tell apart?", _PAIRS, pairs),
        ]
        return [replace(section, blocks=[*section.blocks, *(tables if pairs else ())])]

    def json(self) -> Any:
        ranks, pairs = self._rows()
        inherited: dict[str, Any] = super().json()
        return inherited | {"ranks": list(map(flat, ranks)), "pairs": pairs}

    def _rows(self) -> tuple[list[TableRow], list[TableRow]]:
        ranks: list[TableRow] = []
        pairs: list[TableRow] = []
        for scores in self.scores:
            rows = [{"score": scores.name, **row} for row in _compared(scores)]
            ranks += rows[: len(scores.agents)]
            pairs += rows[len(scores.agents) :]
        return ranks, pairs


def _compared(scores: Scores) -> Iterator[TableRow]:
    """A row for each agent, best first, then one for each pair; intervals hold for all pairs at the same time."""
    unit, sign = units_of(scores.queries, scores.clusters), -1 if scores.lower else 1
    points = sign * scores.points()
    drawn = sign * scores.drawn(unit_weights(unit, _SAMPLES, 0))
    seen = [np.unique(unit[row]).size for row in scores.seen()]
    joint = joint_differences(points, (drawn[~np.isnan(drawn).any(axis=1)],), np.array(seen))
    (best, worst), letters = rank_intervals(joint), groups(points, joint.different)
    order = np.argsort(-points, kind="stable")
    for at in order:
        agent = scores.agents[at]
        ranks = f"{best[at]}" if best[at] == worst[at] else f"{best[at]} to {worst[at]}"
        yield {"agent": agent, "value": scores.means[agent], "ranks": ranks, "group": letters[at]}
    for at, to in combinations(order, 2):
        low, high = joint.difference[at, to] - joint.half[at, to], joint.difference[at, to] + joint.half[to, at]
        yield {
            "better": scores.agents[at],
            "other": scores.agents[to],
            "difference": float(joint.difference[at, to]),
            "difference_low": float(low),
            "difference_high": float(high),
            "queries": int(joint.units[at, to]),
            "p": None if np.isnan(joint.p[at, to]) else float(joint.p[at, to]),
            "separable": bool(joint.different[at, to]),
        }
