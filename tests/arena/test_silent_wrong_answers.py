"""Ratings that other tools get wrong without a word; each is right here, or says what is wrong with it."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from arena.data.verdicts import read_verdicts
from arena.ratings.bradley_terry import BradleyTerrySettings, bradley_terry
from arena.ratings.elo import EloSettings, elo
from arena.ratings.games import Games, GameVerdict, as_games
from arena.ratings.notes import notes
from arena.ratings.rate import Ratings, RatingSettings, rate, rate_games
from judges.errors import DataError, InputError
from judges.types import Verdict
from tests.support.elo import elo_online

A, B, TIE = Verdict
QUICK = RatingSettings(bootstrap=200, tournaments=10)
POINTS = 400 / math.log(10)


def cycle(queries: int = 30) -> list[GameVerdict]:
    """Three agents, each of which has beaten each, the first in the alphabet most often."""
    rows = []
    for q in range(queries):
        for first, second in (("x", "y"), ("y", "z"), ("x", "z")):
            rows.append(GameVerdict(f"q{q}", first, second, B if q % 3 == 0 else TIE if q % 5 == 0 else A))
    return rows


def flags(rated: Ratings) -> dict[str, tuple[str, ...]]:
    return {line.agent: line.flags for line in rated.agents}


def noted(rated: Ratings, *words: str) -> bool:
    return any(all(word in note for word in words) for note in rated.notes)


def test_a_disconnected_graph_is_named_and_no_order_across_it_is_claimed() -> None:
    island = [GameVerdict(f"q{q}", "p", "r", A if q % 3 else B) for q in range(30)]
    rated = rate([*cycle(), *island], QUICK)
    assert flags(rated) == {"x": (), "y": (), "z": (), "p": ("disconnected",), "r": ("disconnected",)}
    assert noted(rated, "no games link", "p, r")
    across = [pair for pair in rated.pairs if (pair.better in "pr") != (pair.worse in "pr")]
    assert len(across) == 6
    assert not any(pair.separable for pair in across)


@pytest.mark.parametrize(("verdict", "cause"), [(A, "undefeated"), (B, "winless")])
def test_an_agent_without_a_loss_or_a_win_is_flagged_with_a_finite_rating_and_a_wide_interval(
    verdict: Verdict, cause: str
) -> None:
    rated = rate([*cycle(), *(GameVerdict(f"q{q}", "new", "y", verdict) for q in range(20))], QUICK)
    assert flags(rated)["new"] == (cause,)
    assert noted(rated, "new", "no upper limit" if verdict is A else "no lower limit")
    assert noted(rated, "weak prior")
    line = next(line for line in rated.agents if line.agent == "new")
    assert abs(line.bt - 1000) < 1500
    assert (line.bt_high or 0) - (line.bt_low or 0) > 400


def test_a_single_game_is_no_certainty() -> None:
    rated = rate([GameVerdict("q", "x", "y", A)], QUICK)
    assert flags(rated) == {"x": ("undefeated", "single_game"), "y": ("winless", "single_game")}
    assert noted(rated, "single game", "x, y")
    assert rated.agents[0].bt_low is None
    assert rated.agents[0].group == rated.agents[1].group


@pytest.mark.parametrize("winner", ["model_c", "", None, math.nan, "both", 0])
def test_an_unknown_or_missing_winner_is_neither_a_tie_nor_a_win(winner: object) -> None:
    rows = [*cycle(), GameVerdict("q0", "x", "y", winner)]  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"verdict 91: .* is not A, B or TIE"):
        rate(rows, QUICK)


@pytest.mark.parametrize("winner", ["w", "?", "model_c", "", "nan"])
def test_a_table_with_an_unknown_or_missing_winner_is_refused_with_its_line(tmp_path: Path, winner: str) -> None:
    path = tmp_path / "verdicts.csv"
    path.write_text(f"qid,agent_a,agent_b,winner\n1,x,y,x\n2,x,y,y\n3,x,y,{winner}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"verdicts\.csv:4: "):
        read_verdicts(path)


@pytest.mark.parametrize("name", ["", " ", None, math.nan])
def test_a_game_without_an_agent_is_refused(name: object) -> None:
    with pytest.raises(InputError, match="verdict 2: an agent's name is empty or missing"):
        rate([GameVerdict("q", "x", "y", A), GameVerdict("q", "x", name, A)], QUICK)  # type: ignore[arg-type]


def test_an_agent_against_itself_is_refused() -> None:
    with pytest.raises(InputError, match="'x' plays itself"):
        rate([GameVerdict("q", "x", "x", TIE)], QUICK)


@pytest.mark.parametrize("reconcile", [True, False])
def test_duplicate_rows_are_counted_and_noted_and_narrow_nothing(reconcile: bool) -> None:
    settings = dataclasses.replace(QUICK, reconcile=reconcile)
    once, often = rate(cycle(), settings), rate(cycle() * 100, settings)
    assert often.tally is not None
    assert often.tally.repeated == 99 * 90
    assert noted(often, "8910 verdicts repeat")
    for one, other in zip(once.agents, often.agents, strict=True):
        assert other.agent == one.agent
        assert other.bt == pytest.approx(one.bt, abs=1e-6)
        assert (other.bt_low, other.bt_high) == pytest.approx((one.bt_low, one.bt_high), abs=1e-6)
        assert (other.rank_low, other.rank_high, other.group) == (one.rank_low, one.rank_high, one.group)
    for pair, same in zip(once.pairs, often.pairs, strict=True):
        assert same.p_holm == pytest.approx(pair.p_holm)
        assert same.queries_needed == pair.queries_needed


def test_duplicate_rows_that_contradict_the_wish_for_clusters_are_still_noted() -> None:
    rated = rate(cycle() * 2, dataclasses.replace(QUICK, cluster=False))
    assert noted(rated, "verdicts repeat")
    assert noted(rated, "treat games as independent")


def test_rows_without_queries_whose_repeats_nothing_can_tell_apart_come_with_a_warning() -> None:
    rated = rate([dataclasses.replace(row, query_id=None) for row in cycle()] * 2, QUICK)
    assert noted(rated, "name no query", "too narrow if queries repeat")


def test_a_chain_of_60_agents_is_exact() -> None:
    a = np.repeat(np.arange(59, dtype=np.int32), 2)
    games = Games(
        tuple(f"agent_{i:02d}" for i in range(60)), a, a + 1, np.tile([1.0, 0.0], 59), weight=np.tile([95.0, 5.0], 59)
    )
    rated = rate_games(games, dataclasses.replace(QUICK, bootstrap=0, fragility="none"))
    exact = -np.arange(60) * POINTS * math.log(19)
    bt = {line.agent: line.bt for line in rated.agents}
    np.testing.assert_allclose([bt[name] for name in games.agents], 1000 + exact - exact.mean(), atol=1e-6)
    assert rated.convergence.converged


def test_two_agents_at_60_to_40_are_not_equal() -> None:
    rated = rate([GameVerdict(f"q{q}", "x", "y", A if q % 5 < 3 else B) for q in range(100)], QUICK)
    assert rated.agents[0].bt - rated.agents[1].bt == pytest.approx(POINTS * math.log(1.5))
    assert [line.rank for line in rated.agents] == [1, 2]


def test_games_of_weight_zero_move_nothing() -> None:
    a, b = np.array([0, 0, 1, 1, 0], np.int32), np.array([1, 1, 2, 2, 2], np.int32)
    score = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    games = Games(("x", "y", "z"), a, b, score, weight=np.array([6.0, 4.0, 7.0, 3.0, 0.0]))
    without = Games(("x", "y", "z"), a[:4], b[:4], score[:4], weight=np.array([6.0, 4.0, 7.0, 3.0]))
    np.testing.assert_allclose(bradley_terry(games).ratings, bradley_terry(without).ratings, atol=1e-9)
    np.testing.assert_array_equal(
        elo(games, EloSettings(tournaments=5)).ratings, elo(without, EloSettings(tournaments=5)).ratings
    )


def test_a_hundred_thousand_games_leave_the_mean_rating_at_1000() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 10, 100_000)
    b = (a + rng.integers(1, 10, a.size)) % 10
    score = rng.choice([0.0, 0.5, 1.0], a.size)
    ratings = elo_online(Games(tuple("abcdefghij"), a.astype(np.int32), b.astype(np.int32), score))
    assert ratings.mean() == pytest.approx(1000, abs=1e-6)


def test_too_few_iterations_are_not_passed_off_as_a_result() -> None:
    games = as_games(cycle())
    stopped = bradley_terry(games, BradleyTerrySettings(max_iterations=1))
    assert not stopped.converged
    (said,) = notes(games, stopped, None, None, asked_for_samples=False, by_query=True)
    assert "did not converge in 1 iterations" in said
    assert "do not use these ratings" in said
