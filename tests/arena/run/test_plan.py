"""What a run would ask: the same number that the server then sees, and nothing before."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.config.schema import Config
from arena.run.plan import Plan, plan
from judges.types import Task
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.tournaments import configured, run, write_data

PRICE = {"price": {"input": 2, "output": 10}}


def planned_calls(made: Plan) -> dict[Task, int]:
    return {row.task: row.calls for row in made.rows if row.calls}


def sent(server: LLMServer, config: Config) -> dict[Task, int]:
    before = len(server.calls)
    run(config)
    names = [call.body["response_format"]["json_schema"]["name"] for call in server.calls[before:]]
    return {task: names.count(task.value) for task in Task if task.value in names}


def test_a_plan_counts_what_a_run_sends_and_sends_nothing(tmp_path: Path) -> None:
    write_data(tmp_path, answers={("q1", "x"): "The same.", ("q1", "y"): "The same."})
    with LLMServer() as server:
        config = configured(tmp_path, server.openai_url, criteria={"judge": "judge", "documents": {"include": False}})
        made = plan(config)
        assert server.calls == []
        assert not (tmp_path / "store.db").exists()
        games = next(row for row in made.rows if row.task is Task.PAIRWISE)
        assert (games.wanted, games.identical) == (12, 2)
        assert sum(row.wanted for row in made.rows) == 8 + 12 + 6
        assert planned_calls(made) == sent(server, config)

        again = plan(config)
        assert planned_calls(again) == {}
        assert sent(server, config) == {}
        assert [
            (row.input_tokens, row.output_tokens, row.cost_usd) for row in again.rows if row.task is Task.RELEVANCE
        ] == [(0, 0, None)]


@pytest.mark.parametrize(
    ("file", "found", "replacement"),
    [
        ("answers.csv", "Agent x says that q1", "Agent x knows that q1"),
        ("answers.csv", "Agent x says that q1", "Agent y says that q1"),
        ("queries.csv", "What is q1?", "What was q1?"),
    ],
)
def test_after_an_edit_only_what_it_touches_is_planned(tmp_path: Path, file: str, found: str, replacement: str) -> None:
    write_data(tmp_path)
    with LLMServer() as server:
        config = configured(tmp_path, server.openai_url)
        run(config)
        text = (tmp_path / file).read_text()
        assert found in text
        (tmp_path / file).write_text(text.replace(found, replacement))
        made = planned_calls(plan(config))
        assert made == sent(server, config)


def test_failures_are_planned_as_a_run_treats_them(tmp_path: Path) -> None:
    write_data(tmp_path)

    def script(call: Call) -> Reply:
        text = call.body["messages"][1]["content"]
        if "as all tells it" in text and "answer" not in text:
            return Reply("no label")
        return Reply(status=503) if "x says that q1" in text else steady_judge(call)

    with LLMServer(script) as server:
        config = configured(tmp_path, server.openai_url, judge={"max_attempts": 1})
        run(config)
        made = planned_calls(plan(config))
        assert made == {Task.PAIRWISE: 4, Task.CRITERIA: 1}
        assert made == sent(server, config)


def test_tokens_and_cost_follow_from_the_prompts(tmp_path: Path) -> None:
    write_data(tmp_path)
    with LLMServer() as server:
        config = configured(tmp_path, server.openai_url, judge=PRICE, pairwise=None, criteria=None)
        (row,) = plan(config).rows
        run(config)
        contents = [call.body["messages"] for call in server.calls]
    characters = sum(len(message["content"]) for messages in contents for message in messages)
    assert row.input_tokens == pytest.approx(characters / 4, abs=8)
    assert row.output_tokens == 8 * 60
    assert row.cost_usd == pytest.approx((row.input_tokens * 2 + row.output_tokens * 10) / 1e6)
    assert row.seconds == pytest.approx(8 * 2.0 / 16)
    assert plan(config).cost_usd == 0


def test_an_unknown_price_is_said_and_not_counted_as_nothing(tmp_path: Path) -> None:
    write_data(tmp_path)
    made = plan(configured(tmp_path, "http://127.0.0.1:9/v1"))
    assert made.cost_usd is None
    assert sum("price of judge 'judge' is not known" in note for note in made.notes) == 1
    assert plan(configured(tmp_path)).cost_usd == 0


def test_a_judge_without_its_key_is_planned_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    write_data(tmp_path)
    judges = {"judge": {"provider": "openai", "model": "gpt-4o"}}
    made = plan(configured(tmp_path, judges=judges))
    assert planned_calls(made) == {Task.RELEVANCE: 8, Task.PAIRWISE: 12, Task.CRITERIA: 6}
    assert made.cost_usd is not None
    assert any("OPENAI_API_KEY" in note for note in made.notes)
