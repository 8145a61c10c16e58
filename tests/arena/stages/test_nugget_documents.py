"""Retrieved documents held against nuggets, and scores with edited nuggets before they are assigned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arena.config.schema import Config
from arena.results.nuggets import NuggetResults, carried, nugget_board, nugget_results, preview
from arena.run.plan import plan
from arena.store import Store
from judges.errors import ConfigError
from judges.types import Task
from retrieval_eval.data.tables import write_rows
from retrieval_eval.nuggets.types import Assignment, Importance, NuggetBank, Support, make_nuggets
from tests.support.llm_server import Call, LLMServer, Reply
from tests.support.nugget_judge import labels, nugget_judge, nugget_tournament, shown_nuggets, task_of, user_of
from tests.support.tournaments import AGENTS, calls, run, write_data

BOTH = {"judge": "judge", "create": {"window": 2}, "assign": {"texts": ["answers", "documents"]}}


def judge(call: Call) -> Reply:
    if task_of(call) == Task.PASSAGE_ASSIGNMENT:
        said = (f"as {text.split()[-1]} tells" in user_of(call) for text in shown_nuggets(call))
        return labels("support" if each else "not_support" for each in said)
    return nugget_judge(call)


def results_of(config: Config) -> NuggetResults:
    store = Store.open(config.store)
    found = nugget_results(store, config.name)
    store.close()
    assert found is not None
    return found


def v_strict(results: NuggetResults) -> dict[str, float | None]:
    return {agent: mean.value for agent, mean in nugget_board(results).documents.score("v_strict").means.items()}


def with_section(section: dict[str, Any], **assign: Any) -> dict[str, Any]:
    return {**section, "assign": {**section["assign"], **assign}}


def test_every_document_is_asked_about_once_and_rankings_are_scored_by_their_union(tmp_path: Path) -> None:
    write_data(tmp_path)
    with LLMServer(judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url, nuggets=BOTH)
        planned = {row.task: row.calls for row in plan(config).rows}
        first = run(config)
        assert calls(first)[Task.PASSAGE_ASSIGNMENT] == 2 * len({"all", *AGENTS})
        assert calls(first)[Task.PASSAGE_ASSIGNMENT] <= planned[Task.PASSAGE_ASSIGNMENT]
        assert calls(run(config)) == {}
    results = results_of(config)
    assert len(results.passages) == 8
    # Vital are the facts of all, x and y; every agent has the first document, and x and y one of their own fact.
    assert v_strict(results) == {"x": pytest.approx(2 / 3), "y": pytest.approx(2 / 3), "z": pytest.approx(1 / 3)}


def test_only_documents_within_the_depth_are_asked_about_and_count(tmp_path: Path) -> None:
    write_data(tmp_path)
    with LLMServer(judge) as server:
        section = with_section(BOTH, depth=1)
        config = nugget_tournament(tmp_path, server.openai_url, nuggets=section)
        assert calls(run(config))[Task.PASSAGE_ASSIGNMENT] == 2
    assert v_strict(results_of(config)) == dict.fromkeys(AGENTS, pytest.approx(1 / 3))


def test_a_failed_label_is_unknown_unless_another_document_states_the_nugget(tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"])

    def fails_on_all(call: Call) -> Reply:
        failing = task_of(call) == Task.PASSAGE_ASSIGNMENT and "as all tells" in user_of(call)
        return Reply("no list") if failing else judge(call)

    with LLMServer(fails_on_all) as server:
        config = nugget_tournament(tmp_path, server.openai_url, nuggets=BOTH)
        assert not run(config).complete
    own = next(each for each in results_of(config).retrieved if each.run == "x")
    assert [None if label is None else label.value for label in own.labels] == [None, "support", None, None]
    coverage = nugget_board(results_of(config)).documents.coverage("x")
    assert (v_strict(results_of(config))["x"], coverage["failed"], coverage["coverage"]) == (None, 1, 0.25)


def test_documents_alone_are_held_against_a_bank_without_a_language_model(tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"])
    bank = {"qid": "q1", "query": "?", "nuggets": [{"text": "x tells it", "importance": "vital"}]}
    (tmp_path / "bank.jsonl").write_text(json.dumps(bank))
    section = {"judge": "judge", "bank": tmp_path / "bank.jsonl", "assign": {"texts": "documents"}}
    config = nugget_tournament(tmp_path, None, nuggets=section, retrieval=None)
    summary = run(config)
    assert summary.complete
    assert Task.ASSIGNMENT not in summary.stages
    results = results_of(config)
    assert not results.assignments
    assert v_strict(results)["x"] == 1


def test_documents_that_all_agents_were_given_are_scored_once(tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"])
    rows = [{"qid": "q1", "did": name, "document": f"Here, as {name} tells it."} for name in ("all", "x")]
    write_rows(tmp_path / "documents.csv", ["qid", "did", "document"], rows)
    with LLMServer(judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url, nuggets=BOTH)
        assert calls(run(config))[Task.PASSAGE_ASSIGNMENT] == 2
    assert v_strict(results_of(config)) == {"(every agent)": pytest.approx(1)}


def test_data_without_documents_are_refused_before_anything_is_asked(tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"])
    (tmp_path / "bank.jsonl").write_text('{"qid": "q1", "query": "?", "nuggets": [{"text": "a"}]}')
    section = {"judge": "judge", "bank": tmp_path / "bank.jsonl", "assign": {"texts": "documents"}}
    data = {name: [tmp_path / f"{name}.csv"] for name in ("queries", "answers")}
    with pytest.raises(ConfigError, match="nuggets are to be assigned to 'documents', and"):
        run(nugget_tournament(tmp_path, None, nuggets=section, retrieval=None, data=data))


def test_a_depth_without_documents_is_refused(tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"])
    with pytest.raises(ValueError, match="'depth' goes with 'texts: documents' only"):
        nugget_tournament(tmp_path, None, nuggets={"judge": "judge", "assign": {"depth": 3}})


FILE = """
name: small
store: store.db
data: {{queries: queries.csv, documents: documents.csv, answers: answers.csv}}
judges: {{judge: {{provider: openai, model: gpt-x, base_url: '{url}'}}}}
retrieval: {{judge: judge}}
nuggets: {{judge: judge, assign: {{texts: [answers, documents]}}}}
"""


def test_documents_are_written_as_nuggetizer_does_and_stand_on_the_leaderboard(
    cli: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    with LLMServer(judge) as server:
        Path("t.yaml").write_text(FILE.format(url=server.openai_url))
        assert cli("make", "nuggets", "t.yaml").status == 0
        assigned = cli("make", "assignments", "t.yaml")
    assert assigned.status == 0, assigned.err
    assert "wrote passages.jsonl: 32 of 32 labels of 8 documents" in assigned.out
    first = json.loads(Path("passages.jsonl").read_text().splitlines()[0])
    assert (first["qid"], first["docid"], first["text"]) == ("q1", "q1-all", "What is q1?")
    assert first["candidate_text"] == "About q1, as all tells it."
    assert first["nuggets"][0] == {"text": "fact of all", "importance": "vital", "assignment": "support"}
    assert "Nuggets of the first 20 documents" in cli("leaderboard", "t.yaml", "--details").out
    shape = json.loads(cli("leaderboard", "t.yaml", "--format", "json").out)
    assert shape["nuggets"]["documents"]["depth"] == 20
    assert shape["nuggets"]["documents"]["agents"]["z"]["v_strict"] == pytest.approx(1 / 3)
    assert "nuggets_documents_v_strict" in cli("leaderboard", "t.yaml", "--format", "csv").out.splitlines()[0]
    refused = cli("nuggets", "score", "passages.jsonl")
    assert refused.status == 2
    assert "only answers of runs can be scored" in refused.err


V, O = Importance.VITAL, Importance.OKAY  # noqa: E741
FULL, PARTIAL, NONE = Support


def assignment(run: str, query_id: str, *labels: Support, words: int = 3) -> Assignment:
    return Assignment(
        query_id, run, make_nuggets(query_id, ["a", "b"], [V, O]), labels, words, "an answer here"[:words]
    )


ASSIGNMENTS = [
    assignment("x", "q1", FULL, NONE),
    assignment("x", "q2", FULL, FULL),
    assignment("y", "q1", NONE, NONE, words=0),
    assignment("y", "q2", NONE, PARTIAL),
]


def edited(*nuggets: tuple[str, Importance]) -> dict[str, NuggetBank]:
    made = make_nuggets("q1", [text for text, _ in nuggets], [importance for _, importance in nuggets])
    return {"q1": NuggetBank("q1", "Why?", made)}


def test_labels_stay_with_their_text_wherever_it_stands_and_however_it_weighs() -> None:
    found = carried(ASSIGNMENTS, edited(("b", V), ("a", O)))
    assert [own.labels for own in found] == [(NONE, FULL), (FULL, FULL), (NONE, NONE), (NONE, PARTIAL)]
    assert [own.importance for own in found[0].nuggets] == [V, O]


def test_a_new_nugget_is_open_but_for_an_empty_answer() -> None:
    found = carried(ASSIGNMENTS, edited(("a", V), ("new", V)))
    assert [own.labels for own in found][0::2] == [(FULL, None), (NONE, NONE)]


def test_scores_after_an_edit_are_bounds_until_all_is_assigned() -> None:
    before, after = (table.score("v_strict") for table in preview(ASSIGNMENTS, edited(("a", V), ("new", V))))
    assert before.means["x"].value == 1.0
    assert (*after.mean_bounds("x"), after.missing("x")[0]) == (0.75, 1.0, 1)
    assert after.means["y"].value == 0.0
    _, table = preview(ASSIGNMENTS, edited(("a", O), ("b", V)))
    assert table.score("v_strict").means["x"].value == 0.5
