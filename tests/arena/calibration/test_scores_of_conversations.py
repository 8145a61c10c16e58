"""Scores of the turns of a conversation depend on each other: it is conversations that are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from arena.boards.compare import compared
from arena.calibration import Opinion
from arena.calibration.comparison import Settings, compare
from arena.calibration.methods import compare_methods, draw
from retrieval_eval.exam.grades import Grid, Grids
from retrieval_eval.exam.scores import cover_scores
from retrieval_eval.nuggets.scores import score_table
from retrieval_eval.nuggets.types import Assignment, Importance, Support, make_nuggets
from retrieval_eval.scores.citations import Cited, citation_scores
from retrieval_eval.scores.metrics import evaluate
from retrieval_eval.scores.support import AnswerSupport, support_scores
from retrieval_eval.stats.agreement import label_agreement, rater_agreement
from retrieval_eval.stats.bootstrap import Clusters, units_of
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.paired import compare as difference_of
from retrieval_eval.stats.rank import correlate_topics
from retrieval_eval.stats.scores import Scores

QUERIES, COPIES = 24, 4
NAMES = [f"q{at:02}" for at in range(QUERIES)]
LEVELS = np.random.default_rng(1).integers(0, 3, (3, QUERIES))
"""Of two agents or raters, and of noise, on each query: 0, 1 or 2."""


def values(names: Mapping[str, str], agent: int) -> dict[str, int]:
    """By query; ``names`` gives the first one that it repeats."""
    return {name: int(LEVELS[agent, NAMES.index(first)]) for name, first in names.items()}


def support(names: Mapping[str, str], clusters: Clusters) -> Estimate:
    answers = {
        (name, "a"): AnswerSupport(own / 2, own / 2, 1, 1, (0, 0, 1), 0, 0) for name, own in values(names, 0).items()
    }
    return support_scores(answers, clusters=clusters)[0].means["a"]


def nuggets(names: Mapping[str, str], clusters: Clusters) -> Estimate:
    said = (Support.NONE, Support.PARTIAL, Support.FULL)
    given = [
        Assignment(name, "a", make_nuggets(name, ["fact"], [Importance.VITAL]), (said[own],), 9, "", "")
        for name, own in values(names, 0).items()
    ]
    return score_table(given, clusters=clusters).score("v").means["a"]


def citations(names: Mapping[str, str], clusters: Clusters) -> Estimate:
    cited = {(name, "a"): Cited(("d0", "d1")) for name in names}
    labels = {name: {"d0": int(own > 0), "d1": int(own > 1)} for name, own in values(names, 0).items()}
    return citation_scores(cited, labels, clusters=clusters)["a"].precision


def measure(names: Mapping[str, str], clusters: Clusters) -> Estimate:
    labels = {name: {"d0": own, "d1": 2 - own} for name, own in values(names, 0).items()}
    runs = {"a": {name: {"d0": 2.0, "d1": 1.0} for name in names}}
    return evaluate(labels, runs, ["nDCG@2"], clusters=clusters).estimates["a"]["nDCG@2"]


def cover(names: Mapping[str, str], clusters: Clusters) -> Estimate:
    grids = {
        name: Grid(name, ("p",), ("i", "j"), np.array([[own, own - 1]], np.int8), np.ones(2), np.ones(1, bool))
        for name, own in values(names, 0).items()
    }
    scores = cover_scores(Grids(grids), {(name, "a"): ("p",) for name in names}, levels=[1], clusters=clusters)
    return scores.by_level[1]["cover"].means["a"]


def agreement(names: Mapping[str, str], clusters: Clusters) -> Estimate:
    first, second = ({name: {"d": own} for name, own in values(names, agent).items()} for agent in (0, 1))
    return label_agreement(first, second, clusters=clusters).agreement


def alpha(names: Mapping[str, str], clusters: Clusters) -> Estimate:
    raters = [{name: {"d": own} for name, own in values(names, agent).items()} for agent in (0, 1)]
    return rater_agreement(raters, clusters=clusters).alpha_ordinal


def votes(names: Mapping[str, str], clusters: Clusters) -> Estimate:
    judge, *people = (
        [Opinion(name, ("a", "good"), f"r{agent}", own) for name, own in values(names, agent).items()]
        for agent in range(3)
    )
    found = compare("criteria", {"judge": judge}, [one for own in people for one in own], Settings(), clusters=clusters)
    return found.judges["judge"].votes.share


def bias(names: Mapping[str, str], clusters: Clusters) -> Estimate:
    judge, people = (
        [Opinion(name, ("a", "good"), f"r{agent}", own) for name, own in values(names, agent).items()]
        for agent in (0, 1)
    )
    found = compare("criteria", {"judge": judge}, people, Settings(), clusters=clusters).judges["judge"].differences
    assert found is not None
    return found.bias


def compared_score(names: Mapping[str, str], clusters: Clusters) -> Estimate:
    means = Scores("criteria", ("a",), tuple(names), np.array([[*values(names, 0).values()]], float))
    (way,) = compared([means], list(names), None, clusters=clusters).ways
    return way.scores["a"]


def difference(names: Mapping[str, str], clusters: Clusters) -> Estimate:
    runs = np.array([[*values(names, agent).values()] for agent in (0, 1)], float)
    return difference_of(runs, ("a", "b"), unit=units_of(names, clusters))[0].difference


FIGURES = [difference, support, nuggets, citations, measure, cover, agreement, alpha, votes, bias, compared_score]


@pytest.mark.parametrize("figure", FIGURES)
def test_turns_that_repeat_each_other_tell_no_more_than_one(
    figure: Callable[[Mapping[str, str], Clusters], Estimate],
) -> None:
    once = {name: name for name in NAMES}
    again = {f"{name}-{copy}": name for name in NAMES for copy in range(COPIES)}
    one, each, whole = figure(once, {}), figure(again, {}), figure(again, again)
    # Krippendorff's alpha corrects for the number of labels, which the copies raise; Wilson's intervals count them.
    near = 0.03 if figure in (alpha, agreement, votes) else 1e-9
    assert [whole.value, whole.low, whole.high] == pytest.approx([one.value, one.low, one.high], abs=near)
    assert figure(once, {name: f"c{name}" for name in NAMES}) == one
    wide, narrow = ((own.high or 0) - (own.low or 0) for own in (whole, each))
    # With few units a mean's interval also leaves open what they never showed.
    assert wide / narrow == pytest.approx(math.sqrt(COPIES), rel=0.25)


def test_tests_of_two_runs_and_of_two_orders_count_conversations() -> None:
    again = {f"{name}-{copy}": name for name in NAMES for copy in range(COPIES)}
    units = units_of(again, again)
    runs = LEVELS[:2]
    (once,), (whole,) = (
        difference_of(own.astype(float), ("a", "b"), unit=unit)
        for own, unit in ((runs, None), (np.repeat(runs, COPIES, axis=1), units))
    )
    assert (whole.p_t, whole.p_permutation) == pytest.approx((once.p_t, once.p_permutation))
    rng = np.random.default_rng(2)
    first = rng.normal(size=(6, QUERIES))
    second = first + rng.normal(size=(6, QUERIES))
    there = np.ones((6, QUERIES), np.bool_)
    single = correlate_topics(first, second, there)
    copied = correlate_topics(*(np.repeat(own, COPIES, axis=1) for own in (first, second, there)), unit=units)
    for one, other in ((single.kendall, copied.kendall), (single.topics_kendall, copied.topics_kendall)):
        assert [other.value, other.low, other.high] == pytest.approx([one.value, one.low, one.high])
    assert copied.topics_kendall.p_value == pytest.approx(single.topics_kendall.p_value)


def test_draws_of_several_ways_are_of_the_same_conversations() -> None:
    again = {f"{name}-{copy}": name for name in NAMES for copy in range(COPIES)}
    means = Scores(
        "one", ("a", "b", "c"), tuple(again), np.array([[*values(again, agent).values()] for agent in range(3)], float)
    )
    once = Scores("one", means.agents, tuple(NAMES), LEVELS.astype(float))
    np.testing.assert_allclose(draw(means, list(again), 50, 3, again).samples, draw(once, NAMES, 50, 3).samples)
    assert compare_methods([means, means], clusters=again).queries == QUERIES


def test_what_is_listed_of_a_conversation_names_its_turn() -> None:
    clusters = {"q1": "c", "q2": "c"}
    judge = [Opinion(query_id, ("a", "good"), "judge", own) for query_id, own in (("q1", 1), ("q2", 3), ("q3", 1))]
    people = [Opinion(query_id, ("a", "good"), "ann", 1) for query_id in ("q1", "q2")]
    found = compare("criteria", {"judge": judge}, people, Settings(), most=5, label_next=1, clusters=clusters)
    judged = found.judges["judge"]
    assert (judged.n, judged.queries) == (2, 1)
    assert [(one.query_id, one.item) for one in judged.disagreements] == [("q2", ("a", "good"))]
    assert judged.estimates is not None
    assert judged.estimates.next == (("q3", ("a", "good")),)


def test_a_mean_over_one_conversation_has_no_interval() -> None:
    found = cover({name: name for name in NAMES}, dict.fromkeys(NAMES, "one"))

    assert found.low is None
