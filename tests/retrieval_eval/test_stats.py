"""Rank correlation and paired tests as scipy has them, and paired comparisons that never rest on ignorance."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from judges.errors import InputError
from retrieval_eval.stats.bootstrap import UNSEEN, estimates, query_weights
from retrieval_eval.stats.paired import compare, holm, interval, level_of_look, paired, paired_t, sign_flip
from retrieval_eval.stats.rank import correlate_runs, correlate_topics, kendall_taus, pair_sums, spearmans

GRADES = arrays.arrays(np.float64, (6, 4), elements=st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]))
ALL = np.ones((6, 4), np.bool_)


def scipy_tau(x: np.ndarray, y: np.ndarray) -> float:
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(stats.kendalltau(x, y).statistic)


@settings(max_examples=30)
@given(GRADES, GRADES)
def test_tau_and_rho_are_those_of_scipy_with_ties_too(a: np.ndarray, b: np.ndarray) -> None:
    np.testing.assert_allclose(kendall_taus(a, b), [scipy_tau(x, y) for x, y in zip(a, b, strict=True)], atol=1e-12)
    constant = (np.ptp(a, axis=1) == 0) | (np.ptp(b, axis=1) == 0)
    expected = [stats.spearmanr(x, y).statistic for x, y in zip(a[~constant], b[~constant], strict=True)]
    found = spearmans(a, b)
    np.testing.assert_allclose(found[~constant], expected, atol=1e-12)
    assert np.isnan(found[constant]).all()


@settings(max_examples=30)
@given(GRADES, GRADES)
def test_all_pairs_and_single_topics_are_those_of_scipy(a: np.ndarray, b: np.ndarray) -> None:
    result = correlate_topics(a, b, ALL, samples=10)
    assert result.pairs == 24
    assert (result.pairs_kendall.value or 0) == pytest.approx(np.nan_to_num(scipy_tau(a.ravel(), b.ravel())), abs=1e-12)
    np.testing.assert_allclose(result.by_topic, [scipy_tau(x, y) for x, y in zip(a.T, b.T, strict=True)], atol=1e-12)
    defined = [tau for tau in result.by_topic if not np.isnan(tau)]
    assert result.topics == len(defined)
    assert result.topics_kendall.value == (pytest.approx(np.mean(defined)) if defined else None)


@settings(max_examples=30)
@given(GRADES, GRADES, st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_a_topic_drawn_twice_counts_like_two_topics(a: np.ndarray, b: np.ndarray, drawn: list[int]) -> None:
    x, y = a[:, drawn], b[:, drawn]
    weights = np.bincount(drawn, minlength=4)
    unit = np.broadcast_to(np.arange(4), (6, 4)).ravel()
    agreeing, untied_a, untied_b = (weights @ part @ weights for part in pair_sums(a.ravel(), b.ravel(), unit, 4))
    scale = np.sqrt(untied_a * untied_b)
    np.testing.assert_allclose(agreeing / scale if scale else np.nan, scipy_tau(x.ravel(), y.ravel()), atol=1e-12)


def noisy(topics: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=(30, 1))
    return quality + rng.normal(size=(30, topics)), quality + rng.normal(size=(30, topics))


def test_intervals_narrow_with_more_topics_and_hold_the_estimate() -> None:
    widths = []
    for topics in (5, 80):
        a, b = noisy(topics)
        found = correlate_topics(a, b, np.ones(a.shape, np.bool_))
        for one in (found.kendall, found.pairs_kendall, found.topics_kendall):
            assert one.value is not None
            assert one.low is not None
            assert one.high is not None
            assert one.low < one.high
        assert found.resampled == "topic"
        widths.append((found.kendall.high or 0) - (found.kendall.low or 0))
    assert widths[1] < widths[0] / 2


def test_p_values_are_those_of_scipy_and_dependent_pairs_have_none() -> None:
    a, b = noisy(10)
    found = correlate_topics(a, b, np.ones(a.shape, np.bool_))
    x, y = a.mean(axis=1), b.mean(axis=1)
    assert found.kendall.p_value == pytest.approx(stats.kendalltau(x, y).pvalue)
    assert found.spearman.value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found.spearman.p_value == pytest.approx(stats.spearmanr(x, y).pvalue)
    assert found.topics_kendall.p_value == pytest.approx(stats.ttest_1samp(found.by_topic, 0).pvalue)
    assert found.pairs_kendall.p_value is None


def test_a_missing_answer_counts_in_the_means_and_not_as_a_pair() -> None:
    a, b = noisy(4)
    answered = np.ones(a.shape, np.bool_)
    a[0, 0] = b[0, 0] = 0
    answered[0, 0] = False
    found = correlate_topics(a, b, answered)
    assert found.pairs == a.size - 1
    assert found.kendall.value == pytest.approx(stats.kendalltau(a.mean(axis=1), b.mean(axis=1)).statistic)


def test_a_score_that_is_not_defined_is_left_out_of_means_and_pairs() -> None:
    a, b = noisy(4)
    a[1, 2] = np.nan
    found = correlate_topics(a, b, np.ones(a.shape, np.bool_))
    assert found.pairs == a.size - 1
    assert found.kendall.value == pytest.approx(stats.kendalltau(np.nanmean(a, axis=1), b.mean(axis=1)).statistic)


def test_without_topics_runs_are_resampled() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=40)
    found = correlate_runs(a, a + rng.normal(size=40) / 2)
    assert found.resampled == "run"
    assert found.pairs == 0
    assert found.kendall.low is not None
    assert found.kendall.low < (found.kendall.value or 0) < (found.kendall.high or 0)


def test_sums_in_another_order_are_still_ties() -> None:
    assert kendall_taus(np.array([0.1 + 0.2, 0.3, 1.0]), np.array([1.0, 2.0, 3.0]))[0] == pytest.approx(2 / 6**0.5)


def test_taus_of_one_topic_alone_have_no_interval() -> None:
    alone = correlate_topics(*noisy(1), np.ones((30, 1), np.bool_)).kendall
    assert alone.value is not None
    assert alone.low is None
    a, b = noisy(4)
    b[:, 1:] = 0.5
    found = correlate_topics(a, b, np.ones(a.shape, np.bool_))
    assert (found.topics, found.topics_kendall.low) == (1, None)
    assert found.kendall.low is not None


@pytest.mark.parametrize("scores", [np.array([1.0]), np.array([1.0, np.nan])])
def test_a_correlation_needs_two_scored_runs(scores: np.ndarray) -> None:
    with pytest.raises(ValueError, match="two runs"):
        correlate_runs(scores, scores)


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


@settings(max_examples=30)
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


@given(arrays.arrays(np.float64, st.integers(1, 12), elements=st.floats(0, 1)))
def test_holm_is_scipy_free_arithmetic(p: np.ndarray) -> None:
    corrected = holm(p)
    order = np.argsort(p, kind="stable")
    running = 0.0
    for step, place in enumerate(order):
        running = max(running, min(1.0, float(p[place]) * (p.size - step)))
        assert corrected[place] == pytest.approx(running)


@settings(max_examples=30)
@given(arrays.arrays(np.float64, (2, 6), elements=st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0])))
def test_the_interval_of_a_difference_is_that_of_its_paired_t_test(values: np.ndarray) -> None:
    (found,) = compare(values, ("a", "b"))
    if np.ptp(values[0] - values[1]) == 0:
        assert (found.difference.low, found.difference.high) == (None, None)
        return
    expected = stats.ttest_rel(*values).confidence_interval()
    assert (found.difference.low, found.difference.high) == pytest.approx(tuple(np.clip(expected, -1, 1)), abs=1e-12)
    assert found.p_t is not None
    assert (expected.low > 0 or expected.high < 0) == (found.p_t < 0.05)


def test_conversations_count_as_one_unit_in_the_interval_of_a_difference() -> None:
    rng = np.random.default_rng(0)
    values = np.repeat(rng.random((2, 8)), 5, axis=1)
    (found,) = compare(values, ("a", "b"), unit=np.repeat(np.arange(8), 5))
    (alone,) = compare(values[:, ::5], ("a", "b"))
    assert (found.difference.low, found.difference.high) == pytest.approx((alone.difference.low, alone.difference.high))
    assert found.difference.n == 8


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


def test_weights_draw_whole_queries() -> None:
    weights = query_weights(7, 50, 0)
    assert (weights.sum(axis=1) == 7).all()
    assert query_weights(0, 50, 0).shape == (50, 0)


def test_where_no_resample_differs_nothing_shows_how_a_figure_varies() -> None:
    samples = np.column_stack([np.ones(50), np.linspace(0, 1, 50)])
    alike, varying = estimates([1.0, 0.5], samples, 12)
    assert (alike.value, alike.low, alike.high) == (1, None, None)
    assert varying.low is not None


HALF = 0.5


def shares(won: int, tied: int, lost: int) -> list[float]:
    """Differences of win shares from one half."""
    return [HALF] * won + [0.0] * tied + [-HALF] * lost


@pytest.mark.parametrize(
    ("won", "tied", "lost", "verdict"),
    [
        (80, 0, 20, "better"),
        (400, 200, 400, "not worse"),
        (20, 0, 80, "worse"),
        (50, 0, 50, "undecided"),
        (0, 50, 0, "not worse"),
        (0, 40, 0, "not worse"),
        (0, 30, 0, "undecided"),  # of 30 ties, one query in nine may still be lost
        (7, 0, 0, "better"),
        (6, 0, 0, "not worse"),
        (5, 0, 0, "undecided"),
        (0, 0, 8, "worse"),
        (1, 0, 0, "undecided"),
        (1, 0, 1, "undecided"),
    ],
)
def test_verdicts_of_one_look(won: int, tied: int, lost: int, verdict: str) -> None:
    found = paired(shares(won, tied, lost), 0.05, reach=HALF)
    assert (found.verdict, found.wins, found.ties, found.losses) == (verdict, won, tied, lost)


def test_nothing_known_decides_nothing() -> None:
    found = paired([], 0.05, missing=3)
    assert (found.verdict, found.difference.value, found.difference.n, found.more) == ("undecided", None, 0, None)
    found = paired([1.0], 0.05)
    assert (found.verdict, found.difference.low, found.more) == ("undecided", None, None)


def test_ends_are_where_the_likelihood_allows() -> None:
    x = np.array([0.2, 0.4, 0.4, 0.7, 0.8, 0.85, 0.3])
    low, high = interval(x, 0.95, any_look=False)
    allowed = scipy.special.stdtrit(x.size - 1, 0.975) ** 2 / 2
    for end, figures in ((low, x), (1 - high, 1 - x)):
        stakes = np.linspace(0, 1 - 1e-9, 200_001) / end
        of_unseen = UNSEEN * np.log1p(-stakes * end)
        log = np.log1p(stakes[:, None] * (figures - end)).sum(axis=1) + of_unseen
        assert log.max() == pytest.approx(allowed, abs=1e-6)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_the_best_figure_on_every_query_never_says_less(x: list[float]) -> None:
    figures = np.array(x)
    alike = np.full(figures.size, figures.max())
    assert interval(alike, 0.95, any_look=False)[0] >= interval(figures, 0.95, any_look=False)[0] - 1e-9


@pytest.mark.parametrize("queries", [30, 62, 98, 104, 131, 200, 300])
def test_rare_whole_losses_at_the_margin_pass_in_2_5_percent_at_most(queries: int) -> None:
    """Lost whole with a probability of 0.05, else tied: the mean is just what a margin of 0.05 must not pass."""
    passing = [
        lost
        for lost in range(queries)
        if paired([-1.0] * lost + [0.0] * (queries - lost), 0.05).verdict in ("better", "not worse")
    ]
    assert sum(scipy.stats.binom.pmf(lost, queries, 0.05) for lost in passing) <= 0.025


def test_an_ordinary_loss_is_seen_on_30_queries() -> None:
    rng = np.random.default_rng(8)
    seen = [paired(np.clip(rng.normal(-0.17, 0.227, 30), -1, 1), 0.05).verdict == "worse" for _ in range(400)]
    assert np.mean(seen) > 0.8


def test_queries_that_never_differ_leave_open_what_they_may_miss() -> None:
    low, high = interval(np.ones(20), 0.95, any_look=False)
    assert (low, high) == (pytest.approx(0.025 ** (1 / 20)), 1.0)


def test_any_look_is_the_evidence_of_games_at_one_half() -> None:
    from arena.ratings.adaptive import log_evidence
    from arena.ratings.games import Games

    x = np.array([1.0] * 14 + [0.5] * 4 + [0.0] * 2)
    zero = np.zeros(x.size, np.int32)
    evidence = log_evidence(Games(("a", "b"), zero, zero + 1, x, soft=True))[0, 1]
    level = 1 - 2 * math.exp(-evidence)  # at which one half is just the lower end
    assert interval(x, level, any_look=True)[0] == pytest.approx(0.5, abs=1e-9)


@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.floats(0, 0.9), st.booleans(), st.sampled_from([0.9, 0.95])
)
def test_what_holds_of_all_differences(d: list[float], margin: float, any_look: bool, level: float) -> None:
    found = paired(d, margin, level=level, any_look=any_look)
    turned = paired([-one for one in d], margin, level=level, any_look=any_look)
    own = found.difference
    assert own.value is not None
    assert own.low is not None
    assert own.high is not None
    assert -1 - 1e-9 <= own.low <= own.value + 1e-9 <= own.high + 2e-9 <= 1 + 1e-8
    assert turned.difference.low == pytest.approx(-own.high, abs=1e-7)
    assert (found.verdict == "better") == (own.low > 0)
    assert (found.more is None) or (found.verdict == "undecided" and found.more > 0)
    wider = paired(d, margin, level=0.99, any_look=any_look).difference
    assert wider.low is not None
    assert wider.low <= own.low + 1e-9


def test_missing_queries_that_could_turn_a_verdict_undo_it() -> None:
    d = shares(400, 200, 400)
    assert paired(d, 0.05, missing=100, reach=HALF).verdict == "not worse"  # at worst 45.5 %
    found = paired(d, 0.05, missing=120, reach=HALF)
    assert (found.verdict, found.unsure) == ("undecided", True)
    won = shares(80, 0, 20)
    assert paired(won, 0.05, missing=62, reach=HALF).verdict == "not worse"  # at worst 49.4 %: no longer better
    assert paired([-one for one in won], 0.05, missing=62, reach=HALF).unsure


def test_more_queries_are_as_many_as_a_formula_says() -> None:
    d = shares(50, 0, 50)
    more = paired(d, 0.05, reach=HALF).more
    normal = ((1.96 + 0.84) * 0.5 / 0.05) ** 2 - 100
    assert more == pytest.approx(normal, rel=0.05)
    assert paired(shares(5, 0, 5), 0.0, reach=HALF).more is None  # of equal agents none is ever better


@pytest.mark.parametrize(("margin", "level"), [(-0.1, 0.95), (0.5, 0.95), (0.05, 1.0)])
def test_impossible_settings_are_refused(margin: float, level: float) -> None:
    with pytest.raises(InputError):
        paired([0.1, 0.2], margin, reach=HALF, level=level)
    with pytest.raises(ValueError, match="between"):
        paired([0.7], 0.05, reach=HALF)


def quantiles(times: list[float]) -> list[float]:
    levels = [level_of_look(times[: number + 1], 0.95) for number in range(len(times))]
    return [float(scipy.special.ndtri((1 + level) / 2)) for level in levels]


def test_boundaries_are_those_of_lan_and_demets() -> None:
    """Jennison and Turnbull 2000, chapter 7, as every program for group sequential designs prints them."""
    assert quantiles([0.2, 0.4, 0.6, 0.8, 1.0]) == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=0.001)
    assert quantiles([0.5, 1.0]) == pytest.approx([2.963, 1.969], abs=0.001)


def test_one_look_at_the_end_is_one_look() -> None:
    assert level_of_look([1.0], 0.95) == pytest.approx(0.95)
    assert level_of_look([1.0], 0.9) == pytest.approx(0.9)


def test_all_looks_together_err_as_one() -> None:
    looks = [20, 50, 60, 120, 200]
    bar = quantiles([look / 200 for look in looks])
    walks = np.random.default_rng(0).normal(size=(40_000, 200)).cumsum(axis=1)[:, np.array(looks) - 1]
    assert (walks / np.sqrt(looks) > bar).any(axis=1).mean() == pytest.approx(0.025, abs=0.0025)


def test_many_looks_leave_the_last_nearly_whole() -> None:
    times = [look / 50 for look in range(1, 51)]
    assert 0.965 < level_of_look(times, 0.95) < 0.975


@pytest.mark.parametrize("times", [[], [0.5, 0.5], [0.6, 0.4], [0.5, 1.2], [0.0, 1.0]])
def test_times_that_do_not_rise_are_refused(times: list[float]) -> None:
    with pytest.raises(ValueError, match="must be ascending"):
        level_of_look(times, 0.95)
