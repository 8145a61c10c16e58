"""What ``queries`` prints: tables for people, and everything for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from arena.cli.console import output, print_json, rounded
from arena.cli.figures import counted
from arena.cli.tables import print_table
from arena.queries.board import AgentOnQuery, QueryBoard
from arena.queries.labels import QueryLabels
from arena.queries.separation import Record

_LONGEST = 60
"""Characters of a query in a table."""


def print_board(board: QueryBoard, most: int) -> None:
    """The queries that separate the agents most."""
    headings = ["separation", "spread", "agreement", "games", "decided", "orders\ndiffer", "judges\ndiffer"]
    rows = [
        [
            one.query_id,
            _short(board, one.query_id),
            _figure(one.separation),
            _figure(one.spread),
            _figure(one.agreement),
            str(one.games),
            *(_percent(share) for share in (one.decided, one.orders_differ, one.judges_differ)),
        ]
        for one in board.by_separation
    ]
    print_table(["qid", "query"], headings, rows[:most])
    _say_rest(len(rows), most)
    output.print(
        "separation: spread of the agents' shares of points on the query, times their correlation with the shares on "
        "all others; below 0 the query turns the order round"
    )
    for line in _missing(board):
        output.print(line)


def print_agent(board: QueryBoard, agent: str, most: int) -> None:
    """The queries on which one agent does worst."""
    found = board.failures(agent)
    rows = [
        [
            one.query_id,
            _short(board, one.query_id),
            _percent(one.record.share) if one.answered else "no answer",
            _percent(one.elsewhere),
            f"{one.record.lost} of {one.record.games}",
            *(_figure(one.scores.get(name)) for name in board.scores),
        ]
        for one in found
    ]
    headings = ["share of\npoints", "elsewhere", "lost", *(name.replace(" ", "\n", 1) for name in board.scores)]
    print_table(["qid", "query"], headings, rows[:most])
    _say_rest(len(rows), most)


def print_groups(board: QueryBoard, column: str) -> None:
    """Each agent's share of points in each group of queries."""
    rows = [
        [line.value or "(none)", agent, str(line.queries), str(own.games), _percent(own.share), _interval(own)]
        for line in board.by_group(column)
        for agent, own in line.agents.items()
    ]
    print_table([column, "agent"], ["queries", "games", "share of\npoints", "95 %"], rows)


def print_labels(board: QueryBoard, most: int) -> None:
    """What each query's documents are worth, the worst first."""
    parts = list(dict.fromkeys(name for own in board.labels.values() for name in own.parts))
    worst = sorted(board.labels.items(), key=lambda entry: (entry[1].label.mean is None, entry[1].label.mean or 0.0))
    rows = [
        [
            query_id,
            _short(board, query_id),
            _three(own.label.mean),
            *(_three(own.parts.get(name)) for name in parts),
            f"{own.label.judged} of {own.label.of}",
        ]
        for query_id, own in worst
    ]
    print_table(["qid", "query"], ["mean\nlabel", *parts, "documents\njudged"], rows[:most])
    _say_rest(len(rows), most)
    output.print("means over the documents that have a label; one whose judgment failed is in none of them")


def print_queries_json(board: QueryBoard) -> None:
    """Everything."""
    found = {
        "queries": [
            asdict(one)
            | dict(zip(("verdicts", "wanted"), board.verdicts.get(one.query_id, (0, 0)), strict=True))
            | {"separation": one.separation, "labels": _labels(board.labels.get(one.query_id))}
            for one in board.by_separation
        ],
        "agents": {agent: [_plain(one) for one in board.failures(agent)] for agent in board.standings.agents},
        "groups": {
            column: [
                {
                    "value": line.value,
                    "queries": line.queries,
                    "separation": line.separation,
                    "agents": {agent: _record(own) for agent, own in line.agents.items()},
                }
                for line in board.by_group(column)
            ]
            for column in board.columns
        },
    }
    print_json(rounded(found))


def _plain(own: AgentOnQuery) -> dict[str, Any]:
    kept = {name: value for name, value in _record(own.record).items() if name not in {"low", "high"}}
    return {
        "query_id": own.query_id,
        "answered": own.answered,
        **kept,
        "elsewhere": own.elsewhere,
        "scores": dict(own.scores),
    }


def _labels(own: QueryLabels | None) -> dict[str, Any] | None:
    """The same names as of an agent's labels on a leaderboard."""
    if own is None:
        return None
    return asdict(own.label) | {"coverage": own.label.coverage, "parts": dict(own.parts)}


def _record(own: Record) -> dict[str, Any]:
    return asdict(own) | {"games": own.games, "share": own.share}


def _missing(board: QueryBoard) -> list[str]:
    missing = {query_id: wanted - judged for query_id, (judged, wanted) in board.verdicts.items()}
    lacking = [query_id for query_id, number in missing.items() if number]
    if not lacking:
        return []
    verdicts, queries = counted(sum(missing.values()), "verdict", "verdicts"), counted(len(lacking), "query", "queries")
    return [f"{verdicts} on {queries} are missing; figures use what is there"]


def _say_rest(rows: int, most: int) -> None:
    if rows > most:
        output.print(f"... and {rows - most:,} more (--most)")


def _short(board: QueryBoard, query_id: str) -> str:
    line = " ".join(board.queries[query_id].text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _interval(own: Record) -> str:
    return "-" if own.low is None or own.high is None else f"{_percent(own.low)} .. {_percent(own.high)}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _three(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"
