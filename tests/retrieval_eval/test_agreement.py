"""Agreement coefficients: published tables, an independent implementation, and what they must be invariant to."""

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from retrieval_eval.stats.agreement import Level, Weights, cohen_kappa, cohen_kappas, coincidences, krippendorff_alphas

LEVELS: list[Level] = ["nominal", "ordinal", "interval"]
WEIGHTS: list[Weights] = ["none", "linear", "quadratic"]
TABLES = arrays.arrays(np.float64, (4, 4), elements=st.integers(0, 30).map(float))


def krippendorff_alpha(ratings: np.ndarray | list[list[float]], level: Level = "nominal") -> float | None:
    values = np.asarray(ratings, np.float64)
    labels = np.unique(values[~np.isnan(values)])
    value = float(krippendorff_alphas(coincidences(values, labels).sum(axis=0), labels, level))
    return None if np.isnan(value) else value


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        # Grade (rows: high, low) against manual judgment (columns: relevant, not): rubric workbench, Table 5.
        ([[998, 2377], [668, 7343]], 0.25),
        ([[1211, 4095], [455, 5625]], 0.16),
        # EXAM++, Table 4: both of its rows describe this one table; the 0.38 printed for one cannot be recomputed.
        ([[1910, 1117], [880, 2445]], 0.37),
    ],
)
def test_published_counts_give_their_published_kappa(table: list[list[int]], kappa: float) -> None:
    assert round(cohen_kappa(table) or 0, 2) == kappa


def test_kappa_by_hand() -> None:
    # Observed 35/50; by chance (25*30 + 25*20)/2500 = 0.5.
    assert cohen_kappa([[20, 5], [10, 15]]) == pytest.approx(0.4)
    # Three labels, one disagreement of one step and one of two: costs 1 + 2 (linear), 1 + 4 (quadratic).
    table = [[2, 1, 1], [0, 2, 0], [0, 0, 2]]
    expected = np.outer([4, 2, 2], [2, 3, 3]) / 8
    cost = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    assert cohen_kappa(table, "linear") == pytest.approx(1 - 3 / (cost * expected).sum())
    assert cohen_kappa(table, "quadratic") == pytest.approx(1 - 5 / (cost**2 * expected).sum())


def test_weights_do_not_matter_between_two_labels() -> None:
    table = [[20, 5], [10, 15]]
    assert cohen_kappa(table, "linear") == cohen_kappa(table, "quadratic") == cohen_kappa(table)


@given(TABLES, st.sampled_from(WEIGHTS))
def test_kappa_depends_neither_on_who_is_first_nor_on_the_direction_of_the_scale(
    table: np.ndarray, how: Weights
) -> None:
    kappas = cohen_kappas(np.stack([table, table.T, table[::-1, ::-1], 3 * table]), how)
    np.testing.assert_allclose(kappas, np.full(4, kappas[0]), atol=1e-12)
    assert np.isnan(kappas[0]) or -1 - 1e-12 <= kappas[0] <= 1


def test_a_coefficient_is_undefined_where_nothing_could_disagree() -> None:
    assert cohen_kappa([[9, 0], [0, 0]]) is None
    assert cohen_kappa([[0, 0], [0, 0]]) is None
    assert krippendorff_alpha([[1, 1, 1], [1, 1, 1]]) is None
    assert krippendorff_alpha([[1, np.nan], [np.nan, 2]]) is None


def test_alpha_of_the_example_in_the_literature() -> None:
    # Four observers, twelve units, five labels and missing ones (Krippendorff 2011, "Computing alpha-reliability", C).
    nan = np.nan
    data = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, nan, nan, nan],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nan, 3],
        [nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nan],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nan],
    ]
    values = {level: krippendorff_alpha(data, level) for level in LEVELS}
    assert values == pytest.approx({"nominal": 0.743, "ordinal": 0.815, "interval": 0.849}, abs=5e-4)


@given(
    arrays.arrays(np.float64, (3, 8), elements=st.sampled_from([0.0, 1.0, 2.0, 5.0, np.nan])), st.sampled_from(LEVELS)
)
def test_alpha_agrees_with_an_independent_implementation(data: np.ndarray, level: Level) -> None:
    ours = krippendorff_alpha(data, level)
    paired = data[:, (~np.isnan(data)).sum(axis=0) > 1]
    if ours is None:
        assert np.unique(paired[~np.isnan(paired)]).size < 2
    else:
        assert ours == pytest.approx(krippendorff.alpha(data, level_of_measurement=level), abs=1e-12)


def test_two_raters_without_gaps_have_alpha_close_to_kappa() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 2000)
    second = np.where(rng.random(2000) < 0.7, first, rng.integers(0, 3, 2000))
    table = np.zeros((3, 3))
    np.add.at(table, (first, second), 1)
    assert krippendorff_alpha(np.array([first, second])) == pytest.approx(cohen_kappa(table), abs=1e-3)


def test_coincidences_of_units_add_up_and_lone_labels_count_nothing() -> None:
    data = np.array([[0, 1, 1, 0.0], [0, 1, 0, np.nan], [1, 1, np.nan, np.nan]])
    labels = np.array([0.0, 1.0])
    of_units = coincidences(data, labels)
    assert of_units.sum(axis=(1, 2)).tolist() == [3, 3, 2, 0]
    whole = krippendorff_alphas(of_units.sum(axis=0), labels)
    assert float(whole) == pytest.approx(krippendorff_alpha(data))
