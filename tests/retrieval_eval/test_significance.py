"""Paired tests: the same p-values as scipy, exact where few queries allow, corrected for their number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from retrieval_eval.stats.bootstrap import estimates, query_weights
from retrieval_eval.stats.significance import compare, holm, paired_t, sign_flip

DIFFERENCES = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 3), st.integers(2, 8)), elements=st.integers(-4, 4).map(lambda n: n / 4)
)


def test_the_t_test_is_scipys() -> None:
    differences = np.random.default_rng(0).normal(0.1, 1, (5, 40))
    expected = stats.ttest_1samp(differences, 0, axis=1).pvalue
    np.testing.assert_allclose(paired_t(differences), expected, atol=1e-12)


def test_a_t_test_without_variation_has_no_p_value() -> None:
    p = paired_t(np.array([[0.0, 0, 0], [0.1, 0.1, 0.1], [0.1, 0.2, 0.3]]))
    assert p[0] == 1
    assert np.isnan(p[1])
    assert paired_t(np.array([[0.5]])) == pytest.approx(np.nan, nan_ok=True)


@given(DIFFERENCES)
def test_few_queries_get_the_exact_permutation_test(differences: np.ndarray) -> None:
    exact = [
        stats.permutation_test((own,), np.sum, permutation_type="samples", vectorized=False, n_resamples=np.inf).pvalue
        for own in differences
    ]
    np.testing.assert_allclose(sign_flip(differences), exact, atol=1e-12)


def test_many_queries_get_drawn_flips_close_to_the_exact_test_and_never_0() -> None:
    rng = np.random.default_rng(1)
    small = rng.normal(0.25, 1, (1, 14))
    padded = np.hstack([small, np.zeros((1, 6))])  # queries without a difference change nothing
    assert sign_flip(padded)[0] == pytest.approx(sign_flip(small)[0], abs=0.02)
    assert sign_flip(np.ones((1, 50)))[0] == pytest.approx(1 / 10_001)
    np.testing.assert_array_equal(sign_flip(padded, seed=3), sign_flip(padded, seed=3))


def test_permutation_and_t_test_agree_on_many_queries() -> None:
    differences = np.random.default_rng(2).normal(0.1, 1, (20, 200))
    np.testing.assert_allclose(sign_flip(differences), paired_t(differences), atol=0.02)


@given(arrays.arrays(np.float64, st.integers(1, 12), elements=st.floats(0, 1)))
def test_holm_is_scipy_free_arithmetic(p: np.ndarray) -> None:
    corrected = holm(p)
    order = np.argsort(p, kind="stable")
    running = 0.0
    for step, place in enumerate(order):
        running = max(running, min(1.0, float(p[place]) * (p.size - step)))
        assert corrected[place] == pytest.approx(running)


def test_comparisons_name_both_runs_and_count_queries() -> None:
    values = np.array([[0.9, 0.8, 0.7, 0.2], [0.1, 0.8, 0.3, 0.5], [0.0, 0.1, 0.0, 0.1]])
    pairs = {(pair.first, pair.second): pair for pair in compare(values, ["a", "b", "c"])}
    assert list(pairs) == [("a", "b"), ("a", "c"), ("b", "c")]
    pair = pairs["a", "b"]
    assert (pair.wins, pair.ties, pair.losses) == (2, 1, 1)
    assert pair.difference.value == pytest.approx(values[0].mean() - values[1].mean())
    assert pair.turned().difference.value == pytest.approx(-(pair.difference.value or 0))
    assert pair.turned().difference.low == -(pair.difference.high or 0)
    assert (pair.turned().first, pair.turned().wins) == ("b", 1)
    assert all(own.p_permutation <= own.p_permutation_holm for own in pairs.values())


def test_a_baseline_halves_what_is_corrected_for() -> None:
    values = np.random.default_rng(3).random((4, 30)) + np.arange(4)[:, np.newaxis] / 10
    against = compare(values, list("abcd"), baseline="b")
    assert [(pair.first, pair.second) for pair in against] == [("a", "b"), ("c", "b"), ("d", "b")]
    every = {frozenset((pair.first, pair.second)): pair for pair in compare(values, list("abcd"))}
    for pair in against:
        assert pair.p_t == pytest.approx(every[frozenset((pair.first, pair.second))].p_t)
        assert (pair.p_t_holm or 0) <= (every[frozenset((pair.first, pair.second))].p_t_holm or 0)


def test_a_pair_without_a_p_value_still_counts_in_the_correction() -> None:
    values = np.array([[0.6, 0.6, 0.6], [0.5, 0.5, 0.5], [0.1, 0.4, 0.2]])
    constant, one, other = compare(values, ["a", "b", "c"])
    assert constant.p_t is None
    assert constant.p_t_holm is None
    smallest = min(one.p_t or 1, other.p_t or 1)
    assert min(one.p_t_holm or 1, other.p_t_holm or 1) == pytest.approx(min(1, 3 * smallest))
    assert constant.p_permutation == pytest.approx(0.25)  # exact: 2 of 8 worlds are as far out


def test_one_query_says_nothing_about_variation() -> None:
    (pair,) = compare(np.array([[0.5], [0.2]]), ["a", "b"])
    assert (pair.p_t, pair.p_permutation) == (None, 1)
    assert (pair.difference.low, pair.difference.high) == (None, None)


def test_intervals_of_means_hold_as_often_as_they_say_also_with_few_queries() -> None:
    rng = np.random.default_rng(4)
    held = 0
    for trial in range(400):
        values = rng.normal(0.5, 0.2, (1, 8))
        (found,) = estimates(values.mean(axis=1), query_weights(8, 400, trial) @ values.T / 8, 8)
        held += (found.low or 0) <= 0.5 <= (found.high or 0)
    assert 0.925 <= held / 400 <= 0.985


def test_weights_draw_whole_queries() -> None:
    weights = query_weights(7, 50, 0)
    assert (weights.sum(axis=1) == 7).all()
    assert query_weights(0, 50, 0).shape == (50, 0)
