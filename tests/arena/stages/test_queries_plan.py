"""What making queries would ask: as many calls as a run then sends, and nothing before."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from arena.run.plan import Plan, plan_queries
from arena.stages.queries.run import synthesise
from arena.store import Store
from arena.store.runs import Runs
from tests.support.llm_server import LLMServer
from tests.support.query_writers import synth_config, ten_each, write_documents
from tests.support.tournaments import Quiet

SECTION: dict[str, Any] = {
    "quotas": {"gpt": 12, "opus": 30},
    "filters": {"answerable": "gpt"},
    "sample": {"passages": 2},
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "sk-dummy")


def calls(made: Plan) -> dict[tuple[str, str], int]:
    return {(row.task.value, row.judge): row.calls for row in made.rows if row.calls}


def test_a_plan_of_queries_counts_what_a_run_sends(tmp_path: Path) -> None:
    write_documents(tmp_path, 3)
    with LLMServer(ten_each) as server:
        config = synth_config(tmp_path, server.openai_url, ["gpt", "opus"], **SECTION)
        made = plan_queries(config)
        assert (server.calls, (tmp_path / "synth.db").exists()) == ([], False)
        report = synthesise(config, Quiet())
    writing = {("queries", "gpt"): 2, ("queries", "opus"): 2}
    assert calls(made) == writing | {("answerable", "gpt"): 12 + 20}, "as if every query that is checked is answered"
    assert report.summary is not None
    sent = {task.value: stage.calls for task, stage in report.summary.stages.items()}
    assert sent == {"queries": 4, "answerable": 40}, "half of the queries are not, so all are checked"
    assert calls(plan_queries(config)) == {}
    said = "\n".join(made.notes)
    assert (
        "passages asked about: 2 of 3 (documents: 3); about each up to 10 queries of each model, for quotas of" in said
    )
    assert "synth: opus comes to 20 queries at most, fewer than the 30 of its quota" in said
    assert "gpt comes to" not in said


def test_what_a_killed_run_has_left_is_planned_with_the_queries_it_has(tmp_path: Path) -> None:
    write_documents(tmp_path, 2)
    with LLMServer(ten_each) as server:
        config = synth_config(tmp_path, server.openai_url, ["gpt"], out=str(tmp_path / "queries.csv"))
        synthesise(config, Quiet())
        checking = synth_config(tmp_path, server.openai_url, ["gpt"], filters={"answerable": "gpt"}, quotas={"gpt": 7})
        assert calls(plan_queries(checking)) == {("answerable", "gpt"): 7}


def test_a_tournament_without_its_queries_is_planned_as_far_as_that_goes(cli: Any, tmp_path: Path) -> None:
    write_documents(tmp_path, 2)
    content: dict[str, Any] = {
        "name": "t",
        "store": "t.db",
        "data": {"corpus": "documents"},
        "judges": {"words": {"provider": "lexical"}},
        "synth": {"documents": "documents", "models": ["words"], "quotas": {"words": 2}, "out": "queries.csv"},
        "agents": {name: {"kind": "rag", "retriever": "bm25"} for name in "xy"},
        "pairwise": {"judges": "words"},
    }
    config = tmp_path / "t.yaml"
    config.write_text(yaml.safe_dump(content))
    first = cli("plan", config)
    assert first.status == 0, first.err
    assert first.out.splitlines()[1].split()[:6] == ["Queries", "written,", "by", "passage", "words", "2"]
    assert "'ragleague run CONFIG --stage synth', then plan again" in first.out
    assert cli("run", config, "--stage", "synth").status == 0
    with closing(Store.open(str(tmp_path / "t.db"))) as store:
        (made,) = Runs(store, "t").all()
    assert (made.state, made.spent["queries"].judged, made.stages["queries"]["wanted"]) == ("complete", 2, 2)
    second = json.loads(cli("plan", config, "--format", "json").out)
    assert [(row["task"], row["calls"]) for row in second["stages"]] == [("queries", 0)]
    assert [row["agent"] for row in second["agents"]] == ["x", "y"]
