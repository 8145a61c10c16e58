"""Paired comparison of two systems: intervals that hold, and verdicts that never rest on ignorance."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from judges.errors import InputError
from retrieval_eval.stats.paired import interval, paired

HALF = 0.5


def shares(won: int, tied: int, lost: int) -> list[float]:
    """Differences of win shares from one half."""
    return [HALF] * won + [0.0] * tied + [-HALF] * lost


@pytest.mark.parametrize(
    ("won", "tied", "lost", "verdict"),
    [
        (80, 0, 20, "better"),
        (400, 200, 400, "not worse"),
        (20, 0, 80, "worse"),
        (50, 0, 50, "undecided"),
        (0, 50, 0, "not worse"),
        (0, 40, 0, "undecided"),  # the rule of three: of 40 ties, one query in ten may still be lost
        (8, 0, 0, "better"),
        (7, 0, 0, "not worse"),
        (5, 0, 0, "undecided"),
        (0, 0, 8, "worse"),
        (1, 0, 0, "undecided"),
        (1, 0, 1, "undecided"),
    ],
)
def test_verdicts_of_one_look(won: int, tied: int, lost: int, verdict: str) -> None:
    found = paired(shares(won, tied, lost), 0.05, reach=HALF)
    assert (found.verdict, found.wins, found.ties, found.losses) == (verdict, won, tied, lost)


def test_nothing_known_decides_nothing() -> None:
    found = paired([], 0.05, missing=3)
    assert (found.verdict, found.difference.value, found.difference.n, found.more) == ("undecided", None, 0, None)
    found = paired([1.0], 0.05)
    assert (found.verdict, found.difference.low, found.more) == ("undecided", None, None)


def test_ends_are_where_the_likelihood_allows() -> None:
    x = np.array([0.1, 0.4, 0.4, 0.7, 1.0, 0.9, 0.2])
    low, high = interval(x, 0.95, any_look=False)
    allowed = scipy.special.stdtrit(x.size - 1, 0.975) ** 2 / 2
    for end, figures in ((low, x), (1 - high, 1 - x)):
        stakes = np.linspace(0, 1 - 1e-9, 200_001) / end
        log = np.log1p(stakes[:, None] * (np.append(figures, 0) - end)).sum(axis=1)
        assert log.max() == pytest.approx(allowed, abs=1e-6)


def test_any_look_is_the_evidence_of_games_at_one_half() -> None:
    from arena.ratings.evidence import log_evidence
    from arena.ratings.games import Games

    x = np.array([1.0] * 14 + [0.5] * 4 + [0.0] * 2)
    zero = np.zeros(x.size, np.int32)
    evidence = log_evidence(Games(("a", "b"), zero, zero + 1, x, soft=True))[0, 1]
    level = 1 - 2 * math.exp(-evidence)  # at which one half is just the lower end
    assert interval(x, level, any_look=True)[0] == pytest.approx(0.5, abs=1e-9)


@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.floats(0, 0.9), st.booleans(), st.sampled_from([0.9, 0.95])
)
def test_what_holds_of_all_differences(d: list[float], margin: float, any_look: bool, level: float) -> None:
    found = paired(d, margin, level=level, any_look=any_look)
    turned = paired([-one for one in d], margin, level=level, any_look=any_look)
    own = found.difference
    assert own.value is not None
    assert own.low is not None
    assert own.high is not None
    assert -1 - 1e-9 <= own.low <= own.value + 1e-9 <= own.high + 2e-9 <= 1 + 1e-8
    assert turned.difference.low == pytest.approx(-own.high, abs=1e-7)
    assert (found.verdict == "better") == (own.low > 0)
    assert (found.more is None) or (found.verdict == "undecided" and found.more > 0)
    wider = paired(d, margin, level=0.99, any_look=any_look).difference
    assert wider.low is not None
    assert wider.low <= own.low + 1e-9


@pytest.mark.parametrize(("loss", "queries"), [(1.0, 20), (1.0, 60), (1.0, 200), (0.5, 40), (0.3, 100)])
def test_rare_losses_pass_as_seldom_as_they_should(loss: float, queries: int) -> None:
    """Exactly at the margin, where most queries tie and a few are lost: Student's t passes four times as often."""
    margin = 0.05
    p = margin / loss
    passing = [
        lost
        for lost in range(queries + 1)
        if paired([-loss] * lost + [0.0] * (queries - lost), margin).verdict in ("better", "not worse")
    ]
    assert sum(math.comb(queries, k) * p**k * (1 - p) ** (queries - k) for k in passing) <= 0.025


def test_missing_queries_that_could_turn_a_verdict_undo_it() -> None:
    d = shares(400, 200, 400)
    assert paired(d, 0.05, missing=100, reach=HALF).verdict == "not worse"  # at worst 45.5 %
    found = paired(d, 0.05, missing=120, reach=HALF)
    assert (found.verdict, found.unsure) == ("undecided", True)
    won = shares(80, 0, 20)
    assert paired(won, 0.05, missing=62, reach=HALF).verdict == "not worse"  # at worst 49.4 %: no longer better
    assert paired([-one for one in won], 0.05, missing=62, reach=HALF).unsure


def test_more_queries_are_as_many_as_a_formula_says() -> None:
    d = shares(50, 0, 50)
    more = paired(d, 0.05, reach=HALF).more
    normal = ((1.96 + 0.84) * 0.5 / 0.05) ** 2 - 100
    assert more == pytest.approx(normal, rel=0.05)
    assert paired(shares(5, 0, 5), 0.0, reach=HALF).more is None  # of equal agents none is ever better


@pytest.mark.parametrize(("margin", "level"), [(-0.1, 0.95), (0.5, 0.95), (0.05, 1.0)])
def test_impossible_settings_are_refused(margin: float, level: float) -> None:
    with pytest.raises(InputError):
        paired([0.1, 0.2], margin, reach=HALF, level=level)
    with pytest.raises(ValueError, match="between"):
        paired([0.7], 0.05, reach=HALF)
