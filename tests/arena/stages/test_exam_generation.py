"""Test banks that a judge writes: per query and subtopic, once, with their origin; and graded as they come in."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from arena.data.safe_files import save_bank
from arena.run import exam as exam_run
from arena.run import judging
from arena.run.plan import plan
from judges.errors import InputError
from judges.types import Task
from retrieval_eval.data.tables import write_rows
from retrieval_eval.exam.bank_files import read_bank
from tests.support.exams import PASSAGES, exam_config, graded, grades, stored, write_exam
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.tournaments import Quiet

WRITTEN = {"per_query": 4}
ALL = 4 * (PASSAGES["skin"] + PASSAGES["rock"])


def is_writing(call: Call) -> bool:
    return "response_format" in call.body


def test_a_bank_is_written_once_and_says_where_it_comes_from(tmp_path: Path) -> None:
    write_exam(tmp_path)
    with LLMServer() as server:
        config = exam_config(tmp_path, server.openai_url, judge={"seed": 7}, generate=WRITTEN)
        summary, bank = exam_run.generate(config, Quiet())
        assert (summary.complete, len(server.calls)) == (True, 2)
        assert exam_run.generate(config, Quiet())[1] == bank
        assert len(server.calls) == 2
    assert {query: len(items) for query, items in bank.active.items()} == {"skin": 4, "rock": 4}
    for item in bank.items:
        assert item.metadata == {"generated": {"model": "gpt-x-2026-11", "prompt": "exam_questions@1", "seed": 7}}
    for name in ("bank.jsonl", "bank.yaml", "copy.csv"):
        save_bank(tmp_path / name, bank)
        assert read_bank(tmp_path / name).version == bank.version
    with pytest.raises(InputError, match="the file exists already and may have been edited"):
        save_bank(tmp_path / "bank.jsonl", bank)


def test_subtopics_are_asked_for_one_by_one(tmp_path: Path) -> None:
    write_exam(tmp_path)
    table = [{"qid": "skin", "facet": name, "subtopic": f"The {name}"} for name in ("layers", "glands")]
    write_rows(tmp_path / "subtopics.csv", ["qid", "facet", "subtopic"], table)
    with LLMServer() as server:
        generate = {**WRITTEN, "subtopics": tmp_path / "subtopics.csv"}
        config = exam_config(tmp_path, server.openai_url, generate=generate)
        summary, bank = exam_run.generate(config, Quiet())
        assert sum("The glands" in call.body["messages"][1]["content"] for call in server.calls) == 1
    assert summary.complete
    facets = Counter((item.query_id, item.facet_id) for item in bank.items)
    assert facets == {("skin", "layers"): 4, ("skin", "glands"): 4, ("rock", None): 4}
    table.append({"qid": "stone", "facet": "f", "subtopic": "s"})
    write_rows(tmp_path / "subtopics.csv", ["qid", "facet", "subtopic"], table)
    with pytest.raises(InputError, match=r"subtopics\.csv:4: no query has this id \('stone'\)"):
        exam_run.generate(config, Quiet())


def test_a_share_of_the_items_is_secret_by_seed(tmp_path: Path) -> None:
    write_exam(tmp_path)
    secret = []
    with LLMServer() as server:
        for seed in (1, 1, 2):
            generate = {"per_query": 10, "secret": 0.3, "seed": seed, "kind": "nugget"}
            _, bank = exam_run.generate(exam_config(tmp_path, server.openai_url, generate=generate), Quiet())
            secret.append({item.item_id for item in bank.items if item.secret})
            assert {item.item_type for item in bank.items} == {"nugget"}
            assert [sum(item.secret for item in items) for items in bank.active.values()] == [3, 3]
        assert len(server.calls) == 2, "another draw needs no other items"
    assert secret[0] == secret[1] != secret[2]


def test_a_run_grades_each_query_by_its_items_as_soon_as_they_are_written(tmp_path: Path) -> None:
    write_exam(tmp_path)

    def judge(call: Call) -> Reply:
        slow = is_writing(call) and "rock" in call.body["messages"][1]["content"]
        return Reply(steady_judge(call).text, delay_s=0.5 if slow else 0)

    with LLMServer(judge) as server:
        config = exam_config(tmp_path, server.openai_url, generate=WRITTEN)
        assert [(row.task, row.calls) for row in plan(config).rows] == [(Task.QUESTIONS, 2), (Task.GRADING, ALL)]
        summary = judging.run(config, Quiet())
        assert summary.complete
        assert {task: stage.calls for task, stage in summary.stages.items()} == {Task.QUESTIONS: 2, Task.GRADING: ALL}
        assert [is_writing(call) for call in server.calls[:3]] == [True, True, False]
        assert [(row.task, row.known) for row in plan(config).rows] == [(Task.QUESTIONS, 2), (Task.GRADING, ALL)]
        again = graded(config)
        assert again.summary.complete
        assert len(server.calls) == ALL + 2
    assert len(grades(config)) == ALL
    assert again.scores is not None
    assert again.scores.cover.pairs.sum(axis=1).tolist() == [3 * 4, 4]


def test_grades_by_a_written_bank_are_known_when_it_is_edited_as_a_file(tmp_path: Path) -> None:
    write_exam(tmp_path)
    with LLMServer() as server:
        written = graded(exam_config(tmp_path, server.openai_url, generate=WRITTEN))
        assert written.study.bank is not None
        save_bank(tmp_path / "mine.jsonl", written.study.bank)
        lines = (tmp_path / "mine.jsonl").read_text().replace("What is part 1 of", "Which is part 1 of", 1)
        (tmp_path / "mine.jsonl").write_text(lines)
        server.calls.clear()
        edited = graded(exam_config(tmp_path, server.openai_url, bank=tmp_path / "mine.jsonl"))
        assert len(server.calls) == PASSAGES["skin"]
    assert edited.summary.complete


def test_a_query_whose_items_cannot_be_written_is_counted_and_leaves_the_others(tmp_path: Path, cli: Any) -> None:
    write_exam(tmp_path)

    def judge(call: Call) -> Reply:
        if is_writing(call) and "rock" in call.body["messages"][1]["content"]:
            return Reply('{"questions": []}')
        return steady_judge(call)

    with LLMServer(judge) as server:
        config = exam_config(tmp_path, server.openai_url, generate=WRITTEN)
        ended = graded(config)
    questions, grading = ended.summary.stages[Task.QUESTIONS], ended.summary.stages[Task.GRADING]
    assert (questions.judged, questions.failed, grading.judged) == (1, 1, 4 * PASSAGES["skin"])
    assert not ended.summary.complete
    assert ended.scores is not None
    assert ended.scores.cover.empty_queries == ("rock",)
    assert "questions judge rock" in cli("failures", config.store).out


def test_a_judge_that_cannot_go_on_takes_nothing_away_that_is_known(tmp_path: Path) -> None:
    queries = [{"qid": f"q{number}", "query": f"What is {number}?"} for number in range(80)]
    answers = [{"qid": row["qid"], "agent": "one", "answer": f"It is {row['qid']}."} for row in queries]
    write_rows(tmp_path / "queries.csv", ["qid", "query"], queries[40:])
    write_rows(tmp_path / "answers.csv", ["qid", "agent", "answer"], answers[40:])
    with LLMServer() as server:
        config = exam_config(tmp_path, server.openai_url, generate=WRITTEN)
        assert graded(config).summary.complete
        before = grades(config)
    write_rows(tmp_path / "queries.csv", ["qid", "query"], queries)
    write_rows(tmp_path / "answers.csv", ["qid", "agent", "answer"], answers)
    with LLMServer(lambda _: Reply("no credit", status=401)) as server:
        ended = graded(exam_config(tmp_path, server.openai_url, judge={"concurrency": 1}, generate=WRITTEN))
        assert len(server.calls) == 1
    assert ended.summary.stopped
    assert (len(before), grades(config)) == (40 * 4, before)
    assert ended.summary.stages[Task.GRADING].known == 40 * 4


def test_another_judge_may_write(tmp_path: Path) -> None:
    write_exam(tmp_path)
    with LLMServer() as server:
        writer = {"provider": "openai", "model": "gpt-w", "base_url": server.openai_url}
        judges = {"writer": writer, "judge": {"provider": "lexical"}}
        config = exam_config(tmp_path, generate={**WRITTEN, "judge": "writer"}, beside={"judges": judges})
        assert graded(config).summary.complete
        assert {call.body["model"] for call in server.calls} == {"gpt-w"}
        assert len(server.calls) == 2


def test_another_stage_alone_keeps_what_is_written_and_graded(tmp_path: Path) -> None:
    write_exam(tmp_path)
    with LLMServer() as server:
        beside = {"pairwise": {"judges": ["judge"]}}
        config = exam_config(tmp_path, server.openai_url, generate=WRITTEN, beside=beside)
        graded(config)
        before = grades(config)
        summary = judging.run(config, Quiet(), only=[Task.PAIRWISE])
        assert set(summary.stages) == {Task.PAIRWISE}
    assert grades(config) == before
    assert all(stored(config, Task.GRADING).values())


def test_the_commands_write_a_bank_and_grade_by_it(tmp_path: Path, cli: Any) -> None:
    write_exam(tmp_path)
    with LLMServer() as server:
        yaml = (
            "name: exam\nstore: exam.db\ndata: {queries: queries.csv, answers: answers.csv}\n"
            f"judges: {{j: {{provider: openai, model: m, base_url: '{server.openai_url}'}}}}\n"
        )
        path = tmp_path / "t.yaml"
        path.write_text(yaml + "exam: {judge: j, generate: {per_query: 4}}\n")
        bank = tmp_path / "written.jsonl"
        done = cli("make", "bank", path, "--out", bank)
        assert (done.status, done.out) == (0, f"8 items on 2 queries, 0 of them secret, written to {bank}\n"), done.err
        assert cli("make", "bank", path, "--out", bank).status == 2
        path.write_text(yaml + "exam: {judge: j, bank: written.jsonl, passage_words: 7}\n")
        assert cli("make", "bank", path, "--out", tmp_path / "b.jsonl").err.startswith(
            "error: exam.generate: the config"
        )
        done = cli("make", "grades", path, "--out", tmp_path / "g.csv", "--format", "json")
        assert done.status == 0, done.err
        shown = json.loads(done.out)
        assert shown["coverage"]["graded"] == shown["coverage"]["pairs"] == ALL
        scored = json.loads(cli("exam", "score", tmp_path / "g.csv", "--bank", bank, "--format", "json").out)
        levels = [[(row["agent"], row["levels"]) for row in found["agents"]] for found in (scored, shown)]
        assert levels[0] == levels[1], "the ids of passages lead back to the answers"
    path.write_text(yaml)
    assert cli("make", "grades", path).err == "error: exam: the configuration lacks this section; add it\n"
    assert "has no section 'exam'" in cli("run", path, "--stage", "exam").err
