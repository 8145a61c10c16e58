"""Elo: the sign of the expectation, conservation, seeds, independence of rows and memory."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from arena.ratings import elo as elo_module
from arena.ratings.elo import drawn, elo, pack, play, replay, resampled_elo, starts
from arena.ratings.games import Games
from arena.ratings.results import RatingSettings
from tests.support.elo import elo_online, expected_score


def games_of(a: list[int], b: list[int], score: list[float], agents: int, weight: list[float] | None = None) -> Games:
    return Games(
        tuple(f"agent_{i}" for i in range(agents)),
        np.array(a, np.int32),
        np.array(b, np.int32),
        np.array(score, np.float64),
        weight=None if weight is None else np.array(weight, np.float64),
    )


@st.composite
def tournaments(draw: st.DrawFn) -> Games:
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(1, 3), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=40
        )
    )
    a = [first for first, _, _ in rows]
    return games_of(a, [(first + step) % 4 for first, step, _ in rows], [score for _, _, score in rows], 4)


def test_seventy_percent_wins_end_about_147_points_apart() -> None:
    score = [1.0] * 1120 + [0.0] * 480
    first, second = elo(games_of([0] * 1600, [1] * 1600, score, 2)).mean(axis=0)
    assert first - second == pytest.approx(400 * np.log10(7 / 3), abs=8)


@given(tournaments())
def test_the_sum_of_ratings_is_conserved(games: Games) -> None:
    rated = elo(games, RatingSettings(tournaments=5))
    assert rated.sum(axis=1) == pytest.approx(4000, abs=1e-8)
    assert elo_online(games).sum() == pytest.approx(4000, abs=1e-8)


@given(tournaments(), st.randoms())
def test_neither_rows_nor_sides_change_the_result(games: Games, random: Random) -> None:
    order = np.array(random.sample(range(len(games)), len(games)))
    flip = np.array([random.random() < 0.5 for _ in order])
    a, b, score = games.a[order], games.b[order], games.score[order]
    other = Games(games.agents, np.where(flip, b, a), np.where(flip, a, b), np.where(flip, 1 - score, score))
    first, second = elo(games, RatingSettings(tournaments=7, seed=3)), elo(other, RatingSettings(tournaments=7, seed=3))
    assert first.tobytes() == second.tobytes()


def test_the_seed_decides_and_chunks_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(0, 4, 50)
    games = games_of(a.tolist(), ((a + 1) % 4).tolist(), rng.choice([0.0, 1.0], 50).tolist(), 4)
    whole = elo(games, RatingSettings(tournaments=20, seed=1))
    assert whole.tolist() != elo(games, RatingSettings(tournaments=20, seed=2)).tolist()
    monkeypatch.setattr(elo_module, "_BYTES_IN_MEMORY", 2 * 50 * 3)
    assert elo(games, RatingSettings(tournaments=20, seed=1)).tobytes() == whole.tobytes()


@pytest.mark.parametrize("agents", [2, 5, 40_000], ids=["2 agents", "5 agents", "64-bit codes"])
@pytest.mark.parametrize("scale", [400, 0.01], ids=["usual gaps", "gaps beyond the table"])
def test_tournaments_played_together_or_singly_have_the_same_bits(
    agents: int, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(0, agents, 300)
    b = (a + rng.integers(1, agents, a.size)) % agents
    games = games_of(a.tolist(), b.tolist(), rng.choice([0.0, 0.5, 1.0], a.size).tolist(), agents)
    settings = RatingSettings(tournaments=9, k=200, scale=scale)
    rated = []
    for lanes in (1, 100):
        monkeypatch.setattr(elo_module, "_WORTH_NUMPY", lanes)
        rated.append(elo(games, settings))
    assert rated[0].tobytes() == rated[1].tobytes()


@given(st.integers(1, 60), st.integers(0, 60), st.integers(0, 1000))
def test_games_are_drawn_as_a_shuffle_draws_them(size: int, number: int, seed: int) -> None:
    number, (start,) = min(size, number), starts(seed, 1)
    remaining = list(range(size))
    shuffled = []
    for step in range(number):
        (chosen,) = elo_module._draws(np.array([start]), np.array([step]), np.array([size]))
        shuffled.append(remaining[chosen])
        remaining[chosen] = remaining[step]
    codes = np.arange(size, dtype=np.uint16)
    assert drawn(codes, start, number).tolist() == shuffled


@pytest.mark.parametrize(("k", "rare", "forgets"), [(32, 0, True), (1, 0, False), (32, 5, False)])
def test_what_elo_has_forgotten_is_not_played(
    k: float, rare: int, forgets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    a = rng.integers(0, 3, 40_000)
    b = (a + rng.integers(1, 3, a.size)) % 3
    score = (rng.random(a.size) < 1 / (1 + 10 ** ((b - a) / 4))).astype(float)
    games = games_of([*a, *[3] * rare], [*b, *[0] * rare], [*score, *[1.0] * rare], 4 if rare else 3)
    how, begin = RatingSettings(k=k, tournaments=4), starts(0, 4)
    packed = pack(games.a, games.b, games.score, len(games.agents))
    all_played = replay([packed], how, begin)[0]
    monkeypatch.setattr(elo_module, "_FEWEST_GAMES", 1 << 10)
    finals = replay([packed], how, begin)[0]
    assert (finals.tobytes() != all_played.tobytes()) == forgets
    if forgets:
        monkeypatch.setattr(elo_module, "_BYTES_IN_MEMORY", 1)
        assert replay([packed], how, begin)[0].tobytes() == finals.tobytes(), "chunks decide nothing"
        whole = np.full((3, 4), 1000.0)
        orders = [drawn(packed.codes, start, packed.codes.size)[::-1] for start in begin]
        play([np.stack(orders, axis=1)], packed, how, whole)
        np.testing.assert_allclose(finals, whole.T, rtol=0, atol=1e-9)


def test_resampled_games_are_rated_as_if_each_sample_stood_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    a = rng.integers(0, 5, 60)
    games = games_of(a.tolist(), ((a + 1) % 5).tolist(), rng.choice([0.0, 0.5, 1.0], a.size).tolist(), 5)
    weights = rng.integers(0, 4, (8, a.size)).astype(np.float64)
    weights[3] = 0
    how = RatingSettings(tournaments=3, seed=2)
    expected = np.array([elo(replace(games, weight=row), how).mean(axis=0) for row in weights])
    for name, value in (("_GAMES_AT_ONCE", 100), ("_BYTES_IN_MEMORY", 700), ("_WORTH_NUMPY", 1)):
        monkeypatch.setattr(elo_module, name, value)
        assert resampled_elo(games, weights, how).tobytes() == expected.tobytes()


def test_each_step_is_the_textbook_update() -> None:
    rng = np.random.default_rng(4)
    a = rng.integers(0, 6, 500)
    b = (a + rng.integers(1, 6, a.size)) % 6
    score = np.where(rng.random(a.size) < 0.9, (a < b) * 1.0, 0.5)
    expected = np.full(6, 1500.0)
    for first, second, result in zip(a, b, score, strict=True):
        gain = 64 * (result - expected_score(expected[first], expected[second], 300))
        expected[first] += gain
        expected[second] -= gain
    rated = elo_online(games_of(a.tolist(), b.tolist(), score.tolist(), 6), k=64, initial=1500, scale=300)
    np.testing.assert_allclose(rated, expected, atol=1e-9)
    assert np.ptp(rated) > 500


def test_every_order_of_three_games_is_equally_likely() -> None:
    games = games_of([0, 0, 1], [1, 2, 2], [1.0, 0.0, 1.0], 3)
    packed = pack(games.a, games.b, games.score, 3)
    finals = replay([packed], RatingSettings(), starts(5, 6000))[0]
    orders, seen = np.unique(finals.round(6), axis=0, return_counts=True)
    assert len(orders) == 6
    assert np.abs(seen - 1000).max() < 4 * np.sqrt(1000)


def test_whole_weights_are_games_and_zero_is_none() -> None:
    unrolled = elo(games_of([0, 0, 0, 1], [1, 1, 1, 2], [1.0, 1.0, 1.0, 0.5], 3))
    weighted = elo(games_of([0, 1, 0], [1, 2, 2], [1.0, 0.5, 0.0], 3, weight=[3, 1, 0]))
    np.testing.assert_array_equal(weighted, unrolled)
    with pytest.raises(ValueError, match="whole"):
        elo(games_of([0], [1], [1.0], 2, weight=[0.5]))
