"""The workbench's graded files: read, written byte for byte, and added to."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from judges.errors import DataError
from retrieval_eval.exam.grade_files import (
    read_graded,
    read_workbench,
    to_workbench,
    workbench_entries,
    write_grades,
    write_workbench,
)
from retrieval_eval.exam.grades import Grade, Graded, Grader
from tests.support.workbench_files import EXTRACTION, RATING, RATINGS, write_graded

RATER = Grader("google/flan-t5-large", RATING)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_graded(tmp_path / "graded.jsonl")


def test_a_file_is_written_again_byte_for_byte(file: Path, tmp_path: Path) -> None:
    assert write_workbench(tmp_path / "again.jsonl.gz", read_workbench(file)) == 2
    assert gzip.decompress((tmp_path / "again.jsonl.gz").read_bytes()) == file.read_bytes()


def test_adding_grades_keeps_the_text_of_every_other_value(file: Path, tmp_path: Path) -> None:
    entry = {"llm": "new", "self_ratings": []}
    queries = [query.with_grades({"p1": entry, "p5": entry}) for query in read_workbench(file)]
    write_workbench(tmp_path / "more.jsonl", queries)
    before, after = (path.read_text(encoding="utf-8") for path in (file, tmp_path / "more.jsonl"))
    added = f", {json.dumps(entry)}]"
    assert after.count(added) == 2
    assert after.replace(added, "]") == before
    assert after.count("17.5605280e0") == before.count("17.5605280e0") > 0


@pytest.mark.parametrize(
    ("own", "then"),
    [
        ("", ', "exam_grades": [{}]'),
        (', "exam_grades": null', ', "exam_grades": [{}]'),
        (', "exam_grades" :\t[ ] ', ', "exam_grades" :\t[{}] '),
        (', "exam_grades": [{"x": 1.0}\n], "y": 1e5', ', "exam_grades": [{"x": 1.0}, {}], "y": 1e5'),
    ],
)
def test_grades_find_their_place_in_any_spelling(own: str, then: str, tmp_path: Path) -> None:
    text = '[ "q" ,[{"paragraph_id": "p", "text": "t"%s}, {"paragraph_id":"r","text":"t"}]]'
    (tmp_path / "one.jsonl").write_text((text % own).replace("\n", " ") + "\n", encoding="utf-8")
    (query,) = read_workbench(tmp_path / "one.jsonl")
    raw = query.with_grades({"p": {}}).raw
    assert raw == f'["q", [{{"paragraph_id": "p", "text": "t"{then}}}, {{"paragraph_id":"r","text":"t"}}]]'


def test_several_queries_on_one_line_are_read(tmp_path: Path) -> None:
    text = '["q", [{"paragraph_id": "p", "text": "t"}]]'
    (tmp_path / "old.jsonl").write_text(text + text.replace("q", "r"), encoding="utf-8")
    assert [query.query_id for query in read_workbench(tmp_path / "old.jsonl")] == ["q", "r"]


def test_of_several_labels_of_a_paragraph_the_highest_counts(tmp_path: Path) -> None:
    judgments = [{"relevance": label} for label in (1, 3, 0)]
    line = ["q", [{"paragraph_id": "p", "text": "t", "paragraph_data": {"judgments": judgments}}]]
    (tmp_path / "labels.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert read_graded(tmp_path / "labels.jsonl").labels == {"q": {"p": 3}}


def test_a_file_says_grades_answers_rankings_labels_and_texts(file: Path) -> None:
    graded = read_graded(file)
    assert graded.chosen() == RATER
    ratings = {
        (query, passage, item): rating
        for query, own in RATINGS.items()
        for passage, row in own.items()
        for item, rating in row.items()
    }
    assert {entry[:3]: entry.grade for entry in graded.grades[RATER]} == ratings
    assert {entry.grade for entry in graded.grades[Grader("google/flan-t5-large", EXTRACTION)]} == {0, 1}
    assert graded.answers(RATER)["skin", "p1", "a"] == "p1 on a"
    assert graded.rankings == {
        ("skin", "one"): ("p1", "p2"),
        ("skin", "two"): ("p3", "p2"),
        ("rock", "one"): ("p4", "p5"),
    }
    assert graded.labels == {"skin": {"p1": 2, "p2": 0, "p3": 1}, "rock": {"p4": 1}}
    assert graded.passages["skin"]["p1"] == "Text of p1: épidermis"
    assert graded.direct[Grader("flan", "Sun")]["rock"] == {"p4": 1, "p5": 1}


def test_what_was_read_can_be_made_into_such_a_file_again(file: Path, tmp_path: Path) -> None:
    graded = read_graded(file)
    write_workbench(tmp_path / "made.jsonl.gz", to_workbench(graded, tau=4))
    again = read_graded(tmp_path / "made.jsonl.gz")
    assert (again.grades, again.rankings, again.labels, again.passages) == (
        graded.grades,
        graded.rankings,
        graded.labels,
        graded.passages,
    )
    first = next(iter(read_workbench(tmp_path / "made.jsonl.gz"))).paragraphs[0]["exam_grades"][0]
    assert (first["correctAnswered"], first["wrongAnswered"], first["exam_ratio"]) == (["a", "c"], ["b", "d"], 0.5)


def test_a_table_gives_the_grades_back(file: Path, tmp_path: Path) -> None:
    graded = read_graded(file)
    for name in ("grades.csv", "grades.jsonl.gz", "grades.parquet"):
        write_grades(tmp_path / name, graded)
        assert read_graded(tmp_path / name).grades == graded.grades


def test_an_empty_grade_is_no_grade(tmp_path: Path) -> None:
    (tmp_path / "grades.csv").write_text(
        "qid,docid,item,rating,answer\nq,p,a,,\nq,p,b,,said\nq,p,c,0,\n", encoding="utf-8"
    )
    assert [*read_graded(tmp_path / "grades.csv").grades.values()] == [
        [Grade("q", "p", "a", None), Grade("q", "p", "b", None, "said"), Grade("q", "p", "c", 0)]
    ]


def test_checked_answers_are_written_without_ratings() -> None:
    grades = [Grade("q", "p", "a", 1, "epidermis"), Grade("q", "p", "b", 0), Grade("q", "p", "c", None, "x")]
    grader = Grader("t5", "extract")
    entry = workbench_entries(Graded({grader: grades}), grader, grades, tau=4)["p"]
    assert (entry["correctAnswered"], entry["wrongAnswered"], entry["self_ratings"]) == (["a"], ["b"], None)
    assert entry["answers"] == [["a", "epidermis"], ["b", ""], ["c", "x"]]


def test_ratings_name_nuggets_as_nuggets() -> None:
    grades, grader = [Grade("q", "p", "a", 4), Grade("q", "p", "n", 5)], Grader("t5", "rate")
    graded = Graded({grader: grades}, frozenset({grader}), nuggets=frozenset({"n"}))
    assert workbench_entries(graded, grader, grades, tau=5)["p"]["self_ratings"] == [
        {"question_id": "a", "self_rating": 4},
        {"nugget_id": "n", "self_rating": 5},
    ]


GOOD = '{"paragraph_id": "p", "text": "t"%s}'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1, []]", r":1: the line must have the form \[query_id"),
        ("[", ":1: not JSON.*"),
        ('["q", [{"text": "t"}]]', ":1: query 'q': 'paragraph_id' of a paragraph must be a text"),
        ('["q", [3]]', r":1: query 'q': a paragraph must be a JSON object \('3'\)"),
        (
            f'["q", [{GOOD % ", `exam_grades`: [{`self_ratings`: [{`question_id`: `a`, `self_rating`: 4.5}]}]"}]]',
            r"\('4.5'\)",
        ),
        (
            f'["q", [{GOOD % ", `exam_grades`: [{`self_ratings`: [{`self_rating`: 4}]}]"}]]',
            "'nugget_id' must be a text",
        ),
        (f'["q", [{GOOD % ", `exam_grades`: [3]"}]]', "do not have the workbench's form"),
        (
            f'["q", [{GOOD % ", `paragraph_data`: {`rankings`: [{`method`: `m`, `rank`: `1`}]}"}]]',
            r"'rank' must be a whole number",
        ),
        (
            f'["q", [{GOOD % ""}, {GOOD.replace("`t`", "x") % ""}]]'.replace('"t"}]', '"u"}]'),
            r"twice with different texts \('p'\)",
        ),
        ("", "the table has no rows"),
    ],
)
def test_an_error_names_file_line_and_value(line: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text(line.replace("`", '"') + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"bad\.jsonl.*{said}"):
        read_graded(tmp_path / "bad.jsonl")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("qid,did,item,grade\nq,p,a,x\n", r":2: a grade must be a whole number from 0 to 100 \('x'\)"),
        ("qid,did,item,grade\nq,p,a,-1\n", r":2: a grade must be a whole number from 0 to 100 \('-1'\)"),
        (
            "qid,did,item,grade\nq,p,a,1\nq,p,a,1\n",
            r":3: this passage and item already have a grade on line 2 \('q p a'\)",
        ),
        ("qid,did,grade\nq,p,1\n", r":1: no column 'item'"),
    ],
)
def test_an_error_in_a_table_names_file_line_and_value(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=rf"bad\.csv{said}"):
        read_graded(tmp_path / "bad.csv")
