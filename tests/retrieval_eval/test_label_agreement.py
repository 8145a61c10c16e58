"""Agreement of label sets on the pairs both have, and of the rankings of runs that they give."""

import math
from collections.abc import Mapping
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from judges.errors import InputError
from retrieval_eval.data.runs import read_runs
from retrieval_eval.data.trec import read_qrels
from retrieval_eval.metrics import evaluate
from retrieval_eval.run_scores import ranking_agreement
from retrieval_eval.stats.agreement import LabelAgreement, label_agreement
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.rank import kendall_taus, spearmans

HUMAN = {"q1": {"a": 0, "b": 2, "c": 3}, "q2": {"a": 1, "d": 0}, "q3": {"e": 2}}
LLM = {"q1": {"a": 0, "b": 3, "c": 3, "x": 1}, "q2": {"a": 0, "d": 0}, "q9": {"a": 1}}

LABELS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]), st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3)), max_size=3
)


def test_figures_are_of_the_pairs_that_both_labelled() -> None:
    found = label_agreement(HUMAN, LLM)
    assert (found.n, found.queries, found.first_only, found.second_only) == (5, 2, 1, 2)
    assert found.scale == (0, 1, 2, 3)
    assert found.confusion == ((2, 0, 0, 0), (1, 0, 0, 0), (0, 0, 0, 1), (0, 0, 0, 1))
    assert found.agreement.value == pytest.approx(3 / 5)
    # By chance: (2*3 + 1*0 + 1*0 + 1*2) / 25.
    assert found.kappa.value == pytest.approx((3 / 5 - 8 / 25) / (1 - 8 / 25))


def test_labels_nobody_gave_keep_their_place_on_the_scale() -> None:
    found = label_agreement({"q": {"a": 0, "b": 3, "c": 0}}, {"q": {"a": 0, "b": 3, "c": 3}})
    assert found.scale == (0, 1, 2, 3)
    assert found.kappa_linear.value == pytest.approx(found.kappa.value)


def test_each_threshold_has_its_own_table() -> None:
    first, second, third = label_agreement(HUMAN, LLM).binarised
    assert (first.threshold, first.both, first.first_only, first.second_only, first.neither) == (1, 2, 1, 0, 2)
    assert (second.threshold, second.both, second.first_only, second.second_only, second.neither) == (2, 2, 0, 0, 3)
    assert (third.threshold, third.both, third.first_only, third.second_only, third.neither) == (3, 1, 0, 1, 3)
    assert second.kappa.value == 1


@given(LABELS, LABELS)
def test_coefficients_are_those_of_independent_implementations(
    one: Mapping[str, Mapping[str, int]], other: Mapping[str, Mapping[str, int]]
) -> None:
    found = label_agreement(one, other, samples=0)
    pairs = [(one[q][d], other[q][d]) for q in one if q in other for d in one[q] if d in other[q]]
    assert found.n == len(pairs)
    assert sum(map(sum, found.confusion)) == len(pairs)
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    for estimate, level in ((found.alpha, "nominal"), (found.alpha_ordinal, "ordinal")):
        if len({*first, *second}) < 2:
            assert estimate.value is None
        else:
            expected = krippendorff.alpha([first, second], level_of_measurement=level)
            assert estimate.value == pytest.approx(expected, abs=1e-9)
    for estimate, power in ((found.kappa_linear, 1), (found.kappa_quadratic, 2)):
        distance = [abs(a - b) ** power for a in first for b in second]
        if not any(distance):
            assert estimate.value is None
        else:
            observed = np.mean([abs(a - b) ** power for a, b in pairs])
            assert estimate.value == pytest.approx(1 - observed / np.mean(distance), abs=1e-9)


def test_nothing_in_common_is_no_figure_and_no_error() -> None:
    found = label_agreement({"q1": {"a": 1}}, {"q1": {"b": 1}, "q2": {"a": 1}})
    assert (found.n, found.queries, found.scale, found.confusion, found.binarised) == (0, 0, (), (), ())
    assert found.kappa == found.alpha == found.agreement == Estimate(None)


def test_one_label_all_over_has_no_kappa_but_agrees() -> None:
    found = label_agreement({"q1": {"a": 1}, "q2": {"a": 1}}, {"q1": {"a": 1}, "q2": {"a": 1}})
    assert found.kappa == Estimate(None)
    assert found.agreement == Estimate(1, 1, 1)


def test_labels_that_are_no_scale_are_refused() -> None:
    with pytest.raises(InputError, match="labels from 0 to 4711 are no scale"):
        label_agreement({"q": {"a": 0}}, {"q": {"a": 4711}})


def test_intervals_know_that_labels_of_one_query_are_not_independent() -> None:
    rng = np.random.default_rng(0)
    good = {f"q{n}": {str(d): int(rng.integers(0, 2)) for d in range(30)} for n in range(20)}
    # On half of the queries the judge is right, on the others it guesses: queries differ, documents do not count.
    judge = {
        q: {d: label if n % 2 else int(rng.integers(0, 2)) for d, label in own.items()}
        for n, (q, own) in enumerate(good.items())
    }
    lone = {f"{q}-{d}": {d: label} for q, own in good.items() for d, label in own.items()}
    apart = {f"{q}-{d}": {d: label} for q, own in judge.items() for d, label in own.items()}
    by_query, by_pair = label_agreement(good, judge).kappa, label_agreement(lone, apart).kappa
    assert by_query.value == by_pair.value
    assert width(by_query) > 1.5 * width(by_pair)


