"""Scores by exam as plain values: the JSON that other programs rely on, and rows for tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from arena.cli.console import rounded
from arena.exam.score import ScoreReport
from arena.exam.study import Study
from judges.tables import Cell
from retrieval_eval.exam.cover import Mean

_DECIMALS = 6


def score_json(report: ScoreReport, study: Study, workbench: bool) -> dict[str, Any]:
    """The shape of ``exam score --json``."""
    scores = report.scores
    return {
        "agents": [
            {
                "agent": row.agent,
                "levels": {
                    str(level): {
                        "place": row.place[level],
                        "cover": _mean(row.cover[level]),
                        "cover_possible": rounded(row.possible[level].value),
                        "normalised": _mean(row.normalised[level]),
                        "alpha_ndcg": _mean(row.alpha_ndcg[level]),
                    }
                    for level in report.levels
                },
                "queries": row.queries,
                "pairs": row.pairs,
                "graded": row.graded,
            }
            for row in report.agents
        ],
        "official": {
            str(level): {
                name: {key: rounded(value) for key, value in asdict(found).items()} for name, found in both.items()
            }
            for level, both in report.official.items()
        },
        "coverage": {
            "queries": len(scores.queries),
            "queries_without_items": list(scores.empty_queries),
            "queries_outside_the_bank": list(study.strange_queries),
            "queries_that_nobody_covers": dict(
                zip(map(str, report.levels), scores.uncovered_queries.tolist(), strict=True)
            ),
            "pairs": int(scores.pairs.sum()),
            "graded": int(scores.graded.sum()),
            "grades_outside_the_bank": study.grids.unknown,
        },
        "settings": {
            "texts": study.unit,
            "k": scores.k,
            "levels": list(report.levels),
            "bank": study.version if not workbench else None,
            "compat": "workbench" if workbench else None,
            "llm": study.grader.llm,
            "prompt": study.grader.prompt,
        },
    }


def query_rows(report: ScoreReport) -> list[dict[str, Cell]]:
    """A row for each agent, query and level."""
    scores = report.scores
    return [
        {
            "agent": agent,
            "qid": query_id,
            "min_grade": level,
            "cover": round(float(scores.cover[number, at, place]), _DECIMALS),
            "cover_possible": round(float(scores.possible[number, at, place]), _DECIMALS),
            "normalised": round(float(scores.normalised[number, at, place]), _DECIMALS),
            "responded": int(scores.present[number, at]),
            "pairs": int(scores.pairs[number, at]),
            "graded": int(scores.graded[number, at]),
        }
        for number, agent in enumerate(scores.agents)
        for at, query_id in enumerate(scores.queries)
        for place, level in enumerate(scores.levels)
    ]


def _mean(value: Mean) -> dict[str, Any]:
    return {"mean": rounded(value.value), "standard_error": rounded(value.error), "n": value.n}
