"""Verdicts and labels of people as tables: out, in, and back into what the judges are held against."""

from __future__ import annotations

import csv
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arena.opinions.people import peoples_opinions
from arena.store import Store
from arena.store.annotations import Annotation, Annotations, Kind
from arena.voting import documents, games, grades
from arena.voting.games import ballots
from judges.types import Answer, Verdict
from tests.support.sample_store import AGENTS, write_store


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_store(Path("s.db"), queries=6)


def say(*said: Annotation) -> None:
    with closing(Store.open("s.db")) as store:
        Annotations(store, "sample").add(said)


def vote(annotator: str, verdict: Verdict, votes: int = 6) -> list[Annotation]:
    """Say the same of the first games that a voter is given."""
    with closing(Store.open("s.db")) as store:
        data = store.dataset("sample")
    whole = [(query, a, b) for query in data.queries for a in AGENTS for b in AGENTS if a < b]
    said = [games.annotation_of(one, verdict, annotator) for one in ballots(whole, data, [], annotator)[:votes]]
    say(*said)
    return said


def label(annotator: str, value: int | None) -> None:
    with closing(Store.open("s.db")) as store:
        data = store.dataset("sample")
    todo = documents.slips([("q01", "q01-d0"), ("q02", "q02-d1")], data, [], annotator)
    say(*(documents.annotation_of(slip, value, annotator) for slip in todo))


def grade(annotator: str, papers: int = 5) -> list[Annotation]:
    """Grade the first answers that a grader is given."""
    with closing(Store.open("s.db")) as store:
        data = store.dataset("sample")
    todo = grades.papers(data.answers, data, [], annotator)[:papers]
    said = [
        one for paper in todo for one in grades.annotations_of(paper, {"accuracy": 2, "completeness": 0}, annotator)
    ]
    say(*said)
    return said


def rows(name: str) -> list[dict[str, str]]:
    with Path(name).open(newline="") as source:
        return list(csv.DictReader(source))


def test_verdicts_go_out_as_they_were_shown_and_come_back_the_same(cli: Any) -> None:
    said = vote("ann", Verdict.A) + vote("b <b>", Verdict.TIE, votes=4)
    done = cli("votes", "export", "s.db", "votes.csv", "--kind", "verdict")
    assert (done.status, done.out) == (0, "wrote votes.csv: 10 by ann, b <b>\n"), done.err
    assert list(rows("votes.csv")[0]) == ["qid", "agent_a", "agent_b", "verdict", "judge", "order"]
    assert [(row["agent_a"], row["verdict"]) for row in rows("votes.csv")] == [(one.item, one.value) for one in said]
    with closing(Store.open("s.db")) as store:
        before = peoples_opinions(store, "sample")
    Path("s.db").unlink()
    write_store(Path("s.db"), queries=6)
    for new in (10, 0):
        done = cli("votes", "import", "s.db", "votes.csv", "--kind", "verdict")
        assert done.out == f"10 by ann, b <b>, {new} of them new\n", done.err
    with closing(Store.open("s.db")) as store:
        assert peoples_opinions(store, "sample") == before
    assert before[1] == 0


def test_grades_go_out_by_criterion_and_come_back_by_answer(cli: Any) -> None:
    said = grade("ann") + grade("bob", 2)
    assert (
        cli("votes", "export", "s.db", "g.csv", "--kind", "criteria").out == f"wrote g.csv: {len(said)} by ann, bob\n"
    )
    assert len(rows("g.csv")) == 2 * len(said)
    Path("s.db").unlink()
    write_store(Path("s.db"), queries=6)
    Path("g.csv").write_text(Path("g.csv").read_text() + "q77,bm25,accuracy,1,ann\n")
    for new in (len(said), 0):
        done = cli("votes", "import", "s.db", "g.csv", "--kind", "criteria")
        assert done.out.splitlines() == [
            f"{len(said)} by ann, bob, {new} of them new",
            "- of answers or documents that the tournament does not have, left out: 1",
        ], done.err
    with closing(Store.open("s.db")) as store:
        back = Annotations(store, "sample").latest(Kind.CRITERIA)
    assert {(own.annotator, own.query_id, own.item, own.texts, str(own.value)) for own in back} == {
        (own.annotator, own.query_id, own.item, own.texts, str(own.value)) for own in said
    }


def test_the_side_that_a_person_saw_first_survives_a_table(cli: Any) -> None:
    Path("v.csv").write_text("qid,agent_a,agent_b,verdict,order\nq01,bm25,dense,B,ab\nq01,bm25,hybrid,A,ba\n")
    assert cli("votes", "import", "s.db", "v.csv", "--kind", "verdict", "--annotator", "ann").status == 0
    with closing(Store.open("s.db")) as store:
        said = Annotations(store, "sample").latest(Kind.VERDICT)
    assert [(one.item, one.other, one.value) for one in said] == [("bm25", "dense", "B"), ("hybrid", "bm25", "B")]


