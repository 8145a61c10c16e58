"""Leaderboards for people, as tables that fit 80 columns, with all a reader must know below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arena.boards.citations import Citations
from arena.boards.costs import CostsBoard
from arena.boards.exam import ExamBoard
from arena.boards.nuggets import Nuggets
from arena.calibration.comparison import Comparison
from arena.cli.console import errors, output, print_json, printable
from arena.cli.figures import percent
from arena.cli.health_output import print_health
from arena.cli.markup import print_csv, print_html, print_markdown
from arena.cli.rating_output import print_controlled, print_rating_table
from arena.cli.retrieval_output import print_retrieval
from arena.cli.shapes import board_json, covers, flat_rows
from arena.cli.tables import print_table
from arena.conclusion import Conclusion, conclude_board
from arena.leaderboard import CriterionMean, Leaderboard
from arena.present import terminal
from arena.ratings.panel import PanelRatings
from arena.wording import adaptive_line
from judges.types import Task


def print_leaderboard(board: Leaderboard, form: str, comparisons: Sequence[Comparison] = ()) -> None:
    """Write a leaderboard to standard output in one of the formats of ``leaderboard --format``.

    Args:
        board: the leaderboard.
        form: of the output.
        comparisons: its judges held against people, where people judged games.
    """
    if form == "json":
        print_json(board_json(board, comparisons))
    elif form == "table":
        _print_board(board, conclude_board(board, comparisons))
    else:
        if board.withheld:
            errors.print(_refusal(board))
        rows = flat_rows(board)
        if form == "csv":
            print_csv(rows)
        else:
            said = conclude_board(board, comparisons)
            sentence = "" if board.ratings is None else f"Conclusion: {said.sentence}"
            {"md": print_markdown, "html": print_html}[form](rows, sentence)


def _print_board(board: Leaderboard, conclusion: Conclusion) -> None:
    if board.ratings is not None:
        unit = board.exam.study.unit if board.exam is not None else ""
        print_rating_table(board.ratings.agents, covers(board), unit)
        print_health(board.ratings, conclusion)
        for judge, own in board.by_judge.items():
            order = ", ".join(f"{row.rank}. {row.agent} {row.bt:.0f}" for row in own.agents)
            output.print(printable(f"judge {judge} alone: {order}"))
        if board.panel is not None:
            _print_panel(board.panel)
        if board.controlled is not None:
            print_controlled(board.controlled)
        output.print()
    elif board.withheld:
        output.print(f"{_refusal(board)}\n")
    elif Task.PAIRWISE in board.coverage:
        output.print("no game has a verdict yet\n")
    if board.criteria:
        _print_criteria(board)
        output.print()
    _print_beside_ratings(board, [row.agent for row in board.ratings.agents] if board.ratings else [])
    _print_coverage(board, conclusion)


def _print_beside_ratings(board: Leaderboard, order: Sequence[str]) -> None:
    if board.exam is not None:
        terminal.show(output, ExamBoard(board.exam).sections())
        output.print()
    if board.nuggets is not None:
        terminal.show(output, Nuggets(board.nuggets, order).sections()[:1])
        output.print()
    if board.citations is not None:
        terminal.show(output, Citations(board.citations, order).sections())
        output.print()
    if board.retrieval is not None:
        print_retrieval(board.retrieval, order)
    if took := CostsBoard(board.costs).sections():
        terminal.show(output, took)
        output.print()


def _refusal(board: Leaderboard) -> str:
    """In place of the ratings, why there are none."""
    assert board.shortfall is not None
    return printable(f"no ratings: {board.shortfall.message}; {board.shortfall.remedy}")


def _print_panel(panel: PanelRatings) -> None:
    """What the order is once each judge counts as much as it tells agents apart."""
    rated = sorted(zip(panel.agents, panel.ratings, strict=True), key=lambda entry: -entry[1])
    output.print(printable("panel, judges weighed: " + ", ".join(f"{agent} {points:.0f}" for agent, points in rated)))
    weights = (f"{judge.judge} {judge.discrimination:.2f}" for judge in panel.judges)
    output.print(printable("discrimination (1 average, 0 a coin, below 0 the wrong way): " + ", ".join(weights)))


def _print_coverage(board: Leaderboard, conclusion: Conclusion) -> None:
    if board.adaptive is not None:
        output.print(printable(adaptive_line(board.adaptive, ordered=conclusion.ordered)))
    for task, stage in board.coverage.items():
        line = f"{task.value}: {stage.judged} of {stage.wanted} judged ({stage.share:.1%})"
        line += f", {stage.failed} failed" if stage.failed else ""
        line += f", {stage.left} left" if stage.left else ""
        line += f", {stage.identical} ties between equal answers without a call" if stage.identical else ""
        output.print(line)
    for task, judges in board.consistency.items():
        for judge, found in judges.items():
            agreed = f"{percent(found.agreement)} of two samples agree, {found.repeated} things judged several times"
            output.print(printable(f"{task.value}: self-consistency of {judge}: {agreed}"))
    if board.causes:
        causes = ", ".join(f"{cause} {count}" for cause, count in board.causes.items())
        output.print(f"failed because of: {causes} ('ragarena failures' lists them)")
    if board.shortfall is not None and not board.withheld:
        output.print(printable(f"note: below ratings.min_coverage: {board.shortfall.message}"))
    for name, judge in board.settings.get("judges", {}).items():
        if judge["provider"] == "lexical":
            output.print(printable(f"note: judge {name} is a lexical baseline, not a language model"))
    for note in dict.fromkeys(note for agent in board.settings.get("agents", ()) for note in agent["notes"]):
        output.print(printable(f"note: {note}"))


def _print_criteria(board: Leaderboard) -> None:
    names = list(dict.fromkeys(name for grades in board.criteria.values() for name in grades))
    ranked = [row.agent for row in board.ratings.agents] if board.ratings else []
    agents = [*ranked, *(agent for agent in board.criteria if agent not in ranked)]
    rows = [[agent, *(_mean(board.criteria.get(agent, {}), name) for name in names)] for agent in agents]
    print_table(["criteria"], [printable(name) for name in names], rows)


def _mean(grades: Mapping[str, CriterionMean], name: str) -> str:
    """The mean grade, and of how many answers where not all are graded."""
    if name not in grades:
        return "-"
    grade = grades[name]
    return f"{grade.mean:.2f}" + (f" of {grade.graded}" if grade.graded < grade.wanted else "")
