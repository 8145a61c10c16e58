"""Two conditions held against each other: what is compared, what is left out, and the published figure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arena.results.nugget_comparison import ConditionsCompared, compare_conditions, read_condition
from judges.errors import InputError


def assigned(path: Path, labels: dict[tuple[str, str], str], importances: str = "vvo") -> Path:
    words = {"s": "support", "p": "partial_support", "n": "not_support", "f": "failed"}
    lines = []
    for (run, topic), letters in labels.items():
        nuggets = [
            {"text": f"fact {at}", "importance": {"v": "vital", "o": "okay"}[importance], "assignment": words[letter]}
            for at, (letter, importance) in enumerate(zip(letters, importances, strict=True))
        ]
        record = {"query": "", "qid": topic, "nuggets": nuggets, "run_id": run, "answer_text": "word " * (len(run) + 3)}
        lines.append(json.dumps(record) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def compared(first: Path, second: Path, column: str = "v_strict") -> ConditionsCompared:
    return compare_conditions(read_condition(first, column), read_condition(second, column), samples=50)


A = {
    ("a", "1"): "sss",
    ("b", "1"): "snn",
    ("cc", "1"): "nnp",
    ("a", "2"): "ssp",
    ("b", "2"): "ssn",
    ("cc", "2"): "pnn",
}
B = {**A, ("b", "2"): "nnn", ("cc", "1"): "nns"}


def test_the_published_tables_give_the_published_tau(shared: Path) -> None:
    manual, automatic = (shared / f"data/papers/trec_rag24_{how}_21topics.csv" for how in ("manual", "auto"))
    found = compared(manual, automatic)
    assert found.correlation.runs == 45
    assert round(found.correlation.kendall.value or 0, 3) == 0.783
    assert (found.topics, found.pairs, found.nuggets) == ((), (), None)
    assert not any(found.left_out.values())


def test_assignments_are_compared_by_run_topic_and_nugget(tmp_path: Path) -> None:
    found = compared(assigned(tmp_path / "a.jsonl", A), assigned(tmp_path / "b.jsonl", B))
    assert found.topics == ("1", "2")
    assert [(own.run, own.a, own.b) for own in found.runs] == [("a", 1, 1), ("b", 0.75, 0.25), ("cc", 0, 0)]
    assert {(own.topic, own.run): (own.a, own.b) for own in found.pairs}["2", "b"] == (1, 0)
    assert len(found.pairs) == 6
    assert [own.length for own in found.runs] == [4, 4, 5]
    nuggets = found.nuggets
    assert nuggets is not None
    assert (nuggets.shared, nuggets.only_a, nuggets.only_b) == (6, 0, 0)
    assert nuggets.assignment.confusion == ((6, 0, 2), (1, 2, 0), (0, 0, 7))
    assert nuggets.two_grades.confusion == ((6, 2), (1, 9))
    assert nuggets.importance.confusion == ((4, 0), (0, 2))


def test_failed_labels_are_no_labels(tmp_path: Path) -> None:
    found = compared(assigned(tmp_path / "a.jsonl", A), assigned(tmp_path / "b.jsonl", {**B, ("a", "1"): "ssf"}))
    assert found.nuggets is not None
    assert found.nuggets.assignment.n == 17
    assert ("1", "a") not in {(own.topic, own.run) for own in found.pairs}
    assert found.runs[0].b == 1


def test_nuggets_are_the_same_by_their_text_and_importance_is_compared(tmp_path: Path) -> None:
    found = compared(assigned(tmp_path / "a.jsonl", A), assigned(tmp_path / "b.jsonl", B, "vov"), "a")
    assert found.nuggets is not None
    assert found.nuggets.importance.confusion == ((2, 2), (2, 0))


def test_only_what_both_hold_is_compared_and_the_rest_is_named(tmp_path: Path) -> None:
    more = {**A, ("extra", "1"): "sss", ("a", "3"): "sss"}
    found = compared(assigned(tmp_path / "a.jsonl", more), assigned(tmp_path / "b.jsonl", B))
    assert found.left_out == {"runs_a": ["extra"], "runs_b": [], "topics_a": ["3"], "topics_b": []}
    assert {own.run: own.a for own in found.runs}["b"] == 0.75


def test_an_answer_missing_in_both_is_zero_in_the_means_and_no_agreement(tmp_path: Path) -> None:
    less = [{key: own for key, own in all_of.items() if key != ("cc", "2")} for all_of in (A, B)]
    found = compared(*(assigned(tmp_path / f"{at}.jsonl", own) for at, own in enumerate(less)))
    assert len(found.pairs) == found.correlation.pairs == 5
    assert found.runs[-1].length == 2.5


def test_assignments_against_a_table_of_runs_compare_runs_alone(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("agent,v_strict\na,0.9\nb,0.2\ncc,0.1\n")
    found = compared(assigned(tmp_path / "a.jsonl", A), tmp_path / "b.csv")
    assert (found.correlation.kendall.value, found.correlation.resampled) == (1, "run")
    assert (found.pairs, found.nuggets) == ((), None)
    assert [own.length for own in found.runs] == [4, 4, 5]


def test_a_run_without_a_score_is_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("run,v_strict\na,0.9\nb,0.2\ncc,0.1\nd,0.4\n")
    (tmp_path / "a.csv").write_text("run,v_strict\na,0.9\nb,0.2\ncc,0.1\nd,\n")
    found = compared(tmp_path / "a.csv", tmp_path / "b.csv")
    assert (found.correlation.runs, found.left_out["runs_a"], found.left_out["runs_b"]) == (3, ["d"], ["d"])


def test_metrics_by_topic_in_nuggetizers_names_are_understood(tmp_path: Path) -> None:
    records = [{"run_id": run, "qid": topic, "strict_vital_score": at / 9} for at, (run, topic) in enumerate(A)]
    records.append({"run_id": "a", "qid": "all", "strict_vital_score": 0.5})
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    found = compared(assigned(tmp_path / "a.jsonl", A), tmp_path / "b.jsonl")
    assert (found.topics, len(found.pairs)) == (("1", "2"), 6)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("b.csv", "run,v\na,1\n", r"b.csv:1: no column 'v_strict'"),
        ("b.csv", "run,v_strict\na,high\nb,1\ncc,1\n", r"b.csv:2: run 'a': 'v_strict' must be a number \('high'\)"),
        ("b.csv", "run,v_strict\na,inf\nb,1\ncc,1\n", r"b.csv:2: run 'a': 'v_strict' must be a number \('inf'\)"),
        ("b.csv", "run,v_strict\na,1\na,1\n", r"b.csv:3: run 'a' has its score in .*b.csv:2 already"),
        (
            "b.csv",
            "run,qid,v_strict\na,1,1\na,1,1\n",
            r"b.csv:3: run 'a' has its score of topic '1' in .*:2 already",
        ),
        (
            "b.csv",
            "run,v_strict\na,1\nb,1\nd,1\n",
            "a comparison of rankings needs 3 runs; there are 2 with a score in both files",
        ),
        ("b.csv", "run,qid,v_strict\na,7,1\nb,7,1\ncc,7,1\n", "the two files share no topic"),
        ("b.json", "[]", "must have an object 'runs'"),
        ("b.json", '{"runs": {}}', "must have an object 'runs'"),
        ("b.json", '{"runs"', "not JSON"),
        ("b.json", '{"runs": {"a": {"v_strict": "x"}}}', r"run 'a': 'v_strict' must be a number \('x'\)"),
        ("b.json", '{"runs": {"a": {"v": 1}}}', "no run has a value of the score 'v_strict'"),
    ],
)
def test_what_cannot_be_compared_is_said(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said):
        compared(assigned(tmp_path / "a.jsonl", A), tmp_path / name)


def test_an_unknown_score_is_answered_with_those_there_are(tmp_path: Path) -> None:
    path = assigned(tmp_path / "a.jsonl", A)
    with pytest.raises(
        InputError, match="there is no score 'ndcg'; choose one of v_strict, v, w_strict, w, a_strict, a"
    ):
        compared(path, path, "ndcg")
