"""Leaderboards and ratings as plain values: the JSON that other programs rely on, and flat rows for tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from arena.boards.citations import Citations
from arena.boards.costs import CostsBoard
from arena.boards.exam import ExamBoard
from arena.boards.nuggets import Nuggets
from arena.calibration.comparison import Comparison
from arena.cli.console import rounded
from arena.cli.retrieval_shapes import agent_columns, retrieval_json, scored_agents
from arena.conclusion import conclude, conclude_board
from arena.leaderboard import Leaderboard
from arena.rated_tables import RatedTable
from arena.ratings.covariates import ControlledBoard
from arena.ratings.panel import PanelRatings
from arena.ratings.rate import Ratings
from arena.ratings.results import AgentRating
from retrieval_eval.stats.estimate import written_fields

Row = dict[str, Any]


def board_json(board: Leaderboard, comparisons: Sequence[Comparison] = ()) -> Row:
    """The shape of ``leaderboard --format json`` and ``run --json``."""
    ratings = board.ratings
    shape: Row = rounded(
        {
            "tournament": board.tournament,
            "agents": [_agent_json(row, board) for row in ratings.agents] if ratings else [],
            "criteria": {
                agent: {name: asdict(grade) for name, grade in grades.items()}
                for agent, grades in board.criteria.items()
            },
            "conclusion": asdict(conclude_board(board, comparisons)),
            "judge_health": _health_json(ratings),
            "judges": _agreement_json(ratings),
            "by_judge": {judge: ratings_json(own, comparisons, judge) for judge, own in board.by_judge.items()},
            "pairs": [asdict(pair) for pair in ratings.pairs] if ratings else [],
            "fragility": [asdict(found) for found in ratings.fragility] if ratings else [],
            "nuggets": None if board.nuggets is None else Nuggets(board.nuggets).json(),
            "coverage": {task.value: {**asdict(stage), "share": stage.share} for task, stage in board.coverage.items()},
            "self_consistency": {
                task.value: {judge: asdict(found) for judge, found in judges.items()}
                for task, judges in board.consistency.items()
            },
            "shortfall": _shortfall_json(board),
            "failures": dict(board.causes),
            "complete": board.complete,
            "costs": CostsBoard(board.costs).json(),
            "panel": _panel_json(board.panel),
            "controlled": None if board.controlled is None else _controlled_json(board.controlled),
            "position": _position_json(ratings),
            "adaptive": None if board.adaptive is None else asdict(board.adaptive),
            "retrieval": retrieval_json(board.retrieval),
            "citations": None if board.citations is None else Citations(board.citations).json(),
            "notes": list(ratings.notes) if ratings else [],
            "exam": board.exam and ExamBoard(board.exam).json(),
            "settings": _settings_json(board),
        }
    )
    return shape


def _settings_json(board: Leaderboard) -> Row:
    """The settings without the test bank: it has a file of its own, and secret items."""
    shown = dict(board.settings)
    if exam := shown.get("exam"):
        shown["exam"] = {name: value for name, value in exam.items() if name != "bank"}
    return shown


def ratings_json(ratings: Ratings, comparisons: Sequence[Comparison] = (), judge: str = "") -> Row:
    """Ratings alone, concluded on with what people say of their judge."""
    of_judge = [replace(one, judges={judge: one.judges[judge]}) for one in comparisons if judge in one.judges]
    shape: Row = rounded(
        {
            "agents": [asdict(row) for row in ratings.agents],
            "conclusion": asdict(conclude(ratings, comparisons=of_judge)),
            "judge_health": _health_json(ratings),
            "judges": _agreement_json(ratings),
            "fragility": [asdict(found) for found in ratings.fragility],
            "coverage": None if ratings.tally is None else asdict(ratings.tally),
            "pairs": [asdict(pair) for pair in ratings.pairs],
            "position_effect": ratings.position_effect,
            "position_low": ratings.position_low,
            "position_high": ratings.position_high,
            "tie_parameter": ratings.tie_parameter,
            "convergence": asdict(ratings.convergence),
            "notes": list(ratings.notes),
            "settings": asdict(ratings.settings),
        }
    )
    return shape


def rated_json(rated: RatedTable) -> Row:
    """The shape of ``rate --json``: the ratings, each judge's own, those controlled for covariates, the rows read."""
    shape: Row = ratings_json(rated.ratings)
    shape["by_judge"] = {judge: ratings_json(own) for judge, own in rated.by_judge.items()}
    shape["rows"] = dict(rated.rows)
    shape["cluster_column"] = rated.cluster_column
    shape["controlled"] = None if rated.controlled is None else _controlled_json(rated.controlled.board())
    return shape


