"""Panels: the vote's rules, and ratings in which random and adversarial judges get their due."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import kendalltau

from arena.ratings.bradley_terry import BradleyTerrySettings, bradley_terry
from arena.ratings.games import Floats, Games, GameVerdict, tabulate
from arena.ratings.panel import (
    DiscriminationModel,
    JudgedScores,
    JudgeWeight,
    PanelRatings,
    PanelSettings,
    panel_ratings,
)
from judges.types import Verdict

A, B, TIE = Verdict
MIXED = {"sharp": 1.3, "plain": 1.0, "dull": 0.7, "random": 0.0, "adversary": -1.0}


def simulated(
    seed: int, judges: dict[str, float], *, agents: int = 8, queries: int = 30, per_query: int = 8, ties: float = 0.15
) -> tuple[Floats, list[GameVerdict]]:
    """True strengths, and verdicts of judges of the given discriminations, of which a share are ties by chance."""
    rng = np.random.default_rng(seed)
    strengths = rng.normal(0, 0.8, agents)
    pairs = np.stack(np.triu_indices(agents, k=1), axis=1)
    rows = []
    for query in range(queries):
        for i, j in rng.permuted(rng.permutation(pairs)[:per_query], axis=1):
            for judge, own in judges.items():
                chance = 1 / (1 + np.exp(-own * (strengths[i] - strengths[j])))
                verdict = TIE if rng.random() < ties else A if rng.random() < chance else B
                rows.append(GameVerdict(f"q{query}", f"agent_{i}", f"agent_{j}", verdict, judge))
    return strengths, rows


def by_name(panel: PanelRatings) -> dict[str, JudgeWeight]:
    return {weight.judge: weight for weight in panel.judges}


def plain_pool(rows: list[GameVerdict]) -> Floats:
    table = tabulate(rows)
    games = Games(table.agents, table.a, table.b, (table.outcome + 1) / 2)
    return bradley_terry(games, BradleyTerrySettings(ties="half")).ratings


def test_random_and_adversarial_judges_are_known_by_their_discrimination() -> None:
    panel = panel_ratings(simulated(1, MIXED, queries=60)[1])
    weights = by_name(panel)
    assert panel.converged
    assert not panel.problems
    assert abs(weights["random"].discrimination) < 0.3
    assert (weights["random"].low or 0) < 0 < (weights["random"].high or 0)
    assert (weights["adversary"].high or 0) < 0
    for honest in ("sharp", "plain", "dull"):
        assert (weights[honest].low or 0) > 0
    assert weights["sharp"].discrimination > weights["dull"].discrimination
    assert weights["adversary"].upsets > 0.5 > weights["sharp"].upsets
    assert np.mean([abs(weight.discrimination) for weight in panel.judges]) == pytest.approx(1)


def test_weighing_judges_orders_agents_better_than_pooling_them_alike() -> None:
    taus = []
    for seed in range(12):
        strengths, rows = simulated(seed, MIXED)
        found = (panel_ratings(rows).ratings, plain_pool(rows))
        taus.append([kendalltau(strengths, ratings).statistic for ratings in found])
    weighed, pooled = np.mean(taus, axis=0)
    assert weighed > pooled + 0.1


def test_intervals_cover_true_discriminations_and_strengths() -> None:
    judges = {"one": 1.5, "two": 1.0, "three": 0.5}
    hits, of_ratings = [], []
    for seed in range(40):
        strengths, rows = simulated(seed, judges, agents=5, ties=0.0)
        panel = panel_ratings(rows)
        truth = 1000 + 400 / np.log(10) * (strengths - strengths.mean())
        assert panel.low is not None
        assert panel.high is not None
        of_ratings += ((panel.low <= truth) & (truth <= panel.high)).tolist()
        hits += [(w.low or 0) <= judges[w.judge] <= (w.high or 0) for w in panel.judges]
    assert np.mean(hits) > 0.9
    assert np.mean(of_ratings) > 0.9


def test_equal_judges_give_the_ratings_of_their_pool() -> None:
    rows = simulated(3, {"one": 1.0}, queries=40)[1]
    twice = rows + [dataclasses.replace(row, judge="two") for row in rows]
    panel = panel_ratings(twice, PanelSettings(prior_games=1e-6))
    assert [weight.discrimination for weight in panel.judges] == pytest.approx([1, 1], abs=1e-5)
    np.testing.assert_allclose(panel.ratings, plain_pool(rows), atol=0.05)


def test_derivatives_of_the_model_are_those_of_its_likelihood() -> None:
    rng = np.random.default_rng(5)
    a = rng.integers(0, 4, 60)
    judged = JudgedScores(
        rng.integers(0, 3, 60), a, (a + rng.integers(1, 4, 60)) % 4, rng.choice([0, 0.5, 1], 60), rng.integers(0, 9, 60)
    )
    model = DiscriminationModel(judged, 4, 3, 0.3)
    x = rng.normal(size=7)
    np.testing.assert_allclose(model.slope(x), approx_fprime(x, model.loss, 1e-6), rtol=1e-3, atol=1e-3)
    numeric = [approx_fprime(x, lambda point, i=i: model.slope(point)[i], 1e-6) for i in range(7)]
    np.testing.assert_allclose(model.curvature(x), numeric, rtol=1e-3, atol=1e-3)
    fixed = model.normalised(x)
    np.testing.assert_allclose(model.normalised(fixed), fixed)
    assert model.loss(fixed) == pytest.approx(model.loss(x))


def test_a_judge_without_an_upset_and_agents_without_a_loss_stay_finite_and_are_named() -> None:
    rows = [GameVerdict(f"q{i}", "x", "y", A, judge) for i in range(10) for judge in ("one", "two")]
    panel = panel_ratings(rows)
    assert panel.converged
    assert {problem.cause for problem in panel.problems} == {"undefeated", "winless"}
    assert [weight.bounded for weight in panel.judges] == [False, False]
    assert np.abs(panel.ratings - 1000).max() < 2000
    noisy = [*rows, *(GameVerdict(f"q{i}", "x", "y", B, "two") for i in range(10, 13))]
    assert [weight.bounded for weight in panel_ratings(noisy).judges] == [False, True]


def test_without_queries_every_verdict_is_a_game() -> None:
    rows = [dataclasses.replace(row, query_id=None) for row in simulated(1, MIXED)[1]]
    panel = panel_ratings(rows)
    assert panel.converged
    assert sum(weight.games for weight in panel.judges) == len(rows)


def test_one_query_gives_a_panel_without_intervals() -> None:
    panel = panel_ratings([GameVerdict("q", "x", "y", A, "one"), GameVerdict("q", "x", "z", B, "two")])
    assert panel.low is None
    assert panel.judges[0].low is None
