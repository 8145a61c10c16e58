"""What the schedule promises, held against worlds whose truth is known; the full study is benchmarks/adaptive.py."""

from itertools import islice

import numpy as np

from arena.ratings.evidence import AdaptiveSettings, decision
from benchmarks.adaptive import UNEQUAL, adaptive, at_random, errs, order_is_right, repeated_tests_err, world


def test_error_stays_at_its_level_where_repeated_fixed_sample_tests_do_not() -> None:
    runs, settings = 40, AdaptiveSettings(batch=60, max_games=900)
    adaptive_errors = repeated_errors = 0
    for run in range(runs):
        rng = np.random.default_rng([1, run])
        drawn = world(rng, np.zeros(4), 200)
        adaptive_errors += any(
            errs(drawn, decision(drawn.outcomes(asked), settings).places) for asked in adaptive(drawn, settings)
        )
        looks = islice(at_random(rng, drawn, settings), 15)
        repeated_errors += any(repeated_tests_err(drawn, asked)[0] for asked in looks)
    assert adaptive_errors <= 0.05 * runs
    assert repeated_errors >= 0.12 * runs


def test_an_order_takes_less_than_half_the_games_of_random_pairs() -> None:
    rng = np.random.default_rng(3)
    drawn = world(rng, UNEQUAL, 1500)
    settings = AdaptiveSettings(batch=120)
    asked = list(adaptive(drawn, settings))[-1]
    found = decision(drawn.outcomes(asked), settings)
    assert found.decided
    assert found.places == drawn.agents
    assert order_is_right(drawn, asked)
    random_pairs = next(at_random(rng, drawn, AdaptiveSettings(batch=2 * len(asked))))
    assert not decision(drawn.outcomes(random_pairs), settings).decided
