"""Scores that do not come from games: criteria, nuggets, documents retrieved; each with its coverage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arena.boards.citations import Citations
from arena.boards.nuggets import Nuggets
from arena.leaderboard import Leaderboard
from arena.present.blocks import Block, Section
from arena.present.numbers import counted
from arena.present.table import Table
from arena.report.blocks import text_table
from arena.report.figures import NONE, between, number
from arena.retrieval import RetrievalBoard

_WHOSE = {"judge": "the judge", "people": "people"}


def scores(board: Leaderboard) -> Section | None:
    """All of them; ``None`` where there are none."""
    ranked = [row.agent for row in board.ratings.agents] if board.ratings else []
    blocks: list[Block] = []
    if board.criteria:
        blocks.append(_criteria(board, ranked))
    if board.nuggets is not None:
        blocks += [block for part in Nuggets(board.nuggets, ranked).sections() for block in part.blocks]
    if board.retrieval is not None:
        blocks += _retrieval(board.retrieval, ranked)
    if board.citations is not None:
        blocks += [block for part in Citations(board.citations, ranked).sections() for block in part.blocks]
    if not blocks:
        return None
    lead = "Each agent judged by itself, without an opponent: does another way of looking give the same order?"
    return Section("scores", "Other scores", lead, blocks)


def _criteria(board: Leaderboard, ranked: Sequence[str]) -> Table:
    names = list(dict.fromkeys(name for grades in board.criteria.values() for name in grades))
    agents = [*(agent for agent in ranked if agent in board.criteria), *sorted(set(board.criteria) - set(ranked))]
    rows = []
    for agent in agents:
        grades = board.criteria[agent]
        one = next(iter(grades.values()))
        cells = [number(grades[name].mean, 2) if name in grades else NONE for name in names]
        rows.append([agent, *cells, f"{one.graded:,} of {one.wanted:,}"])
    low, high = (board.settings.get("criteria") or {}).get("scale", ("the lowest", "the highest"))
    notes = [f"Mean grades of each agent's answers, from {low} to {high}; higher is better."]
    return text_table("Grades by criterion", ["Agent", *names, "Answers graded"], rows, notes)


def _retrieval(board: RetrievalBoard, ranked: Sequence[str]) -> Iterator[Block]:
    for source, own in board.scores.items():
        first, *others = board.measures
        agents = [*(agent for agent in ranked if agent in own.agents), *sorted(set(own.agents) - set(ranked))]
        rows = []
        for agent in agents:
            found = own.agents[agent]
            estimate = found.measures[first]
            cells = [number(estimate.value, 4), between(estimate.low, estimate.high, 3)]
            cells += [number(found.measures[name].value, 4) for name in others]
            cells += [f"{len(found.missing):,}", *([f"{len(found.unanswered):,}"] if board.failing else [])]
            rows.append([agent, *cells, *_labelled(board, agent, source)])
        columns = ["Agent", first, "95% interval", *others, "Nothing retrieved"]
        columns += ["No answer"] if board.failing else []
        columns += ["Documents labelled"] if source == "judge" else []
        notes = [
            f"Means over the {counted(len(own.topics), 'query', 'queries')} of {board.queries:,} with labels of "
            f"{_WHOSE[source]}, from 0 to 1; higher is better. Judged: share of the first documents with a label; one "
            "without counts as not relevant. Nothing retrieved: queries without documents, which count 0."
        ]
        if board.failing:
            notes.append("No answer: queries on which the agent failed, which are in none of its figures.")
        yield text_table(f"Documents retrieved, by labels of {_WHOSE[source]}", columns, rows, notes)


def _labelled(board: RetrievalBoard, agent: str, source: str) -> list[str]:
    if source != "judge":
        return []
    mean = board.mean_labels.get(agent)
    return [NONE if mean is None else f"{mean.judged:,} of {mean.of:,}"]
