"""Ranks that hold jointly, groups consistent with them, and queries needed to separate neighbours."""

import dataclasses

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from arena.boards.conclusion import more_needed
from arena.ratings.games import Floats, GameVerdict
from arena.ratings.ranks import JointDifferences, competition_ranks, groups, joint_differences, rank_intervals
from arena.ratings.ranks import queries_needed as needed
from arena.ratings.rate import RatingSettings, rate
from arena.ratings.results import PairDifference
from benchmarks.queries_needed import State, counted, first_pair, power
from judges.types import Verdict

QUICK = RatingSettings(bootstrap=200, tournaments=5)


def estimated(rng: np.random.Generator, truth: Floats, queries: int, level: float = 0.95) -> JointDifferences:
    """Intervals from the means of scores on queries, which disagree about agents, and 1000 resamples of queries."""
    scores = (
        truth + rng.normal(size=(queries, 1)) + rng.normal(0, np.linspace(0.5, 2, truth.size), (queries, truth.size))
    )
    weights = rng.multinomial(queries, np.full(queries, 1 / queries), size=1000) / queries
    return joint_differences(scores.mean(axis=0), (weights @ scores,), queries, level)


def misses(level: float, *, queries: int = 25, trials: int = 500) -> tuple[float, float]:
    """How often any true rank, and any true difference, is outside its interval."""
    rng = np.random.default_rng(11)
    truth = np.array([0.0, 0.0, 0.0, 0.3, 0.35, 1.0])
    # Agents that tie may take any of the ranks that they share; all must be inside.
    best, worst = competition_ranks(truth), truth.size + 1 - competition_ranks(-truth)
    of_ranks = of_differences = 0
    for _ in range(trials):
        joint = estimated(rng, truth, queries, level)
        low, high = rank_intervals(joint)
        of_ranks += bool((low > best).any() or (high < worst).any())
        of_differences += bool((joint.difference - (truth[:, np.newaxis] - truth) > joint.half + 1e-9).any())
    return of_ranks / trials, of_differences / trials


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_all_ranks_are_inside_their_intervals_at_once(level: float) -> None:
    of_ranks, of_differences = misses(level)
    noise = 2 * np.sqrt(level * (1 - level) / 500)
    assert of_ranks <= 1 - level + noise
    assert 1 - level - 2 * noise <= of_differences <= 1 - level + noise


def test_ranks_hold_their_level_with_eight_queries() -> None:
    assert misses(0.95, queries=8)[0] <= 0.05


def test_intervals_of_single_pairs_would_miss_some_rank_far_more_often() -> None:
    rng = np.random.default_rng(12)
    truth = np.zeros(6)
    wrong = 0
    for _ in range(200):
        joint = estimated(rng, truth, 25)
        wrong += bool((np.abs(joint.difference) > 1.96 * joint.se).any())
    assert wrong > 0.2 * 200


@given(st.integers(0, 10**6))
def test_ranks_and_groups_tell_the_same_story(seed: int) -> None:
    rng = np.random.default_rng(seed)
    joint = estimated(rng, rng.normal(0, 0.7, 6), 20)
    ratings = joint.difference[:, 0]
    low, high = rank_intervals(joint)
    lettered = groups(ratings, joint.different)
    ranks = competition_ranks(ratings)
    assert (low <= ranks).all()
    assert (ranks <= high).all()
    # Nobody is surely better than an agent that could be first; who shares A with the best is not surely worse.
    top = ratings.argmax()
    assert low[top] == 1
    for i in range(6):
        assert (low[i] == 1) == (not (joint.different[i] & (joint.difference[i] < 0)).any())
        if lettered[i].split("-")[0] == "A":
            assert low[i] == 1
            assert not joint.different[i, top]


def test_clear_differences_give_exact_ranks_and_close_ones_share_them() -> None:
    samples = np.array([300.0, 200.0, 190.0, 0.0]) + np.random.default_rng(1).normal(0, 10, (500, 4))
    joint = joint_differences(np.array([300.0, 200.0, 190.0, 0.0]), (samples,), 100)
    low, high = rank_intervals(joint)
    assert (low.tolist(), high.tolist()) == ([1, 2, 2, 4], [1, 3, 3, 4])


