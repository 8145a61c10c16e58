"""Who beats whom: one board as a table, as a picture and pair by pair."""

from __future__ import annotations

import numpy as np

from arena.boards.games import Wins, by_points
from arena.present.files import csv_text
from arena.ratings.pairs import WinMatrix


def pairs(p: float = 0.5) -> WinMatrix:
    """Two agents that met eight times (3 to 1 and 4 ties), and one that met nobody."""
    won, tied = np.array([[0, 3, 0], [1, 0, 0], [0, 0, 0]], float), np.array([[0, 4, 0], [4, 0, 0], [0, 0, 0]], float)
    met = np.full((3, 3), np.nan)
    met[0, 1] = met[1, 0] = p
    return WinMatrix(("a", "b", "c"), won, tied, won + won.T + tied, met)


def test_each_two_agents_that_met_have_a_line_in_both_directions() -> None:
    rows = Wins(pairs(), ["b", "a", "c"]).pairwise().rows
    assert [(row["row"], row["column"], row["share"]) for row in rows] == [("b", "a", 0.375), ("a", "b", 0.625)]
    assert [rows[1][key] for key in ("games", "won", "tied", "lost")] == [8, 3, 4, 1]


def test_the_picture_has_the_order_asked_for_gaps_and_bold_pairs() -> None:
    picture = Wins(pairs(0.01), ["b", "a", "c"]).picture(lambda agent, opponent: f"games?{agent}{opponent}")
    assert (picture.rows, picture.columns) == (["b", "a", "c"], ["b", "a", "c"])
    assert set(picture.cells) == {("a", "b"), ("b", "a")}
    cell = picture.cells["a", "b"]
    assert (cell.figure, cell.below, cell.strength, cell.bold, cell.link) == ("62", "8", 0.25, True, "games?ab")
    assert cell.tooltip == "a against b: won 3, tied 4, lost 1; p 0.010"
    assert "1 of 1" in picture.caption
    assert not Wins(pairs(), ["a", "b"]).picture().cells["a", "b"].bold


def test_the_table_that_papers_print_counts_wins_alone() -> None:
    found = Wins(pairs(), ["a", "b", "c"])
    assert csv_text(found.percentages()) == "agent,a,b,c,average\na,,37.5,,37.5\nb,12.5,,,12.5\nc,,,,\n"
    assert found.json()["percent"][0] == {"agent": "a", "a": None, "b": 37.5, "c": None, "average": 37.5}


def test_without_ratings_agents_are_sorted_by_their_share_of_points() -> None:
    won = np.array([[0, 1], [3, 0]], float)
    assert by_points(WinMatrix(("a", "b"), won, won * 0, won + won.T)) == ["b", "a"]
