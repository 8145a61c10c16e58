"""nuggetizer's files: in and out without loss, runs kept apart, and one line for whatever is wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judges.errors import DataError
from retrieval_eval.nuggets.files import read_assignments, read_banks, write_assignments, write_banks
from retrieval_eval.nuggets.types import Importance, Support

PER_EXAMPLE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)
IMPORTANCES = st.sampled_from(["vital", "okay", None])
EXTRAS = st.dictionaries(st.sampled_from(["reasoning", "trace", "note"]), st.none() | st.integers() | TEXTS, max_size=2)
GIVEN = {
    "query": "why do cats purr",
    "qid": "12",
    "nuggets": [
        {"text": "purring calms", "importance": "vital", "assignment": "support"},
        {"text": "purring heals", "importance": "okay", "assignment": "partial_support"},
    ],
    "run_id": "r1",
    "answer_text": "Because it calms them.",
    "response_length": 4,
}


def written(path: Path, *records: object) -> Path:
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in content.decode().split("\n")[:-1]]


def changed(**changes: object) -> dict[str, object]:
    return {name: value for name, value in {**GIVEN, **changes}.items() if value is not ...}


def nugget(**changes: object) -> dict[str, object]:
    own = {**GIVEN["nuggets"][0], **changes}  # type: ignore[dict-item]
    return changed(nuggets=[{name: value for name, value in own.items() if value is not ...}])


@pytest.mark.parametrize("name", ["a.jsonl.gz", "nugget_assignment.20241108.jl"])
@pytest.mark.parametrize("failed", ["failed", None])
def test_assignments_are_read_as_they_stand_failures_as_none(tmp_path: Path, name: str, failed: object) -> None:
    more = {"text": "purring pays", "importance": None, "assignment": failed}
    record = changed(qid=12, nuggets=[*GIVEN["nuggets"], more])  # type: ignore[misc]
    (own,) = read_assignments([written(tmp_path / name, record)])
    told = (own.query_id, own.query, own.run, own.answer, own.words)
    assert told == ("12", GIVEN["query"], "r1", GIVEN["answer_text"], 4)
    assert [nugget.text for nugget in own.nuggets] == ["purring calms", "purring heals", "purring pays"]
    assert [nugget.importance for nugget in own.nuggets] == [Importance.VITAL, Importance.OKAY, None]
    assert own.labels == (Support.FULL, Support.PARTIAL, None)


@PER_EXAMPLE
@given(
    st.lists(st.tuples(TEXTS, IMPORTANCES, st.sampled_from([*Support, "failed"]), EXTRAS), max_size=5), EXTRAS, TEXTS
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_assignments_go_in_and_out_without_loss(
    tmp_path: Path,
    name: str,
    nuggets: list[tuple[str, str | None, str, dict[str, object]]],
    extra: dict[str, object],
    answer: str,
) -> None:
    records = [{"text": t, "importance": i, "assignment": a, **e} for t, i, a, e in nuggets]
    record = changed(nuggets=records, answer_text=answer, response_length=len(answer.split()), **extra)
    assignments = read_assignments([written(tmp_path / name, record)])
    write_assignments(tmp_path / f"out-{name}", assignments)
    assert read(tmp_path / f"out-{name}") == [record]
    assert read_assignments([tmp_path / f"out-{name}"]) == assignments


@PER_EXAMPLE
@given(st.lists(st.tuples(TEXTS, IMPORTANCES, EXTRAS), max_size=5), EXTRAS)
def test_banks_go_in_and_out_without_loss(
    tmp_path: Path, nuggets: list[tuple[str, str | None, dict[str, object]]], extra: dict[str, object]
) -> None:
    record = {
        "query": "why",
        "qid": "q",
        "nuggets": [{"text": t, "importance": i, **e} for t, i, e in nuggets],
        **extra,
    }
    banks = read_banks(written(tmp_path / "banks.jsonl", record))
    write_banks(tmp_path / "out.jsonl", banks)
    assert read(tmp_path / "out.jsonl") == [record]
    assert read_banks(tmp_path / "out.jsonl") == banks


def test_the_recorded_assignments_of_trec_come_out_as_they_went_in(shared: Path, tmp_path: Path) -> None:
    recorded = shared / "data/trec_rag24_nuggets/nugget_assignment.jsonl.gz"
    write_assignments(tmp_path / "out.jsonl.gz", read_assignments([recorded]))
    assert read(tmp_path / "out.jsonl.gz") == read(recorded)


def test_runs_in_one_file_and_in_several_are_kept_apart(tmp_path: Path) -> None:
    one = written(tmp_path / "one.jsonl", GIVEN, changed(run_id="r2"))
    two = written(tmp_path / "two.jsonl", changed(run_id="r3"), changed(qid="13", run_id="r3"))
    found = read_assignments([one, two])
    assert [(own.run, own.query_id) for own in found] == [("r1", "12"), ("r2", "12"), ("r3", "12"), ("r3", "13")]


def test_a_file_without_runs_is_one_run_named_like_the_file(tmp_path: Path) -> None:
    (own,) = read_assignments([written(tmp_path / "my.run.jsonl.gz", changed(run_id=...))])
    assert own.run == "my.run"


def test_words_are_counted_where_the_answer_is_there_and_believed_where_not(tmp_path: Path) -> None:
    both = written(tmp_path / "a.jsonl", changed(response_length=99))
    only = written(tmp_path / "b.jsonl", changed(answer_text=..., response_length=99))
    assert [own.words for own in read_assignments([both])] == [4]
    write_assignments(tmp_path / "out.jsonl", read_assignments([both]))
    assert read(tmp_path / "out.jsonl") == read(both)
    assert [own.words for own in read_assignments([only])] == [99]


def test_a_repeated_text_is_a_nugget_of_its_own(tmp_path: Path) -> None:
    own = {"text": "same", "importance": "okay"}
    (bank,) = read_banks(written(tmp_path / "a.jsonl", {"query": "", "qid": "q", "nuggets": [own, own]}))
    assert len({nugget.nugget_id for nugget in bank.nuggets}) == 2


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (nugget(assignment="no"), "assignment must be one of support, partial_support, not_support, failed ('no')"),
        (nugget(assignment=["support"]), "nugget 1: assignment must be one of"),
        (nugget(assignment=...), "nugget 1 has no 'assignment'; is this a file of nuggets only?"),
        (nugget(importance="high"), "nugget 1: importance must be vital or okay ('high')"),
        (nugget(importance=["vital"]), "nugget 1: importance must be vital or okay"),
        (nugget(text=""), "nugget 1 has no text ('')"),
        (nugget(text=["a"]), "nugget 1 has no text"),
        (changed(nuggets="none"), "'nuggets' must be a list of objects, each with a text ('none')"),
        (changed(nuggets=["a"]), "nugget 1 must be an object with a text ('a')"),
        (changed(nuggets=...), "no column 'nuggets'"),
        (changed(qid=...), "no column 'qid'"),
        (changed(qid=""), "'qid' is empty"),
        (changed(run_id=" "), "'run_id' is empty"),
        (changed(answer_text=5), "'answer_text' must be a text ('5')"),
        (changed(response_length="4"), "'response_length' must be a number of words ('4')"),
        (changed(response_length=-1), "'response_length' must be a number of words ('-1')"),
        (changed(answer_text=..., response_length=...), "the answer has neither 'answer_text' nor 'response_length'"),
        (
            changed(run_id=..., docid="d1"),
            "these nuggets are assigned to a passage; only answers of runs can be scored ('d1')",
        ),
        (changed(qid="1"), "run 'r1' already has an answer to query '1' in "),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_value(tmp_path: Path, record: object, said: str) -> None:
    path = written(tmp_path / "a.jsonl", changed(qid="1"), record)
    with pytest.raises(DataError) as raised:
        read_assignments([path])
    assert str(raised.value).startswith(f"{path}:2: ")
    assert said in str(raised.value)


def test_a_bank_twice_and_a_table_that_is_no_json_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a.jsonl:2: the nuggets of this query are already in .*a.jsonl:1 \('12'\)"):
        read_banks(written(tmp_path / "a.jsonl", GIVEN, GIVEN))
    with pytest.raises(DataError, match=r"the name must end in .jsonl, .ndjson, .jl"):
        read_assignments([tmp_path / "a.csv"])
