"""Several judges: own boards, agreement that does not depend on sides, and intervals by query."""

import dataclasses
import os
from pathlib import Path
from random import Random

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.data.verdicts import read_verdicts
from arena.ratings.games import GameVerdict, reconcile, tabulate
from arena.ratings.judges import judge_agreement, judged_games, of_judge
from arena.ratings.panel import panel_ratings
from arena.ratings.rate import RatingSettings, rate, rate_by_judge
from judges.types import Verdict
from retrieval_eval.stats.agreement import cohen_kappa
from retrieval_eval.stats.bootstrap import jackknife_interval, share_interval

DATA = Path(os.environ.get("RAGLEAGUE_SHARED", Path(__file__).parents[2] / ".." / "shared")) / "data"
needs_data = pytest.mark.usefixtures("shared")
A, B, TIE = Verdict
QUICK = RatingSettings(bootstrap=50, tournaments=5)


def panel(seed: int = 0, queries: int = 40, error: float = 0.2) -> list[GameVerdict]:
    """Judges "one" and "two" see the same winner, each wrong with a given chance; "random" throws a coin."""
    rng = np.random.default_rng(seed)
    rows = []
    for query in range(queries):
        for first, second in (("x", "y"), ("y", "z"), ("x", "z")):
            truth = Verdict(rng.choice(["A", "B", "TIE"], p=[0.5, 0.3, 0.2]))
            for judge, wrong in (("one", error), ("two", error), ("random", 1.0)):
                guess = Verdict(rng.choice(["A", "B", "TIE"]))
                rows.append(GameVerdict(f"q{query}", first, second, guess if rng.random() < wrong else truth, judge))
    return rows


def turned(row: GameVerdict) -> GameVerdict:
    return dataclasses.replace(row, agent_a=row.agent_b, agent_b=row.agent_a, verdict=row.verdict.swapped())


def test_counts_and_coefficients_by_hand() -> None:
    one = [A, A, A, TIE, TIE, B, A]
    two = [A, A, B, TIE, A, B, TIE]
    rows = [
        GameVerdict(f"q{i}", "x", "y", verdict, judge)
        for judge, verdicts in (("one", one), ("two", two))
        for i, verdict in enumerate(verdicts)
    ]
    found = judge_agreement(rows)
    assert found is not None
    (pair,) = found.pairs
    assert (pair.same_winner, pair.both_tie, pair.opposite, pair.first_tie, pair.second_tie) == (3, 1, 1, 1, 1)
    assert (pair.games, pair.agreement) == (7, pytest.approx(4 / 7))
    # Both ways round: 3 games agree on each side of the diagonal, 2 on ties; every cell halves to this.
    symmetric = np.array([[3, 1, 1], [1, 2, 1], [1, 1, 3]]) / 2
    assert pair.kappa.value == pytest.approx(cohen_kappa(symmetric))
    assert pair.kappa_linear.value == pytest.approx(cohen_kappa(symmetric, "linear"))


def test_judges_that_share_a_truth_agree_and_a_random_one_does_not() -> None:
    found = judge_agreement(panel())
    assert found is not None
    kappas = {(pair.first, pair.second): pair.kappa for pair in found.pairs}
    assert (kappas["one", "two"].low or 0) > 0.3
    for names in (("one", "random"), ("random", "two")):
        assert (kappas[names].low or -1) < 0 < (kappas[names].high or -1) < 0.3
    assert found.games == 120
    assert found.alpha.value is not None
    assert 0.1 < found.alpha.value < 0.4


@given(st.randoms())
def test_the_side_an_answer_is_written_on_changes_no_coefficient(random: Random) -> None:
    rows = panel(queries=6)
    other = [turned(row) if random.random() < 0.5 else row for row in rows]
    assert judge_agreement(other) == judge_agreement(rows)
    renamed = {"x": "z", "z": "x", "y": "y"}
    mirrored = [dataclasses.replace(r, agent_a=renamed[r.agent_a], agent_b=renamed[r.agent_b]) for r in rows]
    found, expected = judge_agreement(mirrored), judge_agreement(rows)
    assert found is not None
    assert expected is not None
    for one, two in zip(found.pairs, expected.pairs, strict=True):
        assert one.kappa.value == pytest.approx(two.kappa.value)
    assert found.alpha.value == pytest.approx(expected.alpha.value)


def test_alpha_is_close_to_that_of_all_games_written_both_ways() -> None:
    table = tabulate(panel())
    games = judged_games(table)
    _, unit = np.unique(games.game, return_inverse=True)
    ratings = np.full((3, unit.max() + 1), np.nan)
    ratings[games.judge, unit] = games.outcome
    found = judge_agreement(table)
    assert found is not None
    both_ways = krippendorff.alpha(np.hstack([ratings, -ratings]), level_of_measurement="ordinal")
    assert found.alpha_ordinal.value == pytest.approx(both_ways, abs=5e-3)


def test_games_repeated_on_one_query_do_not_narrow_the_interval() -> None:
    rows = panel(queries=12)
    more = [
        dataclasses.replace(row, agent_a=row.agent_a + str(i), agent_b=row.agent_b + str(i))
        for i in range(20)
        for row in rows
    ]
    few, many = judge_agreement(rows), judge_agreement(more)
    assert few is not None
    assert many is not None
    assert many.games == 20 * few.games
    assert many.pairs[0].kappa.low == pytest.approx(few.pairs[0].kappa.low)
    assert many.alpha.high == pytest.approx(few.alpha.high, abs=0.01)


