"""Covariates: the written likelihood, planted effects, standard errors, and what cannot be estimated."""

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.optimize import minimize

from arena.ratings import covariates as covariates_module
from arena.ratings.bradley_terry import BradleyTerrySettings
from arena.ratings.covariates import Controlled, controlled_ratings, standardised_difference
from arena.ratings.games import Games
from arena.ratings.likelihood import TieModel
from retrieval_eval.stats import Floats

POINTS = 400 / np.log(10)


def by_agent(found: Controlled, field: str = "rating") -> Floats:
    """A figure of each agent, in the order of their names."""
    return np.array([getattr(row, field) for row in sorted(found.agents, key=lambda row: row.agent)], np.float64)


def planted(
    rng: np.random.Generator, n: int, strengths: Floats, beta: Floats, position: float = 0.0
) -> tuple[Games, dict[str, Floats]]:
    """Davidson games in which better agents write shorter, and the judge likes length."""
    size = strengths.size
    a = rng.integers(0, size, n)
    b = (a + rng.integers(1, size, n)) % size
    z = rng.normal(size=(n, beta.size))
    z[:, 0] -= strengths[a] - strengths[b]
    gap = strengths[a] - strengths[b] + position + z @ beta
    chance = np.stack([np.exp(gap / 2), np.full(n, 0.5), np.exp(-gap / 2)], axis=1)
    chance /= chance.sum(axis=1, keepdims=True)
    score = np.array([1.0, 0.5, 0.0])[(rng.random(n)[:, np.newaxis] > chance.cumsum(axis=1)).sum(axis=1)]
    names = tuple(f"agent_{i}" for i in range(size))
    cluster = rng.integers(0, max(2, n // 20), n).astype(np.int32)
    games = Games(names, a.astype(np.int32), b.astype(np.int32), score, cluster, a_shown_first=True)
    return games, {f"z{i}": column for i, column in enumerate(z.T)}


def written_likelihood(ties: TieModel, games: Games, z: Floats, x: Floats) -> float:
    """Minus the log-likelihood as the papers write it, with the agents' strengths summing to anything."""
    size, extra = len(games.agents), z.shape[1]
    gap = x[games.a] - x[games.b] + z @ x[size : size + extra]
    if ties == "rao-kupper":
        win, loss = 1 / (1 + np.exp(x[-1] - gap)), 1 / (1 + np.exp(x[-1] + gap))
        chance = np.select([games.score == 1, games.score == 0], [win, loss], 1 - win - loss)
        return -float(games.weights @ np.log(np.maximum(chance, 1e-300)))
    nu = np.exp(x[-1]) if ties == "davidson" else 0.0
    total = np.exp(gap / 2) + np.exp(-gap / 2) + nu
    tied = np.log(nu) if ties == "davidson" else 0.0
    return -float(games.weights @ (np.where(games.score == 0.5, tied, (games.score - 0.5) * gap) - np.log(total)))


def by_scipy(ties: TieModel, games: Games, z: Floats) -> Floats:
    size = len(games.agents)
    start = np.zeros(size + z.shape[1] + (ties != "half"))
    if ties != "half":
        start[-1] = 0.5
    found = minimize(
        lambda x: written_likelihood(ties, games, z, x) + x[:size].sum() ** 2,
        start,
        method="BFGS",
        options={"gtol": 1e-6, "maxiter": 2000},
    )
    assert np.abs(found.jac).max() < 0.05
    return np.asarray(found.x)


@pytest.mark.parametrize("position", [False, True])
@pytest.mark.parametrize("ties", ["davidson", "half", "rao-kupper"])
def test_covariates_agree_with_a_general_optimiser(ties: TieModel, position: bool) -> None:
    games, z = planted(np.random.default_rng(1), 600, np.array([0.5, 0.0, -0.5, 0.2]), np.array([0.8, -0.3]))
    games = replace(games, weight=np.random.default_rng(2).integers(0, 3, len(games)).astype(float))
    fitted = controlled_ratings(games, z, BradleyTerrySettings(ties=ties, position=position))
    columns = np.column_stack([np.ones(len(games))] * position + list(z.values()))
    oracle = by_scipy(ties, games, columns)
    np.testing.assert_allclose(by_agent(fitted), 1000 + POINTS * (oracle[:4] - oracle[:4].mean()), atol=0.01)
    effects = [effect.points for effect in fitted.effects]
    np.testing.assert_allclose(effects, POINTS * oracle[4 + position : 6 + position], atol=0.01)
    assert fitted.converged
    assert not fitted.problems
    if position:
        assert fitted.position_effect == pytest.approx(POINTS * oracle[4], abs=0.01)
    if ties != "half":
        assert fitted.tie_parameter == pytest.approx(np.exp(oracle[-1]), abs=1e-4)


@pytest.mark.parametrize("by_query", [False, True])
def test_standard_errors_are_the_spread_over_simulations(by_query: bool) -> None:
    rng = np.random.default_rng(5)
    drawn = [
        controlled_ratings(*planted(rng, 400, np.array([0.4, 0.0, -0.4]), np.array([0.7])), by_query=by_query)
        for _ in range(50)
    ]
    spread = np.std([fit.effects[0].points for fit in drawn])
    assert np.mean([fit.effects[0].sd or 0.0 for fit in drawn]) == pytest.approx(spread, rel=0.2)
    errors = np.mean([by_agent(fit, "standard_error") for fit in drawn], axis=0)
    np.testing.assert_allclose(errors, np.std([by_agent(fit) for fit in drawn], axis=0), rtol=0.2)


@pytest.mark.parametrize("by_query", [False, True])
def test_whole_weights_are_repeated_games(by_query: bool) -> None:
    games, z = planted(np.random.default_rng(6), 300, np.array([0.4, 0.0, -0.4]), np.array([0.7]))
    times = np.random.default_rng(7).integers(0, 4, len(games))
    weighted = controlled_ratings(replace(games, weight=times.astype(float)), z, by_query=by_query)
    a, b, score, cluster = (np.repeat(c, times) for c in (games.a, games.b, games.score, games.cluster))
    rows = Games(games.agents, a, b, score, cluster, a_shown_first=True)
    repeated = controlled_ratings(rows, {"z0": np.repeat(z["z0"], times)}, by_query=by_query)
    assert weighted.clusters == repeated.clusters
    for field in ("rating", "standard_error"):
        np.testing.assert_allclose(by_agent(weighted, field), by_agent(repeated, field), atol=1e-5)


def test_a_start_from_a_sample_of_games_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    games, z = planted(np.random.default_rng(8), 3000, np.array([0.4, 0.0, -0.4]), np.array([0.7]))
    plain = controlled_ratings(games, z)
    monkeypatch.setattr(covariates_module, "_SAMPLED_FROM", 1000)
    np.testing.assert_allclose(by_agent(controlled_ratings(games, z)), by_agent(plain), atol=1e-6)


def test_a_covariate_that_decides_every_game_is_named_and_stays_finite() -> None:
    games, z = planted(np.random.default_rng(9), 200, np.array([0.2, 0.0, -0.2]), np.array([0.5]))
    decided = replace(games, score=(z["z0"] > 0) * 1.0)
    fitted = controlled_ratings(decided, {"words": z["z0"]})
    assert [problem.cause for problem in fitted.problems] == ["covariates"]
    assert "words" in fitted.problems[0].message
    assert fitted.converged
    assert 0 < fitted.effects[0].points < 10_000


def test_a_covariate_that_strengths_or_order_imitate_is_refused_by_name() -> None:
    games, z = planted(np.random.default_rng(10), 200, np.array([0.2, 0.0, -0.2]), np.array([0.5]))
    mean_length = np.array([3.0, 7.0, 1.0])
    with pytest.raises(ValueError, match="'mean length'"):
        controlled_ratings(games, {**z, "mean length": mean_length[games.a] - mean_length[games.b]})
    with pytest.raises(ValueError, match="'first'"):
        controlled_ratings(games, {**z, "first": np.ones(len(games))}, BradleyTerrySettings(position=True))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([], "at least one"),
        ([np.zeros(200)], "same for both"),
        ([np.full(200, np.nan)], "missing"),
        ([np.ones(3)], "3"),
    ],
)
def test_columns_without_information_are_refused(values: list[Floats], says: str) -> None:
    games, _ = planted(np.random.default_rng(11), 200, np.array([0.2, 0.0, -0.2]), np.array([0.5]))
    with pytest.raises(ValueError, match=says):
        controlled_ratings(games, dict.fromkeys("z", values[0]) if values else {})


