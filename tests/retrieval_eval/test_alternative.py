"""The alternative annotator test: the published figures, what it leaves out, and tests that hold their level."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from retrieval_eval.stats.alternative import AlternativeTest, alternative_test

Labels = dict[str, dict[str, Any]]


def labels_of(path: Path) -> dict[str, Labels]:
    """Labels by kind of rater, rater and item; those that are numbers as such."""
    found: dict[str, Labels] = {"human": defaultdict(dict), "llm": defaultdict(dict)}
    with gzip.open(path, "rt", encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            label = row["label"]
            found[row["kind"]][row["rater"]][row["item"]] = float(label) if label.isdigit() else label
    return found


def test_all_published_figures_to_both_digits(shared: Path) -> None:
    folder, differ, known = shared / "data/alt_test", [], dict[str, dict[str, Labels]]()
    with (folder / "published.csv").open() as rows:
        published = list(csv.DictReader(rows))
    for row in published:
        name = row["dataset"]
        known.setdefault(name, labels_of(folder / f"{name}.csv.gz"))
        people, judge = known[name]["human"], known[name]["llm"][row["llm"]]
        found = alternative_test(people, judge, epsilon=float(row["epsilon"]), score=row["score"])  # type: ignore[arg-type]
        figures = str(found.passed), f"{found.winning_rate:.2f}", f"{found.advantage:.2f}"
        if figures != (row["passed"], row["winning_rate"], row["advantage_probability"]):
            differ.append((row, figures))
    assert len(published) == 24
    assert not differ


def raters(rng: np.random.Generator, items: int, right: Mapping[str, float]) -> tuple[Labels, dict[str, int]]:
    """Raters who give the true one of three labels so often, else another one."""
    truth = {f"i{item}": int(rng.integers(3)) for item in range(items)}
    people = {
        name: {item: label if rng.random() < share else (label + 1) % 3 for item, label in truth.items()}
        for name, share in right.items()
    }
    return people, truth


def of_a_judge(right: float, *, epsilon: float = 0.1) -> AlternativeTest:
    """Three people who are right on 80 % of 200 items, and a judge who is so often."""
    people, _ = raters(np.random.default_rng(1), 200, {"ann": 0.8, "bob": 0.8, "eve": 0.8, "judge": right})
    return alternative_test(people, people.pop("judge"), epsilon=epsilon)


def test_a_judge_like_people_passes_and_a_guessing_one_is_shown_to_be_worse() -> None:
    good, bad = of_a_judge(0.85), of_a_judge(0.4)
    assert (good.winning_rate, good.winning_rate_clustered, good.losing_rate) == (1, 1, 0)
    assert (bad.winning_rate, bad.winning_rate_clustered, bad.losing_rate) == (0, 0, 1)
    assert bad.advantage is not None
    assert good.advantage is not None
    assert good.advantage > 0.8 > bad.advantage


def test_a_larger_epsilon_forgives_more() -> None:
    rates = [of_a_judge(0.65, epsilon=epsilon).winning_rate for epsilon in (0.05, 0.3, 0.6)]
    assert rates == sorted(rates)  # type: ignore[type-var]
    assert (rates[0], rates[-1]) == (0, 1)


def lost_by(judge: Mapping[str, Any], people: Labels, rater: str) -> np.ndarray[Any, Any]:
    """1 where the rater alone agrees better with the others, -1 where the judge does."""
    found = []
    for item, label in people[rater].items():
        others = [own[item] for name, own in people.items() if name != rater]
        found.append(np.sign(others.count(label) - others.count(judge[item])))
    return np.array(found)


@pytest.mark.parametrize(
    ("items", "published"),
    [
        (50, lambda excess: stats.ttest_1samp(excess, 0, alternative="less").pvalue),
        (20, lambda excess: stats.wilcoxon(excess, alternative="less").pvalue),
    ],
)
def test_p_values_are_those_of_students_t_or_of_signed_ranks_corrected_for_all_raters(
    items: int, published: Any
) -> None:
    people, truth = raters(np.random.default_rng(3), items, {"ann": 0.8, "bob": 0.7, "eve": 0.9})
    found = alternative_test(people, truth, epsilon=0.15, fewest=10)
    lost = [lost_by(truth, people, own) for own in people]
    raw = [published(own - 0.15) for own in lost]
    corrected = stats.false_discovery_control(raw, method="by")
    assert [own.p_value for own in found.raters] == pytest.approx(corrected.tolist())
    assert [own.difference.value for own in found.raters] == pytest.approx([own.mean() for own in lost])


def test_with_an_item_of_each_query_both_forms_are_one() -> None:
    found = of_a_judge(0.75)
    assert [own.p_clustered for own in found.raters] == pytest.approx([own.p_value for own in found.raters])


def test_what_nobody_else_or_not_the_judge_has_labelled_is_left_out_and_so_is_who_has_too_little() -> None:
    people, truth = raters(np.random.default_rng(5), 60, {"ann": 0.8, "bob": 0.8, "eve": 0.8, "new": 0.8})
    people["new"] = {item: people["new"][item] for item in list(truth)[:29]}
    whole = alternative_test(people, truth, epsilon=0.1)
    assert whole.few == ("new",)
    assert [(own.rater, own.items) for own in whole.raters] == [("ann", 60), ("bob", 60), ("eve", 60)]
    lonely = {"only ann": 0}
    assert alternative_test({**people, "ann": people["ann"] | lonely}, truth | lonely, epsilon=0.1) == whole
    unjudged = {name: own | {"extra": 1} for name, own in people.items()}
    assert alternative_test(unjudged, truth, epsilon=0.1) == whole
    unsaid = {name: own | {"extra": None, "more": float("nan")} for name, own in people.items()}
    assert alternative_test(unsaid, truth | {"extra": 1, "more": 1}, epsilon=0.1) == whole
    assert alternative_test(unsaid, truth | {"extra": float("nan")}, epsilon=0.1, score="neg_rmse").raters
    nobody = alternative_test({"ann": people["ann"]}, truth, epsilon=0.1)
    assert (nobody.winning_rate, nobody.advantage, nobody.passed, nobody.few) == (None, None, False, ("ann",))


def test_where_items_of_a_query_are_alike_only_the_clustered_form_keeps_its_level() -> None:
    """The judge is worse by just epsilon, all eight items of a query alike: who is replaced is so by mistake."""
    rng, published, clustered = np.random.default_rng(11), 0, 0
    items = [(query, item) for query in range(30) for item in range(8)]
    person = dict.fromkeys(items, 0)
    for _ in range(200):
        wrong = rng.random(30) < 0.2
        judge = {(query, item): int(wrong[query]) for query, item in items}
        found = alternative_test({"a": person, "b": person}, judge, epsilon=0.2, cluster=lambda item: item[0])
        assert found.winning_rate is not None
        assert found.winning_rate_clustered is not None
        published += found.winning_rate > 0
        clustered += found.winning_rate_clustered > 0
    assert published > 50
    assert clustered < 15


def test_a_judge_that_never_loses_on_few_items_is_not_sure_to_be_better() -> None:
    same = {f"i{item}": 0 for item in range(30)}
    found = alternative_test({"a": same, "b": same, "c": same}, same, epsilon=0.1)
    assert (found.winning_rate, found.winning_rate_clustered) == (1, 0)


def test_numbers_are_compared_by_their_distance() -> None:
    people = {name: {f"i{item}": float(item % 5) for item in range(40)} for name in ("a", "b", "c")}
    near = {item: value + 1 for item, value in people["a"].items()}
    far = {item: value + 3 for item, value in people["a"].items()}
    people["c"] = {item: value + 2 for item, value in people["c"].items()}
    by_distance = [alternative_test(people, judge, epsilon=0.1, score="neg_rmse").advantage for judge in (near, far)]
    assert by_distance == [1, 0]


@pytest.mark.parametrize("epsilon", [-0.1, 1.0])
def test_epsilon_is_a_share(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        of_a_judge(0.8, epsilon=epsilon)
