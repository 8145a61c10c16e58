"""Several relevance judges: each labels every document, and their labels together are what the rest uses."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from arena.boards.exports import export_labels
from arena.config.whole import Config
from arena.run.plan import plan
from arena.run.tournament import load_data
from arena.stages.labels import Labels
from arena.stages.samples import labels_of
from arena.store import Store, Wanted
from judges.types import JudgeFailure, Judgment, Task, label_of
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.tournaments import configured, run, write_data

WORDS = ("not relevant", "somewhat relevant", "very relevant")
SAID = {"gpt-a": 0, "gpt-b": 2, "gpt-c": 1}
"""What each model says of every document."""


def is_game(call: Call) -> bool:
    return "verdict" in call.body["response_format"]["json_schema"]["schema"]["properties"]


def by_model(call: Call) -> Reply:
    """A relevance judge that always gives its model's label; games are as steady as ever."""
    if is_game(call):
        return steady_judge(call)
    label = SAID[call.body["model"]]
    return Reply(json.dumps({"reason": f"{call.body['model']} says {label}.", "label": WORDS[label]}))


def panel(folder: Path, url: str, combine: str, names: str = "abc", **more: Any) -> Config:
    judges = {name: {"provider": "openai", "model": f"gpt-{name}", "base_url": url, "timeout_s": 10} for name in names}
    judges["a"] |= more.pop("a", {})
    retrieval = {"judge": list(names), "combine": combine}
    return configured(
        folder,
        **{
            "judges": judges,
            "retrieval": retrieval,
            "pairwise": {"judges": ["a"], "documents": {"threshold": 1}},
            "criteria": None,
        }
        | more,
    )


@pytest.mark.parametrize(("combine", "label"), [("majority", 0), ("median", 1), ("mean", 1)])
def test_labels_are_combined_and_shown_to_answer_judges(tmp_path: Path, combine: str, label: int) -> None:
    write_data(tmp_path)
    with LLMServer(by_model) as server:
        config = panel(tmp_path, server.openai_url, combine)
        summary = run(config)
        assert summary.complete
        assert summary.stages[Task.RELEVANCE].judged == 3 * 8
        games = [call.body["messages"][1]["content"] for call in server.calls if is_game(call)]
        store = Store.open(config.store)
        labels = labels_of(store, config.name)
        store.close()
        assert {label_of(found.outcome) for found in labels.values() if isinstance(found, Judgment)} == {label}
        spokesman = next(model for model, said in SAID.items() if said == label)
        assert all((f"{spokesman} says {label}." in game) is (label >= 1) for game in games)
        assert run(config).stages[Task.RELEVANCE].known == 24
        (stage,) = [row for row in plan(config).rows if row.task is Task.PAIRWISE]
        assert stage.calls == 0  # the plan combines as the run does, and so finds its games


def test_neither_label_nor_reason_depends_on_which_reply_is_faster(tmp_path: Path) -> None:
    write_data(tmp_path, ["q"], documents=[("q", "d", "Text.", "x")], answers={})
    config = panel(tmp_path, "http://127.0.0.1:9", "median", "ab", a={"samples": 2})
    said = {
        Wanted(Task.RELEVANCE, "a", "q", "d"): Judgment("1", 1, "a's first", "", "m"),
        Wanted(Task.RELEVANCE, "a", "q", "d", sample=1): Judgment("2", 1, "a's second", "", "m"),
        Wanted(Task.RELEVANCE, "b", "q", "d"): Judgment("3", 1, "b's", "", "m"),
    }
    for order in (list(said), list(said)[::-1]):
        labels = Labels(config, load_data(config))
        for want in order:
            assert labels.is_open("q")
            labels.take(want, said[want])
        assert not labels.is_open("q")
        (found,) = labels.results.values()
        assert isinstance(found, Judgment)
        assert found.reason == "a's first"


def test_a_failed_label_is_none_and_the_other_judges_decide(tmp_path: Path) -> None:
    write_data(tmp_path)

    def half(call: Call) -> Reply:
        return Reply("I would say 2 out of 3") if call.body["model"] == "gpt-a" else by_model(call)

    with LLMServer(half) as server:
        config = panel(tmp_path, server.openai_url, "majority", "abc", pairwise=None)
        assert not run(config).complete
    store = Store.open(config.store)
    labels = labels_of(store, config.name)
    store.close()
    assert {label_of(found.outcome) for found in labels.values() if isinstance(found, Judgment)} == {1}
    assert not any(isinstance(found, JudgeFailure) for found in labels.values())


@pytest.mark.parametrize("schedule", [{"kind": "all"}, {"kind": "adaptive"}])
def test_a_judge_that_stops_leaves_documents_open_and_the_run_ends(tmp_path: Path, schedule: dict[str, str]) -> None:
    """Games wait for labels that will not come; the judge that is there does what it can, and the next run the rest."""
    write_data(tmp_path)
    games = {"judges": ["b"], "documents": {"threshold": 1}, "schedule": schedule}
    with LLMServer() as server:
        server.script = lambda call: (
            Reply("Wrong key.", status=401) if call.body["model"] == "gpt-a" else by_model(call)
        )
        config = panel(tmp_path, server.openai_url, "majority", "ab", pairwise=games)
        summary = run(config)
        assert summary.stopped == [
            f"judge 'a' stopped: gpt-a at {server.openai_url}: HTTP 401: Wrong key; check the key in OPENAI_API_KEY"
        ]
        assert summary.stages[Task.RELEVANCE].judged == 8
        assert not any(map(is_game, server.calls))
        server.script = by_model
        assert run(config).complete
        games_asked = sum(map(is_game, server.calls))
        assert games_asked == 12
        assert run(config).complete
        assert sum(map(is_game, server.calls)) == games_asked


def test_tables_of_labels_say_whose_each_is(tmp_path: Path) -> None:
    write_data(tmp_path)
    with LLMServer(by_model) as server:
        config = panel(tmp_path, server.openai_url, "majority", "ab", pairwise=None)
        run(config)
    store = Store.open(config.store)
    assert export_labels(store, config.name, tmp_path / "labels.csv") == 16
    store.close()
    with (tmp_path / "labels.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["qid", "did", "judge", "label", "reason"]
    assert {(row["judge"], row["label"]) for row in rows} == {("a", "0"), ("b", "2")}
