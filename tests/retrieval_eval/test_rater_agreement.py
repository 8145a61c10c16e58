"""Agreement of several relevance judges, held against the library ``krippendorff``."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from retrieval_eval.stats.agreement import rater_agreement

RATINGS = st.lists(st.lists(st.sampled_from([None, 0, 1, 2, 3]), min_size=6, max_size=6), min_size=2, max_size=4)


@given(RATINGS)
def test_alpha_is_krippendorff_s_whatever_is_missing(ratings: list[list[int | None]]) -> None:
    """Six documents, two each of three queries."""
    raters = []
    for row in ratings:
        own: dict[str, dict[str, int]] = {}
        for place, label in enumerate(row):
            if label is not None:
                own.setdefault(f"q{place // 2}", {})[f"d{place}"] = label
        raters.append(own)
    table = np.array(ratings, dtype=float)
    paired = (~np.isnan(table)).sum(axis=0) > 1
    found = rater_agreement(raters, samples=10)
    assert found.documents == paired.sum()
    assume(len(np.unique(table[:, paired][~np.isnan(table[:, paired])])) > 1)
    for estimate, level in ((found.alpha, "nominal"), (found.alpha_ordinal, "ordinal")):
        assert estimate.value == pytest.approx(krippendorff.alpha(table, level_of_measurement=level))


def test_nothing_in_common_is_not_defined() -> None:
    found = rater_agreement([{"q": {"a": 1}}, {"q": {"b": 1}}, {}])
    assert (found.documents, found.queries, found.alpha.value) == (0, 0, None)
