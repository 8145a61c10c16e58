"""From the facts to the report: which sections there are, and what stands on top."""

from __future__ import annotations

from datetime import datetime

from arena.boards.costs import CostsBoard
from arena.boards.exam import ExamBoard
from arena.boards.trust import in_short, trust_checks, trust_section
from arena.boards.wins import Wins
from arena.conclusion import conclude_board, expectation
from arena.opinions.tournament import not_compared
from arena.present.numbers import counted
from arena.present.report import Report
from arena.report.calibration import method_section, people_section
from arena.report.facts import Facts
from arena.report.judging import judging
from arena.report.origin import coverage, origin
from arena.report.ranking import ranking
from arena.report.scores import scores


def build_report(facts: Facts, source: str, made: datetime) -> Report:
    """Put a report together.

    Args:
        facts: of the tournament.
        source: the configuration or store, as it may be shown.
        made: now, in UTC.
    """
    board = facts.board
    calibration = facts.calibration
    conclusion = conclude_board(board, calibration.comparisons)
    checks = trust_checks(board, conclusion, calibration.comparisons, not_compared(calibration.apart))
    ratings, pairs = board.ratings, facts.pairs
    wins = [] if ratings is None or pairs is None else [Wins(pairs, [row.agent for row in ratings.agents]).report()]
    found = [
        ranking(facts, conclusion),
        trust_section(checks),
        *wins,
        judging(board, calibration.styles),
        people_section(calibration),
        scores(board),
        *(ExamBoard(board.exam).sections() if board.exam is not None else ()),
        method_section(calibration),
        *CostsBoard(board.costs).sections(),
        coverage(facts),
        *origin(facts, source),
    ]
    return Report(
        name=board.tournament,
        subtitle=_subtitle(facts),
        kind=conclusion.kind,
        headline=conclusion.headline,
        sentence=conclusion.sentence,
        meaning=[] if board.ratings is None else list(expectation(board.ratings, conclusion)),
        trust=in_short(checks),
        doubted=any(check.status == "failed" for check in checks),
        sections=[section for section in found if section is not None],
        made=f"{made:%Y-%m-%d %H:%M} UTC by ragarena {facts.versions['ragarena']}",
    )


def _subtitle(facts: Facts) -> str:
    counts = facts.counts
    agents = counted(counts["agents"], "RAG system", "RAG systems")
    queries = counted(counts["queries"], "query", "queries")
    judges = facts.board.settings.get("judges") or {}
    named = ", ".join(f"{name} ({own.get('model') or own.get('provider')})" for name, own in judges.items())
    return f"{agents} compared on {queries}" + (f", judged by {named}" if named else "")
