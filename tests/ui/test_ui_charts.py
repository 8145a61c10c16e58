"""Charts are functions from data to a specification; the data hold the figures and the names, nothing else does."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from html import escape
from xml.etree import ElementTree

import numpy as np
import pytest

from arena.agents.front import Front
from arena.games.pairs import PairResults
from arena.ratings.counts import WinMatrix
from arena.ratings.results import AgentRating
from ui.charts import front_chart
from ui.heat_table import colour
from ui.matrix import matrix_frame, matrix_html
from ui.views.overview import ratings_whiskers
from ui.whiskers import Mark, Whiskers, whiskers_html

HOSTILE = "<img src=x onerror=alert(1)>"


def row(agent: str, bt: float, low: float | None, high: float | None) -> AgentRating:
    return AgentRating(agent, 1, 1, 1, "A", bt, 1.0, bt, low, high, 10, 5, 0, 5, ())


def results(wins: WinMatrix) -> PairResults:
    return PairResults(wins, np.full(wins.games.shape, 0.5))


def matrix() -> PairResults:
    wins = np.array([[0, 3, 0], [1, 0, 0], [0, 0, 0]], float)
    ties = np.array([[0, 4, 0], [4, 0, 0], [0, 0, 0]], float)
    return results(WinMatrix((HOSTILE, "b", "c"), wins, ties, wins + wins.T + ties))


@pytest.mark.parametrize(
    ("counted", "percent"), [("wins and half the ties", [62.5, 37.5]), ("wins only", [37.5, 12.5])]
)
def test_cells_are_percentages_of_the_pair_s_games(counted: str, percent: list[float]) -> None:
    frame = matrix_frame(matrix(), ["b", HOSTILE, "c"], counted)
    cells = {(cell.row, cell.column): cell for cell in frame.itertuples()}
    assert set(cells) == {(HOSTILE, "b"), ("b", HOSTILE)}, "a pair that never met has no cell"
    assert [cells[HOSTILE, "b"].percent, cells["b", HOSTILE].percent] == percent
    assert (cells[HOSTILE, "b"].won, cells[HOSTILE, "b"].tied, cells[HOSTILE, "b"].lost) == (3, 4, 1)
    assert cells["b", HOSTILE].games == 8


def test_figures_in_cells_are_rounded_once() -> None:
    wins, ties = np.array([[0, 15], [8, 0]], float), np.array([[0, 3], [3, 0]], float)
    frame = matrix_frame(
        results(WinMatrix(("x", "y"), wins, ties, wins + wins.T + ties)), ["x", "y"], "wins and half the ties"
    )
    assert frame["percent"].tolist() == [100 * 16.5 / 26, 100 * 9.5 / 26], "63.46 shows as 63, not by way of 63.5"


def test_a_matrix_of_few_agents_is_a_table_sorted_as_given() -> None:
    order = ["b", HOSTILE, "c"]
    drawn = matrix_html(matrix_frame(matrix(), order, "wins only"), order)
    assert re.findall(r'<th scope="row">(.*?)</th>', drawn) == [escape(name) for name in order]
    assert re.findall(r'<th scope="col">(.*?)</th>', drawn)[1:] == [escape(name) for name in order]
    assert re.findall(r'title="(.*?)".*?>(\d+ %)<', drawn) == [
        (f"b against {escape(HOSTILE)}: won 1, tied 4, lost 3; p 0.5", "12 %"),
        (f"{escape(HOSTILE)} against b: won 3, tied 4, lost 1; p 0.5", "38 %"),
    ]
    assert HOSTILE not in drawn


def test_a_matrix_of_many_agents_is_one_picture_with_every_figure() -> None:
    names = (HOSTILE, "bell\x07", *(f"a{i}" for i in range(28)))
    ones = np.ones((30, 30)) - np.eye(30)
    pairs = PairResults(WinMatrix(names, ones, ones * 0, ones * 2), np.where(np.eye(30, k=1), 0.01, 0.5))
    drawn = matrix_html(matrix_frame(pairs, names, "wins only"), names)
    assert drawn.count("<") == 1
    (encoded,) = re.findall(r"base64,([^\"]+)", drawn)
    picture = ElementTree.fromstring(base64.b64decode(encoded))
    figures = {
        weight: [own.text or "" for own in picture.iter() if own.get("class") == f"cells {weight}"]
        for weight in ("plain", "bold")
    }
    assert [text.split() for text in figures["plain"]] == [["50"] * 28] * 29 + [["50"] * 29]
    assert [text.index("50") // 3 for text in figures["bold"]] == list(range(1, 30))
    assert {len(text) for texts in figures.values() for text in texts} == {3 * 30}
    (squares,) = (own.get("d") or "" for own in picture.iter() if own.tag.endswith("path"))
    assert squares.count("M") == 870


def test_cells_are_the_paler_the_nearer_to_even() -> None:
    even, better, best, worst = (colour(strength) for strength in (0, 0.5, 1, -1))
    assert (even, best, worst) == ("#f4f1ea", "#56b4e9", "#e69f00")
    assert best < better < even


def picture_of(drawn: str) -> ElementTree.Element:
    (encoded,) = re.findall(r"base64,([^\"]+)", drawn)
    return ElementTree.fromstring(base64.b64decode(encoded))


def percent(element: ElementTree.Element, name: str) -> float:
    return float((element.get(name) or "").rstrip("%"))


def drawn_ratings(*rows: AgentRating, top: Sequence[str] = ()) -> ElementTree.Element:
    return picture_of(whiskers_html(ratings_whiskers(rows, top), "points", "ratings"))


def test_an_agent_without_an_interval_has_a_mark_and_no_line() -> None:
    picture = drawn_ratings(row("known", 1010, 990, 1030), row("unknown", 1000, None, None), top=["known"])
    (line,) = (own for own in picture.iter() if own.get("class") == "whisker")
    marks = [own for own in picture.iter() if own.tag.endswith("use")]
    assert [mark.get("y") for mark in marks] == ["17", "51"]
    assert line.get("y1") == "17"
    assert percent(marks[0], "x") == pytest.approx((percent(line, "x1") + percent(line, "x2")) / 2)
    assert [mark.get("href") for mark in marks] == ["#blue", "#quiet"], "only one of them leads"


def test_names_are_texts_of_the_picture_and_nothing_else() -> None:
    rows = row(HOSTILE, 1000, 990, 1010), row("bell\x07", 900, 890, 910)
    picture = drawn_ratings(*rows)
    assert [own.text for own in picture.iter() if own.tag.endswith("text")][:2] == [HOSTILE, "bell\\x07"]
    assert HOSTILE not in whiskers_html(ratings_whiskers(rows, ()), "points", "ratings")


def test_several_figures_of_a_name_stand_below_each_other_each_with_its_shape_and_its_meaning() -> None:
    lines = [Whiskers("a", [Mark(1, 0, 2), Mark(-1, None, None, "grey")]), Whiskers("b", [Mark(2, 1, 3)])]
    picture = picture_of(whiskers_html(lines, "points", "words", {"blue": "corrected", "grey": "judge"}, signed=True))
    uses = [own for own in picture.iter() if own.tag.endswith("use")]
    assert [own.get("href") for own in uses] == ["#blue", "#grey", "#blue", "#grey", "#blue"], "meanings, then marks"
    heights = [int(own.get("y") or "") for own in uses[2:]]
    assert heights == sorted(set(heights))
    (zero,) = (own for own in picture.iter() if own.get("class") == "zero")
    whisker = next(own for own in picture.iter() if own.get("class") == "whisker")
    assert zero.get("x1") == whisker.get("x1"), "the first interval begins at 0"


def test_a_front_has_every_agent_and_joins_those_that_nobody_beats() -> None:
    points = {HOSTILE: (1100.0, 2.0), "fast": (1000.0, 0.5), "poor": (900.0, 3.0)}
    chart = front_chart(Front("latency_s", points, (HOSTILE, "fast"))).to_dict()
    (rows,) = chart["datasets"].values()
    assert {row["agent"]: row["front"] for row in rows} == {HOSTILE: True, "fast": True, "poor": False}
    assert {row["agent"]: (row["rating"], row["price"]) for row in rows} == points
    assert chart["layer"][0]["encoding"]["x"]["axis"]["title"] == "Median latency, seconds"
    assert HOSTILE not in json.dumps(chart["layer"])
