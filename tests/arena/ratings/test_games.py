"""Verdicts become games: reconciling orders, counting, refusing what is no game."""

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from arena.ratings.games import Games, GameVerdict, as_games, reconcile
from arena.ratings.likelihood import pair_counts
from arena.ratings.pairs import from_win_matrix, win_matrix
from judges.errors import InputError
from judges.types import Verdict

AGENTS = st.sampled_from(["bm25", "dense", "hybrid", "fusion"])
PAIRS = st.tuples(AGENTS, AGENTS).filter(lambda pair: pair[0] != pair[1])
VERDICTS = st.builds(
    lambda query, pair, verdict, judge: GameVerdict(query, *pair, verdict, judge),
    st.sampled_from(["q1", "q2", "q3"]),
    PAIRS,
    st.sampled_from(Verdict),
    st.sampled_from(["one", "two"]),
)


def both_orders(forward: str, backward: str) -> list[GameVerdict]:
    return [GameVerdict("q", "x", "y", Verdict(forward)), GameVerdict("q", "y", "x", Verdict(backward))]


@pytest.mark.parametrize(
    ("forward", "backward", "score"),
    [
        *[("A", "B", 1.0), ("B", "A", 0.0), ("TIE", "TIE", 0.5), ("A", "A", 0.5), ("B", "B", 0.5)],
        *[("A", "TIE", 0.5), ("TIE", "B", 0.5), ("TIE", "A", 0.5)],
    ],
)
def test_two_orders_become_one_outcome(forward: str, backward: str, score: float) -> None:
    games = reconcile(both_orders(forward, backward))
    assert games.agents == ("x", "y")
    assert games.score.tolist() == [score]


@pytest.mark.parametrize(("forward", "backward", "score"), [("A", "TIE", 1.0), ("TIE", "A", 0.0), ("A", "A", 0.5)])
def test_win_and_tie_may_count_as_a_win_but_a_contradiction_never_does(
    forward: str, backward: str, score: float
) -> None:
    assert reconcile(both_orders(forward, backward), win_and_tie="win").score.tolist() == [score]


def test_the_tally_accounts_for_every_game() -> None:
    verdicts = [
        *both_orders("A", "B"),
        *[structs.replace(v, query_id="q2") for v in both_orders("A", "A")],
        *[structs.replace(v, query_id="q3") for v in both_orders("A", "TIE")],
        GameVerdict("q4", "x", "y", Verdict.B),
        GameVerdict("q4", "x", "y", Verdict.B),
    ]
    games = reconcile(verdicts)
    assert games.score.tolist() == [1.0, 0.5, 0.5, 0.0]
    assert structs.asdict(games.tally) == {
        "verdicts": 8,
        "games": 4,
        "repeated": 1,
        "both_orders": 3,
        "single_order": 1,
        "agreements": 1,
        "contradictions": 1,
        "win_and_tie": 1,
    }


@pytest.mark.parametrize(
    ("verdicts", "score"), [("AAB", 1.0), ("AB", 0.5), ("A T T", 0.5), ("AATTB", 0.5), ("BBBT", 0.0)]
)
def test_repeated_verdicts_of_one_order_count_once_by_majority(verdicts: str, score: float) -> None:
    rows = [GameVerdict("q", "x", "y", Verdict("TIE" if v == "T" else v)) for v in verdicts.replace(" ", "")]
    assert reconcile(rows).score.tolist() == [score]


def test_games_of_other_judges_queries_or_pairs_stay_apart() -> None:
    rows = [GameVerdict(q, "x", "y", Verdict.A, judge) for q in ("q1", "q2") for judge in ("one", "two")]
    assert len(reconcile(rows)) == 4
    alike = [GameVerdict("q", "a-b", "c", Verdict.A), GameVerdict("q", "a", "b-c", Verdict.A)]
    assert len(reconcile(alike)) == 2


