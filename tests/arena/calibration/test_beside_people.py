"""Whether a judge agrees with people as they do among themselves: by their difference on the same things, by query."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from arena.boards.conclusion import MARGIN, findings
from arena.boards.people import people_checks
from arena.calibration import Opinion
from arena.calibration.comparison import USUAL, compare
from arena.calibration.votes import judge_less_people


def simulated(
    rng: np.random.Generator, *, people: float, judge: float, repeated: float, votes: int = 2, queries: int = 40
) -> tuple[list[Opinion], list[Opinion]]:
    """A truth a game, that each vote meets with a probability ``people``, and the judge with ``judge``.

    A share ``repeated`` of the games has several votes. Games of one query are hard or easy together.
    """
    of_judge, of_people = [], []
    for query in range(queries):
        ease = rng.normal(0, 0.08)
        for game in range(5):
            truth, item = rng.choice([-1.0, 1.0]), ("a", f"b{game}")
            chance = [float(np.clip(own + ease, 0.02, 0.98)) for own in (people, judge)]
            for vote in range(votes if rng.random() < repeated else 1):
                value = truth if rng.random() < chance[0] else -truth
                of_people.append(Opinion(f"q{query}", item, f"person {vote}", value))
            of_judge.append(Opinion(f"q{query}", item, "judge", truth if rng.random() < chance[1] else -truth))
    return of_judge, of_people


def trusted(of_judge: list[Opinion], of_people: list[Opinion]) -> tuple[str, str]:
    """What is found, and the status of the check."""
    found = compare("verdicts", {"judge": of_judge}, of_people, USUAL, boards=False)
    (finding,), (check,) = findings(found), people_checks([found])
    return finding.trust, check.status


@pytest.mark.parametrize(
    ("people", "judge", "repeated", "votes"),
    [
        (0.95, 0.70, 0.05, 2),  # people agree in 90 %, the judge with a person in 68 %; one game in twenty is repeated
        (0.95, 0.70, 0.3, 2),
        (0.75, 0.60, 1.0, 3),  # 62 % and 55 %, three votes on every game
        (0.90, 0.80, 1.0, 2),
    ],
)
def test_a_judge_that_agrees_less_than_people_do_hardly_ever_passes(
    people: float, judge: float, repeated: float, votes: int
) -> None:
    rng = np.random.default_rng(7)
    worlds = [simulated(rng, people=people, judge=judge, repeated=repeated, votes=votes) for _ in range(60)]
    statuses = Counter(trusted(*world)[1] for world in worlds)
    assert statuses["passed"] <= 3


def test_with_few_votes_repeated_it_is_not_known() -> None:
    world = simulated(np.random.default_rng(3), people=0.95, judge=0.7, repeated=0.03)
    assert trusted(*world) == ("beside people", "unknown")


def test_a_judge_that_agrees_as_people_do_passes_where_votes_are_many() -> None:
    world = simulated(np.random.default_rng(5), people=0.95, judge=0.95, repeated=1, votes=3, queries=200)
    assert trusted(*world) == ("as people", "passed")


def test_the_difference_is_of_things_that_two_people_and_the_judge_judged() -> None:
    people = [Opinion("q1", ("a",), name, value) for name, value in (("x", 1), ("y", 1), ("z", -1))]
    people += [Opinion("q2", ("a",), name, 1) for name in "xy"] + [Opinion("q3", ("a",), "x", -1)]
    judge = [Opinion(query, ("a",), "judge", 1) for query in ("q1", "q2", "q3")]
    found = judge_less_people(judge, people)
    # q1: with a person in 2 of 3, two people in 1 of 3; q2: 1 and 1; q3 has a single vote.
    assert found.value == pytest.approx((1 / 3 + 0) / 2)
    assert found.n == 2
    assert judge_less_people(judge, people[-1:]).value is None


def test_the_sentence_says_the_difference() -> None:
    of_judge, of_people = simulated(np.random.default_rng(1), people=0.95, judge=0.6, repeated=1)
    (finding,) = findings(compare("verdicts", {"judge": of_judge}, of_people, USUAL, boards=False))
    assert "on games with votes of two people the difference is -0." in finding.sentence
    assert finding.sentence.endswith("It agrees with people less than they do among themselves.")
    assert MARGIN == 0.05
