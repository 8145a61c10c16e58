"""How commands write what they found: any board in any format."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from arena.cli.console import errors, output, print_json, program
from arena.present import terminal
from arena.present.blocks import Board
from arena.present.numbers import MONEY, printable
from judges.types import Task

if TYPE_CHECKING:
    from arena.boards.results import Leaderboard
    from arena.present.blocks import Section
    from arena.run.ledger import RunSummary
    from arena.store import Store


def print_leaderboard(store: Store, board: Leaderboard, form: str, *, source: str = "", details: bool = False) -> None:
    """Write a leaderboard to standard output in one of the formats of ``leaderboard --format``.

    Args:
        store: with what people said, which judges are held against.
        board: the leaderboard.
        form: of the output.
        source: the configuration or store, as the command line names it.
        details: all that fits a terminal, in place of one screen.
    """
    from arena.boards.leaderboard import DETAILS, TournamentBoard
    from arena.store.annotations import Annotations

    lacking = board.shortfall
    refusal = f"no ratings: {lacking.message}; {lacking.remedy}" if lacking is not None and board.withheld else ""
    whole = TournamentBoard(board)
    labelled = board.retrieval is not None and store.is_labelled(board.tournament)
    if labelled or Annotations(store, board.tournament).counts():
        from arena.people.calibrate import compare_with_people

        whole = TournamentBoard(board, *compare_with_people(store, board.tournament))
    if form in {"json", "csv"}:
        show(whole, form)
    elif details:
        _show_sections(
            [section for section in whole.sections() if section.ident in DETAILS | board.further.keys()], form
        )
    else:
        name = program()
        more = f"More: {name} leaderboard {source} --details; in the browser: {name} ui {source}"
        _show_sections(whole.brief(more if form == "table" else ""), form)
    if refusal and form in {"csv", "md", "html"}:
        errors.print(printable(refusal))


def show(board: Board, form: str) -> None:
    """Write a board to standard output.

    Args:
        board: what to write.
        form: ``table`` for people at a terminal, ``json`` for programs, ``csv``, ``md``, ``html`` or ``latex`` for the
            first table alone.
    """
    if form == "json":
        print_json(board.json())
    elif form == "table":
        terminal.show(output, board.sections())
    else:
        from arena.present import files

        write = {"csv": files.csv_text, "md": files.markdown, "html": files.html_table, "latex": files.latex}[form]
        sys.stdout.write(write(board.tables()[0]))


def _show_sections(sections: Sequence[Section], form: str) -> None:
    """Write sections for people."""
    if form == "table":
        terminal.show(output, sections)
    else:
        from arena.present import files

        sys.stdout.write(files.document(sections, form))


def print_summary(summary: RunSummary) -> None:
    """One line per stage on standard error, one per judge that was asked, and one per judge that stopped."""
    for task, stage in summary.stages.items():
        cost = MONEY.write(stage.cost_usd) + (f" + {stage.cost_unknown} of unknown cost" if stage.cost_unknown else "")
        counts = (
            f"{stage.judged} judged, {stage.known} known, {stage.failed} failed, {stage.left} left of {stage.wanted}"
        )
        errors.print(f"{task.value}: {counts}; {stage.calls} calls, {cost}")
        if stage.changed_lists:
            told_by = {Task.QUESTIONS: "exam generate", Task.NUGGETS: "nuggets create"}[task]
            errors.print(
                f"{task.value}: lists shorter than asked for, or with texts left out: {stage.changed_lists}; "
                f"'ragleague {told_by}' says which"
            )
    for name, judge in summary.judges.items():
        if judge.latency_s is not None:
            median, ninetieth, ninety_ninth = (f"{seconds:.2f}" for seconds in judge.latency_s)
            line = f"judge {name}: {judge.replies} replies of {judge.calls} calls in {judge.seconds:.1f} s"
            line += f" ({judge.replies_per_s:.1f}/s), latency {median} s median, {ninetieth} 90 %, {ninety_ninth} 99 %"
            errors.print(printable(line))
    for line in [*summary.stopped, *summary.waiting]:
        errors.print(printable(line))
    if summary.waiting:
        errors.print("incomplete: the server goes on with the batches; run again to fetch their replies")
    elif not summary.complete:
        errors.print("incomplete: 'ragleague failures' lists what failed; run again to go on")
