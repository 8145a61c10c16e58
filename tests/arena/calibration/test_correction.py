"""Estimates corrected by people's labels: a smaller run of benchmarks/correction.py, an oracle, and what to label."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from arena.calibration.corrected_ratings import ScoredGame, corrected_ratings
from arena.calibration.prediction_powered import Corrected, corrected_mean, labels_needed, next_labels
from benchmarks.correction import Study, means, ratings, simulated, win_rates
from judges.errors import InputError


@pytest.mark.parametrize(("figure", "simulations"), [(means, 200), (win_rates, 100), (ratings, 40)])
def test_corrected_intervals_hold_whatever_the_judge_is_like(figure: Any, simulations: int) -> None:
    biased = figure("biased", simulations, Study(), seed=1)
    assert biased.corrected >= 0.9
    assert biased.ratio < 0.92
    assert biased.judge < 0.6  # precise and wrong
    noise = figure("noise", simulations, Study(), seed=1)
    assert noise.corrected >= 0.9
    assert noise.ratio < 1.05


def test_a_mean_is_that_of_ppi_python_where_things_are_independent() -> None:
    """ppi_py 0.2.3: ppi_mean_pointestimate and ppi_mean_ci of the same numbers, power-tuned."""
    rng = np.random.default_rng(7)
    truth = rng.normal(size=2150)
    people = truth + 0.3 * rng.normal(size=2150)
    judge = 0.8 * truth + 0.4 + 0.5 * rng.normal(size=2150)
    labels = [value if at < 150 else None for at, value in enumerate(people.tolist())]
    found = corrected_mean(judge.tolist(), labels, range(2150))
    assert found.corrected.value == pytest.approx(-0.10884737, abs=0.02)  # lambda is estimated a little differently
    assert found.corrected.high - found.corrected.low == pytest.approx(-0.00835465 + 0.2093401, rel=0.02)


def test_labels_of_everything_leave_nothing_to_correct() -> None:
    rng = np.random.default_rng(0)
    people, judge = rng.normal(size=60).tolist(), rng.normal(size=60).tolist()
    found = corrected_mean(judge, people, [at % 20 for at in range(60)])
    assert found.corrected.value == pytest.approx(np.mean(people))
    assert found.people.value == pytest.approx(np.mean(people))


def test_labels_of_nearly_everything_leave_the_judge_next_to_no_say() -> None:
    rng = np.random.default_rng(1)
    people, judge = rng.normal(size=60).tolist(), rng.normal(size=60).tolist()
    found = corrected_mean(judge, [*people[:-1], None], [at % 20 for at in range(60)])
    assert 0 <= found.weight <= 1
    assert found.corrected.value == pytest.approx(found.people.value, abs=0.05)
    against = corrected_mean([-one for one in people], [*people[:30], *[None] * 30], [at % 20 for at in range(60)])
    assert against.weight == 0


def test_a_judge_that_says_one_thing_only_is_not_listened_to() -> None:
    people = [float(at % 3) if at < 30 else None for at in range(90)]
    found = corrected_mean([1.0] * 90, people, [at % 15 for at in range(90)])
    assert found.weight == 0
    assert found.corrected == found.people


def test_one_query_gives_a_figure_and_no_interval() -> None:
    found = corrected_mean([1.0, 2.0, 3.0], [1.0, 1.0, None], ["q", "q", "q"])
    assert found.people.value == 1
    assert (found.corrected.low, found.people.low) == (None, None)


def test_as_many_labels_as_are_said_to_be_needed_give_about_that_width() -> None:
    rng = np.random.default_rng(4)
    query = np.repeat(np.arange(400), 5)
    people = rng.normal(0, 0.5, 400)[query] + rng.normal(size=query.size)
    judge = people + 1 + rng.normal(0, 0.6, query.size)
    order = rng.permutation(query.size)

    def labelled(count: int) -> list[float | None]:
        known = set(order[:count].tolist())
        return [value if at in known else None for at, value in enumerate(people.tolist())]

    few = corrected_mean(judge.tolist(), labelled(150), query.tolist())
    wanted = 0.75 * (few.corrected.high - few.corrected.low)
    needed = labels_needed(few, wanted)
    assert needed.corrected < (needed.people or 10**9)
    more = corrected_mean(judge.tolist(), labelled(needed.corrected), query.tolist())
    assert more.corrected.high - more.corrected.low == pytest.approx(wanted, rel=0.12)
    assert labels_needed(few, 1e-6).corrected is None


def test_few_labelled_queries_do_not_make_the_labels_needed_too_many() -> None:
    rng = np.random.default_rng(5)
    people = rng.normal(size=300)
    judge = (people + rng.normal(0, 3, 300)).tolist()

    def labelled(count: int) -> Corrected:
        chosen = set(rng.permutation(300)[:count].tolist())
        return corrected_mean(judge, [value if at in chosen else None for at, value in enumerate(people)], range(300))

    wanted = 1.0
    said = [labels_needed(labelled(5), wanted).people or 300 for _ in range(100)]
    intervals = [labelled(round(float(np.median(said)))).people for _ in range(100)]
    assert np.median([own.high - own.low for own in intervals]) == pytest.approx(wanted, rel=0.12)


def test_everything_unlabelled_has_the_same_chance_to_be_next_and_queries_take_turns() -> None:
    queries = ["a"] * 12 + ["b"] * 6 + ["c"] * 6
    known = [at in {0, 13} for at in range(24)]
    drawn = Counter(place for seed in range(2000) for place in next_labels(queries, known, 4, seed))
    assert set(drawn) == {at for at in range(24) if not known[at]}
    shares = np.array(list(drawn.values())) / 2000
    assert np.abs(shares - 4 / 22).max() < 0.04
    for seed in range(50):
        taken = Counter(queries[place] for place in next_labels(queries, known, 4, seed))
        assert 1 <= taken["a"] <= 3
    assert next_labels(queries, known, 4, 3) == next_labels(queries, known, 4, 3)
    assert len(next_labels(queries, known, 99)) == 22


def test_ratings_of_a_judge_whom_people_always_agree_with_are_nearly_the_judges() -> None:
    games = simulated(np.random.default_rng(0), "biased", Study(queries=30))
    shared = [replace(game, people=game.judge if at % 4 == 0 else None) for at, game in enumerate(games)]
    found = corrected_ratings(shared)
    assert found.weight > 0.9
    assert found.converged
    for one, other in zip(found.corrected, found.judge, strict=True):
        assert one.value == pytest.approx(other.value, abs=10)
    assert np.mean([own.value for own in found.corrected]) == pytest.approx(1000)


def test_ratings_do_not_depend_on_which_side_an_agent_is_written_on() -> None:
    games = simulated(np.random.default_rng(0), "biased", Study(queries=30))
    turned = [
        ScoredGame(one.query_id, one.b, one.a, 1 - one.judge, None if one.people is None else 1 - one.people)
        for one in games
    ]
    one, other = corrected_ratings(games), corrected_ratings(turned)
    assert [own.value for own in other.corrected] == pytest.approx([own.value for own in one.corrected])
    assert other.weight == pytest.approx(one.weight)


def test_ratings_that_do_not_exist_are_said_to_be_so() -> None:
    beaten = [ScoredGame(f"q{at}", "a", "b", 1.0, 1.0) for at in range(8)]
    with pytest.raises(InputError, match="some agents only win or only lose"):
        corrected_ratings(beaten)
    with pytest.raises(InputError, match="nothing to correct by"):
        corrected_ratings([replace(game, people=None) for game in beaten])
    mixed = [replace(game, judge=float(at % 2)) for at, game in enumerate(beaten)]
    with pytest.raises(InputError, match="label more games"):
        corrected_ratings(mixed)  # people let one agent win every game
    games = simulated(np.random.default_rng(0), "biased", Study(labelled=1.0))
    of_two = [game if {game.a, game.b} == {"agent_0", "agent_1"} else replace(game, people=None) for game in games]
    assert corrected_ratings(of_two).people is None  # nothing links the other two
