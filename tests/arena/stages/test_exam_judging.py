"""Grading by a test bank, directly or through extracted answers: what is asked, and what becomes of wrong replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arena.boards.exam import exam_board
from arena.config.schema import Config
from arena.run.exam import save_grades
from arena.run.plan import plan
from judges.errors import InputError
from judges.types import Task
from retrieval_eval.exam.grade_files import read_graded
from tests.support.exams import (
    ALL,
    ITEMS,
    LAYERS,
    ORGAN,
    PASSAGES,
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
from tests.support.tiny_qa import QUESTION, passage


def rating(grade: dict[str, str]) -> Any:
    return lambda call: Reply(next(reply for text, reply in grade.items() if text in user(call)))


def test_every_passage_is_graded_against_every_item_once(tmp_path: Path) -> None:
    write_exam(tmp_path)
    with LLMServer() as server:
        config = exam_config(tmp_path, server.openai_url)
        first = graded(config)
        assert first.summary.complete
        assert len(server.calls) == len({call.sha256 for call in server.calls}) == ALL
        assert not any("response_format" in call.body for call in server.calls), "the reply is a bare number"
        again = graded(config)
        assert len(server.calls) == ALL
    assert again.summary.stages[Task.GRADING].known == ALL
    assert first.scores is not None
    assert again.scores is not None
    assert exam_board(again.scores).json() == exam_board(first.scores).json()
    found = grades(config)
    assert len(found) == ALL
    assert {passage for passage, _ in found} == {"skin/one#1", "skin/one#2", "skin/two#1", "rock/one#1"}
    assert set(found.values()) <= set(range(6))


def test_cover_is_made_of_the_grades(tmp_path: Path) -> None:
    """By hand: `one` covers a half of skin and all of rock, `two` nothing."""
    write_exam(tmp_path)

    def judge(call: Call) -> Reply:
        text = user(call)
        covered = ("epidermis" in text and LAYERS in text) or ("Elvis" in text and PIONEERS in text)
        return Reply("5" if covered else "3")

    with LLMServer(judge) as server:
        scores = graded(exam_config(tmp_path, server.openai_url)).scores
    assert scores is not None
    covers = {level: scores.by_level[level]["cover"].means for level in (3, 4)}
    assert scores.places(4) == {"one": 1, "two": 2}
    assert [covers[4][agent].value for agent in ("one", "two")] == [0.75, 0.0]
    assert [covers[3][agent].value for agent in ("one", "two")] == [1.0, 0.5]
    assert scores.cover.pairs.sum(axis=1).tolist() == scores.cover.graded.sum(axis=1).tolist() == [5, 2]


def test_an_edited_bank_costs_calls_for_its_new_items_only(tmp_path: Path) -> None:
    write_exam(tmp_path)
    with LLMServer() as server:
        config = exam_config(tmp_path, server.openai_url)
        graded(config)
        before = grades(config)
        server.calls.clear()
        write_bank_csv(tmp_path, [("skin", LAYERS), ("skin", "What does sweat do?"), ("rock", PIONEERS)])
        edited = graded(config)
        assert len(server.calls) == PASSAGES["skin"]
        assert all("What does sweat do?" in user(call) for call in server.calls)
        after = grades(config)
        assert {key: grade for key, grade in after.items() if key in before} == {
            key: grade for key, grade in before.items() if key[1] != ORGAN
        }
        write_bank_csv(tmp_path, ITEMS)
        server.calls.clear()
        graded(config)
        assert server.calls == [], "what was graded once is known for good"
    assert edited.summary.stages[Task.GRADING].known == ALL - PASSAGES["skin"]
    assert grades(config) == before


def test_several_items_in_one_call_are_graded_one_by_one(tmp_path: Path) -> None:
    write_exam(tmp_path)

    def judge(call: Call) -> Reply:
        names = call.body["response_format"]["json_schema"]["schema"]["properties"]
        assert user(call).index(LAYERS) < user(call).index(ORGAN)
        return Reply(json.dumps(dict(zip(names, (4, 1), strict=True))))

    with LLMServer(lambda call: judge(call) if "response_format" in call.body else Reply("2")) as server:
        config = exam_config(tmp_path, server.openai_url, items_per_call=5)
        assert graded(config).summary.complete
        assert len(server.calls) == PASSAGES["skin"] + PASSAGES["rock"]
    found = grades(config)
    assert {grade for (_, item), grade in found.items() if item == LAYERS} == {4}
    assert {grade for (_, item), grade in found.items() if item == ORGAN} == {1}
    assert {grade for (_, item), grade in found.items() if item == PIONEERS} == {2}
    assert len(found) == ALL


def test_items_that_were_graded_together_stay_together_when_the_bank_is_edited(tmp_path: Path) -> None:
    columns = ("qid", "question", "retired")
    write_exam(tmp_path, [(*item, None) for item in ITEMS], columns)
    with LLMServer() as server:
        config = exam_config(tmp_path, server.openai_url, items_per_call=2)
        graded(config)
        before = grades(config)
        server.calls.clear()
        edited = [("skin", "New?", None), ("skin", LAYERS, None), ("skin", ORGAN, "true"), ("rock", PIONEERS, None)]
        write_bank_csv(tmp_path, edited, columns)
        assert [row.calls for row in plan(config).rows] == [PASSAGES["skin"]]
        assert graded(config).summary.complete
        assert len(server.calls) == PASSAGES["skin"]
        assert all("New?" in user(call) and LAYERS not in user(call) for call in server.calls)
        after = grades(config)
        assert {key for key in before if key not in after} == {key for key in before if key[1] == ORGAN}
        assert all(after[key] == before[key] for key in before if key in after)

        server.calls.clear()
        single = exam_config(tmp_path, server.openai_url, items_per_call=1)
        graded(single)
        assert len(server.calls) == PASSAGES["skin"], "what was graded among others is graded alone"
        assert all(LAYERS in user(call) for call in server.calls)


def test_a_reply_that_may_be_a_rating_is_asked_again_and_a_text_is_read_by_the_rule(tmp_path: Path) -> None:
    write_exam(tmp_path)
    replies = {LAYERS: "The epidermis.", ORGAN: "no answer", PIONEERS: "4 out of 5"}
    with LLMServer(rating(replies)) as server:
        config = exam_config(tmp_path, server.openai_url)
        ended = graded(config)
        assert len(server.calls) == 2 * PASSAGES["skin"] + 3 * PASSAGES["rock"]
    assert (ended.summary.complete, ended.summary.stages[Task.GRADING].failed) == (False, PASSAGES["rock"])
    found = grades(config)
    assert {item: grade for (_, item), grade in found.items()} == {LAYERS: 1, ORGAN: 0, PIONEERS: None}
    assert ended.scores is not None
    cover = ended.scores.cover
    assert (cover.pairs[0].sum(), cover.graded[0].sum()) == (5, 4), "a failure is an ungraded pair, not a grade of 0"
    possible, covered = (ended.scores.by_level[4][measure].means["one"].value for measure in ("possible", "cover"))
    assert possible > covered == 0


def test_compat_reads_the_same_replies_as_the_workbenchs_code_does(tmp_path: Path) -> None:
    write_exam(tmp_path)
    replies = {LAYERS: "The epidermis.", ORGAN: "no answer", PIONEERS: "-1"}
    with LLMServer(rating(replies)) as server:
        graded(exam_config(tmp_path, server.openai_url))
        server.calls.clear()
        config = exam_config(tmp_path, server.openai_url, compat="workbench")
        ended = graded(config)
        assert server.calls == []
    assert {item: grade for (_, item), grade in grades(config).items()} == {LAYERS: 0, ORGAN: 1, PIONEERS: 1}
    assert ended.scores is not None
    assert ended.scores.workbench


def test_only_the_first_passages_of_an_answer_are_graded(tmp_path: Path) -> None:
    write_exam(tmp_path)
    with LLMServer() as server:
        config = exam_config(tmp_path, server.openai_url, depth=1)
        ended = graded(config)
    assert {passage for passage, _ in grades(config)} == {"skin/one#1", "skin/two#1", "rock/one#1"}
    assert ended.scores is not None
    assert ended.scores.cover.k == 1


def test_secret_items_are_graded_and_not_shown(tmp_path: Path, cli: Any) -> None:
    columns = ("qid", "question", "secret")
    write_exam(tmp_path, [("skin", LAYERS, "true"), ("skin", ORGAN, None), ("rock", PIONEERS, None)], columns)
    config = exam_config(tmp_path)
    ended = graded(config)
    assert len(ended.study.grades) == ALL
    shown = cli("leaderboard", config.store, "--format", "json")
    assert LAYERS not in shown.out
    assert json.loads(shown.out)["exam"]["coverage"]["graded"] == ALL
    assert LAYERS.encode() not in Path(config.store).read_bytes()
    assert save_grades(tmp_path / "g.csv", ended.study) == PASSAGES["skin"]
    (open_grades,) = read_graded(tmp_path / "g.csv").grades.values()
    assert len(open_grades) == ALL - PASSAGES["skin"]
    assert save_grades(tmp_path / "all.jsonl.gz", ended.study, secret=True) == 0
    whole = read_graded(tmp_path / "all.jsonl.gz")
    assert [len(entries) for entries in whole.grades.values()] == [ALL]
    assert whole.rankings["skin", "one"] == ("skin/one#1", "skin/one#2")


def test_nuggets_and_questions_of_one_bank_get_their_own_prompts(tmp_path: Path) -> None:
    write_exam(tmp_path, [("skin", "question", LAYERS), ("skin", "nugget", "protects")], ("qid", "type", "text"))
    with LLMServer() as server:
        config = exam_config(tmp_path, server.openai_url, items_per_call=4)
        graded(config)
        systems = {call.body["messages"][0]["content"] for call in server.calls}
        assert len(server.calls) == 2 * PASSAGES["skin"]
        assert len(systems) == 2
    prompts = {result.reply for result in stored(config, Task.GRADING).values() if result}
    assert prompts <= set("012345")


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ({"generate": {}, "bank": "bank.csv"}, "one of the two"),
        ({"bank": None}, "one of the two"),
        ({"grading": "extraction_words", "items_per_call": 2}, "'items_per_call' goes with grading 'self_rating'"),
        ({"generate": {}, "grading": "extraction_llm"}, "needs gold answers"),
        ({"check_prompt": "answer_check"}, "go with grading 'extraction_llm' only"),
        ({"min_grade": 6}, "less than or equal to 5"),
    ],
)
def test_sections_that_do_not_fit_are_refused(tmp_path: Path, section: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        exam_config(tmp_path, **section)


def test_a_bank_that_cannot_be_used_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    write_exam(tmp_path, [("other", "What?")])
    with pytest.raises(InputError, match=r"bank\.csv: has no item for any of the queries"):
        graded(exam_config(tmp_path))
    write_bank_csv(
        tmp_path,
        [(*item, gold) for item, gold in zip(ITEMS, ("epidermis", "yes", ""), strict=True)],
        ("qid", "question", "answers"),
    )
    with pytest.raises(InputError, match=r"item 'rock/[0-9a-f]{32}' of .*bank\.csv has none"):
        graded(exam_config(tmp_path, grading="extraction_words"))
    assert not (tmp_path / "exam.db").exists()
    write_bank_csv(tmp_path, ITEMS)
    with pytest.raises(InputError, match="a prompt for task 'relevance', where task 'grading' is needed"):
        graded(exam_config(tmp_path, prompt="umbrela"))


COLUMNS = ("qid", "question", "answers")
KEYED = (("skin", LAYERS, "epidermis"), ("skin", ORGAN, "yes"), ("rock", PIONEERS, "Elvis Presley|Chuck Berry"))


def is_check(call: Call) -> bool:
    return "yes or no" in system(call)


def examinee(call: Call) -> Reply:
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
    assert [*ended.scores.cover.by_level] == [1]
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


def test_the_part_that_states_a_nugget_is_asked_for_by_a_prompt_of_its_own(tmp_path: Path) -> None:
    write_exam(tmp_path)
    write_bank_csv(tmp_path, [("skin", "the epidermis is the outer layer")], ("qid", "nugget"))
    with LLMServer([Reply("unanswerable")] * PASSAGES["skin"]) as server:
        ended = graded(exam_config(tmp_path, server.openai_url, grading="extraction_only"))
        assert [user(call).startswith("<<<key fact ") for call in server.calls] == [True] * PASSAGES["skin"]
    assert ended.summary.complete
    assert ended.study.grader.prompt == "extraction_nugget@1"


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
    assert list(ended.scores.places(ended.scores.level)) == ["knows", "does not"]