def width(estimate: Estimate) -> float:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.high - estimate.low


SETS = {
    # usable labels, faulty lines
    "flant5-exam-rubric": (7263, 0),
    "llama3-8b-4prompts": (7263, 0),
    "llama3-8b-4prompts-coverage": (7263, 0),
    "llama3-8b-baseline0123": (7207, 0),
    "llama3-8b-baseline3210": (7207, 2),
    "llama3-8b-genquery": (7263, 0),
    "llama3-8b-iterative": (7263, 0),
    "llama3-8b-sum": (7263, 0),
    "llama3-8b-sunthen4": (7263, 0),
    "trema-ExtraTrees-all": (7263, 0),
    "trema-ExtraTrees-direct": (7263, 0),
    "trema-ExtraTrees-nuggets": (7263, 0),
    "trema-ExtraTrees-questions": (7263, 0),
}


def of_challenge(shared: Path, name: str) -> LabelAgreement:
    folder = shared / "data/llmjudge24"
    human, llm = read_qrels(folder / "human.qrels"), read_qrels(folder / f"llm_qrels/{name}.qrels", faulty="skip")
    assert (len(llm), len(llm.faulty)) == SETS[name]
    return label_agreement(human.labels, llm.labels, samples=50)


def test_there_are_as_many_label_sets_as_tested(shared: Path) -> None:
    assert {path.stem for path in (shared / "data/llmjudge24/llm_qrels").iterdir()} == set(SETS)


@pytest.mark.parametrize("name", SETS)
def test_label_sets_of_the_challenge_are_compared_on_what_is_common(shared: Path, name: str) -> None:
    found = of_challenge(shared, name)
    assert (found.n, found.first_only, found.second_only) == (SETS[name][0], 7263 - SETS[name][0], 0)
    counts = np.array(found.confusion)
    first, second = (np.repeat(np.indices(counts.shape)[axis].ravel(), counts.ravel()) for axis in (0, 1))
    expected = krippendorff.alpha([first, second], level_of_measurement="ordinal")
    assert found.alpha_ordinal.value == pytest.approx(expected, abs=1e-9)
    chance = (np.bincount(first, minlength=4) * np.bincount(second, minlength=4)).sum() / found.n**2
    assert found.kappa.value == pytest.approx((np.trace(counts) / found.n - chance) / (1 - chance), abs=1e-12)


RANKINGS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=7)


@given(RANKINGS)
def test_tau_and_rho_are_scipys(pairs: list[tuple[int, int]]) -> None:
    one, other = (np.array([[pair[side] / 3 for pair in pairs]]) for side in (0, 1))
    constant = len(set(one[0])) == 1 or len(set(other[0])) == 1
    for ours, theirs in ((kendall_taus, stats.kendalltau), (spearmans, stats.spearmanr)):
        found = float(ours(one, other)[0])
        if constant:
            assert math.isnan(found)
        else:
            assert found == pytest.approx(theirs(one[0], other[0]).statistic, abs=1e-12)


def test_runs_are_ranked_on_the_queries_that_both_sets_label() -> None:
    runs = {
        "ab": {q: {"a": 2.0, "b": 1.0} for q in ("q1", "q2", "q3")},
        "ba": {q: {"b": 1.0} for q in ("q1", "q2", "q3")},
    }
    human = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1}, "q3": {"b": 1}}
    llm = {"q1": {"b": 1}, "q2": {"b": 1}}
    found = ranking_agreement(evaluate(human, runs, ["P@1"]), evaluate(llm, runs, ["P@1"]), "P@1")
    assert found.topics == 2
    assert found.kendall_tau.value == found.spearman.value == -1
    assert found.swapped == (("ab", "ba"),)


def test_the_same_labels_rank_the_same_and_noise_lowers_tau(shared: Path) -> None:
    folder = shared / "data/cranfield"
    labels = read_qrels(folder / "qrels.txt").labels
    runs = {run.name: run.scores() for run in read_runs(sorted((folder / "runs").iterdir()))}
    metrics = evaluate(labels, runs, ["nDCG@10"])
    same = ranking_agreement(metrics, metrics, "nDCG@10", samples=100)
    assert (same.topics, same.swapped, same.kendall_tau) == (225, (), Estimate(1, 1, 1))
    half = {query_id: own for number, (query_id, own) in enumerate(labels.items()) if number % 2}
    assert ranking_agreement(metrics, evaluate(half, runs, ["nDCG@10"]), "nDCG@10", samples=10).topics == 112
    rng = np.random.default_rng(0)
    noise = {query_id: {doc_id: int(rng.integers(0, 5)) for doc_id in own} for query_id, own in labels.items()}
    noisy = ranking_agreement(metrics, evaluate(noise, runs, ["nDCG@10"]), "nDCG@10")
    assert noisy.kendall_tau.low is not None
    assert noisy.kendall_tau.low < 1
    assert noisy.kendall_tau.low <= (noisy.kendall_tau.value or 0) <= (noisy.kendall_tau.high or 0)
