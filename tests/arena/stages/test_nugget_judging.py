"""Nuggets made and assigned by a judge: turn after turn, each thing asked once, failures never labels."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from arena.boards.queries import nugget_matrix
from arena.config.schema import Config, load_config
from arena.results.nuggets import NuggetResults, nugget_results, unedited_banks
from arena.run.plan import plan
from arena.store import Store
from judges.errors import ConfigError, DataError
from judges.types import JudgeFailure, Task
from retrieval_eval.nuggets.files import write_banks
from retrieval_eval.nuggets.types import Importance, NuggetBank, Support, make_nuggets
from tests.support.llm_server import Call, LLMServer, Reply
from tests.support.nugget_judge import labels, nugget_judge, nugget_tournament, shown_nuggets, task_of
from tests.support.tournaments import AGENTS, calls, run, write_data

FACTS = ["fact of all", "fact of x", "fact of y", "fact of z"]


def asked(server: LLMServer, task: str) -> list[Call]:
    return [call for call in server.calls if task_of(call) == task]


def results_of(config: Config) -> NuggetResults:
    store = Store.open(config.store)
    results = nugget_results(store, config.name)
    store.close()
    assert results is not None
    return results


def failing(task: str, reply: Reply, when: Any = lambda call: True) -> Any:
    return lambda call: reply if task_of(call) == task and when(call) else nugget_judge(call)


def test_every_turn_sees_the_list_of_the_turn_before(tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"])
    with LLMServer(nugget_judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url)
        assert run(config).complete
        turns = [shown_nuggets(call) for call in asked(server, "nuggets")]
    assert turns == [[], FACTS[:2]]
    (bank,) = results_of(config).banks.values()
    assert [nugget.text for nugget in bank.nuggets] == FACTS
    assert [nugget.importance for nugget in bank.nuggets] == [Importance.VITAL] * 3 + [Importance.OKAY]


def test_a_list_beyond_the_cap_that_an_earlier_version_refused_is_read_again_without_a_call(
    tmp_path: Path, cli: Any
) -> None:
    write_data(tmp_path, ["q1"])
    many = json.dumps({"nuggets": [f"fact number {n}" for n in range(31)]})
    with LLMServer(failing("nuggets", Reply("I cannot list them."))) as server:
        config = nugget_tournament(tmp_path, server.openai_url)
        assert run(config).stages[Task.NUGGETS].failed == 1
        store = Store.open(config.store)
        ((_, refused), *_) = store.outcomes(config.name, Task.NUGGETS)
        assert isinstance(refused, JudgeFailure)
        store.save([(Task.NUGGETS, "nugget_create@1", replace(refused, reply=many, rejected=(many, many)))])
        store.close()
        server.script = nugget_judge
        server.calls.clear()
        summary = run(config)
        turns = [shown_nuggets(call) for call in asked(server, "nuggets")]
        (tmp_path / "nuggets.yaml").write_text(config.model_dump_json(exclude_unset=True), encoding="utf-8")
        said = cli("make", "nuggets", tmp_path / "nuggets.yaml", "--out", tmp_path / "nuggets.jsonl")
    assert (summary.complete, summary.stages[Task.NUGGETS].known) == (True, 1)
    assert turns == [[f"fact number {n}" for n in range(30)]]
    assert "- q1: Left out, since at most 30 texts were asked for, of 31: 'fact number 30'." in said.out
    assert "nuggets: lists shorter than asked for, or with texts left out: 2" in said.err


def test_documents_are_read_by_rank_and_only_from_the_label_on(tmp_path: Path) -> None:
    rows = [("q1", f"d{number:02}", f"About q1, as n{number} tells it.", "x") for number in range(1, 6)]
    write_data(tmp_path, ["q1"], {("q1", agent): "a" for agent in AGENTS}, rows)

    def judge(call: Call) -> Reply:
        if task_of(call) == "relevance":
            word = "not relevant" if "as n3 " in json.dumps(call.body) else "somewhat relevant"
            return Reply(json.dumps({"reason": "r", "label": word}))
        return nugget_judge(call)

    with LLMServer(judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url)
        assert run(config).complete
    (bank,) = results_of(config).banks.values()
    assert [nugget.text for nugget in bank.nuggets] == [f"fact of n{number}" for number in (1, 2, 4, 5)]


def test_vital_nuggets_come_first_and_so_many_are_kept(tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"])

    def judge(call: Call) -> Reply:
        if task_of(call) == "importance":
            return labels("vital" if text.endswith("z") else "okay" for text in shown_nuggets(call))
        return nugget_judge(call)

    with LLMServer(judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url, nuggets={"judge": "judge", "keep": 2})
        assert run(config).complete
        assert {tuple(shown_nuggets(call)) for call in asked(server, "assignment")} == {("fact of z", "fact of all")}
    (bank,) = results_of(config).banks.values()
    assert [(nugget.text, nugget.importance) for nugget in bank.nuggets] == [
        ("fact of z", "vital"),
        ("fact of all", "okay"),
    ]


def test_a_second_run_asks_nothing_and_an_answer_that_changed_only_its_labels(tmp_path: Path) -> None:
    write_data(tmp_path)
    with LLMServer(nugget_judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url)
        first = calls(run(config))
        assert first == {Task.RELEVANCE: 8, Task.NUGGETS: 4, Task.IMPORTANCE: 2, Task.ASSIGNMENT: 6}
        assert calls(run(config)) == {}
        write_data(tmp_path, answers={("q2", "y"): "Something else."})
        assert calls(run(config)) == {Task.ASSIGNMENT: 1}
        assert len(server.calls) == sum(first.values()) + 1


def test_equal_answers_share_their_calls_and_an_empty_one_needs_none(tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"], {("q1", "x"): "The same.", ("q1", "y"): "The same.", ("q1", "z"): "  "})
    with LLMServer(nugget_judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url)
        summary = run(config)
    assert (summary.stages[Task.ASSIGNMENT].judged, summary.stages[Task.ASSIGNMENT].known) == (1, 2)
    assert calls(summary)[Task.ASSIGNMENT] == 1
    said = {own.run: own.labels for own in results_of(config).assignments}
    assert said["x"] == said["y"] == (Support.FULL, *[Support.NONE] * 3)
    assert said["z"] == (Support.NONE,) * 4


def test_nuggets_are_labelled_so_many_at_a_time(tmp_path: Path) -> None:
    rows = [("q1", f"d{number:02}", f"About q1, as n{number} tells it.", "x") for number in range(1, 14)]
    write_data(tmp_path, ["q1"], {("q1", agent): f"by {agent}" for agent in AGENTS}, rows)
    with LLMServer(nugget_judge) as server:
        section = {"judge": "judge", "assign": {"batch": 5}}
        config = nugget_tournament(tmp_path, server.openai_url, nuggets=section)
        assert run(config).complete
        assert sorted(len(shown_nuggets(call)) for call in asked(server, "importance")) == [3, 10]
        assert Counter(len(shown_nuggets(call)) for call in asked(server, "assignment")) == {5: 6, 3: 3}
    assert all(len(own.labels) == 13 and None not in own.labels for own in results_of(config).assignments)


def test_labels_outside_the_contract_are_asked_again_and_then_a_failure(tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"])
    reply = Reply('{"labels": ["support", "support", "support"]}')
    with LLMServer(failing("assignment", reply, lambda call: "Agent y" in json.dumps(call.body))) as server:
        config = nugget_tournament(tmp_path, server.openai_url)
        summary = run(config)
        assert len(asked(server, "assignment")) == 2 + 3
    assert (summary.complete, summary.stages[Task.ASSIGNMENT].failed) == (False, 1)
    said = {own.run: own.labels for own in results_of(config).assignments}
    assert said["y"] == (None,) * 4
    assert said["x"] == (Support.FULL, *[Support.NONE] * 3)


def test_a_malformed_list_is_asked_again_and_then_ends_its_query_alone(tmp_path: Path) -> None:
    write_data(tmp_path)
    reply = Reply('{"nuggets": "a, b"}')
    second_turn = lambda call: "What is q2" in json.dumps(call.body) and shown_nuggets(call)
    with LLMServer(failing("nuggets", reply, second_turn)) as server:
        config = nugget_tournament(tmp_path, server.openai_url)
        summary = run(config)
    assert summary.stages[Task.NUGGETS].failed == 1
    assert not summary.complete
    results = results_of(config)
    assert list(results.banks) == ["q1"]
    assert results.without == {"q2": "a turn of making its nuggets failed"}
    assert {own.query_id for own in results.assignments} == {"q1"}
    with LLMServer(nugget_judge) as server:
        mended = nugget_tournament(tmp_path, server.openai_url)
        assert calls(run(mended, retry_failed=True)) == {Task.NUGGETS: 1, Task.IMPORTANCE: 1, Task.ASSIGNMENT: 3}
    assert list(results_of(mended).banks) == ["q1", "q2"]


def test_stages_can_be_done_one_at_a_time(tmp_path: Path) -> None:
    write_data(tmp_path)
    with LLMServer(nugget_judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url)
        assert calls(run(config, only=[Task.ASSIGNMENT])) == {}
        assert calls(run(config, only=[Task.NUGGETS])) == {}
        assert results_of(config).without == dict.fromkeys(("q1", "q2"), "some of its documents have no label yet")
        assert calls(run(config, only=[Task.RELEVANCE])) == {Task.RELEVANCE: 8}
        assert calls(run(config, only=[Task.NUGGETS])) == {Task.NUGGETS: 4}
        assert calls(run(config, only=[Task.IMPORTANCE])) == {Task.IMPORTANCE: 2}
        assert calls(run(config, only=[Task.ASSIGNMENT])) == {Task.ASSIGNMENT: 6}
        assert calls(run(config, only=[Task.RELEVANCE])) == {}
    assert len(results_of(config).assignments) == 6


def test_a_query_without_relevant_documents_has_no_nuggets_and_is_no_failure(tmp_path: Path) -> None:
    write_data(tmp_path)
    nothing = Reply(json.dumps({"reason": "r", "label": "not relevant"}))
    with LLMServer(failing("relevance", nothing, lambda call: "q2" in json.dumps(call.body))) as server:
        config = nugget_tournament(tmp_path, server.openai_url)
        assert run(config).complete
    assert results_of(config).without == {"q2": "no document with a label that counts"}
    assert results_of(config).finished


def given_bank(folder: Path, *queries: str) -> Path:
    path = folder / "bank.jsonl"
    texts, importances = ["fact of all", "fact of z"], [Importance.OKAY, None]
    write_banks(
        path, [NuggetBank(query, f"What is {query}?", make_nuggets(query, texts, importances)) for query in queries]
    )
    return path


def test_a_bank_takes_the_place_of_making_nuggets(tmp_path: Path) -> None:
    write_data(tmp_path)
    section = {"judge": "judge", "bank": given_bank(tmp_path, "q1", "elsewhere")}
    with LLMServer(nugget_judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url, retrieval=None, nuggets=section)
        assert calls(run(config)) == {Task.ASSIGNMENT: 3}
    results = results_of(config)
    assert results.without == {"q2": "no nuggets in the bank"}
    assert [(nugget.text, nugget.importance) for nugget in results.banks["q1"].nuggets] == [
        ("fact of all", "okay"),
        ("fact of z", None),
    ]
    assert {own.labels for own in results.assignments} == {(Support.FULL, Support.NONE)}


def test_a_bank_for_other_queries_is_refused(tmp_path: Path) -> None:
    write_data(tmp_path)
    section = {"judge": "judge", "bank": given_bank(tmp_path, "t1")}
    with pytest.raises(DataError, match="has nuggets for none of the queries"):
        run(nugget_tournament(tmp_path, "http://127.0.0.1:9/v1", nuggets=section))


def test_the_lists_for_people_have_no_importance_and_are_whole(tmp_path: Path) -> None:
    write_data(tmp_path)
    with LLMServer(nugget_judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url, nuggets={"judge": "judge", "keep": 1})
        run(config, only=[Task.RELEVANCE, Task.NUGGETS])
    store = Store.open(config.store)
    banks, without = unedited_banks(store, config.name)
    store.close()
    assert not without
    assert [[nugget.text for nugget in bank.nuggets] for bank in banks] == [FACTS, FACTS]
    assert {nugget.importance for bank in banks for nugget in bank.nuggets} == {None}


def test_the_nuggets_that_tell_two_answers_apart_come_first(tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"])

    def judge(call: Call) -> Reply:
        if task_of(call) == "assignment" and "Agent y" in json.dumps(call.body):
            return labels(["support", "not_support", "partial_support", "support"])
        return nugget_judge(call)

    with LLMServer(judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url)
        run(config)
    assignments = results_of(config).assignments
    found = nugget_matrix(assignments, "q1", ["x", "y"])
    assert found is not None
    assert [(name, *(found.cells[name, agent].figure for agent in "xy")) for name in found.rows] == [
        ("1. fact of y (vital)", "○", "◐"),
        ("2. fact of z", "○", "●"),
        ("3. fact of all (vital)", "●", "●"),
        ("4. fact of x (vital)", "○", "○"),
    ]
    assert nugget_matrix(assignments, "q2", ["x", "y"]) is None


def test_a_plan_counts_at_most_what_a_run_asks_and_says_so(tmp_path: Path) -> None:
    write_data(tmp_path)
    with LLMServer(nugget_judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url)
        planned = plan(config)
        before = {row.task: row.calls for row in planned.rows}
        assert before == {Task.RELEVANCE: 8, Task.NUGGETS: 4, Task.IMPORTANCE: 6, Task.ASSIGNMENT: 12}
        assert any("nuggets that are not made yet" in note for note in planned.notes)
        assert not server.calls
        run(config, only=[Task.RELEVANCE, Task.NUGGETS, Task.IMPORTANCE])
        assert {row.task: row.calls for row in plan(config).rows} == {
            Task.RELEVANCE: 0,
            Task.NUGGETS: 0,
            Task.IMPORTANCE: 0,
            Task.ASSIGNMENT: 6,
        }
        run(config)
    assert sum(row.calls for row in plan(config).rows) == 0


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("nuggets: {judge: judge}", "'nuggets' needs 'retrieval', or a 'bank'"),
        ("nuggets: {judge: judge, bank: b.jsonl, create: {}}", "'bank' takes the place of 'create'"),
        ("nuggets: {judge: judge, bank: b.jsonl, keep: 5}", "'keep' goes with 'create'"),
        ("nuggets: {judge: thrice, bank: b.jsonl}", "lists of nuggets cannot be averaged"),
        ("nuggets: {judge: judge, bank: b.jsonl, assign: {grades: 4}}", "nuggets.assign.grades"),
        ("nuggets: {judge: judge, bank: b.jsonl, assign: {batch: 0}}", "nuggets.assign.batch"),
        ("nuggets: {judge: nobody, bank: b.jsonl}", "judge 'nobody' is not declared"),
    ],
)
def test_a_section_that_makes_no_sense_is_one_line(tmp_path: Path, section: str, problem: str) -> None:
    judges = "judges: {judge: {provider: lexical}, thrice: {provider: lexical, samples: 3}}"
    path = tmp_path / "t.yaml"
    path.write_text(f"name: n\nstore: s.db\ndata: {{queries: q.csv}}\n{judges}\n{section}\n")
    with pytest.raises(ConfigError, match=problem) as caught:
        load_config(path)
    assert "\n" not in str(caught.value)


def test_grades_must_be_those_of_the_prompt(tmp_path: Path) -> None:
    write_data(tmp_path)
    assign = {"grades": 3, "prompt": "nugget_assign_two_grades"}
    section = {"judge": "judge", "bank": given_bank(tmp_path, "q1"), "assign": assign}
    with pytest.raises(ConfigError, match=r"nuggets\.assign\.grades: 3, but the prompt"):
        run(nugget_tournament(tmp_path, None, nuggets=section))
