"""Bradley-Terry: derivatives, exactness against independent oracles, existence of the maximum."""

import choix
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from arena.ratings.bradley_terry import BradleyTerrySettings, bradley_terry, problems, unsettled
from arena.ratings.games import Games
from arena.ratings.likelihood import (
    ParameterForm,
    TieModel,
    gradient,
    gradient_on,
    information,
    log_posterior,
    maximise,
    pair_counts,
    signed_sums,
)
from arena.ratings.pairs import win_matrix

POINTS = 400 / np.log(10)
Row = tuple[int, int, float, float]


def games_of(rows: list[Row], agents: int | None = None, *, shown: bool = False) -> Games:
    """Games from (a, b, score of a, how often)."""
    a, b, score, weight = (np.array(column) for column in zip(*rows, strict=True))
    size = agents or int(max(a.max(), b.max())) + 1
    names = tuple(f"agent_{i:02d}" for i in range(size))
    return Games(
        names, a.astype(np.int32), b.astype(np.int32), score.astype(float), None, shown, weight.astype(np.float64)
    )


def edges(kind: str, size: int) -> list[tuple[int, int]]:
    half = size // 2
    cliques = [(i, j) for part in (range(half), range(half, size)) for i in part for j in part if i < j]
    return {
        "random": [(i, j) for i in range(size) for j in range(i + 1, size) if (i * 7 + j * 3) % 4 or j == i + 1],
        "chain": [(i, i + 1) for i in range(size - 1)],
        "bridge": [*cliques, (half - 1, half)],
        "star": [(0, i) for i in range(1, size)],
    }[kind]


def random_counts(kind: str, size: int) -> Games:
    rng = np.random.default_rng(size)
    pairs = edges(kind, size)
    return games_of([(i, j, s, float(rng.integers(1, 30))) for i, j in pairs for s in (1.0, 0.5, 0.0)])


@pytest.mark.parametrize("kind", ["random", "chain", "bridge", "star"])
def test_half_win_ties_agree_with_choix(kind: str) -> None:
    games = random_counts(kind, 12)
    matrix = win_matrix(games)
    oracle = choix.ilsr_pairwise_dense(2 * matrix.wins + matrix.ties, max_iter=10_000, tol=1e-11)
    fitted = bradley_terry(games, BradleyTerrySettings(ties="half"))
    np.testing.assert_allclose(fitted.ratings, 1000 + POINTS * (oracle - oracle.mean()), atol=1e-6)
    assert fitted.converged
    assert not fitted.problems


@pytest.mark.parametrize(("wins", "losses"), [(60, 40), (99, 1)])
def test_a_chain_of_60_agents_is_exact(wins: int, losses: int) -> None:
    rows = [(i, i + 1, score, float(n)) for i in range(59) for score, n in ((1.0, wins), (0.0, losses))]
    fitted = bradley_terry(games_of(rows))
    exact = -np.arange(60) * POINTS * np.log(wins / losses)
    np.testing.assert_allclose(fitted.ratings, 1000 + exact - exact.mean(), atol=1e-6)
    assert fitted.converged


@pytest.mark.parametrize(
    ("ties", "counts", "gap", "parameter"),
    [
        ("davidson", (60, 0, 40), POINTS * np.log(1.5), 0),
        ("davidson", (50, 30, 20), POINTS * np.log(50 / 20), 30 / np.sqrt(50 * 20)),
        ("half", (3, 2, 0), POINTS * np.log(4), None),  # under Davidson both gap and nu would grow for ever
        ("rao-kupper", (40, 20, 40), 0, 1.5),  # equal agents: P(tie) = (theta - 1) / (theta + 1)
    ],
)
def test_two_agents_have_a_closed_form(
    ties: TieModel, counts: tuple[int, ...], gap: float, parameter: float | None
) -> None:
    rows = [(0, 1, score, n) for score, n in zip((1.0, 0.5, 0.0), counts, strict=True)]
    fitted = bradley_terry(games_of(rows), BradleyTerrySettings(ties=ties))
    assert fitted.ratings[0] - fitted.ratings[1] == pytest.approx(gap, abs=1e-6)
    assert fitted.tie_parameter == (None if parameter is None else pytest.approx(parameter))
    assert not fitted.problems


def test_the_order_effect_is_the_log_odds_that_two_equal_agents_share() -> None:
    rows = [(0, 1, 1.0, 70), (0, 1, 0.0, 30), (1, 0, 1.0, 70), (1, 0, 0.0, 30)]
    fitted = bradley_terry(games_of(rows, shown=True), BradleyTerrySettings(position=True))
    assert fitted.position_effect == pytest.approx(POINTS * np.log(7 / 3))
    np.testing.assert_allclose(fitted.ratings, 1000)