def _controlled_json(board: ControlledBoard) -> Row:
    rows = sorted(board.agents, key=lambda row: row.agent)
    errors = {row.agent: row.standard_error for row in rows}
    shape: Row = rounded(
        {
            "agents": {row.agent: row.rating for row in rows},
            "raw": {row.agent: row.raw for row in rows},
            "standard_errors": None if None in errors.values() else errors,
            "effects": [asdict(effect) for effect in board.effects],
            "position_effect": board.position_effect,
            "position_sd": board.position_sd,
            "tie_parameter": board.tie_parameter,
            "problems": list(board.problems),
            "converged": board.converged,
        }
    )
    return shape


def flat_rated(rated: RatedTable) -> list[Row]:
    """The rows of ``rate --format csv``: one per agent, below them one per judge and agent where they are asked for.

    Column ``judge`` is empty for the ratings of all verdicts; ``bt_controlled`` is there with covariates.
    """
    rows = flat_ratings(rated.ratings)
    if rated.controlled is not None:
        rows = _with_controlled(rows, rated.controlled.board())
    if rated.by_judge:
        of_each = [{"judge": judge, **row} for judge, own in rated.by_judge.items() for row in flat_ratings(own)]
        rows = [{"judge": "", **row} for row in rows] + of_each
    return [rounded(row) for row in rows]


def flat_ratings(ratings: Ratings) -> list[Row]:
    """One flat row per agent."""
    return [{**asdict(row), "flags": " ".join(row.flags)} for row in ratings.agents]


def _with_controlled(rows: list[Row], board: ControlledBoard) -> list[Row]:
    controlled = {row.agent: row.rating for row in board.agents}
    return [{**row, "bt_controlled": controlled[row["agent"]]} for row in rows]


def flat_rows(board: Leaderboard) -> list[Row]:
    """One flat row per agent with the same columns each, best first; without ratings the other scores alone."""
    names = list(dict.fromkeys(name for grades in board.criteria.values() for name in grades))
    rows: list[Row] = flat_ratings(board.ratings) if board.ratings else []
    if board.controlled is not None:
        rows = _with_controlled(rows, board.controlled)
    if board.ratings is None:
        nuggets = [] if board.nuggets is None else Nuggets(board.nuggets).agents()
        agents = [*board.criteria, *covers(board), *nuggets, *scored_agents(board.retrieval)]
        rows += [{"agent": agent} for agent in dict.fromkeys(agents)]
    costs = CostsBoard(board.costs)
    for row in rows:
        row.update(_beside(board, row["agent"]))
        if board.exam is not None:
            row["exam_cover"] = covers(board).get(row["agent"])
        grades = board.criteria.get(row["agent"], {})
        row.update({f"criteria_{name}": grades[name].mean if name in grades else None for name in names})
        row.update(agent_columns(board.retrieval, row["agent"]))
        row.update(costs.columns(row["agent"]))
    return [rounded(row) for row in rows]


def covers(board: Leaderboard) -> dict[str, float]:
    """By agent the mean cover at the grade that counts."""
    return {} if board.exam is None else board.exam.covers


def _agent_json(row: AgentRating, board: Leaderboard) -> Row:
    grades = board.criteria.get(row.agent, {})
    shape = {**asdict(row), "criteria": {name: asdict(grade) for name, grade in grades.items()}}
    shape |= _beside(board, row.agent)
    return shape if board.exam is None else {**shape, "exam_cover": covers(board).get(row.agent)}


def _beside(board: Leaderboard, agent: str) -> Row:
    """Nugget scores and citation precision beside an agent's ratings."""
    nuggets = {} if board.nuggets is None else Nuggets(board.nuggets).columns(agent)
    return nuggets if board.citations is None else nuggets | Citations(board.citations).columns(agent)


def _shortfall_json(board: Leaderboard) -> Row | None:
    lacking = board.shortfall
    if lacking is None:
        return None
    return {**asdict(lacking), "share": lacking.share, "message": lacking.message, "withheld": board.withheld}


def _position_json(ratings: Ratings | None) -> Row | None:
    """What being shown first is worth in points, where the ratings take it off."""
    if ratings is None or ratings.position_effect is None:
        return None
    return {"effect": ratings.position_effect, "low": ratings.position_low, "high": ratings.position_high}


def _panel_json(panel: PanelRatings | None) -> Row | None:
    if panel is None:
        return None
    return {
        "agents": dict(zip(panel.agents, panel.ratings.tolist(), strict=True)),
        "judges": [asdict(weight) for weight in panel.judges],
        "problems": [problem.message for problem in panel.problems],
        "converged": panel.converged,
    }


def _agreement_json(ratings: Ratings | None) -> Row | None:
    return None if ratings is None or ratings.judges is None else asdict(ratings.judges, dict_factory=written_fields)


def _health_json(ratings: Ratings | None) -> Row | None:
    return None if ratings is None or ratings.judge_health is None else asdict(ratings.judge_health)
