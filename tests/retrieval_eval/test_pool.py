"""Pools: who contributed what, what is left to judge, and what later runs add."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges.errors import InputError
from judges.types import Retrieved
from retrieval_eval.data.runs import Ranking, Run, runs_of
from retrieval_eval.data.tables import read_rows
from retrieval_eval.data.trec import Qrels
from retrieval_eval.runs import Pool, Share, pool_runs


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
        assert shares[one.name] == Share(
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
    return ["metrics", "--run", files / "one.run", "--run", files / "two.run", "--pool", 2, *more]


def test_the_command_says_what_each_run_gives(cli: Any, files: Path) -> None:
    ended = cli(*options(files, "--format", "json"))
    assert ended.status == 0
    shape = json.loads(ended.out)
    assert shape["runs"] == {
        "one": {"alone": 2, "documents": 3, "labelled": None, "queries": 2},
        "two": {"alone": 1, "documents": 2, "labelled": None, "queries": 1},
    }
    assert (shape["pairs"], shape["unlabelled"], shape["depth"]) == (4, None, 2)
    assert shape["notes"]["two"][0]["kind"] == "ties"
    assert "two: 2 documents tie" in ended.err


def test_the_command_refuses_a_faulty_line_or_lists_it(cli: Any, files: Path) -> None:
    refused = cli(*options(files, "--qrels", files / "human.qrels"))
    assert refused.status == 2
    assert "human.qrels:2: the label is not a whole number ('1.')" in refused.err
    ended = cli(*options(files, "--qrels", files / "human.qrels", "--skip-faulty", "--format", "csv"))
    assert ended.out.splitlines() == ["qid,pairs,labelled,unlabelled", "q1,3,1,2", "q2,1,0,1"]
    assert "human: 1 faulty line left out\n  line 2: the label is not a whole number ('1.')" in ended.err
    assert "queries of the pool without any label: 1, such as 'q2'" in ended.err


def test_the_command_writes_the_pairs(cli: Any, files: Path) -> None:
    (files / "human.qrels").write_text("q1 0 a 2\n")
    assert cli(*options(files, "--qrels", files / "human.qrels", "--out", files / "pairs.tsv")).status == 0
    assert [tuple(row.values.values()) for row in read_rows(files / "pairs.tsv")] == [
        ("q1", "a", "2", "1", "one"),
        ("q1", "c", "", "1", "two"),
        ("q1", "b", "", "2", "one two"),
        ("q2", "a", "", "1", "one"),
    ]
