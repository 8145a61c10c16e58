"""``votes``: what people said, listed, out and in, and back into what the judges are held against."""

from __future__ import annotations

import csv
import json
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from arena.data.kinds import KINDS, Annotation
from arena.people import tasks
from arena.results.nuggets import nugget_results
from arena.results.opinions import peoples_opinions
from arena.store import Store
from arena.store.annotations import Annotations
from judges.types import Answer
from retrieval_eval.nuggets.types import Support
from tests.support.sample_store import AGENTS, write_store
from tests.support.tournaments import write_data


@pytest.fixture(autouse=True)
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_store(Path("s.db"), queries=6)


LABELLED = (("q01", "q01-d0"), ("q02", "q02-d1"))


def said_by(annotator: str, kind: str, value: Any, most: int = 6) -> list[Annotation]:
    with closing(Store.open("s.db")) as store:
        data = store.dataset("sample")
        if kind == "verdict":
            games = [(query, *pair) for query in data.queries for pair in combinations(sorted(AGENTS), 2)]
            todo = tasks.games(games, data).queue(annotator)
        elif kind == "criteria":
            todo = tasks.answers(data.answers, data).queue(annotator)
        else:
            labels = [Annotation(kind, "judge", query, doc, "", "", 1) for query, doc in LABELLED]
            todo = tasks.judged(KINDS[kind], labels, data).queue(annotator)
        values = None if value is None else [value]
        said = [one for task in todo[:most] for one in task.annotations(annotator, values)]
        Annotations(store, "sample").add(said)
    return said


def rows(name: str) -> list[dict[str, str]]:
    with Path(name).open(newline="") as source:
        return list(csv.DictReader(source))


def test_verdicts_go_out_as_they_were_shown_and_come_back_the_same(cli: Any) -> None:
    said = said_by("ann", "verdict", "A") + said_by("b <b>", "verdict", "TIE", 4)
    done = cli("export", "votes", "s.db", "votes.csv", "--kind", "verdict")
    assert (done.status, done.out) == (0, "wrote votes.csv: 10 labels by ann and b <b>\n"), done.err
    assert list(rows("votes.csv")[0]) == ["qid", "agent_a", "agent_b", "verdict", "judge", "order"]
    assert [(row["agent_a"], row["verdict"]) for row in rows("votes.csv")] == [(one.item, one.value) for one in said]
    with closing(Store.open("s.db")) as store:
        before = peoples_opinions(store, "sample")
    Path("s.db").unlink()
    write_store(Path("s.db"), queries=6)
    for new in (10, 0):
        done = cli("import", "votes", "votes.csv", "--store", "s.db")
        assert done.out == f"10 labels by ann and b <b>, {new} of them new\n", done.err
    with closing(Store.open("s.db")) as store:
        assert peoples_opinions(store, "sample") == before
    assert before[1] == 0


def test_of_many_people_a_line_names_the_first_and_counts_all(cli: Any) -> None:
    for name in "abcd":
        said_by(name, "verdict", "A", 1)
    out = cli("export", "votes", "s.db", "votes.csv").out
    assert out == "wrote votes.csv: 4 labels by a, b, c and 1 more\n"


def test_the_side_that_a_person_saw_first_survives_a_table(cli: Any) -> None:
    Path("v.csv").write_text("qid,agent_a,agent_b,verdict,order\nq01,bm25,dense,B,ab\nq01,bm25,hybrid,A,ba\n")
    assert cli("import", "votes", "v.csv", "--store", "s.db", "--annotator", "ann").status == 0
    with closing(Store.open("s.db")) as store:
        said = Annotations(store, "sample").latest("verdict")
    assert [(one.item, one.other, one.value) for one in said] == [("bm25", "dense", "B"), ("hybrid", "bm25", "B")]


