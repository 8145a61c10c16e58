"""Who beats whom: one board as a table, as a picture and pair by pair."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from arena.boards.games import Wins, by_points
from arena.present.files import csv_text
from arena.present.picture import MatrixCell
from arena.ratings.pairs import WinMatrix


def pairs() -> WinMatrix:
    """Two agents that met eight times (3 to 1 and 4 ties), and one that met nobody."""
    won, tied = np.array([[0, 3, 0], [1, 0, 0], [0, 0, 0]], float), np.array([[0, 4, 0], [4, 0, 0], [0, 0, 0]], float)
    return WinMatrix(("a", "b", "c"), won, tied, won + won.T + tied)


def test_each_two_agents_that_met_have_a_line_in_both_directions() -> None:
    rows = Wins(pairs(), ["b", "a", "c"]).pairwise().rows
    assert [(row["row"], row["column"], row["share"]) for row in rows] == [("b", "a", 0.375), ("a", "b", 0.625)]
    assert [rows[1][key] for key in ("games", "won", "tied", "lost")] == [8, 3, 4, 1]


def test_only_pairs_that_the_ratings_tell_apart_are_coloured_and_few_games_are_pale() -> None:
    def cell(apart: Collection[tuple[str, str]], row: str = "a", column: str = "b") -> MatrixCell:
        return Wins(pairs(), ["b", "a", "c"], apart).picture().cells[row, column]

    linked = Wins(pairs(), ["b", "a", "c"]).picture(lambda agent, opponent: f"games?{agent}{opponent}")
    assert (linked.rows, linked.columns) == (["b", "a", "c"], ["b", "a", "c"])
    assert set(linked.cells) == {("a", "b"), ("b", "a")}
    assert (linked.cells["a", "b"].figure, linked.cells["a", "b"].below, linked.cells["a", "b"].link) == (
        "62",
        "8",
        "games?ab",
    )
    assert (cell([]).strength, cell([("a", "b")]).strength) == (None, 2 / 12), "8 games and 4 drawn ones"
    assert cell([("a", "b")], "b", "a").strength == -2 / 12
    assert cell([("b", "a")]).strength is None, "their own games say the reverse"
    assert cell([]).tooltip == "a against b: won 3, tied 4, lost 1; not told apart"
    assert cell([("b", "a")]).tooltip.endswith("; told apart")
    assert "(0 of 1 pairs)" in linked.caption
    assert [row["apart"] for row in Wins(pairs(), ["a", "b"], [("a", "b")]).pairwise().rows] == [True, True]


def test_the_table_that_papers_print_counts_wins_alone() -> None:
    found = Wins(pairs(), ["a", "b", "c"])
    assert csv_text(found.percentages()) == "agent,a,b,c,average\na,,37.5,,37.5\nb,12.5,,,12.5\nc,,,,\n"
    assert found.json()["percent"][0] == {"agent": "a", "a": None, "b": 37.5, "c": None, "average": 37.5}


def test_without_ratings_agents_are_sorted_by_their_share_of_points() -> None:
    won = np.array([[0, 1], [3, 0]], float)
    assert by_points(WinMatrix(("a", "b"), won, won * 0, won + won.T)) == ["b", "a"]
