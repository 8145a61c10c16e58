"""Agreement on clustered labels: the whole table's kappa, with an interval over clusters."""

import numpy as np
import pytest

from retrieval_eval.agreement import cohen_kappa
from retrieval_eval.clustered_agreement import label_agreement


def test_counts_share_and_kappa_are_those_of_all_labels_together() -> None:
    first = ["x"] * 25 + ["y"] * 25
    second = ["x"] * 20 + ["y"] * 5 + ["x"] * 10 + ["y"] * 15
    found = label_agreement(first, second, ["x", "y"], [place % 7 for place in range(50)])
    assert found.confusion == ((20, 5), (10, 15))
    assert (found.n, found.share) == (50, 0.7)
    assert found.kappa == pytest.approx(0.4)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.4 < found.high


def test_labels_that_repeat_within_a_cluster_do_not_narrow_the_interval() -> None:
    rng = np.random.default_rng(0)
    labels = np.array(["x", "y"])
    first, second = labels[rng.integers(2, size=40)], labels[rng.integers(2, size=40)]
    clusters = list(range(40))
    once = label_agreement(list(first), list(second), labels.tolist(), clusters)
    often = label_agreement(list(first) * 9, list(second) * 9, labels.tolist(), clusters * 9)
    assert (often.n, often.kappa) == (360, pytest.approx(once.kappa))
    assert (often.low, often.high) == (pytest.approx(once.low), pytest.approx(once.high))


def test_one_cluster_gives_no_interval_and_one_label_no_kappa() -> None:
    found = label_agreement(["x", "x"], ["x", "x"], ["x", "y"], ["q", "q"])
    assert found.share == 1
    assert (found.kappa, found.low, found.high) == (None, None, None)
    assert cohen_kappa(found.confusion) is None


def test_nothing_in_common_is_nothing() -> None:
    found = label_agreement([], [], ["x", "y"], [])
    assert (found.n, found.share, found.kappa) == (0, None, None)
