"""Exams graded through extracted answers: checked by words, by a judge, or only collected; and by local models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from arena.config.whole import Config
from arena.run.plan import plan
from judges.types import Task
from tests.support.exams import (
    ALL,
    LAYERS,
    ORGAN,
    PIONEERS,
    exam_config,
    graded,
    grades,
    stored,
    system,
    user,
    write_bank_csv,
    write_exam,
)
from tests.support.llm_server import Call, LLMServer, Reply
from tests.support.tiny_models import save_tiny_model
from tests.support.tiny_qa import QUESTION, passage

COLUMNS = ("qid", "question", "answers")
KEYED = (("skin", LAYERS, "epidermis"), ("skin", ORGAN, "yes"), ("rock", PIONEERS, "Elvis Presley|Chuck Berry"))


def is_check(call: Call) -> bool:
    return "yes or no" in system(call)


def examinee(call: Call) -> Reply:
    """Extracts what the tests expect, and takes "the outer one" for the epidermis."""
    asked = user(call)
    if is_check(call):
        return Reply("yes" if "the outer one" in asked else "no")
    if LAYERS in asked:
        return Reply("Epidermis." if "epidermis is" in asked else "the outer one" if "organ" in asked else "no answer")
    return Reply("unanswerable" if ORGAN in asked else "Elvis Presly")


def test_answers_are_checked_against_the_key_by_their_words(tmp_path: Path) -> None:
    write_exam(tmp_path, KEYED, COLUMNS)
    with LLMServer(examinee) as server:
        config = exam_config(tmp_path, server.openai_url, grading="extraction_words")
        ended = graded(config)
        assert len(server.calls) == ALL
        write_bank_csv(tmp_path, [("skin", LAYERS, "dermis"), *KEYED[1:]], COLUMNS)
        server.calls.clear()
        other_key = graded(config)
        assert server.calls == [], "another key asks for no other answers"
    assert ended.summary.complete
    assert {where: grade for where, grade in grades(config).items() if grade} == {("rock/one#1", PIONEERS): 1}
    assert ended.scores is not None
    assert ended.scores.cover.levels == (1,)
    assert {entry.answer for entry in ended.study.grades} == {
        "Epidermis.",
        "the outer one",
        "no answer",
        "",
        "Elvis Presly",
    }
    right = {(entry.passage_id, entry.item_id) for entry in ended.study.grades if entry.grade}
    assert {passage_id for passage_id, _ in right} == {"skin/one#1", "rock/one#1"}
    assert sum(entry.grade or 0 for entry in other_key.study.grades) == 1


def test_answers_are_checked_by_a_judge_as_they_come_in(tmp_path: Path) -> None:
    write_exam(tmp_path, KEYED, COLUMNS)
    with LLMServer(examinee) as server:
        config = exam_config(tmp_path, server.openai_url, grading="extraction_llm")
        assert [(row.task, row.calls) for row in plan(config).rows] == [
            (Task.EXTRACTION, ALL),
            (Task.ANSWER_CHECK, ALL),
        ]
        ended = graded(config)
        checks = [call for call in server.calls if is_check(call)]
        assert len(server.calls) - len(checks) == ALL
        assert len(checks) == 3, "what says that there is no answer is wrong without a call"
        again = graded(config)
        assert len(server.calls) == ALL + 3
    assert ended.summary.complete
    assert ended.summary.stages[Task.ANSWER_CHECK].judged == 3
    assert again.summary.stages[Task.ANSWER_CHECK].known == 3
    found = grades(config)
    assert (len(found), sum(grade or 0 for grade in found.values())) == (ALL, 1)
    assert found["skin/one#2", LAYERS] == 1


def test_a_check_that_failed_leaves_its_pair_ungraded(tmp_path: Path) -> None:
    write_exam(tmp_path, KEYED, COLUMNS)
    with LLMServer(lambda call: Reply("perhaps") if is_check(call) else examinee(call)) as server:
        ended = graded(exam_config(tmp_path, server.openai_url, grading="extraction_llm"))
    assert not ended.summary.complete
    assert ended.summary.stages[Task.ANSWER_CHECK].failed == 3
    assert ended.study.grids.ungraded == 3


def test_answers_for_information_are_no_grades(tmp_path: Path, cli: Any) -> None:
    write_exam(tmp_path)
    with LLMServer(examinee) as server:
        config = exam_config(tmp_path, server.openai_url, grading="extraction_only")
        ended = graded(config)
    assert (ended.summary.complete, ended.scores) == (True, None)
    assert {entry.grade for entry in ended.study.grades} == {None}
    assert len(ended.study.grades) == ALL
    assert json.loads(cli("leaderboard", config.store, "--format", "json").out)["exam"] is None


def test_another_judge_may_check(tmp_path: Path) -> None:
    write_exam(tmp_path, KEYED, COLUMNS)
    with LLMServer(examinee) as server:
        both = {
            name: {"provider": "openai", "model": name, "base_url": server.openai_url} for name in ("judge", "checker")
        }
        section = {"grading": "extraction_llm", "check_judge": "checker"}
        config = exam_config(tmp_path, beside={"judges": both}, **section)
        assert graded(config).summary.complete
        assert {(call.body["model"], is_check(call)) for call in server.calls} == {("judge", False), ("checker", True)}


def local(tmp_path: Path, provider: str, folder: Path, **section: Any) -> Config:
    judges = {"judge": {"provider": provider, "path": folder, "device": "cpu", "max_tokens": 8}}
    return exam_config(tmp_path, beside={"judges": judges}, **section)


def test_an_extractive_head_is_a_grader(tmp_path: Path, skin_qa_model: Path) -> None:
    write_exam(tmp_path, [("skin", QUESTION, "the upper epidermis")], COLUMNS)
    (tmp_path / "answers.csv").write_text(
        f"qid,agent,answer\nskin,knows,{passage(40, (7,), seed=7)}\nskin,does not,{passage(40)}\n"
    )
    config = local(tmp_path, "extractive_qa", skin_qa_model, grading="extraction_words", passage_words=400)
    ended = graded(config)
    assert ended.summary.complete
    assert grades(config) == {("skin/knows#1", QUESTION): 1, ("skin/does%20not#1", QUESTION): 0}
    assert {entry.answer for entry in ended.study.grades} == {"upper epidermis", ""}
    assert ended.scores is not None
    assert list(ended.scores.covers) == ["knows", "does not"]


def test_a_text_to_text_model_is_a_grader(tmp_path: Path) -> None:
    """A tiny T5 that was taught two ratings and one answer in place of a rating."""
    write_exam(tmp_path, [("skin", "Layers?"), ("rock", "Who?")])
    (tmp_path / "answers.csv").write_text("qid,agent,answer\nskin,one,Epidermis.\nskin,two,Soft.\nrock,one,Elvis.\n")
    (tmp_path / "short.yaml").write_text(
        'name: short\nversion: "1"\ntask: grading\nsystem: ""\nuser: "{{ items[0] }} {{ document.text }}"\n'
        "reply: {form: rating}\n"
    )
    taught = {"Layers? Epidermis.": "5", "Layers? Soft.": "0", "Who? Elvis.": "Elvis"}
    folder = save_tiny_model(tmp_path / "t5", "text-to-text", taught=taught, steps=60)
    config = local(tmp_path, "transformers", folder, prompt=str(tmp_path / "short.yaml"))
    assert graded(config).summary.complete
    assert grades(config) == {
        ("skin/one#1", "Layers?"): 5,
        ("skin/two#1", "Layers?"): 0,
        ("rock/one#1", "Who?"): 1,
    }
    replies = {result.reply for result in stored(config, Task.GRADING).values() if result}
    assert replies == {"5", "0", "Elvis"}
