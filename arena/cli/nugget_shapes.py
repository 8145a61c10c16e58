"""Nugget scores as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, TypeAlias

from arena.nuggets.board import NuggetBoard
from arena.nuggets.notes import score_notes
from retrieval_eval.nuggets.run_scores import RunScores

Row: TypeAlias = dict[str, Any]


def nugget_agents(board: NuggetBoard | None) -> list[str]:
    """Agents with a nugget score."""
    return [] if board is None else [own.run for own in (*board.answers.runs, *board.documents.runs)]


def nugget_columns(board: NuggetBoard | None, agent: str) -> Row:
    """The scores that stand beside an agent's ratings; ``None`` where it has none."""
    row: Row = {}
    if board is not None:
        for prefix, scored in (("nuggets", board.answers), ("nuggets_documents", board.documents)):
            if scored.runs:
                own = next((own for own in scored.runs if own.run == agent), None)
                for name, column in (("v_strict", "v_strict"), ("all", "a")):
                    row[f"{prefix}_{name}"] = None if own is None else own.means[column].value
    return row


def nuggets_json(board: NuggetBoard) -> Row:
    """The nugget scores of a leaderboard."""
    shape: Row = {
        "agents": {own.run: run_json(own) for own in board.answers.runs},
        "queries": len(board.answers.table.topics),
        "without": dict(board.without),
        "notes": score_notes(board.answers.table, board.answers.runs),
    }
    if board.documents.runs:
        agents = {own.run: run_json(own) for own in board.documents.runs}
        notes = score_notes(board.documents.table, board.documents.runs)
        shape["documents"] = {"depth": board.depth, "agents": agents, "notes": notes}
    return shape


def run_json(own: RunScores) -> Row:
    """One run's scores, flat."""
    row: Row = {column: mean.value for column, mean in own.means.items()}
    row |= {"length": own.length, "topics": own.topics, "missing": own.missing, "failed": own.failed}
    row |= {"empty": own.empty, "labels": own.labels, "assigned": own.assigned, "coverage": own.coverage}
    for column, mean in own.means.items():
        row |= {f"{column}_{part}": value for part, value in asdict(mean).items() if part != "value"}
    return row
