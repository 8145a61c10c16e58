"""Charts are functions from data to a specification; the data hold the figures and the names, nothing else does."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest

from arena.ratings.results import AgentRating
from ui.heat_table import colour
from ui.whiskers import Mark, Whiskers, whiskers_html

HOSTILE = "<img src=x onerror=alert(1)>"


def row(agent: str, bt: float, low: float | None, high: float | None) -> AgentRating:
    return AgentRating(agent, 1, 1, 1, "A", bt, 1.0, bt, low, high, 10, 5, 0, 5, ())


def test_cells_are_the_paler_the_nearer_to_even() -> None:
    even, better, best, worst = (colour(strength) for strength in (0, 0.5, 1, -1))
    assert (even, best, worst) == ("#f4f1ea", "#56b4e9", "#e69f00")
    assert best < better < even


def picture_of(drawn: str) -> ElementTree.Element:
    (encoded,) = re.findall(r"base64,([^\"]+)", drawn)
    return ElementTree.fromstring(base64.b64decode(encoded))


def percent(element: ElementTree.Element, name: str) -> float:
    return float((element.get(name) or "").rstrip("%"))


def ratings_whiskers(rows: Sequence[AgentRating], top: Sequence[str]) -> list[Whiskers]:
    looks = {row.agent: "blue" if row.agent in top else "quiet" for row in rows}
    return [Whiskers(row.agent, [Mark(row.bt, row.bt_low, row.bt_high, looks[row.agent])]) for row in rows]  # type: ignore[arg-type]


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
