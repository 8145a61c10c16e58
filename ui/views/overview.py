"""Overview: who leads, how sure that is, what is missing, and whether the judge can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd
import streamlit as st

from arena.boards.costs import CostsBoard
from arena.boards.exam import ExamBoard
from arena.boards.health import health_figures
from arena.boards.trust import in_short, trust_section
from arena.conclusion import Kind, expectation
from arena.leaderboard import Leaderboard
from arena.ratings.rate import Ratings
from arena.ratings.results import AgentRating
from arena.wording import FLAGS
from ui import data, text
from ui.address import unfold
from ui.figures import between
from ui.show import show_block, show_section, show_sections
from ui.tables import show_table
from ui.views import trust
from ui.views.controlled import show_controlled
from ui.views.coverage import say_what_is_missing, show_coverage
from ui.whiskers import Mark, Whiskers, whiskers_html

_ICONS: Mapping[Kind, str] = {
    "leader": ":material/trophy:",
    "tie": ":material/balance:",
    "unclear": ":material/help:",
    "empty": ":material/hourglass_empty:",
}
_ABOVE: Final = "Ratings with intervals. The table above has the figures."


def show(source: data.Source) -> None:
    """Draw the page."""
    board = data.board(source)
    conclusion, checks = trust.concluded(source)
    st.header(f"{_ICONS[conclusion.kind]} {conclusion.headline}", anchor=False)
    text.lead(conclusion.sentence)
    expected = [] if board.ratings is None else expectation(board.ratings, conclusion)
    text.quiet("\n\n".join([*expected, in_short(checks)]))
    say_what_is_missing(board.coverage, board.costs)
    if board.ratings is not None:
        _show_ratings(board.ratings, board, conclusion.top)
    if board.controlled is not None:
        show_controlled(board.controlled)
    show_section(trust_section(checks))
    if board.criteria:
        _show_criteria(board)
    if board.exam is not None:
        show_sections(ExamBoard(board.exam).sections())
    show_sections(CostsBoard(board.costs).sections())
    show_coverage(board.coverage, board.causes)
    if board.ratings is not None and board.ratings.judge_health is not None:
        st.subheader("Habits of the judge", anchor=False)
        st.caption("Over all its verdicts.")
        show_block(health_figures(board.ratings.judge_health))
    _show_remarks(board)


def leaderboard_frame(rows: Sequence[AgentRating]) -> pd.DataFrame:
    """The leaderboard as the page shows it, best first."""
    return pd.DataFrame(
        {
            "Rank": [row.rank for row in rows],
            "Ranks": [between(row.rank_low, row.rank_high) for row in rows],
            "Agent": [row.agent for row in rows],
            "Rating": [_shown(row.bt) for row in rows],
            "Interval": [between(row.bt_low, row.bt_high) for row in rows],
            "Group": [row.group for row in rows],
            "Elo": [_shown(row.elo) for row in rows],
            "Order noise": [_shown(row.elo_order_sd) for row in rows],
            "Games": [round(row.games, 1) for row in rows],
            "Won": [round(row.wins, 1) for row in rows],
            "Tied": [round(row.ties, 1) for row in rows],
            "Lost": [round(row.losses, 1) for row in rows],
            "Read with care": ["; ".join(FLAGS.get(flag, flag) for flag in row.flags) for row in rows],
        }
    )


def ratings_whiskers(rows: Sequence[AgentRating], top: Sequence[str]) -> list[Whiskers]:
    """For the picture: ratings with the letters of their groups, the leader or those tied for first in blue."""
    return [
        Whiskers(row.agent, [Mark(row.bt, row.bt_low, row.bt_high, "blue" if row.agent in top else "quiet", row.group)])
        for row in rows
    ]


def judges_frame(board: Leaderboard) -> pd.DataFrame:
    """A line for each judge and agent: what the judge alone would say."""
    return pd.DataFrame(
        [
            {"Judge": judge, "Rank": row.rank, "Agent": row.agent, "Rating": _shown(row.bt), "Games": row.games}
            for judge, own in board.by_judge.items()
            for row in own.agents
        ]
    )


def criteria_frame(board: Leaderboard) -> pd.DataFrame:
    """Mean grade of each agent on each criterion, and how many of its answers were graded."""
    names = list(dict.fromkeys(name for grades in board.criteria.values() for name in grades))
    order = [row.agent for row in board.ratings.agents] if board.ratings else []
    agents = [*[agent for agent in order if agent in board.criteria], *sorted(set(board.criteria) - set(order))]
    frame = pd.DataFrame({"Agent": agents})
    for name in names:
        grades = [board.criteria[agent].get(name) for agent in agents]
        frame[f"Mean {text.encodable(name)}"] = [None if grade is None else round(grade.mean, 2) for grade in grades]
    counts = [next(iter(board.criteria[agent].values())) for agent in agents]
    frame["Answers graded"] = [f"{count.graded} of {count.wanted}" for count in counts]
    return frame


def _show_ratings(ratings: Ratings, board: Leaderboard, top: Sequence[str]) -> None:
    level = f"{ratings.settings.level:.0%}"
    st.subheader("Leaderboard", anchor=False)
    frame = leaderboard_frame(ratings.agents)
    number = st.column_config.NumberColumn
    show_table(
        frame,
        "Leaderboard",
        {
            "Rank": number(help="One more than the number of agents with a higher Bradley-Terry rating.", width=60),
            "Ranks": st.column_config.TextColumn(
                f"Ranks ({level})",
                help=f"All true ranks lie in these at once, at {level} confidence.",
                width=95,
            ),
            "Rating": number("Bradley-Terry", format="%.1f"),
            "Interval": st.column_config.TextColumn(
                f"{level} interval",
                help="Of the Bradley-Terry rating, with verdicts on one query taken together. The honest width.",
            ),
            "Group": st.column_config.TextColumn(width=65),
            "Elo": number(format="%.1f"),
            "Order noise": number(
                "Elo order noise",
                format="%.1f",
                help="Standard deviation of Elo over the orders of the games. It says how much the order of play "
                "matters, not how sure the rating is: it is no confidence interval.",
            ),
            "Games": number(width=70),
            **{name: number(width=60) for name in ("Won", "Tied", "Lost")},
            "Read with care": st.column_config.TextColumn(
                help="Why this rating is less certain than it looks.", width="medium"
            ),
        },
        pinned="Agent",
        height="content" if len(frame) <= 20 else 740,
        column_order=[str(name) for name in frame if name != "Read with care" or frame[name].any()],
    )
    st.html(whiskers_html(ratings_whiskers(ratings.agents, top), "Bradley-Terry rating, points", _ABOVE))
    st.caption(
        f"Each dot is a rating, each line its {level} interval, from the table above. Where lines overlap widely, the "
        "agents may well be equally good; agents that share a letter, beside their line, cannot be told apart."
        + (" Blue: those that lead or are tied for first." if top else "")
    )
    if board.by_judge:
        _show_judges(board)


def _show_judges(board: Leaderboard) -> None:
    """The ranks each judge alone would give, where they are asked for."""
    name = f"What each of the {len(board.by_judge)} judges alone would say"
    with unfold(name, "judges-alone") as opened:
        if opened.open:
            rating = st.column_config.NumberColumn("Bradley-Terry", format="%.1f")
            show_table(judges_frame(board), "Ratings by judge", {"Rating": rating})


def _show_criteria(board: Leaderboard) -> None:
    st.subheader("Grades by criterion", anchor=False)
    frame = criteria_frame(board)
    grades = [str(name) for name in frame if name not in {"Agent", "Answers graded"}]
    formats = {name: st.column_config.NumberColumn(format="%.2f") for name in grades}
    show_table(frame, "Grades by criterion", formats, pinned="Agent")
    low, high = (board.settings.get("criteria") or {}).get("scale", ("the lowest", "the highest"))
    st.caption(f"Each answer is graded on its own, from {low} to {high}, without seeing the others; higher is better.")


def _show_remarks(board: Leaderboard) -> None:
    """What the ratings and the agents say of themselves."""
    remarks = list(board.ratings.notes) if board.ratings else []
    remarks += dict.fromkeys(note for agent in board.settings.get("agents", ()) for note in agent["notes"])
    if remarks:
        st.subheader("Before you believe these figures", anchor=False)
        text.quiet("\n".join(f"• {remark}" for remark in remarks))


def _shown(points: float | None) -> float | None:
    """Points to the digit shown, so that screen readers and downloads give what the eye reads."""
    return None if points is None else round(points, 1)
