"""The smallest difference that a run can find: what subsamples of recorded verdicts find, and planted variances."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy

from benchmarks.decidable import crowdrag, llmbar, mtbench, realised
from retrieval_eval.stats import Floats
from retrieval_eval.stats.decidable import Components, _student, components, smallest_difference


@pytest.mark.parametrize(
    ("read", "pilot", "judges", "others"),
    [
        (mtbench, (8, 1), 1, False),
        (mtbench, (20, 3), 3, False),
        (mtbench, (20, 6), 6, True),
        (crowdrag, (8, 1), 1, False),
        (llmbar, (8, 1), 1, False),
        (llmbar, (20, 3), 6, False),
    ],
)
def test_runs_find_the_smallest_difference_in_four_of_five(
    shared: Path, read: Callable[[Path], Floats], pilot: tuple[int, int], judges: int, others: bool
) -> None:
    values = read(shared / "data")
    _, found, runs = realised(values, np.random.default_rng(3), 30, pilot, judges, others=others)
    assert runs > 80
    assert found == pytest.approx(0.815, abs=0.05 + 2 * (0.16 / runs) ** 0.5)


def planted(queries: float, judges: float, rest: float, shape: tuple[int, int, int]) -> Floats:
    rng = np.random.default_rng(5)
    pairs, number, k = shape
    each: Floats = rng.normal(0, queries**0.5, (pairs, number, 1)) + rng.normal(0, judges**0.5, (pairs, 1, k))
    return each + rng.normal(0, rest**0.5, shape)


def test_components_are_those_planted_also_with_cells_missing() -> None:
    values = planted(0.04, 0.01, 0.06, (40, 60, 5))
    for missing in (0.0, 0.2):
        values[np.random.default_rng(1).random(values.shape) < missing] = np.nan
        found = components(values)
        # the judges' mean differs from 0 too: a difference of the pair
        assert found.queries == pytest.approx(0.04 + 0.01 / 5, rel=0.15)
        assert (found.judges, found.rest) == (pytest.approx(0.01, rel=0.25), pytest.approx(0.06, rel=0.1))


def test_few_judges_show_less() -> None:
    values = planted(0.04, 0.01, 0.06, (40, 60, 5))
    assert components(values[:, :, :1]) == Components(pytest.approx(0.11, rel=0.15))
    assert components(values[:, :, :2]).judges is None
    two = components(values[:, :, :2])
    assert smallest_difference(two, 40, 4) is not None
    assert smallest_difference(two, 40, 4, others=True) is None
    assert smallest_difference(components(values), 40, 2, others=True) is None


def test_more_queries_and_judges_find_less_and_other_judges_more() -> None:
    parts = Components(0.06, 0.07, 0.006)
    found = {
        (n, k, o): smallest_difference(parts, n, k, others=o) or 9 for n in (20, 40) for k in (3, 6) for o in (0, 1)
    }
    for n, k in ((20, 3), (20, 6), (40, 3), (40, 6)):
        assert found[n, k, 1] > found[n, k, 0]
        assert found[n, k, 0] > found[2 * n, k, 0] if n == 20 else found[n, 3, 1] >= found[n, k, 1]
    assert found[40, 3, 0] < found[20, 6, 0]  # queries buy more than judges
    assert found[20, 6, 1] < found[40, 3, 1]  # but not for other judges


def test_a_known_case_and_too_few_queries() -> None:
    assert smallest_difference(Components(0.34**2), 26) == pytest.approx(0.185, abs=0.001)
    assert [smallest_difference(Components(0.1), queries) for queries in (0, 1, 2, 5)] == [None] * 4


def test_quantiles_are_those_of_students_t() -> None:
    for freedom in (2, 3, 7, 25, 300):
        for p in (0.8, 0.975):
            assert _student(p, freedom) == pytest.approx(scipy.special.stdtrit(freedom, p), rel=0.01)