def test_agreement_needs_two_judges_and_queries_and_common_games() -> None:
    rows = [GameVerdict("q1", "x", "y", A, "one"), GameVerdict("q2", "x", "y", A, "two")]
    assert judge_agreement(rows[:1]) is None
    assert judge_agreement([dataclasses.replace(row, query_id=None) for row in rows]) is None
    found = judge_agreement(rows)
    assert found is not None
    assert (found.games, found.alpha.value, found.pairs[0].kappa.value, found.pairs[0].agreement) == (0, *[None] * 3)


def test_judges_reconcile_their_own_orders() -> None:
    rows = [
        *(GameVerdict("q", "x", "y", A, "one"), GameVerdict("q", "y", "x", A, "one")),
        *(GameVerdict("q", "x", "y", A, "two"), GameVerdict("q", "y", "x", B, "two")),
    ]
    games = judged_games(tabulate(rows))
    assert (games.judge.tolist(), games.outcome.tolist(), games.query.tolist()) == ([0, 1], [0, 1], [0, 0])


@given(st.randoms())
def test_reconciling_by_judge_gives_the_games_of_reconciling_all(random: Random) -> None:
    rows = [turned(row) if random.random() < 0.5 else row for row in panel(queries=4) * 2]
    table = tabulate([row for row in rows if random.random() < 0.7])
    games, known = judged_games(table), reconcile(table)
    np.testing.assert_array_equal((games.outcome + 1) / 2, known.score)
    np.testing.assert_array_equal(
        np.stack([games.a, games.b, games.query]), np.stack([known.a, known.b, known.cluster])
    )


def test_each_judge_has_a_board_of_the_agents_it_saw() -> None:
    rows = [*panel(), GameVerdict("q0", "x", "w", A, "one")]
    boards = rate_by_judge(rows, QUICK)
    assert list(boards) == ["one", "random", "two"]
    assert {line.agent for line in boards["one"].agents} == {"w", "x", "y", "z"}
    assert {line.agent for line in boards["two"].agents} == {"x", "y", "z"}
    alone = rate([row for row in rows if row.judge == "two"], QUICK)
    assert repr(boards["two"]) == repr(alone)
    assert boards["two"].judge_health is not None
    assert boards["two"].judge_health.n == 120
    assert rate(rows, QUICK).judges == judge_agreement(rows)
    assert alone.judges is None


def test_verdicts_of_one_judge_keep_their_rows() -> None:
    table = of_judge(tabulate(panel()), "two")
    assert len(table) == 120
    assert table.judges == ("two",)
    with pytest.raises(ValueError, match="nobody"):
        of_judge(table, "nobody")


def test_a_share_of_independent_verdicts_has_the_interval_of_wilson() -> None:
    # Two of every three: each cluster is one verdict, so only the variance's n / (n - 1) and Student's t differ.
    parts = np.array([1.0, 1.0, 0.0] * 100)
    low, high = share_interval(parts, np.ones(300)) or (0, 0)
    assert (low, high) == (pytest.approx(0.6115, abs=1e-3), pytest.approx(0.7177, abs=1e-3))


def test_shares_cover_their_truth_where_queries_differ() -> None:
    rng = np.random.default_rng(3)
    hits, naive = 0, 0
    for _ in range(400):
        chances = rng.beta(3, 1, 30)
        parts = rng.binomial(20, chances).astype(float)
        low, high = share_interval(parts, np.full(30, 20.0)) or (0, 0)
        hits += low <= 0.75 <= high
        naive += abs(parts.sum() / 600 - 0.75) < 1.96 * np.sqrt(0.75 * 0.25 / 600)
    assert hits >= 0.93 * 400
    assert naive < 0.8 * 400


def test_the_jackknife_of_a_mean_is_that_of_the_textbook() -> None:
    values = np.random.default_rng(4).normal(size=12)
    totals = np.stack([values, np.ones(12)], axis=1)
    low, high = jackknife_interval(lambda t: t[:, 0] / t[:, 1], totals) or (0, 0)
    half = 2.200985 * values.std(ddof=1) / np.sqrt(12)
    assert (low, high) == (pytest.approx(values.mean() - half), pytest.approx(values.mean() + half))


@needs_data
def test_six_judges_of_one_benchmark_agree_as_their_games_written_both_ways_say() -> None:
    table = tabulate(read_verdicts(DATA / "mtbench_multijudge/verdicts.csv", skip_empty=True).verdicts)
    found = judge_agreement(table)
    assert found is not None
    assert len(found.judges) == 6
    assert len(found.pairs) == 15
    games = judged_games(table)
    outcome = {
        (judge, game): int(value) for judge, game, value in zip(games.judge, games.game, games.outcome, strict=True)
    }
    for pair in found.pairs:
        one, other = (found.judges.index(name) for name in (pair.first, pair.second))
        common = [game for judge, game in outcome if judge == one and (other, game) in outcome]
        labels = [[sign * outcome[judge, game] for sign in (1, -1) for game in common] for judge in (one, other)]
        assert pair.games == len(common)
        table_of_pair = np.zeros((3, 3))
        np.add.at(table_of_pair, tuple(np.array(labels) + 1), 1)
        assert pair.kappa.value == pytest.approx(cohen_kappa(table_of_pair))
    weights = {weight.judge: weight.discrimination for weight in panel_ratings(table).judges}
    assert min(weights, key=lambda judge: weights[judge]) == "Qwen-7B"
    agreement = {
        j: h.judge_health.order_agreement.value for j, h in rate_by_judge(table, QUICK).items() if h.judge_health
    }
    assert min(agreement, key=lambda judge: agreement[judge] or 0) == "Qwen-7B"
