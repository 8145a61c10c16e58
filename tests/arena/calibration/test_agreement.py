"""Judges against people: laws, golden figures, and what a table may hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.boards.people import gain_from_ties, outside_scale
from arena.calibration import Opinion
from arena.calibration.comparison import PANEL, Settings, compare
from arena.calibration.consensus import order_health, settled
from arena.calibration.correlation import bland_altman
from arena.calibration.votes import agreement_within, annotators
from arena.ratings.games import GameVerdict
from arena.ratings.health import judge_agreement
from judges.types import Verdict

QUICK = Settings(samples=10)

verdicts = st.lists(
    st.tuples(
        st.integers(0, 4), st.sampled_from([("a", "b"), ("a", "c"), ("b", "c")]), st.sampled_from([-1.0, 0.0, 1.0]),
        st.sampled_from([-1.0, 0.0, 1.0]), st.booleans(),
    ),
    min_size=3, max_size=40, unique_by=lambda row: row[:2],
)  # fmt: skip


def judged(rows: Any, names: dict[str, str]) -> Any:
    """Judge and people on the same games, with agents called as ``names`` says, which decides who is written first."""
    said: tuple[list[Opinion], list[Opinion]] = ([], [])
    for query, (first, second), *values, _ in rows:
        item = (names[first], names[second])
        turned = item[0] > item[1]
        for own, rater, value in zip(said, ("judge", "ann"), values, strict=True):
            own.append(Opinion(f"q{query}", tuple(sorted(item)), rater, -value if turned else value))
    return compare("verdicts", {"judge": said[0]}, said[1], QUICK).judges["judge"]


@settings(max_examples=8, deadline=None)
@given(verdicts)
def test_which_side_an_answer_is_written_on_changes_no_measure(rows: Any) -> None:
    one = judged(rows, {"a": "a", "b": "b", "c": "c"})
    other = judged(rows, {"a": "z", "b": "b", "c": "0"})
    for name in ("agreement", "kappa", "kappa_linear", "kappa_quadratic", "alpha", "alpha_ordinal"):
        assert getattr(other.labels, name).value == pytest.approx(getattr(one.labels, name).value)
    for name in ("pearson", "spearman", "kendall"):
        same = getattr(other.correlations, name)
        assert same.value == pytest.approx(getattr(one.correlations, name).value)
        assert same.p_value == pytest.approx(getattr(one.correlations, name).p_value, abs=1e-9)
    assert other.votes == one.votes


@settings(max_examples=8, deadline=None)
@given(verdicts)
def test_kappa_and_alpha_of_verdicts_are_those_of_two_judges_of_a_tournament(rows: Any) -> None:
    found = judged(rows, {"a": "a", "b": "b", "c": "c"}).labels
    word = {1.0: Verdict.A, 0.0: Verdict.TIE, -1.0: Verdict.B}
    games = [
        GameVerdict(f"q{query}", *pair, word[value], name)
        for query, pair, judge, human, _ in rows
        for name, value in (("human", human), ("judge", judge))
    ]
    both = judge_agreement(games)
    (pair,) = both.pairs
    assert found.kappa.value == pytest.approx(pair.kappa.value)
    assert found.kappa_linear.value == pytest.approx(pair.kappa_linear.value)
    assert found.alpha.value == pytest.approx(both.alpha.value)
    assert found.alpha_ordinal.value == pytest.approx(both.alpha_ordinal.value)


def test_bias_and_limits_of_agreement_are_those_of_bland_and_altman() -> None:
    people, judge = [1.0, 2.0, 2.0, 0.0, 3.0, 1.0], [2.0, 2.0, 3.0, 1.0, 3.0, 0.0]
    found = bland_altman(people, judge, list("aabbcc"))
    gaps = np.subtract(judge, people)
    assert found.bias.value == pytest.approx(gaps.mean())
    assert found.lower.value == pytest.approx(gaps.mean() - 1.96 * gaps.std(ddof=1))
    assert found.upper.value == pytest.approx(gaps.mean() + 1.96 * gaps.std(ddof=1))
    assert sum(point.times for point in found.points) == 6
    assert found.bias.low < found.bias.value < (found.bias.high or 0)


def test_a_judge_that_is_always_one_too_kind_correlates_fully_and_has_a_bias_of_one() -> None:
    said = [Opinion(f"q{at % 5}", (f"d{at}",), "ann", float(at % 3)) for at in range(30)]
    kind = [Opinion(one.query_id, one.item, "judge", one.value + 1) for one in said]
    found = compare("labels", {"judge": kind}, said, QUICK).judges["judge"]
    assert found.correlations.spearman.value == pytest.approx(1)
    assert found.differences.bias.value == pytest.approx(1)
    assert found.differences.bias.low is None  # no query differs from another
    assert (found.labels.kappa.value or 0) < 0


def test_both_orders_become_one_game_and_their_agreement_is_told() -> None:
    pair = ("a", "b")
    said = [
        Opinion("q1", pair, "j", 1.0),
        Opinion("q1", pair, "j", 1.0, swapped=True),
        Opinion("q2", pair, "j", 1.0),
        Opinion("q2", pair, "j", -1.0, swapped=True),
        Opinion("q3", pair, "j", -1.0),
    ]
    assert [(one.query_id, one.value) for one in settled(said, verdicts=True)] == [("q1", 1), ("q2", 0), ("q3", -1)]
    health = order_health(said)
    assert (health.both_orders, health.order_agreement.value) == (2, 0.5)
    assert health.first_share.value == pytest.approx(3 / 5)


def test_a_vote_is_not_held_against_the_same_persons_own() -> None:
    votes = [Opinion("q", ("d",), rater, value) for rater, value in (("ann", 1), ("ann", 1), ("bob", 0))]
    assert (agreement_within(votes).pairs, agreement_within(votes).share.value) == (2, 0)


def test_people_who_throw_dice_are_told_from_those_who_look() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 150)
    votes = []
    for thing, value in enumerate(truth):
        for rater in ("ann", "bob", "cid", "dice"):
            honest = rater != "dice" and rng.random() < 0.8
            votes.append(Opinion(f"q{thing % 30}", (f"d{thing}",), rater, float(value if honest else rng.integers(3))))
    found = {one.rater: one.above_chance for one in annotators(votes)}
    assert found == {"ann": True, "bob": True, "cid": True, "dice": False}
    few = [one for one in votes if one.item[0] in {"d0", "d1", "d2"}]
    assert all(one.above_chance is not False for one in annotators(few))


def test_who_is_always_one_grade_off_is_above_chance() -> None:
    grades = [(at * 7) % 20 for at in range(40)]
    said = [
        Opinion(f"q{at}", ("x",), rater, float(grade + off))
        for at, grade in enumerate(grades)
        for rater, off in (("one", 0), ("two", 1))
    ]
    assert [one.above_chance for one in annotators(said, graded=True)] == [True, True]
    assert [one.above_chance for one in annotators(said)] == [False, False]


def test_a_panel_of_judges_has_one_vote_each() -> None:
    said = [Opinion(f"q{at}", ("d",), "ann", float(at % 2)) for at in range(10)]
    off = {"x": 0, "y": 1, "z": 2}
    judges = {
        name: [
            Opinion(one.query_id, one.item, name, 1 - one.value if at == off[name] else one.value)
            for at, one in enumerate(said)
        ]
        for name in off
    }
    found = compare("labels", judges, said, QUICK).judges
    assert found["x"].labels.agreement.value == pytest.approx(0.9)
    assert found[PANEL].labels.agreement.value == pytest.approx(1)


LABELS = "qid,did,label\nq1,d1,1\nq1,d2,0\nq2,d1,2\n"


@pytest.mark.parametrize(
    ("judge", "people", "said"),
    [
        ("qid,did,label\nq1,d1,1.5\n", LABELS, "judge.csv:2: 'label' must be a whole number ('1.5')"),
        ("qid,did,label\nq1,d1,much\n", LABELS, "judge.csv:2: 'label' must be a whole number ('much')"),
        ("qid,did,label\nq9,d1,1\n", LABELS, "judges and people have no labels of the same things to compare"),
        ("qid,agent_a,agent_b,verdict\nq1,x,y,A\n", LABELS, "name files of the same kind"),
        ("qid,agent,nugget,assignment\nq1,x,fact,maybe\n", LABELS, "'assignment' must be one of support"),
        ("agent_a,agent_b,verdict\nx,y,A\n", LABELS, "judge.csv: no column 'qid'"),
        ("qid,did\nq1,d1\n", LABELS, "judge.csv: no column 'agent_a'"),
    ],
)  # fmt: skip
def test_a_faulty_table_is_refused_with_its_line(judge: str, people: str, said: str, cli: Any, tmp_path: Path) -> None:
    (tmp_path / "judge.csv").write_text(judge, encoding="utf-8")
    (tmp_path / "people.csv").write_text(people, encoding="utf-8")
    ended = cli("calibrate", tmp_path / "judge.csv", "--people", tmp_path / "people.csv")
    assert ended.status == 2
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_nuggets_and_disagreements_come_with_their_texts(cli: Any, tmp_path: Path) -> None:
    tables = {
        "judge.csv": "qid,agent,nugget,assignment\nq1,x,the sky is blue,support\nq2,x,fire burns,not_support\n",
        "people.csv": (
            "qid,agent,nugget,assignment,annotator\n"
            "q1,x,the sky is blue,not_support,ann\nq2,x,fire burns,not_support,ann\n"
        ),
        "queries.csv": "qid,query\nq1,Why is the sky \x1b[31mblue?\nq2,Does fire burn?\n",
        "answers.csv": "qid,agent,answer\nq1,x,It scatters.\nq2,x,Yes.\n",
    }
    for name, text in tables.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [word for name in ("queries", "answers") for word in (f"--{name}", tmp_path / f"{name}.csv")]
    ended = cli(
        "calibrate", tmp_path / "judge.csv", "--people", tmp_path / "people.csv", "--disagreements", "5", *files
    )
    assert "query: Why is the sky \\x1b[31mblue?" in ended.out
    assert "x: It scatters." in ended.out
    assert "q2: x" not in ended.out
    found = json.loads(
        cli("calibrate", tmp_path / "judge.csv", "--people", tmp_path / "people.csv", "--format", "json").out
    )
    assert found["comparisons"][0]["level"] == "nuggets"
    assert found["comparisons"][0]["judges"]["judge"]["bias"] == 1


def test_where_people_disagree_evenly_a_judge_between_them_has_no_bias() -> None:
    said = [Opinion(f"q{n}", ("d",), name, value) for n in range(20) for name, value in (("ann", 0), ("bob", 2))]
    judge = [Opinion(f"q{n}", ("d",), "judge", 1) for n in range(20)]
    compared = compare("labels", {"judge": judge}, said, QUICK)
    differences = compared.judges["judge"].differences
    assert differences is not None
    assert differences.bias.value == 0
    assert compared.people.consensus.contested == 20
    assert {value for own in compared.people.consensus.values.values() for value in own.values()} == {0}


def test_labels_beyond_those_of_people_are_named_and_counted() -> None:
    judge = [Opinion(f"q{n}", ("d",), "judge", value) for n, value in enumerate((0, 1, 5, 10, 10, 3))]
    said = [Opinion(f"q{n}", ("d",), "ann", value) for n, value in enumerate((0, 1, 2, 3, 3, 3))]
    report = compare("labels", {"judge": judge}, said, QUICK).judges["judge"]
    assert report.outside == ((5, 1), (10, 2))
    text = "values 5 (1), 10 (2) lie outside the 0 to 3 of people: kappa counts each as a label of its own"
    assert outside_scale(report) == text
    assert not outside_scale(compare("labels", {"judge": judge[:2]}, said, QUICK).judges["judge"])


@pytest.mark.parametrize(
    ("judge", "people", "differ"),
    [
        ((0, 1, 1), (2, 2, 2), False),  # three documents of one label show no scale
        ((0, 3, 0), (1, 2, 1), False),
        ((20, 90, 70), (1, 5, 3), True),
        ((0.2, 0.9, 0.7), (1, 5, 3), True),
        ((0, 1) * 6, (2, 3) * 6, True),
    ],
)
def test_few_items_tell_scales_apart_only_where_they_are_far_apart(judge: Any, people: Any, differ: bool) -> None:
    own, said = (
        [Opinion(f"q{n}", ("d",), who, v) for n, v in enumerate(xs)] for who, xs in (("j", judge), ("ann", people))
    )
    assert compare("labels", {"j": own}, said, QUICK).judges["j"].other_scale is differ


def test_a_panels_gain_on_peoples_ties_is_told_from_the_rest() -> None:
    # On two ties the judges differ, so the panel ties; on one win one judge errs, so the panel ties too, wrongly.
    people, one, two = (0, 0, 1, 1, 1), (1, 1, 1, 1, 1), (-1, -1, 1, 1, -1)
    by_name = {
        name: [Opinion(f"q{n}", ("x", "y"), name, float(value)) for n, value in enumerate(own)]
        for name, own in (("one", one), ("two", two), ("ann", people))
    }
    found = compare("verdicts", {name: by_name[name] for name in ("one", "two")}, by_name["ann"], QUICK)
    assert found.gain.best == "one"
    assert found.gain.gain.value == pytest.approx(0.2)
    assert (found.gain.gold_ties, found.gain.gain_on_ties) == (2, pytest.approx(0.4))
    assert gain_from_ties(found).startswith(
        "of the difference +0.40 comes from the 2 games on which people tie, -0.20 from the others"
    )