def test_labels_go_out_as_a_table_or_one_person_s_as_qrels_and_come_in(cli: Any) -> None:
    said_by("ann", "relevance", 2)
    said_by("bob", "relevance", 0)
    said_by("eve", "relevance", None)
    assert (
        cli("export", "votes", "s.db", "l.csv", "--kind", "relevance").out == "wrote l.csv: 4 labels by ann and bob\n"
    )
    assert {tuple(row.values()) for row in rows("l.csv")} == {
        (query, doc, value, who)
        for query, doc in (("q01", "q01-d0"), ("q02", "q02-d1"))
        for value, who in (("2", "ann"), ("0", "bob"))
    }
    refused = cli("export", "votes", "s.db", "l.qrels", "--kind", "relevance")
    assert (refused.status, "name one of the annotators with --annotator: ann and bob" in refused.err) == (2, True)
    assert cli("export", "votes", "s.db", "l.qrels", "--kind", "relevance", "--annotator", "ann").status == 0
    assert sorted(Path("l.qrels").read_text().splitlines()) == ["q01 0 q01-d0 2", "q02 0 q02-d1 2"]
    for file, given, who in (
        ("l.csv", (), "ann and bob"),
        ("l.qrels", (), "l"),
        ("l.qrels", ("--annotator", "z"), "z"),
    ):
        done = cli("import", "votes", file, "--store", "s.db", *given)
        assert done.status == 0, done.err
        assert f"by {who}, " in done.out
    counted = json.loads(cli("votes", "s.db", "--format", "json").out)["votes"]
    assert {(row["annotator"], row["labels"], row["skipped"]) for row in counted} == {
        ("ann", 2, 0), ("bob", 2, 0), ("eve", 0, 2), ("l", 2, 0), ("z", 2, 0),
    }  # fmt: skip


def test_votes_on_texts_that_changed_stay_at_home(cli: Any) -> None:
    (said, *_) = said_by("ann", "verdict", "A")
    with closing(Store.create("s.db")) as store:
        data = store.dataset("sample")
        answers = data.answers | {(said.query_id, said.item): Answer(said.query_id, said.item, "another")}
        changed = type(data)(data.queries, data.documents, answers, data.retrieved)
        store.begin("sample", store.settings("sample").raw, changed, [])
    done = cli("export", "votes", "s.db", "v.csv", "--kind", "verdict")
    assert done.out.splitlines() == [
        "wrote v.csv: 5 labels by ann",
        "- of texts that have changed since, left out: 1",
    ]


@pytest.mark.parametrize(
    ("content", "arguments", "problem"),
    [
        ("qid,agent_a,agent_b,verdict\nq01,bm25,dense,X\n", (), "v.csv:2: "),
        ("qid,agent,nugget,assignment\nq01,bm25,n,support\n", (), "is a table of nugget labels; import a file of"),
        ("qid,did,label\nq01,q01-d0,1.5\n", (), "v.csv:2: 'label' must be a whole number ('1.5')"),
        (
            "qid,agent,criterion,score\nq01,bm25,accuracy,good\n",
            (),
            "v.csv:2: 'score' must be a number ('good')",
        ),
        (
            "qid,agent,criterion,score\nq01,bm25,accuracy,nan\n",
            (),
            "v.csv:2: 'score' is empty; fill it in, or leave such rows out with --skip-faulty ('nan')",
        ),
        ("qid,did,label\nq77,q01-d0,1\n", (), "has no label for a query, answer or document"),
        (
            "qid,did,label,annotator\nq01,q01-d0,1,a\nq01,q01-d0,1,b\n",
            ("--annotator", "c"),
            "names 2 people",
        ),
        ("qid,did,label\nq01,q01-d0,1\n", ("--annotator", " "), "1 to 80 characters"),
    ],
)
def test_mistakes_are_one_line(cli: Any, content: str, arguments: tuple[str, ...], problem: str) -> None:
    Path("v.csv").write_text(content)
    ended = cli("import", "votes", "v.csv", "--store", "s.db", *arguments)
    assert ended.status == 2
    assert problem in ended.err
    assert len(ended.err.splitlines()) == 1
    with closing(Store.open("s.db")) as store:
        assert Annotations(store, "sample").history() == []


def test_before_anybody_voted_there_is_nothing_to_export(cli: Any) -> None:
    ended = cli("export", "votes", "s.db", "v.csv", "--kind", "verdict")
    assert (ended.status, ended.err) == (
        2,
        "error: sample: nobody has given labels of this kind (--kind) yet; add some with 'ragleague import votes'\n",
    )
    assert not Path("v.csv").exists()


CONFIG = """
name: small
store: store.db
data: {queries: queries.csv, answers: answers.csv}
judges: {judge: {provider: lexical}}
nuggets: {judge: judge, bank: bank.jsonl}
"""
BANK = [
    {
        "qid": query,
        "query": f"What is {query}?",
        "nuggets": [{"text": f"{query} is xxx", "importance": "vital"}, {"text": "no", "importance": "okay"}],
    }
    for query in ("q1", "q2")
]


