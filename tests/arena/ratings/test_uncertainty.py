"""What may be claimed of an order: intervals, ranks, tests and groups, what they cover, and queries needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from arena.boards.conclusion import more_needed
from arena.ratings import bootstrap as bootstrap_module
from arena.ratings.bootstrap import bootstrap
from arena.ratings.bradley_terry import BradleyTerry, BradleyTerrySettings, bradley_terry, sandwich
from arena.ratings.games import Games, GameVerdict
from arena.ratings.likelihood import TieModel
from arena.ratings.ranks import (
    JointDifferences,
    compare,
    competition_ranks,
    groups,
    joint_differences,
    paired_tests,
    rank_intervals,
)
from arena.ratings.ranks import queries_needed as needed
from arena.ratings.rate import rate, rate_games
from arena.ratings.results import PairDifference, RatingSettings, fewest_queries
from benchmarks.few_queries import World
from benchmarks.few_queries import simulated as simulated_world
from benchmarks.queries_needed import counted, first_pair
from judges.types import Verdict
from retrieval_eval.stats import Floats


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


def interval(games: Games, fitted: BradleyTerry, *, by_query: bool = True) -> tuple[Floats, Floats]:
    compared = compare(games, fitted, None, by_query=by_query, level=0.95, seed=0)
    assert compared is not None
    return compared.interval(fitted.ratings)


@pytest.mark.parametrize("position", [False, True])
@pytest.mark.parametrize("by_query", [False, True])
def test_sandwich_and_bootstrap_agree(position: bool, by_query: bool) -> None:
    games = simulated(np.random.default_rng(1), spread=1.0, queries=80)
    fitted = bradley_terry(games, BradleyTerrySettings(position=position))
    robust, drawn = sandwich(games, fitted, by_query=by_query), bootstrap(games, fitted, 1000, by_query=by_query)
    assert drawn.by == ("query" if by_query else "game")
    assert robust.clusters == drawn.units == (80 if by_query else 1600)
    np.testing.assert_allclose(np.sqrt(np.diag(robust.covariance)), drawn.samples.std(axis=0), rtol=0.1)
    assert (robust.position_sd is not None) == position


def test_the_sandwich_of_two_agents_is_that_of_a_proportion() -> None:
    zeros = np.zeros(20, np.int32)
    games = Games(("x", "y"), zeros, zeros + 1, (np.arange(20) < 14) * 1.0, np.arange(20, dtype=np.int32))
    robust = sandwich(games, bradley_terry(games))
    gap = np.array([1, -1]) @ robust.covariance @ np.array([1, -1])
    assert gap == pytest.approx((400 / np.log(10)) ** 2 / (20 * 0.7 * 0.3) * 20 / 19)


def test_the_sandwich_by_game_equals_that_of_one_cluster_per_game() -> None:
    games = simulated(np.random.default_rng(2), spread=0.5)
    single = Games(games.agents, games.a, games.b, games.score, np.arange(len(games), dtype=np.int32))
    fitted = bradley_terry(games)
    by_game, by_cluster = sandwich(games, fitted, by_query=False), sandwich(single, fitted)
    np.testing.assert_allclose(by_game.covariance, by_cluster.covariance)


def test_an_agent_is_as_uncertain_as_its_own_queries_are_few() -> None:
    games = simulated(np.random.default_rng(3), spread=1.0, queries=40, agents=4)
    rare = ((games.a != 3) & (games.b != 3)) | (games.cluster < 5)
    few = Games(games.agents, *(column[rare] for column in (games.a, games.b, games.score, games.cluster)))
    robust = sandwich(few, bradley_terry(few))
    assert robust.per_agent.tolist() == [40, 40, 40, 5]
    rated = rate_games(few, RatingSettings(tournaments=0, bootstrap=300, fragility="none"))
    last = next(row for row in rated.agents if row.agent == "agent_3")
    assert (last.rank_low, last.rank_high) == (1, 4)
    assert any(note.startswith("Too few queries of their own: agent_3 (5).") for note in rated.notes)
    assert all(not pair.separable for pair in rated.pairs if "agent_3" in (pair.better, pair.worse))


@pytest.mark.parametrize("own", [5, 40])
def test_intervals_hold_the_rating_of_an_agent_with_few_queries(own: int) -> None:
    held = 0
    for seed in range(200):
        games = simulated(np.random.default_rng(seed), spread=1.0, queries=40, per_query=12, agents=4)
        kept = ((games.a != 3) & (games.b != 3)) | (games.cluster < own)
        part = Games(games.agents, *(column[kept] for column in (games.a, games.b, games.score, games.cluster)))
        low, high = interval(part, bradley_terry(part))
        held += bool(low[3] <= 1000 <= high[3])
    assert held >= 184  # of 200; one in a hundred thousand has fewer where 95 % hold


def test_equal_seeds_give_equal_samples_however_they_are_chunked(monkeypatch: pytest.MonkeyPatch) -> None:
    games = simulated(np.random.default_rng(4), spread=1.0)
    fitted = bradley_terry(games)
    whole, other = bootstrap(games, fitted, 50, seed=1), bootstrap(games, fitted, 50, seed=2)
    monkeypatch.setattr(bootstrap_module, "_CELLS_IN_MEMORY", 300)
    chunked = bootstrap(games, fitted, 50, seed=1)
    np.testing.assert_allclose(chunked.samples, whole.samples, atol=1e-9)
    assert (whole.samples != other.samples).any()


def test_every_sample_is_the_fit_of_its_own_games() -> None:
    games = simulated(np.random.default_rng(6), spread=1.0, queries=12)
    drawn = bootstrap(games, bradley_terry(games), 3, seed=9)
    weights = np.random.default_rng(9).multinomial(12, np.full(12, 1 / 12), size=3)
    for sample, weight in zip(drawn.samples, weights, strict=True):
        resampled = Games(games.agents, games.a, games.b, games.score, weight=weight[games.cluster].astype(float))
        np.testing.assert_allclose(sample, bradley_terry(resampled).ratings, atol=1e-6)


@pytest.mark.parametrize("ties", ["davidson", "half", "rao-kupper"])
def test_chord_iterations_end_where_newtons_method_does(ties: TieModel, monkeypatch: pytest.MonkeyPatch) -> None:
    games = simulated(np.random.default_rng(11), spread=1.5, queries=25)
    fitted = bradley_terry(games, BradleyTerrySettings(ties=ties, position=True))
    by_chord = bootstrap(games, fitted, 60)
    monkeypatch.setattr(bootstrap_module, "_CHORD_STEPS", 1)  # none converges within one
    by_newton = bootstrap(games, fitted, 60)
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
    assert 0.3 < drawn.without_maximum / 500 < 0.45
    assert drawn.not_converged == 0
    assert np.abs(drawn.samples - 1000).max() < 2000


def test_five_wins_in_five_games_are_not_certainty() -> None:
    query = np.arange(5, dtype=np.int32)
    games = Games(("x", "y"), np.zeros(5, np.int32), np.ones(5, np.int32), np.ones(5), query)
    fitted = bradley_terry(games)
    drawn = bootstrap(games, fitted, 500)
    assert drawn.model_samples is not None
    low, high = interval(games, fitted)
    assert (high - low > 200).all()
    assert drawn.without_maximum == 500
    best, worst = rank_intervals(joint_differences(fitted.ratings, drawn.sample_sets, drawn.units))
    assert (best.tolist(), worst.tolist()) == ([1, 1], [2, 2])


@pytest.mark.parametrize("ties", ["davidson", "half"])
def test_more_wins_never_say_less(ties: TieModel) -> None:
    won, p = [], []
    for queries in range(6, 30):
        games = [(f"q{number}", *pair) for number in range(queries) for pair in (("x", "y"), ("y", "x"))]
        verdicts = [GameVerdict(*game, Verdict.A if game[1] == "x" else Verdict.B) for game in games]
        (pair,) = rate(verdicts, RatingSettings(tournaments=0, fragility="none", ties=ties)).pairs
        won.append(pair.separable)
        p.append(1.0 if pair.p_holm is None else pair.p_holm)
    assert won == [False] * 4 + [True] * 20  # from ten queries on, which two agents need
    assert p == sorted(p, reverse=True)
    assert [one <= 0.05 for one in p] == won


def test_ranks_share_a_place_as_in_a_competition() -> None:
    ratings = np.array([1000.0, 1200.0, 1000.0 + 1e-9, 900.0])
    assert competition_ranks(ratings).tolist() == [2, 1, 2, 4]
    assert competition_ranks(np.array([ratings, -ratings])).tolist() == [[2, 1, 2, 4], [2, 4, 2, 1]]


def test_paired_tests_use_the_covariance_of_the_difference() -> None:
    # Two ratings that move together differ more surely than their own errors suggest.
    together = np.array([[100.0, 99.0], [99.0, 100.0]])
    alone = np.diag([100.0, 100.0])
    ratings = np.array([1010.0, 1000.0])
    assert paired_tests(ratings, (together,), 50)[0, 1] < 1e-6
    assert paired_tests(ratings, (alone,), 50)[0, 1] > 0.4
    assert paired_tests(ratings, (together, alone), 50)[0, 1] > 0.4


def test_equal_ratings_without_variance_are_not_different() -> None:
    assert paired_tests(np.array([1000.0, 1000.0]), (np.zeros((2, 2)),), 10).tolist() == [[1, 1], [1, 1]]


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


QUICK = RatingSettings(bootstrap=200, tournaments=5)
TRIALS = 200


def estimated(rng: np.random.Generator, truth: Floats, queries: int, level: float = 0.95) -> JointDifferences:
    """Intervals from the means of scores on queries, which disagree about agents, and 1000 resamples of queries."""
    scores = (
        truth + rng.normal(size=(queries, 1)) + rng.normal(0, np.linspace(0.5, 2, truth.size), (queries, truth.size))
    )
    weights = rng.multinomial(queries, np.full(queries, 1 / queries), size=1000) / queries
    return joint_differences(scores.mean(axis=0), (weights @ scores,), queries, level)


def misses(level: float, *, queries: int) -> tuple[float, float]:
    """How often any true rank, and any true difference, is outside its interval."""
    rng = np.random.default_rng(11)
    truth = np.array([0.0, 0.0, 0.0, 0.3, 0.35, 1.0])
    # Agents that tie may take any of the ranks that they share; all must be inside.
    best, worst = competition_ranks(truth), truth.size + 1 - competition_ranks(-truth)
    of_ranks = of_differences = 0
    for _ in range(TRIALS):
        joint = estimated(rng, truth, queries, level)
        low, high = rank_intervals(joint)
        of_ranks += bool((low > best).any() or (high < worst).any())
        of_differences += bool((joint.difference - (truth[:, np.newaxis] - truth) > joint.half + 1e-9).any())
    return of_ranks / TRIALS, of_differences / TRIALS


@pytest.mark.parametrize(("level", "queries"), [(0.8, 25), (0.95, 8)])
def test_all_ranks_are_inside_their_intervals_at_once(level: float, queries: int) -> None:
    of_ranks, of_differences = misses(level, queries=queries)
    noise = 2 * np.sqrt(level * (1 - level) / TRIALS)
    assert of_ranks <= 1 - level + noise
    assert 1 - level - 2 * noise <= of_differences <= 1 - level + noise


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
    ((number, low, high),) = needed(np.array([difference]), np.array([se]), np.array([1.96 * se]), 100)
    assert number == pytest.approx(785 - 100, rel=0.1)
    assert low < number
    assert high is None


def test_no_queries_are_needed_where_the_interval_leaves_out_zero_and_none_help_equals() -> None:
    gaps = np.array([30.0, -30.0, 0.0, 0.01])
    found = needed(gaps, np.full(4, 10.0), np.full(4, 25.0), 50)
    assert found == [(0, 0, 0), (0, 0, 0), (None, None, None), (None, None, None)]


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
    assert close.queries_needed > 500
    assert (equal.separable, equal.queries_needed) == (False, None)
    assert all((pair.p_holm <= 0.05) == pair.separable for pair in rated.pairs)
    groups_of = {line.agent: line.group for line in rated.agents}
    ranks = {line.agent: (line.rank_low, line.rank_high) for line in rated.agents}
    assert ranks["top"] == (1, 1)
    assert groups_of["top"] == "A"
    assert groups_of["like"] == groups_of["same"]
    assert ranks["like"] == ranks["same"]


def test_without_bootstrap_groups_come_from_the_sandwich_and_agree_with_it() -> None:
    rows = verdicts({"top": 90, "good": 60, "like": 57})
    analytic, resampled = (rate(rows, structs.replace(QUICK, bootstrap=n)) for n in (0, 400))
    assert [line.group for line in analytic.agents] == [line.group for line in resampled.agents]
    for one, two in zip(analytic.pairs, resampled.pairs, strict=True):
        assert one.low == pytest.approx(two.low, abs=0.15 * (two.high - two.low))
    assert rate(rows, structs.replace(QUICK, bootstrap=1)).pairs[0].se > 0


def test_two_queries_and_wild_samples_still_give_finite_intervals() -> None:
    samples = np.zeros((200, 3))
    samples[:, 0] += np.random.default_rng(6).standard_cauchy(200) * 1e3 + 500.0
    joint = joint_differences(np.array([1.0, 0.0, 0.0]), (samples,), 2)
    assert np.isfinite(joint.half).all()
    assert not joint.different.any()
    assert joint.half[1, 2] == 0


def test_an_agent_entered_twice_is_tied_with_itself_and_moves_no_other_interval() -> None:
    rows = verdicts({"top": 90, "good": 60})
    twin = [structs.replace(row, agent_a="twin") for row in rows if row.agent_a == "good"]
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


@pytest.mark.parametrize(("agents", "enough"), [(2, 10), (3, 10), (4, 15), (6, 20), (24, 40)])
def test_more_agents_need_more_queries(agents: int, enough: int) -> None:
    assert fewest_queries(agents) == enough


def test_below_that_no_pair_is_separable_ranks_are_open_and_a_note_says_so() -> None:
    strengths = (0.0, 0.0, 9.0)
    few, enough = (
        rate_games(
            simulated_world(World("", strengths, 4, 0.1), n, np.random.default_rng(3)), RatingSettings(tournaments=0)
        )
        for n in (9, 10)
    )
    assert not any(pair.separable for pair in few.pairs)
    assert {row.group for row in few.agents} == {"A"}
    assert {(row.rank_low, row.rank_high) for row in few.agents} == {(1, 3)}
    assert all(pair.low <= 0 <= pair.high for pair in few.pairs)
    said = "Too few queries (9): intervals miss too often, so no agent is told from another; 3 agents need at least 10."
    assert said in few.notes
    assert enough.agents[0].rank_high == 1
    assert not any(note.startswith("Too few") for note in enough.notes)