def test_of_several_sets_of_samples_the_widest_interval_counts() -> None:
    rng = np.random.default_rng(2)
    ratings = np.array([20.0, 0.0])
    narrow, wide = ratings + rng.normal(0, 2, (300, 2)), ratings + rng.normal(0, 50, (300, 2))
    both = joint_differences(ratings, (narrow, wide), 50)
    assert joint_differences(ratings, (narrow,), 50).different[0, 1]
    assert not both.different[0, 1]
    assert both.se[0, 1] == pytest.approx(50 * np.sqrt(2), rel=0.1)


def test_agents_with_the_same_record_share_their_ranks() -> None:
    samples = np.random.default_rng(3).normal(0, 10, (200, 1)) * [1.0, 1.0, -2.0] + [100.0, 100.0, 0.0]
    joint = joint_differences(np.array([100.0, 100.0, 0.0]), (samples,), 50)
    low, high = rank_intervals(joint)
    assert (low.tolist(), high.tolist()) == ([1, 1, 3], [2, 2, 3])


def test_queries_needed_is_the_textbook_sample_size_for_a_proportion() -> None:
    # 55 % against 45 %: (1.96 + 0.84)^2 / (4 * 0.05^2) = 785 games for power 0.8 at the level of 5 %.
    difference, se = np.log(0.55 / 0.45), 1 / np.sqrt(100 * 0.55 * 0.45)
    # New queries alone would have to be so many; those there are stay, and have their share of the luck behind them.
    number, low, high = needed(difference, se, 1.96 * se, 100)
    assert number == pytest.approx(785 - 100, rel=0.1)
    assert low < number
    assert high is None


def test_as_many_queries_as_needed_do_separate_four_times_in_five() -> None:
    rng = np.random.default_rng(4)
    queries = 12
    seen = rng.normal(size=queries)
    seen += 0.45 - seen.mean()
    se = float(seen.std(ddof=1)) / np.sqrt(queries)
    quantile = float(scipy.special.stdtrit(queries - 1, 0.975))
    more, low, high = needed(0.45, se, quantile * se, queries)
    assert more is not None
    scores = np.hstack([np.tile(seen, (2000, 1)), rng.choice(seen, (2000, more))])
    total = queries + more
    critical = float(scipy.special.stdtrit(total - 1, 0.975))
    separated = scores.mean(axis=1) > critical * scores.std(axis=1, ddof=1) / np.sqrt(total)
    assert separated.mean() == pytest.approx(0.8, abs=0.05)
    assert low is not None
    assert low < more
    assert high is None or high > more
    assert needed(0.45, se * 2, quantile * se * 2, queries)[2] is None  # the two may be equally good


def test_no_queries_are_needed_where_the_interval_leaves_out_zero_and_none_help_equals() -> None:
    assert needed(30.0, 10.0, 25.0, 50) == (0, 0, 0)
    assert needed(-30.0, 10.0, 25.0, 50) == (0, 0, 0)
    assert needed(0.0, 10.0, 25.0, 50) == (None, None, None)
    assert needed(0.01, 10.0, 25.0, 50) == (None, None, None)