def test_differences_are_in_standard_deviations_of_the_quantity() -> None:
    first, second = np.array([100.0, 1000.0]), np.array([1000.0, 0.0])
    spread = np.log([100, 1000, 1000, 1]).std()
    expected = np.array([-np.log(10), np.log(1000)]) / spread
    np.testing.assert_allclose(standardised_difference(first, second, log=True), expected)


def test_verdicts_that_never_vary_with_the_place_have_no_standard_error_of_its_effect() -> None:
    rng = np.random.default_rng(3)
    a, b = np.array([0, 0, 1] * 20, np.int32), np.array([1, 2, 2] * 20, np.int32)
    won = rng.random(60) < 0.6
    both = np.concatenate([a, b]), np.concatenate([b, a]), np.concatenate([won, ~won]).astype(float)
    games = Games(("x", "y", "z"), *both, np.tile(np.arange(60, dtype=np.int32), 2), a_shown_first=True)
    longer = rng.normal(size=60)
    fitted = controlled_ratings(
        games, {"length": np.concatenate([longer, -longer])}, BradleyTerrySettings(position=True)
    )
    assert fitted.position_effect == pytest.approx(0, abs=1e-6)
    assert fitted.position_sd is None, (
        "the order of a game never mattered: +0.0 with a standard error of 0.0 is no finding"
    )
