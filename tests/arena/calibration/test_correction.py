"""Estimates corrected by people's labels: a smaller run of benchmarks/correction.py, an oracle, and what to label."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from msgspec.structs import replace

from arena.calibration.corrected_ratings import ScoredGame, corrected_ratings, estimates
from arena.calibration.prediction_powered import corrected_mean, labels_needed, next_labels
from benchmarks.correction import Study, simulated, true_ratings
from judges.errors import InputError


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


def test_each_query_counts_by_what_the_figure_would_be_without_it_as_computed_by_hand() -> None:
    """Four labels of three queries: 0, 0 and 0 and 1; the judge says 0, 1 and 1 and 1, and 0, 0 of a query without.

    The means of labels without each labelled query are 1/2, 1/3 and 0, so it moves the mean 1/4 by -1/4, -1/12 and 1/4:
    its share of the sum, -1/8, -1/16 and 3/16, divided by the others' share of the labels, 1/2, 3/4 and 3/4.
    With the judge: a = -1/8, -1/16, 3/16, 0 and b = -1/8, -1/48, -1/48, 1/6, so lambda = 5/17, and (a - lambda b) over
    the others' share is -54, -23, 79 and -15 in 306ths.
    """
    found = corrected_mean([0, 1, 1, 1, 0, 0], [0, 0, 0, 1, None, None], ["q", "q", "r", "s", "t", "t"])
    assert found.people.value == 1 / 4
    assert found.people.high == pytest.approx(1 / 4 + 4.302653 * np.sqrt(1 / 16 + 1 / 144 + 1 / 16))  # t of 2 degrees
    assert found.weight == pytest.approx(5 / 17)
    assert found.corrected.value == pytest.approx(1 / 4 + 5 / 17 * (1 / 2 - 3 / 4))
    squares = 54**2 + 23**2 + 79**2 + 15**2
    assert found.corrected.high == pytest.approx(3 / 17 + 12.706205 * np.sqrt(2 * squares) / 306)  # t of 1, and lambda


def test_the_more_is_labelled_the_less_the_judge_has_to_say() -> None:
    rng = np.random.default_rng(1)
    people, judge = rng.normal(size=60).tolist(), rng.normal(size=60).tolist()
    queries = [at % 20 for at in range(60)]
    whole = corrected_mean(judge, people, queries)
    assert (whole.corrected.value, whole.people.value) == pytest.approx((np.mean(people), np.mean(people)))
    nearly = corrected_mean(judge, [*people[:-1], None], queries)
    assert 0 <= nearly.weight <= 1
    assert nearly.corrected.value == pytest.approx(nearly.people.value, abs=0.05)
    assert corrected_mean([-one for one in people], [*people[:30], *[None] * 30], queries).weight == 0


def test_a_judge_that_says_one_thing_only_is_not_listened_to() -> None:
    people = [float(at % 3) if at < 30 else None for at in range(90)]
    found = corrected_mean([1.0] * 90, people, [at % 15 for at in range(90)])
    assert found.weight == 0
    assert found.corrected == found.people


def test_one_query_gives_a_figure_and_no_interval() -> None:
    found = corrected_mean([1.0, 2.0, 3.0], [1.0, 1.0, None], ["q", "q", "q"])
    assert found.people.value == 1
    assert (found.corrected.low, found.people.low) == (None, None)


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
    with pytest.raises(InputError, match="have people judge some of them"):
        corrected_ratings([replace(game, people=None) for game in beaten])
    mixed = [replace(game, judge=float(at % 2)) for at, game in enumerate(beaten)]
    with pytest.raises(InputError, match="label more games"):
        corrected_ratings(mixed)  # people let one agent win every game
    games = simulated(np.random.default_rng(0), "biased", Study(labelled=1.0))
    of_two = [game if {game.a, game.b} == {"agent_0", "agent_1"} else replace(game, people=None) for game in games]
    assert corrected_ratings(of_two).people is None  # nothing links the other two


def test_ratings_that_few_labels_leave_open_are_refused_in_words() -> None:
    """Without weight for the judge nothing links a0, and the matrix of the fit is singular."""
    games = [
        ScoredGame("q1", "a2", "a0", 0.5, None),
        ScoredGame("q2", "a2", "a1", 1.0, 0.0),
        ScoredGame("q3", "a1", "a2", 0.5, 1.0),
    ]
    with pytest.raises(InputError, match="label more games"):
        corrected_ratings(games)


@pytest.mark.parametrize("period", [4, 5, 10])
def test_what_is_labelled_next_does_not_depend_on_any_period_of_the_file(period: int) -> None:
    people = [at % period / (period - 1) for at in range(400)]
    queries = [f"q{at}" for at in range(400)]
    noise = np.random.default_rng(0).normal(0.1, 0.3, (200, 400))
    held = 0
    starts = set()
    for seed in range(200):
        drawn = next_labels(queries, [False] * 400, 40, seed)
        starts.add(drawn[0])
        labels = [value if at in set(drawn) else None for at, value in enumerate(people)]
        found = corrected_mean((people + noise[seed]).tolist(), labels, queries).corrected
        held += found.low <= np.mean(people) <= found.high
    assert held / 200 >= 0.93
    assert len(starts) > 50


def test_labels_drawn_with_known_chances_are_corrected_for_them() -> None:
    rng = np.random.default_rng(3)
    held, values = 0, []
    for _ in range(200):
        truth = rng.normal(2, 0.8, 400)
        judge = truth + rng.normal(0.5, 0.6, 400)
        chances = np.where(judge > 2.5, 0.4, 0.1)  # people look at what the judge likes
        labels = [
            value if seen else None for value, seen in zip(truth.tolist(), rng.random(400) < chances, strict=True)
        ]
        found = corrected_mean(judge.tolist(), labels, range(400), chances.tolist()).corrected
        held += found.low <= 2 <= found.high
        values.append(found.value)
    assert held / 200 >= 0.92
    assert np.mean(values) == pytest.approx(2, abs=0.02)


def test_a_mean_stays_within_the_scale_that_judge_and_people_use() -> None:
    from arena.boards.calibration import figure_rows

    judge = {f"q{at}": {("x", "accuracy"): 2.0} for at in range(40)} | {"q40": {("x", "accuracy"): 0.0}}
    people = {f"q{at}": {("x", "accuracy"): 2.0 - (at == 0)} for at in range(0, 41, 4)}
    (row,) = figure_rows(estimates("criteria", judge, people, {}), None)
    assert 0 <= row["corrected_low"] < row["corrected"] < row["corrected_high"] == 2
    assert row["ends"] == (0.0, 2.0)


def test_as_many_labels_as_are_said_to_be_needed_make_the_interval_narrow_enough() -> None:
    rng = np.random.default_rng(0)
    queries = np.repeat(np.arange(150), 4).tolist()
    held = []
    for seed in range(150):
        truth = np.clip(np.round(1.5 + np.repeat(rng.normal(0, 0.6, 150), 4) + rng.normal(0, 0.8, 600)), 0, 3)
        judge = np.clip(np.round(truth + rng.normal(0.3, 0.6, 600)), 0, 3).tolist()
        labels: list[float | None] = [None] * 600

        def label(count: int, seed: int, truth: np.ndarray = truth, labels: list[float | None] = labels) -> None:
            for at in next_labels(queries, [value is not None for value in labels], count, seed):
                labels[at] = float(truth[at])

        label(30, seed)
        pilot = corrected_mean(judge, labels, queries)
        width = 0.6 * (pilot.corrected.high - pilot.corrected.low)
        if (needed := labels_needed(pilot, width).corrected) is not None:
            label(needed - 30, seed + 1)
            found = corrected_mean(judge, labels, queries).corrected
            held.append(found.high - found.low <= width)
    assert len(held) > 100
    assert np.mean(held) >= 0.9


def test_ratings_by_labels_with_known_chances_are_those_of_a_random_sample_on_average() -> None:
    def drawn(seed: int, *, said: bool) -> list[ScoredGame]:
        """Games that one agent wins are looked at more often."""
        rng = np.random.default_rng(seed)
        games = simulated(rng, "biased", Study(queries=60, labelled=1.0))
        chances = [0.6 if game.people == 1 and game.a == "agent_3" else 0.15 for game in games]
        known = rng.random(len(games)) < chances
        return [
            replace(game, people=game.people if seen else None, chance=chance if said else 1.0)
            for game, seen, chance in zip(games, known, chances, strict=True)
        ]

    truth = np.array(true_ratings())
    off = [
        np.mean([[own.value for own in corrected_ratings(drawn(seed, said=said)).corrected] for seed in range(30)], 0)
        - truth
        for said in (True, False)
    ]
    assert np.abs(off[0]).max() < 15
    assert np.abs(off[0]).max() < np.abs(off[1]).max() / 2


def test_one_chance_for_all_is_none() -> None:
    games = simulated(np.random.default_rng(0), "biased", Study(queries=30))
    one, other = corrected_ratings(games), corrected_ratings([replace(game, chance=0.2) for game in games])
    assert [own.value for own in one.corrected] == pytest.approx([own.value for own in other.corrected])