@pytest.mark.parametrize("state", [counted("", 10, 4), counted("", 12, 5, 4)])
def test_the_rating_itself_tells_agents_apart_after_as_many_queries_as_it_says(state: State) -> None:
    pair = first_pair(state.games)
    assert pair.queries_needed is not None
    assert pair.queries_needed_low is not None
    assert pair.queries_needed_low < pair.queries_needed
    assert 0.65 < power(state.games, pair, pair.queries_needed, 40) < 0.99
    assert power(state.games, pair, pair.queries_needed // 4, 40) < 0.65


def test_where_one_won_all_games_no_number_is_said() -> None:
    pair = first_pair(counted("", 3, 0).games)
    assert (pair.separable, pair.queries_needed, pair.queries_needed_low, pair.queries_needed_high) == (
        False,
        None,
        None,
        None,
    )


def verdicts(shares: dict[str, int], queries: int = 100) -> list[GameVerdict]:
    """Every agent against "base", winning the given share (in percent) of queries."""
    rng = np.random.default_rng(5)
    rows = []
    for agent, share in shares.items():
        won = rng.permutation(queries) < share * queries / 100
        rows += [GameVerdict(f"q{q}", agent, "base", Verdict.A if won[q] else Verdict.B) for q in range(queries)]
    return rows


def test_a_leaderboard_says_which_neighbours_are_separable_and_what_it_would_take() -> None:
    rated = rate(verdicts({"top": 90, "good": 60, "like": 57, "same": 57}), QUICK)
    assert [(pair.better, pair.worse) for pair in rated.neighbours][:2] == [("top", "good"), ("good", "like")]
    top, close, equal, _ = rated.neighbours
    assert (top.separable, top.queries_needed) == (True, 0)
    assert top.low > 0
    assert not close.separable
    assert close.low < 0 < close.high
    assert close.queries_needed is not None
    assert close.queries_needed > 500
    assert (equal.separable, equal.queries_needed) == (False, None)
    assert all(pair.p <= pair.p_holm for pair in rated.pairs)
    groups_of = {line.agent: line.group for line in rated.agents}
    ranks = {line.agent: (line.rank_low, line.rank_high) for line in rated.agents}
    assert ranks["top"] == (1, 1)
    assert groups_of["top"] == "A"
    assert groups_of["like"] == groups_of["same"]
    assert ranks["like"] == ranks["same"]


def test_without_bootstrap_groups_come_from_the_sandwich_and_agree_with_it() -> None:
    rows = verdicts({"top": 90, "good": 60, "like": 57})
    analytic, resampled = (rate(rows, dataclasses.replace(QUICK, bootstrap=n)) for n in (0, 1000))
    assert [line.group for line in analytic.agents] == [line.group for line in resampled.agents]
    for one, two in zip(analytic.pairs, resampled.pairs, strict=True):
        assert one.low == pytest.approx(two.low, abs=0.15 * (two.high - two.low))
    assert rate(rows, dataclasses.replace(QUICK, bootstrap=1)).pairs[0].se > 0


def test_two_queries_and_wild_samples_still_give_finite_intervals() -> None:
    samples = np.zeros((200, 3))
    samples[:, 0] += np.random.default_rng(6).standard_cauchy(200) * 1e3 + 500.0
    joint = joint_differences(np.array([1.0, 0.0, 0.0]), (samples,), 2)
    assert np.isfinite(joint.half).all()
    assert not joint.different.any()
    assert joint.half[1, 2] == 0


def test_an_agent_entered_twice_is_tied_with_itself_and_moves_no_other_interval() -> None:
    rows = verdicts({"top": 90, "good": 60})
    twin = [dataclasses.replace(row, agent_a="twin") for row in rows if row.agent_a == "good"]
    alone, together = rate(rows, QUICK), rate(rows + twin, QUICK)
    (pair,) = [pair for pair in together.pairs if {pair.better, pair.worse} == {"good", "twin"}]
    assert (pair.separable, pair.queries_needed) == (False, None)
    widths = [
        next(pair.high - pair.low for pair in rated.pairs if {pair.better, pair.worse} == {"top", "good"})
        for rated in (alone, together)
    ]
    assert widths[1] == pytest.approx(widths[0], rel=0.15)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((12, 8, 40), "12 (8 to 40)"),
        ((85143, 185, None), "85,143 (at least 185)"),
        ((0, 0, 0), ""),
        ((None, None, None), ""),
    ],
)
def test_more_queries_are_said_with_their_ends_or_not_at_all(numbers: tuple[int | None, ...], said: str) -> None:
    number, low, high = numbers
    pair = PairDifference("x", "y", 1.0, 1.0, 1.0, 1.0, -1.0, 3.0, number == 0, number, low, high)
    assert more_needed(pair) == said
