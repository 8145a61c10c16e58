"""Documents retrieved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arena.leaderboard import Leaderboard
from arena.present.blocks import Block, Section
from arena.present.numbers import counted
from arena.report.blocks import text_table
from arena.report.figures import NONE, between, number
from arena.retrieval import RetrievalBoard

_WHOSE = {"judge": "the judge", "people": "people"}


def scores(board: Leaderboard) -> Section | None:
    """All of them; ``None`` where there are none."""
    ranked = [row.agent for row in board.ratings.agents] if board.ratings else []
    blocks: list[Block] = [] if board.retrieval is None else [*_retrieval(board.retrieval, ranked)]
    if not blocks:
        return None
    lead = "Each agent judged by itself, without an opponent: does another way of looking give the same order?"
    return Section("retrieval", "Retrieval", lead, blocks)


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
