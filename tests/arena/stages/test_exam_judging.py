"""Grading answers by a test bank: what is asked, what an edit of the bank costs, and what becomes of wrong replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arena.boards.exam import ExamBoard
from arena.run import tournament
from arena.run.plan import plan
from arena.stages.exam.commands import save_grades
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
    user,
    write_bank_csv,
    write_exam,
)
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.tournaments import Quiet

SECOND_BANK = (*ITEMS, ("rock", "When did it begin?"))


def rating(grade: dict[str, str]) -> Any:
    """A judge that replies by the text of the question."""
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
    assert ExamBoard(again.scores).json() == ExamBoard(first.scores).json()
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
    covers = {level: scores.means("cover", level) for level in (3, 4)}
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


def test_what_several_items_in_one_call_do_to_the_grades_can_be_measured(tmp_path: Path, cli: Any) -> None:
    """By hand: of seven pairs six agree, and the one that does not is 5 alone and 0 among others."""
    write_exam(tmp_path)

    def judge(call: Call) -> Reply:
        several = "response_format" in call.body
        alone = 5 if LAYERS in user(call) and "soft" in user(call) else 0
        return Reply('{"item_1": 0, "item_2": 0}' if several else str(alone))

    with LLMServer(judge) as server:
        for size in (1, 2):
            ended = graded(exam_config(tmp_path, server.openai_url, items_per_call=size))
            save_grades(tmp_path / f"{size}.csv", ended.study)
    done = cli("exam", tmp_path / "1.csv", "--show", "agreement", "--with", tmp_path / "2.csv", "--format", "json")
    found = json.loads(done.out)
    counts = found["confusion"]["counts"]
    assert (found["n"], counts[0][0], counts[5][0]) == (ALL, 6, 1)
    shown = cli("exam", tmp_path / "1.csv", "--show", "agreement", "--with", tmp_path / "2.csv").out
    assert "7 pairs of passage and item with both labels, of 2 queries." in shown
    assert "Labels: predicted in rows, the other grading in columns" in shown
    refused = cli("exam", tmp_path / "1.csv", "--show", "agreement", "--with", tmp_path / "2.csv", "--by", "count")
    assert (refused.status, "--with compares grades as they are" in refused.err) == (2, True)


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
    assert {item: grade for (_, item), grade in found.items()} == {LAYERS: 1, ORGAN: 0}
    assert ended.scores is not None
    cover = ended.scores.cover
    assert (cover.pairs[0].sum(), cover.graded[0].sum()) == (5, 4), "a failure is an ungraded pair, not a grade of 0"
    possible, covered = (ended.scores.means(measure, 4)["one"].value for measure in ("possible", "cover"))
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


def test_samples_of_a_rating_are_combined(tmp_path: Path) -> None:
    write_exam(tmp_path)
    turns = iter(["1", "5", "4"] * ALL)
    with LLMServer(lambda _: Reply(next(turns))) as server:
        judge = {"samples": 3, "combine": "median", "concurrency": 1}
        config = exam_config(tmp_path, server.openai_url, judge=judge)
        assert graded(config).summary.stages[Task.GRADING].calls == 3 * ALL
    assert set(grades(config).values()) == {4}


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


def test_a_plan_counts_what_a_run_asks(tmp_path: Path) -> None:
    write_exam(tmp_path)
    with LLMServer() as server:
        config = exam_config(tmp_path, server.openai_url)
        (row,) = plan(config).rows
        assert (row.task, row.wanted, row.calls, row.output_tokens) == (Task.GRADING, ALL, ALL, 2 * ALL)
        graded(config)
        write_bank_csv(tmp_path, SECOND_BANK)
        (row,) = plan(config).rows
        assert (row.wanted, row.known, row.calls) == (ALL + 1, ALL, 1)
        (row,) = plan(exam_config(tmp_path, server.openai_url, items_per_call=2)).rows
        assert row.calls == PASSAGES["skin"] + PASSAGES["rock"]


def test_an_exam_stands_beside_the_games(tmp_path: Path, cli: Any) -> None:
    write_exam(tmp_path)
    with LLMServer() as server:
        config = exam_config(tmp_path, server.openai_url, beside={"pairwise": {"judges": ["judge"]}})
        summary = tournament.run(config, Quiet())
    assert summary.complete
    assert set(summary.stages) == {Task.PAIRWISE, Task.GRADING}
    board = json.loads(cli("leaderboard", config.store, "--format", "json").out)
    covers = {row["agent"]: row["levels"]["4"]["cover"]["mean"] for row in board["exam"]["agents"]}
    assert {row["agent"]: row["exam_cover"] for row in board["agents"]} == covers
    assert "bank" not in board["settings"]["exam"]
    assert "EXAM-Cover" in cli("leaderboard", config.store).out
    header, *rows = cli("leaderboard", config.store, "--format", "csv").out.splitlines()
    assert header.endswith(",exam_cover")
    assert len(rows) == 2


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
    with pytest.raises(InputError, match="made for task 'relevance', asked for 'grading'"):
        graded(exam_config(tmp_path, prompt="umbrela"))


def test_a_judge_that_cannot_go_on_leaves_the_rest_ungraded(tmp_path: Path) -> None:
    write_exam(tmp_path)
    with LLMServer(lambda _: Reply("wrong key", status=401)) as server:
        ended = graded(exam_config(tmp_path, server.openai_url))
    assert not ended.summary.complete
    assert ended.summary.stopped
    assert ended.scores is not None
    assert ended.scores.study.grids.ungraded == ended.scores.study.grids.pairs == ALL
    with LLMServer(steady_judge) as server:
        assert graded(exam_config(tmp_path, server.openai_url)).summary.complete
