"""Citation precision as plain values and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from arena.citations import CitationBoard
from arena.cli.console import output, printable
from arena.cli.tables import print_table
from arena.retrieval import Source
from retrieval_eval.citations import CitationScores
from retrieval_eval.stats.estimate import written_fields

Row: TypeAlias = dict[str, Any]

_COLUMNS: Mapping[Source, str] = {"judge": "citation_precision", "people": "citation_precision_people"}


def citations_json(scores: Mapping[str, CitationScores]) -> Row:
    """By agent, flat."""
    return {agent: _flat(own) for agent, own in scores.items()}


def _flat(own: CitationScores) -> Row:
    shape = asdict(own, dict_factory=written_fields)
    value, low, high = shape.pop("precision").values()
    return {"precision": value, "precision_low": low, "precision_high": high, **shape, "coverage": own.coverage}


def citation_board_json(board: CitationBoard | None) -> Row | None:
    """The field ``citations`` of a leaderboard's JSON."""
    if board is None:
        return None
    return {"relevant": board.relevant} | {source: citations_json(own) for source, own in board.scores.items()}


def citation_columns(board: CitationBoard | None, agent: str) -> Row:
    """One agent's precision as columns of a flat row, the same columns for every agent."""
    scores = {} if board is None else board.scores
    return {_COLUMNS[source]: own[agent].precision.value if agent in own else None for source, own in scores.items()}


def print_citations(scores: Mapping[str, CitationScores], order: Sequence[str]) -> None:
    """Write a table, its agents in this order and then by name."""
    place = {agent: at for at, agent in enumerate(order)}
    rows = []
    for agent in sorted(scores, key=lambda agent: (place.get(agent, len(place)), agent)):
        own = scores[agent]
        value, low, high = own.precision.value, own.precision.low, own.precision.high
        rows.append(
            [
                agent,
                "-" if value is None else f"{value:.4f}",
                "-" if low is None or high is None else f"{low:.3f}..{high:.3f}",
                *map(str, (own.queries, own.uncited, own.unlabelled, own.cited)),
                "-" if own.coverage is None else f"{own.coverage:.1%}",
            ]
        )
    headings = ["precision", "95 %\ninterval", "queries", "cite\nnothing", "no label", "cited", "labelled"]
    print_table(["citations"], headings, rows)
    if lost := [f"{agent} {own.unresolved}" for agent, own in scores.items() if own.unresolved]:
        output.print(printable(f"citations: numbers that stand for no document, left out: {', '.join(lost)}"))


def print_citation_board(board: CitationBoard, order: Sequence[str]) -> None:
    """Write the citations of a leaderboard, a table for the judges' labels and one for people's."""
    whose = {"judge": "the judges' labels", "people": "people's labels"}
    for source, scores in board.scores.items():
        print_citations(scores, order)
        output.print(f"citations: by {whose[source]}, relevant from {board.relevant} on")