@pytest.fixture
def config(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    Path("bank.jsonl").write_text("".join(json.dumps(line) + "\n" for line in BANK))
    Path("small.yaml").write_text(CONFIG)
    assert cli("run", "small.yaml").status == 0
    return "small.yaml"


def assess(annotator: str, *labels: Support, answers: int = 6) -> None:
    with closing(Store.open("store.db")) as store:
        results = nugget_results(store, "small")
        assert results is not None
        todo = tasks.nuggets(results.banks, store.dataset("small").answers.values()).queue(annotator)[:answers]
        Annotations(store, "small").add(said for task in todo for said in task.annotations(annotator, labels))


def test_what_a_person_assigned_is_scored_and_held_against_the_judge(config: str, cli: Any) -> None:
    assess("ann", Support.FULL, Support.NONE)
    out = cli("export", "votes", config, "ann.jsonl", "--kind", "nuggets")
    assert (out.status, out.out) == (0, "wrote ann.jsonl: 12 of 12 labels by ann, answers: 6\n"), out.err
    scored = json.loads(cli("nuggets", "score", "ann.jsonl", "--format", "json").out)["runs"]
    assert {run: (own["v_strict"], own["a"]) for run, own in scored.items()} == dict.fromkeys("xyz", (1.0, 0.5))
    assert cli("make", "assignments", config).status == 0
    compared = json.loads(
        cli("nuggets", "correlate", "ann.jsonl", "assignments.jsonl", "--score", "a", "--format", "json").out
    )
    assert compared["nuggets"]["assignment"]["n"] == 12


def test_of_several_people_one_is_named(config: str, cli: Any) -> None:
    for name in ("ann", "bob"):
        assess(name, Support.FULL, Support.NONE, answers=1)
    refused = cli("export", "votes", config, "o.jsonl", "--kind", "nuggets")
    assert (refused.status, refused.err) == (
        2,
        "error: small: name one of the annotators with --annotator: ann and bob\n",
    )
    refused = cli("export", "votes", config, "o.jsonl", "--kind", "nuggets", "--annotator", "eve")
    assert "there is no 'eve'; name one" in refused.err
    done = cli("export", "votes", config, "o.jsonl", "--kind", "nuggets", "--annotator", "bob")
    assert done.out.splitlines() == [
        "wrote o.jsonl: 2 of 2 labels by bob, answers: 1",
        "- answers that are not assessed yet, left out: 5",
    ]
    assert "--force" in cli("export", "votes", config, "o.jsonl", "--kind", "nuggets", "--annotator", "bob").err


def test_a_file_of_assignments_is_taken_as_a_person_s_once(config: str, cli: Any) -> None:
    assess("ann", Support.PARTIAL, Support.NONE)
    assert cli("export", "votes", config, "ann.jsonl", "--kind", "nuggets").status == 0
    for new in (12, 0):
        done = cli("import", "votes", "ann.jsonl", "--store", config, "--annotator", "bob")
        assert done.out == f"12 labels by bob, {new} of them new, answers: 6\n", done.err
    cli("export", "votes", config, "bob.jsonl", "--kind", "nuggets", "--annotator", "bob")
    assert Path("bob.jsonl").read_bytes() == Path("ann.jsonl").read_bytes()


NUGGETS = ("--store", "small.yaml", "--annotator")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("export", "votes", "small.yaml", "o.jsonl", "--kind", "nuggets"),
            "small: nobody has given labels of this kind (--kind) yet; add some with 'ragleague import votes'",
        ),
        (
            ("import", "votes", "none.jsonl", *NUGGETS, "a"),
            "none.jsonl: no such file",
        ),
        (
            ("import", "votes", "bank.jsonl", *NUGGETS, "a"),
            "bank.jsonl:1: the answer has neither",
        ),
        (
            ("import", "votes", "bank.jsonl", *NUGGETS, " "),
            "1 to 80 characters",
        ),
        (("import", "votes", "bank.jsonl", "--store", "small.yaml"), "--annotator: name the person"),
        (("votes", "none.db"), "none.db: no store there"),
    ],
)
def test_mistakes_with_nuggets_are_one_line(config: str, cli: Any, arguments: tuple[str, ...], said: str) -> None:
    ended = cli(*arguments)
    assert ended.status == 2
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_tournament_without_nuggets_is_said(config: str, cli: Any) -> None:
    Path("plain.yaml").write_text(
        CONFIG.replace("small", "plain").partition("nuggets:")[0] + "criteria: {judge: judge}\n"
    )
    assert cli("run", "plain.yaml").status == 0
    ended = cli("export", "votes", "plain.yaml", "o.jsonl", "--kind", "nuggets")
    assert (ended.status, ended.err.count("has no nuggets yet")) == (2, 1)
