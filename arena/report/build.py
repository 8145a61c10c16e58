"""From the facts to the report: which sections there are, and what stands on top."""

from __future__ import annotations

from datetime import datetime

from arena.boards.calibration.board import Calibration
from arena.boards.leaderboard import TournamentBoard
from arena.boards.trust import in_short
from arena.boards.wins import Wins
from arena.conclusion import expectation
from arena.present.numbers import counted
from arena.present.report import Report
from arena.report.facts import Facts
from arena.report.origin import effort, origin


def build_report(facts: Facts, source: str, made: datetime) -> Report:
    """Put a report together.

    Args:
        facts: of the tournament.
        source: the configuration or store, as it may be shown.
        made: now, in UTC.
    """
    board, calibration = facts.board, facts.calibration
    ratings, pairs = board.ratings, facts.pairs
    wins = None if ratings is None or pairs is None else Wins(pairs, [row.agent for row in ratings.agents]).report()
    shown = TournamentBoard(
        board,
        calibration.comparisons,
        calibration.apart,
        wins,
        facts.queries,
        facts.failures,
        effort(facts),
        Calibration(calibration).sections(),
    )
    conclusion, checks = shown.conclusion, shown.checks()
    sections = [section for section in shown.sections() if section.ident != "conclusion"]
    return Report(
        name=board.tournament,
        subtitle=_subtitle(facts),
        kind=conclusion.kind,
        headline=conclusion.headline,
        sentence=conclusion.sentence,
        meaning=[] if board.ratings is None else list(expectation(board.ratings, conclusion)),
        trust=in_short(checks),
        doubted=any(check.status == "failed" for check in checks),
        sections=[*sections, *origin(facts, source)],
        made=f"{made:%Y-%m-%d %H:%M} UTC by ragarena {facts.versions['ragarena']}",
    )


def _subtitle(facts: Facts) -> str:
    counts = facts.counts
    agents = counted(counts["agents"], "RAG system", "RAG systems")
    queries = counted(counts["queries"], "query", "queries")
    judges = facts.board.settings.get("judges") or {}
    named = ", ".join(f"{name} ({own.get('model') or own.get('provider')})" for name, own in judges.items())
    return f"{agents} compared on {queries}" + (f", judged by {named}" if named else "")
