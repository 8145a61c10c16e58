"""What is known of the judges from their own verdicts: habits, agreement with each other and with themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arena.boards.health import health_figures
from arena.calibration.style import StyleEffect
from arena.leaderboard import Leaderboard
from arena.present.blocks import Block, Section
from arena.present.table import Table
from arena.ratings.judges import JudgeAgreement
from arena.report.blocks import text_table
from arena.report.figures import NONE, between, number, percent
from retrieval_eval.stats.estimate import Estimate


def judging(board: Leaderboard, styles: Sequence[StyleEffect]) -> Section | None:
    """The judges' health, and what they like besides quality; ``None`` without verdicts."""
    if board.ratings is None or board.ratings.judge_health is None:
        return None
    blocks: list[Block] = [health_figures(board.ratings.judge_health)]
    if board.by_judge:
        blocks += [_habits_by_judge(board), _ranks_by_judge(board)]
    if board.ratings.judges is not None:
        blocks += [_agreement(board.ratings.judges)]
    blocks += _consistency(board)
    if styles:
        blocks.append(_styles(styles))
    lead = "Habits of the judge over all its verdicts: whether place, length or chance decide in place of quality."
    return Section("judges", "The judge's health", lead, blocks)


def _habits_by_judge(board: Leaderboard) -> Table:
    rows = []
    for judge, own in board.by_judge.items():
        health = own.judge_health
        if health is not None:
            rows.append(
                [
                    judge,
                    f"{health.n:,}",
                    percent(health.order_agreement),
                    percent(health.first_share),
                    percent(health.longer_share),
                    percent(health.tie_rate),
                ]
            )
    columns = ["Judge", "Verdicts", "Orders agree", "First shown wins", "Longer wins", "Ties"]
    return text_table("Each judge by itself", columns, rows)


def _ranks_by_judge(board: Leaderboard) -> Table:
    assert board.ratings is not None
    judges = list(board.by_judge)
    found = {judge: {row.agent: row for row in own.agents} for judge, own in board.by_judge.items()}
    weighed = {}
    if board.panel is not None:
        weighed = dict(zip(board.panel.agents, board.panel.ratings.tolist(), strict=True))
    rows = []
    for row in board.ratings.agents:
        cells = [row.agent, f"{number(row.bt, 1)} ({row.rank})"]
        for judge in judges:
            own = found[judge].get(row.agent)
            cells.append(NONE if own is None else f"{number(own.bt, 1)} ({own.rank})")
        rows.append([*cells, *([number(weighed.get(row.agent), 1)] if weighed else [])])
    notes = ["Bradley-Terry ratings, ranks in brackets."]
    if board.panel is not None:
        shown = ", ".join(f"{judge.judge} {judge.discrimination:.2f}" for judge in board.panel.judges)
        notes.append(
            "Weighed: each judge counts as much as it tells agents apart (1 average, 0 a coin, below 0 the wrong way): "
            f"{shown}."
        )
    columns = ["Agent", "All judges", *(f"{judge} alone" for judge in judges), *(["Weighed"] if weighed else [])]
    return text_table("What each judge alone would say", columns, rows, notes)


def _agreement(own: JudgeAgreement) -> Table:
    rows = [
        [f"{two.first} and {two.second}", f"{two.games:,}", percent(two.agreement), *_coefficient(two.kappa)]
        for two in own.pairs
        if two.games
    ]
    rows.append(["all (Krippendorff's alpha)", f"{own.games:,}", NONE, *_coefficient(own.alpha)])
    columns = ["Judges", "Games judged by both", "Same outcome", "Kappa or alpha", "95% interval"]
    notes = ["1 is full agreement, 0 what chance would give. Both orders of a game are reconciled first."]
    return text_table("Do the judges agree with each other?", columns, rows, notes)


def _consistency(board: Leaderboard) -> Iterator[Table]:
    rows = [
        [judge, task.value, f"{found.repeated:,}", percent(found.agreement)]
        for task, judges in board.consistency.items()
        for judge, found in judges.items()
    ]
    if rows:
        columns = ["Judge", "Stage", "Judged several times", "Two samples agree"]
        yield text_table("Does a judge agree with itself?", columns, rows, (), frozenset({"Stage"}))


def _styles(styles: Sequence[StyleEffect]) -> Table:
    rows = [
        [
            f"{own.judge}: {own.name.replace('_', ' ')}",
            f"{own.games:,}",
            NONE if own.points.value is None else f"{own.points.value:+.0f}",
            between(own.points.low, own.points.high, 0),
            own.why_not,
        ]
        for own in styles
    ]
    columns = ["Judge and quality", "Verdicts", "Points", "95% interval", "Why not known"]
    if not any(own.why_not for own in styles):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    notes = [
        "Rating points that one standard deviation more of a quality is worth between agents of equal strength, or "
        "being of the judge's own family. What goes along with quality is no proof of bias."
    ]
    return text_table("What the judge likes besides strength", columns, rows, notes, frozenset({"Why not known"}))


def _coefficient(found: Estimate) -> tuple[str, str]:
    return number(found.value, 2), between(found.low, found.high, 2)
