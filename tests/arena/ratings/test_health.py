"""Judge health: order, first place, length, ties and circles."""

import numpy as np
import pytest

from arena.ratings.games import GameVerdict
from arena.ratings.health import judge_health
from judges.types import Verdict
from retrieval_eval.stats.estimate import Estimate


def game(query: str, first: str, second: str, verdict: str) -> GameVerdict:
    return GameVerdict(query, first, second, Verdict(verdict))


def biased(queries: int, chance_first: float, seed: int) -> list[GameVerdict]:
    """Both orders of equal agents before a judge that prefers the first shown with a fixed chance."""
    rng = np.random.default_rng(seed)
    return [
        game(f"q{q}", first, second, "A" if rng.random() < chance_first else "B")
        for q in range(queries)
        for first, second in (("x", "y"), ("y", "x"), ("y", "z"), ("z", "y"), ("x", "z"), ("z", "x"))
    ]


def test_shares_are_counted_from_single_verdicts_and_games_with_both_orders() -> None:
    health = judge_health(
        [
            *(game("q1", "x", "y", "A"), game("q1", "y", "x", "B")),
            *(game("q2", "x", "y", "A"), game("q2", "y", "x", "A")),
            *(game("q3", "x", "y", "TIE"), game("q3", "y", "x", "TIE")),
            *(game("q4", "x", "y", "A"), game("q4", "y", "x", "TIE")),
            game("q5", "x", "y", "B"),
        ]
    )
    assert (health.n, health.both_orders, health.decided) == (9, 4, 6)
    assert health.order_agreement.value == 2 / 4
    assert health.first_share.value == 4 / 6
    assert health.tie_rate.value == pytest.approx(3 / 9)


def inside(value: float, found: Estimate) -> bool:
    """Whether the interval holds a value, and the figure."""
    return found.low < value < found.high and found.low < found.value < found.high


@pytest.mark.parametrize(("chance", "effect"), [(0.7, 147), (0.5, 0), (0.3, -147)])
def test_the_first_place_effect_is_found_with_its_sign(chance: float, effect: float) -> None:
    found = judge_health(biased(100, chance, seed=1)).first_effect
    assert found.value == pytest.approx(effect, abs=40)
    assert inside(found.value, found)
    assert inside(0, found) == (effect == 0)


def test_strength_is_not_taken_for_a_first_place_effect() -> None:
    # The better agent is mostly shown first: it wins 80 % from either side.
    rows = [game(f"q{i}", "x", "y", "B" if i % 5 == 0 else "A") for i in range(100)]
    rows += [game(f"p{i}", "y", "x", "A" if i % 5 == 0 else "B") for i in range(20)]
    health = judge_health(rows)
    assert health.first_share.value > 0.65
    assert health.first_effect.value == pytest.approx(0, abs=1e-6)


def test_a_judge_that_always_takes_the_first_has_a_finite_effect_and_shares_with_some_width() -> None:
    health = judge_health(biased(10, 1.0, seed=3))
    assert health.order_agreement.value == 0
    assert (health.first_share.value, health.first_share.high) == (1.0, 1.0)
    assert 0.5 < (health.first_share.low or 0) < 0.8
    assert 200 < health.first_effect.value < 2000
    # Ten queries without one exception: resampled, they would look certain.
    assert health.first_effect.high - health.first_effect.low > 900


def test_what_cannot_be_known_is_none() -> None:
    health = judge_health([game("q1", "x", "y", "A"), game("q2", "x", "y", "B")])
    assert health.order_agreement.value is None
    assert health.first_effect.value is None
    assert health.longer_share.value is None
    assert judge_health([game("q1", "x", "y", "TIE")]).first_share.value is None


