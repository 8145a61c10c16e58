"""Games as columns, held against the games one by one, and the sign test of their pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from arena.boards.results import game_verdicts
from arena.data.game_table import GameKey
from arena.ratings.games import Games, tabulate
from arena.ratings.pairs import sign_tests
from arena.ratings.rate import RatingSettings
from arena.store import Result, Wanted
from judges.types import JudgeFailure, Judgment, Query, Task
from tests.support.games import game_records, game_table
from ui import text
from ui.views.games import GameFilter, address_of, game_at, queries_meant

VERDICTS = ("A", "B", "TIE", "failed", None)
Outcome = tuple[Wanted, Result | None]


def outcome(judge: str, query: str, agents: tuple[str, str], order: str, said: str | None) -> Outcome:
    result: Result | None = None if said is None else Judgment(f"{judge}{query}{agents}{order}", said, "", "", "m")
    if said == "failed":
        result = JudgeFailure("f", "empty", "nothing")
    return Wanted(Task.PAIRWISE, judge, query, *agents, order), result


@st.composite
def tournaments(draw: st.DrawFn) -> list[Outcome]:
    """A few games of three agents, some in one order only, named in either order."""
    pairs = st.sampled_from([("x", "y"), ("z", "x"), ("y", "z")])
    keys = st.tuples(
        st.sampled_from(["j", "k"]), st.sampled_from(["q1", "q2", "q3"]), pairs, st.sampled_from(["ab", "ba"])
    )
    return [outcome(*key, draw(st.sampled_from(VERDICTS))) for key in draw(st.sets(keys, min_size=1, max_size=24))]


@given(tournaments(), st.sampled_from(["tie", "win"]))
def test_columns_say_of_every_game_what_the_games_one_by_one_say(outcomes: list[Outcome], how: str) -> None:
    table = game_table(outcomes)
    scores = table.scores(how)  # type: ignore[arg-type]
    records = game_records(outcomes, how)  # type: ignore[arg-type]
    assert len(table) == len(records)
    for record in records:
        row = table.find(record.key)
        assert row is not None
        score = scores[row] if table.key(row).agent_a == record.agent_a else 1 - scores[row]
        assert (None if np.isnan(score) else score) == record.score
        assert table.orders_disagree[row] == record.orders_disagree
    verdicts = list(game_verdicts(outcomes))
    assert table.coverage().judged == len(verdicts)
    if verdicts:
        expected, found = tabulate(verdicts), table.verdicts()
        assert (found.agents, found.queries, found.judges) == (expected.agents, expected.queries, expected.judges)
        assert sorted(columns(found)) == sorted(columns(expected))
        assert sorted(columns(tabulate(table.each_verdict()))) == sorted(columns(expected))


def columns(table: object) -> list[tuple[int, ...]]:
    names = ("a", "b", "outcome", "query", "judge")
    return list(zip(*(getattr(table, name).tolist() for name in names), strict=True))


PLAYED: Sequence[Outcome] = [
    outcome("j", "q1", ("x", "y"), "ab", "A"),
    outcome("j", "q1", ("x", "y"), "ba", "B"),
    outcome("k", "q1", ("x", "y"), "ab", "B"),
    outcome("j", "q2", ("x", "y"), "ab", "A"),
    outcome("j", "q2", ("x", "y"), "ba", "A"),
    outcome("j", "q2", ("y", "z"), "ab", None),
    outcome("j", "q3", ("x", "z"), "ab", "TIE"),
]
"""Rows of the table: x beats y on q1 for j and loses for k; orders apart on q2; y and z not played; a tie."""


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        (GameFilter(), [0, 1, 2, 3, 4]),
        (GameFilter(agent="x", opponent="y"), [0, 1, 2]),
        (GameFilter(agent="y", opponent="x", judge="k"), [1]),
        (GameFilter(queries=["q2"]), [2, 3]),
        (GameFilter(ending="a winner"), [0, 1]),
        (GameFilter(ending="a tie"), [2, 4]),
        (GameFilter(ending="no verdict yet"), [3]),
        (GameFilter(agent="y", ending="the agent wins"), [1]),
        (GameFilter(agent="y", ending="the agent loses"), [0]),
        (GameFilter(ending="the agent wins"), []),
        (GameFilter(apart="the two orders"), [2]),
        (GameFilter(apart="the judges"), [0, 1]),
        (GameFilter(agent="nobody"), []),
    ],
)
def test_filters_find_games(wanted: GameFilter, rows: list[int]) -> None:
    table = game_table(PLAYED)
    assert wanted.rows(table, table.scores("tie")).tolist() == rows


def test_an_empty_plan_is_an_empty_table() -> None:
    table = game_table([])
    assert len(table) == 0
    assert table.rated(RatingSettings()) is None
    assert GameFilter(apart="the judges").rows(table, table.scores("tie")).size == 0


def test_an_address_names_a_game_whatever_its_names_hold() -> None:
    key = GameKey('q"1', "<b>a</b>", "b,é", "j&?")
    assert game_at(address_of(key)) == key
    for wrong in (None, "", "0123456789ab", "[1,2,3,4]", '["q","a","b"]', "[" * 5000, '{"q":1}'):
        assert game_at(wrong) is None


def test_the_sign_test_counts_each_query_once_and_corrects_for_the_pairs() -> None:
    """x takes seven queries of y's and loses one, the first of them with five games; nobody else met y."""
    a = np.array([0] * 5 + [0] * 7 + [0], np.int32)
    score = np.array([1.0] * 5 + [1.0] * 6 + [0.0] + [0.5])
    query = np.array([0] * 5 + list(range(1, 8)) + [0], np.int32)
    b = np.array([1] * 12 + [2], np.int32)
    p = sign_tests(Games(("x", "y", "z"), a, b, score, query))
    alone = binomtest(7, 8).pvalue
    assert p[0, 1] == p[1, 0] == pytest.approx(2 * alone)
    assert p[0, 2] == 1.0
    assert np.isnan(p[1, 2])


def test_coverage_counts_each_order_of_each_name() -> None:
    found = game_table(PLAYED)
    assert found.coverage_by_name()["agent"] == {"x": (6, 6), "y": (5, 6), "z": (1, 2)}
    assert found.coverage_by_name()["judge"] == {"j": (5, 6), "k": (1, 1)}


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("", None),
        (" ", None),
        ("q1", ["q1"]),
        (text.query_label("q1", "How long is the notice period?"), ["q1"]),
        ("PERIOD notice", ["q1", "q10"]),
        ("q1 trial", ["q10"]),
        ("holiday", []),
    ],
)
def test_a_query_is_asked_for_by_its_id_its_label_in_a_link_or_words_of_it(words: str, meant: list[str] | None) -> None:
    texts = {
        "q1": "How long is the notice period?",
        "q10": "The notice period on trial?",
        "q2": "Who may work from home?",
    }
    assert queries_meant(words, {query_id: Query(query_id, own) for query_id, own in texts.items()}) == meant
