"""Nugget scores as plain values, and what must be said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from arena.nuggets.board import NuggetBoard
from retrieval_eval.nuggets.run_scores import RunScores
from retrieval_eval.nuggets.scores import ScoreTable

Row: TypeAlias = dict[str, Any]

_MOST_NAMED = 5


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


def score_notes(table: ScoreTable, scored: Sequence[RunScores]) -> list[str]:
    """All a reader must know who compares the scores."""
    notes = []
    if missing := [f"{own.run} {own.missing}" for own in scored if own.missing]:
        notes.append(f"topics a run did not answer, each counted 0: {named(missing)}")
    for own in scored:
        if own.failed:
            first = own.means["v_strict"]
            notes.append(
                f"{own.run}: {own.labels - own.assigned} of {own.labels} labels failed; topics left out of its means "
                f"for that: {own.failed}; with every label V strict would lie in "
                f"{interval(first.lowest, first.highest)}"
            )
    if empty := [f"{own.run} {own.empty}" for own in scored if own.empty]:
        notes.append(f"answers without a single nugget, left out of the means: {named(empty)}")
    fewer = [
        f"{own.run} {own.means['v_strict'].topics}"
        for own in scored
        if own.means["v_strict"].topics < own.topics - own.failed - own.empty
    ]
    if fewer:
        notes.append(f"V is not defined without vital nuggets; topics in its mean: {named(fewer)}")
    if table.unjudged_topics:
        notes.append(f"topics without an assignment of any run, counted 0 for all: {named(table.unjudged_topics)}")
    if table.differing_topics:
        notes.append(f"topics where runs were held against different nuggets: {named(table.differing_topics)}")
    if table.left_out:
        notes.append(f"{table.left_out} assignments are on queries outside the topic set and left out")
    if table.counts[..., :3].any() and not table.counts[..., 1].any():
        notes.append("no label is partial_support, so strict scores are the same as the others")
    return notes


def interval(low: float | None, high: float | None) -> str:
    """Both ends, where there are any."""
    return "-" if low is None or high is None else f"{low:.3f}..{high:.3f}"


def named(names: Sequence[str]) -> str:
    """The first of many names."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
