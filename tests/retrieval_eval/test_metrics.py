"""Measures of runs as ir_measures has them, with what is missing counted; and pools of runs."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges.errors import InputError
from judges.types import Retrieved
from retrieval_eval.data.runs import Ranking, Run, read_run, runs_of
from retrieval_eval.data.trec import Qrels, read_qrels
from retrieval_eval.scores.metrics import DEFAULT_MEASURES, Metrics, evaluate, parse_measures
from retrieval_eval.scores.run_comparison import Pool, PoolShare, pool_runs

MEASURES = (
    *DEFAULT_MEASURES,
    "Rprec",
    "R@100",
    "RR",
    "nDCG",
    "Bpref",
    "Success@1",
    "NumRet",
    "nDCG(dcg='exp-log2')@10",
)


def value(found: Metrics, name: str, measure: str) -> float | None:
    return found.estimates[name][measure].value


QRELS = {"q1": {"a": 2, "b": 0}, "q2": {"a": 1}, "q3": {"c": 0}}


@pytest.mark.parametrize("name", ["bm25", "tf_overlap"])  # the second one has ties
def test_every_measure_is_that_of_ir_measures_called_directly(shared: Path, name: str) -> None:
    folder = shared / "data/cranfield"
    run = read_run(folder / f"runs/{name}.run")
    ours = evaluate(read_qrels(folder / "qrels.txt").labels, {run.name: run.scores()}, MEASURES)
    assert len(ours.topics) == 225

    qrels = list(ir_measures.read_trec_qrels(str(folder / "qrels.txt")))
    ranked = list(ir_measures.read_trec_run(str(folder / f"runs/{name}.run")))
    parsed = [eval(measure, dict(vars(ir_measures))) for measure in MEASURES]
    direct, by_query = ir_measures.calc(parsed, qrels, ranked)
    for measure, theirs in zip(MEASURES, parsed, strict=True):
        assert value(ours, name, measure) == pytest.approx(direct[theirs], abs=1e-9), measure
        values = dict(zip(ours.topics, ours.scores[measure].values[0], strict=True))
        alone = {metric.query_id: metric.value for metric in by_query if metric.measure == theirs}
        assert values == pytest.approx(alone, abs=1e-9), measure


def test_a_query_missing_from_a_run_scores_0_and_is_counted() -> None:
    result = evaluate(QRELS, {"run": {"q1": {"a": 2.0, "b": 1.0}, "q2": {}}}, ["nDCG@10", "RR@5", "Judged@2"])
    assert result.topics == ("q1", "q2", "q3")
    assert result.scores["nDCG@10"].values.tolist() == [[1, 0, 0]]
    assert value(result, "run", "RR@5") == pytest.approx(1 / 3)
    assert result.coverage["run"].missing == ("q2", "q3")
    assert value(result, "run", "Judged@2") == pytest.approx(1 / 3)


def test_a_query_without_labels_is_left_out_and_counted() -> None:
    alone = evaluate(QRELS, {"run": {"q1": {"b": 2.0, "a": 1.0}}}, ["AP"])
    more = evaluate(
        {**QRELS, "q8": {}}, {"run": {"q1": {"b": 2.0, "a": 1.0}, "q8": {"a": 1.0}, "q9": {"a": 1.0}}}, ["AP"]
    )
    assert value(more, "run", "AP") == value(alone, "run", "AP") == pytest.approx(0.5 / 3)
    assert more.coverage["run"].unlabelled == ("q8", "q9")


def test_queries_with_no_relevant_document_are_told() -> None:
    assert evaluate({**QRELS, "q4": {"a": -1}}, {"run": {}}, ["AP"]).without_relevant == ("q3", "q4")


def test_judged_at_the_largest_cutoff_is_there_unasked() -> None:
    run = {"run": {"q1": {"x": 3.0, "a": 2.0, "b": 1.0}}}
    coverage = evaluate({"q1": QRELS["q1"]}, run, ["nDCG@3", "P@2", "AP"]).coverage["run"]
    assert coverage.judged == {"Judged@3": pytest.approx(2 / 3)}
    assert evaluate({"q1": QRELS["q1"]}, run, ["P@2", "Judged@1"]).coverage["run"].judged == {
        "Judged@1": 0,
        "Judged@2": 0.5,
    }
    assert evaluate({"q1": QRELS["q1"]}, run, ["AP"]).coverage["run"].judged == {"Judged": pytest.approx(2 / 3)}


def test_a_measure_keeps_the_name_it_was_asked_by() -> None:
    result = evaluate(QRELS, {"run": {"q1": {"a": 1.0}}}, ["MRR@5", "RR(rel=1)@5", "RR(rel=2)@5"])
    assert result.measures == ("MRR@5", "RR(rel=1)@5", "RR(rel=2)@5")
    assert value(result, "run", "MRR@5") == value(result, "run", "RR(rel=1)@5") == pytest.approx(1 / 3)


def test_what_is_counted_has_a_total_and_no_mean() -> None:
    result = evaluate(QRELS, {"run": {"q1": {"a": 1.0, "x": 0.5}, "q2": {"a": 1.0}}}, ["NumRet", "P@1"])
    assert value(result, "run", "NumRet") == 3
    interval = result.estimates["run"]["NumRet"]
    assert interval.low is not None
    assert interval.high is not None
    assert 0 <= interval.low <= 3 <= interval.high


def test_qrels_without_labels_are_refused() -> None:
    with pytest.raises(InputError, match="no labels"):
        evaluate({"q1": {}}, {"run": {"q1": {"a": 1.0}}}, ["AP"])


def test_a_measure_that_fails_on_a_run_is_named() -> None:
    with pytest.raises(InputError, match=r"^run: one of Accuracy\(rel=0\), Judged cannot be computed"):
        evaluate(QRELS, {"run": {"q1": {"a": 1.0}}}, ["Accuracy(rel=0)"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ndcg@10", r"^ndcg@10: no such measure; is it nDCG@10 or"),
        ("ndcg_cut_10", r"is it nDCG@10\?$"),
        ("map", r"is it AP\?$"),
        ("official", "no such measure; measures are written as nDCG@10"),
        ("xyzzy", "no such measure; measures are written as nDCG@10"),
        ("P@0", "the cutoff must be a whole number from 1"),
        ("P@-3", "the cutoff must be"),
        ("P@True", "the cutoff must be"),
        ("P@5.5", "cutoff cannot be 5.5"),
        ("P", r"P needs cutoff, as in P\(cutoff=10\)"),
        ("nDCG(foo=1)@10", "nDCG takes no 'foo', only cutoff"),
        ("RR(rel='2')@5", "rel cannot be '2'"),
        ("P(rel=0)@5", "relevance_level should be positive"),
        ("alpha_nDCG@10", "it needs pyndeval"),
        ("RR(judged_only=True)@5", "no library computes it with these parameters"),
        ("nDCG@10; import os", "not a valid measure"),
        ("", "not a valid measure"),
    ],
)
def test_an_unknown_measure_is_one_line_that_says_what_may_be_meant(
    name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=said) as error:
        parse_measures([name])
    assert "\n" not in str(error.value)
    assert capsys.readouterr() == ("", "")


@given(st.text("nDCGPRel@()=,.{}:'0159-_+ ", max_size=12))
def test_no_text_makes_the_parser_fail_otherwise(name: str) -> None:
    with contextlib.suppress(InputError):
        assert list(parse_measures([name])) == [name.strip()]


def run(name: str, **queries: str) -> Run:
    """A run whose documents are letters, best first."""
    falling = {query: tuple(float(-rank) for rank in range(len(found))) for query, found in queries.items()}
    return Run(name, {query: Ranking(tuple(found), falling[query]) for query, found in queries.items()})


letters = st.permutations("abcdefg").flatmap(lambda order: st.integers(0, 7).map(lambda size: "".join(order[:size])))
rankings = st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), letters)
runs_lists = st.lists(rankings, max_size=4).map(
    lambda found: [run(f"r{number}", **queries) for number, queries in enumerate(found)]
)


def contributions(pool: Pool) -> dict[tuple[str, str], dict[str, int]]:
    return {(query, doc): ranks for query in pool.queries for doc, ranks in pool.contributors(query)}


@given(runs=runs_lists, depth=st.integers(1, 8))
def test_a_pool_holds_the_first_documents_of_every_run_and_nothing_else(runs: list[Run], depth: int) -> None:
    expected: dict[tuple[str, str], dict[str, int]] = {}
    for one in runs:
        for query, ranking in one.rankings.items():
            for rank, doc in enumerate(ranking.doc_ids[:depth], start=1):
                expected.setdefault((query, doc), {})[one.name] = rank
    pool = pool_runs(runs, depth)
    assert contributions(pool) == expected
    assert len(pool) == len(expected)


@settings(max_examples=30)
@given(runs=runs_lists, depth=st.integers(1, 8), labelled=st.sets(st.sampled_from("abcdefg")))
def test_shares_add_up(runs: list[Run], depth: int, labelled: set[str]) -> None:
    qrels = Qrels("some", {"q1": dict.fromkeys(labelled, 1)})
    pool = pool_runs(runs, depth)
    shares = pool.shares(qrels)
    unlabelled = set(pool.unlabelled(qrels))
    given_by = contributions(pool)
    for one in runs:
        own = [pair for pair, ranks in given_by.items() if one.name in ranks]
        assert shares[one.name] == PoolShare(
            queries=sum(bool(ranking.doc_ids) for ranking in one.rankings.values()),
            documents=len(own),
            alone=sum(len(given_by[pair]) == 1 for pair in own),
            labelled=len(set(own) - unlabelled),
        )
    assert {share.labelled for share in pool.shares().values()} <= {None}


def test_documents_stand_by_their_best_rank_and_then_by_run() -> None:
    pool = pool_runs([run("x", q="abc"), run("y", q="dab")], depth=2)
    assert pool.queries["q"].doc_ids == ("a", "d", "b")
    assert pool.queries["q"].ranks.tolist() == [[1, 2], [0, 1], [2, 0]]


def test_agents_pool_by_their_own_ranks() -> None:
    entries = [Retrieved("q", doc, "agent", rank, score=float(rank)) for rank, doc in enumerate("abc", start=1)]
    pool = pool_runs([*runs_of(entries), run("bm25", q="ca")], depth=2)
    assert dict(pool.contributors("q")) == {"a": {"agent": 1, "bm25": 2}, "b": {"agent": 2}, "c": {"bm25": 1}}


def test_runs_of_one_name_and_a_depth_below_one_are_refused() -> None:
    with pytest.raises(InputError, match="two runs of the pool are called 'x'"):
        pool_runs([run("x", q="a"), run("x", q="b")], depth=1)
    with pytest.raises(InputError, match="at least 1, not 0"):
        pool_runs([], depth=0)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "one.run").write_text("q1 Q0 a 1 3 one\nq1 Q0 b 2 2 one\nq2 Q0 a 1 1 one\n")
    (tmp_path / "two.run").write_text("q1 Q0 b 1 2 two\nq1 Q0 c 2 2 two\n")
    (tmp_path / "human.qrels").write_text("q1 0 a 2\nq1 0 b 1.\n")
    return tmp_path


def options(files: Path, *more: object) -> list[object]:
    return ["pool", "--run", files / "one.run", "--run", files / "two.run", "--depth", 2, *more]


def test_the_command_refuses_a_faulty_line_or_lists_it(cli: Any, files: Path) -> None:
    refused = cli(*options(files, "--qrels", files / "human.qrels"))
    assert refused.status == 2
    assert "human.qrels:2: the label is not a whole number ('1.')" in refused.err
    ended = cli(*options(files, "--qrels", files / "human.qrels", "--skip-faulty", "--format", "csv"))
    assert ended.out.splitlines() == ["qid,pairs,labelled,unlabelled", "q1,3,1,2", "q2,1,0,1"]
    assert "human: 1 faulty line left out\n  line 2: the label is not a whole number ('1.')" in ended.err
    assert "queries of the pool without any label: 1, such as 'q2'" in ended.err


RUNS = {"one": {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"d": 1.0}}, "two": {"q1": {"c": 2.0, "e": 1.0}}}
KNOWN = {"q1": {"a": 2, "c": 1, "e": 0}, "q2": {"d": 1}}


def test_a_query_where_a_label_of_the_first_documents_is_missing_has_no_value() -> None:
    names = ["nDCG@1", "nDCG@2", "P@2", "AP", "RR@1", "Judged@2"]
    found = evaluate(KNOWN, RUNS, names, missing={"q1": {"b"}})
    seen = np.array([scores.seen() for scores in found.scores.values()])
    assert seen[:, 0, 0].tolist() == [True, False, False, False, True, True]
    assert seen[:, 1].all(), "nothing that the other run found lacks a label"
    assert found.coverage["one"].unknown == dict.fromkeys(("nDCG@2", "P@2", "AP"), ("q1",))
    assert (found.coverage["one"].missing_labels, *map(found.scores["AP"].missing, RUNS)) == (1, (1, 4), (0, 2))
    assert value(found, "one", "nDCG@2") == value(found, "one", "P@2") * 2 == 1.0, "over the query that is there"
    for measure in ("nDCG@2", "P@2", "AP"):
        assert found.scores[measure].bounds[:, 0, 0].tolist() == [0, 1]
    low, high = found.scores["nDCG@2"].bounds
    assert low[1, 0] < high[1, 0] == found.scores["nDCG@2"].values[1, 0], (
        "the missing document may be one it did not find"
    )


@pytest.mark.parametrize("label", [0, 1, 2])
def test_whatever_the_missing_label_is_the_values_lie_within_their_bounds(label: int) -> None:
    names = ["nDCG@2", "nDCG", "P@2", "AP", "R@2", "RR@2"]
    found = evaluate(KNOWN, RUNS, names, missing={"q1": {"b"}})
    whole = evaluate({**KNOWN, "q1": {**KNOWN["q1"], "b": label}}, RUNS, names)
    for measure, scores in found.scores.items():
        (low, high), values = scores.bounds, whole.scores[measure].values
        assert ((low <= values + 1e-12) & (values <= high + 1e-12)).all()
        exact = (low == high) & scores.seen()
        assert np.allclose(scores.values[exact], values[exact])


def test_without_any_label_there_is_no_value_and_no_error() -> None:
    found = evaluate({}, RUNS, ["nDCG@2"], missing={"q1": {"a", "b", "c", "e"}})
    assert not found.scores["nDCG@2"].seen().any()
    assert value(found, "one", "nDCG@2") is None
    assert found.without_relevant == ()