def test_an_anchor_holds_its_rating() -> None:
    games = random_counts("random", 6)
    free, held = bradley_terry(games), bradley_terry(games, BradleyTerrySettings(anchor="agent_02", centre=500))
    assert held.ratings[2] == 500
    np.testing.assert_allclose(np.diff(held.ratings), np.diff(free.ratings))


MODELS: tuple[TieModel, ...] = ("half", "davidson", "rao-kupper")
FORMS = [(position, ties) for position in (False, True) for ties in MODELS]


@pytest.mark.parametrize(("position", "ties"), FORMS)
@pytest.mark.parametrize("prior", [0.0, 1.0])
def test_gradient_and_curvature_are_derivatives_of_the_likelihood(position: bool, ties: TieModel, prior: float) -> None:
    rng = np.random.default_rng(0)
    counts = pair_counts(random_counts("random", 5), ordered=False)
    form = ParameterForm(5, position, ties)
    prior_games = prior * np.arange(form.size)[np.newaxis]
    x = rng.normal(size=form.size)
    x[-1] = abs(x[-1])

    def at(point: np.ndarray) -> float:
        return float(log_posterior(form, counts, point[np.newaxis], prior_games)[0])

    def slope(point: np.ndarray) -> np.ndarray:
        return gradient(form, counts, point[np.newaxis], prior_games)[0]

    np.testing.assert_allclose(slope(x), approx_fprime(x, at, 1e-6), rtol=1e-3, atol=1e-2)
    again = gradient_on(form, counts, prior_games, signed_sums(counts))(x[np.newaxis])[0]
    np.testing.assert_allclose(again, slope(x), rtol=1e-12, atol=1e-11)
    curvature = information(form, counts, x[np.newaxis], prior_games)[0]
    numeric = -np.array([approx_fprime(x, lambda point, i=i: slope(point)[i], 1e-6) for i in range(form.size)])
    # Without a prior the common level is pinned, which differences of agents do not see.
    seen = np.eye(form.size)
    seen[:5, :5] -= 1 / 5
    np.testing.assert_allclose(seen @ curvature @ seen, seen @ numeric @ seen, rtol=1e-3, atol=1e-2)


def test_games_of_weight_zero_move_nothing() -> None:
    rows: list[Row] = [(0, 1, 1.0, 5), (0, 1, 0.0, 3), (1, 2, 1.0, 4), (1, 2, 0.5, 2), (2, 1, 1.0, 1)]
    without = bradley_terry(games_of(rows))
    with_zero = bradley_terry(games_of([*rows, (0, 2, 1.0, 0), (2, 0, 0.5, 0)]))
    np.testing.assert_allclose(with_zero.ratings, without.ratings, atol=1e-9)


@pytest.mark.parametrize("ties", MODELS)
def test_whole_weights_are_repeated_games(ties: TieModel) -> None:
    weighted = random_counts("random", 6)
    times = weighted.weight.astype(int)
    rows = Games(weighted.agents, *(np.repeat(c, times) for c in (weighted.a, weighted.b, weighted.score)))
    one, other = (bradley_terry(games, BradleyTerrySettings(ties=ties)) for games in (weighted, rows))
    np.testing.assert_array_equal(one.ratings, other.ratings)
    assert one.tie_parameter == other.tie_parameter


@pytest.mark.parametrize("ties", ["davidson", "rao-kupper"])
def test_without_ties_their_models_are_plain_bradley_terry(ties: TieModel) -> None:
    games = games_of([(0, 1, 1.0, 6), (0, 1, 0.0, 4), (1, 2, 1.0, 7), (1, 2, 0.0, 2)])
    fitted = bradley_terry(games, BradleyTerrySettings(ties=ties))
    half = bradley_terry(games, BradleyTerrySettings(ties="half"))
    np.testing.assert_allclose(fitted.ratings, half.ratings)
    assert fitted.tie_parameter == (0 if ties == "davidson" else 1)


def test_an_agent_without_games_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="agent_02"):
        bradley_terry(games_of([(0, 1, 1.0, 1), (0, 2, 1.0, 0)]))


CYCLE: list[Row] = [(0, 1, 1.0, 9), (1, 2, 1.0, 8), (2, 0, 1.0, 7), (0, 2, 1.0, 3)]


