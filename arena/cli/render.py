"""Leaderboards and plans as tables for people and as JSON, CSV, Markdown and HTML for programs."""

from __future__ import annotations

import csv
import html
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from arena.cli.console import dollars, output, print_json
from arena.leaderboard import Leaderboard
from arena.plan import Plan
from arena.ratings.rate import Ratings
from arena.ratings.results import AgentRating

_DECIMALS = 6
"""Digits kept in JSON: fewer than floating point has, so that equal ratings are equal bytes on every machine."""

Row = dict[str, Any]


def board_json(board: Leaderboard) -> Row:
    """The shape that other programs rely on."""
    ratings = board.ratings
    shape: Row = _rounded(
        {
            "tournament": board.tournament,
            "agents": [_agent_json(row, board) for row in ratings.agents] if ratings else [],
            "judge_health": _health_json(ratings),
            "by_judge": {judge: ratings_json(own) for judge, own in board.by_judge.items()},
            "coverage": {task.value: {**asdict(stage), "share": stage.share} for task, stage in board.coverage.items()},
            "failures": dict(board.causes),
            "complete": board.complete,
            "notes": list(ratings.notes) if ratings else [],
            "settings": dict(board.settings),
        }
    )
    return shape


def ratings_json(ratings: Ratings) -> Row:
    """Ratings alone, as ``rate --json`` prints them."""
    shape: Row = _rounded(
        {
            "agents": [asdict(row) for row in ratings.agents],
            "judge_health": _health_json(ratings),
            "coverage": None if ratings.tally is None else asdict(ratings.tally),
            "pairs": [asdict(pair) for pair in ratings.pairs],
            "position_effect": ratings.position_effect,
            "tie_parameter": ratings.tie_parameter,
            "convergence": asdict(ratings.convergence),
            "notes": list(ratings.notes),
            "settings": asdict(ratings.settings),
        }
    )
    return shape


def print_leaderboard(board: Leaderboard, form: str) -> None:
    """Write a leaderboard to standard output in one of the formats of ``leaderboard --format``."""
    if form == "json":
        print_json(board_json(board))
    elif form == "table":
        _print_table(board)
    else:
        rows = _flat(board)
        {"csv": _print_csv, "md": _print_markdown, "html": _print_html}[form](rows)


def print_ratings(ratings: Ratings, form: str, *, sort_by: str = "bt") -> None:
    """Write ratings to standard output as a table or JSON."""
    if form == "json":
        print_json(ratings_json(ratings))
        return
    rows = sorted(ratings.agents, key=lambda row: (-getattr(row, sort_by), row.agent))
    output.print(_ratings_table(rows, {}))
    _print_health(ratings)


def print_plan(plan: Plan) -> None:
    """Write a plan as a table with its assumptions below."""
    table = Table(box=None, pad_edge=False)
    for name in ("stage", "judge"):
        table.add_column(name)
    for name in ("wanted", "known", "identical", "calls", "tokens in", "tokens out", "cost", "time"):
        table.add_column(name, justify="right")
    for row in plan.rows:
        numbers = (row.wanted, row.known, row.identical, row.calls, row.input_tokens, row.output_tokens)
        cells = [f"{number:,}" for number in numbers] + [dollars(row.cost_usd), _duration(row.seconds)]
        table.add_row(row.task.value, Text(row.judge), *cells)
    output.print(table)
    output.print(f"total {dollars(plan.cost_usd)}", markup=False)
    for note in plan.notes:
        output.print(f"- {note}", markup=False, soft_wrap=True)


def _print_table(board: Leaderboard) -> None:
    if board.ratings is None:
        output.print("no game has a verdict yet", markup=False)
    else:
        output.print(_ratings_table(board.ratings.agents, board.criteria))
        _print_health(board.ratings)
        for judge, own in board.by_judge.items():
            order = ", ".join(f"{row.rank}. {row.agent} {row.bt:.0f}" for row in own.agents)
            output.print(f"judge {judge} alone: {order}", markup=False, soft_wrap=True)
    for task, stage in board.coverage.items():
        line = f"{task.value}: {stage.judged} of {stage.wanted} judged ({stage.share:.1%})"
        line += f", {stage.failed} failed" if stage.failed else ""
        line += f", {stage.left} left" if stage.left else ""
        line += f", {stage.identical} ties between equal answers without a call" if stage.identical else ""
        output.print(line, markup=False)
    for name, judge in board.settings.get("judges", {}).items():
        if judge["provider"] == "lexical":
            output.print(f"note: judge {name} is a lexical baseline, not a language model", markup=False)


