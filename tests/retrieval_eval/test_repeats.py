"""Repeated answers as numbers: what averaging keeps, the halves of an agent, the noise floor, and A/A comparisons."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from benchmarks.repeats import answers, different, grades, hardness, same, scores
from judges.types import repeat_name, repeat_of
from retrieval_eval.stats import Floats
from retrieval_eval.stats.repeats import averaged, halves, noise
from retrieval_eval.stats.scores import Scores, scores_of

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(lambda name: repeat_of(name)[1] == 1)
TABLES = st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(0, 10**6))


@given(NAMES, st.integers(1, 1000))
def test_the_name_of_a_repeat_says_whose_it_is(agent: str, number: int) -> None:
    assert repeat_of(repeat_name(agent, number)) == (agent, number)


@pytest.mark.parametrize(
    "name", ["rag", "rag (repeat 0)", "rag (repeat 02)", "(repeat 2)", "rag (repeat 2) ", "rag(repeat 2)"]
)
def test_other_names_are_whole(name: str) -> None:
    assert repeat_of(name) == (name, 1)


def drawn(queries: int, repeats: int, seed: int) -> Floats:
    """Grades of two agents with gaps, shape (2, queries, repeats)."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((2, queries, repeats)) < 0.2, np.nan, rng.integers(0, 5, (2, queries, repeats)) / 4)


@given(TABLES)
def test_a_value_is_the_mean_of_what_is_there_and_single_answers_stay_as_they_are(shape: tuple[int, int, int]) -> None:
    cells = drawn(*shape)
    table = scores(*cells)
    with np.errstate(all="ignore"):
        seen = ~np.isnan(cells)
        means = np.where(seen.any(axis=2), np.where(seen, cells, 0).sum(axis=2) / seen.sum(axis=2), np.nan)
    assert table.agents == ("one", "other")
    assert_allclose(table.values, means)
    assert averaged(table) is table
    assert (table.repeats is None) == (shape[1] == 1)


@given(TABLES, st.randoms())
def test_the_order_of_repeats_changes_no_score_and_no_noise(shape: tuple[int, int, int], random: object) -> None:
    cells = drawn(*shape)
    order = np.random.default_rng(shape[2]).permutation(shape[1])
    one, other = scores(*cells), scores(*cells[:, :, order])
    assert_allclose(one.values, other.values)
    first, second = noise(one), noise(other)
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert_allclose(first.floor.value or 0, second.floor.value or 0)


@given(TABLES)
def test_repeats_that_are_all_the_same_show_no_noise_and_claim_no_interval(shape: tuple[int, int, int]) -> None:
    queries, repeats, seed = shape
    once = np.random.default_rng(seed).random((2, queries, 1))
    table = scores(*np.repeat(once, repeats + 1, axis=2))
    assert_allclose(table.values, once[:, :, 0])
    floor = noise(table)
    assert floor is not None
    assert (round(floor.floor.value or 0, 12), floor.floor.low) == (0, None)


def test_the_floor_is_what_two_runs_differ_by() -> None:
    """Four queries, two repeats 0.2 apart each: a variance of 0.02, so that means of four differ by 1.96 * 0.1."""
    cells = np.full((2, 4, 2), 0.4)
    cells[0, :, 1] = 0.6
    cells[1] = cells[0]
    floor = noise(scores(*cells))
    assert floor is not None
    assert floor.floor.value == pytest.approx(1.959964 * (2 * 0.02 / 4) ** 0.5)
    assert (floor.queries, floor.repeats) == (4, 2)


def test_a_missing_answer_scores_nothing_beside_another_repeat() -> None:
    names = ("a", "a (repeat 2)", "b", "b (repeat 2)")
    values = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    present = np.array([[True, False], [False, False], [False, True], [True, True]])
    table = averaged(Scores("v_strict", names, ("q1", "q2"), values), present)
    assert table.values.tolist() == [[1.0, 0.0], [1.0, 1.0]], "0 only where an agent answered nothing at all"


def test_missing_judgments_widen_the_bounds_by_their_share() -> None:
    keys = [("a", "q"), ("a (repeat 2)", "q")]
    table = averaged(scores_of("grade", {keys[0]: 0.5}, keys))
    assert table.values.tolist() == [[0.5]]
    assert table.missing("a") == (1, 2)
    assert table.bounds[:, 0, 0].tolist() == [0.25, 0.75]


def test_an_agent_against_itself_is_its_first_repeats_against_the_others() -> None:
    cells = np.array([[[0.0, 1.0, 0.5], [0.2, np.nan, 0.4], [np.nan, 0.1, 0.1]]] * 2)
    both = halves(scores(*cells), "one", 3)
    assert both.agents == ("one (repeat 1)", "one (repeats 2 to 3)")
    assert both.queries == ("q000", "q001")
    assert_allclose(both.values, [[0.0, 0.2], [0.75, 0.4]])
    assert halves(scores(*cells), "nobody", 2).queries == ()
    assert halves(None, "one", 2).agents == ("one (repeat 1)", "one (repeat 2)")


def test_one_system_is_seldom_called_better_or_worse_than_itself() -> None:
    """At most 3.2 % in 2,000 tables of ``benchmarks.repeats``; here fewer tables, so somewhat more."""
    rng = np.random.default_rng(5)
    for repeats in (1, 3):
        for row in same(rng, repeats, 150):
            better, worse = (float(share.strip("%")) for share in row.split()[-2:])
            assert max(better, worse) <= 6, row


def test_intervals_hold_and_new_queries_are_worth_more_than_repeats() -> None:
    row = different(np.random.default_rng(2), 3, 300).split()
    covers, next_runs, floor, part = (float(share.strip("%")) for share in row[1:5])
    two_levels, worth = map(float, row[5:])
    assert min(covers, next_runs, floor, part) >= 91
    assert two_levels > 1.05, "a bootstrap of both levels is too wide"
    assert 1.2 < worth < 2.2


def test_half_the_noise_takes_four_times_the_queries() -> None:
    rng = np.random.default_rng(0)
    floors = []
    for queries in (50, 200):
        tables = (grades(rng, answers(rng, hardness(rng, queries, 0.5), 2)) for _ in range(40))
        floors.append(np.mean([floor.floor.value or 0 for t in tables if (floor := noise(scores(t, t))) is not None]))
    assert floors[0] / floors[1] == pytest.approx(2, rel=0.05)