@pytest.mark.parametrize(
    ("rows", "causes"),
    [
        ([(0, 1, 1.0, 1)], {"agent_00": "undefeated", "agent_01": "winless"}),
        ([(0, 1, 1.0, 9), (1, 2, 1.0, 9)], {"agent_00": "undefeated", "agent_01": "separated", "agent_02": "winless"}),
        ([*CYCLE, (3, 0, 1.0, 20)], {"agent_03": "undefeated"}),
        ([*CYCLE, (3, 0, 0.0, 20), (3, 1, 0.0, 2)], {"agent_03": "winless"}),
        ([*CYCLE, (3, 4, 1.0, 5), (3, 4, 0.0, 5)], {"agent_03": "disconnected", "agent_04": "disconnected"}),
    ],
    ids=["single game", "order of three", "undefeated", "winless", "disconnected"],
)
def test_where_no_maximum_exists_the_agents_and_the_cause_are_named(rows: list[Row], causes: dict[str, str]) -> None:
    for ties in MODELS:
        fitted = bradley_terry(games_of(rows), BradleyTerrySettings(ties=ties))
        assert {name: problem.cause for problem in fitted.problems for name in problem.agents} == causes
        assert [fitted.agents[i] for i in np.flatnonzero(fitted.prior[: len(fitted.agents)])] == list(causes)
        assert fitted.converged
        assert np.abs(fitted.ratings - 1000).max() < 1000
        assert all(name in problem.message for problem in fitted.problems for name in problem.agents)


def test_the_prior_of_an_undefeated_agent_leaves_the_others_nearly_alone() -> None:
    fitted, without = bradley_terry(games_of([*CYCLE, (3, 0, 1.0, 20)])), bradley_terry(games_of(CYCLE))
    assert fitted.ratings.argmax() == 3
    np.testing.assert_allclose(np.diff(fitted.ratings[:3]), np.diff(without.ratings), atol=25)


@pytest.mark.parametrize(
    ("rows", "position", "cause"),
    [
        ([(0, 1, 1.0, 3), (0, 1, 0.5, 2)], False, "ties"),  # gap and nu grow for ever
        ([(0, 1, 0.5, 4), (1, 2, 0.5, 4)], False, "ties"),
        ([(0, 1, 1.0, 6), (0, 1, 0.0, 4)], True, "position"),  # strength by another name
        ([(0, 1, 1.0, 6), (1, 0, 1.0, 4)], True, "position"),  # an effect without limit
    ],
    ids=["ties run away", "all tied", "always first", "first always wins"],
)
def test_a_parameter_without_a_maximum_is_noticed_and_stays_finite(rows: list[Row], position: bool, cause: str) -> None:
    fitted = bradley_terry(games_of(rows, shown=True), BradleyTerrySettings(position=position))
    assert [problem.cause for problem in fitted.problems] == [cause]
    assert np.abs(fitted.ratings - 1000).max() < 1000
    assert abs(fitted.position_effect or 0) < 1000


@st.composite
def sparse_games(draw: st.DrawFn) -> Games:
    """Few games between few agents, so that about half have no maximum."""
    agents = draw(st.integers(2, 4))
    one = st.tuples(st.integers(0, agents - 1), st.integers(1, agents - 1), st.sampled_from([0.0, 0.5, 1.0]))
    rows = draw(st.lists(one, min_size=agents, max_size=12))
    played = {agent for first, step, _ in rows for agent in (first, (first + step) % agents)}
    extra = [(agent, 1, 0.5) for agent in range(agents) if agent not in played]
    return games_of([(first, (first + step) % agents, score, 1.0) for first, step, score in rows + extra], shown=True)


@settings(max_examples=40, deadline=None)
@given(sparse_games(), st.sampled_from(FORMS))
def test_a_maximum_is_found_exactly_where_one_is_said_to_exist(games: Games, shape: tuple[bool, TieModel]) -> None:
    form = ParameterForm(len(games.agents), *shape)
    counts = pair_counts(games, ordered=form.position)
    exists = not problems(form, counts, games.agents)
    assert exists == (not unsettled(form, counts).any())
    # Under a vanishing prior the data alone hold every parameter at a maximum, and none that runs away.
    none = np.zeros((1, form.size))
    weak = maximise(form, counts, none, none + 1e-4, max_iterations=400, tolerance=1e-7)
    held = np.linalg.eigvalsh(information(form, counts, weak.x, none)[0]).min()
    assert exists == (held > 3e-3)
    # Whatever the games, the fit with the prior where it is needed converges to a finite maximum.
    fitted = bradley_terry(games, BradleyTerrySettings(form.ties, form.position))
    assert fitted.converged
    assert fitted.gradient_norm < 1e-6
    assert np.abs(fitted.ratings - 1000).max() < 2000
