"""Several judges: own boards, and agreement that does not depend on sides."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from arena.ratings.games import GameVerdict, reconcile, tabulate
from arena.ratings.health import judge_agreement, judged_games, of_judge
from arena.ratings.rate import rate, rate_by_judge
from arena.ratings.results import RatingSettings
from judges.types import Verdict
from retrieval_eval.stats.agreement import cohen_kappa
from retrieval_eval.stats.bootstrap import jackknife_estimate, share_interval

A, B, TIE = Verdict
QUICK = RatingSettings(bootstrap=50, tournaments=5)


def trio(seed: int = 0, queries: int = 40, error: float = 0.2) -> list[GameVerdict]:
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
    return structs.replace(row, agent_a=row.agent_b, agent_b=row.agent_a, verdict=row.verdict.swapped())


def test_counts_and_coefficients_by_hand() -> None:
    one = [A, A, A, TIE, TIE, B, A]
    two = [A, A, B, TIE, A, B, TIE]
    rows = [
        GameVerdict(f"q{i}", "x", "y", verdict, judge)
        for judge, verdicts in (("one", one), ("two", two))
        for i, verdict in enumerate(verdicts)
    ]
    found = judge_agreement(rows)
    (pair,) = found.pairs
    assert (pair.same_winner, pair.both_tie, pair.opposite, pair.first_tie, pair.second_tie) == (3, 1, 1, 1, 1)
    assert (pair.games, pair.agreement) == (7, pytest.approx(4 / 7))
    # Both ways round: 3 games agree on each side of the diagonal, 2 on ties; every cell halves to this.
    symmetric = np.array([[3, 1, 1], [1, 2, 1], [1, 1, 3]]) / 2
    assert pair.kappa.value == pytest.approx(cohen_kappa(symmetric))
    assert pair.kappa_linear.value == pytest.approx(cohen_kappa(symmetric, "linear"))


@given(st.randoms())
def test_the_side_an_answer_is_written_on_changes_no_coefficient(random: Random) -> None:
    rows = trio(queries=6)
    other = [turned(row) if random.random() < 0.5 else row for row in rows]
    assert judge_agreement(other) == judge_agreement(rows)
    renamed = {"x": "z", "z": "x", "y": "y"}
    mirrored = [structs.replace(r, agent_a=renamed[r.agent_a], agent_b=renamed[r.agent_b]) for r in rows]
    found, expected = judge_agreement(mirrored), judge_agreement(rows)
    for one, two in zip(found.pairs, expected.pairs, strict=True):
        assert one.kappa.value == pytest.approx(two.kappa.value)
    assert found.alpha.value == pytest.approx(expected.alpha.value)


def test_agreement_needs_two_judges_and_queries_and_common_games() -> None:
    rows = [GameVerdict("q1", "x", "y", A, "one"), GameVerdict("q2", "x", "y", A, "two")]
    assert judge_agreement(rows[:1]) is None
    assert judge_agreement([structs.replace(row, query_id=None) for row in rows]) is None
    found = judge_agreement(rows)
    assert (found.games, found.alpha.value, found.pairs) == (0, None, ())


@given(st.randoms())
def test_reconciling_by_judge_gives_the_games_of_reconciling_all(random: Random) -> None:
    rows = [turned(row) if random.random() < 0.5 else row for row in trio(queries=4) * 2]
    table = tabulate([row for row in rows if random.random() < 0.7])
    games, known = judged_games(table), reconcile(table)
    np.testing.assert_array_equal((games.outcome + 1) / 2, known.score)
    np.testing.assert_array_equal(
        np.stack([games.a, games.b, games.query]), np.stack([known.a, known.b, known.cluster])
    )


def test_each_judge_has_a_board_of_the_agents_it_saw() -> None:
    rows = [*trio(), GameVerdict("q0", "x", "w", A, "one")]
    boards = rate_by_judge(rows, QUICK)
    assert list(boards) == ["one", "random", "two"]
    assert {line.agent for line in boards["one"].agents} == {"w", "x", "y", "z"}
    assert {line.agent for line in boards["two"].agents} == {"x", "y", "z"}
    alone = rate([row for row in rows if row.judge == "two"], QUICK)
    assert repr(boards["two"]) == repr(alone)
    assert boards["two"].judge_health.n == 120
    assert rate(rows, QUICK).judges == judge_agreement(rows)
    assert alone.judges is None


def test_verdicts_of_one_judge_keep_their_rows() -> None:
    table = of_judge(tabulate(trio()), "two")
    assert len(table) == 120
    assert table.judges == ("two",)
    with pytest.raises(ValueError, match="nobody"):
        of_judge(table, "nobody")


def test_a_share_of_independent_verdicts_has_the_interval_of_wilson() -> None:
    # Two of every three: each cluster is one verdict, so only the variance's n / (n - 1) and Student's t differ.
    parts = np.array([1.0, 1.0, 0.0] * 100)
    low, high = share_interval(parts, np.ones(300)) or (0, 0)
    assert (low, high) == (pytest.approx(0.6115, abs=1e-3), pytest.approx(0.7177, abs=1e-3))


def test_the_jackknife_of_a_mean_is_that_of_the_textbook() -> None:
    values = np.random.default_rng(4).normal(size=12)
    totals = np.stack([values, np.ones(12)], axis=1)
    mean = jackknife_estimate(lambda t: t[:, 0] / t[:, 1], totals)
    half = 2.200985 * values.std(ddof=1) / np.sqrt(12)
    assert (mean.low, mean.high) == (pytest.approx(values.mean() - half), pytest.approx(values.mean() + half))