@given(st.lists(VERDICTS, min_size=1, max_size=30), st.randoms())
def test_reconciling_does_not_depend_on_the_order_of_rows(rows: list[GameVerdict], random: Random) -> None:
    shuffled = random.sample(rows, len(rows))
    first, second = reconcile(rows), reconcile(shuffled)
    for column in ("a", "b", "score", "cluster"):
        np.testing.assert_array_equal(getattr(first, column), getattr(second, column))
    assert first.tally == second.tally


@given(st.lists(VERDICTS, min_size=1, max_size=30))
def test_games_as_shown_keep_every_verdict_and_its_order(rows: list[GameVerdict]) -> None:
    games = as_games(rows)
    assert games.a_shown_first
    assert [games.agents[i] for i in games.a] == [row.agent_a for row in rows]
    assert games.score.tolist() == [{"A": 1.0, "TIE": 0.5, "B": 0.0}[row.verdict] for row in rows]
    matrix = win_matrix(games)
    assert matrix.games.sum() == 2 * len(rows)
    assert matrix.wins.sum() + matrix.ties.sum() / 2 == len(rows)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (GameVerdict("q", "x", "x", Verdict.A), "plays itself"),
        (GameVerdict("q", "", "x", Verdict.A), "verdict 2: an agent's name is empty or missing"),
        (GameVerdict("q", "x", " ", Verdict.A), "empty or missing"),
        (GameVerdict("q", "x", None, Verdict.A), "empty or missing"),  # type: ignore[arg-type]
        (GameVerdict("q", math.nan, "x", Verdict.A), "empty or missing"),  # type: ignore[arg-type]
        (GameVerdict("q", "x", "y", "model_c"), "not A, B or TIE"),  # type: ignore[arg-type]
        *((GameVerdict("q", "x", "y", word), "not A, B or TIE") for word in ("", None, math.nan, "both", 0)),
        (GameVerdict(None, "x", "y", Verdict.A), "no query_id"),
    ],
)
def test_what_is_no_game_is_refused_with_its_number(row: GameVerdict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_games([GameVerdict("q", "x", "y", Verdict.A), row])


def test_games_need_verdicts_and_the_merging_of_orders_needs_queries() -> None:
    with pytest.raises(InputError, match="no verdicts"):
        as_games([])
    with pytest.raises(InputError, match="query_id"):
        reconcile([GameVerdict(None, "x", "y", Verdict.A)])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [0], "b": [0]}, "play itself"),
        ({"a": [0], "b": [2]}, "0..1"),
        ({"score": [0.3]}, "1, 0.5 or 0"),
        ({"score": [math.nan]}, "1, 0.5 or 0"),
        ({"score": [1.0, 1.0]}, "shape"),
        ({"weight": [-1.0]}, "weights"),
        ({"weight": [math.nan]}, "weights"),
    ],
)
def test_arrays_that_hold_no_games_are_refused(columns: dict[str, list[float]], message: str) -> None:
    given_columns = {"a": [0], "b": [1], "score": [1.0]} | columns
    kinds = {"a": np.int32, "b": np.int32}
    with pytest.raises(ValueError, match=message):
        Games(("x", "y"), **{name: np.array(v, kinds.get(name, np.float64)) for name, v in given_columns.items()})


def test_order_is_kept_apart_only_where_games_have_one() -> None:
    games = as_games(both_orders("A", "B"))
    assert pair_counts(games, ordered=True).a.tolist() == [0, 1]
    assert pair_counts(games, ordered=False).wins_a.tolist() == [[2.0]]
    with pytest.raises(ValueError, match="shown first"):
        pair_counts(reconcile(both_orders("A", "B")), ordered=True)


@pytest.mark.parametrize("pair", [(60.0, 50.0), (50.2, 50.0), (-1.0, 50.0), (math.nan, 50.0)])
def test_an_impossible_win_matrix_is_refused(pair: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="pair"):
        from_win_matrix(("x", "y"), np.array([[0, pair[0]], [pair[1], 0]]), 200)
