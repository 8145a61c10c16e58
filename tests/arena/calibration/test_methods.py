"""Methods against each other, judges for their money, and the reliability of people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from arena.calibration import Opinion
from arena.calibration.comparison import panel_gain
from arena.calibration.consensus import dawid_skene, majority
from arena.calibration.methods import Played, compare_methods
from arena.ratings.bradley_terry import BradleyTerrySettings, bradley_terry
from arena.ratings.results import RatingSettings
from arena.results.scores import people_methods
from retrieval_eval.stats.scores import Scores

AGENTS = ("a", "b", "c", "d")
QUERIES = tuple(f"q{at}" for at in range(30))


def means(name: str, strengths: list[float], seed: int, noise: float = 0.2) -> Scores:
    drawn = np.random.default_rng(seed).normal(0, noise, (len(AGENTS), len(QUERIES)))
    return Scores(name, AGENTS, QUERIES, np.array(strengths)[:, np.newaxis] + drawn)


def test_correlations_of_methods_are_those_of_their_scores_and_hold_their_intervals() -> None:
    one, other = means("one", [1, 2, 3, 4], 0, 2.0), means("other", [1, 3, 2, 4], 1, 2.0)
    (pair,) = compare_methods([one, other]).pairs
    x, y = one.values.mean(axis=1), other.values.mean(axis=1)
    assert pair.kendall.value == pytest.approx(stats.kendalltau(x, y).statistic)
    assert pair.spearman.value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert pair.kendall.p_value == pytest.approx(stats.kendalltau(x, y).pvalue)
    assert pair.kendall.low <= pair.kendall.value <= (pair.kendall.high or 0)


def test_full_agreement_of_four_agents_is_no_certainty() -> None:
    (pair,) = compare_methods([means("one", [1, 2, 3, 4], 0), means("other", [1, 2, 3, 4], 1)]).pairs
    assert pair.spearman.value == pytest.approx(1)
    assert pair.spearman.p_value == pytest.approx(2 / 24)  # two of the orders of four


def test_the_agent_whose_place_differs_most_comes_first() -> None:
    found = compare_methods([means("one", [1, 2, 3, 4], 0, 0.01), means("other", [4.5, 2, 3, 4], 1, 0.01)])
    first = found.places[0]
    assert (first.agent, first.best, first.best_by, first.worst, first.worst_by) == ("a", 1, ("other",), 4, ("one",))


def test_two_agents_have_no_order_to_compare() -> None:
    two = [Scores(name, ("a", "b"), ("q",), np.array([[1.0], [2.0]])) for name in ("one", "other")]
    assert compare_methods(two).pairs == ()


def test_an_agent_that_one_method_does_not_score_is_left_out_of_that_pair() -> None:
    part = means("part", [1, 2, 3, 4], 0)
    part.values[0] = np.nan
    (pair,) = compare_methods([part, means("other", [1, 2, 3, 4], 1)]).pairs
    assert pair.agents == 3


def test_ratings_of_resampled_queries_are_those_of_the_games_on_them() -> None:
    from arena.calibration.consensus import games_of

    rng = np.random.default_rng(0)
    opinions = [
        Opinion(f"q{at % 7}", pair, "j", float(rng.integers(-1, 2)))
        for at, pair in enumerate([("a", "b"), ("b", "c"), ("a", "c")] * 30)
    ]
    games, queries = games_of(opinions)
    method = Played("bt", games, queries, BradleyTerrySettings())
    weights = np.array([[2.0, 0, 1, 1, 1, 1, 1]])
    again = [one for one in opinions for _ in range(int(weights[0][queries.index(one.query_id)]))]
    expected = bradley_terry(games_of(again)[0]).ratings
    assert method.drawn(weights)[0] == pytest.approx(expected, abs=1e-3)


def test_queries_without_a_game_of_some_agent_say_nothing_of_the_order() -> None:
    from arena.calibration.consensus import games_of

    few = [Opinion(query, pair, "ann", 1.0) for query, pair in (("q1", ("a", "b")), ("q2", ("c", "d")))]
    games, queries = games_of(few)
    for settings in (RatingSettings(), BradleyTerrySettings()):
        method = Played("people", games, queries, settings)
        scores = method.drawn(np.array([[1.0, 1.0], [2.0, 0.0]]))
        assert not np.isnan(scores[0]).any()
        assert np.isnan(scores[1]).all()
        (pair,) = compare_methods([method, Scores("other", ("a", "b", "c", "d"), queries, np.eye(4)[:, :2])]).pairs
        assert pair.agents == 4


def test_a_panel_is_held_against_its_best_member_on_what_all_judged() -> None:
    people = {f"q{at}": {("d",): float(at % 2)} for at in range(12)}
    good = {query: dict(own) for query, own in people.items()}
    good["q0"] = {("d",): 1.0}
    poor = {query: {("d",): 1.0} for query in list(people)[:-1]}
    found = panel_gain({"good": good, "poor": poor}, people, people)
    assert (found.best, found.n, found.agreement) == ("good", 11, 1)
    assert found.gain.value == pytest.approx(1 / 11)
    assert panel_gain({"good": good}, people, people) is None


def crowd() -> tuple[list[Opinion], dict[str, float]]:
    """A crowd of five, whose skill falls from 0.95 to chance."""
    rng = np.random.default_rng(0)
    truth = {f"q{at}": float(rng.integers(0, 3)) for at in range(200)}
    skill = {"r0": 0.95, "r1": 0.85, "r2": 0.7, "r3": 0.5, "r4": 1 / 3}
    votes = [
        Opinion(query, ("d",), rater, value if rng.random() < good else float(rng.integers(0, 3)))
        for query, value in truth.items()
        for rater, good in skill.items()
    ]
    return votes, truth


def right(values: Any, truth: dict[str, float]) -> float:
    return float(np.mean([values[query]["d",] == value for query, value in truth.items()]))


def test_people_s_verdicts_and_grades_are_methods_of_their_own() -> None:
    graded = [("q1", "a", "clear", "ann", 2), ("q1", "a", "clear", "bob", 1), ("q1", "a", "true", "ann", 0)]
    graded += [("q2", "b", "clear", "ann", 2)]
    said = [Opinion(query, (agent, criterion), rater, float(value)) for query, agent, criterion, rater, value in graded]
    votes, grades = people_methods({("verdicts", ""): [Opinion("q1", ("a", "b"), "ann", 1.0)], ("criteria", ""): said})
    assert (votes.name, votes.agents) == ("people", ("a", "b"))
    assert (grades.name, grades.agents) == ("criteria, people", ("a", "b"))
    assert grades.points() == pytest.approx([(1.5 + 0) / 2, 2])
    assert people_methods({("labels", ""): [Opinion("q1", ("d1",), "ann", 1.0)]}) == []


@pytest.mark.parametrize(
    ("votes", "verdict", "contested"),
    [((1, 0, 0), 0, 0), ((1, 1, 0), 1, 0), ((1, -1, 0), 0, 1), ((1, 1, -1, 0, 0), 0, 1), ((1, -1, -1, 0), -1, 0)],
)
def test_a_tie_is_a_vote_of_its_own(votes: tuple[int, ...], verdict: int, contested: int) -> None:
    said = [Opinion("q", ("a", "b"), f"r{at}", value) for at, value in enumerate(votes)]
    found = majority(said, mirrored=True)
    assert (found.values["q"]["a", "b"], found.contested) == (verdict, contested)


@pytest.mark.parametrize("mirrored", [False, True])
def test_one_label_only_is_fitted_without_an_error(*, mirrored: bool) -> None:
    said = [Opinion(f"q{at}", ("a", "b"), rater, 0.0) for at in range(3) for rater in "xy"]
    found = dawid_skene(said, mirrored=mirrored)
    assert {value for own in found.values.values() for value in own.values()} == {0.0}
    assert [rater.accuracy for rater in found.raters] == [1.0, 1.0]


def test_dawid_and_skene_weigh_people_by_how_reliable_they_are() -> None:
    votes, truth = crowd()
    found = dawid_skene(votes)
    assert found.converged
    assert right(found.values, truth) > right(majority(votes).values, truth)
    assert [one.rater for one in found.raters] == ["r4", "r3", "r2", "r1", "r0"]


def test_dawid_and_skene_give_what_crowd_kit_gives() -> None:
    """crowd-kit 1.4.2, DawidSkene(n_iter=1000, tol=1e-9), which has no prior, on the same votes."""
    votes, truth = crowd()
    found = dawid_skene(votes, prior_votes=1e-9)
    labels = [found.values[query]["d",] for query in truth]
    assert np.bincount(np.array(labels, int)).tolist() == [56, 70, 74]
    assert "".join(f"{label:.0f}" for label in labels[:30]) == "211000000212112211120220121022"
    accuracy = {one.rater: one.accuracy for one in found.raters}
    assert accuracy["r1"] == pytest.approx(0.27901 * 0.8697 + 0.35413 * 0.9185 + 0.36687 * 0.9632, abs=1e-4)


def test_a_crowd_of_verdicts_has_no_liking_for_a_side_in_the_model() -> None:
    rng = np.random.default_rng(2)
    votes = [
        Opinion(f"q{at}", ("a", "b"), rater, float(rng.choice([1, 0, -1], p=[0.6, 0.2, 0.2])))
        for at in range(40)
        for rater in "xyz"
    ]
    turned = [Opinion(one.query_id, one.item, one.rater, -one.value) for one in votes]
    one, other = dawid_skene(votes, mirrored=True), dawid_skene(turned, mirrored=True)
    assert {query: -own["a", "b"] for query, own in other.values.items()} == {
        query: own["a", "b"] for query, own in one.values.items()
    }