def _ratings_table(rows: Sequence[AgentRating], criteria: Mapping[str, Mapping[str, Any]]) -> Table:
    names = list(dict.fromkeys(name for grades in criteria.values() for name in grades))
    table = Table(box=None, pad_edge=False)
    for name in ("rank", "agent"):
        table.add_column(name)
    headings = ["Bradley-Terry", "95 % interval", "group", "Elo", "order sd", "games", "W/T/L", *names]
    for name in headings:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("flags")
    for row in rows:
        grades = criteria.get(row.agent, {})
        table.add_row(
            _rank(row),
            Text(row.agent),
            f"{row.bt:.1f}",
            "-" if row.bt_low is None else f"{row.bt_low:.0f} .. {row.bt_high:.0f}",
            row.group,
            f"{row.elo:.1f}",
            f"{row.elo_order_sd:.1f}",
            f"{row.games:g}",
            f"{row.wins:g}/{row.ties:g}/{row.losses:g}",
            *(f"{grades[name].mean:.2f}" if name in grades else "-" for name in names),
            " ".join(row.flags),
        )
    return table


def _rank(row: AgentRating) -> str:
    if row.rank_low is None or row.rank_low == row.rank_high:
        return str(row.rank)
    return f"{row.rank} ({row.rank_low}-{row.rank_high})"


def _print_health(ratings: Ratings) -> None:
    output.print()
    health = ratings.judge_health
    if health is not None:
        effect = health.first_effect
        interval = (
            ""
            if health.first_effect_low is None
            else f" ({health.first_effect_low:.0f} .. {health.first_effect_high:.0f})"
        )
        parts = [
            f"order agreement {_percent(health.order_agreement)} of {health.both_orders} games",
            f"first shown wins {_percent(health.first_share)}",
            f"worth {effect:+.0f} points{interval}" if effect is not None else "",
            f"longer wins {_percent(health.longer_share)}",
            f"ties {_percent(health.tie_rate)}",
            f"intransitive triples {health.intransitive_triples} of {health.triples}",
        ]
        output.print("judge: " + ", ".join(part for part in parts if part), markup=False, soft_wrap=True)
    for note in ratings.notes:
        output.print(f"note: {note}", markup=False, soft_wrap=True)


def _agent_json(row: AgentRating, board: Leaderboard) -> Row:
    grades = board.criteria.get(row.agent, {})
    return {**asdict(row), "criteria": {name: asdict(grade) for name, grade in grades.items()}}


def _health_json(ratings: Ratings | None) -> Row | None:
    return None if ratings is None or ratings.judge_health is None else asdict(ratings.judge_health)


def _flat(board: Leaderboard) -> list[Row]:
    """One flat row per agent, for tables of other programs."""
    rows = []
    for row in board.ratings.agents if board.ratings else ():
        flat = {**asdict(row), "flags": " ".join(row.flags)}
        flat |= {f"criteria_{name}": grade.mean for name, grade in board.criteria.get(row.agent, {}).items()}
        rows.append(_rounded(flat))
    return rows


def _print_csv(rows: Sequence[Row]) -> None:
    writer = csv.DictWriter(sys.stdout, list(rows[0]) if rows else ["agent"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _print_markdown(rows: Sequence[Row]) -> None:
    names = list(rows[0]) if rows else ["agent"]
    for cells in (names, ["---"] * len(names), *([_cell(row[name]) for name in names] for row in rows)):
        print("| " + " | ".join(_inert_markdown(cell) for cell in cells) + " |")


def _print_html(rows: Sequence[Row]) -> None:
    names = list(rows[0]) if rows else ["agent"]
    print(
        "<table>\n<thead><tr>" + "".join(f"<th>{html.escape(name)}</th>" for name in names) + "</tr></thead>\n<tbody>"
    )
    for row in rows:
        print("<tr>" + "".join(f"<td>{html.escape(_cell(row[name]))}</td>" for name in names) + "</tr>")
    print("</tbody>\n</table>")


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def _inert_markdown(cell: str) -> str:
    """A cell that no Markdown reader takes for markup: names come from outside."""
    if cell == "---":
        return cell
    escaped = html.escape(cell, quote=False).replace("\n", " ")
    return "".join("\\" + character if character in "\\`*_[]()!|~$#" else character for character in escaped)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _DECIMALS)
    if isinstance(value, Mapping):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inner) for inner in value]
    return value


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.0%}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