def test_labels_go_out_as_a_table_or_one_person_s_as_qrels_and_come_in(cli: Any) -> None:
    label("ann", 2)
    label("bob", 0)
    label("eve", None)
    assert cli("votes", "export", "s.db", "l.csv", "--kind", "relevance").out == "wrote l.csv: 4 by ann, bob\n"
    assert {tuple(row.values()) for row in rows("l.csv")} == {
        (query, doc, value, who)
        for query, doc in (("q01", "q01-d0"), ("q02", "q02-d1"))
        for value, who in (("2", "ann"), ("0", "bob"))
    }
    refused = cli("votes", "export", "s.db", "l.qrels", "--kind", "relevance")
    assert (refused.status, "name one of the annotators with --annotator: ann, bob" in refused.err) == (2, True)
    assert cli("votes", "export", "s.db", "l.qrels", "--kind", "relevance", "--annotator", "ann").status == 0
    assert sorted(Path("l.qrels").read_text().splitlines()) == ["q01 0 q01-d0 2", "q02 0 q02-d1 2"]
    for file, given, who in (("l.csv", (), "ann, bob"), ("l.qrels", (), "l"), ("l.qrels", ("--annotator", "z"), "z")):
        done = cli("votes", "import", "s.db", file, "--kind", "relevance", *given)
        assert done.status == 0, done.err
        assert f"by {who}, " in done.out
    counted = json.loads(cli("votes", "list", "s.db", "--json").out)["votes"]
    assert {(row["annotator"], row["labels"], row["skipped"]) for row in counted} == {
        ("ann", 2, 0), ("bob", 2, 0), ("eve", 0, 2), ("l", 2, 0), ("z", 2, 0),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["verdict", "criteria"])
def test_what_is_exported_is_what_calibrate_reads(cli: Any, kind: str) -> None:
    vote("ann", Verdict.A)
    label("ann", 2)
    grade("ann")
    inside = json.loads(cli("calibrate", "s.db", "--json", "--samples", "50", "--method-samples", "0").out)
    assert cli("votes", "export", "s.db", "v.csv", "--kind", kind).status == 0
    Path("s.db").unlink()
    write_store(Path("s.db"), queries=6)
    options = ("--people", "v.csv", "--json", "--samples", "50", "--method-samples", "0")
    outside = json.loads(cli("calibrate", "s.db", *options).out)
    (own,) = outside["comparisons"]
    assert own in inside["comparisons"]


def test_votes_on_texts_that_changed_stay_at_home(cli: Any) -> None:
    (said, *_) = vote("ann", Verdict.A)
    with closing(Store.create("s.db")) as store:
        data = store.dataset("sample")
        answers = data.answers | {(said.query_id, said.item): Answer(said.query_id, said.item, "another")}
        changed = type(data)(data.queries, data.documents, answers, data.retrieved)
        store.begin("sample", store.settings("sample"), changed, [])
    done = cli("votes", "export", "s.db", "v.csv", "--kind", "verdict")
    assert done.out.splitlines() == [
        "wrote v.csv: 5 by ann",
        "- of texts that have changed since, left out: 1",
    ]


@pytest.mark.parametrize(
    ("content", "kind", "arguments", "problem"),
    [
        ("qid,agent_a,agent_b,verdict\nq01,bm25,dense,X\n", "verdict", (), "v.csv:2: "),
        ("qid,agent_a,agent_b,verdict\nq01,bm25,dense,A\n", "relevance", (), "holds verdicts, not labels"),
        ("qid,did,label\nq01,q01-d0,1.5\n", "relevance", (), "v.csv:2: 'label' is no whole number ('1.5')"),
        ("qid,did,label\nq01,q01-d0,1\n", "verdict", (), "holds labels, not verdicts"),
        (
            "qid,agent,criterion,score\nq01,bm25,accuracy,good\n",
            "criteria",
            (),
            "v.csv:2: 'score' is no number ('good')",
        ),
        ("qid,did,label\nq77,q01-d0,1\n", "relevance", (), "nothing about the queries, answers and documents"),
        (
            "qid,did,label,annotator\nq01,q01-d0,1,a\nq01,q01-d0,1,b\n",
            "relevance",
            ("--annotator", "c"),
            "names 2 people",
        ),
        ("qid,did,label\nq01,q01-d0,1\n", "relevance", ("--annotator", " "), "1 to 80 characters"),
        ("", "nuggets", (), "--annotator: name the one"),
    ],
)
def test_mistakes_are_one_line(cli: Any, content: str, kind: str, arguments: tuple[str, ...], problem: str) -> None:
    Path("v.csv").write_text(content)
    ended = cli("votes", "import", "s.db", "v.csv", "--kind", kind, *arguments)
    assert ended.status == 2
    assert problem in ended.err
    assert len(ended.err.splitlines()) == 1
    with closing(Store.open("s.db")) as store:
        assert Annotations(store, "sample").history() == []


def test_before_anybody_voted_there_is_nothing_to_export(cli: Any) -> None:
    ended = cli("votes", "export", "s.db", "v.csv", "--kind", "verdict")
    assert (ended.status, ended.err) == (2, "error: sample: nobody has said anything of this kind yet\n")
    assert not Path("v.csv").exists()
