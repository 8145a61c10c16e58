"""Bootstrap, sandwich, ranks and groups: what they cover, and what they refuse to claim."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.ratings import bootstrap as bootstrap_module
from arena.ratings.bootstrap import bootstrap
from arena.ratings.bradley_terry import BradleyTerrySettings, Ties, bradley_terry, sandwich
from arena.ratings.games import Floats, Games
from arena.ratings.ranks import competition_ranks, groups, joint_differences, paired_tests, rank_intervals


def simulated(
    rng: np.random.Generator, *, spread: float, queries: int = 30, per_query: int = 20, agents: int = 3
) -> Games:
    """Games between equal agents; on each query every agent is off its strength by its own normal(0, spread)."""
    query = np.repeat(np.arange(queries), per_query)
    a = rng.integers(0, agents, query.size)
    b = (a + rng.integers(1, agents, query.size)) % agents
    strength = rng.normal(0, spread, (queries, agents))
    chance = 1 / (1 + np.exp(strength[query, b] - strength[query, a]))
    score = np.where(rng.random(query.size) < 0.2, 0.5, (rng.random(query.size) < chance) * 1.0)
    names = tuple(f"agent_{i}" for i in range(agents))
    return Games(names, a.astype(np.int32), b.astype(np.int32), score, query.astype(np.int32), a_shown_first=True)


def repeated(games: Games, times: int) -> Games:
    assert games.cluster is not None
    return Games(*(games.agents,), *(np.tile(c, times) for c in (games.a, games.b, games.score, games.cluster)))


def width(games: Games, *, by_query: bool) -> Floats:
    drawn = bootstrap(games, bradley_terry(games), 300, by_query=by_query)
    assert drawn is not None
    low, high = drawn.interval()
    return high - low


def test_intervals_by_query_are_wider_where_verdicts_depend_on_the_query() -> None:
    games = simulated(np.random.default_rng(0), spread=1.5)
    assert (width(games, by_query=True) > 1.5 * width(games, by_query=False)).all()


def test_intervals_by_query_cover_the_truth_where_those_by_game_do_not() -> None:
    rng = np.random.default_rng(5)
    hits = {True: 0, False: 0}
    trials = 60
    for _ in range(trials):
        games = simulated(rng, spread=1.5)
        fitted = bradley_terry(games)
        for by_query in hits:
            drawn = bootstrap(games, fitted, 200, by_query=by_query)
            assert drawn is not None
            low, high = drawn.interval()
            hits[by_query] += int(low[0] <= 1000 <= high[0])
    assert hits[True] >= 0.85 * trials
    assert hits[False] < 0.75 * trials


@pytest.mark.parametrize("position", [False, True])
@pytest.mark.parametrize("by_query", [False, True])
def test_sandwich_and_bootstrap_agree(position: bool, by_query: bool) -> None:
    games = simulated(np.random.default_rng(1), spread=1.0, queries=80)
    fitted = bradley_terry(games, BradleyTerrySettings(position=position))
    robust, drawn = sandwich(games, fitted, by_query=by_query), bootstrap(games, fitted, 1000, by_query=by_query)
    assert robust is not None
    assert drawn is not None
    assert drawn.by == ("query" if by_query else "game")
    assert robust.clusters == drawn.units == (80 if by_query else 1600)
    np.testing.assert_allclose(np.sqrt(np.diag(robust.covariance)), drawn.samples.std(axis=0), rtol=0.1)
    assert (robust.position_sd is not None) == position


def test_the_sandwich_of_two_agents_is_that_of_a_proportion() -> None:
    zeros = np.zeros(20, np.int32)
    games = Games(("x", "y"), zeros, zeros + 1, (np.arange(20) < 14) * 1.0, np.arange(20, dtype=np.int32))
    robust = sandwich(games, bradley_terry(games))
    assert robust is not None
    gap = np.array([1, -1]) @ robust.covariance @ np.array([1, -1])
    assert gap == pytest.approx((400 / np.log(10)) ** 2 / (20 * 0.7 * 0.3) * 20 / 19)


def test_the_sandwich_by_game_equals_that_of_one_cluster_per_game() -> None:
    games = simulated(np.random.default_rng(2), spread=0.5)
    single = Games(games.agents, games.a, games.b, games.score, np.arange(len(games), dtype=np.int32))
    fitted = bradley_terry(games)
    by_game, by_cluster = sandwich(games, fitted, by_query=False), sandwich(single, fitted)
    assert by_game is not None
    assert by_cluster is not None
    np.testing.assert_allclose(by_game.covariance, by_cluster.covariance)


def test_copies_of_all_verdicts_do_not_narrow_the_interval() -> None:
    games = simulated(np.random.default_rng(3), spread=1.0)
    np.testing.assert_allclose(width(repeated(games, 10), by_query=True), width(games, by_query=True))
    once, tenfold = (sandwich(g, bradley_terry(g)) for g in (games, repeated(games, 10)))
    assert once is not None
    assert tenfold is not None
    np.testing.assert_allclose(tenfold.covariance, once.covariance)


def test_equal_seeds_give_equal_samples_however_they_are_chunked(monkeypatch: pytest.MonkeyPatch) -> None:
    games = simulated(np.random.default_rng(4), spread=1.0)
    fitted = bradley_terry(games)
    whole, other = bootstrap(games, fitted, 50, seed=1), bootstrap(games, fitted, 50, seed=2)
    monkeypatch.setattr(bootstrap_module, "_CELLS_IN_MEMORY", 300)
    chunked = bootstrap(games, fitted, 50, seed=1)
    assert whole is not None
    assert other is not None
    assert chunked is not None
    np.testing.assert_allclose(chunked.samples, whole.samples, atol=1e-9)
    assert (whole.samples != other.samples).any()


def test_every_sample_is_the_fit_of_its_own_games() -> None:
    games = simulated(np.random.default_rng(6), spread=1.0, queries=12)
    drawn = bootstrap(games, bradley_terry(games), 3, seed=9)
    weights = np.random.default_rng(9).multinomial(12, np.full(12, 1 / 12), size=3)
    assert drawn is not None
    for sample, weight in zip(drawn.samples, weights, strict=True):
        resampled = Games(games.agents, games.a, games.b, games.score, weight=weight[games.cluster].astype(float))
        np.testing.assert_allclose(sample, bradley_terry(resampled).ratings, atol=1e-6)


@pytest.mark.parametrize("ties", ["davidson", "half", "rao-kupper"])
def test_chord_iterations_end_where_newtons_method_does(ties: Ties, monkeypatch: pytest.MonkeyPatch) -> None:
    games = simulated(np.random.default_rng(11), spread=1.5, queries=25)
    fitted = bradley_terry(games, BradleyTerrySettings(ties=ties, position=True))
    by_chord = bootstrap(games, fitted, 60)
    monkeypatch.setattr(bootstrap_module, "_CHORD_STEPS", 1)  # none converges within one
    by_newton = bootstrap(games, fitted, 60)
    assert by_chord is not None
    assert by_newton is not None
    assert by_chord.not_converged == by_newton.not_converged == 0
    np.testing.assert_allclose(by_chord.samples, by_newton.samples, atol=1e-5)


def test_samples_without_a_maximum_are_counted_and_stay_finite() -> None:
    # Only query 0 holds a loss of agent 0, and about a third of all samples leave that query out.
    rows = [(0, 1, 0.0, 0), *[(0, 1, 1.0, q) for q in range(20)], *[(1, 2, q % 2, q) for q in range(20)]]
    rows += [(0, 2, 1.0, q) for q in range(20)]
    a, b, score, query = (np.array(column) for column in zip(*rows, strict=True))
    games = Games(("x", "y", "z"), *(c.astype(np.int32) for c in (a, b)), score.astype(float), query.astype(np.int32))
    fitted = bradley_terry(games)
    drawn = bootstrap(games, fitted, 500)
    assert not fitted.problems
    assert drawn is not None
    assert 0.3 < drawn.without_maximum / 500 < 0.45
    assert drawn.not_converged == 0
    assert np.abs(drawn.samples - 1000).max() < 2000


def test_one_query_gives_no_interval_instead_of_one_of_no_width() -> None:
    games = simulated(np.random.default_rng(7), spread=0.0, queries=1)
    fitted = bradley_terry(games)
    assert bootstrap(games, fitted) is None
    assert sandwich(games, fitted) is None


def test_five_wins_in_five_games_are_not_certainty() -> None:
    query = np.arange(5, dtype=np.int32)
    games = Games(("x", "y"), np.zeros(5, np.int32), np.ones(5, np.int32), np.ones(5), query)
    fitted = bradley_terry(games)
    drawn = bootstrap(games, fitted, 500)
    assert drawn is not None
    assert drawn.model_samples is not None
    low, high = drawn.interval()
    assert (high - low > 200).all()
    assert drawn.without_maximum == 500
    best, worst = rank_intervals(joint_differences(fitted.ratings, drawn.sample_sets, drawn.units))
    assert (best.tolist(), worst.tolist()) == ([1, 1], [2, 2])


def test_ranks_share_a_place_as_in_a_competition() -> None:
    ratings = np.array([1000.0, 1200.0, 1000.0 + 1e-9, 900.0])
    assert competition_ranks(ratings).tolist() == [2, 1, 2, 4]
    assert competition_ranks(np.array([ratings, -ratings])).tolist() == [[2, 1, 2, 4], [2, 4, 2, 1]]


def test_paired_tests_use_the_covariance_of_the_difference() -> None:
    # Two ratings that move together differ more surely than their own errors suggest.
    together = np.array([[100.0, 99.0], [99.0, 100.0]])
    alone = np.diag([100.0, 100.0])
    ratings = np.array([1010.0, 1000.0])
    assert paired_tests(ratings, (together,), 50).p[0, 1] < 1e-6
    assert paired_tests(ratings, (alone,), 50).p[0, 1] > 0.4
    assert paired_tests(ratings, (together, alone), 50).p[0, 1] > 0.4


def test_holm_multiplies_by_the_tests_left_and_never_decreases() -> None:
    tests = paired_tests(np.array([30.0, 10.0, 0.0]), (np.diag([50.0, 50.0, 50.0]),), 1000)
    p = np.sort(tests.p[np.triu_indices(3, k=1)])
    expected = np.maximum.accumulate(np.minimum(1, p * [3, 2, 1]))
    np.testing.assert_allclose(np.sort(tests.p_holm[np.triu_indices(3, k=1)]), expected)
    np.testing.assert_array_equal(tests.p_holm, tests.p_holm.T)
    assert tests.p_holm[0, 0] == 1


def test_equal_ratings_without_variance_are_not_different() -> None:
    assert paired_tests(np.array([1000.0, 1000.0]), (np.zeros((2, 2)),), 10).p.tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("apart", "expected"),
    [
        ([], ("A", "A", "A", "A")),
        ([(0, 1), (0, 2), (0, 3)], ("A", "B", "B", "B")),
        ([(0, 2), (0, 3), (1, 3)], ("A", "A-B", "B-C", "C")),
        ([(i, j) for i in range(4) for j in range(i)], ("A", "B", "C", "D")),
    ],
)
def test_agents_share_a_letter_where_they_cannot_be_told_apart(
    apart: list[tuple[int, int]], expected: tuple[str, ...]
) -> None:
    different = np.zeros((4, 4), np.bool_)
    for i, j in apart:
        different[i, j] = different[j, i] = True
    assert groups(np.array([4.0, 3.0, 2.0, 1.0]), different) == expected
    backwards = np.array([3, 2, 1, 0])
    assert groups(np.array([1.0, 2.0, 3.0, 4.0]), different[backwards][:, backwards]) == expected[::-1]


def test_letters_go_on_after_z() -> None:
    assert groups(-np.arange(28.0), ~np.eye(28, dtype=np.bool_))[24:] == ("Y", "Z", "AA", "AB")


@given(st.lists(st.booleans(), min_size=10, max_size=10))
def test_agents_that_differ_never_share_a_group(flags: list[bool]) -> None:
    different = np.zeros((5, 5), np.bool_)
    different[np.triu_indices(5, k=1)] = flags
    different |= different.T
    ranges = [(label.split("-")[0], label.split("-")[-1]) for label in groups(-np.arange(5.0), different)]
    for i, j in zip(*np.nonzero(different), strict=True):
        assert ranges[i][1] < ranges[j][0] or ranges[j][1] < ranges[i][0]