def test_longer_answers_are_compared_where_both_lengths_are_known_and_differ() -> None:
    rows = [
        game("q1", "x", "y", "A"),
        game("q2", "x", "y", "A"),
        game("q2", "y", "x", "A"),
        game("q3", "x", "y", "A"),
        game("q4", "x", "y", "TIE"),
        game("q5", "x", "y", "A"),
    ]
    lengths = {("q1", "x"): 90, ("q1", "y"): 10, ("q2", "x"): 10, ("q2", "y"): 90, ("q3", "x"): 50, ("q3", "y"): 50}
    lengths |= {("q4", "x"): 9, ("q4", "y"): 1, ("q5", "x"): 9}
    health = judge_health(rows, lengths)
    assert health.lengths_compared == 3
    assert health.longer_share.value == pytest.approx(2 / 3)


def test_circles_are_counted_among_decided_triples() -> None:
    circle = [game("q", "x", "y", "A"), game("q", "y", "z", "A"), game("q", "z", "x", "A")]
    line = [game("q", "x", "y", "A"), game("q", "y", "w", "A"), game("q", "x", "w", "A")]
    health = judge_health(circle + line)
    assert (health.triples, health.intransitive_triples) == (2, 1)
    assert judge_health(line).intransitive_triples == 0


def test_health_works_without_queries() -> None:
    rows = [GameVerdict(None, *pair, Verdict.A) for pair in (("x", "y"), ("y", "x"))]
    health = judge_health(rows)
    assert (health.both_orders, health.order_agreement.value, health.first_share.value) == (0, None, 1.0)


def with_lengths(queries: int, chance_longer: float, seed: int) -> tuple[list[GameVerdict], dict[tuple[str, str], int]]:
    """Equal agents before a judge that prefers the longer answer with a fixed chance; every third game is equal."""
    rng = np.random.default_rng(seed)
    lengths = {(f"q{q}", agent): int(rng.integers(10, 13)) for q in range(queries) for agent in "xyz"}
    rows = []
    for q in range(queries):
        for first, second in (("x", "y"), ("y", "z"), ("z", "x")):
            difference = np.sign(lengths[f"q{q}", first] - lengths[f"q{q}", second])
            chance = 0.5 + difference * (chance_longer - 0.5)
            rows.append(game(f"q{q}", first, second, "A" if rng.random() < chance else "B"))
    return rows, lengths


@pytest.mark.parametrize(("chance", "effect"), [(0.75, 191), (0.5, 0), (0.25, -191)])
def test_the_preference_for_longer_answers_is_found_with_its_sign_and_size(chance: float, effect: float) -> None:
    health = judge_health(*with_lengths(200, chance, seed=4))
    assert health.longer_effect.value == pytest.approx(effect, abs=50)
    assert inside(health.longer_effect.value, health.longer_effect)
    assert inside(0, health.longer_effect) == (effect == 0)
    assert inside(chance, health.longer_share)


def test_a_better_agent_that_also_writes_more_leaves_the_effect_of_length_open() -> None:
    rows = [game(f"q{i}", "x", "y", "A") for i in range(30)]
    lengths = {(f"q{i}", agent): size for i in range(30) for agent, size in (("x", 90), ("y", 10))}
    health = judge_health(rows, lengths)
    assert health.longer_share.value == 1.0
    assert health.longer_effect.value is None


def test_intervals_of_shares_count_queries_not_verdicts() -> None:
    rows = biased(40, 0.7, seed=6)
    once, often = judge_health(rows), judge_health(rows * 25)
    for name in ("first_share", "order_agreement"):
        few, many = getattr(once, name), getattr(often, name)
        assert (many.low, many.high) == (pytest.approx(few.low, abs=0.01), pytest.approx(few.high, abs=0.01))
    assert 0.5 < once.first_share.low < 0.7 < (once.first_share.high or 0) < 0.8


def test_one_query_gives_shares_without_intervals() -> None:
    health = judge_health(biased(1, 0.5, seed=8))
    assert health.first_share.value is not None
    assert (health.first_share.low, health.order_agreement.high) == (None, None)


def test_coverage_is_the_share_of_queries_and_pairs_with_a_verdict() -> None:
    health = judge_health([game("q1", "x", "y", "A"), game("q1", "y", "x", "A"), game("q2", "y", "z", "B")])
    assert health.coverage == pytest.approx(2 / 6)
    assert health.queries == 2
    assert judge_health([GameVerdict(None, "x", "y", Verdict.A)]).coverage is None
