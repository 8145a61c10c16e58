"""How numbers, intervals and missing values are written."""

import math
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.present.numbers import (
    COUNT,
    FIGURE,
    MISSING,
    MONEY,
    P_VALUE,
    PERCENT,
    POINTS,
    SECONDS,
    SIGNED,
    WORDS,
    NumberForm,
    between_days,
    clipped,
    counted,
    deserved,
    listed,
    printable,
    with_interval,
)
from retrieval_eval.stats.estimate import Estimate


@pytest.mark.parametrize(
    ("form", "value", "written"),
    [
        (POINTS, 1234.5, "1,234"),
        (POINTS, -0.2, "0"),
        (FIGURE, 0.125, "0.12"),
        (SIGNED, 3.2, "+3"),
        (SIGNED, -0.3, "0"),
        (COUNT, 1200, "1,200"),
        (COUNT, 1.5, "1.5"),
        (COUNT, -0.0, "0"),
        (PERCENT, 0.432, "43%"),
        (PERCENT, 1.0, "100%"),
        (PERCENT, 0.0, "0%"),
        (PERCENT, 0.996, "99.6%"),
        (PERCENT, 0.99999, "over 99.9%"),
        (PERCENT, 0.00001, "under 0.1%"),
        (PERCENT, -0.0, "0%"),
        (PERCENT, -0.001, "-0.1%"),
        (PERCENT, 12.5, "1,250%"),
        (MONEY, 0.000123, "$0.00012"),
        (MONEY, 12.5, "$12.50"),
        (MONEY, -0.5, "-$0.50"),
        (SECONDS, 0.0421, "42 ms"),
        (SECONDS, 2, "2.00 s"),
        (P_VALUE, 0.0002, "below 0.001"),
        (WORDS, ["a", "b"], "a, b"),
        (WORDS, True, "yes"),
        (WORDS, "", MISSING),
        (WORDS, (), MISSING),
    ],
)
def test_a_value_is_written_in_its_form(form: NumberForm, value: Any, written: str) -> None:
    assert form.write(value) == written


@pytest.mark.parametrize("form", [POINTS, FIGURE, COUNT, PERCENT, MONEY, SECONDS, P_VALUE])
def test_a_missing_number_is_never_a_number(form: NumberForm) -> None:
    assert {form.write(None), form.write(math.nan), form.between(None, 1.0), form.between(0.1, None)} == {MISSING}


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_less_than_all_is_never_written_as_all_nor_more_than_nothing_as_nothing(share: float) -> None:
    assert PERCENT.write(share).rstrip("%").rstrip("0").rstrip(".") not in {"100", "0", "1" if share > 0.9 else ""}


def test_an_interval_names_its_unit_once_and_equal_ends_once() -> None:
    assert PERCENT.between(0.401, 0.464) == "40 to 46%"
    assert POINTS.between(1001, 1050) == "1,001 to 1,050"
    assert COUNT.between(2, 2) == "2"
    assert FIGURE.between(0.4, 0.4 + 1e-9) == "0.40"
    assert SECONDS.between(0.1, 1.5) == "100 ms to 1.50 s"


@pytest.mark.parametrize(
    ("form", "value", "low", "high", "written"),
    [
        (FIGURE, 0.3183, 0.24, 0.41, "0.32"),
        (FIGURE, 0.3183, 0.31, 0.33, "0.318"),
        (FIGURE, 0.3183, 0.0, 0.7, "0.32"),
        (POINTS, 1012.4, 950.0, 1070.0, "1,012"),
        (PERCENT, 0.6183, 0.615, 0.622, "61.8%"),
        (PERCENT, 0.6183, 0.5, 0.7, "62%"),
        (PERCENT, 0.0, 0.0, 1e-12, "0%"),
        (COUNT, 3, 1, 4, "3"),
        (FIGURE, 0.3183, None, None, "0.32"),
        (FIGURE, 0.3183, 0.3183, 0.3183, "0.32"),
    ],
)
def test_a_figure_has_the_decimals_that_its_interval_deserves(
    form: NumberForm, value: float, low: float | None, high: float | None, written: str
) -> None:
    assert deserved(form, [(low, high)]).write(value) == written


def test_a_figure_brings_its_interval_along_where_it_has_one() -> None:
    assert with_interval(Estimate(0.5, 0.25, 0.75)) == "0.50 (0.25 to 0.75)"
    assert with_interval(Estimate(0.5)) == "0.50"
    assert with_interval(Estimate(None)) == MISSING


def test_nouns_follow_their_number_and_long_lists_are_counted() -> None:
    assert [counted(1, "query", "queries"), counted(1200, "query", "queries"), counted(0.5, "game")] == [
        "1 query",
        "1,200 queries",
        "0.5 games",
    ]
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b", "c"], most=1) == "a and 2 more"


@pytest.mark.parametrize(
    ("first", "last", "shown"),
    [
        ("2026-11-27", "2026-11-27", "27 November 2026"),
        ("2026-11-26", "2026-11-27", "26 to 27 November 2026"),
        ("2026-10-27", "2026-11-27", "27 October to 27 November 2026"),
        ("2025-11-27", "2026-11-27", "27 November 2025 to 27 November 2026"),
        ("2025-12-31", "2026-01-01", "31 December 2025 to 1 January 2026"),
    ],
)
def test_days_are_said_once(first: str, last: str, shown: str) -> None:
    ends = [datetime.fromisoformat(f"{day}T23:59:59+00:00").timestamp() for day in (first, last)]
    assert between_days(*ends) == shown


FAMILY, FLAG, FLAGS = "👨\u200d👩\u200d👧\u200d👦", "🏳\ufe0f\u200d🌈", "🇩🇪🇫🇷"
WHOLE = (FAMILY, FLAG, "👍🏽", "👩🏽\u200d🚀", "e\u0301", "\u0645\u06cc\u200c\u062e", "क्\u200dष")
"""Visible characters, and words of scripts that need joiners."""


@pytest.mark.parametrize("text", [*WHOLE, FLAGS])
def test_joiners_stay_in_emoji_and_in_scripts_that_need_them(text: str) -> None:
    assert printable(f"team {text}!") == f"team {text}!"


@pytest.mark.parametrize(
    "text", ["a\u200db", "a\u200c", "\u200d", f"{FAMILY}\u200d", "1\u200d🌈", "a\u202eb", "a\u200cb"]
)
def test_invisible_characters_that_join_nothing_are_escaped(text: str) -> None:
    assert "\\u20" in printable(text)


@given(
    st.lists(st.sampled_from([FAMILY, FLAG, "👍🏽", "👩🏽\u200d🚀", "e\u0301", "🇩🇪", "ab"]), max_size=9),
    st.integers(1, 40),
)
def test_a_shortened_text_breaks_no_visible_character(parts: list[str], limit: int) -> None:
    text = "".join(parts)
    starts = {"".join(parts[:at]) for at in range(len(parts) + 1)} | {
        f"{text[:at]}" for at in range(len(text)) if text[at] == "b"
    }
    short = clipped(text, limit)
    assert len(short) <= max(limit, 1)
    assert short == text or short.removesuffix("…") in starts
